"""The charts of a page: errors against size and time, and the spectrum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from powersketch.comparison import charts
from powersketch.comparison.charts import Line, Point, chart
from powersketch.comparison.page_axes import LogAxis
from powersketch.comparison.page_looks import Look
from powersketch.comparison.page_markup import Markup, element, text
from powersketch.comparison.page_methods import Method, Norm
from powersketch.comparison.page_numbers import (
    readable,
    short,
    with_spread,
)
from powersketch.comparison.results import Comparison, Float64, Measurement
from powersketch.comparison.units import bytes_text, seconds_text

# Rounding errors and exploded ones are drawn at these; they would flatten all others.
_LEAST_ERROR, _LARGEST_ERROR = 1e-8, 1e4
# Eigenvalues below this part of the largest exact one are noise, and those above have exploded.
_LEAST_EIGENVALUE, _LARGEST_EIGENVALUE = 1e-9, 1e3
_PLACES_ON_SPECTRUM = 90
_MARKS_ON_SPECTRUM = 6


def error_by_size(comparison: Comparison, methods: Sequence[Method], norm: Norm) -> Markup:
    """Return the figure of the error against the number of components."""
    return _error_figure(
        methods,
        norm,
        f"Error against size, {norm.title}",
        "Lower is better. Whiskers: half the range over the seeds, either way."
        if norm.name == "frobenius" and comparison.seeds > 1
        else "Lower is better.",
        lambda found: float(found.n_components),
        label="components",
        name=lambda value: f"{value:.0f}",
        choices=tuple(float(size) for size in comparison.components),
    )


def error_by_time(methods: Sequence[Method], norm: Norm) -> Markup:
    """Return the figure of the error against the time of the transform."""
    return _error_figure(
        methods,
        norm,
        f"Error against transform time, {norm.title}",
        "Lower and further left is better. A line leads from a method’s smallest size "
        "to its largest one.",
        lambda found: found.seconds_per_row,
        label="transform time per row",
        name=seconds_text,
    )


def error_by_memory(comparison: Comparison, methods: Sequence[Method], norm: Norm) -> Markup:
    """Return the figure of the error against the memory of the fitted map and the transform."""
    return _error_figure(
        methods,
        norm,
        f"Error against memory, {norm.title}",
        f"The fitted map and the transform of {comparison.measured_rows} rows, features included.",
        lambda found: float(found.memory_bytes),
        label="memory",
        name=bytes_text,
        choices=tuple(2.0**exponent for exponent in range(64)),
    )


def _error_figure(
    methods: Sequence[Method],
    norm: Norm,
    title: str,
    caption: str,
    place: Callable[[Measurement], float],
    *,
    label: str,
    name: Callable[[float], str],
    choices: tuple[float, ...] | None = None,
) -> Markup:
    lines = _main_on_top([_error_line(method, norm, place) for method in methods])
    points = [point for line in lines for point in line.points]
    if any(point.y in (_LEAST_ERROR, _LARGEST_ERROR) for point in points):
        caption += (
            f" Errors below {short(_LEAST_ERROR)} or above {short(_LARGEST_ERROR)} are drawn there."
        )
    if not points:
        return _figure(title, _nothing("No method has been measured."), "", norm.name)
    across = LogAxis.around(
        [point.x for point in points], charts.LEFT, charts.RIGHT, label, name, choices
    )
    up = LogAxis.around(
        [point.y for point in points], charts.BOTTOM, charts.TOP, "relative error", short
    )
    return _figure(title, chart(title, across, up, lines), caption, norm.name)


def _error_line(method: Method, norm: Norm, place: Callable[[Measurement], float]) -> Line:
    points = tuple(
        Point(
            place(found),
            _drawn(norm.error(found)),
            _described(found, norm),
            _spread(found) if norm.name == "frobenius" else None,
        )
        for found in method.measurements
        if math.isfinite(norm.error(found)) and 0.0 < place(found) < math.inf
    )
    return Line(method.name, method.look, tuple((point.x, point.y) for point in points), points)


def _described(found: Measurement, norm: Norm) -> str:
    error = readable(norm.error(found))
    if norm.name == "frobenius":
        error = with_spread(found.frobenius, found.frobenius_spread)
    return (
        f"{found.method}, {found.n_components} components: error {error} ({norm.title}), "
        f"{seconds_text(found.seconds_per_row)} per row"
    )


def _spread(found: Measurement) -> tuple[float, float] | None:
    if not found.frobenius_spread > 0.0:
        return None
    low, high = (found.frobenius + sign * found.frobenius_spread for sign in (-1.0, 1.0))
    return _drawn(low), _drawn(high)


def _drawn(error: float) -> float:
    return min(max(error, _LEAST_ERROR), _LARGEST_ERROR)


def spectrum_figure(comparison: Comparison, methods: Sequence[Method]) -> Markup:
    """Return the figure of the exact eigenvalues and of those of every approximation."""
    size = comparison.common_components
    title = "Spectrum"
    caption = (
        f"Eigenvalues of the kernel matrix of {comparison.spectrum.size} rows: exact (wide grey "
        f"line) and approximate, with {size} components."
    )
    exact = comparison.spectrum
    if not exact.max(initial=0.0) > 0.0:
        return _figure(title, _nothing("No spectrum has been computed."), "")
    spectra = [
        (method.name, method.look, comparison.approximate_spectra[method.name])
        for method in methods
        if method.name in comparison.approximate_spectra
    ]
    lines = [_spectrum_line("exact", None, exact, exact)]
    lines += _main_on_top(
        [_spectrum_line(name, look, values, exact) for name, look, values in spectra]
    )
    ends = [place for line in lines for place in line.path]
    across = LogAxis.around(
        [x for x, _ in ends], charts.LEFT, charts.RIGHT, "number of the eigenvalue", short
    )
    up = LogAxis.around([y for _, y in ends], charts.BOTTOM, charts.TOP, "eigenvalue", short)
    return _figure(title, chart(title, across, up, lines), caption)


def _spectrum_line(name: str, look: Look | None, values: Float64, exact: Float64) -> Line:
    """Return the line of a spectrum up to where it drowns in noise; places as on a log scale."""
    top = float(exact.max())
    usable = int(np.argmin(np.append(values > _LEAST_EIGENVALUE * top, False)))
    drawn = np.minimum(values, _LARGEST_EIGENVALUE * top)
    path = tuple((float(i + 1), float(drawn[i])) for i in _places(usable, _PLACES_ON_SPECTRUM))
    if look is None:
        return Line(name, look, path)
    # The marks of different methods begin at different places, lest they cover each other.
    shift = look.number % _MARKS_ON_SPECTRUM
    marked = _places(usable, _MARKS_ON_SPECTRUM * _MARKS_ON_SPECTRUM)[shift::_MARKS_ON_SPECTRUM]
    points = tuple(
        Point(
            float(i + 1),
            float(drawn[i]),
            f"{name}, eigenvalue {i + 1}: {readable(float(values[i]))}"
            f" (exact {readable(float(exact[i]))})",
        )
        for i in marked or [0] * min(usable, 1)
    )
    return Line(name, look, path, points)


def _places(count: int, most: int) -> list[int]:
    """Return at most so many indices below the count, evenly spread on a logarithmic scale."""
    if count == 0:
        return []
    steps = np.rint(np.geomspace(1.0, count, most)).astype(int) - 1
    return [int(step) for step in dict.fromkeys(steps.tolist())]


def _main_on_top(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: line.look is not None and line.look.bold)


def _figure(title: str, drawing: Markup, caption: str, norm: str = "") -> Markup:
    return element(
        "figure",
        element("h3", text(title)),
        drawing,
        element("figcaption", text(caption)) if caption else Markup(""),
        class_=f"chart-figure {norm}".strip(),
    )


def _nothing(message: str) -> Markup:
    return element("p", text(message), class_="quiet")
