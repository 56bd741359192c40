"""How far Z Zᵀ + αI is from K + αI as a quadratic form: extreme eigenvalues of the pencil."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular

from powersketch.accuracy.pairs import Interval
from powersketch.accuracy.rows import DataRows, FittedMap
from powersketch.arrays import Float64, Vector, is_sparse
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.kernels import Kernel
from powersketch.linalg import ExtremeEigenvalues, extreme_eigenvalues
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

PRODUCTS = 32
_DENSE_ROWS = 1500
MOST_WORK = 1e13
_LOOSE = 2.0
# A Cholesky factor of K + αI exists in float64 if α is at least this many rounding errors.
_ROUNDING_ERRORS = 8.0
# K is stored in at most 1 GiB, and else computed again for every product.
_STORED_BYTES = 2**30
_FUNCTION = 100.0  # what a kernel's function of an inner product costs, in multiplications


@storable
@dataclass(frozen=True)
class SpectralError:
    """The eps with (1 − eps)(K + αI) ⪯ Z Zᵀ + αI ⪯ (1 + eps)(K + αI).

    Parameters
    ----------
    alpha : float
        The α.
    eps : Interval
        Its `low` is attained by a known vector; its `high` holds with the confidence asked for.
    smallest, largest : Interval
        The extreme eigenvalues of the pencil (Z Zᵀ + αI, K + αI), both 1 if Z is exact.
    rows : int
        How many rows the matrices have.
    method : {"dense", "lanczos", "subset"}
        All eigenvalues; Lanczos steps; or the eigenvalues of a random subset of the rows, which
        can only be nearer to 1, so that there is no upper bound of eps.
    message : str
        What the figures mean, and what to do where they are of little use.
    """

    alpha: float
    eps: Interval
    smallest: Interval
    largest: Interval
    rows: int
    method: str
    message: str


def spectral_error(
    sketch: FittedMap,
    rows: DataRows,
    alpha: float,
    streams: RandomStreams,
    *,
    confidence: float,
    products: int = PRODUCTS,
    n_jobs: int | None = None,
) -> SpectralError:
    """Return the spectral error by the best method that the number of rows allows."""
    if rows.count <= _DENSE_ROWS:
        return _dense_error(sketch, rows, alpha, n_jobs)
    if pencil_work(rows, rows.feature_count(sketch), products) > MOST_WORK:
        return _subset_error(sketch, rows, alpha, streams, n_jobs)
    stored = kernel_is_stored(rows.count)
    pencil = (ExactPencil if stored else InversePencil)(sketch, rows, alpha, n_jobs)
    eigenvalues = extreme_eigenvalues(
        pencil.product,
        streams.normal("start", rows.count),
        products,
        confidence=confidence,
        floor=pencil.floor,
    )
    how = f"from {products} products; the upper bound holds with probability {confidence:.4g}"
    return lanczos_error(eigenvalues if stored else eigenvalues.inverse(), alpha, rows.count, how)


def check_alpha_above_rounding(alpha: float, diagonal: Vector) -> None:
    """Refuse an alpha that the rounding errors of K, with this diagonal, would hide."""
    with np.errstate(over="ignore"):
        trace = float(diagonal.sum())
    if math.isinf(trace):
        raise InputError(
            "the trace of the kernel matrix overflows float64; allowed are traces up to "
            f"{np.finfo(np.float64).max:.3g}: scale the rows down."
        )
    lowest = _ROUNDING_ERRORS * float(np.finfo(np.float64).eps) * trace
    if alpha <= lowest:
        raise InputError(
            f"alpha={alpha:g} is below the rounding errors of a kernel matrix of trace "
            f"{trace:.3g}; choose alpha above {lowest:.1e}."
        )


def _dense_error(
    sketch: FittedMap, rows: DataRows, alpha: float, n_jobs: int | None
) -> SpectralError:
    K = rows.kernel_matrix(sketch.kernel_, n_jobs)
    Z = rows.features(sketch)
    approximate = interruptible(lambda: Z @ Z.T)
    K[np.diag_indices_from(K)] += alpha
    approximate[np.diag_indices_from(K)] += alpha
    values = interruptible(lambda: eigh(approximate, K, eigvals_only=True, check_finite=False))
    smallest, largest = float(values[0]), float(values[-1])
    eps = max(largest - 1.0, 1.0 - smallest, 0.0)
    return SpectralError(
        alpha,
        Interval(eps, eps, eps),
        Interval(smallest, smallest, smallest),
        Interval(largest, largest, largest),
        rows.count,
        "dense",
        "from all eigenvalues",
    )


def _subset_error(
    sketch: FittedMap, rows: DataRows, alpha: float, streams: RandomStreams, n_jobs: int | None
) -> SpectralError:
    """Return what some of the rows tell: restricting a pencil moves its ends towards each other."""
    chosen = np.sort(streams.sample("subset", rows.count, _DENSE_ROWS))
    part = _dense_error(sketch, rows.take(chosen), alpha, n_jobs)
    return SpectralError(
        alpha,
        Interval(part.eps.value, part.eps.value, math.inf),
        Interval(part.smallest.value, 0.0, part.smallest.value),
        Interval(part.largest.value, part.largest.value, math.inf),
        rows.count,
        "subset",
        f"a lower bound only, from {_DENSE_ROWS} of the rows: products with the kernel matrix of "
        f"all {rows.count} would take too long; certify a few thousand rows to get both bounds",
    )


def lanczos_error(
    eigenvalues: ExtremeEigenvalues, alpha: float, rows: int, how: str
) -> SpectralError:
    """Return the error from bounds of the pencil's extreme eigenvalues."""
    smallest = Interval(eigenvalues.smallest, eigenvalues.low, eigenvalues.smallest)
    largest = Interval(eigenvalues.largest, eigenvalues.largest, eigenvalues.high)
    # Rounding errors of an exact Z can leave all eigenvalues on one side of 1.
    eps = max(largest.value - 1.0, 1.0 - smallest.value, 0.0)
    bound = max(largest.high - 1.0, 1.0 - smallest.low, eps)
    if bound > _LOOSE * eps:
        how += ", but it is loose: give more products, or a larger alpha"
    return SpectralError(alpha, Interval(eps, eps, bound), smallest, largest, rows, "lanczos", how)


class ExactPencil:
    """L⁻¹ (Z Zᵀ + αI) L⁻ᵀ with L Lᵀ = K + αI; its eigenvalues are those of the pencil."""

    def __init__(self, sketch: FittedMap, rows: DataRows, alpha: float, n_jobs: int | None) -> None:
        self._alpha, self._features = alpha, rows.features(sketch)
        K = rows.kernel_matrix(sketch.kernel_, n_jobs)
        # Z Zᵀ is positive semidefinite, and no eigenvalue of K is above its trace.
        self.floor = alpha / (float(np.trace(K)) + alpha)
        K[np.diag_indices_from(K)] += alpha
        # NumPy's lets Ctrl-C through, which SciPy's does not.
        self._factor = interruptible(lambda: np.linalg.cholesky(K))

    def product(self, vector: Vector) -> Vector:
        """Return the matrix times the vector."""
        inner = self._solve(vector, "T")
        return self._solve(self._features @ (self._features.T @ inner) + self._alpha * inner, "N")

    def _solve(self, vector: Vector, transpose: str) -> Vector:
        solution: Vector = solve_triangular(
            self._factor, vector, lower=True, trans=transpose, check_finite=False
        )
        return solution


class InversePencil:
    """(Z Zᵀ + αI)^(−1/2) (K + αI) (Z Zᵀ + αI)^(−1/2), the inverse: it takes products with K only.

    Large eigenvalues of the pencil are small ones here, which take more steps to converge.
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

    def product(self, vector: Vector) -> Vector:
        """Return the matrix times the vector."""
        inner = self._inverse_root(vector)
        return self._inverse_root(self._exact_product(inner) + self._alpha * inner)

    def _inverse_root(self, vector: Vector) -> Vector:
        reduced = vector if self._features is None else self._features.T @ vector
        change: Vector = self._vectors @ (self._factors * (self._vectors.T @ reduced))
        if self._features is not None:
            change = self._features @ change
        return change + vector / math.sqrt(self._alpha)


def kernel_product(
    kernel: Kernel, rows: DataRows, n_jobs: int | None
) -> Callable[[Float64], Float64]:
    """Return how K is multiplied, with K stored if it is small enough."""
    if not kernel_is_stored(rows.count):
        return lambda V: np.asarray(kernel.product(rows.matrix, V, n_jobs=n_jobs))
    K = rows.kernel_matrix(kernel, n_jobs)
    return lambda V: K @ V


def kernel_is_stored(count: int) -> bool:
    """Tell whether the kernel matrix of this many rows may be stored."""
    return 8 * count * count <= _STORED_BYTES


def kernel_work(rows: DataRows, products: int) -> float:
    """Return about how many multiplications this number of products with K takes."""
    matrix, count = rows.matrix, float(rows.count)
    length: float = matrix.nnz / count if is_sparse(matrix) else matrix.shape[1]
    times = 1 if kernel_is_stored(rows.count) else products
    return times * count * count * (length + _FUNCTION) + products * count * count


def pencil_work(rows: DataRows, components: int, products: int) -> float:
    """Return about how many multiplications the spectral error takes."""
    shorter = float(min(components, rows.count))
    if kernel_is_stored(rows.count):
        return kernel_work(rows, products) + float(rows.count) ** 3 / 3.0
    features = shorter * shorter * (max(components, rows.count) + 10.0 * shorter)
    return kernel_work(rows, products) + features
