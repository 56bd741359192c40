// CountSketch and OSNAP (signed scatter) of dense and sparse rows.
// Included once per instruction set (see kernels.hpp).

// splitmix64's finaliser of a counter: random_streams.counter_hash is the specification.
inline std::uint64_t counter_hash(std::uint64_t key, std::uint64_t counter) {
    std::uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// 2 * bucket + negative for copy b of coordinate j; band b covers b * size / sparsity onwards.
template <class T>
inline std::size_t scatter_target(const ScatterPlan<T> &plan, std::size_t j, std::size_t b) {
    if (plan.table)
        return std::size_t(plan.table[j * plan.sparsity + b]);
    const std::size_t low = b * plan.size / plan.sparsity;
    const std::size_t width = (b + 1) * plan.size / plan.sparsity - low;
    const std::uint64_t hash = counter_hash(plan.key, j * plan.sparsity + b);
    return 2 * (low + std::size_t((hash >> 32) * width >> 32)) + std::size_t(hash & 1);
}

template <class T> std::size_t scatter_workspace(const ScatterPlan<T> &plan) {
    return round_up(plan.size * PS_VECTOR_BYTES) + round_up(plan.size * sizeof(T));
}

// The sums of W rows, lane = row, before the sketch's scale.
template <class T>
inline void scatter_lanes(const ScatterPlan<T> &plan, const T *const *rows, Vec<T> *buckets) {
    constexpr std::size_t W = kLanes<T>;
    for (std::size_t k = 0; k < plan.size; ++k)
        buckets[k] = Vec<T>{};
    for (std::size_t j = 0; j < plan.columns; j += W) {
        const std::size_t width = plan.columns - j < W ? plan.columns - j : W;
        Vec<T> v[W];
        load_tile(rows, j, width, v);
        for (std::size_t c = 0; c < width; ++c)
            for (std::size_t b = 0; b < plan.sparsity; ++b) {
                const std::size_t target = scatter_target(plan, j + c, b);
                buckets[target / 2] += v[c] * broadcast(target & 1 ? T(-1) : T(1));
            }
    }
}

// The same for one row.
template <class T> inline void scatter_row(const ScatterPlan<T> &plan, const T *row, T *buckets) {
    for (std::size_t k = 0; k < plan.size; ++k)
        buckets[k] = 0;
    for (std::size_t j = 0; j < plan.columns; ++j)
        for (std::size_t b = 0; b < plan.sparsity; ++b) {
            const std::size_t target = scatter_target(plan, j, b);
            buckets[target / 2] += target & 1 ? -row[j] : row[j];
        }
}

template <class T>
void scatter_rows(const ScatterPlan<T> &plan, Rows<const T> input, Rows<T> output,
                  std::size_t begin, std::size_t end, char *workspace) {
    constexpr std::size_t W = kLanes<T>;
    Arena arena{workspace};
    T *spill = arena.take<T>(plan.size);
    Vec<T> *buckets = arena.take<Vec<T>>(plan.size);
    for (std::size_t i = begin; i < end; i += W) {
        const std::size_t count = end - i < W ? end - i : W;
        const InputGroup<T> from(input, i, count);
        scatter_lanes(plan, from.rows, buckets);
        const OutputGroup<T> to(output, 0, i, count, spill);
        store_lanes<T>(buckets, [](std::size_t k) { return k; }, broadcast(plan.scale), to.rows,
                       plan.size);
    }
}

template <class T, class I>
void scatter_sparse_rows(const ScatterPlan<T> &plan, SparseRows<T, I> input, Rows<T> output,
                         std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
        T *target = output.row(i);
        for (std::size_t k = 0; k < plan.size; ++k)
            target[k] = 0;
        for (std::int64_t e = input.indptr[i]; e < input.indptr[i + 1]; ++e)
            for (std::size_t b = 0; b < plan.sparsity; ++b) {
                const std::size_t t = scatter_target(plan, std::size_t(input.columns[e]), b);
                target[t / 2] += t & 1 ? -input.values[e] : input.values[e];
            }
        for (std::size_t k = 0; k < plan.size; ++k)
            target[k] *= plan.scale;
    }
}
