"""One power of the augmented rows: its monomials, all or some of them, or a sketch of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, Vector, divide_or_zero, is_sparse, slices
from powersketch.execution import ordered_map
from powersketch.feature_maps.maps import overflow_error, restore_vanished
from powersketch.feature_maps.rows import AugmentedRows, near_one_factors
from powersketch.powers import (
    POWER_METHODS,
    Monomials,
    PowerOptions,
    Powers,
    PowerSketch,
    SampledMonomials,
    Scaled,
    ShiftedRows,
    Slice,
)
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES
from powersketch.storable import remembered, storable

_CACHED_ENTRIES = 1 << 17  # of all features of a few rows: they stay in cache meanwhile
_MOST_ROWS = 256
_ORDINARY_EXPONENT = 1000
# Scores are estimated on the first of these numbers of rows that is affordable.
_SCORED_ROWS = (256, 128)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class DirectMap:
    """z(x) sketches x̃^⊗degree, whatever the data is like."""

    rows: AugmentedRows
    degree: int
    sketch: Powers

    name: ClassVar[str] = "none"

    @classmethod
    @remembered
    def draw(
        cls,
        streams: RandomStreams,
        rows: AugmentedRows,
        degree: int,
        columns: int,
        size: int,
        options: PowerOptions,
    ) -> DirectMap:
        """Sample the sketch on the augmented coordinates."""
        length, direction = columns + rows.extra_columns, rows.direction(columns)
        streams, output = streams.child("direct"), Slice(0, size, 0)
        if options.method != "power" or degree > 1 or size >= length:
            method, options = POWER_METHODS[options.method], replace(options, direction=direction)
            return cls(rows, degree, method.draw(streams, length, {degree: output}, options))
        # No S follows that would mix all coordinates into few: T has to do it.
        base = BASE_SKETCHES[options.base_sketch].draw(streams.child("T"), length, size)
        linear = PowerSketch.linear(
            base, output, preserve_norms=options.preserve_norms, direction=direction
        )
        return cls(rows, degree, linear)

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        rows = self.rows
        squared_norms = rows.checked_norms(X, self.degree, threads)
        unit, exponents = near_one_factors(squared_norms)
        scales = self._block_scales(squared_norms, exponents)
        shift = rows.root_coef0 * unit if rows.extra_columns else None
        shifted = ShiftedRows(X, rows.root_gamma * unit, shift)
        if not self.sketch.write(shifted, scales, out, threads):
            raise overflow_error(out.dtype)
        if self.sketch.preserve_norms and not out[:, 0].all():
            restore_vanished(X, out, scales[:, 0], 0)

    def _block_scales(self, squared_norms: Vector, exponents: NDArray[np.int64]) -> Real:
        """Return the norm of the features, or what undoes the exponents of the literal sketch."""
        if self.sketch.preserve_norms:
            return powers_of_norms(squared_norms, self.degree).to_float()[:, None]
        factor = np.full(len(exponents), self.sketch.literal_factor(self.degree))
        scale = Scaled.of(factor).times_power_of_two(self.degree * exponents)
        return scale.to_float()[:, None]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ExactMap:
    """z(x) is the symmetric power of x̃, followed by zero columns where it is shorter."""

    rows: AugmentedRows
    degree: int
    monomials: Monomials

    name: ClassVar[str] = "exact"

    @classmethod
    @remembered
    def of(cls, rows: AugmentedRows, degree: int, columns: int) -> ExactMap:
        """List the monomials."""
        return cls(rows, degree, Monomials.of(columns + rows.extra_columns, degree))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        rows = self.rows
        squared_norms = rows.checked_norms(X, self.degree, threads)
        inverse = divide_or_zero(1.0, np.sqrt(squared_norms))
        unit = np.empty((X.shape[0], X.shape[1] + rows.extra_columns), dtype=out.dtype)
        dense = X.toarray() if is_sparse(X) else X
        unit[:, : X.shape[1]] = dense * (rows.root_gamma * inverse)[:, None]
        if rows.extra_columns:
            unit[:, -1] = rows.root_coef0 * inverse
        scale = powers_of_norms(squared_norms, self.degree).to_float().astype(out.dtype)
        out[:, : self.monomials.size] = self.monomials.apply(unit) * scale[:, None]
        out[:, self.monomials.size :] = 0


@storable
@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveMap:
    """z(x) are monomials of x̃ with weights, drawn by their ridge leverage scores on the data.

    Where fewer were drawn than asked for, zeros follow. With norms preserved, every row is set to
    the norm ‖x̃‖^degree.
    """

    rows: AugmentedRows
    columns: int
    monomials: SampledMonomials
    preserve_norms: bool

    name: ClassVar[str] = "none"

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        rows: AugmentedRows,
        degree: int,
        pilot: Rows,
        size: int,
        *,
        preserve_norms: bool,
    ) -> AdaptiveMap:
        """Draw the monomials by the scores that they have on the pilot rows."""
        # Loaded when it is first needed: no other map uses it.
        from powersketch.powers.adaptive import adaptive_tuples

        streams = streams.child("adaptive")
        squared_norms = rows.checked_norms(pilot, degree, 1)
        longest = _half_exponents(squared_norms.max(keepdims=True))
        augmented = rows.of(pilot.astype(np.float64), float(np.ldexp(1.0, -longest)[0]))
        scored = _scored_rows(augmented, degree, size, streams)
        drawn = adaptive_tuples(scored, degree, size, streams)
        monomials = SampledMonomials.of(drawn.tuples, drawn.squared_weights)
        return cls(rows, pilot.shape[1], monomials, preserve_norms)

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        squared_norms = self.rows.checked_norms(X, self.monomials.degree, threads)
        coordinates, size = self.monomials.coordinates, self.monomials.size
        columns = X[:, coordinates[coordinates < self.columns]]
        step = min(max(_CACHED_ENTRIES // size, 8), _MOST_ROWS)

        def write(part: slice) -> bool:
            return self._write_part(columns[part], squared_norms[part], out[part])

        if not all(list(ordered_map(write, slices(X.shape[0], step), threads))):
            raise overflow_error(out.dtype)
        if self.preserve_norms:
            norms = powers_of_norms(squared_norms, self.monomials.degree).to_float()
            restore_vanished(X, out[:, :size], norms, 0)

    def _write_part(self, columns: Rows, squared_norms: Vector, out: Real) -> bool:
        """Write the features of rows, given in the coordinates needed; False if one overflows."""
        exponents, degree = _half_exponents(squared_norms), self.monomials.degree
        near_one = self._needed(columns, np.ldexp(1.0, -exponents))
        values, lost_exponents = self.monomials.values(near_one)
        if self.preserve_norms:
            squares = routines.squared_norms(values)
            present = Scaled.of(np.sqrt(np.where(squares > 0.0, squares, 1.0)))
            scale = powers_of_norms(squared_norms, degree) * present.inverse()
        else:
            ones = Scaled.of(np.ones(len(values)))
            scale = ones.times_power_of_two(lost_exponents + degree * exponents)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            _multiply(values, scale)
            out[:, : self.monomials.size] = values
        out[:, self.monomials.size :] = 0
        return self.preserve_norms or bool(np.isfinite(out).all())

    def _needed(self, columns: Rows, unit: Vector) -> Real:
        """Return the coordinates of x̃ that monomials need, of rows near norm one."""
        dense = columns.toarray() if is_sparse(columns) else columns
        needed = np.empty((len(unit), len(self.monomials.coordinates)))
        needed[:, : dense.shape[1]] = dense
        needed[:, : dense.shape[1]] *= (self.rows.root_gamma * unit)[:, None]
        if dense.shape[1] < needed.shape[1]:
            needed[:, -1] = self.rows.root_coef0 * unit
        return needed


def powers_of_norms(squared_norms: Vector, degree: int) -> Scaled:
    """Return ‖x̃‖^degree of every row."""
    return Scaled.of(np.sqrt(squared_norms)).power(degree)


def _scored_rows(X: Rows, degree: int, size: int, streams: RandomStreams) -> Rows:
    """Return as many rows as leverage scores are affordable on, or all if they are on none."""
    from powersketch.powers.adaptive import affordable_draw

    order = streams.permutation("scored", X.shape[0])
    for count in _SCORED_ROWS:
        fewer = X[np.sort(order[:count])]
        if affordable_draw(fewer, degree, size) != "rows":
            return fewer
    return X


def _half_exponents(squared_norms: Vector) -> NDArray[np.int64]:
    """Return e such that norms times 2^−e lie near one; in double precision every e will do."""
    exponents: NDArray[np.int64] = np.frexp(squared_norms)[1].astype(np.int64) // 2
    return exponents


def _multiply(values: Real, factors: Scaled) -> None:
    """Multiply every row by its factor, which may be no ordinary number although the result is."""
    extreme = np.abs(factors.exponent) > _ORDINARY_EXPONENT
    first = np.where(extreme, factors.exponent // 2, factors.exponent)
    values *= Scaled(factors.mantissa, first).to_float()[:, None]
    if extreme.any():
        rest = Scaled(np.ones(len(values)), factors.exponent - first)
        values *= rest.to_float()[:, None]
