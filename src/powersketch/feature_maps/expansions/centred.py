"""The polynomial and the Gaussian kernel around the centre of the data, as powers of what is left.

With x̃ = a·u + x⊥ and ỹ likewise, u the direction of the mean,

    ⟨x̃, ỹ⟩^p = Σ_l C(p, l) (a b)^(p−l) ⟨x⊥, y⊥⟩^l.

Data that is not centred has most of its weight in the low degrees l, which need few features or
are exact. With u = √(2 gamma) (x − c) and v likewise for y,

    exp(−gamma ‖x − y‖²) = e^(−‖u‖²/2) e^(−‖v‖²/2) Σ_l ⟨u, v⟩^l / l!

for any c (Section 6.1 of [SWYZ21]); the mean makes u short, and short rows need few degrees.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powersketch import routines
from powersketch.arrays import Rows, Vector
from powersketch.feature_maps.expansions import (
    Degrees,
    Expansion,
    Measured,
    Terms,
    scaled_column,
)
from powersketch.feature_maps.pilot import Pilot, central_row
from powersketch.feature_maps.rows import AffineRows, AugmentedRows, check_norms, check_power
from powersketch.powers import Scaled, ascending_powers
from powersketch.storable import storable

# At high degrees, only this many levels can have weight that is worth a feature.
_MOST_LEVELS = 128
_HIGHEST_LEVEL = 4096  # beyond it, weight is spread too thin for any of them
_DEVIATIONS = 6.0  # from the mean of a binomial law to where next to nothing is left of it
_ORDINARY_EXPONENT = 60
_BEYOND = 1.5  # times the squared radius of most rows of the pilot: such rows are outside it


@dataclass(frozen=True, eq=False, repr=False)
class Geometry:
    """The parts of a batch of augmented rows along and across a direction."""

    squared_norms: Vector
    along: Vector
    squared_across: Vector
    shift: Vector


@storable
@dataclass(frozen=True, eq=False, repr=False)
class MeanDirection:
    """The unit vector u of the mean row in augmented space.

    With a constant coordinate, the reflection that maps u to it turns x⊥ into the vector
    √gamma · x − shift · u of as many coordinates as x. Without one, x⊥ itself serves, shift = a.
    With one, the squared length of `direction`, u without it, is below one.
    """

    rows: AugmentedRows
    direction: Vector
    squared_length: float
    constant: float

    @classmethod
    def of_mean(cls, rows: AugmentedRows, mean: Vector) -> MeanDirection | None:
        """Return the direction of the mean row's augmented row, or None if that is zero."""
        scaled = rows.root_gamma * mean
        norm = math.sqrt(math.fsum(scaled * scaled) + rows.coef0)
        if norm == 0 or not math.isfinite(norm):
            return None
        direction = scaled / norm
        squared_length = math.fsum(direction * direction)
        return cls(rows, direction, squared_length, rows.root_coef0 / norm)

    @classmethod
    def of_pilot(cls, rows: AugmentedRows, degree: int, pilot: Pilot) -> MeanDirection | None:
        """Return that of the pilot's centre; refuse rows for which the kernel's power overflows."""
        check_power(pilot.rows, rows.gamma * pilot.squared_norms + rows.coef0, degree)
        return cls.of_mean(rows, central_row(pilot.rows))

    def geometry(self, X: Rows, threads: int) -> Geometry:
        """Measure every row."""
        rows = self.rows
        squares, dots = routines.row_moments(X, self.direction, threads=threads)
        scaled_squares, scaled_dots = rows.gamma * squares, rows.root_gamma * dots
        along = scaled_dots + rows.root_coef0 * self.constant
        shift = along
        if rows.extra_columns:
            shift = (along + rows.root_coef0) / (1.0 + self.constant)
        # ‖√gamma · x − shift · u‖², which does not cancel where the constant is most of the row.
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are refused later on
            across = scaled_squares + shift * (shift * self.squared_length - 2.0 * scaled_dots)
        return Geometry(scaled_squares + rows.coef0, along, np.maximum(across, 0.0), shift)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PolynomialExpansion(Expansion):
    """⟨x̃, ỹ⟩^degree around the mean, with the powers of x⊥ to some `levels`."""

    centre: MeanDirection
    degree: int
    levels: tuple[int, ...]

    name: ClassVar[str] = "mean"
    constants: ClassVar[int] = 1

    @classmethod
    def of_pilot(
        cls, centre: MeanDirection, degree: int, pilot: Pilot
    ) -> PolynomialExpansion | None:
        """Choose the levels that have weight in the pilot rows; None if all are too high.

        The squares of a row's amplitudes are a binomial law of mean degree · sin².
        """
        if degree <= _MOST_LEVELS:
            return cls(centre, degree, tuple(range(1, degree + 1)))
        geometry = centre.geometry(pilot.rows, 1)
        check_power(pilot.rows, geometry.squared_norms, degree)
        present = geometry.squared_norms > 0
        if not present.any():
            return None
        sines = geometry.squared_across[present] / geometry.squared_norms[present]
        sines = np.minimum(sines, 1.0)
        means, spreads = degree * sines, np.sqrt(degree * sines * (1.0 - sines))
        middle = float(np.median(means))
        if middle > _HIGHEST_LEVEL:
            return None
        low = max(float(np.min(means - _DEVIATIONS * spreads)), middle - _MOST_LEVELS / 2, 1.0)
        high = float(np.max(means + _DEVIATIONS * spreads)) + _DEVIATIONS**2
        first = math.floor(low)
        last = min(math.ceil(high), first + _MOST_LEVELS - 1, degree)
        return cls(centre, degree, tuple(range(first, last + 1)))

    @functools.cached_property
    def parts(self) -> tuple[Terms, ...]:
        """The powers of x⊥."""
        direction = self.centre.direction
        return (Terms(self.levels, direction, len(direction)),)

    def measure(self, X: Rows, threads: int, degrees: Degrees | None = None) -> Measured:
        """Find the parts of the rows along and across the mean.

        The amplitudes are √C(p, l) cos^(p−l) sin^l, with the sign of the cosine: their squares over
        all degrees l add up to one and say how a row's norm is shared.
        """
        degree, levels = self.degree, self.levels if degrees is None else tuple(degrees[0])
        complements = [degree - level for level in reversed(levels)]
        geometry = self.centre.geometry(X, threads)
        check_power(X, geometry.squared_norms, degree)
        lengths = np.sqrt(geometry.squared_norms)
        present = np.where(lengths > 0, lengths, 1.0)
        cosines = Scaled.of(geometry.along / present)
        sines = Scaled.of(np.sqrt(geometry.squared_across) / present)
        along = ascending_powers(cosines, complements)
        roots = _binomial_roots(degree, levels)
        scale = np.full(len(lengths), self.centre.rows.root_gamma)
        return Measured(
            norms=Scaled.of(lengths).power(degree).to_float(),
            constants=cosines.power(degree).to_float()[None, :],
            rows=(AffineRows(scale, -geometry.shift, geometry.squared_across),),
            shares=((roots * along[::-1] * ascending_powers(sines, levels)).to_float(),),
        )


@functools.lru_cache(maxsize=256)
def _binomial_roots(degree: int, levels: tuple[int, ...]) -> Scaled:
    """Return √C(degree, l) of every level as a column."""
    return scaled_column([Scaled.binomial(degree, level).sqrt() for level in levels])


@storable
@dataclass(frozen=True, eq=False, repr=False)
class CentredRows:
    """u = factor · (x − centre)."""

    centre: Vector
    factor: float

    def squared_norms(self, X: Rows, threads: int) -> Vector:
        """Return ‖u‖² of every row."""
        squares, dots = routines.row_moments(X, self.centre, threads=threads)
        check_norms(X, squares)
        distances = squares - 2.0 * dots + self._squared_length
        lengths = self.factor * np.sqrt(np.maximum(distances, 0.0))
        check_norms(X, lengths)
        return lengths * lengths

    @functools.cached_property
    def direction(self) -> Vector:
        """The centre; one of extreme size is brought near one by a power of two."""
        return np.ldexp(self.centre, -self._exponent) if self._exponent else self.centre

    def affine(self, squared_norms: Vector) -> AffineRows:
        """Return u as multiples of x and of the direction."""
        scale = np.full(len(squared_norms), self.factor)
        return AffineRows(scale, -np.ldexp(scale, self._exponent), squared_norms)

    @functools.cached_property
    def _squared_length(self) -> float:
        return math.fsum(self.centre * self.centre)

    @functools.cached_property
    def _exponent(self) -> int:
        exponent = int(np.frexp(np.max(np.abs(self.centre), initial=0.0))[1])
        return exponent if abs(exponent) > _ORDINARY_EXPONENT else 0


@storable
@dataclass(frozen=True, eq=False, repr=False)
class GaussianExpansion(Expansion):
    """The Taylor series of the kernel up to a degree."""

    rows: CentredRows
    highest: int

    name: ClassVar[str] = "power"
    constants: ClassVar[int] = 1

    @functools.cached_property
    def parts(self) -> tuple[Terms, ...]:
        """The powers of u."""
        direction = self.rows.direction
        return (Terms(tuple(range(1, self.highest + 1)), direction, len(direction)),)

    def measure(self, X: Rows, threads: int, degrees: Degrees | None = None) -> Measured:
        """Find the distances of the rows from the centre; every row has norm one.

        The amplitudes are e^(−‖u‖²/2) ‖u‖^l / √l!: their squares are the weights of Poisson's law.
        """
        squared_norms = self.rows.squared_norms(X, threads)
        affine = self.rows.affine(squared_norms)
        start = Scaled.exp(-0.5 * squared_norms)
        lengths = Scaled.of(np.sqrt(squared_norms))
        chosen = tuple(range(1, self.highest + 1) if degrees is None else degrees[0])
        powers = ascending_powers(lengths, chosen)
        return Measured(
            norms=np.ones(len(lengths)),
            constants=start.to_float()[None, :],
            rows=(affine,),
            shares=((start * powers * _inverse_factorial_roots(chosen)).to_float(),),
        )


@functools.lru_cache(maxsize=256)
def _inverse_factorial_roots(degrees: tuple[int, ...]) -> Scaled:
    """Return 1 / √l! of every degree l as a column."""
    roots = [Scaled.of_integer(math.factorial(degree)).sqrt().inverse() for degree in degrees]
    return scaled_column(roots)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SinglePowerExpansion(Expansion):
    """The one power (1 + ⟨u, v⟩ / P)^P on rows of norm one, close to the kernel if P is large.

    Rows are (u / √P, 1); the norm of a feature row is set to one, which stands for both
    exponentials in front of the series.
    """

    rows: CentredRows
    degree: int
    fitted_radius: float  # squared

    name: ClassVar[str] = "single_power"
    constants: ClassVar[int] = 0

    @functools.cached_property
    def parts(self) -> tuple[Terms, ...]:
        """The one power."""
        direction = np.append(-self._factor * self.rows.centre, 1.0)
        return (Terms((self.degree,), direction, len(direction)),)

    @property
    def _factor(self) -> float:
        return self.rows.factor / math.sqrt(self.degree)

    def measure(self, X: Rows, threads: int, degrees: Degrees | None = None) -> Measured:
        """Find the distances of the rows from the centre.

        All weight is in the one power; rows beyond its range lose some.
        """
        squared_norms = self.rows.squared_norms(X, threads)
        # log (1 + t / P)^P falls short of t by t² / 2 P: on rows in one direction that is seen.
        beyond = np.maximum(squared_norms - _BEYOND * self.fitted_radius, 0.0)
        with np.errstate(over="ignore"):
            kept = np.exp(-0.25 * beyond * (beyond / self.degree))
        ones = np.ones(len(kept))
        return Measured(
            norms=ones,
            constants=np.empty((0, len(kept))),
            rows=(AffineRows(self._factor * ones, ones, squared_norms / self.degree + 1.0),),
            shares=(np.broadcast_to(kept, (1 if degrees is None else len(degrees[0]), len(kept))),),
        )
