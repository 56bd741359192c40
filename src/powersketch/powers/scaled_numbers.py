"""Numbers as mantissa · 2^exponent: powers and products that neither overflow nor underflow.

Only multiplications and exact changes of exponent are used, so the bits do not depend on the
machine, as they would with exp and log.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite


@dataclass(frozen=True)
class Scaled:
    """An array of numbers mantissa · 2^exponent with mantissa 0 or in ±[½, 1)."""

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

    def __mul__(self, other: Scaled) -> Scaled:
        mantissa, shift = np.frexp(self.mantissa * other.mantissa)
        return Scaled(mantissa, self.exponent + other.exponent + shift)

    def __truediv__(self, other: Scaled) -> Scaled:
        mantissa, shift = np.frexp(self.mantissa / other.mantissa)
        return Scaled(mantissa, self.exponent - other.exponent + shift)

    def power(self, degree: int) -> Scaled:
        """Raise to an integer power ≥ 0 by repeated squaring."""
        result = Scaled.of(np.ones_like(self.mantissa))
        base = self
        while degree:
            if degree & 1:
                result = result * base
            degree >>= 1
            if degree:
                base = base * base
        return result

    def sqrt(self) -> Scaled:
        """Take the square root of non-negative numbers."""
        odd = self.exponent & 1
        mantissa, shift = np.frexp(np.sqrt(np.ldexp(self.mantissa, odd.astype(np.int32))))
        return Scaled(mantissa, (self.exponent - odd) // 2 + shift)

    def times_power_of_two(self, exponent: NDArray[np.int64]) -> Scaled:
        """Multiply by 2^exponent exactly."""
        return Scaled(self.mantissa, self.exponent + exponent)

    def to_float(self) -> NDArray[np.float64]:
        """Return ordinary numbers: zero or infinite where double precision ends."""
        clipped = np.clip(self.exponent, -_EXPONENT_LIMIT, _EXPONENT_LIMIT).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(self.mantissa, clipped)
