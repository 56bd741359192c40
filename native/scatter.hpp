// CountSketch and OSNAP (signed scatter) of dense and sparse rows.
// Included once per instruction set (see routines.hpp).

// A word of splitmix64; counter_hash in random_streams.py is the specification.
inline std::uint64_t counter_hash(std::uint64_t key, std::uint64_t counter) {
    std::uint64_t z = key + (counter + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Where the copies of a coordinate go: 2 * bucket + negative, from the table or from the hash; band
// b covers the outputs from b * size / sparsity on.
template <class T> class Targets {
public:
    explicit Targets(const ScatterPlan<T> &plan) : plan_(plan) {
        for (std::size_t b = 0; b <= plan.sparsity; ++b)
            edges_[b] = b * plan.size / plan.sparsity;
    }

    template <class Add> PS_INLINE void visit(std::size_t j, const Add &add) const {
        for (std::size_t b = 0; b < plan_.sparsity; ++b) {
            const std::size_t copy = j * plan_.sparsity + b;
            const std::size_t target =
                plan_.table ? std::size_t(plan_.table[copy]) : hashed(copy, b);
            add(target / 2, kSigns[target % 2]);
        }
    }

private:
    PS_INLINE std::size_t hashed(std::size_t copy, std::size_t b) const {
        const std::uint64_t hash = counter_hash(plan_.key, copy);
        const std::size_t width = edges_[b + 1] - edges_[b];
        return 2 * (edges_[b] + std::size_t((hash >> 32) * width >> 32)) + std::size_t(hash & 1);
    }

    static constexpr T kSigns[2] = {1, -1}; // looked up: a branch on a random sign is mispredicted
    const ScatterPlan<T> plan_;             // a copy, which the sums cannot alias
    std::size_t edges_[kMostCopies + 1];
};

// The targets of all coordinates, each of which goes to one bucket.
template <class T> void tabulate_targets(const ScatterPlan<T> &plan, std::int32_t *table) {
    const Targets<T> targets(plan);
    for (std::size_t j = 0; j < plan.columns; ++j)
        targets.visit(j, [=](std::size_t bucket, T sign) {
            table[j] = std::int32_t(2 * bucket + (sign < 0));
        });
}

template <class T> std::size_t scatter_workspace(const ScatterPlan<T> &plan) {
    return piece_bytes(plan.size * PS_VECTOR_BYTES) + piece_bytes(plan.size * sizeof(T));
}

// The sums of W rows, lane = row, before the sketch's scale.
template <class T>
inline void scatter_lanes(const ScatterPlan<T> &plan, const T *const *rows, Vec<T> *buckets) {
    constexpr std::size_t W = kLanes<T>;
    for (std::size_t k = 0; k < plan.size; ++k)
        buckets[k] = Vec<T>{};
    const Targets<T> targets(plan);
    const auto add = [&](Vec<T> v, std::size_t j) {
        targets.visit(j,
                      [&](std::size_t bucket, T sign) { buckets[bucket] += v * broadcast(sign); });
    };
    std::size_t j = 0;
    for (; j + W <= plan.columns; j += W) {
        Vec<T> v[W];
        load_columns(rows, j, v);
#pragma GCC unroll 16
        for (std::size_t c = 0; c < W; ++c)
            add(v[c], j + c);
    }
    for (; j < plan.columns; ++j)
        add(gather_column(rows, j), j);
}

// The same for one row.
template <class T> inline void scatter_row(const ScatterPlan<T> &plan, const T *row, T *buckets) {
    for (std::size_t k = 0; k < plan.size; ++k)
        buckets[k] = 0;
    const Targets<T> targets(plan);
    for (std::size_t j = 0; j < plan.columns; ++j)
        targets.visit(j, [&](std::size_t bucket, T sign) { buckets[bucket] += row[j] * sign; });
}

template <class T>
void scatter_rows(const ScatterPlan<T> &plan, Rows<const T> input, Rows<T> output, Share share) {
    constexpr std::size_t W = kLanes<T>;
    Arena arena{share.workspace};
    T *spill = arena.take<T>(plan.size);
    Vec<T> *buckets = arena.take<Vec<T>>(plan.size);
    for (std::size_t i = share.begin; i < share.end; i += W) {
        const std::size_t count = share.end - i < W ? share.end - i : W;
        const InputGroup<T> from(input, i, count);
        scatter_lanes(plan, from.rows, buckets);
        const OutputGroup<T> to(output, 0, i, count, spill);
        const Vec<T> scale = broadcast(plan.scale);
        store_lanes<T>([=](std::size_t k) { return buckets[k] * scale; }, to.rows, plan.size);
    }
}

template <class T, class I>
void scatter_sparse_rows(const ScatterPlan<T> &plan, SparseRows<T, I> input, Rows<T> output,
                         Share share) {
    const Targets<T> targets(plan);
    for (std::size_t i = share.begin; i < share.end; ++i) {
        T *target = output.row(i);
        for (std::size_t k = 0; k < plan.size; ++k)
            target[k] = 0;
        const std::int64_t last = input.indptr[i + 1];
        for (std::int64_t e = input.indptr[i]; e < last; ++e) {
            const T value = input.values[e];
            targets.visit(std::size_t(input.columns[e]),
                          [=](std::size_t bucket, T sign) { target[bucket] += value * sign; });
        }
        for (std::size_t k = 0; k < plan.size; ++k)
            target[k] *= plan.scale;
    }
}
