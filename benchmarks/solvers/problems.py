"""Kernel systems of a chosen condition number, their solutions and true residuals."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import unit_rows
from powersketch import solve_kernel_system
from powersketch.kernels import Gaussian, Kernel, NeuralTangent, Polynomial
from powersketch.linalg import SolverResult

CLUSTERS, RANK = 100, 20

KERNELS: dict[str, Kernel] = {
    "Gaussian": Gaussian(1.0),
    "polynomial, degree 4": Polynomial(4),
    "polynomial, degree 16": Polynomial(16),
    "polynomial, degree 64": Polynomial(64),
    "neural tangent": NeuralTangent(),
}


@dataclass(frozen=True, eq=False)
class KernelSystem:
    """(K + alpha I) x = y with a random y, and with its matrix in float64."""

    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    alpha: float
    matrix: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel, X: np.ndarray, alpha: float) -> "KernelSystem":
        y = np.random.default_rng(1).standard_normal(len(X))
        matrix = kernel(X, dtype=np.float64, n_jobs=-1)
        matrix[np.diag_indices(len(X))] += alpha
        return cls(kernel, X, y, alpha, matrix)

    def condition(self) -> float:
        eigenvalues = np.linalg.eigvalsh(self.matrix)
        return float(eigenvalues[-1] / eigenvalues[0])

    def solved(self, **options: Any) -> SolverResult:
        return solved(self.X, self.y, self.kernel, alpha=self.alpha, **options)

    def residual(self, x: np.ndarray) -> float:
        """Return ‖(K + alpha I) x − y‖ / ‖y‖."""
        return float(np.linalg.norm(self.matrix @ x - self.y) / np.linalg.norm(self.y))


def solved(X: np.ndarray, y: np.ndarray, kernel: Kernel, **options: Any) -> SolverResult:
    """Solve with all processors; tables show residuals that were not reached, no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve_kernel_system(X, y, kernel, random_state=0, n_jobs=-1, **options)


def clustered_rows(rows: int, columns: int, distance: float) -> np.ndarray:
    """Return rows of norm one, in clusters of rows about so far from each other.

    The closer they are, the worse is the condition of their kernel matrix; at distance 0 rows are
    repeated and the matrix is singular.
    """
    generator = np.random.default_rng(0)
    factors = generator.standard_normal((CLUSTERS, RANK))
    centres = unit_rows(factors @ generator.standard_normal((RANK, columns)))
    noise = unit_rows(generator.standard_normal((rows, columns)))
    return unit_rows(centres[np.arange(rows) % CLUSTERS] + distance * noise)
