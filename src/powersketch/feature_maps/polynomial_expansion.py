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

from powersketch.arrays import Rows
from powersketch.feature_maps.expansion import AffineRows, Terms
from powersketch.feature_maps.mean_direction import Geometry, MeanDirection
from powersketch.feature_maps.row_checks import check_power
from powersketch.powers import Scaled, ascending_powers

# Of high kernels only so many degrees can have weight that is worth a feature.
_MOST_LEVELS = 128
_HIGHEST_LEVEL = 4096  # beyond it, weight is spread too thin for all that
_DEVIATIONS = 6.0  # from the mean of a binomial law to where it has all but ended


@dataclass(frozen=True, eq=False)
class PolynomialExpansion:
    """⟨x̃, ỹ⟩^degree around the mean, with the powers of x⊥ to some `levels`."""

    centre: MeanDirection
    degree: int
    levels: tuple[int, ...]

    name: ClassVar[str] = "mean"
    constants: ClassVar[int] = 1

    @classmethod
    def of_pilot(
        cls, centre: MeanDirection, degree: int, pilot: Rows
    ) -> PolynomialExpansion | None:
        """Choose the levels that have weight in the pilot rows; None if all are too high.

        The squares of a row's amplitudes are a binomial law of mean degree · sin².
        """
        if degree <= _MOST_LEVELS:
            return cls(centre, degree, tuple(range(1, degree + 1)))
        geometry = centre.geometry(pilot, 1)
        check_power(pilot, geometry.squared_norms, degree)
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

    @property
    def parts(self) -> tuple[Terms, ...]:
        """The powers of x⊥."""
        direction = self.centre.direction
        return (Terms(self.levels, direction, len(direction)),)

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


@functools.lru_cache(maxsize=1 << 14)
def _binomial_root(degree: int, level: int) -> Scaled:
    return Scaled.binomial(degree, level).sqrt()
