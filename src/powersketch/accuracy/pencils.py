"""The pencil (Z Zᵀ + αI, K + αI) as a symmetric matrix that vectors can be multiplied with."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from powersketch.accuracy.data_rows import DataRows, FittedMap, Float64, kernel_matrix
from powersketch.execution import interruptible
from powersketch.kernels import Kernel

# K is stored in at most 1 GiB, and else computed again for every product.
_STORED_BYTES = 2**30
_FUNCTION = 100.0  # what a kernel's function of an inner product costs, in multiplications


class ExactPencil:
    """L⁻¹ (Z Zᵀ + αI) L⁻ᵀ with L Lᵀ = K + αI; its eigenvalues are those of the pencil."""

    def __init__(self, sketch: FittedMap, rows: DataRows, alpha: float, n_jobs: int | None) -> None:
        self._alpha, self._features = alpha, rows.features(sketch)
        K = kernel_matrix(sketch.kernel_, rows, n_jobs)
        # Z Zᵀ is positive semidefinite, and no eigenvalue of K is above its trace.
        self.floor = alpha / (float(np.trace(K)) + alpha)
        K[np.diag_indices_from(K)] += alpha
        # NumPy's lets Ctrl-C through, which SciPy's does not.
        self._factor = interruptible(lambda: np.linalg.cholesky(K))

    def product(self, vector: Float64) -> Float64:
        """Return the matrix times the vector."""
        inner = self._solve(vector, "T")
        return self._solve(self._features @ (self._features.T @ inner) + self._alpha * inner, "N")

    def _solve(self, vector: Float64, transpose: str) -> Float64:
        solution: Float64 = solve_triangular(
            self._factor, vector, lower=True, trans=transpose, check_finite=False
        )
        return solution


class InversePencil:
    """(Z Zᵀ + αI)^(−1/2) (K + αI) (Z Zᵀ + αI)^(−1/2), the inverse: it takes products with K only.

    Large eigenvalues of the pencil are small ones here, and need more steps to be found.
    """

    def __init__(self, sketch: FittedMap, rows: DataRows, alpha: float, n_jobs: int | None) -> None:
        self._alpha = alpha
        self._exact_product = kernel_product(sketch.kernel_, rows, n_jobs)
        Z = rows.features(sketch)
        wide = Z.shape[1] >= Z.shape[0]
        gram = interruptible(lambda: Z @ Z.T if wide else Z.T @ Z)
        squares, vectors = interruptible(lambda: np.linalg.eigh(gram))
        squares = np.maximum(squares, 0.0)
        self._vectors, self._features = vectors, None if wide else Z
        roots = np.sqrt(squares + alpha)
        # (s + α)^(−1/2) − α^(−1/2) without cancellation; a factor s less where Z multiplies twice.
        self._factors = -1.0 / (math.sqrt(alpha) * roots * (math.sqrt(alpha) + roots))
        if wide:
            self._factors *= squares
        # K is positive semidefinite, so that K + αI is at least αI.
        self.floor = alpha / (float(squares.max()) + alpha)

    def product(self, vector: Float64) -> Float64:
        """Return the matrix times the vector."""
        inner = self._inverse_root(vector)
        return self._inverse_root(self._exact_product(inner) + self._alpha * inner)

    def _inverse_root(self, vector: Float64) -> Float64:
        reduced = vector if self._features is None else self._features.T @ vector
        change: Float64 = self._vectors @ (self._factors * (self._vectors.T @ reduced))
        if self._features is not None:
            change = self._features @ change
        return change + vector / math.sqrt(self._alpha)


def kernel_product(
    kernel: Kernel, rows: DataRows, n_jobs: int | None
) -> Callable[[Float64], Float64]:
    """Return how K is multiplied, with K stored if it is small enough."""
    if not fits(rows.count):
        return lambda V: np.asarray(kernel.product(rows.matrix, V, n_jobs=n_jobs))
    K = kernel_matrix(kernel, rows, n_jobs)
    return lambda V: K @ V


def fits(count: int) -> bool:
    """Tell whether so many rows have a kernel matrix that may be stored."""
    return 8 * count * count <= _STORED_BYTES


def kernel_work(rows: DataRows, products: int) -> float:
    """Return about how many multiplications so many products with K take."""
    matrix, count = rows.matrix, float(rows.count)
    length: float = matrix.nnz / count if sparse.issparse(matrix) else matrix.shape[1]
    times = 1 if fits(rows.count) else products
    return times * count * count * (length + _FUNCTION) + products * count * count


def pencil_work(rows: DataRows, components: int, products: int) -> float:
    """Return about how many multiplications the spectral error takes."""
    shorter = float(min(components, rows.count))
    if fits(rows.count):
        return kernel_work(rows, products) + float(rows.count) ** 3 / 3.0
    features = shorter * shorter * (max(components, rows.count) + 10.0 * shorter)
    return kernel_work(rows, products) + features
