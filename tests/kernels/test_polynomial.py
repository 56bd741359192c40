"""The exact polynomial kernel against naive evaluation, scikit-learn and its own identities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import polynomial_kernel

from powersketch.kernels import Polynomial

KERNELS = [
    Polynomial(),
    Polynomial(degree=1),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    Polynomial(degree=7, gamma=0.1, coef0=0.3),
    Polynomial(degree=64, gamma=0.2, coef0=0.5),
    Polynomial(degree=1000, gamma=0.02, coef0=0.9),
]
SPARSE_FORMATS: list[Callable[[Any], Any]] = [
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.lil_array,
]

kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
sizes = st.integers(min_value=1, max_value=40)


def points(rows: int, columns: int = 6, seed: int = 0) -> NDArray[np.float64]:
    """Points of about unit length, a third of their coordinates zero."""
    generator = np.random.default_rng(seed)
    X: NDArray[np.float64] = generator.normal(size=(rows, columns)) / np.sqrt(columns)
    X[generator.random(X.shape) < 1 / 3] = 0.0
    return X


def naive(kernel: Polynomial, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = X.astype(np.float64) @ Y.astype(np.float64).T
    values: NDArray[np.float64] = (kernel.gamma * products + kernel.coef0) ** kernel.degree
    return values


def tolerance(kernel: Polynomial, dtype: Any) -> float:
    """Bound a power's relative error: degree times that of its base, plus the squarings."""
    return 30 * kernel.degree * float(np.finfo(dtype).eps)


class TestMatrix:
    @kernels
    def test_equals_naive_evaluation(self, kernel: Polynomial) -> None:
        X, Y = points(30), points(20, seed=1)
        K = kernel(X, Y)
        assert K.dtype == np.float64
        np.testing.assert_allclose(K, naive(kernel, X, Y), rtol=1e-11, atol=1e-14)

    @kernels
    def test_equals_scikit_learn(self, kernel: Polynomial) -> None:
        X, Y = points(30), points(20, seed=1)
        expected = polynomial_kernel(
            X, Y, degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0
        )
        np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-11, atol=1e-14)

    @kernels
    def test_float32_stays_float32(self, kernel: Polynomial) -> None:
        X, Y = points(30).astype(np.float32), points(20, seed=1).astype(np.float32)
        K = kernel(X, Y)
        assert K.dtype == np.float32
        rtol = tolerance(kernel, np.float32)
        np.testing.assert_allclose(K, naive(kernel, X, Y), rtol=rtol, atol=1e-6)

    @pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.bool_, np.float16])
    def test_other_numbers_become_float64(self, dtype: Any) -> None:
        X = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
        K = Polynomial(degree=3, coef0=1.0)(X)
        assert K.dtype == np.float64
        np.testing.assert_array_equal(K, [[27.0, 8.0], [8.0, 27.0]])

    def test_mixed_precision_becomes_float64(self) -> None:
        X, Y = points(5).astype(np.float32), points(4, seed=1)
        for K in (Polynomial()(X, Y), Polynomial()(Y, X).T, Polynomial()(sparse.csr_array(X), Y)):
            assert K.dtype == np.float64
            np.testing.assert_allclose(K, naive(Polynomial(), X, Y), rtol=1e-13, atol=1e-15)

    @kernels
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("rows", [1, 7, 300, 600])
    def test_symmetric_to_the_last_bit(self, kernel: Polynomial, dtype: Any, rows: int) -> None:
        X = points(2 * rows, 23).astype(dtype)
        for layout in (X[:rows], X[::2], np.asfortranarray(X[:rows]), sparse.csr_array(X[:rows])):
            K = kernel(layout)
            np.testing.assert_array_equal(K, K.T)

    def test_symmetric_matrix_equals_the_general_one(self) -> None:
        X = points(600)
        np.testing.assert_allclose(Polynomial()(X), Polynomial()(X, X), rtol=1e-12, atol=1e-15)

    @kernels
    def test_positive_semidefinite(self, kernel: Polynomial) -> None:
        eigenvalues = np.linalg.eigvalsh(kernel(points(50)))
        assert eigenvalues[0] > -1e-12 * eigenvalues[-1]

    def test_more_entries_than_one_block(self) -> None:
        kernel, X, Y = Polynomial(degree=5, coef0=1.0), points(301), points(400, seed=1)
        np.testing.assert_allclose(kernel(X, Y), naive(kernel, X, Y), rtol=1e-12)

    @given(rows=sizes, others=sizes, columns=sizes, degree=st.integers(1, 12))
    def test_any_shape(self, rows: int, others: int, columns: int, degree: int) -> None:
        kernel = Polynomial(degree=degree, gamma=0.7, coef0=0.2)
        X, Y = points(rows, columns), points(others, columns, seed=1)
        K = kernel(X, Y)
        assert K.shape == (rows, others)
        np.testing.assert_allclose(K, naive(kernel, X, Y), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(kernel(sparse.csr_array(X), Y), K, rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(kernel(X), kernel(X).T)


class TestLayouts:
    @pytest.mark.parametrize("to_sparse", SPARSE_FORMATS, ids=lambda t: t.__name__)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_sparse_equals_dense(self, to_sparse: Callable[[Any], Any], dtype: Any) -> None:
        kernel = Polynomial(degree=4, gamma=0.5, coef0=1.0)
        X, Y = points(300).astype(dtype), points(20, seed=1).astype(dtype)
        sparse_X, sparse_Y = to_sparse(X), to_sparse(Y)
        for K in (kernel(sparse_X, sparse_Y), kernel(sparse_X, Y), kernel(X, sparse_Y)):
            assert type(K) is np.ndarray
            assert K.dtype == dtype
            np.testing.assert_allclose(K, kernel(X, Y), rtol=tolerance(kernel, dtype))
        diagonal = kernel.diagonal(sparse_X)
        assert diagonal.dtype == dtype
        np.testing.assert_allclose(diagonal, kernel.diagonal(X), rtol=tolerance(kernel, dtype))

    def test_repeated_and_unsorted_sparse_entries(self) -> None:
        entries = (np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 0, 1, 2]), np.array([0, 3, 4]))
        X = sparse.csr_array(entries, shape=(2, 3))
        kernel, dense = Polynomial(degree=2, coef0=1.0), X.toarray()
        np.testing.assert_array_equal(dense, [[2.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
        np.testing.assert_array_equal(kernel(X), kernel(dense))
        np.testing.assert_array_equal(kernel.diagonal(X), kernel.diagonal(dense))

    def test_sparse_input_is_left_as_it_was(self) -> None:
        X = sparse.csr_array(points(10))
        before = X.copy()
        Polynomial()(X)
        Polynomial().diagonal(X)
        np.testing.assert_array_equal(X.data, before.data)
        np.testing.assert_array_equal(X.indices, before.indices)

    def test_fortran_strided_and_readonly_input(self) -> None:
        kernel, X = Polynomial(degree=3, coef0=1.0), points(40)
        wide = np.repeat(X, 2, axis=1)
        frozen = X.copy()
        frozen.flags.writeable = False
        for layout in (np.asfortranarray(X), wide[:, ::2], X[::-1][::-1], frozen, X.tolist()):
            np.testing.assert_allclose(kernel(layout), kernel(X), rtol=1e-13)
            np.testing.assert_allclose(kernel.diagonal(layout), kernel.diagonal(X), rtol=1e-13)

    def test_dense_input_is_left_as_it_was(self) -> None:
        X = points(10)
        before = X.copy()
        Polynomial(coef0=1.0)(X)
        Polynomial(coef0=1.0).diagonal(X)
        np.testing.assert_array_equal(X, before)


class TestDiagonal:
    @kernels
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equals_the_diagonal_of_the_matrix(self, kernel: Polynomial, dtype: Any) -> None:
        X = points(40).astype(dtype)
        diagonal = kernel.diagonal(X)
        assert diagonal.shape == (40,)
        assert diagonal.dtype == dtype
        rtol = tolerance(kernel, dtype)
        np.testing.assert_allclose(diagonal, np.diag(kernel(X)), rtol=rtol)


class TestSeries:
    @kernels
    def test_evaluates_to_the_kernel(self, kernel: Polynomial) -> None:
        series = kernel.series()
        assert series.dtype == np.float64
        assert series.shape == (kernel.degree + 1,)
        t = np.linspace(0.0, 1.0, 11)
        expected = (kernel.gamma * t + kernel.coef0) ** kernel.degree
        np.testing.assert_allclose(np.polynomial.polynomial.polyval(t, series), expected, 1e-11)

    @given(
        degree=st.integers(1, 60),
        gamma=st.floats(1e-3, 1e3),
        coef0=st.one_of(st.just(0.0), st.floats(1e-3, 1e3)),
    )
    def test_rounded_once(self, degree: int, gamma: float, coef0: float) -> None:
        half_unit = Fraction(1, 2**53) * (1 + Fraction(1, 10**30))
        for power, coefficient in enumerate(Polynomial(degree, gamma, coef0).series()):
            powers = Fraction(gamma) ** power * Fraction(coef0) ** (degree - power)
            exact = comb(degree, power) * powers
            assert abs(Fraction(float(coefficient)) - exact) <= half_unit * exact

    def test_without_constant_has_one_term(self) -> None:
        np.testing.assert_array_equal(Polynomial(3, 2.0, 0.0).series(), [0.0, 0.0, 0.0, 8.0])

    def test_binomials_beyond_float64_with_a_finite_product(self) -> None:
        # The coefficients are the probabilities of 3000 fair coins; binom(3000, 1500) is 1e901.
        series = Polynomial(degree=3000, gamma=0.5, coef0=0.5).series()
        np.testing.assert_allclose(series.sum(), 1.0, rtol=1e-13)
        assert series[1500] == comb(3000, 1500) / 2**3000

    def test_overflow_is_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"coefficient \d+ of Polynomial\(degree=3000.*small"):
            Polynomial(degree=3000, coef0=1.0).series()


class TestParameters:
    def test_defaults(self) -> None:
        assert Polynomial() == Polynomial(degree=2, gamma=1.0, coef0=0.0)

    def test_numpy_numbers_become_python_numbers(self) -> None:
        kernel = Polynomial(np.int32(3), np.float32(0.5), np.int64(1))  # type: ignore[arg-type]
        assert repr(kernel) == "Polynomial(degree=3, gamma=0.5, coef0=1.0)"

    def test_kernels_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Polynomial().degree = 3  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"degree": 0}, ValueError, "degree=0 .* at least 1"),
            ({"degree": -2}, ValueError, "degree=-2 .* at least 1"),
            ({"degree": 2.5}, TypeError, "degree=2.5 is a float"),
            ({"degree": 2.0}, TypeError, "degree=2.0 is a float.*pass an int"),
            ({"degree": True}, TypeError, "degree=True is a bool"),
            ({"degree": "3"}, TypeError, "degree='3' is a str"),
            ({"gamma": 0.0}, ValueError, "gamma=0.0 .* above 0"),
            ({"gamma": -1.0}, ValueError, "gamma=-1.0 .* above 0"),
            ({"gamma": np.nan}, ValueError, "gamma=nan .* finite"),
            ({"gamma": np.inf}, ValueError, "gamma=inf .* finite"),
            ({"gamma": "scale"}, TypeError, "gamma='scale' is a str"),
            ({"gamma": None}, TypeError, "gamma=None is a NoneType"),
            ({"coef0": -0.5}, ValueError, "coef0=-0.5 .* not positive definite"),
            ({"coef0": np.nan}, ValueError, "coef0=nan .* finite"),
            ({"coef0": np.inf}, ValueError, "coef0=inf .* finite"),
            ({"coef0": 1j}, TypeError, "coef0=1j is a complex"),
            ({"coef0": True}, TypeError, "coef0=True is a bool"),
        ],
    )
    def test_refused(
        self, parameters: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            Polynomial(**parameters)


class TestOverflow:
    def test_names_base_degree_dtype_and_remedy(self) -> None:
        X = np.array([[10.0], [1.0]], dtype=np.float32)
        with pytest.raises(
            ValueError, match=r"float32: .* is 101, .*degree=20 .*3\.4e\+38.*scale X.*use float64"
        ):
            Polynomial(degree=20, coef0=1.0)(X)

    def test_float64_holds_what_float32_cannot(self) -> None:
        K = Polynomial(degree=20)(np.array([[10.0]]))
        np.testing.assert_allclose(K, 1e40, rtol=1e-14)

    def test_float64_overflow_does_not_advise_float64(self) -> None:
        with pytest.raises(ValueError, match="overflows float64") as caught:
            Polynomial(degree=200)([[10.0]])
        assert "use float64" not in str(caught.value)

    def test_large_negative_values_count(self) -> None:
        with pytest.raises(ValueError, match="is 99,"):
            Polynomial(degree=200, coef0=1.0)([[10.0]], [[-10.0], [0.0]])

    def test_the_largest_finite_power_passes(self) -> None:
        assert Polynomial(degree=1023)([[2.0]], [[1.0]])[0, 0] == 2.0**1023
        assert Polynomial(degree=1023)([[2.0]], [[-1.0]])[0, 0] == -(2.0**1023)
        with pytest.raises(ValueError, match="overflows float64"):
            Polynomial(degree=1024)([[2.0]], [[1.0]])

    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_inner_products_that_overflow(self, to_layout: Callable[[Any], Any]) -> None:
        X = to_layout(np.array([[1e30, 1e30], [1e30, -1e30]], dtype=np.float32))
        for call in (Polynomial(gamma=1e-20), Polynomial(gamma=1e-20).diagonal):
            with pytest.raises(ValueError, match=r"overflows float32: .* is inf"):
                call(X)

    def test_gamma_beyond_float32_is_not_rounded_away(self) -> None:
        X = np.array([[1e18]], dtype=np.float32)
        np.testing.assert_allclose(Polynomial(degree=1, gamma=1e-50)(X), 1e-14, rtol=1e-6)

    def test_underflow_is_zero(self) -> None:
        assert Polynomial(degree=2000)([[0.5]])[0, 0] == 0.0


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
        for call in (Polynomial(), Polynomial().diagonal):
            with pytest.raises(error, match=message):
                call(X)
        with pytest.raises(error, match=message.replace("X", "Y")):
            Polynomial()([[1.0, 2.0]], X)

    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_different_feature_counts(self, to_layout: Callable[[Any], Any]) -> None:
        with pytest.raises(ValueError, match=r"X has 6 features and Y has 5; .* equal"):
            Polynomial()(to_layout(points(3)), to_layout(points(3, 5)))
