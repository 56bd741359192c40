"""The charts of a comparison: errors against size, time and memory, and the spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.arrays import Vector
from powersketch.comparison.prediction import ERROR_NAMES
from powersketch.comparison.recommend import MAIN_METHOD
from powersketch.comparison.results import Comparison, Measurement
from powersketch.pages import (
    Axis,
    Chart,
    Line,
    LogAxis,
    Look,
    Point,
    across,
    bytes_text,
    number_text,
    seconds_text,
    spread_text,
    tick_text,
    upwards,
)

# Errors beyond these, exact or exploded, are drawn at them; they would flatten all others.
_LEAST_ERROR, _LARGEST_ERROR = 1e-8, 1e4
# Eigenvalues below this share of the largest exact one are noise; those above have exploded.
_LEAST_EIGENVALUE, _LARGEST_EIGENVALUE = 1e-9, 1e3
_PLACES_ON_SPECTRUM = 90
_MARKS_ON_SPECTRUM = 6
_MOST_SHOWN = 6


@dataclass(frozen=True)
class MethodSeries:
    """A method with its successful measurements, the smallest size first, and its look.

    The library's main method is drawn bolder. At most six methods are `shown` before the reader
    asks for others.
    """

    name: str
    kind: str
    measurements: tuple[Measurement, ...]
    look: Look
    shown: bool = True


def method_series(comparison: Comparison) -> list[MethodSeries]:
    """Return the methods in the order in which they were measured."""
    shown = _shown_first(comparison)
    series = []
    for number, name in enumerate(comparison.methods):
        all_sizes = [each for each in comparison.measurements if each.method == name]
        drawn = [each for each in all_sizes if not each.failed and math.isfinite(each.frobenius)]
        drawn.sort(key=lambda each: each.n_components)
        look = Look(number, bold=name == MAIN_METHOD)
        kind = all_sizes[0].kind
        series.append(MethodSeries(name, kind, tuple(drawn), look, name in shown))
    return series


def _shown_first(comparison: Comparison) -> list[str]:
    """Return the main method, the best of scikit-learn's, and the best of all others."""
    if len(comparison.methods) <= _MOST_SHOWN:
        return [*comparison.methods]
    norm = PREDICTION if comparison.task else NORMS[0]
    size = comparison.common_components
    ranked = sorted(
        (each for each in comparison.successes if each.n_components == size), key=norm.error
    )
    names = [each.method for each in ranked]
    peers = [each.method for each in ranked if each.kind == "peer"]
    first = [name for name in (MAIN_METHOD, *peers[:1]) if name in names]
    return [*dict.fromkeys([*first, *names])][:_MOST_SHOWN]


@dataclass(frozen=True)
class Norm:
    """A norm in which errors are measured; figures of one `group` are shown together."""

    name: str
    title: str
    error: Callable[[Measurement], float]
    label: str = "relative error"
    group: str = ""


NORMS = (
    Norm("frobenius", "Frobenius norm", lambda each: each.frobenius, group="frobenius"),
    Norm("operator", "operator norm", lambda each: each.operator_norm, group="operator"),
)


PREDICTION = Norm("prediction", "predictions", lambda each: each.prediction_error, "error")


def charts(comparison: Comparison, methods: Sequence[MethodSeries]) -> list[Chart]:
    """Return errors against size, time and memory, each in both norms, and the spectrum.

    If there is a target, the errors of predictions come first.
    """
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
    kinds = (("size", "Lower is better.", sizes), ("transform time", by_time, times))
    by_kernel = (*kinds, ("memory", by_memory, memory))
    predictions = [_prediction_chart(comparison, methods, *kind) for kind in kinds]
    return [
        *(predictions if comparison.task else []),
        *(_error_chart(methods, norm, *kind) for kind in by_kernel for norm in NORMS),
        _spectrum_chart(comparison, methods),
    ]


_PLACES: dict[str, Callable[[Measurement], float]] = {
    "size": lambda each: each.n_components,
    "transform time": lambda each: each.seconds_per_row,
    "memory": lambda each: each.memory_bytes,
}


def _error_chart(
    methods: Sequence[MethodSeries],
    norm: Norm,
    what: str,
    caption: str,
    axis: dict[str, Any],
    references: Sequence[tuple[str, float]] = (),
) -> Chart:
    title = f"Error against {what}, {norm.title}"
    limits = _limits([norm.error(each) for method in methods for each in method.measurements])
    lines = [_error_line(method, norm, _PLACES[what], limits) for method in methods]
    points = [point for line in lines for point in line.points]
    if not points:
        return Chart(title, "No method has been measured.", group=norm.group)
    if what == "size" and any(point.spread for point in points):
        caption += " Whiskers: half the range over the seeds, either way."
    caption += _outside(points, limits)
    places = [point.x for point in points]
    levels = [(name, _clipped(level, limits)) for name, level in references]
    up = _up([*(point.y for point in points), *(level for _, level in levels)], norm.label)
    straight = [
        Line(name, path=[(min(places), level), (max(places), level)], label=name)
        for name, level in levels
    ]
    drawn = [*straight, *_main_on_top(lines)]
    return Chart(title, caption, drawn, across(LogAxis, places, **axis), up, norm.group)


def _prediction_chart(
    comparison: Comparison,
    methods: Sequence[MethodSeries],
    what: str,
    caption: str,
    axis: dict[str, Any],
) -> Chart:
    """Return the errors of predictions, beside those of models without features."""
    levels = [(each.name, each.error) for each in comparison.baselines]
    text = f"{ERROR_NAMES.get(comparison.task or '', '')} at the measured rows. {caption}"
    if levels:
        text += " Grey lines: models on the columns themselves."
    return _error_chart(methods, PREDICTION, what, text, axis, levels)


def _limits(errors: Sequence[float]) -> tuple[float, float]:
    """Return between which errors the others are drawn, so that exact ones do not flatten them."""
    usual = [error for error in errors if _LEAST_ERROR <= error <= _LARGEST_ERROR]
    if len(usual) == len(errors) or not usual:
        return _LEAST_ERROR, _LARGEST_ERROR
    return 10.0 ** math.floor(math.log10(min(usual) / 2.0)), _LARGEST_ERROR


def _outside(points: Sequence[Point], limits: tuple[float, float]) -> str:
    """Return what is drawn at the ends of the axis although it lies beyond them."""
    words = [
        f"{word} {tick_text(limit)}"
        for word, limit in zip(("below", "above"), limits, strict=True)
        if any(point.y == limit for point in points)
    ]
    return f" Errors {' or '.join(words)} are drawn there." if words else ""


def _up(values: list[float], label: str) -> Axis:
    return upwards(LogAxis, values, label=label, text=tick_text)


def _error_line(
    method: MethodSeries,
    norm: Norm,
    place: Callable[[Measurement], float],
    limits: tuple[float, float],
) -> Line:
    points = [
        Point(
            place(each),
            _clipped(norm.error(each), limits),
            _description(each, norm),
            _whisker(each, limits) if norm.name == "frobenius" else None,
        )
        for each in method.measurements
        if math.isfinite(norm.error(each)) and 0.0 < place(each) < math.inf
    ]
    return Line(method.name, method.look, [(point.x, point.y) for point in points], points)


def _description(measurement: Measurement, norm: Norm) -> str:
    error = number_text(norm.error(measurement))
    if norm.name == "frobenius":
        error = spread_text(measurement.frobenius, measurement.frobenius_spread)
    return (
        f"{measurement.method}, {measurement.n_components} components: error {error} "
        f"({norm.title}), {seconds_text(measurement.seconds_per_row)} per row"
    )


def _whisker(measurement: Measurement, limits: tuple[float, float]) -> tuple[float, float] | None:
    error, spread = measurement.frobenius, measurement.frobenius_spread
    if not spread > 0.0:
        return None
    return _clipped(error - spread, limits), _clipped(error + spread, limits)


def _clipped(error: float, limits: tuple[float, float]) -> float:
    return min(max(error, limits[0]), limits[1])


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
    numbers = across(
        LogAxis, [x for x, _ in places], label="number of the eigenvalue", text=tick_text
    )
    up = _up([y for _, y in places], "eigenvalue")
    caption = (
        f"Eigenvalues of the kernel matrix of {exact.size} rows: exact (wide grey line) and "
        f"approximate, with {comparison.common_components} components."
    )
    return Chart("Spectrum", caption, lines, numbers, up)


def _spectrum_line(method: MethodSeries | None, values: Vector, exact: Vector) -> Line:
    """Return the line of a spectrum down to where it drowns in noise."""
    top = float(exact.max())
    usable = int(np.argmin(np.append(values > _LEAST_EIGENVALUE * top, False)))
    heights = np.minimum(values, _LARGEST_EIGENVALUE * top)
    path = [(float(i + 1), float(heights[i])) for i in _places(usable, _PLACES_ON_SPECTRUM)]
    if method is None:
        return Line("exact", path=path)
    # The marks of different methods begin at different places, so that they do not overlap.
    shift = method.look.number % _MARKS_ON_SPECTRUM
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
    return Line(method.name, method.look, path, points)


def _places(count: int, most: int) -> list[int]:
    """Return at most `most` indices below the count, evenly spread on a logarithmic scale."""
    if count == 0:
        return []
    steps = np.rint(np.geomspace(1.0, count, most)).astype(int) - 1
    return list(dict.fromkeys(steps.tolist()))


def _main_on_top(lines: list[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.name == MAIN_METHOD)
