// TensorSketch: circular convolutions of CountSketches of a row, for one row (E = T) or for W rows
// at once, lane = row (E = Vec<T>). Both layouts do the same arithmetic.
// Included once per instruction set (see kernels.hpp).

constexpr int kLargestShift = 60; // of a row's exponent in one step

template <class T> void tabulate_targets(const ScatterPlan<T> &plan, std::int32_t *table) {
    const Targets<T> targets(plan);
    for (std::size_t j = 0; j < plan.columns; ++j)
        targets.visit(j, [=](std::size_t bucket, T sign) {
            table[j] = std::int32_t(2 * bucket + (sign < 0));
        });
}

// Where the rows of a group come from: each source writes the sums of one CountSketch.
template <class T, class E> class DenseSource;

template <class T> class DenseSource<T, T> {
  public:
    DenseSource(Rows<const T> input, std::size_t, std::size_t begin, std::size_t, Arena &)
        : row_(input.row(begin)) {}
    static std::size_t bytes(std::size_t) { return 0; }
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
        return fits_lanes(columns) ? round_up(columns * PS_VECTOR_BYTES) : 0;
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
    SparseSource(SparseRows<T, I> input, std::size_t, std::size_t begin, std::size_t count, Arena &)
        : input_(input), begin_(begin), count_(count) {}
    static std::size_t bytes(std::size_t) { return 0; }
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
    T row_scale[R], row_shift[R], pending[R];
    std::int64_t exponents[R];

    GroupScales(const ChainRows<T> &rows, std::size_t begin, std::size_t count) {
        for (std::size_t r = 0; r < R; ++r) {
            const std::size_t row = begin + (r < count ? r : count - 1);
            row_scale[r] = rows.row_scale[row];
            row_shift[r] = rows.row_shift ? rows.row_shift[row] : T(0);
        }
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
    source.scatter({plan.columns, block.size, 1, table, block.keys[t], T(1)}, leaf);
    // The scales of rows may be extreme, but not their products with rows: those come first.
    const E scale = from_rows<E>(scales.row_scale), shift = from_rows<E>(scales.row_shift);
    const E last = from_rows<E>(scales.pending) * factor;
    const T *direction = block.shifts ? block.shifts + t * block.size : nullptr;
    for (std::size_t k = 0; k < block.size; ++k) {
        const E value = leaf[k] * scale;
        leaf[k] = (direction ? value + shift * direction[k] : value) * last;
    }
}

// The factor that turns a block's numbers into features; false if the features would overflow.
template <class T, class E>
inline bool tensor_factor(const TensorPlan<T> &plan, const TensorBlock<T> &block,
                          const GroupScales<T, E> &scales, const E *values,
                          const double *block_scales, std::size_t count, T (&factor)[kRowsIn<E>]) {
    constexpr double largest = sizeof(T) == 4 ? double(__FLT_MAX__) : __DBL_MAX__;
    constexpr std::int64_t limit = 10000; // beyond it every double is zero or infinite
    const double length = block.degree > 1 ? double(block.size) : 1.0;
    const E squares = sum_of_squares(values, block.size);
    bool representable = true;
    for (std::size_t r = 0; r < kRowsIn<E>; ++r) {
        const std::size_t row = r < count ? r : count - 1;
        const double scale = block_scales[row * plan.block_count];
        const double norm = __builtin_sqrt(double(row_of(squares, r)));
        std::int64_t exponent = scales.exponents[r];
        exponent = exponent > limit ? limit : exponent < -limit ? -limit : exponent;
        double value = 0;
        if (norm > 0)
            value = plan.preserve_norms ? scale / norm
                                        : __builtin_ldexp(scale / length, int(exponent));
        factor[r] = T(value);
        const double size = __builtin_fabs(value);
        representable = representable && size <= largest && size * norm <= largest;
    }
    return representable;
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

template <class T, class E, class Source>
inline bool tensor_group(const TensorPlan<T> &plan, const Source &source, const ChainRows<T> &rows,
                         std::size_t begin, std::size_t count, Arena arena, T *spill) {
    auto *data = arena.take<Complex<E>>(plan.longest_work);
    auto *spectrum = arena.take<Complex<E>>(plan.longest_work);
    E *values = reinterpret_cast<E *>(data);
    GroupScales<T, E> scales(rows, begin, count);
    bool representable = true;
    for (std::size_t b = 0; b < plan.block_count; ++b) {
        const TensorBlock<T> &block = plan.blocks[b];
        tensor_values(plan, block, source, scales, data, spectrum);
        T factor[kRowsIn<E>];
        const double *block_scales = rows.block_scales + begin * plan.block_count + b;
        if (!tensor_factor(plan, block, scales, values, block_scales, count, factor))
            representable = false;
        const OutputBlock output{0, 0, std::int32_t(block.size), std::int32_t(block.offset)};
        store_block(values, factor, output, rows.output, begin, count, spill);
    }
    return representable;
}

template <class T> inline bool tensor_in_lanes(const TensorPlan<T> &plan) {
    return plan.longest_work <= kFftLanes;
}

template <class T> std::size_t tensor_workspace(const TensorPlan<T> &plan) {
    const std::size_t element = tensor_in_lanes(plan) ? PS_VECTOR_BYTES : sizeof(T);
    return 2 * round_up(2 * plan.longest_work * element) +
           round_up(2 * plan.longest_work * sizeof(T)) +
           DenseSource<T, Vec<T>>::bytes(plan.columns);
}

// Source<E> is where the rows of a group come from, be they one or W.
template <class T, template <class> class Source, class Input>
inline bool tensor_groups(const TensorPlan<T> &plan, const Input &input, const ChainRows<T> &rows,
                          std::size_t begin, std::size_t end, char *workspace) {
    Arena arena{workspace};
    T *spill = arena.take<T>(2 * plan.longest_work);
    bool representable = true;
    for (std::size_t i = begin; i < end;) {
        const std::size_t left = end - i < kLanes<T> ? end - i : kLanes<T>;
        const bool lanes = tensor_in_lanes(plan) && worth_lanes<T>(left);
        const std::size_t count = lanes ? left : 1;
        Arena local = arena;
        if (lanes) {
            const Source<Vec<T>> source(input, plan.columns, i, count, local);
            representable &= tensor_group<T, Vec<T>>(plan, source, rows, i, count, local, spill);
        } else {
            const Source<T> source(input, plan.columns, i, count, local);
            representable &= tensor_group<T, T>(plan, source, rows, i, count, local, spill);
        }
        i += count;
    }
    return representable;
}

template <class T> struct DenseSources {
    template <class E> using Of = DenseSource<T, E>;
};
template <class T, class I> struct SparseSources {
    template <class E> using Of = SparseSource<T, I, E>;
};

template <class T>
bool tensor_rows(const TensorPlan<T> &plan, const ChainRows<T> &rows, std::size_t begin,
                 std::size_t end, char *workspace) {
    return tensor_groups<T, DenseSources<T>::template Of>(plan, rows.input, rows, begin, end,
                                                          workspace);
}
template <class T, class I>
bool tensor_sparse_rows(const TensorPlan<T> &plan, SparseRows<T, I> input,
                        const ChainRows<T> &rows, std::size_t begin, std::size_t end,
                        char *workspace) {
    return tensor_groups<T, SparseSources<T, I>::template Of>(plan, input, rows, begin, end,
                                                              workspace);
}
