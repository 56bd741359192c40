"""Kernel systems to solve, and the truth about solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from powersketch import solve_kernel_system
from powersketch.kernels import ArcCosine, DotProduct, Gaussian, Kernel, NeuralTangent, Polynomial

ALPHA = 1e-3
KERNELS = {
    "gaussian": Gaussian(gamma=0.5),
    "wide gaussian": Gaussian(gamma=0.01),
    "polynomial": Polynomial(degree=4, coef0=1.0),
    "high degree": Polynomial(degree=64, gamma=0.02, coef0=0.98),
    "arc-cosine": ArcCosine(),
    "neural tangent": NeuralTangent(depth=2),
    "dot product": DotProduct("exp"),
}


def long_rows(rows: int = 120, columns: int = 900, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Rows of norm one, longer than their number, with a decaying spectrum."""
    X = np.random.default_rng(seed).standard_normal((rows, columns))
    X *= np.arange(1, columns + 1) ** -0.5
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


def short_rows(rows: int = 400, columns: int = 5, seed: int = 0, dtype: Any = np.float64) -> Any:
    """Many rows in few dimensions: their kernel matrices have decaying spectra."""
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)


def sparse_rows(rows: int = 120, columns: int = 3000, seed: int = 0, density: float = 0.02) -> Any:
    return sp.random_array(
        (rows, columns), density=density, format="csr", random_state=np.random.default_rng(seed)
    )


def targets(rows: int, columns: int | None = None, seed: int = 1) -> Any:
    shape = rows if columns is None else (rows, columns)
    return np.random.default_rng(seed).standard_normal(shape)


def true_residual(X: Any, y: Any, kernel: Kernel, alpha: float, x: Any) -> Any:
    """‖y − (K + alpha I) x‖ / ‖y‖ of the worst column, from K in full."""
    K = kernel(X, dtype=np.float64)
    errors = np.linalg.norm((K @ x + alpha * x - y).reshape(len(y), -1), axis=0)
    return float((errors / np.linalg.norm(y.reshape(len(y), -1), axis=0)).max())


def dense(operator: Any) -> Any:
    return operator.matmat(np.eye(operator.shape[1]))


def sketched_solution(X: Any, y: Any, kernel: Kernel = KERNELS["gaussian"], **options: Any) -> Any:
    """Solve a sketched system, whose residual has to be reported as too large."""
    options = {"alpha": ALPHA, "random_state": 0, "operator": "sketched"} | options
    with pytest.warns(ConvergenceWarning, match="use operator='exact'"):
        return solve_kernel_system(X, y, kernel, **options)
