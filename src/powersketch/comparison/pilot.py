"""The rows of a comparison, and the exact kernel on them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from powersketch.accuracy import DataRows, check_alpha_above_rounding
from powersketch.arrays import Float64
from powersketch.comparison.results import ExactKernel
from powersketch.comparison.units import bytes_text
from powersketch.exceptions import InputError
from powersketch.execution import available_memory, interruptible
from powersketch.kernels import Kernel
from powersketch.linalg import ritz_values
from powersketch.random_streams import RandomStreams

FEWEST_ROWS = 4
_SPECTRUM_ROWS = 512
_IMAGE_ROWS = 96
_LANCZOS_STEPS = 100
# K, Z Zᵀ, their difference and what Lanczos or LAPACK holds beside them.
_MATRICES = 4
_ALPHA_SHARE = 0.01  # of the trace, which is the sum of the eigenvalues


def divided_rows(
    rows: DataRows, pilot_rows: int, streams: RandomStreams
) -> tuple[DataRows, DataRows]:
    """Return rows to fit on and others to measure on, both in random order.

    Half of the pilot is measured; as many rows as the pilot has are fitted on, where there are
    so many others.
    """
    order = streams.permutation("rows", rows.count)
    measured = min(rows.count, pilot_rows) // 2
    fitted = min(rows.count - measured, pilot_rows)
    return rows.take(order[measured : measured + fitted]), rows.take(order[:measured])


def check_memory(measured: int) -> None:
    """Refuse more measured rows than their kernel matrices have room."""
    needed, available = 8 * _MATRICES * measured * measured, available_memory()
    if needed > available:
        most = int((available / (8 * _MATRICES)) ** 0.5)
        raise MemoryError(
            f"the exact kernel on {measured} measured rows and what it is compared with need "
            f"{bytes_text(needed)}, and {bytes_text(available)} are available: choose "
            f"pilot_rows of at most {2 * most}."
        )


@dataclass(frozen=True, eq=False)
class ExactReference:
    """The exact kernel of the measured rows, made ready for comparisons with it.

    All matrices are divided by `scale`, the largest entry: squares of entries of high degrees
    would overflow.
    """

    matrix: Float64
    scale: float
    frobenius: float
    operator_norm: float
    alpha: float
    spectrum: Float64
    image_rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    cost: ExactKernel
    start: Float64
    _factor: Float64

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: DataRows,
        alpha: float | None,
        streams: RandomStreams,
        n_jobs: int | None,
    ) -> ExactReference:
        """Compute the kernel and all that is asked of it more than once."""
        begin = time.perf_counter()
        K = np.asarray(kernel(rows.matrix, dtype=np.float64, n_jobs=n_jobs))
        cost = ExactKernel(time.perf_counter() - begin, K.nbytes)
        scale = float(np.abs(K).max())
        if scale == 0.0:
            raise InputError(
                f"{kernel} is zero on all {rows.count} measured rows, so that there are no "
                "relative errors: pass rows that are not zero."
            )
        K /= scale
        part = K[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS]
        ridge = _ALPHA_SHARE * float(np.trace(part)) if alpha is None else alpha / scale
        check_alpha_above_rounding(ridge * scale, np.diagonal(part) * scale)
        start = streams.normal("start", rows.count)
        return cls(
            matrix=K,
            scale=scale,
            frobenius=float(np.linalg.norm(K)),
            operator_norm=_operator_norm(K, start),
            alpha=ridge,
            spectrum=_descending_eigenvalues(part),
            image_rows=_ordered(K[:_IMAGE_ROWS, :_IMAGE_ROWS]),
            cost=cost,
            start=start,
            _factor=interruptible(lambda: cholesky(_shifted(part, ridge), lower=True)),
        )

    def approximate(self, Z: Float64) -> Float64:
        """Return Z Zᵀ, divided by the scale."""
        shrunk = Z / np.sqrt(self.scale)
        return interruptible(lambda: shrunk @ shrunk.T)

    def relative_errors(self, approximate: Float64) -> tuple[float, float]:
        """Return the relative errors in Frobenius and in operator norm."""
        difference = approximate - self.matrix
        frobenius = float(np.linalg.norm(difference)) / self.frobenius
        return frobenius, _operator_norm(difference, self.start) / self.operator_norm

    def pencil(self, approximate: Float64) -> tuple[float, float]:
        """Return the extreme eigenvalues of (Z Zᵀ + αI, K + αI) on the rows of the spectrum."""
        part = _shifted(approximate[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS], self.alpha)
        half = solve_triangular(self._factor, part, lower=True, check_finite=False)
        whole = solve_triangular(self._factor, half.T, lower=True, check_finite=False)
        values = _descending_eigenvalues(0.5 * (whole + whole.T))
        return float(values[-1]), float(values[0])

    def spectrum_of(self, approximate: Float64) -> Float64:
        """Return the eigenvalues of Z Zᵀ on the rows of the spectrum, descending."""
        part = approximate[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS]
        return self.scale * _descending_eigenvalues(part)

    def image_of(self, matrix: Float64) -> Float64:
        """Return the matrix on the rows of the images."""
        return self.scale * matrix[np.ix_(self.image_rows, self.image_rows)]


def _operator_norm(matrix: Float64, start: Float64) -> float:
    """Return the largest absolute eigenvalue, from below but for rounding errors."""
    values = ritz_values(lambda vector: matrix @ vector, start, _LANCZOS_STEPS)
    return float(np.abs(values).max())


def _shifted(matrix: Float64, alpha: float) -> Float64:
    shifted = matrix.copy()
    shifted[np.diag_indices_from(shifted)] += alpha
    return shifted


def _descending_eigenvalues(matrix: Float64) -> Float64:
    values = interruptible(lambda: np.linalg.eigvalsh(matrix))
    return np.asarray(values[::-1], dtype=np.float64)


def _ordered(K: Float64) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return an order in which rows that are alike are beside each other.

    The leading eigenvector of a kernel is nearly constant; that of the centred one tells groups.
    """
    means = K.mean(axis=0)
    _, vectors = np.linalg.eigh(K - means - means[:, np.newaxis] + means.mean())
    leading = vectors[:, -1]
    sign = np.sign(leading[np.argmax(np.abs(leading))])
    return np.argsort(sign * leading, kind="stable").astype(np.int64)
