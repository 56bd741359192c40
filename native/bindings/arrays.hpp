// What all bindings share: arrays as they come from Python, checks, and rows shared out to threads.
#pragma once
#include "../dispatch.hpp"
#include "../thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace powersketch {

template <class T, int dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <class T> using Vector = Array<const T, 1>;
template <class T> using Matrix = Array<const T, 2>;
template <class T> using Output = Array<T, 2>;

inline void require(bool condition, const char *message) {
    if (!condition)
        throw std::invalid_argument(message);
}

inline bool is_power_of_two(std::size_t n) { return n && !(n & (n - 1)); }

template <class I> void require_below(const I *values, std::size_t count, std::size_t bound) {
    // A negative index is a huge unsigned one; the largest of all is found without branches.
    std::make_unsigned_t<I> largest = 0;
    for (std::size_t i = 0; i < count; ++i)
        largest = std::max(largest, std::make_unsigned_t<I>(values[i]));
    require(count == 0 || largest < bound, "an index lies outside the array it points into");
}

// Routines read rows after they have written others, so that `out` may share no byte with them.
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

template <class E, class A> std::vector<E> copy_of(const A &array) {
    return std::vector<E>(array.data(), array.data() + array.size());
}

inline std::size_t divided_up(std::size_t n, std::size_t divisor) {
    return n / divisor + (n % divisor != 0);
}

// Whole groups of lanes on every instruction set and enough rows to outweigh a wake-up, but no
// idle thread where rows are few.
inline std::size_t chunk_rows(std::size_t rows, std::size_t threads) {
    return std::min(divided_up(rows, threads), std::size_t(32));
}

// Calls body(share) for shares that cover all rows, without the GIL.
template <class Body>
void for_rows(std::size_t rows, std::size_t threads, std::size_t workspace_bytes,
              const Body &body) {
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
            body(Share{begin, end, thread_workspace(workspace_bytes + 64)});
    });
}

// The same for a body that says whether all features are representable.
template <class Body>
bool all_rows(std::size_t rows, std::size_t threads, std::size_t workspace_bytes,
              const Body &body) {
    std::atomic<bool> representable{true};
    for_rows(rows, threads, workspace_bytes, [&](Share share) {
        if (!body(share))
            representable = false;
    });
    return representable;
}

// Compressed sparse rows.
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

template <class T, class I> const SparseRoutines<T, I> &sparse_routines_for() {
    if constexpr (sizeof(I) == 4)
        return routines_for<T>().sparse32;
    else
        return routines_for<T>().sparse64;
}

// bind(value, index) for all types of the values and of the column indices of sparse rows.
template <class Bind> void for_sparse_types(const Bind &bind) {
    bind(float{}, std::int32_t{});
    bind(float{}, std::int64_t{});
    bind(double{}, std::int32_t{});
    bind(double{}, std::int64_t{});
}

// Each file binds its family of functions and classes.
void bind_transforms(nb::module_ &m);
void bind_sums(nb::module_ &m);
void bind_chain(nb::module_ &m);
void bind_tensor_sketch(nb::module_ &m);
void bind_row_structure(nb::module_ &m);

} // namespace powersketch
