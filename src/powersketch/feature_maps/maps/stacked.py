"""Stacked features: the terms of an expansion side by side, exact or sketched."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, Vector, divide_or_zero, is_sparse, scaled_rows
from powersketch.feature_maps.expansions import Expansion, Measured, Terms
from powersketch.feature_maps.maps import (
    WITHOUT_SERIES,
    RowMap,
    Strangeness,
    overflow_error,
    restore_vanished,
)
from powersketch.feature_maps.maps.sizes import StackedSizes, choose_sizes
from powersketch.feature_maps.pilot import Pilot, column_sums
from powersketch.feature_maps.rows import AffineRows
from powersketch.powers import (
    POWER_METHODS,
    Monomials,
    PowerOptions,
    Powers,
    PowerSketch,
    Scaled,
    ShiftedRows,
    Slice,
    extreme_power,
)
from powersketch.random_streams import RandomStreams
from powersketch.sketches import CountSketch
from powersketch.storable import storable

_NOTHING = 1e-150
# Rows are unusual if the variance of their features exceeds this multiple of that of the pilot's
# middle row, and out of range if it exceeds this multiple of the largest one. Both limits are no
# less than multiples of what maps have that do not look at the data.
_UNUSUAL, _OUT_OF_RANGE = 1.25, 2.0
_SHARE_OF_USUAL = 0.9  # of the rows given to fit
_SMALL, _LARGE = 1e-6, 2.25
_MUCH_MISSING = 0.02


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SketchedTerms:
    """Terms of one part that a chain computes, in the order of the chain's blocks.

    `places` says where the amplitudes of its degrees stand among those of all terms.
    """

    part: int
    chain: Powers
    degrees: tuple[int, ...]
    slices: Mapping[int, Slice]
    places: NDArray[np.intp]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class StackedMap:
    """Features block by block: degree 0, degree 1, exact degrees, sketched degrees.

    `terms` are the (part, degree) of all blocks but the constants, those of part 0 first.
    """

    expansion: Expansion
    sizes: StackedSizes
    terms: tuple[tuple[int, int], ...]
    monomials: Mapping[int, Monomials]
    sketched: tuple[SketchedTerms, ...]
    preserve_norms: bool
    # Predicted variances of features from which on rows are unusual, and out of range.
    limits: tuple[float, float] = (0.0, 0.0)
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
        pilot: Pilot,
        size: int,
        options: PowerOptions,
    ) -> StackedMap:
        """Choose the sizes from the pilot rows and sample every block's sketch."""
        parts, measured = expansion.parts, expansion.measure(pilot.rows, threads=1)
        sizes = _pilot_sizes(expansion, measured, pilot, size)
        others = [(1, parts[1].degrees[k]) for k in sizes.others]
        terms = (*((0, degree) for degree in sizes.degrees), *others)
        sketched = tuple(
            _sketched_terms(terms, part, chain, slices)
            for part, chain, slices in _drawn_chains(streams, expansion, sizes, options)
        )
        monomials = {degree: Monomials.of(parts[0].columns, degree) for degree in sizes.exact}
        drawn = cls(expansion, sizes, terms, monomials, sketched, options.preserve_norms)
        shares = [measured.shares[part][parts[part].degrees.index(k)] for part, k in terms]
        limits = drawn._pilot_limits(
            measured, np.array(shares).reshape(len(shares), pilot.rows.shape[0]), size
        )
        return dataclasses.replace(drawn, limits=limits)

    def with_safe(self, safe: RowMap | None) -> StackedMap:
        """Return the map with another one that is as good for any rows."""
        return dataclasses.replace(self, safe=safe)

    def _pilot_limits(self, measured: Measured, shares: Float64, size: int) -> tuple[float, float]:
        """Return the limits for rows that are not like those of the pilot.

        A map that does not look at the data has a variance of about 1 / size, for any row.
        """
        variances = self._variances(measured, shares, _sum_of_squares(shares))
        median, high = np.quantile(variances, (0.5, _SHARE_OF_USUAL)).tolist()
        # Rows given to fit may come sorted, in batches of mostly those that are far out.
        unusual = max(_UNUSUAL * median, high, _SMALL / size)
        return unusual, max(_OUT_OF_RANGE * float(np.max(variances)), _LARGE / size)

    @cached_property
    def _degrees(self) -> list[list[int]]:
        """The degrees of every part that have features."""
        degrees: list[list[int]] = [[] for _ in self.expansion.parts]
        for part, degree in self.terms:
            degrees[part].append(degree)
        return degrees

    @cached_property
    def _inverse_widths(self) -> Vector:
        """One over the number of features that sketch a term; zero for those that are exact."""
        inverse = np.zeros(len(self.terms))
        for terms in self.sketched:
            for place, degree in zip(terms.places.tolist(), terms.degrees, strict=True):
                if degree > 1:  # of degree 1, most is exact
                    inverse[place] = 1.0 / terms.slices[degree].size
        return inverse

    def _variances(self, measured: Measured, shares: Float64, powers: Vector | float) -> Vector:
        """Return the predicted variance of ⟨z(x), z(x')⟩ / k(x, x) for x' like x, of every row.

        A degree of weight w sketched with m features has w² / m. Weight of degrees without features
        is in the wrong place: it counts with its square. `powers` is Σ shares².
        """
        exact = _sum_of_squares(measured.constants[: self.sizes.constants])
        lost = np.minimum(np.maximum(1.0 - exact - powers, 0.0), 1.0)
        growth = 1.0 + np.divide(lost, powers, out=np.zeros_like(lost), where=powers > lost)
        weights = growth * np.square(shares)
        variances = lost * lost + self._inverse_widths @ np.square(weights)
        return np.where(measured.norms > 0, variances, 0.0)

    def _strangeness(
        self, measured: Measured, shares: Float64, powers: Vector | float
    ) -> Strangeness:
        """Tell how unlike the rows of the pilot every row is."""
        unusual, out_of_range = self.limits
        variances = self._variances(measured, shares, powers)
        strangeness = (variances >= unusual).astype(np.int8)
        strangeness += variances >= out_of_range
        if measured.missing is not None:
            strangeness[measured.missing > _MUCH_MISSING] = WITHOUT_SERIES
        return strangeness

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`."""
        measured = self.expansion.measure(X, threads, self._degrees)
        near_one = [rows.near_one(X) for rows in measured.rows]
        one_part = len(measured.shares) == 1
        shares = measured.shares[0] if one_part else np.concatenate(measured.shares)
        powers = _sum_of_squares(shares)
        strangeness = self._strangeness(measured, shares, powers)
        constants = measured.constants[: self.sizes.constants]
        if self.preserve_norms:
            constants, shares = _completed(constants, shares, powers, self._are_empty(measured))
        scales = measured.norms * shares
        if not self.preserve_norms:
            self._undo_norms(scales, measured, [exponents for _, exponents in near_one])
        out[:, : len(constants)] = (measured.norms * constants).T
        out[:, self.sizes.stop :] = 0
        if self.monomials:
            self._write_monomials(near_one[0][0], scales, out, threads)
        for terms in self.sketched:
            rows, columns = near_one[terms.part][0], scales[terms.places].T
            if not terms.chain.write(rows, np.ascontiguousarray(columns), out, threads):
                raise overflow_error(out.dtype)
        if self.preserve_norms and not out[:, self._first_columns].all():
            self._restore_vanished(X, scales, out)
        return strangeness

    def _are_empty(self, measured: Measured) -> NDArray[np.bool_]:
        """Tell which rows have nothing to take powers of."""
        empty = np.ones(len(measured.norms), dtype=bool)
        for rows, degrees in zip(measured.rows, self._degrees, strict=True):
            if degrees:
                empty &= rows.squared_norms == 0
        return empty

    def _undo_norms(
        self, scales: Float64, measured: Measured, exponents: Sequence[NDArray[np.int64]]
    ) -> None:
        """Turn the norms of sketched blocks into the factors of their literal sketches."""
        for terms in self.sketched:
            inverse = divide_or_zero(1.0, np.sqrt(measured.rows[terms.part].squared_norms))
            undo = Scaled.of(inverse).times_power_of_two(exponents[terms.part])
            for place, degree in zip(terms.places.tolist(), terms.degrees, strict=True):
                literal = Scaled.of(np.array(terms.chain.literal_factor(degree)))
                factor = undo.power(degree) * literal
                scales[place] = (Scaled.of(scales[place]) * factor).to_float()

    @cached_property
    def _first_columns(self) -> list[int]:
        """The first column of every sketched block."""
        return [cut.offset for terms in self.sketched for cut in terms.slices.values() if cut.size]

    def _restore_vanished(self, X: Rows, scales: Float64, out: Real) -> None:
        for terms in self.sketched:
            for place, degree in zip(terms.places.tolist(), terms.degrees, strict=True):
                cut = terms.slices[degree]
                block = out[:, cut.offset : cut.offset + cut.size]
                restore_vanished(X, block, scales[place], cut.offset)

    def _write_monomials(self, rows: ShiftedRows, scales: Float64, out: Real, threads: int) -> None:
        unit = _unit_rows(rows, self.expansion.parts[0], threads)
        for degree, monomials in self.monomials.items():
            start = self.sizes.offsets[degree]
            block = out[:, start : start + monomials.size]
            block[:] = monomials.apply(unit) * scales[self.terms.index((0, degree))][:, None]


def _drawn_chains(
    streams: RandomStreams, expansion: Expansion, sizes: StackedSizes, options: PowerOptions
) -> list[tuple[int, Powers, Mapping[int, Slice]]]:
    """Sample degree 1, the sketched degrees and those of the second part: (part, chain, slices)."""
    first, chains = expansion.parts[0], list[tuple[int, Powers, Mapping[int, Slice]]]()
    if sizes.linear:
        output = Slice(0, sizes.linear, sizes.offsets[1])
        base = CountSketch.keeping(
            streams.child("linear"), first.columns, sizes.coordinates, sizes.shared
        )
        linear = PowerSketch.linear(
            base, output, preserve_norms=options.preserve_norms, direction=first.direction
        )
        chains.append((0, linear, {1: output}))
    method, slices = POWER_METHODS[options.method], sizes.slices
    if slices:
        along = dataclasses.replace(options, direction=first.direction)
        chain = method.draw(streams.child("powers"), first.columns, slices, along)
        chains.append((0, chain, slices))
    if sizes.others:
        second = expansion.parts[1]
        slices = {second.degrees[k]: cut for k, cut in sizes.other_slices.items()}
        along = dataclasses.replace(options, direction=second.direction)
        chain = method.draw(streams.child("others"), second.columns, slices, along)
        chains.append((1, chain, slices))
    return chains


def _sketched_terms(
    terms: Sequence[tuple[int, int]], part: int, chain: Powers, slices: Mapping[int, Slice]
) -> SketchedTerms:
    degrees = chain.degrees
    places = np.array([terms.index((part, degree)) for degree in degrees], dtype=np.intp)
    return SketchedTerms(part, chain, degrees, slices, places)


def _completed(
    constants: Float64, shares: Float64, powers: Vector | float, empty: NDArray[np.bool_]
) -> tuple[Float64, Float64]:
    """Scale the shares so that all squares add up to one; `powers` is the sum of theirs.

    Degrees without features are made up for by the others, and the constants stay as they are; but
    they get it all where there is nothing to take powers of. Where no degree has any weight, the
    last one gets what the constants leave.
    """
    if len(constants) and empty.any():
        constants = _completed_constants(constants, empty)
    if not len(shares):
        return constants, shares
    rest = np.sqrt(np.maximum(1.0 - _sum_of_squares(constants), 0.0))
    present = np.sqrt(powers)
    lost = present <= _NOTHING
    if not lost.any():
        return constants, rest / present * shares
    completed = rest / np.where(lost, 1.0, present) * shares
    completed[-1] = np.where(lost, rest, completed[-1])
    return constants, completed


def _completed_constants(constants: Float64, empty: NDArray[np.bool_]) -> Float64:
    """Give the constants of rows without anything else a norm of one."""
    norms = np.sqrt(_sum_of_squares(constants))
    factor = np.where(empty & (norms > 0), 1.0 / np.where(norms > 0, norms, 1.0), 1.0)
    completed = factor * constants
    completed[0] = np.where(empty & (norms == 0), 1.0, completed[0])
    return completed


def _unit_rows(rows: ShiftedRows, terms: Terms, threads: int) -> Real:
    """Return u / ‖u‖ of every row."""
    dense = rows.X.toarray() if is_sparse(rows.X) else rows.X
    affine: Real = dense * rows.scale[:, None]
    if rows.shift is not None and terms.direction is not None:
        affine = np.pad(affine, ((0, 0), (0, terms.columns - affine.shape[1])))
        affine += rows.shift[:, None] * terms.direction
    norms = np.sqrt(routines.squared_norms(affine, threads=threads))
    affine *= divide_or_zero(1.0, norms)[:, None]
    return affine


def _pilot_sizes(
    expansion: Expansion,
    measured: Measured,
    pilot: Pilot,
    size: int,
) -> StackedSizes:
    """Choose the sizes from the mean share of every term in the kernel's diagonal.

    A few rows of large norm may have all of it, and decide for all others.
    """
    squares = [np.square(part) for part in measured.shares]
    totals = np.add.reduce(np.concatenate([np.square(measured.constants), *squares]), axis=0)
    norms = measured.norms
    fair, _ = pilot.fair_shares(norms)
    importance = fair / np.where(totals > _NOTHING, totals, 1.0)
    means = [[math.fsum(importance * row) / len(norms) for row in part] for part in squares]
    first = expansion.parts[0]
    weights = np.zeros(max(first.degrees, default=1) + 1)
    weights[list(first.degrees)] = means[0]
    if not totals.any() and first.degrees:  # all weight lies beyond the last degree
        weights[first.degrees[-1]] = 1.0
    energies = np.zeros(first.columns)
    if 1 in first.degrees:
        linear = importance * squares[0][first.degrees.index(1)]
        energies = _coordinate_energies(pilot.rows, measured.rows[0], first, linear)
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
    if power is not None:
        pilot = scaled_rows(pilot.astype(np.float64), power)
        rows = AffineRows(rows.scale / power, rows.shift, rows.squared_norms)
    energies = np.zeros(terms.columns)
    energies[: pilot.shape[1]] = column_sums(pilot, linear * rows.scale * rows.scale, squared=True)
    if rows.shift is not None and terms.direction is not None:
        mixed = column_sums(pilot, linear * rows.scale * rows.shift)
        energies[: pilot.shape[1]] += 2 * terms.direction[: pilot.shape[1]] * mixed
        squares = terms.direction * terms.direction
        energies += squares * math.fsum(linear * rows.shift * rows.shift)
    return np.maximum(energies, 0.0)


def _sum_of_squares(values: Float64) -> Vector | float:
    """Return Σ_i values[i]² of every column, added in their order for any number of columns."""
    if not len(values):
        return 0.0
    total: Vector = np.add.accumulate(values * values)[-1]
    return total
