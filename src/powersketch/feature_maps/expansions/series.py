"""Dot-product kernels as sums of powers, of the rows themselves or around the data's mean.

The rows are x̃ = (√gamma · x, √coef0), as they are or divided by their norms; the kernel is
Σ_l c_l ⟨x̃, ỹ⟩^l times a power of the norms, plus an offset. Around the mean, with x̃ = a·u + x⊥,

    Σ_l c_l ⟨x̃, ỹ⟩^l = Σ_j G_j(a b) ⟨x⊥, y⊥⟩^j,   G_j(s) = Σ_l c_l C(l, j) s^(l−j).

G_j(a b) is itself a kernel of the numbers a and b. For data with a common mean these hardly vary,
so that few features of one number, made from its values at a few landmarks, stand for it: several
for j = 0, which has the most weight, and one for every other j. High degrees l, which would be
spread over many j, stay powers of the rows themselves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powersketch.arrays import Float64, Rows, Vector, divide_or_zero
from powersketch.exceptions import InputError
from powersketch.feature_maps.expansions import (
    Degrees,
    Expansion,
    Measured,
    Terms,
)
from powersketch.feature_maps.expansions.centred import MeanDirection
from powersketch.feature_maps.expansions.finite_series import FiniteSeries, horner
from powersketch.feature_maps.pilot import central_row
from powersketch.feature_maps.rows import AffineRows, AugmentedRows, check_norms, check_values
from powersketch.kernels import DotProduct
from powersketch.powers import Scaled, ascending_powers
from powersketch.storable import storable

_HIGHEST_EXPANDED = 16
_LANDMARKS = 9
_MOST_CONSTANTS = 8
_CONSTANTS_SHARE = 16  # at most one feature in this many is of degree 0
_NEGLIGIBLE = 1e-10
_ROUNDING_OF_NORMS = 1e-6


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PowerSum:
    """The kernel ‖x̃‖^h ‖ỹ‖^h Σ_l c_l ⟨x̂, ŷ⟩^l + offset, x̂ of norm one if `homogeneity` h is set.

    Without it, the kernel is Σ_l c_l ⟨x̃, ỹ⟩^l + offset; gamma then is 1 / radius of the series. No
    row may have a larger ‖x‖² than `largest_squared_norm`; `exact` is the kernel that the finite
    series stands for, and falls short of beyond its radius.
    """

    rows: AugmentedRows
    series: FiniteSeries
    homogeneity: int | None = None
    offset: float = 0.0
    largest_squared_norm: float = math.inf
    exact: DotProduct | None = None

    def measure(self, X: Rows, squared_norms: Vector) -> RowValues:
        """Return the values of the kernel at every row."""
        check_norms(X, squared_norms)
        if self.homogeneity is None:
            self._check_radius(squared_norms)
            inverse = gains = np.ones_like(squared_norms)
            with np.errstate(over="ignore"):
                values = self.series.value(squared_norms) + self.offset
        else:
            norms = np.sqrt(squared_norms)
            inverse = divide_or_zero(1.0, norms)
            gains = squared_norms
            if self.homogeneity != 1:
                powers = Scaled.of(squared_norms).power(self.homogeneity).to_float()
                gains = np.where(norms > 0, powers, 0.0)
            with np.errstate(over="ignore"):  # refused below
                values = gains * self.series.total + self.offset
        check_values(X, values)
        missing = self._missing(squared_norms, values)
        roots = np.sqrt(values)
        unit = divide_or_zero(1.0, roots)
        lengths = squared_norms * inverse * inverse
        offset_share = math.sqrt(self.offset) * unit
        return RowValues(inverse, lengths, roots, np.sqrt(gains) * unit, offset_share, missing)

    def terms_from(self, lowest: int, columns: int) -> Terms:
        """Return the powers of x̃ from a degree on."""
        degrees = tuple(degree for degree in self.series.degrees if degree >= lowest)
        return Terms(degrees, self.rows.direction(columns), columns + self.rows.extra_columns)

    def affine(self, values: RowValues) -> AffineRows:
        """Return x̃, divided by its norm if that counts."""
        rows = self.rows
        shift = rows.root_coef0 * values.inverse if rows.extra_columns else None
        return AffineRows(rows.root_gamma * values.inverse, shift, values.squared_lengths)

    def amplitudes(self, values: RowValues, degrees: Sequence[int]) -> Float64:
        """Return √c_l ‖x̃‖^l relative to the root of the whole sum."""
        roots = np.array([self._roots[degree] for degree in degrees]).reshape(-1, 1)
        powers = ascending_powers(Scaled.of(np.sqrt(values.squared_lengths)), degrees)
        return (powers * Scaled.of(values.factor * roots)).to_float()

    def with_offset(self, constants: Float64, values: RowValues) -> Float64:
        """Add the amplitude of the offset, if there is one."""
        return np.vstack([constants, values.offset_share]) if self.offset > 0 else constants

    @functools.cached_property
    def _roots(self) -> dict[int, float]:
        """√c_l by degree."""
        return dict(zip(self.series.degrees, np.sqrt(self.series.terms).tolist(), strict=True))

    def _missing(self, squared_norms: Vector, values: Vector) -> Vector | None:
        """Return what share of the exact value is missing in rows beyond the series' radius."""
        beyond = np.flatnonzero(squared_norms > 1.0 + _ROUNDING_OF_NORMS)
        if self.exact is None or not len(beyond):
            return None
        missing = np.zeros_like(values)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = self.exact.profile(squared_norms[beyond] / self.rows.gamma)
            missing[beyond] = np.abs(1.0 - values[beyond] / exact)
        return np.where(np.isnan(missing), 1.0, missing)

    def _check_radius(self, squared_norms: Vector) -> None:
        largest = float(squared_norms.max(initial=0.0)) / self.rows.gamma
        if largest > self.largest_squared_norm * (1.0 + _ROUNDING_OF_NORMS):
            raise InputError(
                f"a row has norm {math.sqrt(largest):.6g}, outside the radius of convergence of "
                "the kernel's series, which allows norms of at most "
                f"{math.sqrt(self.largest_squared_norm):.6g}: scale the rows of X."
            )


@dataclass(frozen=True, eq=False, repr=False)
class RowValues:
    """What all expansions of a series need to know of the rows of a batch.

    Attributes
    ----------
    inverse : array
        1 / ‖x̃‖ if rows are divided by their norms, else 1.
    squared_lengths : array
        The squared norms of the rows after that.
    norms : array
        √k(x, x).
    factor : array
        What makes √c_l times a power of the length relative to √k(x, x).
    offset_share : array
        The amplitude of the offset.
    missing : array or None
        The share of k(x, x) that the finite series lacks; None if no row is beyond its radius.
    """

    inverse: Vector
    squared_lengths: Vector
    norms: Vector
    factor: Vector
    offset_share: Vector
    missing: Vector | None


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SeriesExpansion(Expansion):
    """Powers of the rows themselves."""

    kernel: PowerSum
    columns: int

    name: ClassVar[str] = "none"

    @property
    def constants(self) -> int:
        """One for degree 0, one for the offset."""
        return int(0 in self.kernel.series.degrees) + int(self.kernel.offset > 0)

    @functools.cached_property
    def parts(self) -> tuple[Terms, ...]:
        """All degrees from 1 on."""
        return (self.kernel.terms_from(1, self.columns),)

    def measure(self, X: Rows, threads: int, degrees: Degrees | None = None) -> Measured:
        """Find the norms of the rows."""
        kernel = self.kernel
        values = kernel.measure(X, kernel.rows.squared_norms(X, threads))
        chosen = self.parts[0].degrees if degrees is None else degrees[0]
        constants = kernel.amplitudes(values, [0] if 0 in kernel.series.degrees else [])
        return Measured(
            norms=values.norms,
            constants=kernel.with_offset(constants, values),
            rows=(kernel.affine(values),),
            shares=(kernel.amplitudes(values, chosen),),
            missing=values.missing,
        )


@storable
@dataclass(frozen=True, eq=False, repr=False)
class MeanSeriesExpansion(Expansion):
    """Low degrees around the mean, high degrees as powers of the rows themselves.

    `landmarks` are numbers a at which the features of degree 0 are made, and `inverse_root` is
    L⁻¹ for the Cholesky factor L of G_0 at these; `centre_value` is the landmark of all others.
    `profiles` has the coefficients of G_j in row j.
    """

    kernel: PowerSum
    columns: int
    centre: MeanDirection
    landmarks: Vector
    inverse_root: Float64
    centre_value: float
    profiles: Float64

    name: ClassVar[str] = "mean"

    @classmethod
    def of_pilot(cls, kernel: PowerSum, pilot: Rows, size: int) -> MeanSeriesExpansion | None:
        """Expand around the mean of the pilot rows; None if it is zero or nothing is expanded."""
        values = kernel.measure(pilot, kernel.rows.squared_norms(pilot, 1))
        low = kernel.series.dense_terms(_HIGHEST_EXPANDED)
        centre = _mean_of(kernel.rows, pilot, values.inverse)
        if centre is None or not low.any():
            return None
        along = centre.geometry(pilot, 1).along * values.inverse
        centre_value = math.sqrt(math.fsum(along * along) / len(along))
        if centre_value == 0.0:
            return None
        profiles = _profiles(low[: int(np.flatnonzero(low)[-1]) + 1])
        candidates = _between(float(along.min()), float(along.max()))
        most = max(min(_MOST_CONSTANTS, size // _CONSTANTS_SHARE), 1)
        landmarks, inverse_root = landmark_features(profiles[0], candidates, most)
        columns = pilot.shape[1]
        return cls(kernel, columns, centre, landmarks, inverse_root, centre_value, profiles)

    @property
    def constants(self) -> int:
        """One for each landmark, one for the offset."""
        return len(self.landmarks) + int(self.kernel.offset > 0)

    @functools.cached_property
    def parts(self) -> tuple[Terms, ...]:
        """Powers of x⊥, then of x̃."""
        direction = self.centre.direction
        low = Terms(tuple(range(1, len(self.profiles))), direction, len(direction))
        return low, self.kernel.terms_from(_HIGHEST_EXPANDED + 1, self.columns)

    def measure(self, X: Rows, threads: int, degrees: Degrees | None = None) -> Measured:
        """Find the parts of the rows along and across the mean."""
        kernel, geometry = self.kernel, self.centre.geometry(X, threads)
        values = kernel.measure(X, geometry.squared_norms)
        inverse = values.inverse
        along = geometry.along * inverse
        lengths = Scaled.of(np.sqrt(geometry.squared_across) * inverse)
        low, high = (terms.degrees for terms in self.parts) if degrees is None else degrees
        at_centre = Scaled.of(self._at_centre(along, low) * values.factor)
        across = AffineRows(
            kernel.rows.root_gamma * inverse,
            -geometry.shift * inverse,
            geometry.squared_across * inverse * inverse,
        )
        return Measured(
            norms=values.norms,
            constants=kernel.with_offset(self._at_landmarks(along) * values.factor, values),
            rows=(across, kernel.affine(values)),
            shares=(
                (ascending_powers(lengths, low) * at_centre).to_float(),
                kernel.amplitudes(values, high),
            ),
            missing=values.missing,
        )

    def _at_landmarks(self, along: Vector) -> Float64:
        """Return the features of G_0, one row for each landmark."""
        values = horner(self.profiles[0], along * self.landmarks[:, None])
        products = self.inverse_root[:, :, None] * values
        # Added in this order for any number of rows; the zero turns −0 into 0.
        sums: Float64 = np.add.accumulate(products, axis=1)[:, -1] + 0.0
        return sums

    def _at_centre(self, along: Vector, degrees: Sequence[int]) -> Float64:
        """Return G_j(a a₀) / √G_j(a₀²) for every degree j."""
        chosen, at = list(degrees), self.centre_value
        values = horner(self.profiles[chosen].T[:, :, None], along * at)
        roots = self._roots[chosen, None]
        return np.divide(values, roots, out=np.zeros_like(values), where=roots > 0)

    @functools.cached_property
    def _roots(self) -> Vector:
        """√G_j(a₀²) of every degree j."""
        at = self.centre_value
        return np.sqrt(horner(self.profiles.T, np.array(at * at)))


def _mean_of(rows: AugmentedRows, pilot: Rows, inverse: Vector) -> MeanDirection | None:
    """Return the direction of the mean of the rows, divided by their norms if these count."""
    if not inverse.any():
        return None
    return MeanDirection.of_mean(rows, central_row(pilot, inverse))


def _profiles(low: Vector) -> Float64:
    """Return the coefficients of all G_j, each in a row that zeros make as long as the first."""
    count = len(low)
    profiles = np.zeros((count, count))
    for j in range(count):
        binomials = [math.comb(degree, j) for degree in range(j, count)]
        profiles[j, : count - j] = binomials * low[j:]
    return profiles


def _between(low: float, high: float) -> Vector:
    """Return the middle of an interval, its ends, and points between."""
    steps = np.array([4, 0, 8, 2, 6, 1, 3, 5, 7]) / (_LANDMARKS - 1)
    return low + (high - low) * steps


def landmark_features(profile: Vector, candidates: Vector, most: int) -> tuple[Vector, Float64]:
    """Choose landmarks for the kernel G(a b) of numbers by a Cholesky factorisation with pivots.

    Returns the landmarks and L⁻¹: the features of a number a are L⁻¹ (G(a a_1), G(a a_2), …).
    """
    gram = horner(profile, candidates[:, None] * candidates)
    chosen: list[int] = []
    factor = np.zeros((0, len(candidates)))
    left = gram.diagonal().copy()
    while len(chosen) < most:
        pivot = int(np.argmax(left))
        if not left[pivot] > _NEGLIGIBLE * gram.diagonal().max():
            break
        row = gram[pivot].copy()
        for known in factor:
            row = row - known[pivot] * known
        row = row / math.sqrt(left[pivot])
        factor = np.vstack([factor, row])
        left = left - row * row
        left[pivot] = 0.0
        chosen.append(pivot)
    return candidates[chosen], _lower_inverse(factor[:, chosen].T)


def _lower_inverse(lower: Float64) -> Float64:
    """Invert a lower triangular matrix row by row, without BLAS."""
    inverse = np.zeros_like(lower)
    for i in range(len(lower)):
        row = np.zeros(len(lower))
        row[i] = 1.0
        for k in range(i):
            row = row - lower[i, k] * inverse[k]
        inverse[i] = row / lower[i, i]
    return inverse
