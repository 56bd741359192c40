// What is made of Hadamard transforms: plain ones of whole rows, the SRHT of dense and of sparse
// rows, and the TensorSRHT of pairs of rows.
// Included once per instruction set (see routines.hpp).

constexpr std::size_t kRowBlock = 65536; // longest stretch transformed at once; decides the bits
constexpr std::size_t kDirectFactor = 8; // sparse rows: entries * size <= factor * padded

// Plain transforms of whole rows, zero padded to `padded`.
template <class T> std::size_t transform_workspace(const TransformPlan &plan) {
    return piece_bytes(plan.padded * (fits_lanes(plan.padded) ? PS_VECTOR_BYTES : sizeof(T))) +
           piece_bytes(plan.padded * sizeof(T));
}

template <class T>
void transform_rows(const TransformPlan &plan, Rows<const T> input, Rows<T> output, Share share) {
    Arena arena{share.workspace};
    T *spill = arena.take<T>(plan.padded);
    auto *scratch = arena.take<Vec<T>>(0);
    const std::size_t columns = plan.columns, padded = plan.padded;
    const auto transform = [=](auto in, std::size_t begin, std::size_t count) {
        if constexpr (kRowsIn<typename decltype(in)::Element> > 1) {
            const InputGroup<T> from(input, begin, count);
            const OutputGroup<T> to(output, 0, begin, count, spill);
            load_lanes<true>(from.rows, columns, Unchanged<T>{}, scratch, padded);
            transform_from(scratch, padded, kLanes<T>);
            store_lanes<T>([=](std::size_t k) { return scratch[k]; }, to.rows, padded);
        } else {
            T *row = reinterpret_cast<T *>(scratch), *target = output.row(begin);
            transform_row<T>(input.row(begin), columns, nullptr, T(1), row, padded);
            for (std::size_t k = 0; k < padded; ++k)
                target[k] = row[k];
        }
    };
    for_groups<T>(fits_lanes(padded), share, transform);
}

// One row. Rows longer than kRowBlock are transformed in stretches whose results are added with
// the signs of the Hadamard matrix's upper levels, so that the scratch stays in L2.
template <class T>
inline void srht_row(const SrhtPlan<T> &plan, const T *source, T row_scale, T *target, T *scratch) {
    if (plan.padded <= kRowBlock) {
        transform_row(source, plan.columns, plan.signs, row_scale, scratch, plan.padded);
        // Read once: what is written to the target might be the plan, for all the compiler knows.
        const std::size_t size = plan.size;
        const std::int32_t *indices = plan.indices;
        const T scale = plan.scale;
        for (std::size_t k = 0; k < size; ++k)
            target[k] = scratch[indices[k]] * scale;
        return;
    }
    for (std::size_t k = 0; k < plan.size; ++k)
        target[k] = 0;
    for (std::size_t base = 0; base < plan.columns; base += kRowBlock) {
        const std::size_t left = plan.columns - base;
        transform_row(source + base, left < kRowBlock ? left : kRowBlock, plan.signs + base,
                      row_scale, scratch, kRowBlock);
        const unsigned block = unsigned(base / kRowBlock);
        for (std::size_t k = 0; k < plan.size; ++k) {
            const unsigned index = unsigned(plan.indices[k]);
            const T value = scratch[index % kRowBlock];
            target[k] += __builtin_parity(index / kRowBlock & block) ? -value : value;
        }
    }
    for (std::size_t k = 0; k < plan.size; ++k)
        target[k] *= plan.scale;
}

template <class T> std::size_t srht_workspace(const SrhtPlan<T> &plan) {
    const std::size_t lanes = plan.padded * PS_VECTOR_BYTES;
    const std::size_t row = (plan.padded < kRowBlock ? plan.padded : kRowBlock) * sizeof(T);
    return piece_bytes(fits_lanes(plan.padded) ? lanes : row) + piece_bytes(plan.size * sizeof(T));
}

template <class T>
void srht_rows(const SrhtPlan<T> &plan, Rows<const T> input, Rows<T> output, Share share) {
    Arena arena{share.workspace};
    T *spill = arena.take<T>(plan.size);
    auto *scratch = arena.take<Vec<T>>(0);
    const auto sketch = [=](auto in, std::size_t begin, std::size_t count) {
        if constexpr (kRowsIn<typename decltype(in)::Element> > 1) {
            const InputGroup<T> from(input, begin, count);
            const OutputGroup<T> to(output, 0, begin, count, spill);
            load_lanes<true>(from.rows, plan.columns, Signed<T>{plan.signs}, scratch, plan.padded);
            transform_from(scratch, plan.padded, kLanes<T>);
            const std::int32_t *indices = plan.indices;
            const Vec<T> scale = broadcast(plan.scale);
            store_lanes<T>([=](std::size_t k) { return scratch[indices[k]] * scale; }, to.rows,
                           plan.size);
        } else {
            srht_row(plan, input.row(begin), T(1), output.row(begin),
                     reinterpret_cast<T *>(scratch));
        }
    };
    for_groups<T>(fits_lanes(plan.padded), share, sketch);
}

// One sparse row without a transform: coordinate k is a signed sum of the entries, the sign of
// entry j being signs[j] times the Hadamard matrix's, the parity of popcount(j & indices[k]).
template <class T, class I>
inline void srht_entries(const SrhtPlan<T> &plan, const T *values, const I *columns,
                         std::size_t entries, T *target) {
    constexpr std::size_t W = kLanes<T>;
    constexpr int bits = 8 * sizeof(T);
    constexpr Bits<T> sign = Bits<T>(1) << (bits - 1);
    // Indices of 16 bits take one step less. They lie at the upper end, where shifts to the left
    // gather the parity in the sign.
    const bool is_short = plan.padded <= kRowBlock;
    const int place = is_short ? bits - 16 : bits - 32;
    for (std::size_t k = 0; k < plan.size; k += W) {
        const std::size_t count = plan.size - k < W ? plan.size - k : W;
        // Arrays, as Clang takes vectors apart where their entries are counted.
        alignas(PS_VECTOR_BYTES) Bits<T> places[W] = {};
        for (std::size_t c = 0; c < count; ++c)
            places[c] = Bits<T>(plan.indices[k + c]) << place;
        const BitVec<T> index = *reinterpret_cast<const BitVec<T> *>(places);
        Vec<T> sum{};
        for (std::size_t e = 0; e < entries; ++e) {
            const auto j = columns[e];
            BitVec<T> parity = index & (Bits<T>(j) << place);
            if (!is_short)
                parity ^= parity << 16;
            for (int shift = 8; shift; shift /= 2)
                parity ^= parity << shift;
            const Vec<T> value = broadcast(T(values[e] * plan.signs[j]));
            sum += reinterpret_cast<Vec<T>>(reinterpret_cast<BitVec<T>>(value) ^ (parity & sign));
        }
        alignas(PS_VECTOR_BYTES) T results[W];
        *reinterpret_cast<Vec<T> *>(results) = sum * broadcast(plan.scale);
        for (std::size_t c = 0; c < count; ++c)
            target[k + c] = results[c];
    }
}

template <class T> std::size_t srht_sparse_workspace(const SrhtPlan<T> &plan) {
    return piece_bytes(plan.columns * sizeof(T)) + srht_workspace(plan) +
           piece_bytes(kRowBlock * sizeof(T));
}

template <class T, class I>
void srht_sparse_rows(const SrhtPlan<T> &plan, SparseRows<T, I> input, Rows<T> output,
                      Share share) {
    Arena arena{share.workspace};
    T *dense = arena.take<T>(plan.columns);
    T *scratch = arena.take<T>(0);
    for (std::size_t j = 0; j < plan.columns; ++j)
        dense[j] = 0;
    for (std::size_t i = share.begin; i < share.end; ++i) {
        const std::int64_t first = input.indptr[i], last = input.indptr[i + 1];
        const std::size_t entries = std::size_t(last - first);
        if (entries * plan.size <= kDirectFactor * plan.padded) {
            srht_entries(plan, input.values + first, input.columns + first, entries, output.row(i));
            continue;
        }
        for (std::int64_t e = first; e < last; ++e)
            dense[input.columns[e]] += input.values[e];
        srht_row(plan, dense, T(1), output.row(i), scratch);
        for (std::int64_t e = first; e < last; ++e)
            dense[input.columns[e]] = 0;
    }
}

// TensorSRHT of two given rows, both zero padded to the plan's length.
template <class T> std::size_t pair_workspace(const PairRowsPlan<T> &plan) {
    const std::size_t length = plan.pair.length;
    const std::size_t element = fits_lanes(length) ? PS_VECTOR_BYTES : sizeof(T);
    return 2 * piece_bytes(length * element) + piece_bytes(plan.size * sizeof(T));
}

template <class T>
void pair_rows(const PairRowsPlan<T> &plan, Rows<const T> left, Rows<const T> right, Rows<T> output,
               Share share) {
    const PairPlan<T> &pair = plan.pair;
    const std::size_t n = pair.length;
    Arena arena{share.workspace};
    T *spill = arena.take<T>(plan.size);
    const auto sketch = [=](auto in, std::size_t begin, std::size_t count) {
        using E = typename decltype(in)::Element;
        Arena local = arena;
        E *a = local.take<E>(n), *b = local.take<E>(n);
        const std::int32_t *first = pair.first, *second = pair.second;
        if constexpr (kRowsIn<E> > 1) {
            const InputGroup<T> from_left(left, begin, count), from_right(right, begin, count);
            load_lanes<true>(from_left.rows, plan.columns, Signed<T>{pair.signs_first}, a, n);
            load_lanes<true>(from_right.rows, plan.columns, Signed<T>{pair.signs_second}, b, n);
            transform_from(a, n, kLanes<T>);
            transform_from(b, n, kLanes<T>);
            const OutputGroup<T> to(output, 0, begin, count, spill);
            const Vec<T> scale = broadcast(plan.scale);
            store_lanes<T>([=](std::size_t k) { return a[first[k]] * b[second[k]] * scale; },
                           to.rows, plan.size);
        } else {
            transform_row(left.row(begin), plan.columns, pair.signs_first, T(1), a, n);
            transform_row(right.row(begin), plan.columns, pair.signs_second, T(1), b, n);
            for (std::size_t k = 0; k < plan.size; ++k)
                output.row(begin)[k] = a[first[k]] * b[second[k]] * plan.scale;
        }
    };
    for_groups<T>(fits_lanes(n), share, sketch);
}
