"""Approximate inverses of symmetric matrices, kept as factors: what preconditions a solver."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from scipy.linalg import get_blas_funcs
from scipy.sparse.linalg import LinearOperator

from powersketch.arrays import Float64, Real, slices
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.linalg.cholesky import (
    check_square,
    float32_factor,
    float64_factor,
    lower_factor,
    solved_in_panels,
    spread,
)
from powersketch.linalg.operators import (
    SymmetricOperator,
    exact_product,
    exact_transposed_product,
)
from powersketch.parameters import (
    checked_alpha,
    checked_non_negative,
    checked_positive,
    one_of,
)
from powersketch.random_streams import RandomStreams
from powersketch.validation import sound_array

_PRECISIONS = ("float64", "float32")
_INVERSE_ITERATIONS = 8
# Forming AᵀA squares the condition number of A; up to here, that leaves enough digits.
_LARGEST_SPREAD_OF_ROWS = 1e4
# Up to this many vectors are multiplied one at a time.
_FEW_VECTORS = 2
_ROWS_OF_PRODUCT = 4096


class CholeskyFactor(SymmetricOperator):
    r"""Apply :math:`(A + \alpha I)^{-1}` by a Cholesky factorisation.

    Parameters
    ----------
    matrix : ndarray of shape (n, n) and dtype float64 or float32
        The symmetric matrix A. It may be overwritten: give a copy if it is still needed.
    alpha : float, default=0.0
        Added to the diagonal; not negative.
    dtype : {float64, float32}, default=float64
        The precision of the factor. Where rounding to float32 makes the matrix indefinite, the
        factor is computed in float64.

    Attributes
    ----------
    jitter : float
        The part of the mean diagonal that was added to factor the matrix; mostly zero.
    nugget : float
        All that was added to the diagonal: alpha and the jitter times the mean diagonal.
    precision : {"float64", "float32"}
        The precision of the factor. Results are float64 in either case.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where no small jitter makes the matrix positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.linalg import CholeskyFactor
    >>> factor = CholeskyFactor(np.array([[3.0, 1.0], [1.0, 3.0]]), alpha=1.0)
    >>> factor @ np.array([5.0, 5.0])
    array([1., 1.])
    >>> factor.describe()
    'Cholesky factor in float64'
    """

    def __init__(self, matrix: Real, *, alpha: float = 0.0, dtype: Any = np.float64) -> None:
        alpha = checked_alpha(alpha)
        precision = one_of("dtype", np.dtype(dtype).name, _PRECISIONS)
        matrix = sound_array("matrix", matrix)
        check_square(matrix)
        diagonal = matrix.diagonal().astype(np.float64) + alpha
        factor, self.jitter = None, 0.0
        if precision == "float32":
            factor = float32_factor(matrix, diagonal)
        if factor is None:
            factor, self.jitter = float64_factor(matrix, diagonal)
        super().__init__(matrix.shape[0])
        # Lower triangular; what is above the diagonal is left over from the matrix and ignored.
        self._factor = factor
        self.nugget = alpha + self.jitter * float(diagonal.mean())
        self.precision = factor.dtype.name

    def root(self) -> TriangularFactor:
        """Return R with R Rᵀ equal to this operator.

        Returns
        -------
        TriangularFactor
            In float64; it shares the memory of a float64 factor.
        """
        return TriangularFactor(self._factor.T)

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        added = f", jitter {self.jitter:.1e} of the mean diagonal" if self.jitter else ""
        return f"Cholesky factor in {self.precision}{added}"

    def _matmat(self, V: Any) -> Any:
        V = np.asarray(V, dtype=np.float64)
        if self.precision == "float64":
            return solved_in_panels(self._solved, V)
        # Without scaling, residuals of a converging solver get too small for float32.
        scales = np.abs(V).max(axis=0, initial=0.0)
        scales[scales == 0.0] = 1.0
        scaled = (V / scales).astype(np.float32)
        return solved_in_panels(self._solved, scaled) * scales

    def _solved(self, V: Real) -> Real:
        solved: Real = linalg.cho_solve((self._factor.T, False), V, check_finite=False)
        return solved


class LowRankInverse(SymmetricOperator):
    r"""Apply :math:`(Z Z^\top + \nu I)^{-1}` by Woodbury's identity.

    Parameters
    ----------
    Z : array-like of shape (n, m)
        Kept, and left as it is.
    nugget : float
        The number ν, positive. Rounding errors are about ‖Z‖² / ν times machine epsilon.
    dtype : {float64, float32}, default=float64
        In which Z is kept. Products with it are computed in float64 all the same, and take longer
        if it is float32; only those of ZᵀZ are not.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.linalg import LowRankInverse
    >>> LowRankInverse(np.array([[1.0], [1.0]]), nugget=1.0) @ np.array([3.0, 0.0])
    array([ 2., -1.])
    """

    def __init__(self, Z: ArrayLike, nugget: float, *, dtype: Any = np.float64) -> None:
        nugget = checked_positive("nugget", nugget)
        Z = checked_factor("Z", Z, dtype)
        self._prepare(Z, _gram(Z), nugget)

    @classmethod
    def with_tail(
        cls, Z: ArrayLike, alpha: float, *, tail: float = 0.0, dtype: Any = np.float64
    ) -> Self:
        """Return the inverse whose nugget stands for alpha and for what Z leaves out.

        Parameters
        ----------
        Z : array-like of shape (n, m)
            As above.
        alpha : float
            Not negative.
        tail : float, default=0.0
            What is known to be left out, not negative. The smallest eigenvalue of ZᵀZ is taken
            if it is larger: with that, the inverse is the one of [FTU23] up to a factor of 2.
        dtype : {float64, float32}, default=float64
            As above.

        Returns
        -------
        LowRankInverse
            With the nugget alpha plus the larger one.
        """
        alpha = checked_alpha(alpha)
        tail = checked_non_negative("tail", tail, reason="as it is added to the diagonal")
        Z = checked_factor("Z", Z, dtype)
        gram = _gram(Z)
        nugget = alpha + max(tail, _smallest_eigenvalue(gram))
        inverse = cls.__new__(cls)
        inverse._prepare(Z, gram, nugget)
        return inverse

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"rank {self._Z.shape[1]} and nugget {self.nugget:.3g}"

    def _matmat(self, V: Any) -> Any:
        V = np.asarray(V, dtype=np.float64)
        inner = self._inner.matmat(_factor_product(self._Z, V, transposed=True))
        return (V - _factor_product(self._Z, inner, transposed=False)) / self.nugget

    def _prepare(self, Z: Real, gram: Float64, nugget: float) -> None:
        super().__init__(Z.shape[0])
        self.nugget, self._Z = nugget, Z
        self._inner = CholeskyFactor(gram, alpha=nugget)


def _gram(Z: Real) -> Float64:
    """Return ZᵀZ in float64; of float32, blocks of rows are multiplied in that."""
    if Z.dtype == np.float64:
        return interruptible(lambda: Z.T @ Z)
    total = np.zeros((Z.shape[1], Z.shape[1]))
    for rows in slices(Z.shape[0], _ROWS_OF_PRODUCT):
        block = np.ascontiguousarray(Z[rows])
        total += interruptible(partial(np.matmul, block.T, block))
    return total


def _factor_product(Z: Real, V: Real, *, transposed: bool) -> Real:
    """Return `Z @ V` or `Z.T @ V`; for few vectors by the BLAS of SciPy, as K @ V is.

    NumPy's has threads of its own, and the threads of the two would wait for work at each other's
    expense.
    """
    if Z.dtype == np.float32:
        return exact_transposed_product(Z, V) if transposed else exact_product(Z, V)
    if V.shape[1] > _FEW_VECTORS or not Z.flags.c_contiguous:
        return Z.T @ V if transposed else Z @ V
    multiply = get_blas_funcs("gemv", (Z,))
    columns = [multiply(1.0, Z.T, vector, trans=not transposed) for vector in V.T]
    return np.column_stack(columns)


def _smallest_eigenvalue(gram: Float64) -> float:
    """Return the smallest eigenvalue of a Gram matrix, or a little more, by inverse iteration.

    Where it is lost in rounding errors, these are returned: a positive number, unless the matrix
    is zero.
    """
    if not gram.any():
        return 0.0
    factor, _ = float64_factor(gram.copy(), gram.diagonal().copy())
    vector = RandomStreams(0, "smallest eigenvalue").normal("start", gram.shape[0])
    length = float(np.linalg.norm(vector))
    for _ in range(_INVERSE_ITERATIONS):
        vector = linalg.cho_solve((factor.T, False), vector / length, check_finite=False)
        length = float(np.linalg.norm(vector))
    return 1.0 / length


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


def checked_factor(name: str, factor: ArrayLike, dtype: Any = np.float64) -> Real:
    """Return a finite matrix in float64, or another dtype, or say what is wrong with it."""
    array = np.asarray(sound_array(name, factor), dtype=dtype)
    if array.ndim != 2 or not array.size:
        raise InputError(f"{name} has shape {array.shape}; allowed is (n, m), both at least 1.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity; allowed are finite numbers.")
    return array
