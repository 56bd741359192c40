// Fourier transforms and TensorSketch as Python sees them.
// Included by bindings.cpp, inside its unnamed namespace.

// Owns the tables of an FftPlan; src/powersketch/native/fourier_tables.py makes them.
template <class T> class FourierTransform {
  public:
    FourierTransform(std::size_t length, Vector<std::int32_t> radices, Matrix<T> twiddles,
                     Vector<std::int32_t> positions, Matrix<T> roots, Matrix<T> chirp,
                     Matrix<T> chirp_spectrum)
        : twiddles_(numbers_of(twiddles)), roots_(numbers_of(roots)), chirp_(numbers_of(chirp)),
          chirp_spectrum_(numbers_of(chirp_spectrum)), positions_(copy_of(positions)) {
        require(length >= 1 && length < (std::size_t(1) << 30), "fft: the length is out of range");
        const bool even = length % 2 == 0;
        const std::size_t count = even ? length / 2 : length;
        const std::size_t work = chirp_.empty() ? count : chirp_spectrum_.size() / 2;
        require(positions_.size() == count, "fft: one position per frequency is needed");
        require_below(positions_.data(), count, count);
        require(roots_.size() == (even ? 2 * (count / 2 + 1) : 0), "fft: wrong number of roots");
        require(chirp_.empty() || (chirp_.size() == 2 * count && work >= 2 * count - 1),
                "fft: the chirp's convolution is too short");
        set_steps(radices, work);
        plan_ = {length,
                 count,
                 work,
                 steps_.data(),
                 steps_.size(),
                 positions_.data(),
                 roots_.data(),
                 chirp_.empty() ? nullptr : chirp_.data(),
                 chirp_spectrum_.data()};
    }
    FourierTransform(const FourierTransform &) = delete;

    const FftPlan<T> &plan() const { return plan_; }

  private:
    static std::vector<T> numbers_of(const Matrix<T> &pairs) {
        require(pairs.shape(1) == 2, "fft: tables hold pairs");
        return std::vector<T>(pairs.data(), pairs.data() + pairs.size());
    }

    void set_steps(const Vector<std::int32_t> &radices, std::size_t span) {
        std::size_t used = 0;
        for (std::size_t s = 0; s < radices.shape(0); ++s) {
            const std::size_t radix = std::size_t(radices.data()[s]);
            require(radix >= 2 && radix <= kLargestRadix &&
                        (radix == 2 || radix == 4 || radix % 2) && span % radix == 0,
                    "fft: radices are 2, 4 or odd, at most 31, and multiply to the length");
            span /= radix;
            const std::size_t roots = radix % 2 ? radix : 0, twiddles = (span - 1) * (radix - 1);
            require(used + 2 * (roots + twiddles) <= twiddles_.size(), "fft: too few twiddles");
            const T *start = twiddles_.data() + used;
            steps_.push_back({radix, span, start, start + 2 * roots});
            used += 2 * (roots + twiddles);
        }
        require(span == 1 && used == twiddles_.size(),
                "fft: radices are 2, 4 or odd, at most 31, and multiply to the length");
    }

    std::vector<T> twiddles_, roots_, chirp_, chirp_spectrum_;
    std::vector<std::int32_t> positions_;
    std::vector<FftStep<T>> steps_;
    FftPlan<T> plan_{};
};

template <class T>
void convolve(Matrix<T> A, Matrix<T> B, const FourierTransform<T> &transform, Output<T> out,
              std::size_t threads) {
    const FftPlan<T> &plan = transform.plan();
    require(A.shape(1) == plan.length && B.shape(1) == plan.length && out.shape(1) == plan.length &&
                B.shape(0) == A.shape(0) && out.shape(0) == A.shape(0),
            "convolve: wrong shapes");
    require_apart(A, out);
    require_apart(B, out);
    const auto &kernels = kernels_for<T>();
    for_rows(A.shape(0), threads, kernels.convolve_workspace(plan),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.convolve(plan, rows_of<T>(A), rows_of<T>(B), rows_of<T>(out), begin, end,
                                  workspace);
             });
}

// Owns the arrays of a TensorPlan. `blocks` has rows (degree, size, offset), `transforms` one
// transform for each of them.
template <class T> class TensorSketch {
  public:
    using Transform = std::shared_ptr<FourierTransform<T>>;

    TensorSketch(std::size_t columns, Matrix<std::int32_t> blocks,
                 std::vector<Transform> transforms, Vector<std::uint64_t> keys, Vector<T> shifts,
                 bool tabulated, bool preserve_norms)
        : transforms_(std::move(transforms)), keys_(copy_of(keys)), shifts_(copy_of(shifts)) {
        require(blocks.shape(1) == 3 && blocks.shape(0) == transforms_.size(),
                "TensorSketch: blocks have 3 columns and one transform each");
        plan_ = {columns, nullptr, blocks.shape(0), 1, preserve_norms};
        for (std::size_t b = 0; b < blocks.shape(0); ++b) {
            require(transforms_[b] != nullptr, "TensorSketch: a block has no transform");
            add_block(blocks.data() + 3 * b, transforms_[b]->plan());
        }
        std::size_t degrees = 0, shift_count = 0;
        for (const TensorBlock<T> &block : blocks_) {
            degrees += block.degree;
            shift_count += block.degree * block.size;
        }
        require(keys_.size() == degrees, "TensorSketch: one key for every CountSketch is needed");
        require(shifts_.empty() || shifts_.size() == shift_count,
                "TensorSketch: shifts must be empty or have the CountSketches' lengths");
        if (tabulated) {
            require(!degrees || columns <= tables_.max_size() / degrees,
                    "TensorSketch: tables for so many columns fit no memory");
            tables_.resize(degrees * columns);
        }
        point_blocks();
        plan_.blocks = blocks_.data();
    }
    TensorSketch(const TensorSketch &) = delete;

    bool apply(Matrix<T> X, Vector<T> row_scale, Vector<T> row_shift, Matrix<double> block_scales,
               Output<T> out, std::size_t threads) const {
        require(X.shape(1) == plan_.columns, "TensorSketch: wrong shapes");
        require_apart(X, out);
        const auto work =
            checked(X.shape(0), row_scale, row_shift, block_scales, out, rows_of<T>(X));
        return run(X.shape(0), threads,
                   [&, &kernel = kernels_for<T>().tensor](std::size_t begin, std::size_t end,
                                                          char *workspace) {
                       return kernel(plan_, work, begin, end, workspace);
                   });
    }

    template <class I>
    bool apply_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                      Vector<T> row_scale, Vector<T> row_shift, Matrix<double> block_scales,
                      Output<T> out, std::size_t threads) const {
        const Csr<T, I> csr{values, columns, indptr};
        const auto input = csr.rows(plan_.columns);
        require_apart(values, out);
        const auto work =
            checked(csr.count(), row_scale, row_shift, block_scales, out, {nullptr, 0});
        return run(csr.count(), threads,
                   [&, &kernel = sparse_kernels_for<T, I>().tensor](
                       std::size_t begin, std::size_t end, char *workspace) {
                       return kernel(plan_, input, work, begin, end, workspace);
                   });
    }

  private:
    void add_block(const std::int32_t *row, const FftPlan<T> &transform) {
        require(row[0] >= 1 && row[1] >= 1 && row[2] >= 0,
                "TensorSketch: a block has a degree, a size and an offset");
        const std::size_t degree = std::size_t(row[0]), size = std::size_t(row[1]);
        const std::size_t offset = std::size_t(row[2]);
        require(size == transform.length, "TensorSketch: a transform has its block's length");
        blocks_.push_back({degree, size, offset, &transform, nullptr, nullptr, nullptr});
        plan_.longest_work = std::max(plan_.longest_work, transform.work);
        width_ = std::max(width_, offset + size);
    }

    // Where every block's part of the arrays starts; targets are hashed once for all rows.
    void point_blocks() {
        const std::uint64_t *keys = keys_.data();
        std::int32_t *tables = tables_.empty() ? nullptr : tables_.data();
        const T *shifts = shifts_.empty() ? nullptr : shifts_.data();
        for (TensorBlock<T> &block : blocks_) {
            block.keys = keys;
            block.tables = tables;
            block.shifts = shifts;
            keys += block.degree;
            if (shifts)
                shifts += block.degree * block.size;
            for (std::size_t t = 0; tables && t < block.degree; ++t, tables += plan_.columns)
                kernels_for<T>().tabulate(
                    {plan_.columns, block.size, 1, nullptr, block.keys[t], T(1)}, tables);
        }
    }

    ChainRows<T> checked(std::size_t rows, const Vector<T> &row_scale, const Vector<T> &row_shift,
                         const Matrix<double> &block_scales, const Output<T> &out,
                         Rows<const T> input) const {
        require(row_scale.shape(0) == rows && row_shift.shape(0) == (shifts_.empty() ? 0 : rows) &&
                    block_scales.shape(0) == rows && block_scales.shape(1) == plan_.block_count &&
                    out.shape(0) == rows && out.shape(1) >= width_,
                "TensorSketch: wrong shapes");
        require_apart(block_scales, out);
        return {input, row_scale.data(), shifts_.empty() ? nullptr : row_shift.data(),
                block_scales.data(), rows_of<T>(out)};
    }

    template <class Body>
    bool run(std::size_t rows, std::size_t threads, const Body &body) const {
        std::atomic<bool> representable{true};
        for_rows(rows, threads, kernels_for<T>().tensor_workspace(plan_),
                 [&](std::size_t begin, std::size_t end, char *workspace) {
                     if (!body(begin, end, workspace))
                         representable = false;
                 });
        return representable;
    }

    std::vector<Transform> transforms_;
    std::vector<std::uint64_t> keys_;
    std::vector<std::int32_t> tables_;
    std::vector<T> shifts_;
    std::vector<TensorBlock<T>> blocks_;
    TensorPlan<T> plan_{};
    std::size_t width_ = 0;
};

template <class T> void bind_tensor_sketch(nb::module_ &m, const char *fft_name, const char *name) {
    nb::class_<FourierTransform<T>>(m, fft_name)
        .def(nb::init<std::size_t, Vector<std::int32_t>, Matrix<T>, Vector<std::int32_t>, Matrix<T>,
                      Matrix<T>, Matrix<T>>(),
             nb::kw_only(), "length"_a, "radices"_a.noconvert(), "twiddles"_a.noconvert(),
             "positions"_a.noconvert(), "roots"_a.noconvert(), "chirp"_a.noconvert(),
             "chirp_spectrum"_a.noconvert());
    m.def("convolve", convolve<T>, "A"_a.noconvert(), "B"_a.noconvert(), "transform"_a,
          "out"_a.noconvert(), "threads"_a);
    nb::class_<TensorSketch<T>> sketch(m, name);
    sketch
        .def(nb::init<std::size_t, Matrix<std::int32_t>,
                      std::vector<std::shared_ptr<FourierTransform<T>>>, Vector<std::uint64_t>,
                      Vector<T>, bool, bool>(),
             nb::kw_only(), "columns"_a, "blocks"_a.noconvert(), "transforms"_a,
             "keys"_a.noconvert(), "shifts"_a.noconvert(), "tabulated"_a, "preserve_norms"_a)
        .def("apply", &TensorSketch<T>::apply, "X"_a.noconvert(), "row_scale"_a.noconvert(),
             "row_shift"_a.noconvert(), "block_scales"_a.noconvert(), "out"_a.noconvert(),
             "threads"_a);
    const auto bind_sparse = [&](auto method) {
        sketch.def("apply_sparse", method, "values"_a.noconvert(), "columns"_a.noconvert(),
                   "indptr"_a.noconvert(), "row_scale"_a.noconvert(), "row_shift"_a.noconvert(),
                   "block_scales"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    };
    bind_sparse(&TensorSketch<T>::template apply_sparse<std::int32_t>);
    bind_sparse(&TensorSketch<T>::template apply_sparse<std::int64_t>);
}
