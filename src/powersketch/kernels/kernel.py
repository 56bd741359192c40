"""What every exact kernel offers: matrix, diagonal, products with vectors, power series."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from powersketch.arrays import Float64, Real, Rows, is_sparse, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import ordered_map, thread_count
from powersketch.kernels.kernel_parameters import KernelParameters
from powersketch.kernels.rows import (
    MatrixLike,
    inner_products,
    or_float64,
    rounded_sums,
    tile_edge,
    tile_rows,
    with_squared_norms,
)
from powersketch.kernels.series import PowerSeries
from powersketch.parameters import checked_integer
from powersketch.validation import (
    checked_dtype,
    checked_matrix,
    checked_pair,
    checked_vectors,
    sound_array,
)

# The rows whose inner products the kernel is computed from, and their sizes.
Prepared: TypeAlias = tuple[Rows, Float64]
# From a matrix, and the part of its rows that is wanted.
Preparation: TypeAlias = Callable[[Rows, slice], Prepared]

# Given inner products are turned into values in blocks of this many, 2 MiB.
_ENTRIES_OF_TILE = 2**18
# Functions of many steps run on parts of a tile that stay in cache between the steps.
_ENTRIES_IN_CACHE = 2**14


class Kernel(KernelParameters, ABC):
    """A positive definite kernel on rows of real numbers.

    This class splits the matrix into tiles, computes them in float64 and puts them together. A
    kernel says how a tile follows from inner products (`_values`, or `_rounded_values` if it is
    compiled), what it is on the diagonal (`_diagonal_values`) and, unless it is a function of
    inner products and squared norms, how rows are prepared (`_preparation`). Its parameters are
    those of its constructor, stored in attributes of the same names; one called `gamma` may be
    the name of a rule (:meth:`resolve`). Your own subclass works wherever no sketch of it is
    needed.

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
    ) -> Real:
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
            The matrix. A ValueError says that an entry is too large for its dtype, here and below.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
        array([[121.,   4.]])
        """
        X, other = checked_pair(X, Y)
        kind = np.result_type(X.dtype, other.dtype) if dtype is None else checked_dtype(dtype)
        threads = thread_count(n_jobs)
        values = np.empty((X.shape[0], other.shape[0]), kind)
        for rows, columns, tile in self._tiles(X, other, kind, threads):
            if other is X and rows == columns:
                # A product may round the two triangles differently.
                np.copyto(tile, tile.T, where=np.triu(np.ones(tile.shape, dtype=bool), 1))
            elif other is X:
                values[columns, rows] = tile.T
            values[rows, columns] = tile
        return values

    def diagonal(self, X: MatrixLike) -> Real:
        """Return all ``k(x_i, x_i)`` without the matrix.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.

        Returns
        -------
        ndarray of shape (n,)
            float32 where X is float32, otherwise float64.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=2).diagonal([[1.0, 2.0], [0.0, 1.0]])
        array([25.,  1.])
        """
        self._check_resolved()
        X = checked_matrix("X", X)
        values = np.empty(X.shape[0], X.dtype)
        prepare = self._preparation(X, X)
        for rows in slices(X.shape[0], tile_edge(X)):
            with np.errstate(over="ignore", invalid="ignore"):
                _, sizes = prepare(X, rows)
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
    ) -> Real:
        """Return ``k(X, Y) @ V`` without ever holding the matrix.

        Tiles of the matrix are computed in float64, multiplied and forgotten.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.
        V : array-like of shape (m,) or (m, t)
            Finite real numbers.
        Y : {array-like, sparse matrix or array} of shape (m, d), default=None
            None means X; then every entry of the symmetric matrix is computed once only.
        block_rows : int, default=None
            Number of rows of the matrix computed at a time, at least 1. None takes a few MiB.
            Small numbers save memory and cost time; results differ by rounding errors only.
        n_jobs : int, default=None
            Number of threads: None is 1, -1 all processors.

        Returns
        -------
        ndarray of shape (n,) or (n, t)
            float32 where X, Y and V are all float32, otherwise float64.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> X = [[1.0, 2.0], [0.0, 1.0]]
        >>> Polynomial(degree=2).product(X, [1.0, -1.0])
        array([21.,  3.])
        """
        X, other = checked_pair(X, Y)
        V = checked_vectors(V, other.shape[0])
        if block_rows is not None:
            block_rows = checked_integer("block_rows", block_rows, 1)
        threads = thread_count(n_jobs)
        sums = np.zeros((X.shape[0], *V.shape[1:]))
        tiles = self._tiles(X, other, sums.dtype, threads, block_rows)
        # Without closing, an interrupt's traceback would keep its threads alive.
        with np.errstate(over="ignore", invalid="ignore"), closing(tiles):
            for rows, columns, tile in tiles:
                sums[rows] += tile @ V[columns].astype(np.float64, copy=False)
                if other is X and rows.start >= columns.stop:
                    sums[columns] += tile.T @ V[rows].astype(np.float64, copy=False)
            return rounded_sums(sums, np.result_type(X.dtype, other.dtype, V.dtype))

    def columns(self, Y: MatrixLike) -> Callable[[Rows, np.dtype[Any]], Real]:
        """Return a function from rows X to ``k(X, Y)``, for many blocks X and one Y.

        Parameters
        ----------
        Y : {array-like, sparse matrix or array} of shape (m, d)
            Finite real numbers. They are prepared once, and a copy in float64 is held.

        Returns
        -------
        callable
            Takes finite float32 or float64 rows, dense or CSR, and the dtype of the result. All
            of it is one tile: give few rows at a time.

        Examples
        --------
        >>> import numpy as np
        >>> from powersketch.kernels import Polynomial
        >>> Polynomial(degree=2).columns([[3.0, 4.0]])(np.array([[1.0, 2.0]]), np.dtype(float))
        array([[121.]])
        """
        self._check_resolved()
        Y = checked_matrix("Y", Y)
        prepare = self._preparation(Y, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            right = prepare(Y, slice(None))

        def values(X: Rows, dtype: np.dtype[Any]) -> Real:
            X = sound_array("X", X)
            if is_sparse(X) != is_sparse(Y):
                return self(X, Y, dtype=dtype)
            with np.errstate(over="ignore", invalid="ignore"):
                return self._tile(prepare(X, slice(None)), right, dtype)

        return values

    def from_inner_products(
        self, products: ArrayLike, left: ArrayLike, right: ArrayLike, *, n_jobs: int | None = None
    ) -> Real:
        """Return all ``k(x_i, y_j)`` from inner products and squared norms of the rows.

        For inner products that are known already, or that may be less accurate.

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

        self._check_resolved()
        values = np.empty(given.shape, kind)

        def write(rows: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                block = given[rows].astype(np.float64)
                prepared = self._from_squared_norms(block, sizes[0][rows], sizes[1])
                values[rows] = self._rounded_values(*prepared, kind)

        step = max(_ENTRIES_OF_TILE // max(given.shape[1], 1), 1)
        list(ordered_map(write, slices(given.shape[0], step), thread_count(n_jobs)))
        return values

    def power_series(self) -> PowerSeries:
        """Return the power series of the kernel."""
        raise InputTypeError(
            f"{type(self).__name__} does not say what its power series is; allowed are the "
            "kernels of powersketch.kernels: use one of them, or define its power_series()."
        )

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
        return with_squared_norms

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
        self, X: Rows, Y: Rows, dtype: np.dtype[Any], threads: int, block_rows: int | None = None
    ) -> Generator[tuple[slice, slice, Real], None, None]:
        """Yield rows, columns and entries of tiles; if Y is X, only on and below the diagonal."""
        self._check_resolved()
        prepare = self._preparation(X, Y)
        edge, width = block_rows or tile_edge(X), tile_edge(Y)

        def places() -> Iterator[tuple[slice, slice, Prepared]]:
            for columns in slices(Y.shape[0], width):
                with np.errstate(over="ignore", invalid="ignore"):
                    right = prepare(Y, columns)
                for rows in tile_rows(columns, X.shape[0], edge, symmetric=Y is X):
                    yield rows, columns, right

        def computed(place: tuple[slice, slice, Prepared | None]) -> tuple[slice, slice, Real]:
            rows, columns, right = place
            with np.errstate(over="ignore", invalid="ignore"):
                right, left = right or prepare(Y, columns), prepare(X, rows)
                tile = self._tile(left, right, dtype)
                if Y is X and rows.start < columns.stop:
                    diagonal = self._checked_diagonal(left[1], tile.dtype)
                    indices = np.arange(diagonal.size)
                    tile[indices, indices + rows.start - columns.start] = diagonal
            return rows, columns, tile

        whole = slice(0, X.shape[0]), slice(0, Y.shape[0]), None
        single = X.shape[0] <= edge and Y.shape[0] <= width
        if single and threads == 1:
            yield computed(whole)
        else:
            yield from ordered_map(computed, [whole] if single else places(), threads)

    def _tile(self, left: Prepared, right: Prepared, dtype: np.dtype[Any]) -> Real:
        return self._rounded_values(self._products(left[0], right[0]), left[1], right[1], dtype)

    def _rounded_values(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> Real:
        """Return a tile of the matrix, or say that the dtype cannot hold it."""
        tile = np.empty(products.shape, dtype)
        step = max(_ENTRIES_IN_CACHE // max(tile.shape[1], 1), 1)
        for rows in slices(tile.shape[0], step):
            tile[rows] = self._values(products[rows], left[rows], right)
            if not np.isfinite(tile[rows]).all():
                text = self._overflow_text(products[rows], left[rows], right, dtype)
                raise InputError(text)
        return tile

    def _check_resolved(self) -> None:
        """Refuse to compute values while gamma is the name of a rule."""
        gamma = getattr(self, "gamma", None)
        if isinstance(gamma, str):
            raise InputError(
                f"{self} has no values before gamma={gamma!r} is resolved from data: use "
                "kernel.resolve(X), or give gamma as a number."
            )

    def _checked_diagonal(self, sizes: Float64, dtype: np.dtype[Any]) -> Real:
        values = self._diagonal_values(sizes).astype(dtype, copy=False)
        if not np.isfinite(values).all():
            raise InputError(self._overflow_text(sizes, sizes, sizes, dtype))
        return values
