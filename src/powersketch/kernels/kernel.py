"""What every exact kernel offers: matrix, diagonal, products with vectors, power series."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from powersketch.arrays import divide_or_zero
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import ordered_map, thread_count
from powersketch.kernels.columns import KernelColumns
from powersketch.kernels.gamma import resolved_gamma
from powersketch.kernels.rows import (
    Float64,
    MatrixLike,
    Rows,
    check_same_features,
    checked_matrix,
    checked_vectors,
    cosines,
    float64_block,
    inner_products,
    squared_norms,
    unit_rows,
)
from powersketch.parameters import checked_integer

if TYPE_CHECKING:
    from powersketch.kernels.series import PowerSeries

# From float64 rows to the rows whose inner products the kernel is computed from, and their sizes.
Preparation: TypeAlias = Callable[[Rows], tuple[Rows, Float64]]

# A tile takes 2 MiB, the rows it comes from take at most 32 MiB each, but for the longest rows.
# Not a power of two, for the sake of the cache: tiles are written transposed, too.
_EDGE = 500
_EDGE_OF_LONG_ROWS = 32
_BYTES_OF_ROWS = 32 << 20
# Functions of many steps run on parts of a tile that stay in cache between the steps.
_ENTRIES_IN_CACHE = 2**14


class Kernel(ABC):
    """A positive definite kernel on rows of real numbers.

    This class splits the matrix into tiles, computes them in float64 and puts them together. A
    kernel says how a tile follows from inner products (`_values`, or `_rounded_values` if it is
    compiled), what it is on the diagonal (`_diagonal_values`) and, unless it is a function of
    inner products and squared norms, how rows are prepared (`_preparation`). Its parameters are
    those of its constructor and kept in attributes of the same names; one called `gamma` may be
    the name of a rule (:meth:`resolve`).

    A subclass of your own can stand wherever no sketch of it is needed; with :meth:`power_series`
    it can say what its power series is.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.kernels import Kernel
    >>> class InverseQuadratic(Kernel):
    ...     def __init__(self, gamma=1.0):
    ...         self.gamma = gamma
    ...
    ...     def _values(self, products, left, right):
    ...         return 1.0 / (1.0 + self.gamma * (np.add.outer(left, right) - 2.0 * products))
    ...
    ...     def _diagonal_values(self, sizes):
    ...         return np.ones_like(sizes)
    >>> InverseQuadratic(gamma=0.5)([[0.0, 1.0], [1.0, 2.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    _size_name: ClassVar[str] = "squared norm"

    def __call__(
        self,
        X: MatrixLike,
        Y: MatrixLike | None = None,
        *,
        dtype: DTypeLike | None = None,
        n_jobs: int | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Return the matrix of all ``k(x_i, y_j)``.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.
        Y : {array-like, sparse matrix or array} of shape (m, d), default=None
            None means X, and then the matrix is symmetric to the last bit and its diagonal is
            that of :meth:`diagonal`.
        dtype : {float32, float64}, default=None
            Of the result; None takes float32 where X and Y are both float32, otherwise float64.
            The matrix is computed in float64 always.
        n_jobs : int, default=None
            Number of threads: None is 1, -1 all processors. Bits do not depend on it as long as
            BLAS rounds the same with one thread and with several.

        Returns
        -------
        ndarray of shape (n, m)
            The matrix.

        Raises
        ------
        ValueError
            Where an entry is too large for the dtype of the result.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
        array([[121.,   4.]])
        """
        X, other = _checked_pair(X, Y)
        threads = thread_count(n_jobs)
        kind = np.result_type(X.dtype, other.dtype) if dtype is None else _checked_dtype(dtype)
        values = np.empty((X.shape[0], other.shape[0]), kind)
        for rows, columns, tile in self._tiles(X, other, kind, threads=threads):
            if other is X and rows == columns:
                _mirror_lower_triangle(tile)
            elif other is X:
                values[columns, rows] = tile.T
            values[rows, columns] = tile
        return values

    def diagonal(self, X: MatrixLike) -> NDArray[np.floating[Any]]:
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
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=2).diagonal([[1.0, 2.0], [0.0, 1.0]])
        array([25.,  1.])
        """
        X = checked_matrix("X", X)
        values = np.empty(X.shape[0], X.dtype)
        prepare = self._preparation(X, X)
        for rows in _slices(0, X.shape[0], _edge(X)):
            with np.errstate(over="ignore", invalid="ignore"):
                _, sizes = prepare(float64_block(X, rows))
                values[rows] = self._checked_diagonal(sizes, X.dtype)
        return values

    def product(
        self,
        X: MatrixLike,
        V: ArrayLike,
        Y: MatrixLike | None = None,
        *,
        block_rows: int | None = None,
        n_jobs: int | None = None,
    ) -> NDArray[np.floating[Any]]:
        """Return ``k(X, Y) @ V`` without ever holding the matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.
        V : array-like of shape (m,) or (m, t)
            Finite real numbers.
        Y : {array-like, sparse matrix or array} of shape (m, d), default=None
            None means X; then every entry of the symmetric matrix is computed once only.
        block_rows : int, default=None
            How many rows of the matrix are worked on at a time, at least 1. None takes a few MiB.
            Small numbers save memory and cost time; the result differs by rounding errors only.
        n_jobs : int, default=None
            Number of threads: None is 1, -1 all processors.

        Returns
        -------
        ndarray of shape (n,) or (n, t)
            float32 where X, Y and V are all float32, otherwise float64. Sums are taken in float64.

        Raises
        ------
        ValueError
            Where an entry of the matrix or of the result is too large for its dtype.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> X = [[1.0, 2.0], [0.0, 1.0]]
        >>> Polynomial(degree=2).product(X, [1.0, -1.0])
        array([21.,  3.])
        """
        X, other = _checked_pair(X, Y)
        V = checked_vectors(V, other.shape[0])
        if block_rows is not None:
            block_rows = checked_integer("block_rows", block_rows, 1)
        threads = thread_count(n_jobs)
        sums = np.zeros((X.shape[0], *V.shape[1:]))
        tiles = self._tiles(X, other, sums.dtype, block_rows=block_rows, threads=threads)
        # Closed in any case: it holds threads, for as long as the traceback of an interrupt lives.
        with np.errstate(over="ignore", invalid="ignore"), closing(tiles):
            for rows, columns, tile in tiles:
                sums[rows] += tile @ V[columns].astype(np.float64, copy=False)
                if other is X and rows.start >= columns.stop:
                    sums[columns] += tile.T @ V[rows].astype(np.float64, copy=False)
            return _checked_sums(sums, np.result_type(X.dtype, other.dtype, V.dtype))

    def columns(self, Y: MatrixLike) -> KernelColumns:
        """Return a function from rows X to ``k(X, Y)``, for many blocks X and one Y.

        Parameters
        ----------
        Y : {array-like, sparse matrix or array} of shape (m, d)
            Finite real numbers. A copy in float64 is held.

        Returns
        -------
        KernelColumns
            Called with finite float32 or float64 rows, dense or CSR, and the dtype of the result.

        Examples
        --------
        >>> import numpy as np
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=2).columns([[3.0, 4.0]])(np.array([[1.0, 2.0]]), np.dtype(float))
        array([[121.]])
        """
        return KernelColumns(self, checked_matrix("Y", Y))

    def from_inner_products(
        self, products: ArrayLike, left: ArrayLike, right: ArrayLike, *, n_jobs: int | None = None
    ) -> NDArray[np.floating[Any]]:
        """Return all ``k(x_i, y_j)`` from inner products and squared norms of the rows.

        For inner products that are at hand, or that may be less accurate than those of a call.

        Parameters
        ----------
        products : array-like of shape (n, m)
            All ⟨x_i, y_j⟩. Their rounding errors enter the result as they are.
        left : array-like of shape (n,)
            All ‖x_i‖².
        right : array-like of shape (m,)
            All ‖y_j‖².
        n_jobs : int, default=None
            Number of threads: None is 1, -1 all processors.

        Returns
        -------
        ndarray of shape (n, m)
            float32 where the products are float32, otherwise float64; computed in float64.

        Raises
        ------
        ValueError
            Where an entry is too large for the dtype of the result.

        Examples
        --------
        >>> from powersketch.kernels import Gaussian
        >>> Gaussian(gamma=0.5).from_inner_products([[2.0]], [1.0], [5.0]).round(6)
        array([[0.367879]])
        """
        given = np.asarray(products)
        kind = np.dtype(np.float32) if given.dtype == np.float32 else np.dtype(np.float64)
        sizes = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
        if given.shape != (*sizes[0].shape, *sizes[1].shape) or given.ndim != 2:
            raise InputError(
                f"products of shape {given.shape} do not fit {sizes[0].shape} and "
                f"{sizes[1].shape} squared norms; allowed are (n, m), (n,) and (m,)."
            )

        def computed(rows: slice) -> tuple[slice, NDArray[np.floating[Any]]]:
            with np.errstate(over="ignore", invalid="ignore"):
                block = given[rows].astype(np.float64)
                prepared = self._from_squared_norms(block, sizes[0][rows], sizes[1])
                return rows, self._rounded_values(*prepared, kind)

        values = np.empty(given.shape, kind)
        step = max(_EDGE * _EDGE // max(given.shape[1], 1), 1)
        blocks = _slices(0, given.shape[0], step)
        for rows, entries in ordered_map(computed, blocks, thread_count(n_jobs)):
            values[rows] = entries
        return values

    def power_series(self) -> PowerSeries:
        """Return the power series of the kernel."""
        raise InputTypeError(
            f"{type(self).__name__} does not say what its power series is; allowed are the "
            "kernels of powersketch.kernels, and own ones with a method power_series: add it."
        )

    def resolve(self, X: MatrixLike) -> Kernel:
        """Return the kernel with numbers for all parameters that depend on the data.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers. With ``gamma="scale"``, gamma is 1 / (d · variance of X). With
            ``gamma="median"``, it is one over the median of the squared distances of pairs of
            different rows, of up to 256 of them.

        Returns
        -------
        Kernel
            The kernel itself if there is nothing to resolve.

        Examples
        --------
        >>> from powersketch.kernels import Gaussian
        >>> Gaussian("scale").resolve([[0.0, 1.0], [2.0, 1.0]])
        Gaussian(gamma=1.0)
        """
        gamma = getattr(self, "gamma", None)
        if not isinstance(gamma, str):
            return self
        number = resolved_gamma(gamma, checked_matrix("X", X))
        return type(self)(**(self.get_params() | {"gamma": number}))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn's `clone` and searches ask for them.

        Parameters
        ----------
        deep : bool, default=True
            Without effect: no parameter has parameters itself.

        Returns
        -------
        dict
            What the constructor takes.
        """
        del deep
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, all or, if one of them is refused, none.

        Parameters
        ----------
        **params : dict
            Parameters of the constructor. In a search over the parameters of an estimator,
            ``kernel__gamma`` is the gamma of its kernel.

        Returns
        -------
        self : Kernel
            The kernel.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=3).set_params(coef0=1.0)
        Polynomial(degree=3, gamma=1.0, coef0=1.0)
        """
        known = self.get_params()
        check_parameter_names(type(self).__name__, params, known)
        self.__dict__.update(type(self)(**(known | params)).__dict__)
        return self

    @property
    def _gamma(self) -> float:
        """Gamma as a number, which formulas take."""
        gamma = getattr(self, "gamma", None)
        if isinstance(gamma, str):
            raise InputError(
                f"{self} has no values before gamma={gamma!r} is resolved from data: use "
                "kernel.resolve(X), or give gamma as a number."
            )
        return float(gamma)  # type: ignore[arg-type]

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        """Return a part of a tile in new memory; for kernels without `_rounded_values`.

        `products` are inner products of prepared rows; `left` and `right` are the sizes of the
        rows of the tile and of its columns: their squared norms, unless rows are prepared
        differently. Entries beyond float64 may be infinite or NaN.
        """
        raise NotImplementedError(f"{type(self).__name__} has no formula for its entries.")

    @abstractmethod
    def _diagonal_values(self, sizes: Float64) -> Float64:
        """Return the diagonal of the matrix for rows of these sizes."""

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        """Return how rows of X and of Y are prepared; the same for both."""
        return _with_squared_norms

    def _products(self, left: Rows, right: Rows) -> Float64:
        """Return the inner products of all prepared rows."""
        return inner_products(left, right)

    def _from_squared_norms(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64, Float64]:
        """Return what `_values` takes, from inner products and squared norms of the rows."""
        return products, left, right

    def _overflow_text(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> str:
        """Return what to say of a tile with an entry that the dtype cannot hold."""
        largest = max(left.max(), right.max())
        return (
            f"{self} overflows {dtype}: for rows whose {self._size_name} reaches {largest:.6g} an "
            f"entry is above {np.finfo(dtype).max:.3g}: scale X and Y down{or_float64(dtype)}."
        )

    def _tiles(
        self,
        X: Rows,
        Y: Rows,
        dtype: np.dtype[Any],
        *,
        block_rows: int | None = None,
        threads: int = 1,
    ) -> Generator[tuple[slice, slice, NDArray[np.floating[Any]]], None, None]:
        """Yield rows, columns and entries of tiles; where Y is X, only on and below the diagonal.

        Below it means that the tiles of the columns c…d begin with the rows c…d.
        """
        prepare = self._preparation(X, Y)

        def places() -> Iterator[tuple[slice, slice, tuple[Rows, Float64]]]:
            for columns in _slices(0, Y.shape[0], _edge(Y)):
                with np.errstate(over="ignore", invalid="ignore"):
                    right = prepare(float64_block(Y, columns))
                edge = block_rows or _edge(X)
                for rows in _row_slices(columns, X.shape[0], edge, symmetric=Y is X):
                    yield rows, columns, right

        def computed(
            place: tuple[slice, slice, tuple[Rows, Float64]],
        ) -> tuple[slice, slice, NDArray[np.floating[Any]]]:
            rows, columns, right = place
            with np.errstate(over="ignore", invalid="ignore"):
                left = prepare(float64_block(X, rows))
                tile = self._tile(left, right, dtype)
                if Y is X and rows.start < columns.stop:
                    diagonal = self._checked_diagonal(left[1], tile.dtype)
                    _set_diagonal(tile, rows, columns, diagonal)
            return rows, columns, tile

        return ordered_map(computed, places(), threads)

    def _tile(
        self, left: tuple[Rows, Float64], right: tuple[Rows, Float64], dtype: np.dtype[Any]
    ) -> NDArray[np.floating[Any]]:
        return self._rounded_values(self._products(left[0], right[0]), left[1], right[1], dtype)

    def _rounded_values(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> NDArray[np.floating[Any]]:
        """Return a tile of the matrix, or say that the dtype cannot hold it."""
        tile = np.empty(products.shape, dtype)
        step = max(_ENTRIES_IN_CACHE // max(tile.shape[1], 1), 1)
        for rows in _slices(0, tile.shape[0], step):
            tile[rows] = self._values(products[rows], left[rows], right)
            if not np.isfinite(tile[rows]).all():
                text = self._overflow_text(products[rows], left[rows], right, dtype)
                raise InputError(text)
        return tile

    def _checked_diagonal(self, sizes: Float64, dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
        values = self._diagonal_values(sizes).astype(dtype, copy=False)
        if not np.isfinite(values).all():
            raise InputError(self._overflow_text(sizes, sizes, sizes, dtype))
        return values


class CosineKernel(Kernel):
    """A kernel that is a function of the cosine of two rows and of their norms.

    The inner products that `_values` takes are cosines, the sizes are norms.
    """

    _size_name: ClassVar[str] = "norm"

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        return unit_rows

    def _products(self, left: Rows, right: Rows) -> Float64:
        return cosines(left, right)

    def _from_squared_norms(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64, Float64]:
        norms = np.sqrt(left), np.sqrt(right)
        scales = np.outer(*norms)
        quotients = divide_or_zero(products, scales)
        return np.clip(quotients, -1.0, 1.0), *norms


def check_parameter_names(kernel: str, params: Iterable[str], allowed: Iterable[str]) -> None:
    """Refuse parameters that a kernel does not have."""
    for name in params:
        if name not in allowed:
            raise InputError(
                f"the {kernel} kernel has no {name}; its parameters are "
                f"{', '.join(allowed) or 'none'}: leave {name} out, or choose another kernel."
            )


def or_float64(dtype: np.dtype[Any]) -> str:
    """Return the other remedy for numbers that are too large, if there is one."""
    return "" if dtype == np.float64 else ", or use float64"


def _checked_pair(X: Any, Y: Any) -> tuple[Rows, Rows]:
    X = checked_matrix("X", X)
    if Y is None:
        return X, X
    Y = checked_matrix("Y", Y)
    check_same_features(X, Y)
    return X, Y


def _checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise InputError(f"dtype={dtype!r} is not possible; allowed are float32 and float64.")
    return kind


def _with_squared_norms(block: Rows) -> tuple[Rows, Float64]:
    return block, squared_norms(block)


def _edge(X: Rows) -> int:
    """Return how many rows of X are prepared at a time."""
    if sparse.issparse(X):
        return _EDGE
    fitting: int = _BYTES_OF_ROWS // (8 * X.shape[1])
    return min(max(fitting, _EDGE_OF_LONG_ROWS), _EDGE)


def _slices(start: int, stop: int, step: int) -> Iterator[slice]:
    for first in range(start, stop, step):
        yield slice(first, min(first + step, stop))


def _row_slices(columns: slice, stop: int, step: int, *, symmetric: bool) -> Iterator[slice]:
    if symmetric:
        yield from _slices(columns.start, columns.stop, step)
    yield from _slices(columns.stop if symmetric else 0, stop, step)


def _set_diagonal(
    tile: NDArray[np.floating[Any]],
    rows: slice,
    columns: slice,
    values: NDArray[np.floating[Any]],
) -> None:
    positions = np.arange(rows.stop - rows.start)
    tile[positions, positions + rows.start - columns.start] = values


def _mirror_lower_triangle(square: NDArray[np.floating[Any]]) -> None:
    """Copy the lower triangle onto the upper one, which a product may round differently."""
    above = np.triu(np.ones(square.shape, dtype=bool), 1)
    np.copyto(square, square.T, where=above)


def _checked_sums(sums: Float64, dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
    rounded = sums.astype(dtype, copy=False)
    if not np.isfinite(rounded).all():
        raise InputError(
            f"the product of the kernel matrix and V overflows {dtype}: an entry is above "
            f"{np.finfo(dtype).max:.3g}: scale V down{or_float64(dtype)}."
        )
    return rounded
