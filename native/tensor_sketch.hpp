// TensorSketch: circular convolutions of CountSketches of a row, for one row (E = T) or for W rows
// at once, lane = row (E = Vec<T>). Both layouts do the same arithmetic.
// Included once per instruction set (see routines.hpp).

constexpr int kLargestShift = 60; // of a row's exponent in one step

constexpr std::size_t kFftLanes = 65536; // longer rows, W at a time, would take too much memory

// Where the rows of a group come from: each source writes the sums of one CountSketch.
template <class T, class E> class DenseSource;

template <class T> class DenseSource<T, T> {
public:
    DenseSource(Rows<const T> input, std::size_t, std::size_t begin, std::size_t, Arena &)
        : row_(input.row(begin)) {}
    void scatter(const ScatterPlan<T> &plan, T *buckets) const { scatter_row(plan, row_, buckets); }

private:
    const T *row_;
};

// Rows are brought into lanes once for all factors, where they are short enough for that.
template <class T> class DenseSource<T, Vec<T>> {
public:
    DenseSource(Rows<const T> input, std::size_t columns, std::size_t begin, std::size_t count,
                Arena &arena)
        : group_(input, begin, count), lanes_(nullptr) {
        if (!fits_lanes(columns))
            return;
        lanes_ = arena.take<Vec<T>>(columns);
        load_lanes<false>(group_.rows, columns, Unchanged<T>{}, lanes_, columns);
    }
    static std::size_t bytes(std::size_t columns) {
        return fits_lanes(columns) ? piece_bytes(columns * PS_VECTOR_BYTES) : 0;
    }
    void scatter(const ScatterPlan<T> &plan, Vec<T> *buckets) const {
        if (!lanes_)
            return scatter_lanes(plan, group_.rows, buckets);
        for (std::size_t k = 0; k < plan.size; ++k)
            buckets[k] = Vec<T>{};
        const Targets<T> targets(plan);
        for (std::size_t j = 0; j < plan.columns; ++j)
            targets.visit(j, [&](std::size_t bucket, T sign) {
                buckets[bucket] += lanes_[j] * broadcast(sign);
            });
    }

private:
    const InputGroup<T> group_;
    Vec<T> *lanes_;
};

template <class T, class I, class E> class SparseSource {
public:
    SparseSource(SparseRows<T, I> input, std::size_t begin, std::size_t count)
        : input_(input), begin_(begin), count_(count) {}
    void scatter(const ScatterPlan<T> &plan, E *buckets) const {
        constexpr std::size_t R = kRowsIn<E>;
        T *sums = reinterpret_cast<T *>(buckets);
        for (std::size_t k = 0; k < plan.size * R; ++k)
            sums[k] = 0;
        const Targets<T> targets(plan);
        for (std::size_t r = 0; r < count_; ++r, ++sums)
            for (auto e = input_.indptr[begin_ + r]; e < input_.indptr[begin_ + r + 1]; ++e) {
                const T value = input_.values[e];
                targets.visit(std::size_t(input_.columns[e]), [=](std::size_t bucket, T sign) {
                    sums[bucket * R] += value * sign;
                });
            }
    }

private:
    const SparseRows<T, I> input_;
    const std::size_t begin_, count_;
};

// What the rows of a group are multiplied by, and the exponents of two that were taken out of
// their products so far: with degrees in the hundreds they would leave the range of any type.
template <class T, class E> struct GroupScales {
    static constexpr std::size_t R = kRowsIn<E>;
    E row_scale, row_shift;
    T pending[R];
    std::int64_t exponents[R];

    GroupScales(const ChainRows<T> &rows, std::size_t begin, std::size_t count)
        : row_scale(from_rows<E>(rows.row_scale, begin, count)), row_shift{} {
        if (rows.row_shift)
            row_shift = from_rows<E>(rows.row_shift, begin, count);
    }
    void restart() {
        for (std::size_t r = 0; r < R; ++r) {
            pending[r] = T(1);
            exponents[r] = 0;
        }
    }
    // Takes the exponent of the largest number out of every row, from the next factor on.
    void balance(E largest) {
        for (std::size_t r = 0; r < R; ++r) {
            int shift = 0;
            const double size = double(row_of(largest, r));
            if (size <= __DBL_MAX__)
                __builtin_frexp(size, &shift);
            shift = shift > kLargestShift ? kLargestShift : shift;
            shift = shift < -kLargestShift ? -kLargestShift : shift;
            exponents[r] += shift;
            pending[r] = T(__builtin_ldexp(1.0, -shift));
        }
    }
};

// C_t(row_scale x + row_shift direction), times `factor` and what is pending.
template <class T, class E, class Source>
inline void tensor_leaf(const TensorPlan<T> &plan, const TensorBlock<T> &block, std::size_t t,
                        const Source &source, const GroupScales<T, E> &scales, T factor, E *leaf) {
    const std::int32_t *table = block.tables ? block.tables + t * plan.columns : nullptr;
    ScatterPlan<T> scatter{};
    scatter.columns = plan.columns;
    scatter.size = block.size;
    scatter.sparsity = 1;
    scatter.table = table;
    scatter.key = block.keys[t];
    scatter.scale = T(1);
    source.scatter(scatter, leaf);
    // The scales of rows may be extreme, but not their products with rows: those come first.
    const E scale = scales.row_scale, shift = scales.row_shift;
    const E last = from_rows<E>(scales.pending) * factor;
    const T *direction = block.shifts ? block.shifts + t * block.size : nullptr;
    for (std::size_t k = 0; k < block.size; ++k) {
        const E value = leaf[k] * scale;
        leaf[k] = (direction ? value + shift * direction[k] : value) * last;
    }
}

// IFFT(prod_t FFT(C_t u)) of a group, at the start of `data`, `size` times as large.
template <class T, class E, class Source>
inline void tensor_values(const TensorPlan<T> &plan, const TensorBlock<T> &block,
                          const Source &source, GroupScales<T, E> &scales, Complex<E> *data,
                          Complex<E> *spectrum) {
    E *leaf = reinterpret_cast<E *>(data);
    scales.restart();
    if (block.degree == 1)
        return tensor_leaf(plan, block, 0, source, scales, T(1), leaf);
    const FftPlan<T> &fft = *block.transform;
    const T half = fft.length % 2 ? T(1) : T(0.5);
    for (std::size_t t = 0; t < block.degree; ++t) {
        tensor_leaf(plan, block, t, source, scales, half, leaf);
        scales.balance(t == 0 ? multiply_spectrum<true>(fft, data, spectrum)
                              : multiply_spectrum<false>(fft, data, spectrum));
    }
    rows_of_spectrum(fft, spectrum, from_rows<E>(scales.pending), data);
}

// Writes a block of a group's features; false if some of them overflow.
template <class T, class E>
inline bool write_block(const TensorPlan<T> &plan, const ChainRows<T> &rows, std::size_t number,
                        const GroupScales<T, E> &scales, const E *values, std::size_t begin,
                        std::size_t count, T *spill) {
    const TensorBlock<T> &block = plan.blocks[number];
    const double length = block.degree > 1 ? double(block.size) : 1.0;
    T factor[kRowsIn<E>];
    const bool representable = feature_factors(
        values, block.size, rows.block_scales + begin * plan.block_count + number, plan.block_count,
        count,
        [&](double scale, double norm, std::size_t r) {
            constexpr std::int64_t limit = 10000; // beyond it every double is zero or infinite
            std::int64_t exponent = scales.exponents[r];
            exponent = exponent > limit ? limit : exponent < -limit ? -limit : exponent;
            return plan.preserve_norms ? scale / norm
                                       : __builtin_ldexp(scale / length, int(exponent));
        },
        factor);
    store_scaled(values, factor, block.size, rows.output, block.offset, begin, count, spill);
    return representable;
}

template <class T> inline bool tensor_in_lanes(const TensorPlan<T> &plan) {
    return plan.longest <= kFftLanes;
}

template <class T> std::size_t tensor_workspace(const TensorPlan<T> &plan) {
    const std::size_t element = tensor_in_lanes(plan) ? PS_VECTOR_BYTES : sizeof(T);
    return 2 * piece_bytes(2 * plan.longest * element) + piece_bytes(2 * plan.longest * sizeof(T)) +
           DenseSource<T, Vec<T>>::bytes(plan.columns);
}

// make_source(In<E>, begin, count, arena) says where the rows of a group come from.
template <class T, class MakeSource>
inline bool tensor_groups(const TensorPlan<T> &plan, const ChainRows<T> &rows, Share share,
                          const MakeSource &make_source) {
    Arena arena{share.workspace};
    T *spill = arena.take<T>(2 * plan.longest);
    bool representable = true;
    for_groups<T>(tensor_in_lanes(plan), share, [&](auto in, std::size_t begin, std::size_t count) {
        using E = typename decltype(in)::Element;
        Arena local = arena;
        const auto source = make_source(in, begin, count, local);
        auto *data = local.take<Complex<E>>(plan.longest);
        auto *spectrum = local.take<Complex<E>>(plan.longest);
        GroupScales<T, E> scales(rows, begin, count);
        for (std::size_t b = 0; b < plan.block_count; ++b) {
            tensor_values(plan, plan.blocks[b], source, scales, data, spectrum);
            representable &= write_block(plan, rows, b, scales, reinterpret_cast<const E *>(data),
                                         begin, count, spill);
        }
    });
    return representable;
}

template <class T>
bool tensor_rows(const TensorPlan<T> &plan, const ChainRows<T> &rows, Share share) {
    return tensor_groups(
        plan, rows, share, [&](auto in, std::size_t begin, std::size_t count, Arena &arena) {
            using E = typename decltype(in)::Element;
            return DenseSource<T, E>(rows.input, plan.columns, begin, count, arena);
        });
}
template <class T, class I>
bool tensor_sparse_rows(const TensorPlan<T> &plan, SparseRows<T, I> input, const ChainRows<T> &rows,
                        Share share) {
    return tensor_groups(plan, rows, share,
                         [&](auto in, std::size_t begin, std::size_t count, Arena &) {
                             using E = typename decltype(in)::Element;
                             return SparseSource<T, I, E>(input, begin, count);
                         });
}
