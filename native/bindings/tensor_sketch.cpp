// Fourier transforms and the TensorSketches made of them, made ready for one dtype.
#include "plans.hpp"

#include <memory>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

namespace powersketch {
namespace {

// Owns the tables of an FftPlan, which routines/fourier_tables.py makes.
template <class T> class FourierTransform {
public:
    FourierTransform(std::size_t length, Vector<std::int32_t> radices, Matrix<T> twiddles,
                     Vector<std::int32_t> positions, Matrix<T> roots)
        : twiddles_(copy_of<T>(twiddles)), roots_(copy_of<T>(roots)),
          positions_(copy_of<std::int32_t>(positions)) {
        require(length >= 1 && length < (std::size_t(1) << 30), "fft: the length is out of range");
        require(twiddles.shape(1) == 2 && roots.shape(1) == 2, "fft: tables hold pairs");
        const bool even = length % 2 == 0;
        const std::size_t count = even ? length / 2 : length;
        require(positions_.size() == count, "fft: one position per frequency is needed");
        require_below(positions_.data(), count, count);
        require(roots_.size() == (even ? 2 * (count / 2 + 1) : 0), "fft: wrong number of roots");
        set_steps(radices, count);
        plan_.length = length;
        plan_.count = count;
        plan_.steps = steps_.data();
        plan_.step_count = steps_.size();
        plan_.positions = positions_.data();
        plan_.roots = roots_.data();
    }
    FourierTransform(const FourierTransform &) = delete; // the plan points into it
    FourierTransform &operator=(const FourierTransform &) = delete;

    const FftPlan<T> &plan() const { return plan_; }

private:
    void set_steps(const Vector<std::int32_t> &radices, std::size_t span) {
        constexpr auto radices_message = "fft: radices are 2 to 5 and multiply to the length";
        std::size_t used = 0;
        for (std::size_t s = 0; s < radices.shape(0); ++s) {
            const std::size_t radix = std::size_t(radices.data()[s]);
            require(radix >= 2 && radix <= kLargestRadix && span % radix == 0, radices_message);
            span /= radix;
            const std::size_t roots = radix % 2 ? radix : 0, twiddles = (span - 1) * (radix - 1);
            require(used + 2 * (roots + twiddles) <= twiddles_.size(), "fft: too few twiddles");
            const T *start = twiddles_.data() + used;
            steps_.push_back({radix, span, start, start + 2 * roots});
            used += 2 * (roots + twiddles);
        }
        require(span == 1 && used == twiddles_.size(), radices_message);
    }

    std::vector<T> twiddles_, roots_;
    std::vector<std::int32_t> positions_;
    std::vector<FftStep<T>> steps_;
    FftPlan<T> plan_{};
};

// Owns the arrays of a TensorPlan. `blocks` has rows (degree, size, offset), `transforms` one
// transform for each of them, or none for degree 1.
template <class T> class TensorSketch {
public:
    using Transform = std::shared_ptr<FourierTransform<T>>;

    TensorSketch(std::size_t columns, Matrix<std::int32_t> blocks,
                 std::vector<Transform> transforms, Vector<std::uint64_t> keys, Vector<T> shifts,
                 bool tabulated, bool preserve_norms)
        : transforms_(std::move(transforms)), keys_(copy_of<std::uint64_t>(keys)),
          shifts_(copy_of<T>(shifts)) {
        require(blocks.shape(1) == 3 && blocks.shape(0) == transforms_.size(),
                "TensorSketch: blocks have 3 columns and one transform each");
        plan_.columns = columns;
        plan_.preserve_norms = preserve_norms;
        for (std::size_t b = 0; b < blocks.shape(0); ++b)
            add_block(blocks.data() + 3 * b, transforms_[b].get());
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
        plan_.block_count = blocks_.size();
    }
    TensorSketch(const TensorSketch &) = delete; // the plan points into it
    TensorSketch &operator=(const TensorSketch &) = delete;

    bool apply(Matrix<T> X, Vector<T> row_scale, Vector<T> row_shift, Matrix<double> block_scales,
               Output<T> out, std::size_t threads) const {
        require(X.shape(1) == plan_.columns, "TensorSketch: wrong shapes");
        require_apart(X, out);
        const auto work =
            checked(X.shape(0), row_scale, row_shift, block_scales, out, rows_of<T>(X));
        const auto &routines = routines_for<T>();
        return all_rows(X.shape(0), threads, routines.tensor_workspace(plan_),
                        [&](Share share) { return routines.tensor(plan_, work, share); });
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
        const auto &routines = sparse_routines_for<T, I>();
        return all_rows(csr.count(), threads, routines_for<T>().tensor_workspace(plan_),
                        [&](Share share) { return routines.tensor(plan_, input, work, share); });
    }

private:
    void add_block(const std::int32_t *row, const FourierTransform<T> *transform) {
        require(row[0] >= 1 && row[1] >= 1 && row[2] >= 0,
                "TensorSketch: a block has a degree, a size and an offset");
        TensorBlock<T> block{};
        block.degree = std::size_t(row[0]);
        block.size = std::size_t(row[1]);
        block.offset = std::size_t(row[2]);
        std::size_t numbers = divided_up(block.size, 2);
        if (block.degree > 1) {
            require(transform != nullptr && transform->plan().length == block.size,
                    "TensorSketch: a block has a transform of its length");
            block.transform = &transform->plan();
            numbers = block.transform->count;
        }
        plan_.longest = std::max(plan_.longest, numbers);
        width_ = std::max(width_, block.offset + block.size);
        blocks_.push_back(block);
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
                tabulate(block, t, tables);
        }
    }

    void tabulate(const TensorBlock<T> &block, std::size_t t, std::int32_t *table) const {
        auto plan = scatter_plan<T>(plan_.columns, block.size, 1, nullptr, 1.0);
        plan.key = block.keys[t];
        routines_for<T>().tabulate(plan, table);
    }

    ChainRows<T> checked(std::size_t rows, const Vector<T> &row_scale, const Vector<T> &row_shift,
                         const Matrix<double> &block_scales, const Output<T> &out,
                         Rows<const T> input) const {
        require(row_scale.shape(0) == rows && row_shift.shape(0) == (shifts_.empty() ? 0 : rows) &&
                    block_scales.shape(0) == rows && block_scales.shape(1) == plan_.block_count &&
                    out.shape(0) == rows && out.shape(1) >= width_,
                "TensorSketch: wrong shapes");
        require_apart(block_scales, out);
        ChainRows<T> work{};
        work.input = input;
        work.row_scale = row_scale.data();
        work.row_shift = shifts_.empty() ? nullptr : row_shift.data();
        work.block_scales = block_scales.data();
        work.output = rows_of<T>(out);
        return work;
    }

    std::vector<Transform> transforms_;
    std::vector<std::uint64_t> keys_;
    std::vector<std::int32_t> tables_;
    std::vector<T> shifts_;
    std::vector<TensorBlock<T>> blocks_;
    TensorPlan<T> plan_{};
    std::size_t width_ = 0;
};

template <class T> void bind_type(nb::module_ &m, const char *fft_name, const char *name) {
    nb::class_<FourierTransform<T>>(m, fft_name)
        .def(nb::init<std::size_t, Vector<std::int32_t>, Matrix<T>, Vector<std::int32_t>,
                      Matrix<T>>(),
             nb::kw_only(), "length"_a, "radices"_a.noconvert(), "twiddles"_a.noconvert(),
             "positions"_a.noconvert(), "roots"_a.noconvert());
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

} // namespace

void bind_tensor_sketch(nb::module_ &m) {
    bind_type<float>(m, "FourierTransform32", "TensorSketch32");
    bind_type<double>(m, "FourierTransform64", "TensorSketch64");
}

} // namespace powersketch
