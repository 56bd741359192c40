"""The exact kernels of the inner product against naive evaluation, and the disk they live in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels import DotProduct, Polynomial
from powersketch.kernels.series import CoefficientSeries, callable_series, exponential_series


def points(rows: int, norm: float = 0.9, columns: int = 7, seed: int = 0) -> NDArray[np.float64]:
    """Rows of different lengths, the longest of the given norm."""
    generator = np.random.default_rng(seed)
    X: NDArray[np.float64] = generator.normal(size=(rows, columns))
    X *= norm * np.linspace(0.2, 1.0, rows)[:, np.newaxis] / np.linalg.norm(X, axis=1)[:, None]
    return X


FUNCTIONS: list[tuple[Any, Any]] = [
    ("exp", np.exp),
    ("cosh", np.cosh),
    ("sinh", np.sinh),
    ("inverse", lambda t: 1 / (1 - t)),
    ("inverse_sqrt", lambda t: (1 - t) ** -0.5),
    ("log", lambda t: -np.log(1 - t)),
    ("arcsin", np.arcsin),
    ([0.5, 0.0, 2.0], lambda t: 0.5 + 2 * t**2),
    (exponential_series(3.0), lambda t: np.exp(3 * t)),
    (lambda t: 1 / (2 - t), lambda t: 1 / (2 - t)),
    (callable_series(np.exp), np.exp),
]
functions = pytest.mark.parametrize(("function", "expected"), FUNCTIONS)


class TestMatrix:
    @functions
    def test_equals_naive_evaluation(self, function: Any, expected: Any) -> None:
        X, Y = points(20), points(15, seed=1)
        kernel = DotProduct(function)
        np.testing.assert_allclose(kernel(X, Y), expected(X @ Y.T), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(kernel(X), expected(X @ X.T), rtol=1e-13, atol=1e-15)
        squared = np.sum(X * X, axis=1)
        np.testing.assert_allclose(kernel.diagonal(X), expected(squared), rtol=1e-13, atol=1e-15)

    @functions
    def test_positive_semidefinite(self, function: Any, expected: Any) -> None:
        eigenvalues = np.linalg.eigvalsh(DotProduct(function)(points(30)))
        assert eigenvalues[0] > -1e-13 * eigenvalues[-1]

    @functions
    def test_sparse_and_float32(self, function: Any, expected: Any) -> None:
        X = points(20)
        X[np.abs(X) < 0.1] = 0.0
        kernel = DotProduct(function)
        np.testing.assert_allclose(kernel(sparse.csr_array(X)), kernel(X), rtol=1e-13, atol=1e-15)
        single = kernel(X.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, kernel(X), rtol=1e-5, atol=1e-6)

    def test_exp_is_the_default(self) -> None:
        X = points(5)
        np.testing.assert_array_equal(DotProduct()(X), DotProduct("exp")(X))

    def test_coefficients_of_a_polynomial_kernel(self) -> None:
        X, polynomial = points(10, norm=3.0), Polynomial(degree=5, gamma=0.5, coef0=1.0)
        np.testing.assert_allclose(
            DotProduct(polynomial.power_series())(X), polynomial(X), rtol=1e-12
        )

    def test_callables_see_real_numbers_only(self) -> None:
        kernel = DotProduct(np.vectorize(math.exp))
        np.testing.assert_allclose(kernel(points(5)), DotProduct()(points(5)), rtol=1e-15)

    def test_entire_functions_take_all_rows(self) -> None:
        X = points(4, norm=20.0)
        np.testing.assert_allclose(DotProduct("cosh")(X), np.cosh(X @ X.T), rtol=1e-12)


class TestDisk:
    @pytest.mark.parametrize("name", ["inverse", "inverse_sqrt", "log", "arcsin"])
    def test_rows_outside(self, name: str) -> None:
        X, Y = points(5, norm=1.1), points(5, norm=0.5)
        kernel = DotProduct(name)
        for call in (
            lambda: kernel(X),
            lambda: kernel(Y, X),
            lambda: kernel(X, Y),
            lambda: kernel.diagonal(X),
            lambda: kernel.product(X, np.ones(5)),
        ):
            with pytest.raises(ValueError, match=r"norm of a row is 1\.21; .*radius 1: scale"):
                call()

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_rows_of_norm_one_are_inside_where_the_series_converges_there(self, dtype: Any) -> None:
        X = points(200, columns=50).astype(dtype)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        assert (np.sum(X.astype(np.float64) ** 2, axis=1) > 1.0).any()
        K = DotProduct("arcsin")(X)
        # Next to one, arcsin turns a rounding into its root.
        rounding = math.sqrt(64 * float(np.finfo(dtype).eps))
        np.testing.assert_allclose(np.diag(K), math.pi / 2, atol=rounding)

    def test_norm_one_is_outside_of_an_open_disk(self) -> None:
        with pytest.raises(ValueError, match=r"squared norm of a row is 1; .*radius 1"):
            DotProduct("inverse")([[1.0, 0.0]])

    def test_callable_without_a_value(self) -> None:
        with pytest.raises(ValueError, match=r"is inf at t=1; .*scale the data down"):
            DotProduct(lambda t: 1 / (1 - t))([[1.0, 0.0]])

    def test_overflow(self) -> None:
        with pytest.raises(ValueError, match=r"above the largest float64 at t=1e\+06: scale"):
            DotProduct("exp")([[1000.0]])
        with pytest.raises(ValueError, match=r"overflows float32.*float64"):
            DotProduct("exp")(np.array([[10.0]], dtype=np.float32))


class TestSeries:
    def test_of_a_name_and_of_coefficients(self) -> None:
        assert DotProduct("inverse").power_series().radius == 1.0
        np.testing.assert_array_equal(
            DotProduct([1.0, 2.0]).power_series().coefficients(1), [1.0, 2.0]
        )
        given_series = CoefficientSeries([1.0])
        assert DotProduct(given_series).power_series() is given_series

    def test_of_a_callable_for_a_radius(self) -> None:
        series = DotProduct(np.exp).power_series(radius=5.0)
        assert series.radius == 5.0
        np.testing.assert_allclose(series.coefficients(2), [1.0, 1.0, 0.5], rtol=1e-10)

    def test_of_a_callable_that_is_not_positive_definite(self) -> None:
        kernel = DotProduct(np.cos)
        with pytest.raises(ValueError, match=r"coefficient 2 of cos is -0\.5"):
            kernel.power_series()

    def test_sums_to_the_kernel(self) -> None:
        X, kernel = points(10), DotProduct("log")
        coefficients = kernel.power_series().coefficients(300)
        summed = np.polynomial.polynomial.polyval(X @ X.T, coefficients)
        np.testing.assert_allclose(summed, kernel(X), rtol=1e-12)


class TestParameters:
    @pytest.mark.parametrize(
        ("function", "error", "message"),
        [
            ("tan", ValueError, "series='tan' is unknown; allowed are the names 'exp'"),
            (None, TypeError, "series=None is a NoneType; allowed are"),
            ([1.0, -1.0], ValueError, "coefficient 1 is -1: the kernel is not positive definite"),
            ([], ValueError, "shape"),
        ],
    )
    def test_refused(self, function: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            DotProduct(function)

    def test_representation(self) -> None:
        assert repr(DotProduct("log")) == "DotProduct(series='log', gamma=1.0)"


def test_masked_coefficients_are_refused() -> None:
    with pytest.raises(ValueError, match="coefficients is a masked array"):
        DotProduct(np.ma.array([1.0, 2.0], mask=[False, True]))
