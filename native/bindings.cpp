// The Python face of the kernels: checks shapes and indices, releases the GIL, shares out rows.
// src/powersketch/_native.pyi is its typed contract.
#include "dispatch.hpp"
#include "thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace powersketch {
namespace {

template <class T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = Array<const T, 1>;
template <class T> using Matrix = Array<const T, 2>;
template <class T> using Output = Array<T, 2>;

void require(bool condition, const char *message) {
    if (!condition)
        throw std::invalid_argument(message);
}

bool is_power_of_two(std::size_t n) { return n && !(n & (n - 1)); }

template <class I> void require_below(const I *values, std::size_t count, std::size_t bound) {
    // A negative index is a huge unsigned one; the largest of all is found without branches.
    std::make_unsigned_t<I> largest = 0;
    for (std::size_t i = 0; i < count; ++i)
        largest = std::max(largest, std::make_unsigned_t<I>(values[i]));
    require(count == 0 || largest < bound, "an index lies outside the array it points into");
}

// Kernels read rows after they have written others, so that `out` may share no byte with them.
template <class A, class B> void require_apart(const A &input, const B &out) {
    const auto *in = reinterpret_cast<const char *>(input.data());
    const auto *to = reinterpret_cast<const char *>(out.data());
    const std::less_equal<const char *> before;
    require(input.size() == 0 || out.size() == 0 || before(in + input.nbytes(), to) ||
                before(to + out.nbytes(), in),
            "out shares memory with an array that is read");
}

template <class T> Rows<const T> rows_of(const Matrix<T> &X) { return {X.data(), X.shape(1)}; }
template <class T> Rows<T> rows_of(const Output<T> &out) { return {out.data(), out.shape(1)}; }

std::size_t divided_up(std::size_t n, std::size_t divisor) { return n / divisor + (n % divisor != 0); }

// Whole groups of lanes on every instruction set and enough rows to outweigh a wake-up, but no
// idle thread where rows are few.
std::size_t chunk_rows(std::size_t rows, std::size_t threads) {
    return std::min(divided_up(rows, threads), std::size_t(32));
}

// body(begin, end, workspace) over all rows, without the GIL.
template <class Body>
void for_rows(std::size_t rows, std::size_t threads, std::size_t workspace_bytes, const Body &body) {
    require(threads > 0, "threads must be at least 1");
    if (rows == 0)
        return;
    nb::gil_scoped_release released;
    threads = std::min(threads, most_threads());
    const std::size_t size = chunk_rows(rows, threads), chunks = divided_up(rows, size);
    threads = std::min(threads, chunks);
    const std::size_t share = divided_up(chunks, threads);
    // Chunks that run at the same time lie far apart: the system hands out memory in large pages,
    // and a thread must wait for a page that another one has just touched first.
    parallel_for(share * threads, threads, [&](std::size_t turn) {
        const std::size_t begin = (turn % threads * share + turn / threads) * size;
        const std::size_t end = begin + size < rows ? begin + size : rows;
        if (begin < end)
            body(begin, end, thread_workspace(workspace_bytes + 64));
    });
}

template <class T, class I> struct Csr {
    Vector<T> values;
    Vector<I> columns;
    Vector<std::int64_t> indptr;

    SparseRows<T, I> rows(std::size_t column_count) const {
        require(indptr.shape(0) > 0 && values.shape(0) == columns.shape(0), "broken CSR arrays");
        const std::int64_t *p = indptr.data();
        for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i)
            require(p[i] <= p[i + 1], "CSR row pointers must not decrease");
        require(p[0] >= 0 && std::size_t(p[indptr.shape(0) - 1]) <= values.shape(0),
                "CSR row pointers exceed the stored entries");
        require_below(columns.data(), columns.shape(0), column_count);
        return {values.data(), columns.data(), p};
    }
    std::size_t count() const { return indptr.shape(0) - 1; }
};

template <class T, class I> const SparseKernels<T, I> &sparse_kernels_for() {
    if constexpr (sizeof(I) == 4)
        return kernels_for<T>().sparse32;
    else
        return kernels_for<T>().sparse64;
}

template <class T> void fwht(Matrix<T> X, Output<T> out, std::size_t threads) {
    const std::size_t padded = out.shape(1);
    require(is_power_of_two(padded) && X.shape(1) <= padded && X.shape(0) == out.shape(0),
            "fwht: out must have as many rows as X and a power of two columns, no fewer than X");
    require_apart(X, out);
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, kernels.transform_workspace(padded),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.transform(X.shape(1), padded, rows_of<T>(X), rows_of<T>(out), begin, end,
                                   workspace);
             });
}

template <class T>
SrhtPlan<T> srht_plan(std::size_t columns, const Vector<T> &signs, const Vector<std::int32_t> &indices,
                      std::size_t padded, double scale) {
    require(is_power_of_two(padded) && columns <= padded && padded <= (std::size_t(1) << 31),
            "srht: padded must be a power of two, at least the columns and at most 2**31");
    require(signs.shape(0) == columns, "srht: one sign per column is needed");
    require_below(indices.data(), indices.shape(0), padded);
    return {columns, padded, indices.shape(0), signs.data(), indices.data(), T(scale)};
}

template <class T>
void srht(Matrix<T> X, Vector<T> signs, Vector<std::int32_t> indices, std::size_t padded,
          double scale, Output<T> out, std::size_t threads) {
    const auto plan = srht_plan<T>(X.shape(1), signs, indices, padded, scale);
    require(out.shape(0) == X.shape(0) && out.shape(1) == plan.size, "srht: wrong shape of out");
    require_apart(X, out);
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, kernels.srht_workspace(plan),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.srht(plan, rows_of<T>(X), rows_of<T>(out), begin, end, workspace);
             });
}

template <class T, class I>
void srht_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                 Vector<T> signs, Vector<std::int32_t> indices, std::size_t padded, double scale,
                 Output<T> out, std::size_t threads) {
    const Csr<T, I> csr{values, columns, indptr};
    const auto plan = srht_plan<T>(signs.shape(0), signs, indices, padded, scale);
    const auto input = csr.rows(plan.columns);
    require(out.shape(0) == csr.count() && out.shape(1) == plan.size, "srht: wrong shape of out");
    require_apart(values, out);
    for_rows(csr.count(), threads, kernels_for<T>().srht_sparse_workspace(plan),
             [&, &kernel = sparse_kernels_for<T, I>().srht](std::size_t begin, std::size_t end,
                                                           char *workspace) {
                 kernel(plan, input, rows_of<T>(out), begin, end, workspace);
             });
}

// Where every block's indices start, and behind the last one how many there are.
std::vector<std::size_t> block_starts(const Vector<std::int32_t> &indices, std::size_t padded,
                                      std::size_t blocks) {
    std::vector<std::size_t> starts{0};
    std::size_t block = 0;
    for (std::size_t k = 0; k < indices.shape(0); ++k) {
        const std::size_t next = std::size_t(indices.data()[k]) / padded;
        require(next >= block, "sorf: the indices must be in the order of their blocks");
        for (; block < next; ++block)
            starts.push_back(k);
    }
    starts.resize(blocks + 1, indices.shape(0));
    return starts;
}

// Owns the starts of a SorfPlan, which lives as long as the arguments of a call.
template <class T> struct SorfCall {
    std::vector<std::size_t> starts;
    SorfPlan<T> plan;

    SorfCall(std::size_t columns, const Array<const T, 3> &diagonals,
             const Vector<std::int32_t> &indices, const Vector<T> &scales) {
        const std::size_t blocks = diagonals.shape(0), padded = diagonals.shape(2);
        require(diagonals.shape(1) == 3 && is_power_of_two(padded) && columns <= padded,
                "sorf: three diagonals per block, a power of two and no shorter than X, are needed");
        require(scales.shape(0) == indices.shape(0), "sorf: one scale per index is needed");
        require_below(indices.data(), indices.shape(0), blocks * padded);
        starts = block_starts(indices, padded, blocks);
        plan = {columns,       padded,        blocks,       diagonals.data(),
                indices.data(), scales.data(), starts.data()};
    }
};

template <class T>
void sorf(Matrix<T> X, Array<const T, 3> diagonals, Vector<std::int32_t> indices, Vector<T> scales,
          Output<T> out, std::size_t threads) {
    const SorfCall<T> call(X.shape(1), diagonals, indices, scales);
    require(out.shape(0) == X.shape(0) && out.shape(1) == indices.shape(0),
            "sorf: wrong shape of out");
    require_apart(X, out);
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, kernels.sorf_workspace(call.plan),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.sorf(call.plan, rows_of<T>(X), rows_of<T>(out), begin, end, workspace);
             });
}

template <class T>
void fourier(Matrix<T> X, Array<const T, 3> diagonals, Vector<std::int32_t> indices,
             Vector<T> scales, double scale, Output<T> out, std::size_t threads) {
    const SorfCall<T> call(X.shape(1), diagonals, indices, scales);
    require(out.shape(0) == X.shape(0) && out.shape(1) == 2 * indices.shape(0),
            "fourier: wrong shape of out");
    require_apart(X, out);
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, kernels.sorf_workspace(call.plan),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.fourier(call.plan, T(scale), rows_of<T>(X), rows_of<T>(out), begin, end,
                                 workspace);
             });
}

template <class T>
PairPlan<T> pair_plan(const Vector<T> &signs_first, const Vector<T> &signs_second,
                      const Vector<std::int32_t> &first, const Vector<std::int32_t> &second) {
    const std::size_t length = signs_first.shape(0);
    require(is_power_of_two(length) && signs_second.shape(0) == length &&
                first.shape(0) == second.shape(0),
            "TensorSRHT: equally many signs (a power of two) and equally many indices are needed");
    require_below(first.data(), first.shape(0), length);
    require_below(second.data(), second.shape(0), length);
    return {length, signs_first.data(), signs_second.data(), first.data(), second.data()};
}

template <class T>
void tensor_srht(Matrix<T> A, Matrix<T> B, Vector<T> signs_first, Vector<T> signs_second,
                 Vector<std::int32_t> first, Vector<std::int32_t> second, double scale,
                 Output<T> out, std::size_t threads) {
    const auto plan = pair_plan<T>(signs_first, signs_second, first, second);
    const std::size_t size = first.shape(0), columns = A.shape(1);
    require(B.shape(0) == A.shape(0) && B.shape(1) == columns && columns <= plan.length &&
                out.shape(0) == A.shape(0) && out.shape(1) == size,
            "tensor_srht: wrong shapes");
    require_apart(A, out);
    require_apart(B, out);
    const auto &kernels = kernels_for<T>();
    for_rows(A.shape(0), threads, kernels.pair_workspace(plan, size),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.pair(plan, columns, size, T(scale), rows_of<T>(A), rows_of<T>(B),
                              rows_of<T>(out), begin, end, workspace);
             });
}

void require_copies(std::size_t sparsity) {
    require(sparsity >= 1 && sparsity <= kMostCopies, "scatter: sparsity must lie between 1 and 64");
}

template <class T>
void scatter(Matrix<T> X, Vector<std::int32_t> table, std::size_t sparsity, double scale,
             Output<T> out, std::size_t threads) {
    require_copies(sparsity);
    const ScatterPlan<T> plan{X.shape(1), out.shape(1), sparsity, table.data(), 0, T(scale)};
    require(table.shape(0) == plan.columns * sparsity && out.shape(0) == X.shape(0),
            "scatter: wrong shape of table or out");
    require_apart(X, out);
    require_below(table.data(), table.shape(0), 2 * plan.size);
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, kernels.scatter_workspace(plan),
             [&](std::size_t begin, std::size_t end, char *workspace) {
                 kernels.scatter(plan, rows_of<T>(X), rows_of<T>(out), begin, end, workspace);
             });
}

template <class T, class I>
void scatter_csr(const ScatterPlan<T> &plan, const Csr<T, I> &csr, const Output<T> &out,
                 std::size_t threads) {
    const auto input = csr.rows(plan.columns);
    require(out.shape(0) == csr.count(), "scatter: wrong shape of out");
    require_apart(csr.values, out);
    for_rows(csr.count(), threads, 0,
             [&, &kernel = sparse_kernels_for<T, I>().scatter](std::size_t begin, std::size_t end,
                                                              char *) {
                 kernel(plan, input, rows_of<T>(out), begin, end);
             });
}

template <class T, class I>
void scatter_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                    Vector<std::int32_t> table, std::size_t sparsity, double scale, Output<T> out,
                    std::size_t threads) {
    require_copies(sparsity);
    require(table.shape(0) % sparsity == 0, "scatter: the table has `sparsity` targets per column");
    const ScatterPlan<T> plan{table.shape(0) / sparsity, out.shape(1), sparsity, table.data(), 0,
                              T(scale)};
    require_below(table.data(), table.shape(0), 2 * plan.size);
    scatter_csr<T, I>(plan, {values, columns, indptr}, out, threads);
}

template <class T, class I>
void scatter_sparse_hashed(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                           std::size_t column_count, std::uint64_t key, std::size_t sparsity,
                           double scale, Output<T> out, std::size_t threads) {
    require_copies(sparsity);
    require(sparsity <= out.shape(1) && out.shape(1) <= (std::size_t(1) << 31),
            "scatter: there must be at least as many outputs as copies, and at most 2**31");
    const ScatterPlan<T> plan{column_count, out.shape(1), sparsity, nullptr, key, T(scale)};
    scatter_csr<T, I>(plan, {values, columns, indptr}, out, threads);
}

template <class T>
void row_moments(Matrix<T> X, Vector<double> direction, Array<double, 1> squares,
                 Array<double, 1> dots, std::size_t threads) {
    require(direction.shape(0) == X.shape(1) && squares.shape(0) == X.shape(0) &&
                dots.shape(0) == X.shape(0),
            "row_moments: wrong shapes");
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, 0, [&](std::size_t begin, std::size_t end, char *) {
        kernels.moments(X.shape(1), rows_of<T>(X), direction.data(), squares.data(), dots.data(),
                        begin, end);
    });
}

template <class T, class I>
void row_moments_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                        Vector<double> direction, Array<double, 1> squares, Array<double, 1> dots,
                        std::size_t threads) {
    const Csr<T, I> csr{values, columns, indptr};
    const auto input = csr.rows(direction.shape(0));
    require(squares.shape(0) == csr.count() && dots.shape(0) == csr.count(),
            "row_moments: wrong shapes");
    for_rows(csr.count(), threads, 0,
             [&, &kernel = sparse_kernels_for<T, I>().moments](std::size_t begin, std::size_t end,
                                                              char *) {
                 kernel(input, direction.data(), squares.data(), dots.data(), begin, end);
             });
}

template <class T> void product(Matrix<T> X, Matrix<T> matrix, Output<T> out, std::size_t threads) {
    require(matrix.shape(0) == X.shape(1) && out.shape(0) == X.shape(0) &&
                out.shape(1) == matrix.shape(1),
            "product: wrong shapes");
    require_apart(X, out);
    require_apart(matrix, out);
    const auto &kernels = kernels_for<T>();
    for_rows(X.shape(0), threads, 0, [&](std::size_t begin, std::size_t end, char *) {
        kernels.product(X.shape(1), out.shape(1), matrix.data(), rows_of<T>(X), rows_of<T>(out),
                        begin, end);
    });
}

template <class T, class I>
void product_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                    Matrix<T> matrix, Output<T> out, std::size_t threads) {
    const Csr<T, I> csr{values, columns, indptr};
    const auto input = csr.rows(matrix.shape(0));
    require(out.shape(0) == csr.count() && out.shape(1) == matrix.shape(1),
            "product: wrong shapes");
    require_apart(values, out);
    require_apart(matrix, out);
    for_rows(csr.count(), threads, 0,
             [&, &kernel = sparse_kernels_for<T, I>().product](std::size_t begin, std::size_t end,
                                                              char *) {
                 kernel(out.shape(1), matrix.data(), input, rows_of<T>(out), begin, end);
             });
}

template <class T>
void gaussian_values(Matrix<double> products, Vector<double> left, Vector<double> right,
                     double gamma, Output<T> out, std::size_t threads) {
    require(left.shape(0) == products.shape(0) && right.shape(0) == products.shape(1) &&
                out.shape(0) == products.shape(0) && out.shape(1) == products.shape(1),
            "gaussian_values: wrong shapes");
    require_apart(products, out);
    const auto &kernels = kernels_for<T>();
    for_rows(products.shape(0), threads, 0, [&](std::size_t begin, std::size_t end, char *) {
        kernels.gaussian(products.shape(1), gamma, rows_of<double>(products), left.data(),
                         right.data(), rows_of<T>(out), begin, end);
    });
}

template <class E> std::vector<E> copy_of(const Vector<E> &array) {
    return std::vector<E>(array.data(), array.data() + array.shape(0));
}

// Owns the arrays of a ChainPlan. `steps` has rows (left, right, target, size), `outputs` has
// rows (source, start, size, offset, after).
template <class T> class PowerChain {
  public:
    PowerChain(std::size_t columns, std::size_t padded, Vector<T> leaf_signs,
               Vector<std::int32_t> leaf_indices, Matrix<std::int32_t> leaf_table, double leaf_scale,
               std::size_t leaf_size, std::size_t leaf_length, Vector<T> leaf_shift, Vector<T> signs_first, Vector<T> signs_second,
               Vector<std::int32_t> first, Vector<std::int32_t> second, Matrix<std::int32_t> steps,
               Matrix<std::int32_t> outputs, std::size_t registers, bool preserve_norms)
        : leaf_signs_(copy_of(leaf_signs)), leaf_shift_(copy_of(leaf_shift)),
          signs_first_(copy_of(signs_first)), signs_second_(copy_of(signs_second)),
          leaf_indices_(copy_of(leaf_indices)),
          leaf_table_(leaf_table.data(), leaf_table.data() + leaf_table.size()), first_(copy_of(first)), second_(copy_of(second)) {
        plan_.pair = pair_plan<T>(signs_first, signs_second, first, second);
        plan_.pair.signs_first = signs_first_.data();
        plan_.pair.signs_second = signs_second_.data();
        plan_.pair.first = first_.data();
        plan_.pair.second = second_.data();
        set_leaf(columns, leaf_length);
        if (leaf_signs.shape(0))
            set_srht(columns, padded, leaf_signs, leaf_indices, leaf_scale);
        else if (leaf_table.shape(0))
            set_scatter(columns, leaf_table, leaf_scale, leaf_size);
        set_program(steps, outputs, registers);
        plan_.preserve_norms = preserve_norms;
    }
    PowerChain(const PowerChain &) = delete; // the plan points into it

    bool apply(Matrix<T> X, Vector<T> row_scale, Vector<T> row_shift, Matrix<double> block_scales,
               Output<T> out, std::size_t threads) const {
        const std::size_t rows = X.shape(0);
        const bool shifted = plan_.leaf_shift != nullptr;
        require(X.shape(1) == plan_.base.columns && row_scale.shape(0) == rows &&
                    row_shift.shape(0) == (shifted ? rows : 0) && block_scales.shape(0) == rows &&
                    block_scales.shape(1) == plan_.output_count && out.shape(0) == rows &&
                    out.shape(1) >= width_,
                "PowerChain: wrong shapes");
        require_apart(X, out);
        require_apart(block_scales, out);
        const ChainRows<T> work{rows_of<T>(X), row_scale.data(), row_shift.data(),
                                block_scales.data(), rows_of<T>(out)};
        const auto &kernels = kernels_for<T>();
        std::atomic<bool> representable{true};
        for_rows(rows, threads, kernels.chain_workspace(plan_),
                 [&](std::size_t begin, std::size_t end, char *workspace) {
                     if (!kernels.chain(plan_, work, begin, end, workspace))
                         representable = false;
                 });
        return representable;
    }

  private:
    void set_leaf(std::size_t columns, std::size_t leaf_length) {
        require(is_power_of_two(leaf_length) && leaf_length <= plan_.pair.length,
                "PowerChain: the leaf's length must be a power of two, at most the pair sketch's");
        const bool identity = leaf_signs_.empty() && leaf_table_.empty();
        require(!identity || columns <= leaf_length,
                "PowerChain: an identity leaf is as long as its input");
        require(leaf_shift_.empty() || leaf_shift_.size() == leaf_length,
                "PowerChain: leaf_shift must be empty or have the leaf's length");
        plan_.leaf = Leaf::identity;
        plan_.leaf_length = leaf_length;
        plan_.base = {columns, leaf_length, leaf_length, nullptr, nullptr, T(1)};
        plan_.leaf_shift = leaf_shift_.empty() ? nullptr : leaf_shift_.data();
    }

    void set_srht(std::size_t columns, std::size_t padded, const Vector<T> &signs,
                  const Vector<std::int32_t> &indices, double scale) {
        plan_.leaf = Leaf::srht;
        plan_.base = srht_plan<T>(columns, signs, indices, padded, scale);
        plan_.base.signs = leaf_signs_.data();
        plan_.base.indices = leaf_indices_.data();
        require(plan_.base.size == plan_.leaf_length,
                "PowerChain: the leaf samples leaf_length rows");
    }

    void set_scatter(std::size_t columns, const Matrix<std::int32_t> &table, double scale,
                     std::size_t size) {
        const std::size_t copies = table.shape(1);
        require_copies(copies);
        require(table.shape(0) == columns && size >= 1 && size <= plan_.leaf_length,
                "PowerChain: the leaf's table has one row per column and at most leaf_length buckets");
        require_below(leaf_table_.data(), leaf_table_.size(), 2 * size);
        plan_.leaf = Leaf::scatter;
        plan_.buckets = {columns, size, copies, leaf_table_.data(), 0, T(scale)};
    }

    void set_program(const Matrix<std::int32_t> &steps, const Matrix<std::int32_t> &outputs,
                     std::size_t registers) {
        require(steps.shape(1) == 4 && outputs.shape(1) == 5 && registers >= 1 && registers <= 64,
                "PowerChain: steps have 4 columns, outputs 5, registers number 1 to 64");
        // How much of every register is filled, step by step: nothing else may be read.
        std::vector<std::size_t> filled(registers, 0);
        filled[0] = plan_.leaf_length;
        std::size_t block = 0;
        for (std::size_t s = 0; s <= steps.shape(0); ++s) {
            if (s > 0)
                add_step(steps.data() + 4 * (s - 1), filled);
            for (; block < outputs.shape(0) && outputs.data()[5 * block + 4] == std::int32_t(s); ++block)
                add_output(outputs.data() + 5 * block, filled);
        }
        require(block == outputs.shape(0),
                "PowerChain: an output block lies outside its register or out of order");
        plan_.steps = steps_.data();
        plan_.step_count = steps_.size();
        plan_.outputs = outputs_.data();
        plan_.output_after = after_.data();
        plan_.output_count = outputs_.size();
        plan_.register_count = registers;
    }

    void add_step(const std::int32_t *row, std::vector<std::size_t> &filled) {
        for (int c = 0; c < 3; ++c)
            require(row[c] >= 0 && std::size_t(row[c]) < filled.size(),
                    "PowerChain: a step names no register");
        for (int c = 0; c < 2; ++c)
            require(filled[row[c]] == (is_leaf(row[c]) ? plan_.leaf_length : plan_.pair.length),
                    "PowerChain: a step reads a register that is not filled");
        require(row[3] >= 1 && std::size_t(row[3]) <= std::min(first_.size(), plan_.pair.length),
                "PowerChain: a step asks for more rows than the pair sketch has");
        filled[row[2]] = std::size_t(row[3]);
        if (row[2] == 0)
            leaf_overwritten_ = true;
        steps_.push_back({row[0], row[1], row[2], row[3]});
    }

    void add_output(const std::int32_t *row, const std::vector<std::size_t> &filled) {
        require(row[0] >= 0 && std::size_t(row[0]) < filled.size() && row[1] >= 0 && row[2] >= 1 &&
                    row[3] >= 0 && std::size_t(row[1]) + std::size_t(row[2]) <= filled[row[0]],
                "PowerChain: an output block lies outside its register or out of order");
        outputs_.push_back({row[0], row[1], row[2], row[3]});
        after_.push_back(row[4]);
        width_ = std::max(width_, std::size_t(row[3]) + std::size_t(row[2]));
    }

    bool is_leaf(std::int32_t which) const { return which == 0 && !leaf_overwritten_; }

    bool leaf_overwritten_ = false;
    ChainPlan<T> plan_{};
    std::vector<T> leaf_signs_, leaf_shift_, signs_first_, signs_second_;
    std::vector<std::int32_t> leaf_indices_, leaf_table_, first_, second_, after_;
    std::vector<PairStep> steps_;
    std::vector<OutputBlock> outputs_;
    std::size_t width_ = 0;
};

#include "sparse_structure.hpp"
#include "tensor_sketch_binding.hpp"

template <class T> void bind_dense(nb::module_ &m, const char *chain_name) {
    m.def("fwht", fwht<T>, "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def("srht", srht<T>, "X"_a.noconvert(), "signs"_a.noconvert(), "indices"_a.noconvert(),
          "padded"_a, "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("sorf", sorf<T>, "X"_a.noconvert(), "diagonals"_a.noconvert(), "indices"_a.noconvert(),
          "scales"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def("fourier", fourier<T>, "X"_a.noconvert(), "diagonals"_a.noconvert(),
          "indices"_a.noconvert(), "scales"_a.noconvert(), "scale"_a, "out"_a.noconvert(),
          "threads"_a);
    m.def("tensor_srht", tensor_srht<T>, "A"_a.noconvert(), "B"_a.noconvert(),
          "signs_first"_a.noconvert(), "signs_second"_a.noconvert(), "first"_a.noconvert(),
          "second"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("scatter", scatter<T>, "X"_a.noconvert(), "table"_a.noconvert(), "sparsity"_a, "scale"_a,
          "out"_a.noconvert(), "threads"_a);
    m.def("row_moments", row_moments<T>, "X"_a.noconvert(), "direction"_a.noconvert(),
          "squares"_a.noconvert(), "dots"_a.noconvert(), "threads"_a);
    m.def("product", product<T>, "X"_a.noconvert(), "matrix"_a.noconvert(), "out"_a.noconvert(),
          "threads"_a);
    m.def("gaussian_values", gaussian_values<T>, "products"_a.noconvert(), "left"_a.noconvert(),
          "right"_a.noconvert(), "gamma"_a, "out"_a.noconvert(), "threads"_a);
    nb::class_<PowerChain<T>>(m, chain_name)
        .def(nb::init<std::size_t, std::size_t, Vector<T>, Vector<std::int32_t>,
                      Matrix<std::int32_t>, double, std::size_t, std::size_t, Vector<T>, Vector<T>, Vector<T>, Vector<std::int32_t>,
                      Vector<std::int32_t>, Matrix<std::int32_t>, Matrix<std::int32_t>, std::size_t,
                      bool>(),
             nb::kw_only(), "columns"_a, "padded"_a, "leaf_signs"_a.noconvert(),
             "leaf_indices"_a.noconvert(), "leaf_table"_a.noconvert(), "leaf_scale"_a,
             "leaf_size"_a, "leaf_length"_a,
             "leaf_shift"_a.noconvert(), "signs_first"_a.noconvert(),
             "signs_second"_a.noconvert(), "first"_a.noconvert(), "second"_a.noconvert(),
             "steps"_a.noconvert(), "outputs"_a.noconvert(), "registers"_a, "preserve_norms"_a)
        .def("apply", &PowerChain<T>::apply, "X"_a.noconvert(), "row_scale"_a.noconvert(),
             "row_shift"_a.noconvert(), "block_scales"_a.noconvert(), "out"_a.noconvert(),
             "threads"_a);
}

template <class T, class I> void bind_sparse(nb::module_ &m) {
    m.def("srht_sparse", srht_sparse<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "indptr"_a.noconvert(), "signs"_a.noconvert(), "indices"_a.noconvert(), "padded"_a,
          "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("scatter_sparse", scatter_sparse<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "indptr"_a.noconvert(), "table"_a.noconvert(), "sparsity"_a, "scale"_a,
          "out"_a.noconvert(), "threads"_a);
    m.def("scatter_sparse_hashed", scatter_sparse_hashed<T, I>, "values"_a.noconvert(),
          "columns"_a.noconvert(), "indptr"_a.noconvert(), "column_count"_a, "key"_a, "sparsity"_a,
          "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("row_moments_sparse", row_moments_sparse<T, I>, "values"_a.noconvert(),
          "columns"_a.noconvert(), "indptr"_a.noconvert(), "direction"_a.noconvert(),
          "squares"_a.noconvert(), "dots"_a.noconvert(), "threads"_a);
    m.def("product_sparse", product_sparse<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "indptr"_a.noconvert(), "matrix"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

// Additions per second of the instruction set in use, on one core, without touching memory.
double add_peak() {
    float sink[64] = {};
    const auto start = std::chrono::steady_clock::now();
    const double additions = instruction_set().add_peak(std::size_t(1) << 22, sink);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return additions / elapsed.count();
}

} // namespace
} // namespace powersketch

NB_MODULE(_native, m) {
    using namespace powersketch;
    m.def("instruction_sets", available_instruction_sets);
    m.def("instruction_set", [] { return std::string(instruction_set().name); });
    m.def("select_instruction_set", select_instruction_set, "name"_a);
    m.def("add_peak", add_peak);
    m.def("row_structure", row_structure<std::int32_t>, "indptr"_a.noconvert(),
          "indices"_a.noconvert(), "bound"_a);
    m.def("row_structure", row_structure<std::int64_t>, "indptr"_a.noconvert(),
          "indices"_a.noconvert(), "bound"_a);
    bind_dense<float>(m, "PowerChain32");
    bind_dense<double>(m, "PowerChain64");
    bind_tensor_sketch<float>(m, "FourierTransform32", "TensorSketch32");
    bind_tensor_sketch<double>(m, "FourierTransform64", "TensorSketch64");
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
}
