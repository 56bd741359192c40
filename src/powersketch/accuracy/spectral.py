"""How far Z Zᵀ + αI is from K + αI as a quadratic form: extreme eigenvalues of the pencil."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from powersketch.accuracy.data_rows import DataRows, FittedMap, Float64, kernel_matrix
from powersketch.accuracy.intervals import Interval
from powersketch.accuracy.lanczos import ExtremeEigenvalues, extreme_eigenvalues
from powersketch.accuracy.pencils import ExactPencil, InversePencil, fits, pencil_work
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.random_streams import RandomStreams

_DENSE_ROWS = 1500
_WORK = 1e13
_LOOSE = 2.0
# A Cholesky factor of K + αI exists in float64 if α is so many times the rounding errors.
_ROUNDING_ERRORS = 8.0


@dataclass(frozen=True)
class SpectralError:
    """The eps with (1 − eps)(K + αI) ⪯ Z Zᵀ + αI ⪯ (1 + eps)(K + αI).

    Parameters
    ----------
    alpha : float
        The α.
    eps : Interval
        Its `low` is attained by a vector that was found; its `high` holds with the confidence.
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

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers and texts."""
        return {
            "alpha": self.alpha,
            "eps": self.eps.to_dict(),
            "smallest": self.smallest.to_dict(),
            "largest": self.largest.to_dict(),
            "rows": self.rows,
            "method": self.method,
            "message": self.message,
        }


def spectral_error(
    sketch: FittedMap,
    rows: DataRows,
    alpha: float,
    streams: RandomStreams,
    *,
    confidence: float,
    products: int,
    n_jobs: int | None,
) -> SpectralError:
    """Return the spectral error by the best method that the number of rows allows."""
    if rows.count <= _DENSE_ROWS:
        return _dense_error(sketch, rows, alpha, n_jobs)
    components = rows.take(np.zeros(1, dtype=np.int64)).features(sketch).shape[1]
    if pencil_work(rows, components, products) > _WORK:
        return _subset_error(sketch, rows, alpha, streams, n_jobs)
    exactly = fits(rows.count)
    pencil = (ExactPencil if exactly else InversePencil)(sketch, rows, alpha, n_jobs)
    found = extreme_eigenvalues(
        pencil.product,
        streams.normal("start", rows.count),
        products,
        confidence=confidence,
        floor=pencil.floor,
    )
    how = f"from {products} products; the upper bound holds with probability {confidence:.4g}"
    return lanczos_error(found if exactly else found.inverse(), alpha, rows.count, how)


def check_alpha_is_felt(alpha: float, diagonal: Float64) -> None:
    """Refuse an alpha that the rounding errors of K would hide."""
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
    K = kernel_matrix(sketch.kernel_, rows, n_jobs)
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


def lanczos_error(found: ExtremeEigenvalues, alpha: float, rows: int, how: str) -> SpectralError:
    """Return the error from bounds of the pencil's extreme eigenvalues."""
    smallest = Interval(found.smallest, found.low, found.smallest)
    largest = Interval(found.largest, found.largest, found.high)
    # Rounding errors of an exact Z can leave all eigenvalues on one side of 1.
    eps = max(found.largest - 1.0, 1.0 - found.smallest, 0.0)
    bound = max(found.high - 1.0, 1.0 - found.low, eps)
    if bound > _LOOSE * eps:
        how += ", but it is loose: give more products, or a larger alpha"
    return SpectralError(alpha, Interval(eps, eps, bound), smallest, largest, rows, "lanczos", how)
