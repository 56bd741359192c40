"""The exact kernel matrix of the measured rows, ready to hold approximations against."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from powersketch.accuracy import DataRows, check_alpha_above_rounding
from powersketch.arrays import Float64, Vector
from powersketch.comparison.results import ExactKernel
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.kernels import Kernel
from powersketch.linalg import ritz_values
from powersketch.random_streams import RandomStreams

# K, Z Zᵀ, their difference and what Lanczos or LAPACK holds beside them.
MATRICES_IN_MEMORY = 4

_SPECTRUM_ROWS = 512
_IMAGE_ROWS = 96
_LANCZOS_STEPS = 100
_ALPHA_SHARE = 0.01  # of the trace, which is the sum of the eigenvalues


@dataclass(frozen=True, eq=False)
class ExactReference:
    """The exact kernel of the measured rows, and all that is asked of it more than once.

    All matrices are divided by `scale`, the largest entry: squares of entries of high degrees
    would overflow.
    """

    matrix: Float64
    scale: float
    frobenius: float
    operator_norm: float
    alpha: float
    spectrum: Vector
    image_rows: NDArray[np.int64]
    cost: ExactKernel
    start: Vector
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
        """Compute the kernel of the rows; an `alpha` of None is a share of its trace."""
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
            image_rows=_similar_together(K[:_IMAGE_ROWS, :_IMAGE_ROWS]),
            cost=cost,
            start=start,
            _factor=interruptible(lambda: cholesky(_shifted(part, ridge), lower=True)),
        )

    def approximate(self, Z: Float64) -> Float64:
        """Return Z Zᵀ, divided by the scale."""
        scaled = Z / np.sqrt(self.scale)
        return interruptible(lambda: scaled @ scaled.T)

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

    def spectrum_of(self, approximate: Float64) -> Vector:
        """Return the eigenvalues of Z Zᵀ on the rows of the spectrum, descending."""
        part = approximate[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS]
        return self.scale * _descending_eigenvalues(part)

    def image_of(self, matrix: Float64) -> Float64:
        """Return the matrix on the rows of the images."""
        return self.scale * matrix[np.ix_(self.image_rows, self.image_rows)]


def _operator_norm(matrix: Float64, start: Vector) -> float:
    """Return the largest absolute eigenvalue, from below except for rounding errors."""
    values = ritz_values(partial(np.matmul, matrix), start, _LANCZOS_STEPS)
    return float(np.abs(values).max())


def _shifted(matrix: Float64, alpha: float) -> Float64:
    shifted = matrix.copy()
    shifted[np.diag_indices_from(shifted)] += alpha
    return shifted


def _descending_eigenvalues(matrix: Float64) -> Vector:
    values = interruptible(lambda: np.linalg.eigvalsh(matrix))
    return np.asarray(values[::-1], dtype=np.float64)


def _similar_together(K: Float64) -> NDArray[np.int64]:
    """Return an order that puts similar rows beside each other.

    The leading eigenvector of a kernel is nearly constant; that of the centred one tells groups.
    """
    means = K.mean(axis=0)
    _, vectors = np.linalg.eigh(K - means - means[:, np.newaxis] + means.mean())
    leading = vectors[:, -1]
    sign = np.sign(leading[np.argmax(np.abs(leading))])
    return np.argsort(sign * leading, kind="stable").astype(np.int64)
