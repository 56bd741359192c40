"""Numbers as mantissa · 2^exponent: powers and products that neither overflow nor underflow.

Only multiplications and exact changes of exponent are used, so the bits do not depend on the
machine, as they would with exp and log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64
from powersketch.storable import storable

Exponents: TypeAlias = NDArray[np.int64]

_SAFE_DEGREE = 128  # (1/16)^_SAFE_DEGREE is an ordinary number
_INVERSE_LOG_2 = 1.4426950408889634
_LOG_2_HIGH = 0.6931471803691238  # the leading 32 bits: its small multiples are exact
_LOG_2_LOW = 1.9082149292705877e-10
_LARGEST_EXPONENT = 1.25e6  # of e: what lies beyond is zero or infinite by far
_EXP_TERMS = 14  # (log(2) / 2)^15 / 15! is below 2^-63
_FEW = 16
_LARGEST_EXACT_BINOMIAL = 4096
_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite
_PLAIN_FACTORS = 1000  # so many mantissas of at least a half can be multiplied as ordinary numbers


# Not frozen, as that would take longer than the arithmetic on a few rows.
@storable
@dataclass(eq=False, slots=True)
class Scaled:
    """An array of numbers mantissa · 2^exponent, which are never changed.

    Mantissas of new numbers and of their powers are 0 or in ±[½, 1). Products are left as they
    come: a product of up to four such numbers can still be raised to a power.
    """

    mantissa: Float64
    exponent: Exponents

    @classmethod
    def of(cls, values: Float64) -> Scaled:
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
            pairs = (product[:half] * product[half : 2 * half]).normalised()
            product = cls.concatenate([pairs, product[2 * half :]])
        return product[0]

    @classmethod
    def exp(cls, values: Float64) -> Scaled:
        """Return e to the power of ordinary numbers, to a few units in the last place.

        The exponent of two is split off, and the rest is summed as a Taylor series: the same bits
        on every machine, unlike those of the platform's exp.
        """
        values = np.minimum(np.maximum(values, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
        exponent = np.rint(values * _INVERSE_LOG_2)
        rest = (values - exponent * _LOG_2_HIGH) - exponent * _LOG_2_LOW
        mantissa, shift = np.frexp(_exp_of_small(rest))
        return cls(mantissa, exponent.astype(np.int64) + shift)

    @classmethod
    def concatenate(cls, parts: Sequence[Scaled]) -> Scaled:
        """Join numbers along their first axis."""
        return cls(
            np.concatenate([part.mantissa for part in parts]),
            np.concatenate([part.exponent for part in parts]),
        )

    def __getitem__(self, index: Any) -> Scaled:
        return Scaled(self.mantissa[index], self.exponent[index])

    def __len__(self) -> int:
        return len(self.mantissa)

    def __iter__(self) -> Iterator[Scaled]:
        return map(Scaled, self.mantissa, self.exponent)

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
        mantissa, shift = np.frexp(_plain_power(self.mantissa, degree))
        return Scaled(mantissa, degree * self.exponent + shift)

    def sqrt(self) -> Scaled:
        """Take the square root of non-negative numbers."""
        odd = self.exponent & 1
        mantissa, shift = np.frexp(np.sqrt(np.ldexp(self.mantissa, odd.astype(np.int32))))
        return Scaled(mantissa, (self.exponent - odd) // 2 + shift)

    def inverse(self) -> Scaled:
        """Return the reciprocals of numbers other than zero."""
        mantissa, shift = np.frexp(1.0 / self.mantissa)
        return Scaled(mantissa, shift - self.exponent)

    def sum(self) -> Scaled:
        """Add numbers that are not negative along the first axis, in their order."""
        exponents = np.where(self.mantissa > 0.0, self.exponent, np.iinfo(np.int32).min)
        largest = exponents.max(axis=0)
        distance = np.maximum(exponents - largest, -2000).astype(np.int32)
        total = np.cumsum(np.ldexp(self.mantissa, distance), axis=0)[-1]
        return Scaled(total, np.where(total > 0.0, largest, 0)).normalised()

    def times_power_of_two(self, exponent: Exponents) -> Scaled:
        """Multiply by 2^exponent exactly."""
        return Scaled(self.mantissa, self.exponent + exponent)

    def to_float(self) -> Float64:
        """Return ordinary numbers: zero or infinite where double precision ends."""
        exponent = np.minimum(np.maximum(self.exponent, -_EXPONENT_LIMIT), _EXPONENT_LIMIT)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.mantissa, exponent.astype(np.int32))


def ascending_powers(base: Scaled, degrees: Sequence[int]) -> Scaled:
    """Return base to each of the ascending degrees along the first axis.

    Each power is the one before times a power of the base. A change of exponent is exact, so that
    one at the end gives the same bits as one after every product.
    """
    if len(degrees) == 1:
        return base.power(degrees[0]).normalised()[None]
    base, shape = base.normalised(), (len(degrees), *base.mantissa.shape)
    mantissas, exponents = np.empty(shape), np.empty(shape, dtype=np.int64)
    mantissas[:], exponents[:] = base.mantissa, base.exponent
    for row, (last, degree) in enumerate(pairwise((0, *degrees))):
        if degree - last != 1:
            factor = base.power(degree - last)
            mantissas[row], exponents[row] = factor.mantissa, factor.exponent
    exponents = np.add.accumulate(exponents, axis=0)
    for start in range(0, len(degrees), _PLAIN_FACTORS):
        part = slice(start, start + _PLAIN_FACTORS)
        if start:
            mantissas[start] *= mantissas[start - 1]
        mantissas[part], shifts = np.frexp(np.multiply.accumulate(mantissas[part], axis=0))
        exponents[part] += shifts
        exponents[part.stop :] += shifts[-1]
    return Scaled(mantissas, exponents)


def _exp_of_small(values: Float64) -> Float64:
    """Return the Taylor series of e^x; floats of Python are faster than arrays of a few numbers."""
    if values.size <= _FEW:
        sums = [_exp_series(value) for value in values.reshape(-1).tolist()]
        return np.array(sums).reshape(values.shape)
    total: Float64 = _exp_series(values)
    return total


def _exp_series(value: Any) -> Any:
    total = 1.0
    for divisor in range(_EXP_TERMS, 0, -1):
        total = 1.0 + total * value / divisor
    return total


def _plain_power(base: Float64, degree: int) -> Float64:
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
