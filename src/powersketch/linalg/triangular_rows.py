"""Rows solved against the triangular factor of a positive definite matrix.

SciPy's triangular solver keeps Python's global lock, so that neither other threads nor Ctrl-C get
through. NumPy's products do not, and they are faster than the solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg

from powersketch.arrays import Real
from powersketch.exceptions import InputError
from powersketch.execution import cholesky_in_place

# Wide enough for products to run at full speed, narrow enough to invert without losing digits.
_WIDTH = 256
_LARGEST_JITTER = 1e-2


@dataclass(frozen=True, eq=False)
class TriangularRows:
    """A lower triangular L, ready to solve z Lᵀ = c for many rows c at a time.

    Parameters
    ----------
    factor : ndarray of shape (m, m)
        L; what lies above the diagonal does not matter.
    inverses : tuple of ndarray
        The inverses of the transposed blocks on the diagonal of L.
    """

    factor: Real
    inverses: tuple[Real, ...]

    @classmethod
    def of(cls, factor: Real) -> Self:
        """Return the solver for a lower triangular matrix without zeros on its diagonal."""
        inverses = []
        for part in _parts(factor.shape[0]):
            identity = np.eye(part.stop - part.start, dtype=factor.dtype)
            block = factor[part, part]
            inverses.append(linalg.solve_triangular(block.T, identity, check_finite=False))
        return cls(factor, tuple(inverses))

    def astype(self, dtype: DTypeLike) -> TriangularRows:
        """Return the solver for rows of this dtype."""
        return self if self.factor.dtype == dtype else self._in_float32

    @cached_property
    def _in_float32(self) -> TriangularRows:
        inverses = tuple(inverse.astype(np.float32) for inverse in self.inverses)
        return TriangularRows(self.factor.astype(np.float32), inverses)

    def solve(self, rows: Real) -> None:
        """Replace every row c by the z with z Lᵀ = c."""
        for part, inverse in zip(_parts(self.factor.shape[0]), self.inverses, strict=True):
            known = slice(0, part.start)
            remainder = rows[:, part] - rows[:, known] @ self.factor[part, known].T
            np.matmul(remainder, inverse, out=rows[:, part])

    def solve_both_sides(self, matrix: Real) -> None:
        """Replace a symmetric matrix by the one between L⁻¹ and L⁻ᵀ, on and above the diagonal."""
        self.solve(matrix)
        for part, inverse in zip(_parts(self.factor.shape[0]), self.inverses, strict=True):
            known, wanted = slice(0, part.start), slice(part.start, None)
            remainder = matrix[part, wanted] - self.factor[part, known] @ matrix[known, wanted]
            np.matmul(inverse.T, remainder, out=matrix[part, wanted])


def jittered_cholesky(matrix: Real, jitter: float) -> tuple[Real, float]:
    """Return L with L Lᵀ = matrix + jitter · mean · I, and the jitter that it took.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Symmetric and, but for rounding errors, positive semi-definite.
    jitter : float
        Relative to the mean of the diagonal, or to each of its entries where a few are so large
        that the jitter would drown the others. Where it does not suffice it grows, by factors of
        10.

    Returns
    -------
    factor : ndarray of shape (m, m)
        L, lower triangular.
    jitter : float
        In use.
    """
    diagonal = matrix.diagonal()
    # If the mean is zero the whole matrix is, and any positive number will do.
    unit = float(diagonal.mean()) or 1.0
    while True:
        factor = np.array(matrix, dtype=np.float64, order="C")
        np.fill_diagonal(factor, diagonal + jitter * _units(diagonal, unit, jitter))
        if cholesky_in_place(factor):
            return _lower_triangle(factor), jitter
        jitter = max(10.0 * jitter, diagonal.size * float(np.finfo(np.float64).eps))
        if jitter > _LARGEST_JITTER:
            raise InputError(
                "the kernel matrix of the landmarks is not positive semi-definite: it has a "
                f"negative eigenvalue beyond {_LARGEST_JITTER} times the mean of its diagonal, "
                f"{unit:.3g}; allowed are rounding errors: use a positive definite kernel."
            )


def _units(diagonal: Real, mean: float, jitter: float) -> Real:
    """Return what the jitter of every row is relative to."""
    positive = diagonal[diagonal > 0.0]
    if positive.size == 0 or jitter * mean <= _LARGEST_JITTER * float(np.median(positive)):
        return np.full_like(diagonal, mean)
    return np.where(diagonal > 0.0, diagonal, positive.min())


def _lower_triangle(matrix: Real) -> Real:
    """Set what is above the diagonal to zero."""
    for part in _parts(matrix.shape[0]):
        matrix[part, part] = np.tril(matrix[part, part])
        matrix[part, part.stop :] = 0.0
    return matrix


def _parts(size: int) -> Iterator[slice]:
    """Yield parts of nearly equal width: BLAS rounds products with very few columns differently."""
    count = -(-size // _WIDTH)
    for part in range(count):
        yield slice(part * size // count, (part + 1) * size // count)
