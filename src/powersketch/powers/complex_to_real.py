"""Complex-to-real sketches: products of complex projections, their parts as real features."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, Vector, divide_or_zero, is_sparse, slices
from powersketch.execution import ordered_map
from powersketch.powers.methods import (
    FormatCache,
    Outputs,
    PowerOptions,
    ShiftedRows,
    Slice,
    to_one,
)
from powersketch.powers.scaled_numbers import Scaled
from powersketch.random_streams import RandomStreams
from powersketch.sketches import ComplexProjection, complex_projection
from powersketch.storable import remembered, storable

# Running products, a factor and what multiplies them are to stay in the cache of a core.
_CACHE_BYTES = 1 << 20
_ARRAYS_AT_ONCE = 5
_LANES = 16  # rows that the transforms process side by side
# Coordinates of rows are at most one, so a factor is at most their number: four factors stay in
# the range of float32.
_FACTORS_BETWEEN_RESCALINGS = 4
_NOISE = 64  # roundings of rows whose largest coordinates are near one
# The real and imaginary parts of a direction, by factor.
_Images: TypeAlias = list[tuple[Real, Real]]


@storable
@dataclass(frozen=True)
class Block:
    """Product features first … first + features become the output columns of a degree."""

    degree: int
    first: int
    output: Slice

    @property
    def features(self) -> int:
        """The number of product features; if the columns are odd, the last one gives only one."""
        return -(-self.output.size // 2)

    @property
    def stop(self) -> int:
        """One past the last product feature."""
        return self.first + self.features

    def columns_of(self, real: Real, imaginary: Real) -> Real:
        """Return the real parts, then the imaginary parts, of the block's product features.

        The odd one gives the real part of e^(iπ/4) Φ, which for a row of one non-zero coordinate is
        never zero, as that of Φ can be.
        """
        real, imaginary = real[:, self.first : self.stop], imaginary[:, self.first : self.stop]
        columns = np.empty((len(real), self.output.size), dtype=real.dtype)
        columns[:, : self.features] = real
        columns[:, self.features :] = imaginary[:, : self.output.size // 2]
        if self.output.size % 2:
            turned = (real[:, -1] - imaginary[:, -1]) * real.dtype.type(math.sqrt(0.5))
            columns[:, self.features - 1] = turned
        return columns


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ComplexToReal:
    """Sketches of some powers of rows by complex product features Φ = W₁u ∘ … ∘ W_l u [WOF23].

    The real and imaginary parts of Φ are the features: E Re⟨Φ(u), Φ(v)⟩ = ⟨u, v⟩^l, and as the
    squares of W's entries have mean zero, each part contributes one half of that. Every degree has
    its own block of product features; blocks lie in the order of falling degrees, so that the
    factor W_t is needed for the first few of them only.

    Attributes
    ----------
    columns : int
        The length of u.
    blocks : tuple of Block
        Which product features belong to which degree.
    factors : tuple of ComplexProjection
        W₁, W₂, … up to the highest degree.
    preserve_norms : bool
        Whether every block is rescaled to the exact norm of its power.
    """

    columns: int
    blocks: tuple[Block, ...]
    factors: tuple[ComplexProjection, ...]
    preserve_norms: bool
    direction: Vector | None = None
    _images: FormatCache[_Images | None] = field(default_factory=FormatCache, init=False)

    @classmethod
    @remembered
    def draw(
        cls, streams: RandomStreams, columns: int, outputs: Outputs, options: PowerOptions
    ) -> ComplexToReal:
        """Sample the factors; each of them is independent of the others."""
        blocks: list[Block] = []
        for degree in sorted(outputs, reverse=True):
            blocks.append(Block(degree, blocks[-1].stop if blocks else 0, outputs[degree]))
        factors = []
        for step in range(1, max(outputs) + 1):
            needed = max(block.stop for block in blocks if block.degree >= step)
            branch = streams.child(f"factor/{step}")
            factors.append(
                complex_projection(options.base_sketch, branch, columns, needed, options.internal)
            )
        preserve_norms, direction = options.preserve_norms, options.direction
        return cls(columns, tuple(blocks), tuple(factors), preserve_norms, direction)

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in the order of the blocks."""
        return tuple(block.degree for block in self.blocks)

    def literal_factor(self, degree: int) -> float:
        """Return √(2 / columns of the block): a column has half the second moment of Φ."""
        block = self.blocks[self.degrees.index(degree)]
        return math.sqrt(2.0 / block.output.size)

    def _images_for(self, X: Rows) -> _Images | None:
        """Return the projections of the direction, by which sparse rows are shifted.

        The shift is added to dense rows themselves; sparse ones would not stay sparse.
        """
        if not is_sparse(X) or self.direction is None:
            return None
        row = np.ascontiguousarray(self.direction[None, :], dtype=np.float64)
        images = (factor.apply(row) for factor in self.factors)
        return [(real.astype(X.dtype), imaginary.astype(X.dtype)) for real, imaginary in images]

    def write(self, rows: ShiftedRows, block_scales: Float64, out: Real, threads: int) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype."""
        images = self._images.of(rows.X, self._images_for)
        parts = slices(rows.X.shape[0], self._block_rows(rows.X))

        def write(part: slice) -> bool:
            unit = unit_rows(rows[part], self.direction)
            return self._write(unit, images, block_scales[part], out[part])

        # A list, as every part has to be written even if one of them overflows.
        return all(list(ordered_map(write, parts, threads)))

    def _block_rows(self, X: Rows) -> int:
        """Return how many rows are taken at once."""
        width = _ARRAYS_AT_ONCE * self.blocks[-1].stop
        if not is_sparse(X):
            width = max(width, self.columns)
        rows: int = _CACHE_BYTES // (width * X.dtype.itemsize)
        return max(rows // _LANES, 1) * _LANES

    def _write(
        self, rows: UnitRows, images: _Images | None, block_scales: Float64, out: Real
    ) -> bool:
        """Multiply factor after factor, and write every block as soon as its degree is reached."""
        fits, last = True, len(self.factors)
        real, imaginary = self._projection(rows, images, 0)
        exponent = rows.exponent.copy()
        for degree in range(1, last + 1):
            for column, block in enumerate(self.blocks):
                if block.degree == degree:
                    values, scales = block.columns_of(real, imaginary), block_scales[:, column]
                    fits &= self._write_block(values, block.output, scales, exponent, out)
            if degree == last:
                break
            factor = self._projection(rows, images, degree)
            real, imaginary = _product(real, imaginary, *factor)
            exponent += rows.exponent
            if degree % _FACTORS_BETWEEN_RESCALINGS == 0:
                exponent += _rescale(real, imaginary)
        return fits

    def _projection(self, rows: UnitRows, images: _Images | None, index: int) -> tuple[Real, Real]:
        real, imaginary = self.factors[index].apply(rows.values)
        if rows.shift is not None and images is not None:
            for part, image in zip((real, imaginary), images[index], strict=True):
                part += rows.shift[:, None] * image
        # Sums that cancel leave rounding errors, which preserved norms would turn into features.
        noise = _NOISE * np.finfo(real.dtype).eps
        for part in (real, imaginary):
            part *= np.abs(part) > noise
        return real, imaginary

    def _write_block(
        self,
        values: Real,
        output: Slice,
        scales: Vector,
        exponent: NDArray[np.int64],
        out: Real,
    ) -> bool:
        """Write a block whose true values are `values` · 2^exponent; False if it overflows."""
        factor, removed = to_one(np.abs(values).max(axis=1), values.dtype)
        values *= factor.astype(values.dtype)[:, None]
        norms = np.sqrt(routines.squared_norms(values))
        if self.preserve_norms:
            scaling = divide_or_zero(scales, norms)
        else:
            scaled = Scaled.of(scales).times_power_of_two(exponent + removed).to_float()
            scaling = np.where(norms > 0, scaled, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(values, scaling.astype(out.dtype)[:, None], out=out[:, output.columns])
            return bool(np.all(scaling * np.maximum(norms, 1.0) <= np.finfo(out.dtype).max))


@dataclass(frozen=True, eq=False, repr=False)
class UnitRows:
    """Rows u · 2^−exponent whose largest coordinates are between ½ and 1.

    The shift is not added to sparse rows, which it would fill: `shift` says how far they are to be
    moved along the direction.
    """

    values: Rows
    shift: Real | None
    exponent: NDArray[np.int64]


def unit_rows(rows: ShiftedRows, direction: Vector | None) -> UnitRows:
    """Compute the rows in double precision, and return them in the dtype of X."""
    if is_sparse(rows.X):
        return _sparse_unit_rows(rows, direction)
    values = rows.X * rows.scale[:, None]
    if rows.shift is not None and direction is not None:
        values = np.pad(values, ((0, 0), (0, len(direction) - values.shape[1])))
        values += rows.shift[:, None] * direction
    factor, exponent = to_one(np.abs(values).max(axis=1), np.dtype(np.float64))
    values *= factor[:, None]
    return UnitRows(values.astype(rows.X.dtype, copy=False), None, exponent)


def _sparse_unit_rows(rows: ShiftedRows, direction: Vector | None) -> UnitRows:
    values, dtype = rows.X.astype(np.float64), rows.X.dtype
    counts = np.diff(values.indptr)
    values.data *= np.repeat(rows.scale, counts)
    largest = abs(values).max(axis=1).toarray().ravel()
    shift = None if direction is None else rows.shift
    if shift is not None and direction is not None:
        largest = np.maximum(largest, np.abs(shift) * np.abs(direction).max())
    factor, exponent = to_one(largest, np.dtype(np.float64))
    values.data *= np.repeat(factor, counts)
    moved = None if shift is None else (shift * factor).astype(dtype)
    return UnitRows(values.astype(dtype), moved, exponent)


def _product(real: Real, imaginary: Real, a: Real, b: Real) -> tuple[Real, Real]:
    """Multiply the first product features by a + bi, in place; return what was multiplied.

    NumPy's complex product may be fused on some processors: its bits would depend on these.
    """
    real, imaginary = real[:, : a.shape[1]], imaginary[:, : a.shape[1]]
    crossed = real * b
    b *= imaginary
    real *= a
    real -= b
    imaginary *= a
    imaginary += crossed
    return real, imaginary


def _rescale(real: Real, imaginary: Real) -> NDArray[np.int64]:
    """Bring rows of product features near one by powers of two; return their exponents."""
    largest = np.maximum(np.abs(real).max(axis=1), np.abs(imaginary).max(axis=1))
    factor, exponent = to_one(largest, real.dtype)
    for part in (real, imaginary):
        part *= factor.astype(part.dtype)[:, None]
    return exponent
