// SRHT of dense and of sparse rows, and TensorSRHT of pairs of rows.
// Included once per instruction set (see kernels.hpp).

constexpr std::size_t kLaneLength = 4096;   // longer rows, W at a time, would not fit L2
constexpr std::size_t kRowBlock = 65536;    // longest stretch transformed at once; part of the law
constexpr std::size_t kDirectFactor = 8;    // sparse rows: entries * size <= factor * padded

inline bool fits_lanes(std::size_t n) { return n <= kLaneLength; }

// Pointers to W rows; rows beyond `count` repeat the last one and are never stored.
template <class T> struct InputGroup {
    const T *rows[kLanes<T>];
    InputGroup(Rows<const T> input, std::size_t begin, std::size_t count) {
        for (std::size_t r = 0; r < kLanes<T>; ++r)
            rows[r] = input.row(begin + (r < count ? r : count - 1));
    }
};
template <class T> struct OutputGroup {
    T *rows[kLanes<T>];
    OutputGroup(Rows<T> output, std::size_t offset, std::size_t begin, std::size_t count, T *spill) {
        for (std::size_t r = 0; r < kLanes<T>; ++r)
            rows[r] = r < count ? output.row(begin + r) + offset : spill;
    }
};

inline std::size_t round_up(std::size_t bytes) { return (bytes + 127) / 64 * 64; }

// Hands out aligned pieces of a thread's scratch memory.
struct Arena {
    char *next;
    template <class E> E *take(std::size_t count) {
        E *piece = reinterpret_cast<E *>(next);
        next += round_up(count * sizeof(E));
        return piece;
    }
};

template <class T> inline bool worth_lanes(std::size_t rows) { return 2 * rows >= kLanes<T>; }

// One row. Rows longer than kRowBlock are transformed in stretches whose results are added with
// the signs of the Hadamard matrix's upper levels, so that the scratch stays in L2.
template <class T>
inline void srht_row(const SrhtPlan<T> &plan, const T *source, T row_scale, T *target, T *scratch) {
    if (plan.padded <= kRowBlock) {
        transform_row(source, plan.columns, plan.signs, row_scale, scratch, plan.padded);
        for (std::size_t k = 0; k < plan.size; ++k)
            target[k] = scratch[plan.indices[k]] * plan.scale;
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
    return round_up(fits_lanes(plan.padded) ? lanes : row) + round_up(plan.size * sizeof(T));
}

template <class T>
void srht_rows(const SrhtPlan<T> &plan, Rows<const T> input, Rows<T> output, std::size_t begin,
               std::size_t end, char *workspace) {
    constexpr std::size_t W = kLanes<T>;
    Arena arena{workspace};
    T *spill = arena.take<T>(plan.size);
    auto *scratch = arena.take<Vec<T>>(0);
    for (std::size_t i = begin; i < end;) {
        const std::size_t count = end - i < W ? end - i : W;
        if (fits_lanes(plan.padded) && worth_lanes<T>(count)) {
            const InputGroup<T> from(input, i, count);
            const OutputGroup<T> to(output, 0, i, count, spill);
            load_lanes<true>(from.rows, plan.columns, Signed<T>{plan.signs}, scratch, plan.padded);
            transform_from(scratch, plan.padded, W);
            const std::int32_t *indices = plan.indices;
            const Vec<T> scale = broadcast(plan.scale);
            store_lanes<T>([=](std::size_t k) { return scratch[indices[k]] * scale; }, to.rows,
                           plan.size);
            i += count;
        } else {
            srht_row(plan, input.row(i), T(1), output.row(i), reinterpret_cast<T *>(scratch));
            ++i;
        }
    }
}

// One sparse row without a transform: coordinate k is a signed sum of the entries, the sign of
// entry j being signs[j] times the Hadamard matrix's, the parity of popcount(j & indices[k]).
template <class T, class I>
inline void srht_entries(const SrhtPlan<T> &plan, const T *values, const I *columns,
                         std::size_t entries, T *target) {
    constexpr std::size_t W = kLanes<T>;
    constexpr int top = 8 * sizeof(T) - 1;
    for (std::size_t k = 0; k < plan.size; k += W) {
        const std::size_t count = plan.size - k < W ? plan.size - k : W;
        BitVec<T> index{};
        for (std::size_t c = 0; c < count; ++c)
            index[c] = Bits<T>(plan.indices[k + c]);
        Vec<T> sum{};
        for (std::size_t e = 0; e < entries; ++e) {
            const auto j = columns[e];
            BitVec<T> parity = index & Bits<T>(j);
            for (int shift = 16; shift; shift /= 2)
                parity ^= parity >> shift;
            const Vec<T> value = broadcast(T(values[e] * plan.signs[j]));
            sum += reinterpret_cast<Vec<T>>(reinterpret_cast<BitVec<T>>(value) ^ (parity << top));
        }
        sum *= broadcast(plan.scale);
        for (std::size_t c = 0; c < count; ++c)
            target[k + c] = sum[c];
    }
}

template <class T> std::size_t srht_sparse_workspace(const SrhtPlan<T> &plan) {
    return round_up(plan.columns * sizeof(T)) + srht_workspace(plan) + round_up(kRowBlock * sizeof(T));
}

template <class T, class I>
void srht_sparse_rows(const SrhtPlan<T> &plan, SparseRows<T, I> input, Rows<T> output,
                      std::size_t begin, std::size_t end, char *workspace) {
    Arena arena{workspace};
    T *dense = arena.take<T>(plan.columns);
    T *scratch = arena.take<T>(0);
    for (std::size_t j = 0; j < plan.columns; ++j)
        dense[j] = 0;
    for (std::size_t i = begin; i < end; ++i) {
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

// Plain transforms of whole rows, zero padded to `padded`.
template <class T> std::size_t transform_workspace(std::size_t padded) {
    return round_up(padded * (fits_lanes(padded) ? PS_VECTOR_BYTES : sizeof(T))) +
           round_up(padded * sizeof(T));
}

template <class T>
void transform_rows(std::size_t columns, std::size_t padded, Rows<const T> input, Rows<T> output,
                    std::size_t begin, std::size_t end, char *workspace) {
    constexpr std::size_t W = kLanes<T>;
    Arena arena{workspace};
    T *spill = arena.take<T>(padded);
    auto *scratch = arena.take<Vec<T>>(0);
    for (std::size_t i = begin; i < end;) {
        const std::size_t count = end - i < W ? end - i : W;
        if (fits_lanes(padded) && worth_lanes<T>(count)) {
            const InputGroup<T> from(input, i, count);
            const OutputGroup<T> to(output, 0, i, count, spill);
            load_lanes<true>(from.rows, columns, Unchanged<T>{}, scratch, padded);
            transform_from(scratch, padded, W);
            store_lanes<T>([=](std::size_t k) { return scratch[k]; }, to.rows, padded);
            i += count;
        } else {
            T *row = reinterpret_cast<T *>(scratch);
            transform_row(input.row(i), columns, static_cast<const T *>(nullptr), T(1), row, padded);
            for (std::size_t k = 0; k < padded; ++k)
                output.row(i)[k] = row[k];
            ++i;
        }
    }
}
