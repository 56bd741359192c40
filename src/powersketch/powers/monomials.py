"""Monomials of rows: all of a degree, which are its exact power, or some with weights."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Vector
from powersketch.exceptions import InputError
from powersketch.execution import check_fits_memory
from powersketch.parameters import checked_integer
from powersketch.powers.scaled_numbers import Scaled
from powersketch.storable import remembered, storable

Indices: TypeAlias = NDArray[np.int64]

_HIGHEST_IN_FLOAT32 = 32
# Roots of multinomials are up to 2^(degree / 2) for two variables. Up to this degree, they do not
# turn the smallest numbers of float64, which are not rounded as precisely, into any that count.
_HIGHEST_DEGREE = 2000
_PLAIN_DEGREE = 16  # up to it weights are ordinary numbers, and what underflows does not count
_PLAIN_FACTORS = 512  # the product of so many mantissas of at least a half is no underflow


def monomials_fit(columns: int, degree: int, size: int) -> bool:
    """Tell whether all monomials of a degree can be computed and fit a number of features."""
    return degree <= _HIGHEST_DEGREE and monomial_count(columns, degree) <= size


def monomial_count(columns: int, degree: int) -> int:
    """Return the number of monomials of a degree in `columns` variables.

    >>> monomial_count(3, 2)
    6
    """
    return math.comb(columns + degree - 1, degree)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Monomials:
    """Features with ⟨z(x), z(y)⟩ = ⟨x, y⟩^degree exactly, C(d + degree − 1, degree) of them.

    A monomial of degree l is one of degree l − 1 (`parents[l]`) times a variable (`variables[l]`)
    that is not below any variable in it, and times a factor (`factors[l]`): all factors together
    give the root of its multinomial. Of rows of norm one no feature of any level is above one, so
    that nothing overflows at any degree.
    """

    parents: tuple[Indices, ...]
    variables: tuple[Indices, ...]
    factors: tuple[Vector, ...]

    @classmethod
    @remembered
    def of(cls, columns: int, degree: int) -> Monomials:
        """List all monomials of `degree` ≥ 1."""
        checked_integer("degree", degree, 1, _HIGHEST_DEGREE, remedy="sketch higher ones")
        # Three numbers for every monomial of all levels.
        needed = 24 * monomial_count(columns + 1, degree)
        check_fits_memory(f"the monomials of degree {degree}", needed, "choose a lower degree")
        variables = [np.arange(columns)]
        parents = [np.zeros(columns, dtype=np.int64)]
        factors = [np.ones(columns)]
        run = np.ones(columns)  # how often the last variable occurs in each monomial
        for level in range(2, degree + 1):
            choices = columns - variables[-1]
            parent = np.repeat(np.arange(len(choices)), choices)
            first = np.repeat(np.cumsum(choices) - choices, choices)
            variable = variables[-1][parent] + np.arange(len(parent)) - first
            run = np.where(variable == variables[-1][parent], run[parent] + 1, 1)
            parents.append(parent)
            variables.append(variable)
            factors.append(np.sqrt(level / run))
        return cls(tuple(parents), tuple(variables), tuple(factors))

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.variables[-1])

    def apply(self, X: Real) -> Real:
        """Return the monomials of every row; those of high degree are computed in float64.

        Low powers of a high monomial can be too small for float32 even if it is not.
        """
        kind = X.dtype if len(self.factors) <= _HIGHEST_IN_FLOAT32 else np.dtype(np.float64)
        rows = X.astype(kind, copy=False)
        features: Real = rows
        levels = zip(self.parents[1:], self.variables[1:], self.factors[1:], strict=True)
        for parent, variable, factor in levels:
            features = features[:, parent] * (rows[:, variable] * factor.astype(kind))
        return features.astype(X.dtype, copy=False)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SampledMonomials:
    """Products of powers of coordinates.

    Factor f is coordinate `coordinates[places[f]]` to the power `exponents[f]`; the one after the
    last stands for 1. Column j of `factors` lists the factors of monomial j, filled up with ones.
    """

    coordinates: Indices
    places: Indices
    exponents: Indices
    factors: NDArray[np.int32]
    weights: Scaled
    degree: int

    def __post_init__(self) -> None:
        # A loaded file may say anything, and high powers take time.
        if not 1 <= self.exponents.min() <= self.exponents.max() <= self.degree:
            raise InputError(f"monomials of degree {self.degree} have other exponents")

    @classmethod
    def of(cls, tuples: NDArray[np.int32], squared_weights: Scaled) -> SampledMonomials:
        """Collapse the repeated coordinates of every tuple."""
        counted = [sorted(Counter(row).items()) for row in tuples.tolist()]
        powers = sorted({power for monomial in counted for power in monomial})
        position = {power: index for index, power in enumerate(powers)}
        factors = np.full((max(map(len, counted)), len(counted)), len(powers), dtype=np.int32)
        for column, monomial in enumerate(counted):
            factors[: len(monomial), column] = [position[power] for power in monomial]
        variables, exponents = np.array(powers, dtype=np.int64).T
        coordinates, places = np.unique(variables, return_inverse=True)
        weights = squared_weights.sqrt()
        return cls(coordinates, places, exponents, factors, weights, tuples.shape[1])

    @property
    def size(self) -> int:
        """The number of monomials."""
        return len(self.weights)

    def values(self, columns: Float64) -> tuple[Float64, Indices]:
        """Return the weighted monomials of every row, each row divided by a power of two.

        Parameters
        ----------
        columns : ndarray of shape (n, number of `coordinates`)
            These coordinates of rows whose norms are near one.

        Returns
        -------
        values : ndarray of shape (n, size)
            Numbers of ordinary size.
        exponents : ndarray of shape (n,)
            Monomials are values · 2^exponents.
        """
        table = np.ascontiguousarray(columns.T)
        if self.degree <= _PLAIN_DEGREE:
            plain = self._plain(table)
            return np.ascontiguousarray(plain.T), np.zeros(len(columns), dtype=np.int64)
        scaled = self._scaled(table)
        present = np.where(scaled.mantissa == 0.0, np.iinfo(np.int32).min, scaled.exponent)
        largest = np.where(scaled.mantissa.any(axis=0), present.max(axis=0), 0)
        values = Scaled(scaled.mantissa, scaled.exponent - largest).to_float()
        return np.ascontiguousarray(values.T), largest

    def _plain(self, table: Float64) -> Float64:
        """Return the weighted monomials, rows of the data along the second axis.

        In this layout whole rows of memory are gathered, not single entries.
        """
        factors = self._plain_powers(table)
        product: Float64 = factors[self.factors[0]]
        gathered = np.empty_like(product)
        for factor in self.factors[1:]:
            np.take(factors, factor, axis=0, out=gathered, mode="clip")
            product *= gathered
        product *= self.weights.to_float()[:, None]
        return product

    def _scaled(self, table: Float64) -> Scaled:
        """Return the same as scaled numbers, which neither over- nor underflow at any degree."""
        factors = self._powers(Scaled.of(table))
        product = self.weights[:, None]
        for level, factor in enumerate(self.factors):
            product = product * factors[factor]
            if level % _PLAIN_FACTORS == _PLAIN_FACTORS - 1:
                product = product.normalised()
        return product.normalised()

    def _plain_powers(self, table: Float64) -> Float64:
        """Return the factors, one row for each, and a row of ones."""
        factors = np.ones((len(self.places) + 1, table.shape[1]))
        power = np.ones_like(table)
        for degree in range(1, int(self.exponents.max()) + 1):
            power *= table
            of_degree = np.flatnonzero(self.exponents == degree)
            factors[of_degree] = power[self.places[of_degree]]
        return factors

    def _powers(self, base: Scaled) -> Scaled:
        """Return the same as scaled numbers."""
        mantissa = np.full((len(self.places) + 1, base.mantissa.shape[1]), 0.5)
        exponent = np.ones(mantissa.shape, dtype=np.int64)
        for degree in np.unique(self.exponents).tolist():
            of_degree = np.flatnonzero(self.exponents == degree)
            power = base[self.places[of_degree]].power(degree)
            mantissa[of_degree], exponent[of_degree] = power.mantissa, power.exponent
        return Scaled(mantissa, exponent)
