"""Systems that the tests of the solvers share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    NeuralTangent,
    Polynomial,
)
from powersketch.linalg import SolverResult

KERNELS: list[Kernel] = [
    Gaussian(gamma=0.7),
    Polynomial(degree=5, coef0=0.5),
    ArcCosine(order=1),
    NeuralTangent(depth=2),
    DotProduct([0.5, 1.0, 0.0, 2.0]),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def rows(count: int, columns: int = 6, seed: int = 0) -> NDArray[np.float64]:
    """Rows of about unit length, a third of their entries zero."""
    generator = np.random.default_rng(seed)
    X: NDArray[np.float64] = generator.normal(size=(count, columns)) / np.sqrt(columns)
    X[generator.random(X.shape) < 1 / 3] = 0.0
    return X


def vectors(*shape: int, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=shape)


def positive_matrix(size: int, condition: float, seed: int = 2) -> NDArray[np.float64]:
    """A symmetric matrix with eigenvalues from 1 down to 1 / condition."""
    Q, _ = np.linalg.qr(vectors(size, size, seed=seed))
    matrix = Q * np.geomspace(1.0, 1.0 / condition, size) @ Q.T
    return (matrix + matrix.T) / 2.0


def true_residuals(A: Any, result: SolverResult, b: NDArray[Any]) -> NDArray[np.float64]:
    """‖b − A x‖ / ‖b‖ of every column, by brute force."""
    x, right = result.x.reshape(len(b), -1), np.asarray(b, float).reshape(len(b), -1)
    norms: NDArray[np.float64] = np.linalg.norm(right - A @ x, axis=0)
    return norms / np.linalg.norm(right, axis=0)


def tall_matrix(rows: int = 80, columns: int = 12, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).standard_normal((rows, columns))


def dense(operator: Any) -> Any:
    return operator.matmat(np.eye(operator.shape[1]))
