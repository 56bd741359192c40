"""The exact polynomial kernel against naive evaluation, scikit-learn and its own identities."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.kernels.kernel_cases import assert_frozen, assert_refused, each_dtype, points, sizes

KERNELS = [
    Polynomial(),
    Polynomial(degree=1),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    Polynomial(degree=7, gamma=0.1, coef0=0.3),
    Polynomial(degree=64, gamma=0.2, coef0=0.5),
    Polynomial(degree=1000, gamma=0.02, coef0=0.9),
]

kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def naive(kernel: Polynomial, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.float64]:
    products: NDArray[np.float64] = X.astype(np.float64) @ Y.astype(np.float64).T
    values: NDArray[np.float64] = (kernel.gamma * products + kernel.coef0) ** kernel.degree
    return values


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
        np.testing.assert_allclose(K, naive(kernel, X, Y), rtol=1e-6, atol=1e-30)

    @pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.bool_, np.float16])
    def test_other_numbers_become_float64(self, dtype: Any) -> None:
        X = np.array([[1, 0, 1], [0, 1, 1]], dtype=dtype)
        K = Polynomial(degree=3, coef0=1.0)(X)
        assert K.dtype == np.float64
        np.testing.assert_array_equal(K, [[27.0, 8.0], [8.0, 27.0]])

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
        np.testing.assert_allclose(kernel(X, Y), naive(kernel, X, Y), rtol=1e-11, atol=1e-13)

    @kernels
    @each_dtype
    def test_diagonal_of_the_matrix(self, kernel: Polynomial, dtype: Any) -> None:
        X = points(40).astype(dtype)
        np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel(X)))
        rtol = 1e-6 if dtype == np.float32 else 1e-11
        expected = np.diag(naive(kernel, X, X))
        np.testing.assert_allclose(kernel.diagonal(X), expected, rtol=rtol, atol=1e-36)


class TestSeries:
    @kernels
    def test_evaluates_to_the_kernel(self, kernel: Polynomial) -> None:
        series = kernel.power_series().coefficients()
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
        series = Polynomial(degree, gamma, coef0).power_series()
        half_unit = Fraction(1, 2**53) * (1 + Fraction(1, 10**30))
        for power, coefficient in enumerate(series.coefficients()):
            powers = Fraction(gamma) ** power * Fraction(coef0) ** (degree - power)
            exact = comb(degree, power) * powers
            assert abs(Fraction(float(coefficient)) - exact) <= half_unit * exact

    def test_without_constant_has_one_term(self) -> None:
        coefficients = Polynomial(3, 2.0, 0.0).power_series().coefficients()
        np.testing.assert_array_equal(coefficients, [0.0, 0.0, 0.0, 8.0])

    def test_binomials_beyond_float64_with_a_finite_product(self) -> None:
        # The coefficients are the probabilities of 3000 fair coins; binom(3000, 1500) is 1e901.
        series = Polynomial(degree=3000, gamma=0.5, coef0=0.5).power_series().coefficients()
        np.testing.assert_allclose(series.sum(), 1.0, rtol=1e-13)
        assert series[1500] == comb(3000, 1500) / 2**3000

    def test_overflow_is_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"coefficient \d+ of Polynomial\(degree=3000.*small"):
            Polynomial(degree=3000, coef0=1.0).power_series()


class TestParameters:
    def test_defaults(self) -> None:
        assert Polynomial() == Polynomial(degree=2, gamma=1.0, coef0=0.0)

    def test_numpy_numbers_become_python_numbers(self) -> None:
        kernel = Polynomial(np.int32(3), np.float32(0.5), np.int64(1))  # type: ignore[arg-type]
        assert repr(kernel) == "Polynomial(degree=3, gamma=0.5, coef0=1.0)"

    def test_kernels_cannot_be_changed(self) -> None:
        assert_frozen(Polynomial(), "degree")

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
            ({"gamma": "sqrt"}, ValueError, "gamma='sqrt' is unknown"),
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
        assert_refused(Polynomial, parameters, error, message)


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
        X = to_layout(np.array([[1e200, 1e200], [1e200, -1e200]]))
        for call in (Polynomial(gamma=1e-20), Polynomial(gamma=1e-20).diagonal):
            with pytest.raises(ValueError, match=r"overflows float64: .* is inf"):
                call(X)

    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_inner_products_beyond_float32(self, to_layout: Callable[[Any], Any]) -> None:
        X = to_layout(np.array([[1e30, 1e30]], dtype=np.float32))
        with pytest.raises(ValueError, match=r"overflows float32: .* is 2e\+40"):
            Polynomial(gamma=1e-20)(X)
        np.testing.assert_allclose(Polynomial(gamma=1e-60)(X), 4.0, rtol=1e-6)

    def test_gamma_beyond_float32_is_not_rounded_away(self) -> None:
        X = np.array([[1e18]], dtype=np.float32)
        np.testing.assert_allclose(Polynomial(degree=1, gamma=1e-50)(X), 1e-14, rtol=1e-6)

    def test_underflow_is_zero(self) -> None:
        assert Polynomial(degree=2000)([[0.5]])[0, 0] == 0.0
