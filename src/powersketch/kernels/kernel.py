"""What every exact kernel offers: matrix, diagonal, products with vectors, gradients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from powersketch.arrays import Real, Rows, is_sparse, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import ordered_map, thread_count
from powersketch.kernels.rows import MatrixLike, rounded_sums
from powersketch.kernels.series import PowerSeries
from powersketch.kernels.tiles import TiledKernel, tile_edge
from powersketch.parameters import checked_integer
from powersketch.validation import (
    checked_dtype,
    checked_matrix,
    checked_pair,
    checked_vectors,
    sound_array,
)

# Given inner products are turned into values in blocks of this many, 2 MiB.
_ENTRIES_OF_TILE = 2**18


class Kernel(TiledKernel):
    """A positive definite kernel on rows of real numbers.

    This class splits the matrix into tiles, computes them in float64 and puts them together. A
    kernel says how a tile follows from inner products (`_values`, or `_rounded_values` if it is
    compiled), what it is on the diagonal (`_diagonal_values`) and, unless it is a function of
    inner products and squared norms, how rows are prepared (`_preparation`). With its derivatives
    (`_derivatives`) it has gradients, too. Its parameters are those of its constructor, stored in
    attributes of the same names; one called `gamma` may be the name of a rule (:meth:`resolve`).
    Your own subclass works wherever no sketch of it is needed.

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

    def __call__(
        self,
        X: MatrixLike,
        Y: MatrixLike | None = None,
        *,
        dtype: DTypeLike | None = None,
        precision: DTypeLike = np.float64,
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
        precision : {float64, float32}, default=float64
            Of inner products. In float32 they take half the time and have its rounding errors, and
            a copy of the rows is held; kernels of cosines, and sparse rows, stay with float64.
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
        products, threads = checked_dtype(precision), thread_count(n_jobs)
        values = np.empty((X.shape[0], other.shape[0]), kind)
        for rows, columns, tile in self._tiles(X, other, kind, threads, precision=products):
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
        precision: DTypeLike = np.float64,
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
        precision : {float64, float32}, default=float64
            Of inner products. In float32 they take half the time and have its rounding errors, and
            a copy of the rows is held; kernels of cosines, and sparse rows, stay with float64.
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
        threads, kind = thread_count(n_jobs), np.result_type(X.dtype, other.dtype, V.dtype)
        sums = np.zeros((X.shape[0], *V.shape[1:]))
        products = checked_dtype(precision)
        # Tiles as precise as their inner products are half as large, and quicker to multiply by.
        V = V.astype(products, copy=False)
        tiles = self._tiles(X, other, products, threads, block_rows, products)
        # Without closing, an interrupt's traceback would keep its threads alive.
        with np.errstate(over="ignore", invalid="ignore"), closing(tiles):
            for rows, columns, tile in tiles:
                sums[rows] += tile @ V[columns]
                if other is X and rows.start >= columns.stop:
                    sums[columns] += tile.T @ V[rows]
            return rounded_sums(sums, kind)

    def gradients(
        self,
        X: MatrixLike,
        V: ArrayLike,
        Y: MatrixLike | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Real:
        r"""Return the gradients of :math:`f_t(x) = \sum_j V_{jt}\, k(x, y_j)` at all rows of X.

        Closed forms of the derivatives are computed in float64, tile by tile, and never held for
        all pairs of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix or array} of shape (n, d)
            Finite real numbers.
        V : array-like of shape (m,) or (m, t)
            Finite real numbers.
        Y : {array-like, sparse matrix or array} of shape (m, d), default=None
            The :math:`y_j`, which are held while x varies. None means X.
        n_jobs : int, default=None
            Number of threads: None is 1, -1 all processors.

        Returns
        -------
        ndarray of shape (n, d) or (n, t, d)
            Dense; float32 where X, Y and V are all float32, otherwise float64. A ValueError says
            that an entry is too large for it.

        Notes
        -----
        Where a kernel has no gradient, at the tip of a cone, the mean over all directions takes
        its place, which is finite: a pair of rows adds only what is smooth there. This concerns
        the arc-cosine kernel of order 0 and the neural tangent kernel at rows that are equal or
        opposite in direction, and series whose derivative is infinite at the end of their disk.
        At a zero row, kernels of cosines have the gradient zero.

        Examples
        --------
        >>> from powersketch.kernels import Polynomial
        >>> X = [[1.0, 2.0], [0.0, 1.0]]
        >>> Polynomial(degree=2).gradients(X, [1.0, -1.0])
        array([[10., 16.],
               [ 4.,  6.]])
        """
        X, other = checked_pair(X, Y)
        V = checked_vectors(V, other.shape[0])
        kind = np.result_type(X.dtype, other.dtype, V.dtype)
        columns = V.reshape(V.shape[0], -1).astype(np.float64, copy=False)
        gradients = np.empty((X.shape[0], columns.shape[1], X.shape[1]), kind)
        blocks = self._gradient_blocks(X, other, columns, thread_count(n_jobs))
        with np.errstate(over="ignore", invalid="ignore"), closing(blocks):
            for rows, block in blocks:
                gradients[rows] = rounded_sums(block, kind, "a gradient", "X or V")
        return gradients.reshape(X.shape[0], *V.shape[1:], X.shape[1])

    def columns(
        self, Y: MatrixLike, *, precision: DTypeLike = np.float64
    ) -> Callable[[Rows, np.dtype[Any]], Real]:
        """Return a function from rows X to ``k(X, Y)``, for many blocks X and one Y.

        Parameters
        ----------
        Y : {array-like, sparse matrix or array} of shape (m, d)
            Finite real numbers. They are prepared once, and a copy in the precision is held.
        precision : {float64, float32}, default=float64
            Of inner products. In float32 they take half the time and have its rounding errors, and
            a copy of the rows is held; kernels of cosines, and sparse rows, stay with float64.

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
        products = checked_dtype(precision)
        prepare = self._preparation_for(Y, Y, products)
        with np.errstate(over="ignore", invalid="ignore"):
            right = prepare(Y, slice(None))

        def values(X: Rows, dtype: np.dtype[Any]) -> Real:
            X = sound_array("X", X)
            if is_sparse(X) != is_sparse(Y):
                return self(X, Y, dtype=dtype, precision=products)
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
                values[rows] = self._tile_of_products(block, sizes[0][rows], sizes[1], kind)

        step = max(_ENTRIES_OF_TILE // max(given.shape[1], 1), 1)
        list(ordered_map(write, slices(given.shape[0], step), thread_count(n_jobs)))
        return values

    def power_series(self) -> PowerSeries:
        """Return the power series of the kernel."""
        raise InputTypeError(
            f"{type(self).__name__} does not say what its power series is; allowed are the "
            "kernels of powersketch.kernels: use one of them, or define its power_series()."
        )
