"""Singular matrices, and numbers near the ends of their range: no answer is worse than zero."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

from powersketch.kernels import Gaussian
from powersketch.linalg import (
    CholeskyFactor,
    FactorOperator,
    KernelOperator,
    conjugate_gradients,
    preconditioned_gradient,
)
from tests.linalg.systems import positive_matrix, rows, true_residuals, vectors

_N = 400
# Near the largest number, and below the smallest of full precision.
_EXTREMES = [1e308, 1e-309]


def _repeated_rows() -> Any:
    return np.repeat(np.random.default_rng(0).standard_normal((_N // 2, 5)), 2, axis=0)


def test_repeated_rows_end_in_few_steps_where_they_began() -> None:
    X, kernel = _repeated_rows(), Gaussian(gamma=0.5)
    b = np.random.default_rng(100).standard_normal(_N)
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
    b = np.column_stack((vectors(_N), matrix @ vectors(_N, seed=5)))
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
        KernelOperator(kernel, X), vectors(_N), preconditioner=factor, max_iterations=limit
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
