"""One registry of routine calls, so that every property of routines is tested on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.routines import hashed_table, smooth_parts
from powersketch.routines.specs import (
    ChainSpec,
    PairSpec,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    TensorSketchSpec,
    orthogonal_scale,
)
from powersketch.sketches import padded_length

LEAVES = ("identity", "srht", "scatter")  # what a chain does first
KEY = 0x9E3779B97F4A7C15
STRETCH = 2**16  # kRowBlock in native/srht.hpp: longer rows are transformed in stretches
DIRECT_FACTOR = 8  # kDirectFactor: sparse rows with size · entries below 8 · padded are summed


@dataclass(frozen=True)
class Shape:
    """What a call works on: rows × columns, and how many outputs or internal coordinates."""

    rows: int
    columns: int
    size: int
    dtype: Any = np.float64
    generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        seed = [self.rows, self.columns, self.size]
        object.__setattr__(self, "generator", np.random.default_rng(seed))

    @property
    def padded(self) -> int:
        return padded_length(self.columns)

    def dense(self) -> NDArray[Any]:
        """Rows of about unit length, a fifth of their entries zero."""
        X = self.generator.normal(size=(self.rows, self.columns)) / np.sqrt(self.columns)
        X[self.generator.random(X.shape) < 0.2] = 0.0
        return X.astype(self.dtype)

    def sparse(self, density: float, index_dtype: Any) -> sp.csr_array:
        """CSR rows; with density 1 every entry is stored."""
        stored = self.generator.random((self.rows, self.columns)) < density
        X = sp.csr_array(stored.astype(self.dtype))
        X.data[:] = self.generator.normal(size=X.nnz) / np.sqrt(self.columns)
        X.indices = X.indices.astype(index_dtype)
        X.indptr = X.indptr.astype(index_dtype)
        return X

    def signs(self, count: int) -> NDArray[np.int8]:
        return (1 - 2 * self.generator.integers(0, 2, count)).astype(np.int8)

    def indices(self, high: int, count: int) -> NDArray[np.int32]:
        return self.generator.integers(0, high, count).astype(np.int32)

    def srht(self) -> SrhtSpec:
        indices = self.indices(self.padded, self.size)
        return SrhtSpec(self.signs(self.columns), indices, self.padded, 1 / np.sqrt(self.size))

    def sorf(self, blocks: int = 3) -> SorfSpec:
        """Coordinates of all blocks, ordered only by block, that turn the rows a few times."""
        signs = self.signs(3 * blocks * self.padded).reshape(blocks, 3, self.padded)
        scales = self.generator.uniform(1, 50, self.size) * orthogonal_scale(self.padded)
        indices = self.indices(blocks * self.padded, self.size)
        by_block = np.argsort(indices // self.padded, kind="stable")
        return SorfSpec(signs, indices[by_block], scales)

    def pair(self, length: int, size: int) -> PairSpec:
        first, second = self.indices(length, size), self.indices(length, size)
        return PairSpec(self.signs(length), self.signs(length), first, second)


@dataclass(frozen=True)
class Call:
    """A call of a routine: `run(implementation, rows, threads)` returns all results in one array.

    `rows` holds the arguments that are split together where rows are shared out.
    """

    rows: tuple[Rows, ...]
    run: Callable[[Any, tuple[Rows, ...], int], NDArray[Any]]
    tolerance: float | None = None
    """How far the compiled routine may be from its specification; None means the same bits."""


def fwht(shape: Shape) -> Call:
    return Call(
        (shape.dense(),),
        lambda native, rows, threads: native.fwht(*rows, shape.padded, threads=threads),
    )


def _srht(shape: Shape, X: Rows, additions: int) -> Call:
    """An SRHT in which one coordinate is a sum of up to `additions` additions in a row.

    Such a sum is off by at most additions · eps/2 · ‖x‖₁, the specification's by log₂ n in place of
    additions; with 0 additions the order is that of the specification.
    """
    spec = shape.srht()
    unit = float(np.finfo(shape.dtype).eps * abs(X).sum(axis=1).max(initial=0.0) * spec.scale)
    return Call(
        (X,),
        lambda native, rows, threads: native.srht(*rows, spec, threads=threads),
        unit * (additions + np.log2(shape.padded) + 4) if additions else None,
    )


def _stretch_additions(shape: Shape) -> int:
    stretches = -(-shape.columns // STRETCH)
    return 0 if shape.padded <= STRETCH else STRETCH.bit_length() + stretches


def srht(shape: Shape) -> Call:
    return _srht(shape, shape.dense(), _stretch_additions(shape))


def srht_csr_filled(index_dtype: Any) -> Callable[[Shape], Call]:
    """CSR rows with enough entries to be transformed like dense ones."""

    def call(shape: Shape) -> Call:
        # With more than padded / 2 entries a row, 2 · DIRECT_FACTOR outputs are beyond the limit.
        longer = replace(shape, size=shape.size + 2 * DIRECT_FACTOR)
        return _srht(longer, longer.sparse(1.0, index_dtype), _stretch_additions(shape))

    return call


def srht_csr_direct(index_dtype: Any) -> Callable[[Shape], Call]:
    """CSR rows with few enough entries for every output to be their signed sum."""

    def call(shape: Shape) -> Call:
        X = shape.sparse(min(1.0, DIRECT_FACTOR / shape.size / 2), index_dtype)
        return _srht(shape, X, 1 + int(np.diff(X.indptr).max(initial=0)))

    return call


def _sorf(shape: Shape, X: Rows) -> Call:
    spec = shape.sorf()
    return Call((X,), lambda native, rows, threads: native.sorf(*rows, spec, threads=threads))


def _fourier(shape: Shape, X: Rows) -> Call:
    spec, scale = shape.sorf(), 1 / np.sqrt(shape.size)
    return Call(
        (X,), lambda native, rows, threads: native.fourier(*rows, spec, scale, threads=threads)
    )


def sorf(shape: Shape) -> Call:
    return _sorf(shape, shape.dense())


def sorf_csr(index_dtype: Any) -> Callable[[Shape], Call]:
    return lambda shape: _sorf(shape, shape.sparse(0.3, index_dtype))


def fourier(shape: Shape) -> Call:
    return _fourier(shape, shape.dense())


def fourier_csr(index_dtype: Any) -> Callable[[Shape], Call]:
    return lambda shape: _fourier(shape, shape.sparse(0.3, index_dtype))


def tensor_srht(shape: Shape) -> Call:
    spec = shape.pair(shape.padded, shape.size)
    return Call(
        (shape.dense(), shape.dense()),
        lambda native, rows, threads: native.tensor_srht(*rows, spec, threads=threads),
    )


def _scatter(shape: Shape, X: Rows, copies: int, hashed: bool) -> Call:
    sparsity = min(copies, shape.size)
    key = KEY if hashed else None
    table = hashed_table(KEY if hashed else KEY + 1, shape.columns, shape.size, sparsity)
    spec = ScatterSpec(table, shape.size, 1 / np.sqrt(sparsity), key)
    return Call((X,), lambda native, rows, threads: native.scatter(*rows, spec, threads=threads))


def scatter(shape: Shape) -> Call:
    return _scatter(shape, shape.dense(), copies=3, hashed=False)


def scatter_csr(index_dtype: Any, *, hashed: bool) -> Callable[[Shape], Call]:
    return lambda shape: _scatter(shape, shape.sparse(0.3, index_dtype), copies=3, hashed=hashed)


def _row_moments(shape: Shape, X: Rows) -> Call:
    direction = shape.generator.normal(size=shape.columns)

    def run(native: Any, rows: tuple[Rows, ...], threads: int) -> NDArray[Any]:
        return np.stack(native.row_moments(*rows, direction, threads=threads), axis=1)

    return Call((X,), run)


def _product(shape: Shape, X: Rows) -> Call:
    matrix = shape.generator.normal(size=(shape.columns, shape.size)).astype(shape.dtype)
    return Call((X,), lambda native, rows, threads: native.product(*rows, matrix, threads=threads))


def row_moments(shape: Shape) -> Call:
    return _row_moments(shape, shape.dense())


def row_moments_csr(index_dtype: Any) -> Callable[[Shape], Call]:
    return lambda shape: _row_moments(shape, shape.sparse(0.3, index_dtype))


def product(shape: Shape) -> Call:
    return _product(shape, shape.dense())


def product_csr(index_dtype: Any) -> Callable[[Shape], Call]:
    return lambda shape: _product(shape, shape.sparse(0.3, index_dtype))


def gaussian_values(shape: Shape) -> Call:
    """Squared norms small and large: values from one down to zero, some distances below zero."""
    products = replace(shape, dtype=np.float64).dense()
    left = shape.generator.uniform(0.0, 400.0, shape.rows)
    right = shape.generator.choice([0.0, 0.1, 30.0], shape.columns)
    return Call(
        (products, left),
        lambda native, rows, threads: native.gaussian_values(
            *rows, right, 2.0, np.dtype(shape.dtype), threads=threads
        ),
    )


def gaussian_in_place(shape: Shape) -> Call:
    """The same from products of the dtype of the values, which take their place."""
    left, right = shape.generator.uniform(0.0, 400.0, shape.rows), np.ones(shape.columns)

    def values(native: Any, rows: Any, threads: int) -> Any:
        products, sizes = rows
        out = products.copy()
        native.gaussian_in_place(out, sizes, right, 2.0, threads=threads)
        return out

    return Call((shape.dense(), left), values)


def _leaf(shape: Shape, kind: str, length: int) -> SrhtSpec | ScatterSpec | None:
    """T of a chain: none, an SRHT of full length, or buckets that leave some of it to zeros."""
    if kind == "identity":
        return None
    if kind == "srht":
        return replace(shape, size=length).srht()
    size = max(3 * length // 4, 1)
    table = hashed_table(KEY, shape.columns, size, min(3, size))
    return ScatterSpec(table, size, 1 / np.sqrt(table.shape[1]))


def chain_spec(
    shape: Shape, length: int, *, leaf: str, shift: bool, preserve_norms: bool
) -> ChainSpec:
    """w₂ = S(w₁ ⊗ w₁), w₃ = S(w₂ ⊗ w₁), w₆ = S(w₃ ⊗ w₃), the last in place of w₁ and cut short."""
    leaf_length = shape.padded if leaf == "identity" else max(length // 2, 1)
    part = -(-length // 3)
    leaf_part = -(-leaf_length // 2)
    return ChainSpec(
        columns=shape.columns,
        leaf=_leaf(shape, leaf, leaf_length),
        leaf_length=leaf_length,
        leaf_shift=shape.generator.normal(size=leaf_length if shift else 0) / np.sqrt(leaf_length),
        pair=shape.pair(length, length),
        steps=np.array([[0, 0, 1, length], [1, 0, 2, length], [2, 2, 0, 2 * part]])
        .clip(max=length)
        .astype(np.int32),
        outputs=np.array(
            [
                [0, leaf_length - leaf_part, leaf_part, 0, 0],
                [1, 0, length, leaf_part, 1],
                [0, 0, part, leaf_part + length, 3],
            ],
            dtype=np.int32,
        ),
        registers=3,
        preserve_norms=preserve_norms,
    )


def chain_call(shape: Shape, spec: ChainSpec, tolerance: float | None = None) -> Call:
    """The outputs of a chain, and in a last column whether all of them fit the dtype."""
    width = int((spec.outputs[:, 2] + spec.outputs[:, 3]).max())

    def run(native: Any, rows: tuple[Rows, ...], threads: int) -> NDArray[Any]:
        X, row_scale, row_shift, block_scales = rows
        out = np.empty((len(X), width + 1), dtype=shape.dtype)
        bound = native.make_chain(spec, np.dtype(shape.dtype))
        given_shift = row_shift if len(spec.leaf_shift) else row_shift[:0]
        out[:, -1] = bound.apply(X, row_scale, given_shift, block_scales, out, threads)
        return out

    def factors(*size: int) -> NDArray[np.float64]:
        return shape.generator.uniform(0.5, 2.0, size=(shape.rows, *size))

    row_factors = [factors().astype(shape.dtype), factors().astype(shape.dtype)]
    return Call((shape.dense(), *row_factors, factors(len(spec.outputs))), run, tolerance)


def chain(leaf: str, *, shift: bool, preserve_norms: bool) -> Callable[[Shape], Call]:
    def call(shape: Shape) -> Call:
        shortest = shape.columns if leaf == "identity" else 1
        length = padded_length(max(shape.size, shortest))
        spec = chain_spec(shape, length, leaf=leaf, shift=shift, preserve_norms=preserve_norms)
        exact = leaf != "srht" or not _stretch_additions(shape)
        return chain_call(
            shape, spec, None if exact else 2.0**12 * float(np.finfo(shape.dtype).eps)
        )

    return call


def _chains() -> dict[str, Callable[[Shape], Call]]:
    return {
        f"chain-{leaf}{'-shift' if shift else ''}{'-norms' if norms else ''}": chain(
            leaf, shift=shift, preserve_norms=norms
        )
        for leaf in LEAVES
        for shift in (True, False)
        for norms in (True, False)
    }


def tensor_sketch_spec(
    shape: Shape, *, shift: bool, preserve_norms: bool, sparse: bool = False
) -> TensorSketchSpec:
    """Degrees 1, 2 and 5 of different sizes, with a direction longer than the rows."""
    sizes = shape.size, smooth_parts(-(-shape.size // 2))[0], smooth_parts(2 * shape.size + 1)[0]
    direction = shape.generator.normal(size=shape.columns + 1 if shift else 0)
    keys = shape.generator.integers(0, 2**64, size=8, dtype=np.uint64)
    return TensorSketchSpec(
        columns=shape.columns,
        blocks=np.array(
            [(1, sizes[0], sizes[1]), (2, sizes[1], 0), (5, sizes[2], sizes[0] + sizes[1])],
            dtype=np.int32,
        ),
        keys=keys,
        direction=direction / np.sqrt(shape.columns + 1),
        preserve_norms=preserve_norms,
        sparse=sparse,
    )


def tensor_sketch_call(shape: Shape, spec: TensorSketchSpec, X: Rows) -> Call:
    """The blocks, and in a last column whether all of them fit the dtype."""
    width = int((spec.blocks[:, 1] + spec.blocks[:, 2]).max())

    def run(native: Any, rows: tuple[Rows, ...], threads: int) -> NDArray[Any]:
        X, row_scale, row_shift, block_scales = rows
        out = np.empty((X.shape[0], width + 1), dtype=shape.dtype)
        bound = native.make_tensor_sketch(spec, np.dtype(shape.dtype))
        given_shift = row_shift if len(spec.direction) else row_shift[:0]
        out[:, -1] = bound.apply(X, row_scale, given_shift, block_scales, out, threads)
        return out

    def factors(*size: int) -> NDArray[np.float64]:
        return shape.generator.uniform(0.5, 2.0, size=(shape.rows, *size))

    row_factors = [factors().astype(shape.dtype), factors().astype(shape.dtype)]
    return Call((X, *row_factors, factors(len(spec.blocks))), run)


def tensor_sketch(*, shift: bool, preserve_norms: bool) -> Callable[[Shape], Call]:
    def call(shape: Shape) -> Call:
        spec = tensor_sketch_spec(shape, shift=shift, preserve_norms=preserve_norms)
        return tensor_sketch_call(shape, spec, shape.dense())

    return call


def tensor_sketch_csr(index_dtype: Any) -> Callable[[Shape], Call]:
    def call(shape: Shape) -> Call:
        spec = tensor_sketch_spec(shape, shift=True, preserve_norms=False, sparse=True)
        return tensor_sketch_call(shape, spec, shape.sparse(0.3, index_dtype))

    return call


CALLS: dict[str, Callable[[Shape], Call]] = {
    "tensor_sketch": tensor_sketch(shift=False, preserve_norms=False),
    "tensor_sketch-shift-norms": tensor_sketch(shift=True, preserve_norms=True),
    "tensor_sketch-csr32": tensor_sketch_csr(np.int32),
    "tensor_sketch-csr64": tensor_sketch_csr(np.int64),
    "fwht": fwht,
    "srht": srht,
    "srht-csr32-filled": srht_csr_filled(np.int32),
    "srht-csr64-filled": srht_csr_filled(np.int64),
    "srht-csr32-direct": srht_csr_direct(np.int32),
    "srht-csr64-direct": srht_csr_direct(np.int64),
    "sorf": sorf,
    "sorf-csr32": sorf_csr(np.int32),
    "sorf-csr64": sorf_csr(np.int64),
    "fourier": fourier,
    "fourier-csr32": fourier_csr(np.int32),
    "fourier-csr64": fourier_csr(np.int64),
    "tensor_srht": tensor_srht,
    "scatter": scatter,
    "scatter-csr32-table": scatter_csr(np.int32, hashed=False),
    "scatter-csr64-table": scatter_csr(np.int64, hashed=False),
    "scatter-csr32-hashed": scatter_csr(np.int32, hashed=True),
    "scatter-csr64-hashed": scatter_csr(np.int64, hashed=True),
    "row_moments": row_moments,
    "row_moments-csr32": row_moments_csr(np.int32),
    "row_moments-csr64": row_moments_csr(np.int64),
    "product": product,
    "product-csr32": product_csr(np.int32),
    "product-csr64": product_csr(np.int64),
    "gaussian_values": gaussian_values,
    "gaussian_in_place": gaussian_in_place,
    **_chains(),
}


def assert_same_bits(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare as integers, so that even the sign of a zero counts."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)
    bits = f"u{actual.dtype.itemsize}"
    np.testing.assert_array_equal(
        np.ascontiguousarray(actual).view(bits), np.ascontiguousarray(expected).view(bits)
    )
