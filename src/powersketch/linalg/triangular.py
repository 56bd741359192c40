"""Triangular factors, applied to rows or to columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.sparse.linalg import LinearOperator

from powersketch.arrays import Float64, Real
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.linalg.cholesky import check_square, lower_factor, solved_in_panels, spread
from powersketch.linalg.operators import SymmetricOperator
from powersketch.parameters import checked_alpha
from powersketch.validation import sound_array

# Wide enough for products to run at full speed, narrow enough to invert without losing digits.
_WIDTH = 256
# Forming AᵀA squares the condition number of A; up to here, that leaves enough digits.
_LARGEST_SPREAD_OF_ROWS = 1e4


@dataclass(frozen=True, eq=False)
class TriangularRows:
    """A lower triangular L, ready to solve z Lᵀ = c for many rows c at a time.

    SciPy's triangular solver keeps Python's global lock, which blocks other threads and Ctrl-C.
    NumPy's products do not, and they are faster than the solver.

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

    @cached_property
    def in_float32(self) -> TriangularRows:
        """The solver for rows of float32."""
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


def _parts(size: int) -> Iterator[slice]:
    """Yield parts of nearly equal width: BLAS rounds products with very few columns differently."""
    count = -(-size // _WIDTH)
    for part in range(count):
        yield slice(part * size // count, (part + 1) * size // count)


class TriangularFactor(LinearOperator):
    """Apply the inverse of an upper triangular matrix, or its transpose.

    This is R of [SWYZ21], Algorithm 2, line 6: with rows A = Q U, A @ R has orthonormal columns
    for R the inverse of U.

    Parameters
    ----------
    upper : array-like of shape (n, n)
        The matrix U; what is below its diagonal is ignored.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where U is singular to working precision.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.linalg import TriangularFactor
    >>> A = np.array([[3.0, 0.0], [4.0, 5.0], [0.0, 12.0]])
    >>> R = TriangularFactor.of_rows(A)
    >>> A_R = A @ R.matmat(np.eye(2))
    >>> bool(np.allclose(A_R.T @ A_R, np.eye(2)))
    True
    """

    def __init__(self, upper: ArrayLike) -> None:
        upper = np.asfortranarray(sound_array("upper", upper), dtype=np.float64)
        check_square(upper)
        super().__init__(np.dtype(np.float64), upper.shape)
        diagonal = np.abs(upper.diagonal())
        smallest, largest = diagonal.min(), diagonal.max()
        if smallest <= diagonal.size * np.finfo(np.float64).eps * largest:
            raise np.linalg.LinAlgError(
                f"the triangular factor is singular: its diagonal reaches from {smallest:.1e} to "
                f"{largest:.1e}: use a larger alpha, or more features than rows."
            )
        self._upper = upper

    @classmethod
    def of_rows(cls, A: ArrayLike, alpha: float = 0.0) -> Self:
        """Return the factor of a QR decomposition of A with the rows of √alpha I below.

        Parameters
        ----------
        A : array-like of shape (l, n)
            Left as it is. Without alpha it needs at least as many rows as columns.
        alpha : float, default=0.0
            Not negative.

        Returns
        -------
        TriangularFactor
            R of shape (n, n) with Rᵀ (AᵀA + alpha I) R = I.
        """
        alpha = checked_alpha(alpha)
        rows = checked_factor("A", A)
        if rows.shape[0] < rows.shape[1] and not alpha:
            raise InputError(
                f"A has {rows.shape[0]} rows and {rows.shape[1]} columns; allowed are at least as "
                "many rows as columns: sketch to more rows, or use an alpha above 0."
            )
        gram = interruptible(lambda: rows.T @ rows)
        lower = lower_factor(gram, gram.diagonal() + alpha)
        if lower is not None and spread(lower) <= _LARGEST_SPREAD_OF_ROWS:
            return cls(lower.T)
        if alpha:
            rows = np.vstack((rows, math.sqrt(alpha) * np.eye(rows.shape[1])))
        return cls(interruptible(lambda: np.linalg.qr(rows, mode="r")))

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return "triangular factor in float64"

    def _matvec(self, vector: Any) -> Any:
        return self._matmat(np.asarray(vector))

    def _matmat(self, V: Any) -> Any:
        return solved_in_panels(self._solved, np.asarray(V))

    def _rmatvec(self, vector: Any) -> Any:
        return self._rmatmat(np.asarray(vector))

    def _rmatmat(self, V: Any) -> Any:
        return solved_in_panels(partial(self._solved, trans="T"), np.asarray(V))

    def _solved(self, V: Real, trans: str = "N") -> Real:
        solved: Real = linalg.solve_triangular(self._upper, V, trans=trans, check_finite=False)
        return solved


class SquaredFactor(SymmetricOperator):
    """Apply R Rᵀ, which is the inverse of AᵀA where A @ R has orthonormal columns.

    Parameters
    ----------
    root : TriangularFactor
        The operator R.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.linalg import SquaredFactor, TriangularFactor
    >>> SquaredFactor(TriangularFactor([[2.0, 0.0], [0.0, 1.0]])) @ np.ones(2)
    array([0.25, 1.  ])
    """

    def __init__(self, root: TriangularFactor) -> None:
        super().__init__(root.shape[0])
        self._root = root

    def root(self) -> TriangularFactor:
        """Return R."""
        return self._root

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return self._root.describe()

    def _matmat(self, V: Any) -> Any:
        return self._root.matmat(self._root.rmatmat(V))


def checked_factor(name: str, factor: ArrayLike) -> Float64:
    """Return a finite matrix in float64, or say what is wrong with it."""
    array = np.asarray(sound_array(name, factor), dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise InputError(f"{name} has shape {array.shape}; allowed is (n, m), both at least 1.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity; allowed are finite numbers.")
    return array
