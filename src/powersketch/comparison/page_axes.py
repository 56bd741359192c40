"""Logarithmic axes: where a value lies, and which values are written beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# An axis reaches over a factor of four at least: one value alone then has round numbers about it.
_SHORTEST = math.log10(4.0)
_MARGIN = 0.05
# Digits of round numbers, and every how many powers of ten; the last ones leave 1 alone.
_GRADUATIONS = (((1, 2, 5), 1), *(((1,), step) for step in (1, 2, 3, 5, 10, 25, 50, 1000)))


@dataclass(frozen=True)
class LogAxis:
    """Values along the pixels from `start` to `end`.

    Attributes
    ----------
    low, high
        The decimal logarithms of the values at the ends: kernels of high degree come close to the
        largest numbers that there are.
    label
        What is measured.
    name
        How a value is written.
    choices
        The values that may be written beside the axis; None stands for round numbers.
    """

    low: float
    high: float
    start: float
    end: float
    label: str
    name: Callable[[float], str]
    choices: tuple[float, ...] | None = None

    @classmethod
    def around(
        cls,
        values: Iterable[float],
        start: float,
        end: float,
        label: str,
        name: Callable[[float], str],
        choices: tuple[float, ...] | None = None,
    ) -> LogAxis:
        """Return the axis that has room for all of the values, which are positive."""
        logarithms = [math.log10(value) for value in values]
        low, high = min(logarithms), max(logarithms)
        missing = max(0.0, _SHORTEST - (high - low)) / 2.0
        margin = missing + _MARGIN * (high - low)
        return cls(low - margin, high + margin, start, end, label, name, choices)

    def position(self, value: float) -> float:
        """Return the pixel of a value; beyond the ends it is that of the end."""
        inside = min(max(math.log10(value), self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, apart: float) -> list[float]:
        """Return as many of the values to be written as fit so many pixels apart."""
        steps = self._choices() if self.choices is not None else round_numbers(self.low, self.high)
        return next(values for values in steps if self._fit(values, apart))

    def _choices(self) -> Iterator[list[float]]:
        """Yield all of the choices, then every second one, every third one and so on."""
        ordered = sorted(self.choices or ())
        inside = [value for value in ordered if self.low <= math.log10(value) <= self.high]
        for step in range(1, len(inside) + 2):
            yield inside[::step]

    def _fit(self, values: Sequence[float], apart: float) -> bool:
        pixels = [self.position(value) for value in values]
        return all(abs(right - left) >= apart for left, right in pairwise(pixels))


def round_numbers(low: float, high: float) -> Iterator[list[float]]:
    """Yield the round numbers between two powers of ten, fewer and fewer of them.

    Examples
    --------
    >>> from powersketch.comparison.page_axes import round_numbers
    >>> numbers = round_numbers(-0.5, 1.5)
    >>> next(numbers)
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    >>> next(numbers)
    [1.0, 10.0]
    """
    for digits, step in _GRADUATIONS:
        # Powers of ten are counted from 1, which is then among them wherever the axis begins.
        exponents = [
            exponent
            for exponent in range(math.floor(low), math.ceil(high) + 1)
            if exponent % step == 0
        ]
        numbers = [float(f"{digit}e{exponent}") for exponent in exponents for digit in digits]
        yield [number for number in numbers if _between(low, number, high)]


def _between(low: float, number: float, high: float) -> bool:
    return 0.0 < number < math.inf and low <= math.log10(number) <= high
