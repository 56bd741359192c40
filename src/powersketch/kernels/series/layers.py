"""Power series of kernels with layers: functions κ of cosines, one inside the other.

Their coefficients are sums of products of positive numbers. Nothing is subtracted, so that every
one of them keeps its relative precision, and how many roundings it can be off at most follows from
that of the coefficients it is made of. Only operations that IEEE 754 rounds exactly are used, so
the bits do not depend on the machine.
"""

from __future__ import annotations

import decimal
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np

from powersketch.arrays import Float64
from powersketch.exceptions import InputError
from powersketch.kernels.series.power_series import (
    UNIT,
    InfiniteSeries,
    product_of_powers,
    wide_decimals,
)

# A layer's value takes an arccosine, a square root and a few operations: far fewer roundings.
_SAFE_FACTOR = 1.0 + 64 * UNIT
_INVERSE_PI = 0.3183098861837907  # rounded once, as 1 / math.pi need not be


@dataclass(frozen=True, eq=False)
class PositiveSeries:
    """Non-negative coefficients with a proven precision.

    The first coefficient is off by at most `constant` roundings, coefficient l > 0 by at most
    `slope` · l.
    """

    coefficients: Float64
    constant: float
    slope: float

    @classmethod
    def identity(cls, size: int) -> PositiveSeries:
        """Return the series t."""
        coefficients = np.zeros(size)
        coefficients[1] = 1.0
        return cls(coefficients, constant=0, slope=0)

    def roundings(self) -> Float64:
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


class LayeredSeries(InfiniteSeries):
    """A series made of the functions kappa_n of cosines, one layer inside the other."""

    radius = 1.0
    closed = True

    def _coefficients(self, degree: int) -> Float64:
        return self._table(degree).coefficients[: degree + 1]

    def _lower_terms(self, degree: int, t: float) -> Float64:
        table = self._table(degree)
        lower = table.coefficients * np.maximum(1.0 - (table.roundings() + 3) * UNIT, 0.0)
        return product_of_powers(lower[: degree + 1], t)

    def _value(self, t: Float64) -> Float64:
        return self._closed_form(t, 1.0)

    def _upper_value(self, t: float) -> float:
        # All functions increase, so that larger arguments give larger values, layer by layer.
        return float(self._closed_form(np.array(t), _SAFE_FACTOR))

    def _table(self, degree: int) -> PositiveSeries:
        return _cached_table(self, 1 << max(degree.bit_length(), 6))

    @abstractmethod
    def _expansion(self, size: int) -> PositiveSeries:
        """Return the first coefficients."""

    @abstractmethod
    def _closed_form(self, t: Float64, factor: float) -> Float64:
        """Return kappa(t), with arguments and values of every layer multiplied by the factor."""


@lru_cache(maxsize=64)
def _cached_table(series: LayeredSeries, size: int) -> PositiveSeries:
    with decimal.localcontext(wide_decimals()), np.errstate(over="ignore"):
        table = series._expansion(size)
    if not np.isfinite(table.coefficients).all():
        raise InputError(
            f"a coefficient of {series} is above the largest float64, "
            f"{np.finfo(np.float64).max:.3g}: choose a smaller depth, variance or squared_norm."
        )
    table.coefficients.flags.writeable = False
    return table


def kappas_of(inner: PositiveSeries, at_zero: Decimal, order: int) -> list[PositiveSeries]:
    """Return kappa_0, ..., kappa_order of a series, which is `at_zero` at zero.

    kappa_0'(s) = (1 − s²)^(−1/2) / π, kappa_1' = kappa_0 and kappa_2' = 4 kappa_1.
    """
    first = [float(value) for value in kappas_at(at_zero)]
    slope = (inner * inner).inverse_sqrt_of_rest(float(1 - at_zero * at_zero))
    kappas = [slope.scaled(_INVERSE_PI).integral_along(inner, first[0])]
    for factor, value in ((1.0, first[1]), (4.0, first[2]))[:order]:
        kappas.append(kappas[-1].scaled(factor).integral_along(inner, value))
    return kappas


def kappas_at(cosine: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """Return kappa_0, kappa_1 and kappa_2 of one cosine from 0 to 1 in the current precision."""
    pi = 2 * _arccos(Decimal(0))
    angle = pi - _arccos(cosine)
    sine = (1 - cosine * cosine).sqrt()
    first = (sine + cosine * angle) / pi
    second = (3 * cosine * sine + (1 + 2 * cosine * cosine) * angle) / pi
    return angle / pi, first, second


def _arccos(cosine: Decimal) -> Decimal:
    """Return the angle of a cosine from 0 to below 1 by Borchardt's means.

    They tend to sin(angle) / angle, and every step quarters the distance.
    """
    arithmetic, geometric = cosine, Decimal(1)
    for _ in range(2 * decimal.getcontext().prec):
        arithmetic = (arithmetic + geometric) / 2
        geometric = (arithmetic * geometric).sqrt()
    return (1 - cosine * cosine).sqrt() / geometric
