// Algorithm 1 of the paper as a straight-line program of pair products, for one row (E = T) or
// for W rows at once, lane = row (E = Vec<T>). Both layouts do the same arithmetic.
// Included once per instruction set (see routines.hpp).

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
    const E squares =
        write_and_sum_squares(reg.values[step.target], std::size_t(step.size), [=](std::size_t k) {
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

// Sums are scaled after they are taken, as they are where a sparse row is sketched beforehand.
template <class T, class E> inline void scale_buckets(const ChainPlan<T> &plan, E scale, E *leaf) {
    for (std::size_t k = 0; k < plan.buckets.size; ++k)
        leaf[k] = leaf[k] * plan.buckets.scale * scale;
    for (std::size_t k = plan.buckets.size; k < plan.leaf_length; ++k)
        leaf[k] = E{};
}

// The leaf of a group. With lanes, T is applied to all W rows together where they fit, else row by
// row.
template <class T>
inline void apply_leaf(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                       std::size_t, T *leaf, T *scratch) {
    const T *source = rows.input.row(begin);
    if (plan.leaf == Leaf::srht)
        return srht_row(plan.srht, source, rows.row_scale[begin], leaf, scratch);
    if (plan.leaf == Leaf::scatter) {
        scatter_row(plan.buckets, source, leaf);
        return scale_buckets(plan, rows.row_scale[begin], leaf);
    }
    for (std::size_t j = 0; j < plan.leaf_length; ++j)
        leaf[j] = j < plan.columns ? source[j] * rows.row_scale[begin] : T(0);
}
template <class T>
inline void apply_leaf(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                       std::size_t count, Vec<T> *leaf, Vec<T> *scratch) {
    constexpr std::size_t W = kLanes<T>;
    const SrhtPlan<T> &srht = plan.srht;
    const Vec<T> scale = from_rows<Vec<T>>(rows.row_scale, begin, count);
    const InputGroup<T> from(rows.input, begin, count);
    if (plan.leaf == Leaf::identity)
        return load_lanes<false>(from.rows, plan.columns, ScaledRows<T>{scale}, leaf,
                                 plan.leaf_length);
    if (plan.leaf == Leaf::scatter) {
        scatter_lanes(plan.buckets, from.rows, leaf);
        return scale_buckets(plan, scale, leaf);
    }
    if (fits_lanes(srht.padded)) {
        load_lanes<true>(from.rows, srht.columns, ScaledSigned<T>{scale, srht.signs}, scratch,
                         srht.padded);
        transform_from(scratch, srht.padded, W);
        for (std::size_t k = 0; k < srht.size; ++k)
            leaf[k] = scratch[srht.indices[k]] * broadcast(srht.scale);
        return;
    }
    T *sampled = reinterpret_cast<T *>(scratch), *long_row = sampled + W * srht.size;
    const T *sampled_rows[W];
    for (std::size_t r = 0; r < W; ++r) {
        sampled_rows[r] = sampled + (r < count ? r : count - 1) * srht.size;
        if (r < count)
            srht_row(srht, from.rows[r], scale[r], sampled + r * srht.size, long_row);
    }
    load_lanes<false>(sampled_rows, srht.size, Unchanged<T>{}, leaf, srht.size);
}

template <class T, class E>
inline void shift_leaf(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                       std::size_t count, E *leaf) {
    const E shift = from_rows<E>(rows.row_shift, begin, count);
    for (std::size_t k = 0; k < plan.leaf_length; ++k)
        leaf[k] += shift * plan.leaf_shift[k];
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
    return srht_workspace(plan.srht) / sizeof(T) + kLanes<T> * plan.srht.size;
}
template <class T> inline std::size_t register_length(const ChainPlan<T> &plan) {
    return plan.leaf_length > plan.pair.length ? plan.leaf_length : plan.pair.length;
}

template <class T> inline bool chain_in_lanes(const ChainPlan<T> &plan) {
    return fits_lanes(register_length(plan));
}

template <class T> std::size_t chain_workspace(const ChainPlan<T> &plan) {
    const std::size_t element = chain_in_lanes(plan) ? PS_VECTOR_BYTES : sizeof(T);
    const std::size_t one = piece_bytes(register_length(plan) * element);
    const std::size_t leaf = piece_bytes(leaf_scratch(plan) * sizeof(T));
    const std::size_t pairs = 2 * one;
    return piece_bytes(longest_block(plan) * sizeof(T)) + plan.register_count * one +
           (leaf > pairs ? leaf : pairs);
}

// Writes a block of a group's features; false if some of them overflow.
template <class T, class E>
inline bool write_block(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t number,
                        const Registers<T, E> &reg, std::size_t begin, std::size_t count,
                        T *spill) {
    const OutputBlock &block = plan.outputs[number];
    const E *values = reg.values[block.source] + block.start;
    const double *track = reg.track[block.source];
    const bool preserve_norms = plan.preserve_norms;
    T factor[kRowsIn<E>];
    const bool representable = feature_factors(
        values, std::size_t(block.size), rows.block_scales + begin * plan.output_count + number,
        plan.output_count, count,
        [=](double scale, double norm, std::size_t r) {
            return preserve_norms ? scale / norm : scale * track[r];
        },
        factor);
    store_scaled(values, factor, std::size_t(block.size), rows.output, std::size_t(block.offset),
                 begin, count, spill);
    return representable;
}

// One group of rows (count <= kRowsIn<E>) from input to output; false on overflow.
template <class T, class E>
inline bool chain_group(const ChainPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                        std::size_t count, char *workspace) {
    Arena arena{workspace};
    T *spill = arena.take<T>(longest_block(plan));
    Registers<T, E> reg; // set as the program goes: 17 kB of zeros would take longer than a row
    reg.values[0] = arena.take<E>(register_length(plan));
    for (std::size_t r = 1; r < plan.register_count; ++r)
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
    std::size_t block = 0;
    for (std::size_t done = 0; done <= plan.step_count; ++done) {
        if (done > 0)
            apply_pair(plan.pair, plan.steps[done - 1], reg, left, right);
        // A block is written as soon as its register is complete: registers are reused.
        for (; block < plan.output_count && std::size_t(plan.outputs[block].after) == done; ++block)
            representable &= write_block(plan, rows, block, reg, begin, count, spill);
    }
    return representable;
}

template <class T>
bool chain_rows(const ChainPlan<T> &plan, const ChainRows<T> &rows, Share share) {
    bool representable = true;
    for_groups<T>(chain_in_lanes(plan), share, [&](auto in, std::size_t begin, std::size_t count) {
        representable &= chain_group<T, typename decltype(in)::Element>(plan, rows, begin, count,
                                                                        share.workspace);
    });
    return representable;
}
