// Algorithm 1 of the paper as a straight-line program of pair products, for one row (E = T) or
// for W rows at once, lane = row (E = Vec<T>). Both layouts do the same arithmetic.
// Included once per instruction set (see kernels.hpp).

constexpr std::size_t kMaxRegisters = 64;

inline float row_of(float v, std::size_t) { return v; }
inline double row_of(double v, std::size_t) { return v; }
template <class V> inline auto row_of(V v, std::size_t r) -> decltype(v[r] + 0) { return v[r]; }

template <class E, class T> inline E from_rows(const T (&value)[kRowsIn<E>]) {
    if constexpr (kRowsIn<E> == 1) {
        return value[0];
    } else {
        E v{};
        for (std::size_t r = 0; r < kRowsIn<E>; ++r)
            v[r] = value[r];
        return v;
    }
}

// Eight partial sums by position modulo eight, added as a tree: the order is part of the law.
template <class E> PS_INLINE E add_eight(const E (&sum)[8]) {
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}
template <class E> inline E sum_of_squares(const E *v, std::size_t n) {
    E sum[8] = {};
    std::size_t k = 0;
    for (; k + 8 <= n; k += 8)
#pragma GCC unroll 8
        for (std::size_t c = 0; c < 8; ++c)
            sum[c] += v[k + c] * v[k + c];
    for (std::size_t c = 0; k + c < n; ++c)
        sum[c] += v[k + c] * v[k + c];
    return add_eight(sum);
}

// The same sum, taken while target[k] = product(k) is written.
template <class E, class Product>
PS_INLINE E write_and_sum_squares(E *target, std::size_t n, const Product &product) {
    E sum[8] = {};
    std::size_t k = 0;
    for (; k + 8 <= n; k += 8)
#pragma GCC unroll 8
        for (std::size_t c = 0; c < 8; ++c) {
            const E value = product(k + c);
            target[k + c] = value;
            sum[c] += value * value;
        }
    for (std::size_t c = 0; k + c < n; ++c) {
        const E value = product(k + c);
        target[k + c] = value;
        sum[c] += value * value;
    }
    return add_eight(sum);
}

// The registers of one group of rows. A register's true value is its stored value times `track`;
// stored values have norms near one whatever the degree, so nothing over- or underflows.
template <class T, class E> struct Registers {
    static constexpr std::size_t R = kRowsIn<E>;
    E *values[kMaxRegisters];
    std::size_t lengths[kMaxRegisters];
    double norms[kMaxRegisters][R];
    double track[kMaxRegisters][R];

    void set_norms(std::size_t which, E squares) {
        for (std::size_t r = 0; r < R; ++r)
            norms[which][r] = __builtin_sqrt(double(row_of(squares, r)));
    }
};

// H D of a register, kept until the register changes: neighbouring steps often share a factor.
template <class T, class E> struct Transformed {
    E *values;
    const T *signs;
    std::int32_t source = -1;

    const E *of(const Registers<T, E> &reg, std::int32_t which) {
        if (which != source)
            transform_signed(reg.values[which], signs, values, reg.lengths[which]);
        source = which;
        return values;
    }
    void forget(std::int32_t which) {
        if (source == which)
            source = -1;
    }
};

// target = S(left x right), divided by the norms of both (line 5 and line 10 of Algorithm 1).
template <class T, class E>
inline void apply_pair(const PairPlan<T> &pair, const PairStep &step, Registers<T, E> &reg,
                       Transformed<T, E> &left, Transformed<T, E> &right) {
    constexpr std::size_t R = kRowsIn<E>;
    const E *first = left.of(reg, step.left), *second = right.of(reg, step.right);
    T inverse[R];
    double track[R];
    for (std::size_t r = 0; r < R; ++r) {
        const double norm = reg.norms[step.left][r] * reg.norms[step.right][r];
        inverse[r] = norm > 0 ? T(1.0 / (__builtin_sqrt(double(pair.length)) * norm)) : T(0);
        track[r] = reg.track[step.left][r] * reg.track[step.right][r] * norm;
    }
    const E scale = from_rows<E>(inverse);
    const std::size_t left_mask = reg.lengths[step.left] - 1;
    const std::size_t right_mask = reg.lengths[step.right] - 1;
    const std::int32_t *first_index = pair.first, *second_index = pair.second;
    const E squares = write_and_sum_squares(
        reg.values[step.target], std::size_t(step.size), [=](std::size_t k) {
            return first[std::size_t(first_index[k]) & left_mask] *
                   second[std::size_t(second_index[k]) & right_mask] * scale;
        });
    reg.set_norms(step.target, squares);
    for (std::size_t r = 0; r < R; ++r)
        reg.track[step.target][r] = track[r];
    reg.lengths[step.target] = pair.length;
    left.forget(step.target);
    right.forget(step.target);
}

// The factor that turns a stored block into features; false if the features would overflow.
template <class T, class E>
inline bool block_factor(const ChainPlan<T> &plan, const OutputBlock &block,
                         const Registers<T, E> &reg, const double *scales, std::size_t count,
                         T (&factor)[kRowsIn<E>]) {
    constexpr double largest = sizeof(T) == 4 ? double(__FLT_MAX__) : __DBL_MAX__;
    const E squares = sum_of_squares(reg.values[block.source] + block.start, block.size);
    bool representable = true;
    for (std::size_t r = 0; r < kRowsIn<E>; ++r) {
        const std::size_t row = r < count ? r : count - 1;
        const double scale = scales[row * plan.output_count];
        const double norm = __builtin_sqrt(double(row_of(squares, r)));
        double value = 0;
        if (norm > 0)
            value = plan.preserve_norms ? scale / norm : scale * reg.track[block.source][r];
        factor[r] = T(value);
        const double size = __builtin_fabs(value);
        representable = representable && size <= largest && size * norm <= largest;
    }
    return representable;
}

// Sums are scaled after they are taken, as they are where a sparse row is sketched beforehand.
template <class T, class E> inline void scale_buckets(const ChainPlan<T> &plan, E scale, E *leaf) {
    for (std::size_t k = 0; k < plan.buckets.size; ++k)
        leaf[k] = leaf[k] * plan.buckets.scale * scale;
    for (std::size_t k = plan.buckets.size; k < plan.leaf_length; ++k)
        leaf[k] = E{};
}

// Leaves. With lanes, T is applied to all W rows together where they fit, else row by row.
template <class T>
inline void apply_leaf(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                       std::size_t, T *leaf, T *scratch) {
    const T *source = rows.input.row(begin);
    if (plan.leaf == Leaf::srht)
        return srht_row(plan.base, source, rows.row_scale[begin], leaf, scratch);
    if (plan.leaf == Leaf::scatter) {
        scatter_row(plan.buckets, source, leaf);
        return scale_buckets(plan, rows.row_scale[begin], leaf);
    }
    for (std::size_t j = 0; j < plan.leaf_length; ++j)
        leaf[j] = j < plan.base.columns ? source[j] * rows.row_scale[begin] : T(0);
}
template <class T>
inline void apply_leaf(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                       std::size_t count, Vec<T> *leaf, Vec<T> *scratch) {
    constexpr std::size_t W = kLanes<T>;
    const SrhtPlan<T> &base = plan.base;
    T scales[W];
    for (std::size_t r = 0; r < W; ++r)
        scales[r] = rows.row_scale[begin + (r < count ? r : count - 1)];
    const Vec<T> scale = from_rows<Vec<T>>(scales);
    const InputGroup<T> from(rows.input, begin, count);
    if (plan.leaf == Leaf::identity)
        return load_lanes<false>(from.rows, base.columns, ScaledRows<T>{scale}, leaf,
                                 plan.leaf_length);
    if (plan.leaf == Leaf::scatter) {
        scatter_lanes(plan.buckets, from.rows, leaf);
        return scale_buckets(plan, scale, leaf);
    }
    if (fits_lanes(base.padded)) {
        load_lanes<true>(from.rows, base.columns, ScaledSigned<T>{scale, base.signs}, scratch,
                         base.padded);
        transform_from(scratch, base.padded, W);
        for (std::size_t k = 0; k < base.size; ++k)
            leaf[k] = scratch[base.indices[k]] * broadcast(base.scale);
        return;
    }
    T *sampled = reinterpret_cast<T *>(scratch), *long_row = sampled + W * base.size;
    const T *sampled_rows[W];
    for (std::size_t r = 0; r < W; ++r) {
        sampled_rows[r] = sampled + (r < count ? r : count - 1) * base.size;
        if (r < count)
            srht_row(base, from.rows[r], scales[r], sampled + r * base.size, long_row);
    }
    load_lanes<false>(sampled_rows, base.size, Unchanged<T>{}, leaf, base.size);
}

template <class T, class E>
inline void shift_leaf(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                       std::size_t count, E *leaf) {
    T shifts[kRowsIn<E>];
    for (std::size_t r = 0; r < kRowsIn<E>; ++r)
        shifts[r] = rows.row_shift[begin + (r < count ? r : count - 1)];
    const E shift = from_rows<E>(shifts);
    for (std::size_t k = 0; k < plan.leaf_length; ++k)
        leaf[k] += shift * plan.leaf_shift[k];
}

template <class T>
inline void store_block(const T *source, const T (&factor)[1], const OutputBlock &block,
                        Rows<T> output, std::size_t begin, std::size_t, T *) {
    T *target = output.row(begin) + block.offset;
    for (std::size_t k = 0; k < std::size_t(block.size); ++k)
        target[k] = source[block.start + k] * factor[0];
}
template <class T>
inline void store_block(const Vec<T> *source, const T (&factor)[kLanes<T>], const OutputBlock &block,
                        Rows<T> output, std::size_t begin, std::size_t count, T *spill) {
    const OutputGroup<T> to(output, std::size_t(block.offset), begin, count, spill);
    const Vec<T> *start = source + block.start, scale = from_rows<Vec<T>>(factor);
    store_lanes<T>([=](std::size_t k) { return start[k] * scale; }, to.rows,
                   std::size_t(block.size));
}

template <class T> inline std::size_t longest_block(const ChainPlan<T> &plan) {
    std::size_t longest = 0;
    for (std::size_t b = 0; b < plan.output_count; ++b)
        if (std::size_t(plan.outputs[b].size) > longest)
            longest = std::size_t(plan.outputs[b].size);
    return longest;
}

// Elements of scratch for the leaf, and for the two transforms of a pair product.
template <class T> inline std::size_t leaf_scratch(const ChainPlan<T> &plan) {
    if (plan.leaf != Leaf::srht)
        return 0;
    return srht_workspace(plan.base) / sizeof(T) + kLanes<T> * plan.base.size;
}
template <class T> inline std::size_t register_length(const ChainPlan<T> &plan) {
    return plan.leaf_length > plan.pair.length ? plan.leaf_length : plan.pair.length;
}

template <class T> inline bool chain_in_lanes(const ChainPlan<T> &plan) {
    return fits_lanes(register_length(plan));
}

template <class T> std::size_t chain_workspace(const ChainPlan<T> &plan) {
    const std::size_t element = chain_in_lanes(plan) ? PS_VECTOR_BYTES : sizeof(T);
    const std::size_t one = round_up(register_length(plan) * element);
    const std::size_t leaf = round_up(leaf_scratch(plan) * sizeof(T));
    const std::size_t pairs = 2 * one;
    return round_up(longest_block(plan) * sizeof(T)) + plan.register_count * one +
           (leaf > pairs ? leaf : pairs);
}

// One group of rows (count <= kRowsIn<E>) from input to output; false on overflow.
template <class T, class E>
inline bool chain_group(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                        std::size_t count, char *workspace) {
    Arena arena{workspace};
    T *spill = arena.take<T>(longest_block(plan));
    Registers<T, E> reg{};
    for (std::size_t r = 0; r < plan.register_count; ++r)
        reg.values[r] = arena.take<E>(register_length(plan));
    auto *scratch = arena.take<E>(0);
    apply_leaf(plan, rows, begin, count, reg.values[0], scratch);
    if (plan.leaf_shift)
        shift_leaf(plan, rows, begin, count, reg.values[0]);
    reg.lengths[0] = plan.leaf_length;
    for (std::size_t r = 0; r < kRowsIn<E>; ++r)
        reg.track[0][r] = 1;
    reg.set_norms(0, sum_of_squares(reg.values[0], plan.leaf_length));
    // The leaf is done with its scratch: the transforms take its place.
    Transformed<T, E> left{arena.take<E>(register_length(plan)), plan.pair.signs_first};
    Transformed<T, E> right{arena.take<E>(0), plan.pair.signs_second};
    bool representable = true;
    std::size_t done = 0;
    for (std::size_t s = 0; s <= plan.step_count; ++s) {
        if (s > 0)
            apply_pair(plan.pair, plan.steps[s - 1], reg, left, right);
        // A block is written as soon as its register is complete: registers are reused.
        for (; done < plan.output_count && plan.output_after[done] == std::int32_t(s); ++done) {
            const OutputBlock &block = plan.outputs[done];
            T factor[kRowsIn<E>];
            const double *scales = rows.block_scales + begin * plan.output_count + done;
            if (!block_factor(plan, block, reg, scales, count, factor))
                representable = false;
            store_block(reg.values[block.source], factor, block, rows.output, begin, count, spill);
        }
    }
    return representable;
}

template <class T>
bool chain_rows(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                std::size_t end, char *workspace) {
    constexpr std::size_t W = kLanes<T>;
    bool representable = true;
    for (std::size_t i = begin; i < end;) {
        const std::size_t count = end - i < W ? end - i : W;
        if (chain_in_lanes(plan) && worth_lanes<T>(count)) {
            representable &= chain_group<T, Vec<T>>(plan, rows, i, count, workspace);
            i += count;
        } else {
            representable &= chain_group<T, T>(plan, rows, i, 1, workspace);
            ++i;
        }
    }
    return representable;
}

// TensorSRHT of two given rows: both operands zero padded to the plan's length.
template <class T> std::size_t pair_workspace(const PairPlan<T> &pair, std::size_t size) {
    const std::size_t element = fits_lanes(pair.length) ? PS_VECTOR_BYTES : sizeof(T);
    const std::size_t longest = pair.length > size ? pair.length : size;
    return 3 * round_up(longest * element) + round_up(size * sizeof(T));
}

template <class T>
void pair_rows(const PairPlan<T> &pair, std::size_t columns, std::size_t size, T scale,
               Rows<const T> left, Rows<const T> right, Rows<T> output, std::size_t begin,
               std::size_t end, char *workspace) {
    constexpr std::size_t W = kLanes<T>;
    Arena arena{workspace};
    T *spill = arena.take<T>(size);
    const std::size_t n = pair.length;
    for (std::size_t i = begin; i < end;) {
        const std::size_t count = end - i < W ? end - i : W;
        Arena local = arena;
        if (fits_lanes(n) && worth_lanes<T>(count)) {
            auto *a = local.take<Vec<T>>(n), *b = local.take<Vec<T>>(n);
            auto *product = local.take<Vec<T>>(size);
            const InputGroup<T> from_left(left, i, count), from_right(right, i, count);
            load_lanes<true>(from_left.rows, columns, Signed<T>{pair.signs_first}, a, n);
            load_lanes<true>(from_right.rows, columns, Signed<T>{pair.signs_second}, b, n);
            transform_from(a, n, W);
            transform_from(b, n, W);
            for (std::size_t k = 0; k < size; ++k)
                product[k] = a[pair.first[k]] * b[pair.second[k]];
            const OutputGroup<T> to(output, 0, i, count, spill);
            const Vec<T> factor = broadcast(scale);
            store_lanes<T>([=](std::size_t k) { return product[k] * factor; }, to.rows, size);
            i += count;
        } else {
            T *a = local.take<T>(n), *b = local.take<T>(n);
            transform_row(left.row(i), columns, pair.signs_first, T(1), a, n);
            transform_row(right.row(i), columns, pair.signs_second, T(1), b, n);
            for (std::size_t k = 0; k < size; ++k)
                output.row(i)[k] = a[pair.first[k]] * b[pair.second[k]] * scale;
            ++i;
        }
    }
}
