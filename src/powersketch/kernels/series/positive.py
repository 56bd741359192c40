"""The first coefficients of power series, from sums of products of positive numbers only.

Nothing is subtracted, so that every coefficient keeps its relative precision, and how many
roundings it can be off at most follows from that of the coefficients it is made of. Only
operations that IEEE 754 rounds exactly are used, so the bits do not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PositiveSeries:
    """Non-negative coefficients with a proven precision.

    The first coefficient is off by at most `constant` roundings, coefficient l > 0 by at most
    `slope` · l.
    """

    coefficients: NDArray[np.float64]
    constant: float
    slope: float

    @classmethod
    def identity(cls, size: int) -> PositiveSeries:
        """Return the series t."""
        coefficients = np.zeros(size)
        coefficients[1] = 1.0
        return cls(coefficients, constant=0, slope=0)

    def roundings(self) -> NDArray[np.float64]:
        """Return by how many roundings every coefficient may be off."""
        counts = self.slope * np.arange(self.coefficients.size, dtype=np.float64)
        counts[0] = self.constant
        return counts

    def scaled(self, factor: float) -> PositiveSeries:
        """Multiply by a number that was rounded once."""
        return PositiveSeries(self.coefficients * factor, self.constant + 2, self.slope + 2)

    def with_first(self, first: float) -> PositiveSeries:
        """Replace the first coefficient by a number that was rounded once."""
        coefficients = self.coefficients.copy()
        coefficients[0] = first
        return PositiveSeries(coefficients, constant=1, slope=self.slope)

    def __add__(self, other: PositiveSeries) -> PositiveSeries:
        return PositiveSeries(
            self.coefficients + other.coefficients,
            max(self.constant, other.constant) + 1,
            max(self.slope, other.slope) + 1,
        )

    def __mul__(self, other: PositiveSeries) -> PositiveSeries:
        size = self.coefficients.size
        product = np.zeros(size)
        for index in np.flatnonzero(self.coefficients):
            product[index:] += self.coefficients[index] * other.coefficients[: size - index]
        # The summand k of coefficient n is rounded once and takes part in n − k + 1 additions.
        return PositiveSeries(
            product,
            self.constant + other.constant + 1,
            max(self.slope + other.constant, other.slope + self.constant) + 2,
        )

    def integral_along(self, inner: PositiveSeries, first: float) -> PositiveSeries:
        """Return F(inner) with the given first coefficient, if this series is F'(inner)."""
        # t d/dt F(inner) = F'(inner) · t d/dt inner, and t d/dt multiplies coefficient n by n.
        degrees = np.arange(self.coefficients.size)
        product = PositiveSeries(degrees * inner.coefficients, 0, inner.slope + 1) * self
        quotient = product.coefficients / np.maximum(degrees, 1)
        return PositiveSeries(quotient, 0, product.slope + 1).with_first(first)

    def inverse_sqrt_of_rest(self, rest: float) -> PositiveSeries:
        """Return (1 − f)^(−1/2) for this f, given 1 − f(0) > 0 rounded once.

        Comparing coefficients in 2 (1 − f) w' = f' w gives n (1 − f_0) w_n as the sum of
        (m + k / 2) f_k w_m over all m + k = n with k > 0.
        """
        size = self.coefficients.size
        degrees = np.arange(size)
        halved = 0.5 * degrees
        sums, root = np.zeros(size), np.zeros(size)
        sums[0] = root[0] = 1.0 / np.sqrt(rest)
        for m in range(size):
            if m > 0:
                root[m] = sums[m] / (m * rest)
            if root[m] > 0.0:
                factors = (halved[1 : size - m] + m) * self.coefficients[1 : size - m]
                sums[m + 1 :] += factors * root[m]
        # Two roundings and at most k additions of the summand, three of the division by
        # n (1 − f_0), and the three of w_0, with which every chain of summands begins.
        return PositiveSeries(root, constant=3, slope=self.slope + 9)
