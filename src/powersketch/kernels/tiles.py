"""The tiles of kernel matrices: what a kernel says of one, how they are cut and computed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar, TypeAlias

import numpy as np

from powersketch.arrays import Float64, Real, Rows, is_sparse, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import ordered_map
from powersketch.kernels.kernel_parameters import KernelParameters
from powersketch.kernels.rows import inner_products, or_float64, with_squared_norms

# The rows whose inner products the kernel is computed from, and their sizes: one number for every
# row, or what else a kernel makes its diagonal from.
Prepared: TypeAlias = tuple[Rows, Any]
# From a matrix, and the part of its rows that is wanted.
Preparation: TypeAlias = Callable[[Rows, slice], Prepared]

# A tile takes 2 MiB; the rows it comes from at most 32 MiB on each side, unless they are very long.
# A power of two would make columns of tiles, which are written transposed, share cache lines.
_EDGE = 500
_EDGE_OF_LONG_ROWS = 32
_EDGE_IN_FLOAT32 = 1000  # the rows are all prepared before
_BYTES_OF_ROWS = 32 << 20
# Functions of many steps run on parts of a tile that stay in cache between the steps.
_ENTRIES_IN_CACHE = 2**14


def tile_edge(X: Rows) -> int:
    """Return how many rows of X are prepared at a time, for one edge of a tile."""
    if is_sparse(X):
        return _EDGE
    fitting: int = _BYTES_OF_ROWS // (8 * X.shape[1])
    return min(max(fitting, _EDGE_OF_LONG_ROWS), _EDGE)


def _gradient_edge(X: Rows, count: int) -> int:
    """Return how many rows of X have their gradients of so many functions computed at a time."""
    fitting: int = _BYTES_OF_ROWS // (8 * max(count, 1) * X.shape[1])
    return min(max(fitting, _EDGE_OF_LONG_ROWS), tile_edge(X))


def _tile_rows(columns: slice, count: int, edge: int, *, symmetric: bool) -> Iterator[slice]:
    """Yield the rows of all tiles of some columns.

    Of a symmetric matrix, these are the diagonal tiles first, then those below; none above.
    """
    parts = [(columns.start, columns.stop), (columns.stop, count)] if symmetric else [(0, count)]
    for start, stop in parts:
        for rows in slices(stop - start, edge):
            yield slice(start + rows.start, start + rows.stop)


def _prepared_once(prepare: Preparation, every: dict[int, Rows], edge: int) -> Preparation:
    """Return a preparation that has prepared all blocks of so many rows already."""
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = {
            (name, rows.start): prepare(X, rows)
            for name, X in every.items()
            for rows in slices(X.shape[0], edge)
        }
    return lambda X, rows: blocks[id(X), rows.start]


class TiledKernel(KernelParameters, ABC):
    """What is behind :class:`Kernel`: methods that kernels define, and those that call them."""

    _size_name: ClassVar[str] = "squared norm"

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

    def _derivatives(
        self, products: Float64, left: Float64, right: Float64
    ) -> tuple[Float64, Float64]:
        """Return A and B for which the gradient of k(x, y) by x is A y + B x, for a part of a tile.

        The rows x and y are the prepared ones, and the arguments are those of `_values`. Without a
        preparation A is the derivative by the inner product, and B twice that by ‖x‖².
        """
        raise InputTypeError(
            f"{type(self).__name__} does not say what its derivatives are; gradients are known for "
            "the kernels of powersketch.kernels: use one of them, or define its "
            "_derivatives(products, left, right) that returns A and B of the gradient A y + B x."
        )

    def _preparation(self, X: Rows, Y: Rows) -> Preparation:
        """Return how rows of X and of Y are prepared; the same for both."""
        return with_squared_norms

    def _rounded_preparation(self, X: Rows, Y: Rows) -> Preparation:
        """Return how rows are prepared for inner products in float32, where these are enough.

        Kernels with singularities lose half of the digits there, and stay with float64.
        """
        return self._preparation(X, Y)

    def _preparation_for(self, X: Rows, Y: Rows, precision: np.dtype[Any] | None) -> Preparation:
        rounds = precision == np.float32
        return self._rounded_preparation(X, Y) if rounds else self._preparation(X, Y)

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
        threads: int,
        block_rows: int | None = None,
        precision: np.dtype[Any] | None = None,
    ) -> Generator[tuple[slice, slice, Real], None, None]:
        """Yield rows, columns and entries of tiles; if Y is X, only on and below the diagonal."""
        self._check_resolved()
        prepare = self._preparation_for(X, Y, precision)
        edge, width = block_rows or tile_edge(X), tile_edge(Y)
        if precision == np.float32 and block_rows is None and not is_sparse(X):
            # To prepare rows for every tile anew would take as long as their products in float32.
            edge = width = _EDGE_IN_FLOAT32
            prepare = _prepared_once(prepare, {id(rows): rows for rows in (X, Y)}, edge)

        def places() -> Iterator[tuple[slice, slice, Prepared]]:
            for columns in slices(Y.shape[0], width):
                with np.errstate(over="ignore", invalid="ignore"):
                    right = prepare(Y, columns)
                for rows in _tile_rows(columns, X.shape[0], edge, symmetric=Y is X):
                    yield rows, columns, right

        def computed(place: tuple[slice, slice, Prepared | None]) -> tuple[slice, slice, Real]:
            rows, columns, right = place
            with np.errstate(over="ignore", invalid="ignore"):
                left = prepare(X, rows)
                right = right or (left if Y is X else prepare(Y, columns))
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

    def _tile_of_products(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> Real:
        """Return a tile from inner products and squared norms of the rows themselves."""
        return self._rounded_values(*self._from_squared_norms(products, left, right), dtype)

    def _rounded_values(
        self, products: Float64, left: Float64, right: Float64, dtype: np.dtype[Any]
    ) -> Real:
        """Return a tile of the matrix, or say that the dtype cannot hold it."""
        tile = np.empty(products.shape, dtype)
        for rows in _parts_in_cache(tile):
            tile[rows] = self._values(products[rows], left[rows], right)
            if not np.isfinite(tile[rows]).all():
                text = self._overflow_text(products[rows], left[rows], right, dtype)
                raise InputError(text)
        return tile

    def _gradient_blocks(
        self, X: Rows, Y: Rows, V: Float64, threads: int
    ) -> Generator[tuple[slice, Float64], None, None]:
        """Yield some rows of X and the gradients there: rows × columns of V × coordinates."""
        self._check_resolved()
        prepare = self._preparation(X, Y)

        def computed(rows: slice) -> tuple[slice, Float64]:
            with np.errstate(over="ignore", invalid="ignore"):
                left = prepare(X, rows)
                rights = ((prepare(Y, part), V[part]) for part in slices(Y.shape[0], tile_edge(Y)))
                gradients = self._gradients_at(left, rights, V.shape[1])
            # What a preparation appends to rows is no coordinate of X.
            return rows, gradients[..., : X.shape[1]]

        edge = _gradient_edge(X, V.shape[1])
        yield from ordered_map(computed, slices(X.shape[0], edge), threads)

    def _gradients_at(
        self, left: Prepared, rights: Iterator[tuple[Prepared, Float64]], count: int
    ) -> Float64:
        """Return Σ_j V[j] (A y_j + B x) for all rows x of a block, from parts of all y_j and V."""
        block = left[0].toarray() if is_sparse(left[0]) else left[0]
        gradients = np.zeros((block.shape[0], count, block.shape[1]))
        shares = np.zeros((block.shape[0], count))
        for right, V in rights:
            by_right, by_left = self._derivative_tile(left, right)
            for index in range(count):
                gradients[:, index] += (by_right * V[:, index]) @ right[0]
            shares += by_left @ V
        for index in range(count):
            gradients[:, index] += shares[:, index, np.newaxis] * block
        return gradients

    def _derivative_tile(self, left: Prepared, right: Prepared) -> tuple[Float64, Float64]:
        """Return A and B of `_derivatives`, the first in the memory of the inner products."""
        products = self._products(left[0], right[0])
        by_left = np.empty(products.shape)
        for rows in _parts_in_cache(products):
            derivatives = self._derivatives(products[rows], left[1][rows], right[1])
            products[rows], by_left[rows] = derivatives
        return products, by_left

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


def _parts_in_cache(tile: Real) -> Iterator[slice]:
    return slices(tile.shape[0], max(_ENTRIES_IN_CACHE // max(tile.shape[1], 1), 1))
