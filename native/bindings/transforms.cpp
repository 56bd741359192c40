// Hadamard transforms, and the sketches and projections made of them.
#include "plans.hpp"

namespace powersketch {
namespace {

template <class T> void fwht(Matrix<T> X, Output<T> out, std::size_t threads) {
    const TransformPlan plan{X.shape(1), out.shape(1)};
    require(is_power_of_two(plan.padded) && plan.columns <= plan.padded &&
                X.shape(0) == out.shape(0),
            "fwht: out must have as many rows as X and a power of two columns, no fewer than X");
    require_apart(X, out);
    const auto &routines = routines_for<T>();
    for_rows(X.shape(0), threads, routines.transform_workspace(plan),
             [&](Share share) { routines.transform(plan, rows_of<T>(X), rows_of<T>(out), share); });
}

template <class T>
void srht(Matrix<T> X, Vector<T> signs, Vector<std::int32_t> indices, std::size_t padded,
          double scale, Output<T> out, std::size_t threads) {
    auto plan = srht_plan<T>(X.shape(1), signs.shape(0), padded, indices, scale);
    plan.signs = signs.data();
    require(out.shape(0) == X.shape(0) && out.shape(1) == plan.size, "srht: wrong shape of out");
    require_apart(X, out);
    const auto &routines = routines_for<T>();
    for_rows(X.shape(0), threads, routines.srht_workspace(plan),
             [&](Share share) { routines.srht(plan, rows_of<T>(X), rows_of<T>(out), share); });
}

template <class T, class I>
void srht_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr, Vector<T> signs,
                 Vector<std::int32_t> indices, std::size_t padded, double scale, Output<T> out,
                 std::size_t threads) {
    const Csr<T, I> csr{values, columns, indptr};
    auto plan = srht_plan<T>(signs.shape(0), signs.shape(0), padded, indices, scale);
    plan.signs = signs.data();
    const auto input = csr.rows(plan.columns);
    require(out.shape(0) == csr.count() && out.shape(1) == plan.size, "srht: wrong shape of out");
    require_apart(values, out);
    const auto &routines = sparse_routines_for<T, I>();
    for_rows(csr.count(), threads, routines_for<T>().srht_sparse_workspace(plan),
             [&](Share share) { routines.srht(plan, input, rows_of<T>(out), share); });
}

template <class T>
void tensor_srht(Matrix<T> A, Matrix<T> B, Vector<T> signs_first, Vector<T> signs_second,
                 Vector<std::int32_t> first, Vector<std::int32_t> second, double scale,
                 Output<T> out, std::size_t threads) {
    PairRowsPlan<T> plan{};
    plan.pair = pair_plan<T>(signs_first.shape(0), signs_second.shape(0), first, second);
    plan.pair.signs_first = signs_first.data();
    plan.pair.signs_second = signs_second.data();
    plan.columns = A.shape(1);
    plan.size = first.shape(0);
    plan.scale = T(scale);
    require(B.shape(0) == A.shape(0) && B.shape(1) == plan.columns &&
                plan.columns <= plan.pair.length && out.shape(0) == A.shape(0) &&
                out.shape(1) == plan.size,
            "tensor_srht: wrong shapes");
    require_apart(A, out);
    require_apart(B, out);
    const auto &routines = routines_for<T>();
    for_rows(A.shape(0), threads, routines.pair_workspace(plan), [&](Share share) {
        routines.pair(plan, rows_of<T>(A), rows_of<T>(B), rows_of<T>(out), share);
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

// One call of a projection; `outputs` is how many each of its coordinates has.
template <class T, class Select>
void project(const Matrix<T> &X, const Array<const T, 3> &diagonals,
             const Vector<std::int32_t> &indices, const Vector<T> &scales, double feature_scale,
             std::size_t outputs, const Output<T> &out, std::size_t threads, Select select) {
    SorfPlan<T> plan{};
    plan.columns = X.shape(1);
    plan.padded = diagonals.shape(2);
    plan.blocks = diagonals.shape(0);
    require(diagonals.shape(1) == 3 && is_power_of_two(plan.padded) && plan.columns <= plan.padded,
            "sorf: three diagonals per block, a power of two and no shorter than X, are needed");
    require(scales.shape(0) == indices.shape(0), "sorf: one scale per index is needed");
    require_below(indices.data(), indices.shape(0), plan.blocks * plan.padded);
    const auto starts = block_starts(indices, plan.padded, plan.blocks);
    plan.diagonals = diagonals.data();
    plan.indices = indices.data();
    plan.scales = scales.data();
    plan.starts = starts.data();
    plan.feature_scale = T(feature_scale);
    require(out.shape(0) == X.shape(0) && out.shape(1) == outputs * indices.shape(0),
            "sorf: wrong shape of out");
    require_apart(X, out);
    const auto &routines = routines_for<T>();
    for_rows(X.shape(0), threads, routines.sorf_workspace(plan),
             [&](Share share) { (routines.*select)(plan, rows_of<T>(X), rows_of<T>(out), share); });
}

template <class T>
void sorf(Matrix<T> X, Array<const T, 3> diagonals, Vector<std::int32_t> indices, Vector<T> scales,
          Output<T> out, std::size_t threads) {
    project(X, diagonals, indices, scales, 1.0, 1, out, threads, &Routines<T>::sorf);
}

template <class T>
void fourier(Matrix<T> X, Array<const T, 3> diagonals, Vector<std::int32_t> indices,
             Vector<T> scales, double scale, Output<T> out, std::size_t threads) {
    project(X, diagonals, indices, scales, scale, 2, out, threads, &Routines<T>::fourier);
}

template <class T> void bind_dense(nb::module_ &m) {
    m.def("fwht", fwht<T>, "X"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def("srht", srht<T>, "X"_a.noconvert(), "signs"_a.noconvert(), "indices"_a.noconvert(),
          "padded"_a, "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("tensor_srht", tensor_srht<T>, "A"_a.noconvert(), "B"_a.noconvert(),
          "signs_first"_a.noconvert(), "signs_second"_a.noconvert(), "first"_a.noconvert(),
          "second"_a.noconvert(), "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("sorf", sorf<T>, "X"_a.noconvert(), "diagonals"_a.noconvert(), "indices"_a.noconvert(),
          "scales"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def("fourier", fourier<T>, "X"_a.noconvert(), "diagonals"_a.noconvert(),
          "indices"_a.noconvert(), "scales"_a.noconvert(), "scale"_a, "out"_a.noconvert(),
          "threads"_a);
}

template <class T, class I> void bind_sparse(nb::module_ &m) {
    m.def("srht_sparse", srht_sparse<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "indptr"_a.noconvert(), "signs"_a.noconvert(), "indices"_a.noconvert(), "padded"_a,
          "scale"_a, "out"_a.noconvert(), "threads"_a);
}

} // namespace

void bind_transforms(nb::module_ &m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    for_sparse_types(
        [&](auto value, auto index) { bind_sparse<decltype(value), decltype(index)>(m); });
}

} // namespace powersketch
