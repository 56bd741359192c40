"""The compiled routines behind NumPy-shaped functions: output allocated, dtypes matched."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from powersketch import _native
from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse, slices
from powersketch.routines.fourier_tables import fourier_tables
from powersketch.routines.specs import (
    ChainSpec,
    PairSpec,
    RowStructure,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    TensorSketchSpec,
)

_native.instruction_set()  # a wrong POWERSKETCH_SIMD is reported here, not at the first transform

DENSE_BYTES = 1 << 22  # of sparse rows made dense at a time
TABLE_ENTRIES = 1 << 22  # of hashed targets kept at most; dense rows need one for every column
_NOTHING = np.empty(0)


def _csr(X: Any) -> tuple[Real, NDArray[Any], NDArray[np.int64]]:
    return X.data, X.indices, X.indptr.astype(np.int64, copy=False)


def _dense_pieces(X: Rows, out: Real) -> Iterator[tuple[Real, Real]]:
    """Yield dense rows and their part of `out`: all at once, sparse ones a few MiB at a time."""
    if not is_sparse(X):
        yield X, out
        return
    row_bytes = max(X.shape[1], 1) * X.dtype.itemsize
    for rows in slices(X.shape[0], max(DENSE_BYTES // row_bytes, 1)):
        yield X[rows].toarray(), out[rows]


def row_structure(indptr: NDArray[np.int64], indices: NDArray[Any], bound: int) -> RowStructure:
    """Return whether all indices are from 0 to bound − 1, and in which order those of a row are."""
    return RowStructure(*_native.row_structure(indptr, indices, bound))


def fwht(X: Real, padded: int, *, threads: int = 1) -> Real:
    """Return H x for every row x of X padded with zeros, H the unnormalised Hadamard matrix."""
    out = np.empty((X.shape[0], padded), dtype=X.dtype)
    _native.fwht(X, out, threads)
    return out


def srht(X: Rows, spec: SrhtSpec, *, threads: int = 1) -> Real:
    """Return scale · (H D x)[indices] for every row; X may have fewer columns than D."""
    out = np.empty((X.shape[0], len(spec.indices)), dtype=X.dtype)
    signs, padded, scale = spec.signs_as(X.dtype)[: X.shape[1]], spec.padded, spec.scale
    if is_sparse(X):
        values, columns, indptr = _csr(X)
        _native.srht_sparse(
            values, columns, indptr, signs, spec.indices, padded, scale, out, threads
        )
    else:
        _native.srht(X, signs, spec.indices, padded, scale, out, threads)
    return out


def sorf(X: Rows, spec: SorfSpec, *, threads: int = 1) -> Real:
    """Return scales · (F D₃ F D₂ F D₁ x)[indices] for every row; see SorfSpec."""
    out = np.empty((X.shape[0], len(spec.indices)), dtype=X.dtype)
    diagonals, scales = spec.arrays_as(X.dtype)
    for dense, part in _dense_pieces(X, out):
        _native.sorf(dense, diagonals, spec.indices, scales, part, threads)
    return out


def fourier(X: Rows, spec: SorfSpec, scale: float, *, threads: int = 1) -> Real:
    """Return scale · cos(2πp), then scale · sin(2πp), for every row, p = sorf(x) in turns."""
    out = np.empty((X.shape[0], 2 * len(spec.indices)), dtype=X.dtype)
    diagonals, scales = spec.arrays_as(X.dtype)
    for dense, part in _dense_pieces(X, out):
        _native.fourier(dense, diagonals, spec.indices, scales, scale, part, threads)
    return out


def tensor_srht(A: Real, B: Real, spec: PairSpec, *, threads: int = 1) -> Real:
    """Return S(a ⊗ b) for every pair of rows, S the TensorSRHT of `spec`."""
    out = np.empty((A.shape[0], len(spec.first)), dtype=A.dtype)
    scale = 1.0 / np.sqrt(len(spec.first))
    signs = spec.signs_as(A.dtype)
    _native.tensor_srht(A, B, *signs, spec.first, spec.second, scale, out, threads)
    return out


def scatter(X: Rows, spec: ScatterSpec, *, threads: int = 1) -> Real:
    """Return scale · (signed sums of the coordinates of every row)."""
    out, sparsity = np.empty((X.shape[0], spec.size), dtype=X.dtype), spec.table.shape[1]
    if is_sparse(X) and spec.key is not None:
        values, columns, indptr = _csr(X)
        hashed = X.shape[1], spec.key, sparsity
        _native.scatter_sparse_hashed(values, columns, indptr, *hashed, spec.scale, out, threads)
        return out
    table = spec.table[: X.shape[1]].reshape(-1)
    if is_sparse(X):
        _native.scatter_sparse(*_csr(X), table, sparsity, spec.scale, out, threads)
    else:
        _native.scatter(X, table, sparsity, spec.scale, out, threads)
    return out


def _moments(X: Rows, direction: Vector, squares: Vector, dots: Vector, threads: int) -> None:
    if is_sparse(X):
        _native.row_moments_sparse(*_csr(X), X.shape[1], direction, squares, dots, threads)
    elif X.flags.c_contiguous and X.flags.aligned:
        _native.row_moments(X, direction, squares, dots, threads)
    else:
        for rows in slices(X.shape[0], max(DENSE_BYTES // (X.shape[1] * X.dtype.itemsize), 1)):
            block = np.require(X[rows], requirements=["C", "A"])
            _native.row_moments(block, direction, squares[rows], dots[rows], threads)


def squared_norms(X: Rows, *, threads: int = 1) -> Vector:
    """Return ‖x‖² of every row, of any layout, summed in double precision."""
    squares = np.empty(X.shape[0])
    _moments(X, _NOTHING, squares, _NOTHING, threads)
    return squares


def row_moments(X: Rows, direction: Vector, *, threads: int = 1) -> tuple[Vector, Vector]:
    """Return ‖x‖² and ⟨x, direction⟩ of every row, of any layout, in double precision."""
    squares, dots = np.empty(X.shape[0]), np.empty(X.shape[0])
    _moments(X, direction, squares, dots, threads)
    return squares, dots


def product(X: Rows, matrix: Real, *, threads: int = 1) -> Real:
    """Return X @ matrix, each sum taken in the order of the columns of X."""
    out = np.empty((X.shape[0], matrix.shape[1]), dtype=X.dtype)
    if is_sparse(X):
        _native.product_sparse(*_csr(X), matrix, out, threads)
    else:
        _native.product(X, matrix, out, threads)
    return out


def normal_product(Z: Real, V: Real, offsets: Vector, weights: Float64) -> Float64:
    """Return Zᵀ U for U = W (Z V − offsets), and below it the sums of the columns of U.

    `weights` has one column or several: each is the diagonal W for as many columns of V. U is
    rounded to the dtype of Z, in which sums are taken; those of the columns of U are float64.
    """
    out = np.empty((Z.shape[1] + 1, V.shape[1]))
    _native.normal_product(Z, V, offsets, weights, out)
    return out


def gaussian_values(
    products: Float64,
    left: Vector,
    right: Vector,
    gamma: float,
    dtype: np.dtype[Any],
    *,
    threads: int = 1,
) -> Real:
    """Return exp(-gamma · max(left_i + right_j - 2 products_ij, 0)), rounded to `dtype` once."""
    out = np.empty(products.shape, dtype=dtype)
    _native.gaussian_values(products, left, right, gamma, out, threads)
    return out


def gaussian_in_place(
    products: Real, left: Vector, right: Vector, gamma: float, *, threads: int = 1
) -> None:
    """Write the values of :func:`gaussian_values` where their products are, in the same dtype."""
    _native.gaussian_in_place(products, left, right, gamma, threads)


class Chain(Protocol):
    """A chain, or what takes its place, made ready for one dtype."""

    def apply(
        self,
        X: Real,
        row_scale: Real,
        row_shift: Real,
        block_scales: Float64,
        out: Real,
        threads: int,
    ) -> bool:
        """Write the blocks of every row into `out`; False if a value overflows its dtype.

        The leaf of row i is T(row_scale[i] · x) + row_shift[i] · leaf_shift; block b of row i has
        norm block_scales[i, b] if norms are preserved, else is multiplied by it.
        """


def make_chain(spec: ChainSpec, dtype: np.dtype[Any]) -> Chain:
    """Return the chain of rows of one dtype."""
    return _native.PowerChain32(spec) if dtype == np.float32 else _native.PowerChain64(spec)


@lru_cache(maxsize=64)
def _transform(length: int, dtype: np.dtype[Any]) -> Any:
    """Return the compiled transform of rows of one length; asking again costs nothing."""
    tables = fourier_tables(length)
    of_dtype: Any = (
        _native.FourierTransform32 if dtype == np.float32 else _native.FourierTransform64
    )
    return of_dtype(
        length=length,
        radices=tables.radices,
        twiddles=tables.twiddles.astype(dtype),
        positions=tables.positions,
        roots=tables.roots.astype(dtype),
    )


class TensorSketch:
    """A TensorSketch made ready for one dtype."""

    def __init__(self, spec: TensorSketchSpec, dtype: np.dtype[Any]) -> None:
        of_dtype: Any = _native.TensorSketch32 if dtype == np.float32 else _native.TensorSketch64
        self._compiled = of_dtype(
            columns=spec.columns,
            blocks=spec.blocks,
            transforms=[
                _transform(size, dtype) if degree > 1 else None
                for degree, size, _ in spec.blocks.tolist()
            ],
            keys=spec.keys,
            shifts=_direction_sketches(spec).astype(dtype),
            tabulated=not spec.sparse and len(spec.keys) * spec.columns <= TABLE_ENTRIES,
            preserve_norms=spec.preserve_norms,
        )

    def apply(
        self,
        X: Rows,
        row_scale: Real,
        row_shift: Real,
        block_scales: Float64,
        out: Real,
        threads: int,
    ) -> bool:
        """Write the blocks of every row into `out`; False if a value overflows its dtype.

        u is row_scale[i] · x + row_shift[i] · direction in row i, whose block b has norm
        block_scales[i, b] if norms are preserved, else is multiplied by it.
        """
        rows = row_scale, row_shift, block_scales, out, threads
        fits: bool = (
            self._compiled.apply_sparse(*_csr(X), *rows)
            if is_sparse(X)
            else self._compiled.apply(X, *rows)
        )
        return fits


def _direction_sketches(spec: TensorSketchSpec) -> Vector:
    """Return every CountSketch of the direction, one after the other; nothing without one."""
    direction = spec.direction
    if not len(direction):
        return direction
    sizes = np.repeat(spec.blocks[:, 1], spec.blocks[:, 0])
    sketches = np.empty(int(sizes.sum()))
    columns = np.flatnonzero(direction).astype(np.int32)
    row = direction[columns], columns, np.array([0, len(columns)], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    for key, start, size in zip(spec.keys.tolist(), starts, sizes, strict=True):
        out = sketches[None, start : start + size]
        _native.scatter_sparse_hashed(*row, len(direction), key, 1, 1.0, out, 1)
    return sketches


def make_tensor_sketch(spec: TensorSketchSpec, dtype: np.dtype[Any]) -> TensorSketch:
    """Return the TensorSketch of rows of one dtype."""
    return TensorSketch(spec, dtype)
