"""The exact polynomial kernel and its power series."""

from __future__ import annotations

import decimal
import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

__all__ = ["Polynomial"]

# Small enough to stay in a CPU's cache, large enough to hide the cost of a Python step.
_ENTRIES_PER_BLOCK = 2**15
_ROWS_PER_BLOCK = 256


@dataclass(frozen=True)
class Polynomial:
    r"""The kernel :math:`k(x, y) = (\gamma \langle x, y \rangle + c_0)^p`.

    Parameters
    ----------
    degree : int, default=2
        The exponent p, at least 1.
    gamma : float, default=1.0
        Positive and finite.
    coef0 : float, default=0.0
        The constant :math:`c_0`, finite and not negative: a negative one is not a positive
        definite kernel.

    Examples
    --------
    >>> from powersketch.kernels import Polynomial
    >>> kernel = Polynomial(degree=3, gamma=0.5, coef0=1.0)
    >>> X = [[1.0, 2.0], [0.0, 4.0]]
    >>> kernel(X)
    array([[ 42.875, 125.   ],
           [125.   , 729.   ]])
    >>> kernel.diagonal(X)
    array([ 42.875, 729.   ])
    >>> kernel.series()
    array([1.   , 1.5  , 0.75 , 0.125])
    """

    degree: int = 2
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", _checked_degree(self.degree))
        gamma = _checked_real("gamma", self.gamma)
        if not (math.isfinite(gamma) and gamma > 0.0):
            raise ValueError(f"gamma={gamma} is out of range; choose a finite number above 0.")
        object.__setattr__(self, "gamma", gamma)
        coef0 = _checked_real("coef0", self.coef0)
        if not (math.isfinite(coef0) and coef0 >= 0.0):
            raise ValueError(
                f"coef0={coef0} is out of range; choose a finite number of at least 0, "
                "because with a negative one the kernel is not positive definite."
            )
        object.__setattr__(self, "coef0", coef0)

    def __call__(
        self,
        X: ArrayLike | sparse.sparray | sparse.spmatrix,
        Y: ArrayLike | sparse.sparray | sparse.spmatrix | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Return the matrix of all ``k(x_i, y_j)``.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.
        Y : {array-like, sparse matrix or array} of shape (m, d), default=None
            None means X, and then the matrix is symmetric to the last bit.

        Returns
        -------
        ndarray of shape (n, m)
            float32 where X and Y are both float32, otherwise float64.

        Raises
        ------
        ValueError
            Where an entry is too large for the dtype of the result.

        Examples
        --------
        >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
        array([[121.,   4.]])
        """
        X = _checked_matrix("X", X)
        if Y is None:
            values = _inner_products(X, X)
            _mirror_upper_triangle(values)
        else:
            Y = _checked_matrix("Y", Y)
            _check_same_features(X, Y)
            values = _inner_products(X, Y)
        self._apply_in_place(values)
        return values

    def diagonal(
        self, X: ArrayLike | sparse.sparray | sparse.spmatrix
    ) -> NDArray[np.floating[Any]]:
        """Return all ``k(x_i, x_i)`` without the matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.

        Returns
        -------
        ndarray of shape (n,)
            float32 where X is float32, otherwise float64.

        Raises
        ------
        ValueError
            Where an entry is too large for the dtype of the result.

        Examples
        --------
        >>> Polynomial(degree=2).diagonal([[1.0, 2.0], [0.0, 1.0]])
        array([25.,  1.])
        """
        values = _squared_norms(_checked_matrix("X", X))
        self._apply_in_place(values)
        return values

    def series(self) -> NDArray[np.float64]:
        r"""Return the coefficients :math:`C_l` of the kernel in powers of the inner product.

        Returns
        -------
        ndarray of shape (degree + 1,)
            :math:`C_l = \binom{p}{l} \gamma^l c_0^{p-l}`, so that
            :math:`k(x, y) = \sum_l C_l \langle x, y \rangle^l`.

        Raises
        ------
        ValueError
            Where a coefficient is too large for float64.

        Examples
        --------
        >>> Polynomial(degree=2, gamma=3.0, coef0=1.0).series()
        array([1., 6., 9.])
        """
        coefficients = np.zeros(self.degree + 1)
        # Decimals have exponents without end, so that no factor overflows before the product.
        with decimal.localcontext(_wide_decimals()):
            gamma, coef0 = decimal.Decimal(self.gamma), decimal.Decimal(self.coef0)
            binomial = 1
            for power in range(self.degree, -1, -1):
                constant = coef0 ** (self.degree - power) if power < self.degree else 1
                coefficients[power] = float(binomial * gamma**power * constant)
                binomial = binomial * power // (self.degree - power + 1)
        self._check_series_is_finite(coefficients)
        return coefficients

    def _check_series_is_finite(self, coefficients: NDArray[np.float64]) -> None:
        overflowing = np.flatnonzero(np.isinf(coefficients))
        if overflowing.size:
            raise ValueError(
                f"coefficient {overflowing[0]} of {self} is above the largest float64, "
                f"{np.finfo(np.float64).max:.3g}: choose a smaller degree, gamma or coef0."
            )

    def _apply_in_place(self, values: NDArray[np.floating[Any]]) -> None:
        """Replace each inner product t by (gamma t + coef0)^degree, in float64 block by block."""
        self._check_power_is_finite(values)
        entries = values.reshape(-1)
        for start in range(0, entries.size, _ENTRIES_PER_BLOCK):
            block = entries[start : start + _ENTRIES_PER_BLOCK]
            block[...] = _integer_power(self._affine(block), self.degree)

    def _affine(self, values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        affine = values.astype(np.float64)
        affine *= self.gamma
        affine += self.coef0
        return affine

    def _check_power_is_finite(self, values: NDArray[np.floating[Any]]) -> None:
        # Rounding keeps order, so that all entries are finite if those at both ends are.
        ends = np.array([values.min(), values.max()])
        with np.errstate(over="ignore", invalid="ignore"):
            bases = np.abs(self._affine(ends))
            powers = _integer_power(bases, self.degree).astype(values.dtype)
        if not np.isfinite(powers).all():
            # A NaN is the difference of two infinities, as the input was found finite.
            largest = np.inf if np.isnan(bases).any() else bases.max()
            wider = "" if values.dtype == np.float64 else ", or use float64"
            raise ValueError(
                f"the kernel overflows {values.dtype}: the largest |gamma <x, y> + coef0| is "
                f"{largest:.6g}, and its power degree={self.degree} must not be above "
                f"{np.finfo(values.dtype).max:.3g}: scale X or gamma down{wider}."
            )


def _checked_degree(degree: object) -> int:
    if isinstance(degree, bool) or not isinstance(degree, numbers.Integral):
        raise TypeError(
            f"degree={degree!r} is a {type(degree).__name__}; "
            "allowed is an integer of at least 1: pass an int."
        )
    if degree < 1:
        raise ValueError(f"degree={degree} is out of range; choose an integer of at least 1.")
    return int(degree)


def _checked_real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(
            f"{name}={value!r} is a {type(value).__name__}; "
            "allowed is a finite real number: pass a float."
        )
    return float(value)


def _checked_matrix(name: str, matrix: Any) -> Any:
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} has dtype {matrix.dtype}; allowed are bool, integer and real floating "
            f"types: convert with {name}.astype(float)."
        )
    return check_array(matrix, accept_sparse="csr", dtype=(np.float64, np.float32), input_name=name)


def _check_same_features(X: Any, Y: Any) -> None:
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} features and Y has {Y.shape[1]}; "
            "the numbers must be equal: give both the same columns."
        )


def _inner_products(X: Any, Y: Any) -> NDArray[np.floating[Any]]:
    if sparse.issparse(X) and sparse.issparse(Y):
        return _sparse_inner_products(X, Y)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(X @ Y.T)


def _sparse_inner_products(X: Any, Y: Any) -> NDArray[np.floating[Any]]:
    """Multiply a block of rows at a time, as a sparse product takes more room than a dense one."""
    products = np.empty((X.shape[0], Y.shape[0]), dtype=np.result_type(X.dtype, Y.dtype))
    transposed = Y.T.tocsr()
    for start in range(0, X.shape[0], _ROWS_PER_BLOCK):
        rows = slice(start, start + _ROWS_PER_BLOCK)
        products[rows] = (X[rows] @ transposed).toarray()
    return products


def _squared_norms(X: Any) -> NDArray[np.floating[Any]]:
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(X):
            return np.asarray(X.multiply(X).sum(axis=1)).reshape(-1)
        norms: NDArray[np.floating[Any]] = np.einsum("ij,ij->i", X, X)
        return norms


def _mirror_upper_triangle(square: NDArray[np.floating[Any]]) -> None:
    """Copy the upper triangle onto the lower one, which a product may round differently."""
    for start in range(0, square.shape[0], _ROWS_PER_BLOCK):
        rows = slice(start, start + _ROWS_PER_BLOCK)
        square[rows, :start] = square[:start, rows].T
        corner = square[rows, rows]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T


def _integer_power(base: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Raise to a power by repeated squaring, from the exponent's leading bit downwards.

    In this order no intermediate power is beyond the last one, so that nothing overflows unless
    the result does.
    """
    power = base.copy()
    for bit in f"{exponent:b}"[1:]:
        power *= power
        if bit == "1":
            power *= base
    return power


def _wide_decimals() -> decimal.Context:
    # With 50 digits the rounding to float64 is the only error that counts.
    return decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
