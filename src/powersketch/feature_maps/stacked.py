"""Stacked features: the terms of an expansion side by side, exact or sketched."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, divide_or_zero, is_sparse
from powersketch.feature_maps.augmented_rows import power_of_two_shift
from powersketch.feature_maps.column_sums import column_sums
from powersketch.feature_maps.expansion import AffineRows, Expansion, FromSeries, Measured, Terms
from powersketch.feature_maps.outliers import fair_shares
from powersketch.feature_maps.row_maps import WITHOUT_SERIES, RowMap, Strangeness, overflow_error
from powersketch.feature_maps.stacked_sizes import StackedSizes, choose_sizes
from powersketch.feature_maps.vanished import restore_vanished
from powersketch.powers import (
    POWER_METHODS,
    Monomials,
    Powers,
    PowerSketch,
    Scaled,
    Slice,
    extreme_power,
    times_rows,
)
from powersketch.random_streams import RandomStreams
from powersketch.sketches import CountSketch

_NOTHING = 1e-150
# Rows are unusual if the variance of their features is above so many times that of the pilot's
# middle row, and out of range if it is above so many times the largest one. Both are no less than
# multiples of what maps have that do not look at the data.
_UNUSUAL, _OUT_OF_RANGE = 1.25, 2.0
_SMALL, _LARGE = 1e-6, 2.25
_MUCH_MISSING = 0.02
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SketchedTerms:
    """Terms of one part that a chain computes, in the order of the chain's blocks."""

    part: int
    chain: Powers
    slices: Mapping[int, Slice]

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in the order of the chain's blocks."""
        return self.chain.degrees


@dataclass(frozen=True, eq=False)
class StackedMap:
    """Features block by block: degree 0, degree 1, exact degrees, sketched degrees."""

    expansion: Expansion
    sizes: StackedSizes
    monomials: Mapping[int, Monomials]
    sketched: tuple[SketchedTerms, ...]
    preserve_norms: bool
    # Predicted variances of features from which on rows are unusual, and out of range.
    limits: tuple[float, float]
    # A map of the same size that is as good for any rows, if there is one.
    safe: RowMap | None = None

    @property
    def name(self) -> str:
        """The name of the expansion."""
        return self.expansion.name

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        expansion: Expansion,
        pilot: Rows,
        size: int,
        *,
        method: str,
        internal: int,
        base_sketch: str,
        preserve_norms: bool,
    ) -> StackedMap:
        """Choose the sizes from the pilot rows and sample every block's sketch."""
        sizes = _pilot_sizes(expansion, pilot, size)
        options: dict[str, Any] = {
            "internal": internal,
            "base_sketch": base_sketch,
            "preserve_norms": preserve_norms,
        }
        first, draw = expansion.parts[0], POWER_METHODS[method].draw
        sketched: list[SketchedTerms] = []
        if sizes.linear:
            output = Slice(0, sizes.linear, sizes.offset(1))
            base = CountSketch.keeping(
                streams.child("linear"), first.columns, sizes.coordinates, sizes.shared
            )
            linear = PowerSketch.linear(
                base, output, preserve_norms=preserve_norms, direction=first.direction
            )
            sketched.append(SketchedTerms(0, linear, {1: output}))
        if sizes.sketched:
            slices = sizes.slices()
            chain = draw(
                streams.child("powers"), first.columns, slices, direction=first.direction, **options
            )
            sketched.append(SketchedTerms(0, chain, slices))
        if sizes.others:
            second = expansion.parts[1]
            slices = {second.degrees[k]: cut for k, cut in sizes.other_slices().items()}
            chain = draw(
                streams.child("others"),
                second.columns,
                slices,
                direction=second.direction,
                **options,
            )
            sketched.append(SketchedTerms(1, chain, slices))
        monomials = {degree: Monomials.of(first.columns, degree) for degree in sizes.exact}
        drawn = cls(expansion, sizes, monomials, tuple(sketched), preserve_norms, (0.0, 0.0))
        return dataclasses.replace(drawn, limits=drawn._pilot_limits(pilot, size))

    def _pilot_limits(self, pilot: Rows, size: int) -> tuple[float, float]:
        """Return the limits for rows that are not like those of the pilot.

        A map that does not look at the data has a variance of about 1 / size, for any row.
        """
        measured = self.expansion.measure(pilot, threads=1)
        variances = self._variances(measured, *self._amplitudes(measured))
        unusual = max(_UNUSUAL * float(np.median(variances)), _SMALL / size)
        return unusual, max(_OUT_OF_RANGE * float(np.max(variances)), _LARGE / size)

    def _variances(
        self, measured: Measured, constants: list[Vector], shares: dict[tuple[int, int], Vector]
    ) -> Vector:
        """Return the predicted variance of ⟨z(x), z(x')⟩ / k(x, x) for x' like x, of every row.

        A degree of weight w sketched with m features has w² / m. Weight of degrees without features
        is in the wrong place: it counts with its square.
        """
        exact, powers = _sum_of_squares(constants), _sum_of_squares(list(shares.values()))
        lost = np.clip(1.0 - exact - powers, 0.0, 1.0)
        grown = 1.0 + np.divide(lost, powers, out=np.zeros_like(lost), where=powers > lost)
        variance = lost * lost
        for terms in self.sketched:
            for degree, cut in terms.slices.items():
                if degree == 1:  # of which most is exact
                    continue
                weight = grown * np.square(shares[terms.part, degree])
                variance = variance + weight * weight / cut.size
        return np.where(measured.norms > 0, variance, 0.0)

    def _amplitudes(self, measured: Measured) -> tuple[list[Vector], dict[tuple[int, int], Vector]]:
        """Return the constants, and the amplitude of every (part, degree) that has features."""
        keys = self._kept_terms()
        shares = dict(zip(keys, self._shares(measured, keys), strict=True))
        return measured.constants()[: self.sizes.constants], shares

    def block_scales(
        self, measured: Measured, shifts: list[NDArray[np.int64]]
    ) -> tuple[list[Vector], dict[tuple[int, int], Vector], Strangeness]:
        """Return the constants, the factor of every block, and how strange every row is."""
        root, (constants, shares) = measured.norms, self._amplitudes(measured)
        variances = self._variances(measured, constants, shares)
        strangeness = np.digitize(variances, self.limits).astype(np.int8)
        if isinstance(measured, FromSeries):
            strangeness[measured.missing > _MUCH_MISSING] = WITHOUT_SERIES
        literal: dict[tuple[int, int], Scaled] = {}
        if self.preserve_norms:
            empty = self._without_vectors(measured, list(shares))
            constants, shares = _completed(constants, shares, empty)
        else:
            literal = self._literal_factors(measured, shifts)
        scales = {key: root * share for key, share in shares.items()}
        for key, factor in literal.items():
            scales[key] = (Scaled.of(scales[key]) * factor).to_float()
        return [root * value for value in constants], scales, strangeness

    def _kept_terms(self) -> list[tuple[int, int]]:
        others = [(1, self.expansion.parts[1].degrees[k]) for k in self.sizes.others]
        return [*((0, degree) for degree in self.sizes.degrees.tolist()), *others]

    def _shares(self, measured: Measured, keys: list[tuple[int, int]]) -> list[Vector]:
        shares: list[Vector] = []
        for part in range(len(self.expansion.parts)):
            degrees = [degree for of, degree in keys if of == part]
            shares += measured.amplitudes(part, degrees) if degrees else []
        return shares

    def _without_vectors(
        self, measured: Measured, keys: list[tuple[int, int]]
    ) -> NDArray[np.bool_]:
        """Tell which rows have nothing to take powers of."""
        empty = np.ones(len(measured.norms), dtype=bool)
        for part in {part for part, _ in keys}:
            empty &= measured.rows(part).squared_norms == 0
        return empty

    def _literal_factors(
        self, measured: Measured, shifts: list[NDArray[np.int64]]
    ) -> dict[tuple[int, int], Scaled]:
        """Return what turns a sketched block's exact norm into the factor of its literal sketch."""
        factors = {}
        for terms in self.sketched:
            norms = np.sqrt(measured.rows(terms.part).squared_norms)
            inverse = divide_or_zero(1.0, norms)
            undo = Scaled.of(inverse).times_power_of_two(shifts[terms.part])
            for degree in terms.degrees:
                literal = Scaled.of(np.array(terms.chain.literal_factor(degree)))
                factors[terms.part, degree] = undo.power(degree) * literal
        return factors

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`."""
        measured = self.expansion.measure(X, threads)
        parts = [measured.rows(part) for part in range(len(self.expansion.parts))]
        shifts = [power_of_two_shift(rows.squared_norms) for rows in parts]
        constants, scales, strangeness = self.block_scales(measured, shifts)
        near_one = [_times_power_of_two(*pair) for pair in zip(parts, shifts, strict=True)]
        for column, values in enumerate(constants):
            out[:, column] = values
        out[:, self.sizes.stop :] = 0
        if self.monomials:
            self._write_monomials(X, near_one[0], scales, out, threads)
        for terms in self.sketched:
            rows = near_one[terms.part]
            columns = np.stack([scales[terms.part, degree] for degree in terms.degrees], axis=1)
            if not terms.chain.write(X, rows.scale, rows.shift, columns, out, threads):
                raise overflow_error(out.dtype)
            if self.preserve_norms:
                self._restore_vanished(X, terms, columns, out)
        return strangeness

    @staticmethod
    def _restore_vanished(X: Rows, terms: SketchedTerms, norms: Vector, out: Real) -> None:
        for column, degree in enumerate(terms.degrees):
            cut = terms.slices[degree]
            block = out[:, cut.offset : cut.offset + cut.size]
            restore_vanished(X, block, norms[:, column], cut.offset)

    def _write_monomials(
        self,
        X: Rows,
        rows: AffineRows,
        scales: dict[tuple[int, int], Vector],
        out: Real,
        threads: int,
    ) -> None:
        unit = _unit_rows(X, rows, self.expansion.parts[0], threads)
        for degree, monomials in self.monomials.items():
            start = self.sizes.offset(degree)
            block = out[:, start : start + monomials.size]
            block[:] = monomials.apply(unit) * scales[0, degree][:, None]


def _completed(
    constants: list[Vector], shares: dict[tuple[int, int], Vector], empty: NDArray[np.bool_]
) -> tuple[list[Vector], dict[tuple[int, int], Vector]]:
    """Scale the shares so that all squares add up to one.

    Degrees without features are made up for by the others, and the constants stay as they are; but
    they get it all where there is nothing to take powers of. Where no degree has any weight, the
    last one gets what the constants leave.
    """
    constants = _completed_constants(constants, empty)
    if not shares:
        return constants, {}
    rest = np.sqrt(np.maximum(1.0 - _sum_of_squares(constants), 0.0))
    present = np.sqrt(_sum_of_squares(list(shares.values())))
    lost = present <= _NOTHING
    factor = rest / np.where(lost, 1.0, present)
    completed = {key: factor * share for key, share in shares.items()}
    last = next(reversed(completed))
    completed[last] = np.where(lost, rest, completed[last])
    return constants, completed


def _completed_constants(constants: list[Vector], empty: NDArray[np.bool_]) -> list[Vector]:
    """Give the constants of rows without anything else a norm of one."""
    if not (constants and empty.any()):
        return constants
    norms = np.sqrt(_sum_of_squares(constants))
    factor = np.where(empty & (norms > 0), 1.0 / np.where(norms > 0, norms, 1.0), 1.0)
    completed = [factor * value for value in constants]
    completed[0] = np.where(empty & (norms == 0), 1.0, completed[0])
    return completed


def _sum_of_squares(values: list[Vector]) -> Vector | float:
    total: Vector | float = 0.0
    for value in values:
        total = total + value * value
    return total


def _times_power_of_two(rows: AffineRows, shift: NDArray[np.int64]) -> AffineRows:
    """Bring rows near norm one, exactly."""
    unit = np.ldexp(1.0, -shift.astype(np.int32))
    moved = None if rows.shift is None else rows.shift * unit
    return AffineRows(rows.scale * unit, moved, rows.squared_norms)


def _unit_rows(X: Rows, rows: AffineRows, terms: Terms, threads: int) -> Real:
    """Return u / ‖u‖ of every row."""
    dense = X.toarray() if is_sparse(X) else X
    affine: Real = dense * rows.scale[:, None]
    if rows.shift is not None and terms.direction is not None:
        affine = np.pad(affine, ((0, 0), (0, terms.columns - affine.shape[1])))
        affine += rows.shift[:, None] * terms.direction
    squares = routines.squared_norms(affine, threads=threads)
    norms = np.sqrt(squares)
    affine *= divide_or_zero(1.0, norms)[:, None]
    return affine


def _pilot_sizes(expansion: Expansion, pilot: Rows, size: int) -> StackedSizes:
    """Choose the sizes from the mean share of every term in the kernel's diagonal.

    A few rows of large norm may have all of it, and decide for all others.
    """
    measured = expansion.measure(pilot, threads=1)
    shares = [
        measured.amplitudes(part, list(terms.degrees)) for part, terms in enumerate(expansion.parts)
    ]
    squares = [[share * share for share in part] for part in shares]
    constant = [value * value for value in measured.constants()]
    totals = np.add.reduce([*constant, *(s for part in squares for s in part)], axis=0)
    norms = measured.norms
    importance = fair_shares(norms, pilot)[0] / np.where(totals > _NOTHING, totals, 1.0)
    means = [[math.fsum(importance * s) / len(norms) for s in part] for part in squares]
    first = expansion.parts[0]
    weights = np.zeros(max(first.degrees, default=1) + 1)
    weights[list(first.degrees)] = means[0]
    if not totals.any() and first.degrees:  # all weight lies beyond the last degree
        weights[first.degrees[-1]] = 1.0
    energies = np.zeros(first.columns)
    if 1 in first.degrees:
        linear = importance * squares[0][first.degrees.index(1)]
        energies = _coordinate_energies(pilot, measured.rows(0), first, linear)
    return choose_sizes(
        weights,
        energies,
        first.columns,
        size,
        constants=expansion.constants,
        others=np.array(means[1]) if len(means) > 1 else None,
    )


def _coordinate_energies(pilot: Rows, rows: AffineRows, terms: Terms, importance: Vector) -> Vector:
    """Return how the weight of degree 1 is spread over the coordinates of u."""
    squared_norms = np.where(rows.squared_norms > 0, rows.squared_norms, 1.0)
    # Rows whose squared norms are next to nothing would count more than float64 can say.
    linear = importance / np.maximum(squared_norms, np.finfo(np.float64).tiny)
    power = extreme_power(rows.scale, np.dtype(np.float64))
    if np.any(power != 1.0):
        pilot = times_rows(pilot.astype(np.float64), power)
        rows = AffineRows(rows.scale / power, rows.shift, rows.squared_norms)
    energies = np.zeros(terms.columns)
    energies[: pilot.shape[1]] = column_sums(pilot, linear * rows.scale * rows.scale, squared=True)
    if rows.shift is not None and terms.direction is not None:
        mixed = column_sums(pilot, linear * rows.scale * rows.shift)
        energies[: pilot.shape[1]] += 2 * terms.direction[: pilot.shape[1]] * mixed
        squares = terms.direction * terms.direction
        energies += squares * math.fsum(linear * rows.shift * rows.shift)
    return np.maximum(energies, 0.0)
