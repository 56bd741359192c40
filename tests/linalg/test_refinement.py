"""Residuals computed anew: float64 accuracy from float32 products, and an end where it ends."""

from __future__ import annotations

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
)
from tests.linalg.systems import positive_matrix, rows, true_residuals, vectors

_N = 150


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
