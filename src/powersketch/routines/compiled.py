"""The compiled kernels behind NumPy-shaped functions: output allocated, dtypes matched."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import _native
from powersketch.arrays import Real, Rows
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

NOTHING = np.empty(0, dtype=np.int32)
DENSE_BYTES = 1 << 22  # of sparse rows made dense at a time
TABLE_ENTRIES = 1 << 22  # of hashed targets kept at most; dense rows need one for every column


def _csr(X: Any) -> tuple[Real, NDArray[Any], NDArray[np.int64]]:
    return X.data, X.indices, X.indptr.astype(np.int64)


def _dense_pieces(X: Rows) -> Iterator[tuple[slice, Real]]:
    """Yield the rows of X as dense arrays: all at once, or sparse ones a few MiB at a time."""
    count = X.shape[0]
    row_bytes = max(X.shape[1], 1) * X.dtype.itemsize
    step = max(DENSE_BYTES // row_bytes, 1) if sp.issparse(X) else max(count, 1)
    for start in range(0, count, step):
        rows = slice(start, start + step)
        yield rows, X[rows].toarray() if sp.issparse(X) else X


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
    signs = spec.signs[: X.shape[1]].astype(X.dtype)
    if sp.issparse(X):
        values, columns, indptr = _csr(X)
        _native.srht_sparse(
            values, columns, indptr, signs, spec.indices, spec.padded, spec.scale, out, threads
        )
    else:
        _native.srht(X, signs, spec.indices, spec.padded, spec.scale, out, threads)
    return out


def sorf(X: Rows, spec: SorfSpec, *, threads: int = 1) -> Real:
    """Return scales · (F D₃ F D₂ F D₁ x)[indices] for every row; see SorfSpec."""
    out = np.empty((X.shape[0], len(spec.indices)), dtype=X.dtype)
    diagonals, scales = spec.diagonals(X.dtype), spec.scales.astype(X.dtype)
    for rows, dense in _dense_pieces(X):
        _native.sorf(dense, diagonals, spec.indices, scales, out[rows], threads)
    return out


def fourier(X: Rows, spec: SorfSpec, scale: float, *, threads: int = 1) -> Real:
    """Return scale · cos(2πp), then scale · sin(2πp), for every row, p = sorf(x) in turns."""
    out = np.empty((X.shape[0], 2 * len(spec.indices)), dtype=X.dtype)
    diagonals, scales = spec.diagonals(X.dtype), spec.scales.astype(X.dtype)
    for rows, dense in _dense_pieces(X):
        _native.fourier(dense, diagonals, spec.indices, scales, scale, out[rows], threads)
    return out


def tensor_srht(A: Real, B: Real, spec: PairSpec, *, threads: int = 1) -> Real:
    """Return S(a ⊗ b) for every pair of rows, S the TensorSRHT of `spec`."""
    out = np.empty((A.shape[0], len(spec.first)), dtype=A.dtype)
    scale = 1.0 / np.sqrt(len(spec.first))
    signs = spec.signs_first.astype(A.dtype), spec.signs_second.astype(A.dtype)
    _native.tensor_srht(A, B, *signs, spec.first, spec.second, scale, out, threads)
    return out


def scatter(X: Rows, spec: ScatterSpec, *, threads: int = 1) -> Real:
    """Return scale · (signed sums of the coordinates of every row)."""
    out = np.empty((X.shape[0], spec.size), dtype=X.dtype)
    table = spec.table[: X.shape[1]].reshape(-1)
    copies, scale = spec.sparsity, spec.scale
    if not sp.issparse(X):
        _native.scatter(X, table, copies, scale, out, threads)
        return out
    values, columns, indptr = _csr(X)
    if spec.key is None:
        _native.scatter_sparse(values, columns, indptr, table, copies, scale, out, threads)
    else:
        _native.scatter_sparse_hashed(
            values, columns, indptr, X.shape[1], spec.key, copies, scale, out, threads
        )
    return out


def row_moments(
    X: Rows, direction: NDArray[np.float64], *, threads: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ‖x‖² and ⟨x, direction⟩ of every row, summed in double precision."""
    squares, dots = np.empty(X.shape[0]), np.empty(X.shape[0])
    if sp.issparse(X):
        _native.row_moments_sparse(*_csr(X), direction, squares, dots, threads)
    else:
        _native.row_moments(X, direction, squares, dots, threads)
    return squares, dots


def product(X: Rows, matrix: Real, *, threads: int = 1) -> Real:
    """Return X @ matrix, each sum taken in the order of the columns of X."""
    out = np.empty((X.shape[0], matrix.shape[1]), dtype=X.dtype)
    if sp.issparse(X):
        _native.product_sparse(*_csr(X), matrix, out, threads)
    else:
        _native.product(X, matrix, out, threads)
    return out


def gaussian_values(
    products: NDArray[np.float64],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    gamma: float,
    dtype: np.dtype[Any],
    *,
    threads: int = 1,
) -> Real:
    """Return exp(-gamma · max(left_i + right_j - 2 products_ij, 0)), rounded to `dtype` once."""
    out = np.empty(products.shape, dtype=dtype)
    _native.gaussian_values(products, left, right, gamma, out, threads)
    return out


class Chain(Protocol):
    """A chain made ready for one dtype."""

    def apply(
        self,
        X: Real,
        row_scale: Real,
        row_shift: Real,
        block_scales: NDArray[np.float64],
        out: Real,
        threads: int,
    ) -> bool:
        """Write the blocks of every row into `out`; False if a value overflows its dtype.

        The leaf of row i is T(row_scale[i] · x) + row_shift[i] · leaf_shift; block b of row i has
        norm block_scales[i, b] if norms are preserved, else is multiplied by it.
        """


def make_chain(spec: ChainSpec, dtype: np.dtype[Any]) -> Chain:
    """Copy the plan into a compiled chain for `dtype`."""
    cls: Callable[..., Chain] = (
        _native.PowerChain32 if dtype == np.float32 else _native.PowerChain64
    )
    leaf = spec.leaf
    srht_leaf = leaf if isinstance(leaf, SrhtSpec) else None
    scatter_leaf = leaf if isinstance(leaf, ScatterSpec) else None
    return cls(
        columns=spec.columns,
        padded=srht_leaf.padded if srht_leaf else spec.leaf_length,
        leaf_signs=(srht_leaf.signs[: spec.columns] if srht_leaf else NOTHING).astype(dtype),
        leaf_indices=srht_leaf.indices if srht_leaf else NOTHING,
        leaf_table=scatter_leaf.table[: spec.columns] if scatter_leaf else NOTHING[:, None],
        leaf_scale=leaf.scale if leaf else 1.0,
        leaf_size=scatter_leaf.size if scatter_leaf else spec.leaf_length,
        leaf_length=spec.leaf_length,
        leaf_shift=spec.leaf_shift.astype(dtype),
        signs_first=spec.pair.signs_first.astype(dtype),
        signs_second=spec.pair.signs_second.astype(dtype),
        first=spec.pair.first,
        second=spec.pair.second,
        steps=spec.steps,
        outputs=spec.outputs,
        registers=spec.registers,
        preserve_norms=spec.preserve_norms,
    )


@lru_cache(maxsize=64)
def _transform(length: int, dtype: np.dtype[Any]) -> Any:
    """Return the compiled transform of rows of one length; asking again costs nothing."""
    tables = fourier_tables(length)
    cls: Callable[..., Any] = (
        _native.FourierTransform32 if dtype == np.float32 else _native.FourierTransform64
    )
    return cls(
        length=length,
        radices=tables.radices,
        twiddles=tables.twiddles.astype(dtype),
        positions=tables.positions,
        roots=tables.roots.astype(dtype),
        chirp=tables.chirp.astype(dtype),
        chirp_spectrum=tables.chirp_spectrum.astype(dtype),
    )


def convolve(A: Real, B: Real, *, threads: int = 1) -> Real:
    """Return the circular convolution of every pair of rows, which have the same length."""
    out = np.empty_like(A, order="C")
    _native.convolve(A, B, _transform(A.shape[1], A.dtype), out, threads)
    return out


class TensorSketch:
    """A TensorSketch made ready for one dtype."""

    def __init__(self, spec: TensorSketchSpec, dtype: np.dtype[Any]) -> None:
        cls: Callable[..., Any] = (
            _native.TensorSketch32 if dtype == np.float32 else _native.TensorSketch64
        )
        self._compiled = cls(
            columns=spec.columns,
            blocks=spec.blocks,
            transforms=[_transform(size, dtype) for size in spec.blocks[:, 1].tolist()],
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
        block_scales: NDArray[np.float64],
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
            if sp.issparse(X)
            else self._compiled.apply(X, *rows)
        )
        return fits


def _direction_sketches(spec: TensorSketchSpec) -> NDArray[np.float64]:
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
    """Copy the plan into a compiled TensorSketch for `dtype`."""
    return TensorSketch(spec, dtype)
