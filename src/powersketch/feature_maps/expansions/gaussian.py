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

from powersketch import routines
from powersketch.arrays import Rows, Vector
from powersketch.feature_maps.expansions import (
    Degrees,
    Expansion,
    Measured,
    Terms,
    scaled_column,
)
from powersketch.feature_maps.rows import AffineRows, check_norms
from powersketch.powers import Scaled, ascending_powers

_ORDINARY_EXPONENT = 60
_BEYOND = 1.5  # times the squared radius of most rows of the pilot: such rows are outside it


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
