"""The charts of a page: which lines on which logarithmic axes, as data for the template."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from powersketch.arrays import Vector
from powersketch.comparison.recommend import MAIN_METHOD
from powersketch.comparison.results import Comparison, Measurement
from powersketch.comparison.text import (
    bytes_text,
    number_text,
    seconds_text,
    spread_text,
    tick_text,
)

# A phone shows these units as pixels, so that the text in them keeps its size there.
FRAME = {"width": 360, "height": 286, "left": 50, "right": 342, "top": 26, "bottom": 244}

# An axis spans at least a factor of four: even a single value then has round numbers about it.
_SHORTEST = math.log10(4.0)
_MARGIN = 0.05
# Digits of round numbers, and every how many powers of ten; the last ones leave 1 alone.
_GRADUATIONS = (((1, 2, 5), 1), *(((1,), step) for step in (1, 2, 3, 5, 10, 25, 50, 1000)))
# Errors beyond these, exact or exploded, are drawn at them; they would flatten all others.
_LEAST_ERROR, _LARGEST_ERROR = 1e-8, 1e4
# Eigenvalues below this share of the largest exact one are noise; those above have exploded.
_LEAST_EIGENVALUE, _LARGEST_EIGENVALUE = 1e-9, 1e3
_PLACES_ON_SPECTRUM = 90
_MARKS_ON_SPECTRUM = 6
# The style sheet has this many colours, which all kinds of colour vision tell apart; markers and
# dashes distinguish methods that share one.
_COLOURS = 7
_DASHES = (None, "7 3", "2 3", "9 3 2 3")
_RADIUS = 3.6


@dataclass(frozen=True)
class LogAxis:
    """Values along the pixels from `start` to `end`, with a label.

    `low` and `high` are decimal logarithms, because kernels of high degree come close to the
    largest numbers that there are. `text` says how a value is written, and `choices` which values
    may be written beside the axis; None stands for round numbers.
    """

    low: float
    high: float
    start: float
    end: float
    label: str
    text: Callable[[float], str]
    choices: Sequence[float] | None = None

    @classmethod
    def around(cls, values: Iterable[float], start: float, end: float, **details: Any) -> LogAxis:
        """Return the axis that has room for all of the values, which are positive."""
        logarithms = [math.log10(value) for value in values]
        low, high = min(logarithms), max(logarithms)
        missing = max(0.0, _SHORTEST - (high - low)) / 2.0
        margin = missing + _MARGIN * (high - low)
        return cls(low - margin, high + margin, start, end, **details)

    def position(self, value: float) -> float:
        """Return the pixel of a value; values beyond an end have the pixel of that end."""
        inside = min(max(math.log10(value), self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)

    def marks(self, apart: float) -> list[tuple[float, str]]:
        """Return the pixels and the texts of the ticks."""
        values = self.ticks(apart)
        texts = [self.text(value) for value in values]
        return list(zip(map(self.position, values), texts, strict=True))

    def ticks(self, apart: float) -> list[float]:
        """Return the most values to write that are at least `apart` pixels from each other."""
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


def pixels(position: float) -> str:
    """Return a position as SVG takes it, to a tenth of a pixel."""
    return f"{position:.1f}".removesuffix(".0")


def round_numbers(low: float, high: float) -> Iterator[list[float]]:
    """Yield the round numbers between two powers of ten, fewer and fewer of them.

    Examples
    --------
    >>> from powersketch.comparison.page.charts import round_numbers
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
class MethodSeries:
    """A method with its successful measurements, the smallest size first, and its style.

    `number` decides colour, dashes and marker; the library's main method is drawn bolder.
    """

    number: int
    name: str
    kind: str
    measurements: tuple[Measurement, ...]

    @property
    def colour(self) -> str:
        """The class that gives the colour and the weight of the line."""
        return f"colour-{self.number % _COLOURS}{' bold' * (self.name == MAIN_METHOD)}"

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


def method_series(comparison: Comparison) -> list[MethodSeries]:
    """Return the methods in the order in which they were measured."""
    series = []
    for number, name in enumerate(comparison.methods):
        all_sizes = [each for each in comparison.measurements if each.method == name]
        drawn = [each for each in all_sizes if not each.failed and math.isfinite(each.frobenius)]
        drawn.sort(key=lambda each: each.n_components)
        series.append(MethodSeries(number, name, all_sizes[0].kind, tuple(drawn)))
    return series


@dataclass(frozen=True)
class Norm:
    """A norm in which errors are measured."""

    name: str
    title: str
    error: Callable[[Measurement], float]


NORMS = (
    Norm("frobenius", "Frobenius norm", lambda each: each.frobenius),
    Norm("operator", "operator norm", lambda each: each.operator_norm),
)


@dataclass(frozen=True)
class Point:
    """A marked point, its description, and maybe the ends of a whisker."""

    x: float
    y: float
    description: str
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Line:
    """A line through a path, and marked points on it; without a series it is the exact spectrum."""

    name: str
    series: MethodSeries | None
    path: Sequence[tuple[float, float]]
    points: Sequence[Point] = ()


@dataclass(frozen=True)
class Chart:
    """Lines between two axes; without axes there is nothing to draw, as the caption says."""

    title: str
    caption: str
    lines: Sequence[Line] = ()
    across: LogAxis | None = None
    up: LogAxis | None = None
    norm: str = ""


def charts(comparison: Comparison, methods: Sequence[MethodSeries]) -> list[Chart]:
    """Return errors against size, time and memory, each in both norms, and the spectrum."""
    sizes = {"label": "components", "text": "{:.0f}".format, "choices": comparison.components}
    times = {"label": "transform time per row", "text": seconds_text}
    powers_of_two = [2.0**exponent for exponent in range(64)]
    memory = {"label": "memory", "text": bytes_text, "choices": powers_of_two}
    by_time = (
        "Lower and further left is better. A line leads from a method’s smallest size to its "
        "largest one."
    )
    by_memory = (
        f"The fitted map and the transform of {comparison.measured_rows} rows, features included."
    )
    return [
        *(_error_chart(methods, norm, "size", "Lower is better.", sizes) for norm in NORMS),
        *(_error_chart(methods, norm, "transform time", by_time, times) for norm in NORMS),
        *(_error_chart(methods, norm, "memory", by_memory, memory) for norm in NORMS),
        _spectrum_chart(comparison, methods),
    ]


_PLACES: dict[str, Callable[[Measurement], float]] = {
    "size": lambda each: each.n_components,
    "transform time": lambda each: each.seconds_per_row,
    "memory": lambda each: each.memory_bytes,
}


def _error_chart(
    methods: Sequence[MethodSeries], norm: Norm, what: str, caption: str, axis: dict[str, Any]
) -> Chart:
    title = f"Error against {what}, {norm.title}"
    lines = _main_on_top([_error_line(method, norm, _PLACES[what]) for method in methods])
    points = [point for line in lines for point in line.points]
    if not points:
        return Chart(title, "No method has been measured.", norm=norm.name)
    if what == "size" and any(point.spread for point in points):
        caption += " Whiskers: half the range over the seeds, either way."
    if any(point.y in (_LEAST_ERROR, _LARGEST_ERROR) for point in points):
        caption += (
            f" Errors below {tick_text(_LEAST_ERROR)} or above {tick_text(_LARGEST_ERROR)} are "
            "drawn there."
        )
    across = LogAxis.around([point.x for point in points], FRAME["left"], FRAME["right"], **axis)
    up = _up([point.y for point in points], "relative error")
    return Chart(title, caption, lines, across, up, norm.name)


def _up(values: list[float], label: str) -> LogAxis:
    return LogAxis.around(values, FRAME["bottom"], FRAME["top"], label=label, text=tick_text)


def _error_line(method: MethodSeries, norm: Norm, place: Callable[[Measurement], float]) -> Line:
    points = [
        Point(
            place(each),
            _clipped(norm.error(each)),
            _description(each, norm),
            _whisker(each) if norm.name == "frobenius" else None,
        )
        for each in method.measurements
        if math.isfinite(norm.error(each)) and 0.0 < place(each) < math.inf
    ]
    return Line(method.name, method, [(point.x, point.y) for point in points], points)


def _description(measurement: Measurement, norm: Norm) -> str:
    error = number_text(norm.error(measurement))
    if norm.name == "frobenius":
        error = spread_text(measurement.frobenius, measurement.frobenius_spread)
    return (
        f"{measurement.method}, {measurement.n_components} components: error {error} "
        f"({norm.title}), {seconds_text(measurement.seconds_per_row)} per row"
    )


def _whisker(measurement: Measurement) -> tuple[float, float] | None:
    error, spread = measurement.frobenius, measurement.frobenius_spread
    return (_clipped(error - spread), _clipped(error + spread)) if spread > 0.0 else None


def _clipped(error: float) -> float:
    return min(max(error, _LEAST_ERROR), _LARGEST_ERROR)


def _spectrum_chart(comparison: Comparison, methods: Sequence[MethodSeries]) -> Chart:
    """Return the exact eigenvalues and those of every approximation."""
    exact, spectra = comparison.spectrum, comparison.approximate_spectra
    if not exact.max(initial=0.0) > 0.0:
        return Chart("Spectrum", "No spectrum has been computed.")
    lines = [
        _spectrum_line(None, exact, exact),
        *_main_on_top(
            [
                _spectrum_line(method, spectra[method.name], exact)
                for method in methods
                if method.name in spectra
            ]
        ),
    ]
    places = [place for line in lines for place in line.path]
    axis: dict[str, Any] = {"label": "number of the eigenvalue", "text": tick_text}
    across = LogAxis.around([x for x, _ in places], FRAME["left"], FRAME["right"], **axis)
    up = _up([y for _, y in places], "eigenvalue")
    caption = (
        f"Eigenvalues of the kernel matrix of {exact.size} rows: exact (wide grey line) and "
        f"approximate, with {comparison.common_components} components."
    )
    return Chart("Spectrum", caption, lines, across, up)


def _spectrum_line(method: MethodSeries | None, values: Vector, exact: Vector) -> Line:
    """Return the line of a spectrum down to where it drowns in noise."""
    top = float(exact.max())
    usable = int(np.argmin(np.append(values > _LEAST_EIGENVALUE * top, False)))
    heights = np.minimum(values, _LARGEST_EIGENVALUE * top)
    path = [(float(i + 1), float(heights[i])) for i in _places(usable, _PLACES_ON_SPECTRUM)]
    if method is None:
        return Line("exact", None, path)
    # The marks of different methods begin at different places, so that they do not overlap.
    shift = method.number % _MARKS_ON_SPECTRUM
    marked = _places(usable, _MARKS_ON_SPECTRUM * _MARKS_ON_SPECTRUM)[shift::_MARKS_ON_SPECTRUM]
    points = [
        Point(
            float(i + 1),
            float(heights[i]),
            f"{method.name}, eigenvalue {i + 1}: {number_text(float(values[i]))}"
            f" (exact {number_text(float(exact[i]))})",
        )
        for i in marked or [0] * min(usable, 1)
    ]
    return Line(method.name, method, path, points)


def _places(count: int, most: int) -> list[int]:
    """Return at most `most` indices below the count, evenly spread on a logarithmic scale."""
    if count == 0:
        return []
    steps = np.rint(np.geomspace(1.0, count, most)).astype(int) - 1
    return list(dict.fromkeys(steps.tolist()))


def _main_on_top(lines: list[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.name == MAIN_METHOD)
