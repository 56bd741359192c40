// Sums over the coordinates of rows: CountSketch and OSNAP, norms, products, Gaussian kernels; and
// over rows: products with their transpose.
#include "plans.hpp"

namespace powersketch {
namespace {

template <class T>
void scatter(Matrix<T> X, Vector<std::int32_t> table, std::size_t sparsity, double scale,
             Output<T> out, std::size_t threads) {
    require(table.shape(0) == X.shape(1) * sparsity && out.shape(0) == X.shape(0),
            "scatter: wrong shape of table or out");
    const auto plan = scatter_plan<T>(X.shape(1), out.shape(1), sparsity, table.data(), scale);
    require_apart(X, out);
    const auto &routines = routines_for<T>();
    for_rows(X.shape(0), threads, routines.scatter_workspace(plan),
             [&](Share share) { routines.scatter(plan, rows_of<T>(X), rows_of<T>(out), share); });
}

template <class T, class I>
void scatter_csr(const ScatterPlan<T> &plan, const Csr<T, I> &csr, const Output<T> &out,
                 std::size_t threads) {
    const auto input = csr.rows(plan.columns);
    require(out.shape(0) == csr.count(), "scatter: wrong shape of out");
    require_apart(csr.values, out);
    const auto &routines = sparse_routines_for<T, I>();
    for_rows(csr.count(), threads, 0,
             [&](Share share) { routines.scatter(plan, input, rows_of<T>(out), share); });
}

template <class T, class I>
void scatter_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                    Vector<std::int32_t> table, std::size_t sparsity, double scale, Output<T> out,
                    std::size_t threads) {
    require(sparsity > 0 && table.shape(0) % sparsity == 0,
            "scatter: the table has `sparsity` targets per column");
    const auto plan =
        scatter_plan<T>(table.shape(0) / sparsity, out.shape(1), sparsity, table.data(), scale);
    scatter_csr<T, I>(plan, {values, columns, indptr}, out, threads);
}

template <class T, class I>
void scatter_sparse_hashed(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                           std::size_t column_count, std::uint64_t key, std::size_t sparsity,
                           double scale, Output<T> out, std::size_t threads) {
    require(sparsity <= out.shape(1) && out.shape(1) <= (std::size_t(1) << 31),
            "scatter: there must be at least as many outputs as copies, and at most 2**31");
    auto plan = scatter_plan<T>(column_count, out.shape(1), sparsity, nullptr, scale);
    plan.key = key;
    scatter_csr<T, I>(plan, {values, columns, indptr}, out, threads);
}

// `dots` is empty where only the squared norms are wanted; nobody reads the direction then.
MomentsPlan moments_plan(std::size_t rows, std::size_t columns, const Vector<double> &direction,
                         const Array<double, 1> &squares, const Array<double, 1> &dots) {
    require(squares.shape(0) == rows &&
                (dots.shape(0) == 0 || (dots.shape(0) == rows && direction.shape(0) == columns)),
            "row_moments: wrong shapes");
    MomentsPlan plan{};
    plan.columns = columns;
    plan.direction = direction.data();
    plan.squares = squares.data();
    plan.dots = dots.shape(0) ? dots.data() : nullptr;
    return plan;
}

template <class T>
void row_moments(Matrix<T> X, Vector<double> direction, Array<double, 1> squares,
                 Array<double, 1> dots, std::size_t threads) {
    const auto plan = moments_plan(X.shape(0), X.shape(1), direction, squares, dots);
    const auto &routines = routines_for<T>();
    for_rows(X.shape(0), threads, 0,
             [&](Share share) { routines.moments(plan, rows_of<T>(X), share); });
}

template <class T, class I>
void row_moments_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                        std::size_t column_count, Vector<double> direction,
                        Array<double, 1> squares, Array<double, 1> dots, std::size_t threads) {
    const Csr<T, I> csr{values, columns, indptr};
    const auto input = csr.rows(column_count);
    const auto plan = moments_plan(csr.count(), column_count, direction, squares, dots);
    const auto &routines = sparse_routines_for<T, I>();
    for_rows(csr.count(), threads, 0, [&](Share share) { routines.moments(plan, input, share); });
}

template <class T> void product(Matrix<T> X, Matrix<T> matrix, Output<T> out, std::size_t threads) {
    const ProductPlan<T> plan{X.shape(1), matrix.shape(1), matrix.data()};
    require(matrix.shape(0) == X.shape(1) && out.shape(0) == X.shape(0) &&
                out.shape(1) == plan.size,
            "product: wrong shapes");
    require_apart(X, out);
    require_apart(matrix, out);
    const auto &routines = routines_for<T>();
    for_rows(X.shape(0), threads, routines.product_workspace(plan),
             [&](Share share) { routines.product(plan, rows_of<T>(X), rows_of<T>(out), share); });
}

template <class T, class I>
void product_sparse(Vector<T> values, Vector<I> columns, Vector<std::int64_t> indptr,
                    Matrix<T> matrix, Output<T> out, std::size_t threads) {
    const Csr<T, I> csr{values, columns, indptr};
    const ProductPlan<T> plan{matrix.shape(0), matrix.shape(1), matrix.data()};
    const auto input = csr.rows(plan.columns);
    require(out.shape(0) == csr.count() && out.shape(1) == plan.size, "product: wrong shapes");
    require_apart(values, out);
    require_apart(matrix, out);
    const auto &routines = sparse_routines_for<T, I>();
    for_rows(csr.count(), threads, 0,
             [&](Share share) { routines.product(plan, input, rows_of<T>(out), share); });
}

// One thread: callers share blocks of rows among theirs, and add the sums in their order.
template <class T>
void normal_product(Matrix<T> Z, Matrix<T> V, Vector<double> offsets, Matrix<double> weights,
                    Output<double> out) {
    NormalPlan<T> plan{};
    plan.columns = Z.shape(1);
    plan.size = V.shape(1);
    plan.sides = weights.shape(1);
    require(V.shape(0) == plan.columns && offsets.shape(0) == plan.size &&
                weights.shape(0) == Z.shape(0) && plan.sides > 0 && plan.size % plan.sides == 0 &&
                out.shape(0) == plan.columns + 1 && out.shape(1) == plan.size,
            "normal_product: wrong shapes");
    require_apart(Z, out);
    require_apart(V, out);
    require_apart(weights, out);
    require_apart(offsets, out);
    plan.matrix = V.data();
    plan.offsets = offsets.data();
    plan.weights = weights.data();
    plan.out = out.data();
    nb::gil_scoped_release released;
    const auto &routines = routines_for<T>();
    routines.normal(plan, rows_of<T>(Z),
                    {0, Z.shape(0), thread_workspace(routines.normal_workspace(plan) + 64)});
}

GaussianPlan gaussian_plan(Vector<double> left, Vector<double> right, double gamma) {
    GaussianPlan plan{};
    plan.columns = right.shape(0);
    plan.gamma = gamma;
    plan.left = left.data();
    plan.right = right.data();
    return plan;
}

template <class T>
void gaussian_values(Matrix<double> products, Vector<double> left, Vector<double> right,
                     double gamma, Output<T> out, std::size_t threads) {
    const std::size_t rows = products.shape(0), columns = products.shape(1);
    require(left.shape(0) == rows && right.shape(0) == columns && out.shape(0) == rows &&
                out.shape(1) == columns,
            "gaussian_values: wrong shapes");
    require_apart(products, out);
    const GaussianPlan plan = gaussian_plan(left, right, gamma);
    const auto &routines = routines_for<T>();
    for_rows(rows, threads, 0, [&](Share share) {
        routines.gaussian(plan, rows_of<double>(products), rows_of<T>(out), share);
    });
}

template <class T>
void gaussian_in_place(Output<T> products, Vector<double> left, Vector<double> right, double gamma,
                       std::size_t threads) {
    require(products.shape(0) == left.shape(0) && products.shape(1) == right.shape(0),
            "gaussian_in_place: wrong shapes");
    const GaussianPlan plan = gaussian_plan(left, right, gamma);
    const auto &routines = routines_for<T>();
    const Rows<T> values = rows_of<T>(products);
    for_rows(left.shape(0), threads, 0, [&](Share share) {
        routines.gaussian_of_own(plan, {values.data, values.stride}, values, share);
    });
}

template <class T> void bind_dense(nb::module_ &m) {
    m.def("scatter", scatter<T>, "X"_a.noconvert(), "table"_a.noconvert(), "sparsity"_a, "scale"_a,
          "out"_a.noconvert(), "threads"_a);
    m.def("row_moments", row_moments<T>, "X"_a.noconvert(), "direction"_a.noconvert(),
          "squares"_a.noconvert(), "dots"_a.noconvert(), "threads"_a);
    m.def("product", product<T>, "X"_a.noconvert(), "matrix"_a.noconvert(), "out"_a.noconvert(),
          "threads"_a);
    m.def("normal_product", normal_product<T>, "Z"_a.noconvert(), "V"_a.noconvert(),
          "offsets"_a.noconvert(), "weights"_a.noconvert(), "out"_a.noconvert());
    m.def("gaussian_values", gaussian_values<T>, "products"_a.noconvert(), "left"_a.noconvert(),
          "right"_a.noconvert(), "gamma"_a, "out"_a.noconvert(), "threads"_a);
    m.def("gaussian_in_place", gaussian_in_place<T>, "products"_a.noconvert(), "left"_a.noconvert(),
          "right"_a.noconvert(), "gamma"_a, "threads"_a);
}

template <class T, class I> void bind_sparse(nb::module_ &m) {
    m.def("scatter_sparse", scatter_sparse<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "indptr"_a.noconvert(), "table"_a.noconvert(), "sparsity"_a, "scale"_a,
          "out"_a.noconvert(), "threads"_a);
    m.def("scatter_sparse_hashed", scatter_sparse_hashed<T, I>, "values"_a.noconvert(),
          "columns"_a.noconvert(), "indptr"_a.noconvert(), "column_count"_a, "key"_a, "sparsity"_a,
          "scale"_a, "out"_a.noconvert(), "threads"_a);
    m.def("row_moments_sparse", row_moments_sparse<T, I>, "values"_a.noconvert(),
          "columns"_a.noconvert(), "indptr"_a.noconvert(), "column_count"_a,
          "direction"_a.noconvert(), "squares"_a.noconvert(), "dots"_a.noconvert(), "threads"_a);
    m.def("product_sparse", product_sparse<T, I>, "values"_a.noconvert(), "columns"_a.noconvert(),
          "indptr"_a.noconvert(), "matrix"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

} // namespace

void bind_sums(nb::module_ &m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    for_sparse_types(
        [&](auto value, auto index) { bind_sparse<decltype(value), decltype(index)>(m); });
}

} // namespace powersketch
