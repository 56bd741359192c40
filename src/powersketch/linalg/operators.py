"""Symmetric matrices that are multiplied by vectors: exact kernels, products of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import available_memory, thread_count
from powersketch.kernels import Kernel, as_kernel
from powersketch.linalg.panels import (
    Float64,
    exact_product,
    exact_transposed_product,
    panels,
    rounded_product,
    symmetric_product,
)
from powersketch.linalg.symmetric import SymmetricOperator, float64_vectors
from powersketch.parameters import checked_integer, checked_non_negative
from powersketch.validation import checked_rows, sound_array

_STORED = {
    "float64": "stored in float64",
    "float32": "stored in float32",
    "nothing": "recomputed for every product",
}
_ROWS_OF_DIAGONAL = 4096


class KernelOperator(SymmetricOperator):
    r"""The exact kernel matrix plus a multiple of the identity, :math:`K + \alpha I`.

    A SciPy ``LinearOperator`` in float64. The matrix is computed once where it fits the memory
    budget; otherwise every product computes it anew, tile by tile.

    Parameters
    ----------
    kernel : powersketch.kernels.Kernel or str
        Any of the exact kernels, or a name that `as_kernel` knows.
    X : {array-like, sparse matrix or array} of shape (n, d)
        Finite real numbers. Kept, and not to be changed as long as the operator is used.
    alpha : float, default=0.0
        Added to the diagonal; not negative.
    memory_budget : int, default=None
        Bytes that the matrix may take. With 8 n² it is stored in float64; with 4 n² and float32
        rows in float32, whose rounding errors solvers repair with :meth:`exact_product`; with
        less it is not stored. None is half of the memory that is available now.
    n_jobs : int, default=None
        Threads that compute entries of the matrix, with scikit-learn's meaning. Products with a
        stored matrix run on the threads of BLAS.

    Attributes
    ----------
    kernel, alpha
        The parameters.
    stored : {"float64", "float32", "nothing"}
        What is kept of the matrix.
    matrix : ndarray of shape (n, n) or None
        What is stored: K without alpha, read-only.
    rounding : float
        Machine epsilon of the products.

    Examples
    --------
    >>> from powersketch.kernels import Polynomial
    >>> from powersketch.linalg import KernelOperator
    >>> operator = KernelOperator(Polynomial(degree=2), [[1.0, 2.0], [0.0, 1.0]], alpha=0.5)
    >>> operator @ [1.0, -1.0]
    array([21.5,  2.5])
    >>> operator.describe()
    'exact kernel, stored in float64'
    """

    def __init__(
        self,
        kernel: Kernel | str,
        X: Any,
        alpha: float = 0.0,
        *,
        memory_budget: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        kernel = as_kernel(kernel)
        alpha = checked_non_negative("alpha", alpha, reason="as it is added to the diagonal")
        budget = _checked_budget(memory_budget)
        thread_count(n_jobs)
        X = checked_rows(X)
        self.kernel, self.stored = kernel.resolve(X), _storage(X, budget)
        self._X, self._n_jobs = X, n_jobs
        super().__init__(X.shape[0], alpha, np.float32 if self.stored == "float32" else np.float64)
        self.matrix = self._computed_matrix()

    def diagonal(self) -> Float64:
        """Return the diagonal, alpha included.

        Returns
        -------
        ndarray of shape (n,) and dtype float64
        """
        values = np.empty(self.shape[0])
        for rows in panels(self.shape[0], _ROWS_OF_DIAGONAL):
            values[rows] = self.kernel.diagonal(self._X[rows].astype(np.float64, copy=False))
        return values + self.alpha

    def row_products(self, rows: ArrayLike, V: ArrayLike) -> Float64:
        """Return a few rows of the product at float64 accuracy, from the kernel itself.

        Parameters
        ----------
        rows : array-like of int of shape (r,)
            Which rows; repeated ones are allowed.
        V : array-like of shape (n,) or (n, t)
            Finite real numbers.

        Returns
        -------
        ndarray of shape (r,) or (r, t) and dtype float64

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> from powersketch.linalg import KernelOperator
        >>> operator = KernelOperator(Polynomial(degree=2), [[1.0, 2.0], [0.0, 1.0]], alpha=0.5)
        >>> operator.row_products([1], [1.0, -1.0])
        array([2.5])
        """
        indices = _checked_indices(rows, self.shape[0])
        vectors = float64_vectors(V, self.shape[0])
        products = self.kernel.product(self._X[indices], vectors, self._X, n_jobs=self._n_jobs)
        return self._shifted(products.astype(np.float64, copy=False), vectors[indices])

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"exact kernel, {_STORED[self.stored]}"

    def _computed_matrix(self) -> NDArray[Any] | None:
        if self.stored == "nothing":
            return None
        matrix = self.kernel(self._X, dtype=np.dtype(self.stored), n_jobs=self._n_jobs)
        # Whoever factors it in place has to take a copy.
        matrix.flags.writeable = False
        return matrix

    def _rounded(self, V: Float64) -> Float64:
        if self.matrix is None:
            return self._exact(V)
        return rounded_product(self.matrix, V, symmetric_product)

    def _exact(self, V: Float64) -> Float64:
        if self.stored == "float64":
            return self._rounded(V)
        products = self.kernel.product(self._X, V, n_jobs=self._n_jobs)
        return products.astype(np.float64, copy=False)


class FactorOperator(SymmetricOperator):
    r"""A product of features plus a multiple of the identity, :math:`Z Z^\top + \alpha I`.

    A SciPy ``LinearOperator`` in float64: the kernel matrix as a feature map sees it.

    Parameters
    ----------
    Z : array-like of shape (n, m)
        Finite real numbers, a row for every sample. Kept; float32 stays float32, and then the
        products round like float32, but for :meth:`exact_product`.
    alpha : float, default=0.0
        Added to the diagonal; not negative.

    Attributes
    ----------
    alpha
        The parameter.
    rounding : float
        Machine epsilon of the products.

    Examples
    --------
    >>> from powersketch.linalg import FactorOperator
    >>> FactorOperator([[1.0, 2.0], [0.0, 1.0]], alpha=0.5) @ [1.0, -1.0]
    array([3.5, 0.5])
    """

    def __init__(self, Z: ArrayLike, alpha: float = 0.0) -> None:
        alpha = checked_non_negative("alpha", alpha, reason="as it is added to the diagonal")
        Z = sound_array("Z", Z)
        self._Z = check_array(Z, dtype=(np.float64, np.float32), input_name="Z")
        super().__init__(self._Z.shape[0], alpha, self._Z.dtype)

    def diagonal(self) -> Float64:
        """Return the diagonal, alpha included.

        Returns
        -------
        ndarray of shape (n,) and dtype float64
        """
        squares: Float64 = np.einsum("ij,ij->i", self._Z, self._Z, dtype=np.float64)
        return squares + self.alpha

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"product of {self._Z.shape[1]} features in {self._Z.dtype}"

    def _rounded(self, V: Float64) -> Float64:
        return rounded_product(self._Z, rounded_product(self._Z.T, V))

    def _exact(self, V: Float64) -> Float64:
        return exact_product(self._Z, exact_transposed_product(self._Z, V))


def _checked_budget(memory_budget: int | None) -> int:
    """Return the budget in bytes; None stands for half of the memory that is available now."""
    if memory_budget is None:
        return available_memory() // 2
    return checked_integer(
        "memory_budget", memory_budget, 0, remedy="give bytes, or None for half of what is free"
    )


def _storage(X: Any, budget: int) -> str:
    entries = X.shape[0] ** 2
    if 8 * entries <= budget:
        return "float64"
    return "float32" if X.dtype == np.float32 and 4 * entries <= budget else "nothing"


def _checked_indices(rows: ArrayLike, count: int) -> NDArray[np.integer[Any]]:
    indices = np.asarray(rows)
    if indices.ndim != 1 or not indices.size or indices.dtype.kind not in "iu":
        raise InputTypeError(
            f"rows have shape {indices.shape} and dtype {indices.dtype}; allowed is a list of "
            "at least one integer: give the numbers of the rows."
        )
    if indices.min() < 0 or indices.max() >= count:
        raise InputError(
            f"rows reach from {indices.min()} to {indices.max()}; choose from 0 to {count - 1}."
        )
    return indices
