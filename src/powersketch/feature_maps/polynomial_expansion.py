"""The polynomial kernel around the mean: the part along one direction is taken exactly.

With x̃ = a·u + x⊥ and ỹ likewise, ⟨x̃, ỹ⟩^p = Σ_l C(p, l) (a b)^(p−l) ⟨x⊥, y⊥⟩^l. Data that is not
centred has most of its weight in the low degrees l, which need few features or are exact.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch.feature_maps.expansion import AffineRows, Terms
from powersketch.feature_maps.mean_direction import Geometry, MeanDirection
from powersketch.feature_maps.row_checks import check_power
from powersketch.native import Rows
from powersketch.powers import Scaled, ascending_powers


@dataclass(frozen=True, eq=False)
class PolynomialExpansion:
    """⟨x̃, ỹ⟩^degree around the mean."""

    centre: MeanDirection
    degree: int

    name: ClassVar[str] = "mean"
    constants: ClassVar[int] = 1

    @property
    def parts(self) -> tuple[Terms, ...]:
        """The powers of x⊥."""
        direction = self.centre.direction
        return (Terms(tuple(range(1, self.degree + 1)), direction, len(direction)),)

    def measure(self, X: Rows, threads: int) -> MeasuredPolynomial:
        """Find the parts of the rows along and across the mean."""
        geometry = self.centre.geometry(X, threads)
        check_power(X, geometry.squared_norms, self.degree)
        return MeasuredPolynomial(self, geometry)


@dataclass(frozen=True, eq=False)
class MeasuredPolynomial:
    """A batch of rows."""

    expansion: PolynomialExpansion
    geometry: Geometry

    @property
    def norms(self) -> NDArray[np.float64]:
        """‖x̃‖^degree."""
        roots = Scaled.of(np.sqrt(self.geometry.squared_norms))
        return roots.power(self.expansion.degree).to_float()

    def constants(self) -> list[NDArray[np.float64]]:
        """Return cos^degree."""
        return self.amplitudes(0, [0])

    def rows(self, part: int) -> AffineRows:
        """Return x⊥."""
        del part
        geometry, centre = self.geometry, self.expansion.centre
        scale = np.full(len(geometry.shift), centre.rows.root_gamma)
        return AffineRows(scale, -geometry.shift, geometry.squared_across)

    def amplitudes(self, part: int, degrees: list[int]) -> list[NDArray[np.float64]]:
        """Return √C(p, l) cos^(p−l) sin^l for every degree l, with the sign of the cosine.

        Their squares over all degrees add up to one: they say how a row's norm is shared.
        """
        del part
        geometry, degree = self.geometry, self.expansion.degree
        norms = np.sqrt(np.where(geometry.squared_norms > 0, geometry.squared_norms, 1.0))
        cosine = Scaled.of(geometry.along / norms)
        sine = Scaled.of(np.sqrt(geometry.squared_across) / norms)
        along = ascending_powers(cosine, [degree - level for level in degrees[::-1]])[::-1]
        across = ascending_powers(sine, degrees)
        roots = [_binomial_root(degree, level) for level in degrees]
        factors = zip(roots, along, across, strict=True)
        return [(root * a * b).to_float() for root, a, b in factors]


@functools.cache
def _binomial_root(degree: int, level: int) -> Scaled:
    return Scaled.of_integer(math.comb(degree, level)).sqrt()
