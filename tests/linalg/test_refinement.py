"""Residuals computed anew: float64 accuracy from float32 products, none worse than zero."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from sklearn.exceptions import ConvergenceWarning

from powersketch.kernels import Gaussian
from powersketch.linalg import (
    CholeskyFactor,
    FactorOperator,
    KernelOperator,
    SymmetricOperator,
    conjugate_gradients,
    preconditioned_gradient,
    warn_if_not_converged,
)
from tests.linalg.systems import positive_matrix, rows, true_residuals, vectors

_N = 150
_MANY = 400
# Near the largest number, and below the smallest of full precision.
_EXTREMES = [1e308, 1e-309]


def _kernel_system(condition: float) -> tuple[Any, float, Any]:
    """Float32 rows and the alpha that gives the matrix its condition number."""
    X = rows(_N, 3).astype(np.float32)
    matrix = Gaussian()(X.astype(np.float64))
    alpha = float(np.linalg.eigvalsh(matrix)[-1] / condition)
    return X, alpha, matrix + alpha * np.eye(_N)


@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_a_kernel_stored_in_float32(condition: float) -> None:
    X, alpha, matrix = _kernel_system(condition)
    operator = KernelOperator(Gaussian(), X, alpha, memory_budget=4 * _N**2)
    b = vectors(_N, 2)
    result = conjugate_gradients(operator, b, tol=1e-11)
    assert operator.stored == "float32"
    assert result.converged
    assert true_residuals(matrix, result, b).max() <= 1.1e-11


class _Rounded(SymmetricOperator):
    """A diagonal matrix whose products have rounding errors."""

    rounding = float(np.finfo(np.float32).eps)

    def __init__(self, diagonal: Any) -> None:
        super().__init__(len(diagonal))
        self._diagonal, self._errors = diagonal[:, np.newaxis], np.random.default_rng(0)
        self.exact_products = 0

    def describe(self) -> str:
        return "diagonal, rounded"

    def exact_product(self, V: Any) -> Any:
        self.exact_products += 1
        return self._diagonal * V

    def _matmat(self, V: Any) -> Any:
        product = self._diagonal * V
        errors = self._errors.standard_normal(V.shape) / np.sqrt(len(V))
        return product + 1e-5 * np.linalg.norm(product, axis=0) * errors


@pytest.mark.parametrize("seed", range(6))
def test_rounded_products_aim_below_the_tolerance(seed: int) -> None:
    """Else residuals that are a little above it would cost a new start."""
    operator = _Rounded(np.logspace(0.0, -2.0, 400))
    b = np.random.default_rng(seed).standard_normal((400, 8))
    result = conjugate_gradients(operator, b, tol=1e-4)
    assert result.converged
    assert operator.exact_products == 1


def test_a_factor_in_float32_as_preconditioner() -> None:
    X, alpha, matrix = _kernel_system(1e5)
    operator = KernelOperator(Gaussian(), X, alpha, memory_budget=4 * _N**2)
    factor = CholeskyFactor(Gaussian()(X), alpha=alpha, dtype=np.float32)
    b = vectors(_N)
    result = conjugate_gradients(operator, b, preconditioner=factor, tol=1e-11)
    assert result.converged
    assert result.iterations <= 12
    assert true_residuals(matrix, result, b) <= 1.1e-11


def test_a_condition_number_beyond_float32_is_left_to_exact_products() -> None:
    X, alpha, matrix = _kernel_system(1e9)
    operator = KernelOperator(Gaussian(), X, alpha, memory_budget=4 * _N**2)
    inverse = CholeskyFactor(matrix.copy())
    b = vectors(_N)
    result = conjugate_gradients(operator, b, preconditioner=inverse, tol=1e-7)
    assert result.converged
    assert true_residuals(matrix, result, b) <= 1.1e-7


def test_few_exact_products_do() -> None:
    X, alpha, _ = _kernel_system(1e4)
    operator = KernelOperator(Gaussian(), X, alpha, memory_budget=4 * _N**2)
    calls, exact = [], operator.exact_product
    operator.exact_product = lambda V: calls.append(V.shape) or exact(V)
    result = conjugate_gradients(operator, vectors(_N), tol=1e-11)
    assert result.converged
    assert len(calls) <= 6 < result.iterations


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_and_matrices_of_either_precision(dtype: Any) -> None:
    Z, b = vectors(_N, 40).astype(dtype), vectors(_N)
    matrix = Z.astype(np.float64) @ Z.T.astype(np.float64) + 0.1 * np.eye(_N)
    result = conjugate_gradients(FactorOperator(Z, alpha=0.1), b, tol=1e-11)
    assert result.converged
    assert true_residuals(matrix, result, b) <= 1.1e-11
    dense = matrix.astype(dtype)
    result = conjugate_gradients(dense, b, tol=1e-11)
    assert true_residuals(dense.astype(np.float64), result, b) <= 1.1e-11
    assert result.operator == f"dense matrix in {np.dtype(dtype)}"


def test_stagnation_is_noticed_soon() -> None:
    A = positive_matrix(_N, 1e10)
    steps: list[int] = []
    result = conjugate_gradients(
        A,
        vectors(_N),
        preconditioner=np.linalg.inv(A),
        tol=1e-14,
        callback=lambda k, _: steps.append(k),
    )
    assert not result.converged
    assert len(steps) == result.iterations < 100
    assert result.residual == pytest.approx(true_residuals(A, result, vectors(_N))[0], rel=0.5)
    assert result.residual < 1e-4
    assert "stagnated at" in result.message
    assert "2.2e-16 times the condition number" in result.message


class _Noisy(LinearOperator):
    """A matrix whose products are wrong in the fourth digit, without saying so."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix.dtype, matrix.shape)
        self.matrix, self.noise = matrix, np.random.default_rng(0)

    def _matmat(self, V: Any) -> Any:
        return self.matrix @ V * (1.0 + 1e-4 * self.noise.normal(size=V.shape))

    def exact_product(self, V: Any) -> Any:
        return self.matrix @ V


def test_a_recursion_that_went_astray_is_put_right() -> None:
    A, b = positive_matrix(_N, 30.0), vectors(_N, 2)
    result = conjugate_gradients(_Noisy(A), b, tol=1e-10)
    assert result.converged
    assert true_residuals(A, result, b).max() <= 1e-10


def test_the_best_solution_is_kept_where_a_restart_only_loses() -> None:
    A = positive_matrix(_N, 1e13)
    result = conjugate_gradients(A, vectors(_N), preconditioner=np.linalg.inv(A), tol=1e-14)
    assert not result.converged
    assert result.residual <= 1.0
    assert result.residual == pytest.approx(true_residuals(A, result, vectors(_N))[0], rel=0.5)


def _repeated_rows() -> Any:
    return np.repeat(np.random.default_rng(0).standard_normal((_MANY // 2, 5)), 2, axis=0)


def test_repeated_rows_end_in_few_steps_where_they_began() -> None:
    X, kernel = _repeated_rows(), Gaussian(gamma=0.5)
    b = np.random.default_rng(100).standard_normal(_MANY)
    operator, factor = KernelOperator(kernel, X), CholeskyFactor(kernel(X))
    result = conjugate_gradients(operator, b, preconditioner=factor)
    assert not result.converged
    assert result.iterations < 100
    assert result.residual <= 1.0 + 1e-12
    assert true_residuals(kernel(X), result, b)[0] == pytest.approx(result.residual)
    assert "stagnated" in result.message
    assert "a larger alpha than 0" in result.message


def test_a_column_in_the_range_of_a_singular_matrix_is_solved_beside_one_that_is_not() -> None:
    X, kernel = _repeated_rows(), Gaussian(gamma=0.5)
    matrix = kernel(X)
    b = np.column_stack((vectors(_MANY), matrix @ vectors(_MANY, seed=5)))
    result = conjugate_gradients(
        KernelOperator(kernel, X), b, preconditioner=CholeskyFactor(matrix)
    )
    residuals = true_residuals(kernel(X), result, b)
    assert residuals[0] <= 1.0 + 1e-12
    assert residuals[1] <= 1.1e-6


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 50])
def test_the_last_step_is_bounded_too(limit: int) -> None:
    X, kernel = _repeated_rows(), Gaussian(gamma=0.5)
    factor = CholeskyFactor(kernel(X))
    result = conjugate_gradients(
        KernelOperator(kernel, X), vectors(_MANY), preconditioner=factor, max_iterations=limit
    )
    assert result.iterations <= limit
    assert result.residual <= 1e8


class _Inconsistent(LinearOperator):
    """A matrix whose products in a cycle are too small, so that every step is too long."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix.dtype, matrix.shape)
        self.matrix = matrix

    def _matmat(self, V: Any) -> Any:
        return self.matrix @ V * 1e-3

    def exact_product(self, V: Any) -> Any:
        return self.matrix @ V


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_start_is_not_lost_in_the_last_step(limit: int) -> None:
    A, b = positive_matrix(30, 50.0), vectors(30)
    start = conjugate_gradients(A, b, tol=1e-3).x
    result = conjugate_gradients(_Inconsistent(A), b, tol=1e-8, x0=start, max_iterations=limit)
    np.testing.assert_allclose(result.x, start, rtol=1e-14)
    assert result.residual <= 1e-3
    assert result.history[-1] == result.residual


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", _EXTREMES)
def test_the_largest_and_the_smallest_right_hand_sides(size: float, dtype: Any) -> None:
    A, b = 2.0 * np.eye(4, dtype=dtype), np.full(4, size)
    result = conjugate_gradients(A, b)
    np.testing.assert_array_equal(result.x, b / 2.0)
    assert result.converged
    assert result.residual == 0.0
    descended = preconditioned_gradient(A, b, np.eye(4), random_state=0)
    np.testing.assert_allclose(descended.x, b / 2.0, rtol=1e-6)
    assert descended.converged


def test_columns_of_all_sizes_at_once() -> None:
    A, b = positive_matrix(30, 50.0), vectors(30)
    b /= np.abs(b).max()
    sizes = np.array([1e306, 1.0, 0.0, 1e-200, 1e-300])
    result = conjugate_gradients(A, b[:, np.newaxis] * sizes, tol=1e-12)
    single = conjugate_gradients(A, b, tol=1e-12).x
    np.testing.assert_allclose(result.x, single[:, np.newaxis] * sizes, rtol=1e-9)
    assert result.converged


def test_a_solution_beyond_the_range_is_not_called_one() -> None:
    result = conjugate_gradients(np.eye(4) / 16.0, np.full(4, 1e308))
    assert not result.converged
    assert "beyond the range of float64" in result.message


@pytest.mark.parametrize("size", [1e-309, 1e-200])
@pytest.mark.parametrize("kind", ["dense", "float32", "kernel", "factor"])
def test_a_start_that_is_huge_next_to_the_right_hand_side(size: float, kind: str) -> None:
    X = rows(20)
    operator = {
        "dense": 2.0 * np.eye(20),
        "float32": 2.0 * np.eye(20, dtype=np.float32),
        "kernel": KernelOperator(Gaussian(), X, alpha=1.0),
        "factor": FactorOperator(X, alpha=1.0),
    }[kind]
    result = conjugate_gradients(operator, np.full(20, size), x0=np.ones(20))
    without = conjugate_gradients(operator, np.full(20, size))
    np.testing.assert_array_equal(result.x, without.x)
    assert result.converged


def test_a_matrix_in_float64_is_not_copied() -> None:
    A = np.eye(1000)
    tracemalloc.start()
    try:
        conjugate_gradients(A, np.ones(1000), preconditioner=A)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < A.nbytes / 4


def test_the_text_of_a_result_is_short_and_has_no_arrays() -> None:
    result = conjugate_gradients(positive_matrix(500, 10.0), vectors(500, 3))
    text = repr(result)
    assert len(text) < 400
    assert "array" not in text
    for part in (
        "converged=True",
        f"iterations={result.iterations}",
        f"residual={result.residual:.2g}",
        "(500, 3)",
        "dense matrix in float64",
        "preconditioner: none",
        result.message,
    ):
        assert part in text


def test_an_estimated_residual_is_said_to_be_one() -> None:
    result = conjugate_gradients(np.eye(2), np.ones(2))
    assert result.residual_interval is None
    estimated = replace(result, residual=0.5, residual_interval=(0.4, 0.625))
    assert "residual=0.5 (estimated, between 0.4 and 0.62)" in repr(estimated)


def test_results_cannot_be_changed() -> None:
    result = conjugate_gradients(np.eye(2), np.ones(2))
    with pytest.raises(FrozenInstanceError):
        result.converged = False  # type: ignore[misc]


def test_a_warning_for_what_has_not_converged() -> None:
    good = conjugate_gradients(np.eye(2), np.ones(2))
    bad = conjugate_gradients(positive_matrix(20, 1e4), vectors(20), max_iterations=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_not_converged(good)
    with pytest.warns(ConvergenceWarning, match="not converged: a residual of") as caught:
        warn_if_not_converged(bad)
    assert caught[0].filename == __file__
