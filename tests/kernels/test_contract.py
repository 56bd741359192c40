"""What every exact kernel promises; a new one is covered by its entry in KERNELS."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from powersketch.kernels import DotProduct, Gaussian, Kernel, NeuralTangent
from powersketch.kernels import tiles as tiles_module
from tests.kernels.kernel_cases import (
    KERNELS,
    SPARSE_FORMATS,
    TILES,
    assert_close,
    each_dtype,
    each_kernel,
    each_tiling,
    points,
    read_only,
    sizes,
    with_wide_indices,
)

# Tiles of so few rows that MANY rows have several, and the last ones are smaller.
EDGE = 64
MANY = 150
# A cosine that is wrong in its last digit moves kappa_0 by the square root of that next to ±1.
NEAR_SINGULARITY = 1e-7
# Kernels that have no parameters but numbers.
NUMERIC = [kernel for kernel in KERNELS if not isinstance(kernel, DotProduct)]


@pytest.fixture(scope="class")
def small_tiles() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles_module, "_EDGE", EDGE)
        yield


@pytest.mark.usefixtures("small_tiles")
class TestMatrix:
    @each_kernel
    @pytest.mark.parametrize(("dtype", "rows"), [(np.float32, MANY), (np.float64, 7)])
    def test_symmetric_to_the_last_bit(self, kernel: Kernel, dtype: Any, rows: int) -> None:
        X = points(2 * rows, 23).astype(dtype)
        for layout in (X[:rows], X[::2], np.asfortranarray(X[:rows]), sparse.csr_array(X[:rows])):
            K = kernel(layout)
            np.testing.assert_array_equal(K, K.T)

    @each_kernel
    def test_symmetric_matrix_equals_the_general_one(self, kernel: Kernel) -> None:
        X = points(MANY)
        assert_close(kernel(X), kernel(X, X.copy()))

    @each_kernel
    def test_columns_and_rows_can_be_exchanged(self, kernel: Kernel) -> None:
        X, Y = points(MANY), points(30, seed=1)
        assert_close(kernel(X, Y), kernel(Y, X).T)

    @each_kernel
    def test_entries_do_not_depend_on_the_other_rows(self, kernel: Kernel) -> None:
        X, Y = points(MANY), points(90, seed=1)
        assert_close(kernel(X, Y)[120:, 70:], kernel(X[120:], Y[70:]))

    @each_kernel
    def test_positive_semidefinite(self, kernel: Kernel) -> None:
        X = points(60, 5)
        X[17], X[18], X[19], X[20] = 0.0, X[3], 2.0 * X[4], -X[5]
        eigenvalues = np.linalg.eigvalsh(kernel(X))
        assert eigenvalues[0] > -NEAR_SINGULARITY * eigenvalues[-1]

    @each_kernel
    def test_float32_is_computed_in_float64_and_rounded_once(self, kernel: Kernel) -> None:
        X, Y = points(30).astype(np.float32), points(20, seed=1).astype(np.float32)
        for single, double in (
            (kernel(X, Y), kernel(X.astype(np.float64), Y.astype(np.float64))),
            (kernel(X), kernel(X.astype(np.float64))),
            (kernel.diagonal(X), kernel.diagonal(X.astype(np.float64))),
        ):
            assert single.dtype == np.float32
            assert double.dtype == np.float64
            np.testing.assert_allclose(single, double, rtol=1e-6, atol=1e-12)

    @each_kernel
    def test_dtype_of_the_result_can_be_chosen(self, kernel: Kernel) -> None:
        X = points(30).astype(np.float32)
        double = kernel(X, dtype=np.float64)
        assert double.dtype == np.float64
        np.testing.assert_array_equal(double, kernel(X.astype(np.float64)))
        np.testing.assert_array_equal(kernel(double, dtype="float32"), kernel(double).astype("f4"))

    def test_other_dtypes_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"dtype='int64' .* allowed are float32 and float64"):
            Gaussian()(points(3), dtype="int64")

    @each_kernel
    def test_threads_change_rounding_at_most(self, kernel: Kernel) -> None:
        X, Y = points(MANY), points(90, seed=1)
        assert_close(kernel(X, n_jobs=3), kernel(X))
        assert_close(kernel(X, Y, n_jobs=2), kernel(X, Y))
        assert_close(kernel.product(X, Y[:, :2], Y, n_jobs=2), kernel.product(X, Y[:, :2], Y))
        with pytest.raises(ValueError, match="n_jobs=0 has no meaning"):
            kernel(X, n_jobs=0)

    @each_kernel
    def test_inner_products_and_norms_suffice(self, kernel: Kernel) -> None:
        X, Y = points(MANY), points(90, seed=1)
        X[3] = 0.0
        squares = [np.sum(rows**2, axis=1) for rows in (X, Y)]
        K = kernel.from_inner_products(X @ Y.T, *squares, n_jobs=2)
        assert_close(K, kernel(X, Y), NEAR_SINGULARITY)
        single = kernel.from_inner_products((X @ Y.T).astype(np.float32), *squares)
        assert single.dtype == np.float32

    @each_kernel
    def test_there_may_be_no_inner_products(self, kernel: Kernel) -> None:
        for shape in ((0, 3), (2, 0), (0, 0)):
            norms = np.zeros(shape[0]), np.zeros(shape[1])
            assert kernel.from_inner_products(np.zeros(shape), *norms).shape == shape

    def test_inner_products_must_fit_the_norms(self) -> None:
        with pytest.raises(ValueError, match=r"\(2, 3\) do not fit \(2,\) and \(2,\) squared"):
            Gaussian().from_inner_products(np.ones((2, 3)), np.ones(2), np.ones(2))

    @each_tiling
    def test_mixed_precision_becomes_float64(self, kernel: Kernel) -> None:
        X, Y = points(5).astype(np.float32), points(4, seed=1)
        expected = kernel(X.astype(np.float64), Y)
        for K in (kernel(X, Y), kernel(Y, X).T, kernel(sparse.csr_array(X), Y)):
            assert K.dtype == np.float64
            assert_close(K, expected)

    @pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.bool_, np.float16])
    def test_other_numbers_become_float64(self, dtype: Any) -> None:
        kernel, X = Gaussian(), np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
        K = kernel(X)
        assert K.dtype == np.float64
        assert_close(K, kernel(X.astype(np.float64)))

    @given(rows=sizes, others=sizes, columns=sizes, kernel=st.sampled_from(KERNELS))
    def test_any_shape(self, rows: int, others: int, columns: int, kernel: Kernel) -> None:
        X, Y = points(rows, columns), points(others, columns, seed=1)
        K = kernel(X, Y)
        assert K.shape == (rows, others)
        assert_close(kernel(sparse.csr_array(X), Y), K, NEAR_SINGULARITY)
        assert_close(kernel(X, sparse.csc_array(Y)), K, NEAR_SINGULARITY)
        np.testing.assert_array_equal(kernel(X), kernel(X).T)
        assert kernel.diagonal(X).shape == (rows,)
        assert_close(kernel.product(X, Y[:, 0], Y), K @ Y[:, 0], 1e-10)

    @each_kernel
    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_zero_rows(self, kernel: Kernel, to_layout: Callable[[Any], Any]) -> None:
        X = points(6)
        X[2:4] = 0.0
        K = kernel(to_layout(X))
        assert np.isfinite(K).all()
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(K[2], K[3])
        np.testing.assert_array_equal(np.diag(K), kernel.diagonal(to_layout(X)))
        assert_close(K, kernel(to_layout(X), X.copy()), NEAR_SINGULARITY)

    @each_tiling
    def test_long_rows(self, kernel: Kernel) -> None:
        X = points(40, 20_000)
        X[:, 500:-500] = 0.0
        assert_close(kernel(X), kernel(sparse.csr_array(X)))


@pytest.mark.usefixtures("small_tiles")
class TestDiagonal:
    @each_kernel
    @each_dtype
    def test_is_that_of_the_matrix(self, kernel: Kernel, dtype: Any) -> None:
        rows = points(MANY).astype(dtype)
        for X in (rows, sparse.csr_array(rows)):
            diagonal = kernel.diagonal(X)
            assert diagonal.shape == (MANY,)
            assert diagonal.dtype == dtype
            np.testing.assert_allclose(np.diag(kernel(X)), diagonal, rtol=4 * np.finfo(dtype).eps)

    @each_kernel
    def test_is_near_the_formula_off_the_diagonal(self, kernel: Kernel) -> None:
        X = points(20)
        assert_close(np.diag(kernel(X, X.copy())), kernel.diagonal(X), NEAR_SINGULARITY)


@pytest.mark.usefixtures("small_tiles")
class TestLayouts:
    @pytest.mark.parametrize(
        ("kernel", "to_sparse"),
        [(TILES[i % len(TILES)], to_sparse) for i, to_sparse in enumerate(SPARSE_FORMATS)],
    )
    def test_sparse_equals_dense(self, kernel: Kernel, to_sparse: Callable[[Any], Any]) -> None:
        X, Y = points(30), points(20, seed=1)
        sparse_X, sparse_Y = to_sparse(X), to_sparse(Y)
        for K in (kernel(sparse_X, sparse_Y), kernel(sparse_X, Y), kernel(X, sparse_Y)):
            assert type(K) is np.ndarray
            assert_close(K, kernel(X, Y))
        assert_close(kernel.diagonal(sparse_X), kernel.diagonal(X))

    @each_tiling
    @each_dtype
    def test_more_sparse_rows_than_one_tile(self, kernel: Kernel, dtype: Any) -> None:
        X = points(MANY).astype(dtype)
        tolerance = 4 * np.finfo(dtype).eps + 1e-12
        for layout in (sparse.csr_array(X), with_wide_indices(X), sparse.csc_array(X)):
            K = kernel(layout)
            assert K.dtype == dtype
            assert_close(K, kernel(X), tolerance)

    @each_tiling
    def test_repeated_and_unsorted_sparse_entries(self, kernel: Kernel) -> None:
        entries = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 0, 1, 2]), np.array([0, 3, 4]))
        X = sparse.csr_array(entries, shape=(2, 3))
        before = X.data.copy(), X.indices.copy()
        dense = np.array([[2.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
        assert_close(kernel(X), kernel(dense))
        assert_close(kernel.diagonal(X), kernel.diagonal(dense))
        assert_close(kernel.product(X, [1.0, 2.0]), kernel.product(dense, [1.0, 2.0]))
        np.testing.assert_array_equal(X.data, before[0])
        np.testing.assert_array_equal(X.indices, before[1])

    @each_tiling
    def test_fortran_strided_read_only_and_lists(self, kernel: Kernel) -> None:
        X, V = points(40), points(40, 2, seed=2)
        wide = np.repeat(X, 2, axis=1)
        layouts = (np.asfortranarray(X), wide[:, ::2], X[::-1][::-1], read_only(X), X.tolist())
        for layout in (*layouts, read_only(sparse.csr_array(X)), np.repeat(X, 3, axis=0)[::3]):
            assert_close(kernel(layout), kernel(X))
            assert_close(kernel.diagonal(layout), kernel.diagonal(X))
            assert_close(kernel.product(layout, np.asfortranarray(V)), kernel(X) @ V)

    @each_kernel
    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_input_is_left_as_it_was(self, kernel: Kernel, to_layout: Callable[[Any], Any]) -> None:
        X, V = to_layout(points(10)), np.ones(10)
        kernel(X)
        kernel(X, X.copy())
        kernel.diagonal(X)
        kernel.product(X, V)
        np.testing.assert_array_equal(X.toarray() if sparse.issparse(X) else X, points(10))
        np.testing.assert_array_equal(V, np.ones(10))


@pytest.mark.usefixtures("small_tiles")
class TestProduct:
    @each_tiling
    @pytest.mark.parametrize("block_rows", [None, 1, 7, 1000, np.int64(13)])
    def test_equals_the_matrix_times_the_vectors(
        self, kernel: Kernel, block_rows: int | None
    ) -> None:
        X, Y, V = points(40), points(30, seed=1), points(40, 3, seed=2)
        for left in (X, sparse.csr_array(X)):
            product = kernel.product(left, V, block_rows=block_rows)
            assert_close(product, kernel(X) @ V)
            product = kernel.product(left, V[:30, 0], Y, block_rows=block_rows)
            assert product.shape == (40,)
            assert_close(product, kernel(X, Y) @ V[:30, 0])

    @each_tiling
    @pytest.mark.parametrize("block_rows", [None, 20, 100])
    def test_more_rows_than_one_tile(self, kernel: Kernel, block_rows: int | None) -> None:
        X, Y, V = points(MANY), points(MANY + 5, seed=1), points(MANY + 5, 2, seed=2)
        assert_close(kernel.product(X, V, Y, block_rows=block_rows), kernel(X, Y) @ V)
        assert_close(kernel.product(X, V[:MANY], block_rows=block_rows), kernel(X) @ V[:MANY])

    @each_kernel
    def test_dtypes(self, kernel: Kernel) -> None:
        X, V = points(9).astype(np.float32), points(9, 2, seed=2).astype(np.float32)
        single = kernel.product(X, V)
        assert single.dtype == np.float32
        assert_close(single, kernel(X.astype(np.float64)) @ V, 1e-6)
        for rows, vectors in ((X, V.astype(np.float64)), (X.astype(np.float64), V), (X, V > 0)):
            product = kernel.product(rows, vectors)
            assert product.dtype == np.float64
            assert_close(product, kernel(X.astype(np.float64)) @ vectors.astype(np.float64))

    @each_kernel
    def test_no_vectors(self, kernel: Kernel) -> None:
        assert kernel.product(points(5), np.zeros((5, 0))).shape == (5, 0)

    @pytest.mark.parametrize(
        ("V", "error", "message"),
        [
            (np.ones(3), ValueError, r"V has shape \(3,\); allowed are \(4,\) and \(4, t\)"),
            (np.ones((1, 4)), ValueError, r"V has shape \(1, 4\).*that length"),
            (np.ones((4, 1, 1)), ValueError, r"V has shape \(4, 1, 1\)"),
            (1.0, ValueError, r"V has shape \(\)"),
            ([1.0, np.nan, 0.0, 0.0], ValueError, "V contains NaN or infinity"),
            ([1.0, np.inf, 0.0, 0.0], ValueError, "V contains NaN or infinity"),
            ([1j, 0, 0, 0], TypeError, "V has dtype complex128.*astype"),
            (sparse.csr_array(np.ones((4, 1))), TypeError, "V is a csr_array.*toarray"),
        ],
    )
    def test_refused_vectors(self, V: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            Gaussian().product(points(4), V)
        with pytest.raises(error, match=message):
            Gaussian().product(points(9), V, points(4))

    @pytest.mark.parametrize(
        ("block_rows", "error", "message"),
        [
            (0, ValueError, "block_rows=0 is out of range; choose an integer of at least 1"),
            (-3, ValueError, "block_rows=-3"),
            (2.0, TypeError, "block_rows=2.0 is a float"),
            (True, TypeError, "block_rows=True is a bool"),
        ],
    )
    def test_refused_blocks(self, block_rows: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            Gaussian().product(points(4), np.ones(4), block_rows=block_rows)

    @each_kernel
    def test_overflow_is_an_error(self, kernel: Kernel) -> None:
        X = 3.0 * points(5)
        with pytest.raises(ValueError, match=r"V overflows float64: .* above 1\.8e\+308: scale V"):
            kernel.product(np.tile(X[1], (9, 1)), np.full(9, 1.7e308))
        with pytest.raises(ValueError, match=r"overflows float32: .*scale V down, or use float64"):
            kernel.product(np.tile(np.float32(X[1]), (9, 1)), np.full(9, 3e38, dtype=np.float32))


class TestMemory:
    @each_tiling
    @pytest.mark.parametrize("to_layout", [np.float32, sparse.csr_array])
    def test_the_matrix_takes_little_more_than_itself(
        self, kernel: Kernel, to_layout: Callable[[Any], Any]
    ) -> None:
        X = to_layout(points(1200, 9))
        matrix = 1200 * 1200 * X.dtype.itemsize
        assert peak_memory(lambda: kernel(X)) < matrix + (10 << 20)

    @each_tiling
    @pytest.mark.parametrize("to_layout", [np.float32, sparse.csr_array])
    def test_a_product_never_holds_the_matrix(
        self, kernel: Kernel, to_layout: Callable[[Any], Any]
    ) -> None:
        X, V = to_layout(points(1200, 9)), np.ones(1200)
        assert peak_memory(lambda: kernel.product(X, V, block_rows=50)) < 3 << 20
        assert peak_memory(lambda: kernel.product(X, V)) < 9 << 20

    @each_tiling
    @pytest.mark.parametrize("to_layout", [np.float32, sparse.csr_array])
    def test_gradients_never_hold_all_pairs(
        self, kernel: Kernel, to_layout: Callable[[Any], Any]
    ) -> None:
        X, V = to_layout(points(1200, 9)), np.ones((1200, 3))
        assert peak_memory(lambda: kernel.gradients(X, V)) < 12 << 20


class TestParameters:
    @pytest.mark.parametrize("kernel", NUMERIC, ids=repr)
    def test_equal_by_parameters(self, kernel: Kernel) -> None:
        namespace = {kind.__name__: kind for kind in map(type, KERNELS)}
        again = eval(repr(kernel), namespace)
        assert again == kernel
        assert hash(again) == hash(kernel)
        assert kernel != NeuralTangent(depth=77)


class TestOverflow:
    @pytest.mark.parametrize(
        "kernel", [k for k in NUMERIC if k.diagonal([[9.0]])[0] > 9.0], ids=repr
    )
    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_is_an_error_that_names_the_remedy(
        self, kernel: Kernel, to_layout: Callable[[Any], Any]
    ) -> None:
        X = to_layout(np.array([[1e300, 1e300], [1e300, -1e300]]))
        for call in (kernel, kernel.diagonal, lambda X: kernel.product(X, [1.0, 0.0])):
            with pytest.raises(ValueError, match=r"overflows float64: .*: scale X") as caught:
                call(X)
            assert "use float64" not in str(caught.value)
        X = to_layout(np.array([[1e30, 1e30], [1e30, -1e30]], dtype=np.float32))
        for call in (kernel, kernel.diagonal):
            with pytest.raises(ValueError, match=r"overflows float32: .*, or use float64\."):
                call(X)


class TestRefusedInput:
    @pytest.mark.parametrize(
        ("X", "error", "message"),
        [
            ([[np.nan, 1.0]], ValueError, "X contains NaN"),
            ([[np.inf, 1.0]], ValueError, "X contains infinity"),
            (sparse.csr_array([[np.nan, 1.0]]), ValueError, "X contains NaN"),
            ([[1j, 1.0]], TypeError, "X has dtype complex128"),
            (sparse.csr_array([[1j, 1.0]]), TypeError, "X has dtype complex128"),
            (np.array([[1.0, 2.0]], dtype=object), TypeError, "X has dtype object.*astype"),
            ([["1", "2"]], TypeError, "X has dtype <U1"),
            ([1.0, 2.0], ValueError, "Expected 2D array"),
            (np.zeros((0, 2)), ValueError, "0 sample"),
            (np.zeros((2, 0)), ValueError, "0 feature"),
            (sparse.csr_array((0, 2)), ValueError, "0 sample"),
        ],
    )
    def test_refused(self, X: Any, error: type[Exception], message: str) -> None:
        kernel = Gaussian()
        for call in (kernel, kernel.diagonal, lambda X: kernel.product(X, [1.0])):
            with pytest.raises(error, match=message):
                call(X)
        with pytest.raises(error, match=message.replace("X", "Y")):
            kernel([[1.0, 2.0]], X)
        with pytest.raises(error, match=message.replace("X", "Y")):
            kernel.product([[1.0, 2.0]], [1.0], X)

    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_different_feature_counts(self, to_layout: Callable[[Any], Any]) -> None:
        kernel, X, Y = Gaussian(), to_layout(points(3)), to_layout(points(3, 5))
        for call in (lambda: kernel(X, Y), lambda: kernel.product(X, np.ones(3), Y)):
            with pytest.raises(ValueError, match=r"X has 6 features and Y has 5; .* equal"):
                call()


def peak_memory(call: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@each_tiling
@pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
def test_columns_prepared_once_give_the_same_matrix(
    kernel: Kernel, to_layout: Callable[[Any], Any]
) -> None:
    X, Y = points(30), points(20, seed=1)
    values = kernel.columns(to_layout(Y))
    for rows in (to_layout(X), X, to_layout(X[:1])):
        found = values(rows, np.dtype(np.float64))
        assert_close(found, kernel(rows, Y), NEAR_SINGULARITY)
    assert values(to_layout(X), np.dtype(np.float32)).dtype == np.float32


class TestPrecision:
    """Inner products in float32 give what those in float64 give, up to rounding errors."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tiles_module, "_EDGE_IN_FLOAT32", EDGE)

    @each_kernel
    def test_changes_no_more_than_the_last_digits(self, kernel: Kernel) -> None:
        X, Y = points(MANY, 23).astype(np.float32), points(40, 23).astype(np.float32)
        V = points(MANY, 3)
        for exact, rounded in (
            (kernel(X), kernel(X, precision=np.float32)),
            (kernel(X, Y), kernel(X, Y, precision=np.float32)),
            (kernel.product(X, V), kernel.product(X, V, precision=np.float32, n_jobs=2)),
            (
                kernel.columns(Y)(X, np.dtype(np.float32)),
                kernel.columns(Y, precision=np.float32)(X, np.dtype(np.float32)),
            ),
        ):
            scale = float(np.abs(exact).max())
            np.testing.assert_allclose(rounded, exact, rtol=0, atol=2e-5 * scale)

    def test_is_symmetric_to_the_last_bit(self) -> None:
        K = Gaussian(0.5)(points(MANY, 23).astype(np.float32), precision=np.float32)
        np.testing.assert_array_equal(K, K.T)

    def test_is_lower_where_it_is_asked_for(self) -> None:
        X = points(MANY, 23)
        assert not np.array_equal(Gaussian(0.5)(X), Gaussian(0.5)(X, precision=np.float32))
