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

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows, divide_or_zero
from powersketch.exceptions import InputError
from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.expansion import AffineRows, Terms
from powersketch.feature_maps.finite_series import FiniteSeries, horner
from powersketch.feature_maps.mean_direction import Geometry, MeanDirection
from powersketch.feature_maps.outliers import central_row
from powersketch.feature_maps.row_checks import check_norms, check_values
from powersketch.powers import Scaled, ascending_powers

Vector = NDArray[np.float64]

_HIGHEST_EXPANDED = 16
_LANDMARKS = 9
_MOST_CONSTANTS = 8
_CONSTANTS_SHARE = 16  # at most one feature in so many is of degree 0
_NEGLIGIBLE = 1e-10
_ROUNDING_OF_NORMS = 1e-6


@dataclass(frozen=True, eq=False)
class SeriesKernel:
    """The kernel ‖x̃‖^h ‖ỹ‖^h Σ_l c_l ⟨x̂, ŷ⟩^l + offset, x̂ of norm one if `homogeneity` h is set.

    Without it, the kernel is Σ_l c_l ⟨x̃, ỹ⟩^l + offset; gamma then is 1 / radius of the series. No
    row may have a larger ‖x‖² than `largest_squared_norm`; `exact` gives the values that the finite
    series stands for, and falls short of beyond its radius, from ‖x‖².
    """

    rows: AugmentedRows
    series: FiniteSeries
    homogeneity: int | None = None
    offset: float = 0.0
    largest_squared_norm: float = math.inf
    exact: Callable[[Vector], Vector] | None = None

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
            gains = Scaled.of(squared_norms).power(self.homogeneity).to_float()
            gains = np.where(norms > 0, gains, 0.0)
            with np.errstate(over="ignore"):  # refused below
                values = gains * math.fsum(self.series.terms) + self.offset
        check_values(X, values)
        missing = self._missing(squared_norms, values)
        roots = np.sqrt(values)
        unit = divide_or_zero(1.0, roots)
        lengths = squared_norms * inverse * inverse
        offset_share = math.sqrt(self.offset) * unit
        return RowValues(inverse, lengths, roots, np.sqrt(gains) * unit, offset_share, missing)

    def _missing(self, squared_norms: Vector, values: Vector) -> Vector:
        """Return what share of the exact value is missing in rows beyond the series' radius."""
        missing = np.zeros_like(values)
        beyond = np.flatnonzero(squared_norms > 1.0 + _ROUNDING_OF_NORMS)
        if self.exact is not None and len(beyond):
            with np.errstate(over="ignore", invalid="ignore"):
                exact = self.exact(squared_norms[beyond] / self.rows.gamma)
                missing[beyond] = np.abs(1.0 - values[beyond] / exact)
        return np.where(np.isnan(missing), 1.0, missing)

    def _check_radius(self, squared_norms: Vector) -> None:
        largest = float(np.max(squared_norms, initial=0.0)) / self.rows.gamma
        if largest > self.largest_squared_norm * (1.0 + _ROUNDING_OF_NORMS):
            raise InputError(
                f"a row has norm {math.sqrt(largest):.6g}, outside the radius of convergence of "
                "the kernel's series, which allows norms of at most "
                f"{math.sqrt(self.largest_squared_norm):.6g}: scale the rows of X."
            )


@dataclass(frozen=True, eq=False)
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
    missing : array
        The share of k(x, x) that the finite series lacks.
    """

    inverse: Vector
    squared_lengths: Vector
    norms: Vector
    factor: Vector
    offset_share: Vector
    missing: Vector


@dataclass(frozen=True, eq=False)
class SeriesExpansion:
    """Powers of the rows themselves."""

    kernel: SeriesKernel
    columns: int

    name: ClassVar[str] = "none"

    @property
    def constants(self) -> int:
        """One for degree 0, one for the offset."""
        return int(0 in self.kernel.series.degrees) + int(self.kernel.offset > 0)

    @property
    def parts(self) -> tuple[Terms, ...]:
        """All degrees from 1 on."""
        return (direct_terms(self.kernel, self.columns, lowest=1),)

    def measure(self, X: Rows, threads: int) -> MeasuredSeries:
        """Find the norms of the rows."""
        kernel = self.kernel
        values = kernel.measure(X, kernel.rows.squared_norms(X, threads))
        return MeasuredSeries(kernel, values)


def direct_terms(kernel: SeriesKernel, columns: int, *, lowest: int) -> Terms:
    """Return the powers of x̃ from a degree on; its last coordinate is reached by a direction."""
    direction = None
    if kernel.rows.extra_columns:
        columns += 1
        direction = np.zeros(columns)
        direction[-1] = 1.0
    degrees = tuple(degree for degree in kernel.series.degrees if degree >= lowest)
    return Terms(degrees, direction, columns)


@dataclass(frozen=True, eq=False)
class MeasuredSeries:
    """A batch of rows."""

    kernel: SeriesKernel
    values: RowValues

    @property
    def norms(self) -> Vector:
        """√k(x, x), of the finite series."""
        return self.values.norms

    @property
    def missing(self) -> Vector:
        """What the finite series lacks, beyond its radius."""
        return self.values.missing

    def constants(self) -> list[Vector]:
        """Return degree 0 and the offset."""
        low = self.amplitudes(0, [0]) if 0 in self.kernel.series.degrees else []
        return [*low, *([self.values.offset_share] if self.kernel.offset > 0 else [])]

    def rows(self, part: int) -> AffineRows:
        """Return x̃."""
        del part
        rows, values = self.kernel.rows, self.values
        shift = rows.root_coef0 * values.inverse if rows.extra_columns else None
        return AffineRows(rows.root_gamma * values.inverse, shift, values.squared_lengths)

    def amplitudes(self, part: int, degrees: list[int]) -> list[Vector]:
        """Return √c_l ‖x̃‖^l relative to the root of the whole sum."""
        del part
        series, values = self.kernel.series, self.values
        terms = dict(zip(series.degrees, np.sqrt(series.terms), strict=True))
        powers = ascending_powers(Scaled.of(np.sqrt(values.squared_lengths)), degrees)
        return [
            (power * Scaled.of(values.factor * terms[degree])).to_float()
            for degree, power in zip(degrees, powers, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class MeanSeriesExpansion:
    """Low degrees around the mean, high degrees as powers of the rows themselves.

    `landmarks` are numbers a at which the features of degree 0 are made, and `inverse_root` is
    L⁻¹ for the Cholesky factor L of G_0 at these; `centre_value` is the landmark of all others.
    """

    kernel: SeriesKernel
    columns: int
    centre: MeanDirection
    landmarks: Vector
    inverse_root: NDArray[np.float64]
    centre_value: float
    profiles: dict[int, Vector] = field(repr=False)

    name: ClassVar[str] = "mean"

    @classmethod
    def of_pilot(cls, kernel: SeriesKernel, pilot: Rows, size: int) -> MeanSeriesExpansion | None:
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
        highest = int(np.flatnonzero(low)[-1])
        profiles = {j: _profile(low, j) for j in range(highest + 1)}
        candidates = _between(float(along.min()), float(along.max()))
        most = max(min(_MOST_CONSTANTS, size // _CONSTANTS_SHARE), 1)
        landmarks, inverse_root = landmark_features(profiles[0], candidates, most)
        columns = pilot.shape[1]
        return cls(kernel, columns, centre, landmarks, inverse_root, centre_value, profiles)

    @property
    def constants(self) -> int:
        """One for each landmark, one for the offset."""
        return len(self.landmarks) + int(self.kernel.offset > 0)

    @property
    def parts(self) -> tuple[Terms, ...]:
        """Powers of x⊥, then of x̃."""
        direction = self.centre.direction
        low = Terms(tuple(j for j in self.profiles if j > 0), direction, len(direction))
        return low, direct_terms(self.kernel, self.columns, lowest=_HIGHEST_EXPANDED + 1)

    def measure(self, X: Rows, threads: int) -> MeasuredMeanSeries:
        """Find the parts of the rows along and across the mean."""
        geometry = self.centre.geometry(X, threads)
        values = self.kernel.measure(X, geometry.squared_norms)
        return MeasuredMeanSeries(self, geometry, MeasuredSeries(self.kernel, values))


@dataclass(frozen=True, eq=False)
class MeasuredMeanSeries:
    """A batch of rows."""

    expansion: MeanSeriesExpansion
    geometry: Geometry
    direct: MeasuredSeries

    @property
    def norms(self) -> Vector:
        """√k(x, x), of the finite series."""
        return self.direct.norms

    @property
    def missing(self) -> Vector:
        """What the finite series lacks, beyond its radius."""
        return self.direct.missing

    def constants(self) -> list[Vector]:
        """Return the features of G_0, and the offset."""
        expansion, values = self.expansion, self.direct.values
        along = self.geometry.along * values.inverse
        at_landmarks = [
            horner(expansion.profiles[0], along * landmark)
            for landmark in expansion.landmarks.tolist()
        ]
        features = []
        for row in expansion.inverse_root.tolist():
            total = np.zeros_like(along)
            for weight, value in zip(row, at_landmarks, strict=True):
                total = total + weight * value
            features.append(total * values.factor)
        return [*features, *([values.offset_share] if self.expansion.kernel.offset > 0 else [])]

    def rows(self, part: int) -> AffineRows:
        """Return x⊥, or x̃."""
        if part == 1:
            return self.direct.rows(0)
        inverse = self.direct.values.inverse
        return AffineRows(
            self.expansion.kernel.rows.root_gamma * inverse,
            -self.geometry.shift * inverse,
            self.geometry.squared_across * inverse * inverse,
        )

    def amplitudes(self, part: int, degrees: list[int]) -> list[Vector]:
        """Return G_j(a a₀) / √G_j(a₀²) ‖x⊥‖^j, or those of the rows themselves."""
        if part == 1:
            return self.direct.amplitudes(0, degrees)
        expansion, inverse = self.expansion, self.direct.values.inverse
        along, factor = self.geometry.along * inverse, self.direct.values.factor
        across = Scaled.of(np.sqrt(self.geometry.squared_across) * inverse)
        powers = ascending_powers(across, degrees)
        result = []
        for degree, power in zip(degrees, powers, strict=True):
            profile, at = expansion.profiles[degree], expansion.centre_value
            root = math.sqrt(float(horner(profile, np.array(at * at))))
            values = horner(profile, along * at) / root if root > 0 else np.zeros_like(along)
            result.append((power * Scaled.of(values * factor)).to_float())
        return result


def _mean_of(rows: AugmentedRows, pilot: Rows, inverse: Vector) -> MeanDirection | None:
    """Return the direction of the mean of the rows, divided by their norms if these count."""
    if not inverse.any():
        return None
    return MeanDirection.of_mean(rows, central_row(pilot, inverse))


def _profile(low: Vector, j: int) -> Vector:
    """Return the coefficients of G_j."""
    return np.array([math.comb(degree, j) * low[degree] for degree in range(j, len(low))])


def _between(low: float, high: float) -> Vector:
    """Return the middle of an interval, its ends, and points between."""
    steps = np.array([4, 0, 8, 2, 6, 1, 3, 5, 7]) / (_LANDMARKS - 1)
    return low + (high - low) * steps


def landmark_features(
    profile: Vector, candidates: Vector, most: int
) -> tuple[Vector, NDArray[np.float64]]:
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


def _lower_inverse(lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert a lower triangular matrix row by row, without BLAS."""
    inverse = np.zeros_like(lower)
    for i in range(len(lower)):
        row = np.zeros(len(lower))
        row[i] = 1.0
        for k in range(i):
            row = row - lower[i, k] * inverse[k]
        inverse[i] = row / lower[i, i]
    return inverse
