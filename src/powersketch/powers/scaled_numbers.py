"""Numbers as mantissa · 2^exponent: powers and products that neither overflow nor underflow.

Only multiplications and exact changes of exponent are used, so the bits do not depend on the
machine, as they would with exp and log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SAFE_DEGREE = 128  # (1/16)^_SAFE_DEGREE is an ordinary number
_INVERSE_LOG_2 = 1.4426950408889634
_LOG_2_HIGH = 0.6931471803691238  # the leading 32 bits: its small multiples are exact
_LOG_2_LOW = 1.9082149292705877e-10
_LARGEST_EXPONENT = 1.25e6  # of e: what lies beyond is zero or infinite by far
_EXP_TERMS = 14  # (log(2) / 2)^15 / 15! is below 2^-63
_LARGEST_EXACT_BINOMIAL = 4096
_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite


@dataclass(frozen=True, eq=False)
class Scaled:
    """An array of numbers mantissa · 2^exponent.

    Mantissas of new numbers and of their powers are 0 or in ±[½, 1). Products are left as they
    come: a product of up to four such numbers can still be raised to a power.
    """

    mantissa: NDArray[np.float64]
    exponent: NDArray[np.int64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Scaled:
        """Split ordinary numbers."""
        mantissa, exponent = np.frexp(values)
        return cls(mantissa, exponent.astype(np.int64))

    @classmethod
    def of_integer(cls, value: int) -> Scaled:
        """Split a non-negative integer of any size, rounded to 53 bits."""
        surplus = max(value.bit_length() - 64, 0)
        mantissa, exponent = math.frexp(float(value >> surplus))
        return cls(np.array(mantissa), np.array(exponent + surplus, dtype=np.int64))

    @classmethod
    def binomial(cls, n: int, k: int) -> Scaled:
        """Return C(n, k): exactly rounded up to n = 4096, else to a few units in the last place.

        Integers of that size take long to multiply; the product of all (n − i) / (i + 1) as a tree
        takes no more than k numbers.
        """
        if n <= _LARGEST_EXACT_BINOMIAL:
            return cls.of_integer(math.comb(n, k))
        terms = np.arange(min(k, n - k), dtype=np.float64)
        product = cls.of((n - terms) / (terms + 1.0)) if len(terms) else cls.of(np.ones(1))
        while len(product.mantissa) > 1:
            half = len(product.mantissa) // 2
            odd = product[2 * half :]
            pairs = (product[:half] * product[half : 2 * half]).normalised()
            product = cls(
                np.concatenate([pairs.mantissa, odd.mantissa]),
                np.concatenate([pairs.exponent, odd.exponent]),
            )
        return cls(product.mantissa[0], product.exponent[0])

    @classmethod
    def exp(cls, values: NDArray[np.float64]) -> Scaled:
        """Return e to the power of ordinary numbers, to a few units in the last place.

        The exponent of two is split off, and the rest is summed as a Taylor series: the same bits
        on every machine, unlike those of the platform's exp.
        """
        values = np.clip(values, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
        exponent = np.rint(values * _INVERSE_LOG_2)
        rest = (values - exponent * _LOG_2_HIGH) - exponent * _LOG_2_LOW
        total = np.ones_like(values)
        for divisor in range(_EXP_TERMS, 0, -1):
            total = 1.0 + total * rest / divisor
        mantissa, shift = np.frexp(total)
        return cls(mantissa, exponent.astype(np.int64) + shift)

    def __getitem__(self, part: slice) -> Scaled:
        return Scaled(self.mantissa[part], self.exponent[part])

    def __mul__(self, other: Scaled) -> Scaled:
        return Scaled(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def normalised(self) -> Scaled:
        """Return the same numbers with mantissas in ±[½, 1)."""
        mantissa, shift = np.frexp(self.mantissa)
        return Scaled(mantissa, self.exponent + shift)

    def power(self, degree: int) -> Scaled:
        """Raise to an integer power ≥ 0 by repeated squaring."""
        if degree == 1:
            return self
        if degree > _SAFE_DEGREE:
            whole, rest = divmod(degree, _SAFE_DEGREE)
            return (self.power(_SAFE_DEGREE).power(whole) * self.power(rest)).normalised()
        return Scaled(_plain_power(self.mantissa, degree), degree * self.exponent).normalised()

    def sqrt(self) -> Scaled:
        """Take the square root of non-negative numbers."""
        odd = self.exponent & 1
        mantissa, shift = np.frexp(np.sqrt(np.ldexp(self.mantissa, odd.astype(np.int32))))
        return Scaled(mantissa, (self.exponent - odd) // 2 + shift)

    def inverse(self) -> Scaled:
        """Return the reciprocals of numbers other than zero."""
        mantissa, shift = np.frexp(1.0 / self.mantissa)
        return Scaled(mantissa, shift - self.exponent)

    def times_power_of_two(self, exponent: NDArray[np.int64]) -> Scaled:
        """Multiply by 2^exponent exactly."""
        return Scaled(self.mantissa, self.exponent + exponent)

    def to_float(self) -> NDArray[np.float64]:
        """Return ordinary numbers: zero or infinite where double precision ends."""
        clipped = np.clip(self.exponent, -_EXPONENT_LIMIT, _EXPONENT_LIMIT).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.mantissa, clipped)


def ascending_powers(base: Scaled, degrees: list[int]) -> list[Scaled]:
    """Return base to each of the ascending degrees, each power made from the one before."""
    powers, last = [], 0
    current = base.power(0)
    for degree in degrees:
        current = (current * base.power(degree - last)).normalised()
        powers.append(current)
        last = degree
    return powers


def _plain_power(base: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    if degree == 0:
        return np.ones_like(base)
    result = None
    while degree:
        if degree & 1:
            result = base if result is None else result * base
        degree >>= 1
        if degree:
            base = base * base
    assert result is not None
    return result
