"""Charts as data for a template: axes, lines, points, and how lines are told apart."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

# A phone shows these units as pixels, so that the text in them keeps its size there.
FRAME = {"width": 360, "height": 286, "left": 50, "right": 342, "top": 26, "bottom": 244}

# A logarithmic axis spans at least a factor of four: even a single value then has round numbers
# about it.
_SHORTEST = math.log10(4.0)
_MARGIN = 0.05
# Digits of round numbers, and every how many powers of ten; the last ones leave 1 alone.
_GRADUATIONS = (((1, 2, 5), 1), *(((1,), step) for step in (1, 2, 3, 5, 10, 25, 50, 1000)))
# The style sheet has this many colours, which all kinds of colour vision tell apart; markers and
# dashes distinguish lines that share one.
_COLOURS = 7
_DASHES = (None, "7 3", "2 3", "9 3 2 3")
_RADIUS = 3.6


@dataclass(frozen=True)
class Axis(ABC):
    """Values along the pixels from `start` to `end`, with a label.

    `low` and `high` are what :meth:`level` makes of the values at the ends. `text` says how a value
    is written, and `choices` which values may be written beside the axis; None stands for round
    numbers.
    """

    low: float
    high: float
    start: float
    end: float
    label: str
    text: Callable[[float], str]
    choices: Sequence[float] | None = None

    @staticmethod
    @abstractmethod
    def level(value: float) -> float:
        """Return what grows evenly along the axis."""

    @abstractmethod
    def _round_numbers(self) -> Iterator[list[float]]:
        """Yield round numbers on the axis, fewer and fewer of them."""

    def position(self, value: float) -> float:
        """Return the pixel of a value; values beyond an end have the pixel of that end."""
        inside = min(max(self.level(value), self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def marks(self, apart: float) -> list[tuple[float, str]]:
        """Return the pixels and the texts of the ticks."""
        values = self.ticks(apart)
        texts = [self.text(value) for value in values]
        return list(zip(map(self.position, values), texts, strict=True))

    def ticks(self, apart: float) -> list[float]:
        """Return the most values to write that are at least `apart` pixels from each other."""
        steps = self._choices() if self.choices is not None else self._round_numbers()
        return next(values for values in steps if self._fit(values, apart))

    def _choices(self) -> Iterator[list[float]]:
        """Yield all of the choices, then every second one, every third one and so on."""
        ordered = sorted(self.choices or ())
        inside = [value for value in ordered if self.low <= self.level(value) <= self.high]
        for step in range(1, len(inside) + 2):
            yield inside[::step]

    def _fit(self, values: Sequence[float], apart: float) -> bool:
        pixels = [self.position(value) for value in values]
        return all(abs(right - left) >= apart for left, right in pairwise(pixels))


class LogAxis(Axis):
    """A logarithmic axis.

    Its ends are decimal logarithms, because kernels of high degree come close to the largest
    numbers that there are.
    """

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float, **details: Any) -> Self:
        """Return the axis that has room for all of the values, which are positive."""
        logarithms = [math.log10(value) for value in values]
        low, high = min(logarithms), max(logarithms)
        missing = max(0.0, _SHORTEST - (high - low)) / 2.0
        margin = missing + _MARGIN * (high - low)
        return cls(low - margin, high + margin, start, end, **details)

    @staticmethod
    def level(value: float) -> float:
        """Return the decimal logarithm."""
        return math.log10(value)

    def _round_numbers(self) -> Iterator[list[float]]:
        return round_numbers(self.low, self.high)


class LinearAxis(Axis):
    """An axis on which equal differences are equally long."""

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float, **details: Any) -> Self:
        """Return the axis that has room for all of the values."""
        numbers = [*values]
        low, high = min(numbers), max(numbers)
        margin = _MARGIN * (high - low) or _MARGIN * abs(high) or 1.0
        return cls(low - margin, high + margin, start, end, **details)

    @staticmethod
    def level(value: float) -> float:
        """Return the value itself."""
        return value

    def _round_numbers(self) -> Iterator[list[float]]:
        power = math.floor(math.log10(self.high - self.low)) - 1
        while True:
            for digit in (1, 2, 5):
                step = float(f"{digit}e{power}")
                first, last = math.ceil(self.low / step), math.floor(self.high / step)
                # Divided by a whole number where possible: 0.3 is not three times 0.1.
                yield [
                    count * digit * 10**power if power >= 0 else count * digit / 10**-power
                    for count in range(first, last + 1)
                ]
            power += 1


def across(kind: type[LogAxis | LinearAxis], values: Iterable[float], **details: Any) -> Axis:
    """Return the axis below the frame."""
    return kind.around(values, FRAME["left"], FRAME["right"], **details)


def upwards(kind: type[LogAxis | LinearAxis], values: Iterable[float], **details: Any) -> Axis:
    """Return the axis at the left of the frame."""
    return kind.around(values, FRAME["bottom"], FRAME["top"], **details)


def pixels(position: float) -> str:
    """Return a position as SVG takes it, to a tenth of a pixel."""
    return f"{position:.1f}".removesuffix(".0")


def round_numbers(low: float, high: float) -> Iterator[list[float]]:
    """Yield the round numbers between two powers of ten, fewer and fewer of them.

    Examples
    --------
    >>> from powersketch.pages.charts import round_numbers
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
        yield [
            number
            for number in numbers
            if 0.0 < number < math.inf and low <= math.log10(number) <= high
        ]


def _polygon(corners: int, turn: float, *, inner: float = 1.0) -> str:
    """Return the path of a regular polygon; every other corner may lie further inside."""
    points = []
    for corner in range(corners):
        angle = 2.0 * math.pi * (corner / corners + turn)
        radius = _RADIUS * 1.2 * (inner if corner % 2 else 1.0)
        points.append(f"{radius * math.sin(angle):.2f} {-radius * math.cos(angle):.2f}")
    return f"M{'L'.join(points)}Z"


_ARC = f"A{_RADIUS} {_RADIUS} 0 1 1"
_MARKERS = (
    f"M{-_RADIUS} 0{_ARC} {_RADIUS} 0{_ARC} {-_RADIUS} 0Z",
    _polygon(4, 1 / 8),
    _polygon(3, 0.0),
    _polygon(4, 0.0),
    _polygon(3, 1 / 2),
    _polygon(10, 0.0, inner=0.45),
    _polygon(8, 1 / 8, inner=0.35),
    _polygon(8, 0.0, inner=0.35),
)


@dataclass(frozen=True)
class Look:
    """How a line looks: its number decides colour, dashes and marker."""

    number: int
    bold: bool = False

    @property
    def colour(self) -> str:
        """The class that gives the colour and the weight of the line."""
        return f"colour-{self.number % _COLOURS}{' bold' * self.bold}"

    @property
    def dash(self) -> str | None:
        """The dashes of the line; None is a solid one."""
        return _DASHES[self.number % len(_DASHES)]

    @property
    def marker(self) -> str:
        """The path of the marker around the origin."""
        return _MARKERS[self.number % len(_MARKERS)]

    @property
    def hollow(self) -> bool:
        """Whether the marker is hollow: every shape is used filled before it is used hollow."""
        return (self.number // len(_MARKERS)) % 2 == 1


@dataclass(frozen=True)
class Point:
    """A marked point, its description, and maybe the ends of a whisker."""

    x: float
    y: float
    description: str
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """A line through a path, and marked points on it; without a look it is what others refer to.

    `dots` are points that are too many to be described one by one. A `label` stands at the end of
    the line.
    """

    name: str
    look: Look | None = None
    path: Sequence[tuple[float, float]] = ()
    points: Sequence[Point] = ()
    dots: Sequence[tuple[float, float]] = ()
    label: str = ""


@dataclass(frozen=True)
class Chart:
    """Lines between two axes; without axes there is nothing to draw, as the caption says.

    `group` is the class of figures that are shown and hidden together.
    """

    title: str
    caption: str
    lines: Sequence[Line] = ()
    across: Axis | None = None
    up: Axis | None = None
    group: str = ""
