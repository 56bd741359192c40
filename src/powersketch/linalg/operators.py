"""Symmetric matrices that are multiplied by vectors: exact kernels, products of features."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.linalg import get_blas_funcs
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.utils import check_array

from powersketch.arrays import Float64, Real, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import available_memory, thread_count, thread_count_of_blocks
from powersketch.kernels import Kernel, as_kernel
from powersketch.parameters import checked_alpha, checked_integer
from powersketch.validation import checked_rows, sound_array

_STORED = {
    "float64": "stored in float64",
    "float32": "stored in float32",
    "nothing": "recomputed for every product",
}
# Of one call into BLAS. It takes about a tenth of a second, after which Ctrl-C can take effect.
_MULTIPLICATIONS = 2**27
# Up to this many vectors are quicker one at a time: it is reading the matrix that takes the time.
_FEW_VECTORS = 2
# Fewer have their matrix computed before threads or float32 would pay.
_MANY_ROWS = 8192
# Entries that are converted to float64 for the moment of a product.
_ENTRIES_CONVERTED = 2**21


class SymmetricOperator(LinearOperator):
    """A symmetric matrix in float64; subclasses multiply several vectors by it in `_matmat`.

    Parameters
    ----------
    size : int
        Number of rows and of columns.
    """

    def __init__(self, size: int) -> None:
        super().__init__(np.dtype(np.float64), (size, size))

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        raise NotImplementedError

    def _matmat(self, V: Any) -> Any:
        raise NotImplementedError

    def _matvec(self, vector: Any) -> Any:
        return self._matmat(np.reshape(vector, (-1, 1)))

    def _adjoint(self) -> Self:
        return self

    def _transpose(self) -> Self:
        return self


class _RegularisedOperator(SymmetricOperator):
    """A matrix A plus alpha I; subclasses multiply by A."""

    def __init__(self, size: int, alpha: float, precision: Any) -> None:
        super().__init__(size)
        self.alpha = alpha
        # A solver that needs products of a higher precision calls `exact_product` now and then.
        self.rounding = float(np.finfo(precision).eps)

    def exact_product(self, V: ArrayLike) -> Float64:
        """Return the product with one vector or several at float64 accuracy.

        Parameters
        ----------
        V : array-like of shape (n,) or (n, t)
            Finite real numbers.

        Returns
        -------
        ndarray of the shape of V and dtype float64
        """
        vectors = _float64_vectors(V, self.shape[0])
        return self._shifted(self._exact(vectors.reshape(self.shape[0], -1)), vectors)

    def _matmat(self, V: Any) -> Float64:
        vectors = _float64_vectors(V, self.shape[0])
        return self._shifted(self._rounded(vectors), vectors)

    def _shifted(self, products: Float64, vectors: Float64) -> Float64:
        products = products.reshape(vectors.shape)
        if self.alpha:
            products += self.alpha * vectors
        return products

    def _rounded(self, V: Float64) -> Float64:
        """Return A V in new memory, as fast as possible."""
        raise NotImplementedError

    def _exact(self, V: Float64) -> Float64:
        """Return A V in new memory, at float64 accuracy."""
        raise NotImplementedError


class KernelOperator(_RegularisedOperator):
    r"""The exact kernel matrix plus a multiple of the identity, :math:`K + \alpha I`.

    A SciPy ``LinearOperator`` in float64. Where the matrix fits the memory budget, it is computed
    once, when it is first needed; otherwise every product computes it anew, tile by tile.

    Parameters
    ----------
    kernel : powersketch.kernels.Kernel or str
        An exact kernel, or the name of one.
    X : {array-like, sparse matrix or array} of shape (n, d)
        Finite real numbers. Kept, and not to be changed as long as the operator is used.
    alpha : float, default=0.0
        Added to the diagonal; not negative.
    memory_budget : int, default=None
        Bytes that the matrix may take. With 8 n² it is stored in float64; with 4 n² and float32
        rows in float32; with less it is not stored, and of float32 rows inner products are
        computed in float32. Solvers repair the rounding errors of float32 with
        :meth:`exact_product`. None is half of the memory that is available now, and of float32
        rows four fifths of it for a matrix in float32.
    n_jobs : int, default=None
        Threads that compute entries of the matrix, with scikit-learn's meaning; 1 stands for as
        many as BLAS is set to use. Products with a stored matrix run on the threads of BLAS.

    Attributes
    ----------
    kernel, X, alpha, n_jobs
        The parameters, after all checks.
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
        alpha = checked_alpha(alpha)
        if memory_budget is not None:
            remedy = "give bytes, or None for half of what is free"
            checked_integer("memory_budget", memory_budget, 0, remedy=remedy)
        thread_count(n_jobs)
        X = checked_rows(X)
        self.kernel, self.X, self.n_jobs = as_kernel(kernel, X), X, n_jobs
        self.stored = _storage(X, memory_budget)
        rounds = self.stored != "float64" and X.dtype == np.float32 and _is_large(X)
        self._precision = np.dtype(np.float32 if rounds else np.float64)
        rounds |= self.stored == "float32"
        super().__init__(X.shape[0], alpha, np.float32 if rounds else np.float64)

    @cached_property
    def matrix(self) -> NDArray[Any] | None:
        """What is stored: K without alpha, read-only."""
        if self.stored == "nothing":
            return None
        dtype = np.dtype(self.stored)
        matrix = self.kernel(self.X, dtype=dtype, precision=self._precision, n_jobs=self._threads)
        # Whoever factors it in place has to take a copy.
        matrix.flags.writeable = False
        return matrix

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"exact kernel, {_STORED[self.stored]}"

    def _rounded(self, V: Float64) -> Float64:
        if self.matrix is not None:
            return _rounded_product(self.matrix, V, _symmetric_product)
        if self._precision == np.float64:
            return self._exact(V)
        scaled, exponents = near_one(V)
        return np.ldexp(self._recomputed(scaled, self._precision), exponents)

    def _exact(self, V: Float64) -> Float64:
        if self.stored == "float64":
            return self._rounded(V)
        return self._recomputed(V, np.dtype(np.float64))

    def _recomputed(self, V: Float64, precision: np.dtype[Any]) -> Float64:
        options: dict[str, Any] = {"precision": precision, "n_jobs": self._threads}
        return self.kernel.product(self.X, V, **options).astype(np.float64, copy=False)

    @property
    def _threads(self) -> int | None:
        return thread_count_of_blocks(self.n_jobs) if _is_large(self.X) else self.n_jobs


class FactorOperator(_RegularisedOperator):
    r"""A product of features plus a multiple of the identity, :math:`Z Z^\top + \alpha I`.

    A SciPy ``LinearOperator`` in float64: the kernel matrix as a feature map sees it.

    Parameters
    ----------
    Z : array-like of shape (n, m)
        Finite real numbers, a row for every sample. Kept; float32 stays float32, and then the
        products are rounded to float32, except for :meth:`exact_product`.
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
        alpha = checked_alpha(alpha)
        Z = sound_array("Z", Z)
        self._Z = check_array(Z, dtype=(np.float64, np.float32), input_name="Z")
        super().__init__(self._Z.shape[0], alpha, self._Z.dtype)

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"product of {self._Z.shape[1]} features in {self._Z.dtype}"

    def _rounded(self, V: Float64) -> Float64:
        return _rounded_product(self._Z, _rounded_product(self._Z.T, V))

    def _exact(self, V: Float64) -> Float64:
        return exact_product(self._Z, exact_transposed_product(self._Z, V))


class _MatrixOperator(LinearOperator):
    """A dense matrix, which need not be symmetric."""

    def __init__(self, matrix: Real) -> None:
        super().__init__(np.dtype(np.float64), matrix.shape)
        self._matrix = matrix
        self.rounding = float(np.finfo(matrix.dtype).eps)

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"dense matrix in {self._matrix.dtype}"

    def exact_product(self, V: Float64) -> Float64:
        """Return the product with several vectors at float64 accuracy."""
        return exact_product(self._matrix, V)

    def _matmat(self, V: Any) -> Float64:
        return _rounded_product(self._matrix, np.asarray(V, dtype=np.float64))

    def _rmatmat(self, V: Any) -> Float64:
        return _rounded_product(self._matrix.T, np.asarray(V, dtype=np.float64))


def as_operator(name: str, operator: Any) -> Any:
    """Return a SciPy operator that multiplies by the given operator, sparse or dense matrix."""
    if isinstance(operator, LinearOperator):
        return operator
    operator = sound_array(name, operator)
    if sparse.issparse(operator):
        return aslinearoperator(operator)
    matrix = np.asarray(operator)
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2:
        raise InputTypeError(
            f"{name} is a {type(operator).__name__} of dtype {matrix.dtype} and {matrix.ndim} "
            "dimensions; allowed are a scipy LinearOperator, a sparse matrix and an array of "
            "real numbers with 2 dimensions."
        )
    if matrix.dtype != np.float32:
        matrix = matrix.astype(np.float64, copy=False)
    return _MatrixOperator(matrix)


def exact_product(matrix: Real, V: Float64) -> Float64:
    """Return `matrix @ V` in float64, whatever the dtype of the matrix, without a copy of it."""
    if matrix.dtype == V.dtype:
        return _rounded_product(matrix, V)
    product = np.empty((matrix.shape[0], V.shape[1]))
    for rows in slices(matrix.shape[0], max(_ENTRIES_CONVERTED // matrix.shape[1], 1)):
        product[rows] = _rounded_product(matrix[rows].astype(np.float64), V)
    return product


def exact_transposed_product(matrix: Real, V: Float64) -> Float64:
    """Return `matrix.T @ V` in float64, whatever the dtype of the matrix, without a copy of it."""
    if matrix.dtype == V.dtype:
        return _rounded_product(matrix.T, V)
    product = np.zeros((matrix.shape[1], V.shape[1]))
    for rows in slices(matrix.shape[0], max(_ENTRIES_CONVERTED // matrix.shape[1], 1)):
        product += _rounded_product(matrix[rows].astype(np.float64).T, V[rows])
    return product


def near_one(V: Float64) -> tuple[Float64, NDArray[np.int32]]:
    """Return the columns times powers of two that bring them near one, and the exponents.

    A power of two changes no digit, and near one neither squares nor float32 over- or underflow.
    """
    exponents = np.frexp(np.abs(V).max(axis=0))[1]
    return np.ldexp(V, -exponents), exponents


def _panel_product(matrix: Real, V: Real) -> Real:
    """Return `matrix @ V` for V of two dimensions, both of the same dtype, panel by panel."""
    product = np.empty((matrix.shape[0], V.shape[1]), matrix.dtype)
    height = max(_MULTIPLICATIONS // max(matrix.shape[1] * V.shape[1], 1), 1)
    for rows in slices(matrix.shape[0], height):
        np.matmul(matrix[rows], V, out=product[rows])
    return product


def _symmetric_product(matrix: Real, V: Real) -> Real:
    """Return `matrix @ V` for a symmetric matrix, of which half is read for each of few vectors."""
    if V.shape[1] > _FEW_VECTORS or not matrix.flags.c_contiguous:
        return _panel_product(matrix, V)
    multiply = get_blas_funcs("symv", (matrix,))
    return np.column_stack([multiply(1.0, matrix.T, vector) for vector in V.T])


def _rounded_product(
    matrix: Real, V: Float64, product: Callable[[Real, Real], Real] = _panel_product
) -> Float64:
    """Return `matrix @ V` with the speed, and the rounding errors, of the matrix's precision."""
    if matrix.dtype == V.dtype:
        return product(matrix, V).astype(np.float64, copy=False)
    scaled, exponents = near_one(V)
    return np.ldexp(product(matrix, scaled.astype(matrix.dtype)).astype(np.float64), exponents)


def _float64_vectors(V: Any, length: int) -> Float64:
    """Return vectors of a given length in double precision, or refuse what is none."""
    if type(V) is not np.ndarray:
        V = sound_array("the array of vectors", V)
    if sparse.issparse(V) or np.asarray(V).dtype.kind not in "biuf":
        raise InputTypeError(
            f"the vectors are a {type(V).__name__}; allowed are dense arrays of real numbers: use "
            "toarray() of a sparse matrix and the real part of complex numbers."
        )
    vectors = np.asarray(V, dtype=np.float64)
    if vectors.ndim not in (1, 2) or vectors.shape[0] != length:
        raise InputError(
            f"the vectors have shape {vectors.shape}; allowed are ({length},) and ({length}, t)."
        )
    return vectors


def _storage(X: Any, memory_budget: int | None) -> str:
    """Return what of the kernel matrix of X fits the budget."""
    entries, available = X.shape[0] ** 2, available_memory() if memory_budget is None else 0
    if 8 * entries <= (available // 2 if memory_budget is None else memory_budget):
        return "float64"
    single = available * 4 // 5 if memory_budget is None else memory_budget
    return "float32" if X.dtype == np.float32 and 4 * entries <= single else "nothing"


def _is_large(X: Any) -> bool:
    """Return whether there are so many rows that a product takes more than a moment."""
    return bool(X.shape[0] >= _MANY_ROWS)
