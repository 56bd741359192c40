"""The Gaussian kernel around the data's centre, as powers of inner products.

With u = √(2 gamma) (x − c) and v likewise for y,

    exp(−gamma ‖x − y‖²) = e^(−‖u‖²/2) e^(−‖v‖²/2) Σ_l ⟨u, v⟩^l / l!

for any c (Section 6.1 of [SWYZ21]); the mean makes u short, and short rows need few degrees.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Rows
from powersketch.feature_maps.expansion import AffineRows, Terms
from powersketch.feature_maps.row_checks import check_norms
from powersketch.powers import Scaled, ascending_powers

_ORDINARY_EXPONENT = 60
_BEYOND = 1.5  # times the squared radius of most rows of the pilot: such rows are outside it


@dataclass(frozen=True, eq=False)
class CentredRows:
    """u = factor · (x − centre)."""

    centre: NDArray[np.float64]
    factor: float

    def squared_norms(self, X: Rows, threads: int) -> NDArray[np.float64]:
        """Return ‖u‖² of every row."""
        squares, dots = routines.row_moments(X, self.centre, threads=threads)
        check_norms(X, squares)
        distances = squares - 2.0 * dots + math.fsum(self.centre * self.centre)
        lengths = self.factor * np.sqrt(np.maximum(distances, 0.0))
        check_norms(X, lengths)
        return lengths * lengths

    @property
    def direction(self) -> NDArray[np.float64]:
        """The centre; one of extreme size is brought near one by a power of two."""
        return np.ldexp(self.centre, -self._exponent) if self._exponent else self.centre

    def affine(self, squared_norms: NDArray[np.float64]) -> AffineRows:
        """Return u as multiples of x and of the direction."""
        scale = np.full(len(squared_norms), self.factor)
        return AffineRows(scale, -np.ldexp(scale, self._exponent), squared_norms)

    @functools.cached_property
    def _exponent(self) -> int:
        exponent = int(np.frexp(np.max(np.abs(self.centre), initial=0.0))[1])
        return exponent if abs(exponent) > _ORDINARY_EXPONENT else 0


@dataclass(frozen=True, eq=False)
class GaussianExpansion:
    """The Taylor series of the kernel up to a degree."""

    rows: CentredRows
    highest: int

    name: ClassVar[str] = "power"
    constants: ClassVar[int] = 1

    @property
    def parts(self) -> tuple[Terms, ...]:
        """The powers of u."""
        direction = self.rows.direction
        return (Terms(tuple(range(1, self.highest + 1)), direction, len(direction)),)

    def measure(self, X: Rows, threads: int) -> MeasuredGaussian:
        """Find the distances of the rows from the centre."""
        return MeasuredGaussian(self.rows, self.rows.squared_norms(X, threads))


@dataclass(frozen=True, eq=False)
class MeasuredGaussian:
    """A batch of rows."""

    centred: CentredRows
    squared_norms: NDArray[np.float64]

    @property
    def norms(self) -> NDArray[np.float64]:
        """One, as the kernel of a row with itself is."""
        return np.ones(len(self.squared_norms))

    def constants(self) -> list[NDArray[np.float64]]:
        """Return e^(−‖u‖²/2)."""
        return self.amplitudes(0, [0])

    def rows(self, part: int) -> AffineRows:
        """Return u."""
        del part
        return self.centred.affine(self.squared_norms)

    def amplitudes(self, part: int, degrees: list[int]) -> list[NDArray[np.float64]]:
        """Return e^(−‖u‖²/2) ‖u‖^l / √l!: their squares are the weights of Poisson's law."""
        del part
        start = Scaled.exp(-0.5 * self.squared_norms)
        powers = ascending_powers(Scaled.of(np.sqrt(self.squared_norms)), degrees)
        factors = zip(degrees, powers, strict=True)
        return [(start * power * _inverse_root(degree)).to_float() for degree, power in factors]


@functools.cache
def _inverse_root(degree: int) -> Scaled:
    return Scaled.of_integer(math.factorial(degree)).sqrt().inverse()


@dataclass(frozen=True, eq=False)
class SinglePowerExpansion:
    """The one power (1 + ⟨u, v⟩ / P)^P on rows of norm one, close to the kernel if P is large.

    Rows are (u / √P, 1); the norm of a feature row is set to one, which stands for both
    exponentials in front of the series.
    """

    rows: CentredRows
    degree: int
    fitted_radius: float  # squared

    name: ClassVar[str] = "single_power"
    constants: ClassVar[int] = 0

    @property
    def parts(self) -> tuple[Terms, ...]:
        """The one power."""
        direction = np.append(-self._factor * self.rows.centre, 1.0)
        return (Terms((self.degree,), direction, len(direction)),)

    @property
    def _factor(self) -> float:
        return self.rows.factor / math.sqrt(self.degree)

    def measure(self, X: Rows, threads: int) -> MeasuredSinglePower:
        """Find the distances of the rows from the centre."""
        squared_norms = self.rows.squared_norms(X, threads)
        # log (1 + t / P)^P falls short of t by t² / 2 P: on rows in one direction that is seen.
        beyond = np.maximum(squared_norms - _BEYOND * self.fitted_radius, 0.0)
        with np.errstate(over="ignore"):
            kept = np.exp(-0.25 * beyond * (beyond / self.degree))
        return MeasuredSinglePower(self._factor, squared_norms / self.degree + 1.0, kept)


@dataclass(frozen=True, eq=False)
class MeasuredSinglePower:
    """A batch of rows."""

    factor: float
    squared_norms: NDArray[np.float64]
    kept: NDArray[np.float64]

    @property
    def norms(self) -> NDArray[np.float64]:
        """One, as the kernel of a row with itself is."""
        return np.ones(len(self.squared_norms))

    def constants(self) -> list[NDArray[np.float64]]:
        """Return nothing: there is no degree 0."""
        return []

    def rows(self, part: int) -> AffineRows:
        """Return (u / √P, 1)."""
        del part
        ones = np.ones(len(self.squared_norms))
        return AffineRows(self.factor * ones, ones, self.squared_norms)

    def amplitudes(self, part: int, degrees: list[int]) -> list[NDArray[np.float64]]:
        """Return one, as all weight is in the one power; less for rows beyond its range."""
        del part
        return [self.kept for _ in degrees]
