"""Some monomials of rows, each with a weight: O(number of different factors) for each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.powers.scaled_numbers import Scaled

Float64: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

_PLAIN_DEGREE = 16  # weights of such degrees are ordinary numbers, and what underflows is nothing
_PLAIN_FACTORS = 512  # so many mantissas of at least a half are no underflow


@dataclass(frozen=True, eq=False)
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

    @classmethod
    def of(cls, tuples: NDArray[np.int32], squared_weights: Scaled) -> SampledMonomials:
        """Collapse the repeated coordinates of every tuple."""
        counted = [sorted(Counter(row).items()) for row in tuples.tolist()]
        powers = sorted({power for monomial in counted for power in monomial})
        position = {power: index for index, power in enumerate(powers)}
        factors = np.full((max(map(len, counted)), len(counted)), len(powers), dtype=np.int32)
        for column, monomial in enumerate(counted):
            factors[: len(monomial), column] = [position[power] for power in monomial]
        listed, exponents = np.array(powers, dtype=np.int64).T
        coordinates, places = np.unique(listed, return_inverse=True)
        weights = squared_weights.sqrt()
        return cls(coordinates, places, exponents, factors, weights, tuples.shape[1])

    @property
    def size(self) -> int:
        """The number of monomials."""
        return len(self.weights.mantissa)

    def values(self, columns: Float64) -> tuple[Float64, Indices]:
        """Return the weighted monomials of every row, each row divided by a power of two.

        Parameters
        ----------
        columns : ndarray of shape (n, number of `coordinates`)
            These coordinates of rows whose norms are near one.

        Returns
        -------
        values : ndarray of shape (n, size)
            Of ordinary size.
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
        """Return the same as numbers that no degree can make over- or underflow."""
        factors = self._powers(Scaled.of(table))
        product = Scaled(self.weights.mantissa[:, None], self.weights.exponent[:, None])
        for level, factor in enumerate(self.factors):
            product = product * Scaled(factors.mantissa[factor], factors.exponent[factor])
            if level % _PLAIN_FACTORS == _PLAIN_FACTORS - 1:
                product = product.normalised()
        return product.normalised()

    def _plain_powers(self, table: Float64) -> Float64:
        """Return the factors, one row for each, and a row of ones."""
        factors = np.ones((len(self.places) + 1, table.shape[1]))
        power = np.ones_like(table)
        for degree in range(1, int(self.exponents.max()) + 1):
            power *= table
            mine = np.flatnonzero(self.exponents == degree)
            factors[mine] = power[self.places[mine]]
        return factors

    def _powers(self, base: Scaled) -> Scaled:
        """Return the same, of any degree."""
        mantissa = np.full((len(self.places) + 1, base.mantissa.shape[1]), 0.5)
        exponent = np.ones(mantissa.shape, dtype=np.int64)
        for degree in np.unique(self.exponents).tolist():
            mine = np.flatnonzero(self.exponents == degree)
            chosen = self.places[mine]
            power = Scaled(base.mantissa[chosen], base.exponent[chosen]).power(degree)
            mantissa[mine], exponent[mine] = power.mantissa, power.exponent
        return Scaled(mantissa, exponent)
