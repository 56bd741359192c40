"""The table of all measurements, which a script can sort."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from powersketch.comparison.page_markup import Markup, element, joined, text
from powersketch.comparison.page_methods import MAIN
from powersketch.comparison.page_numbers import (
    MISSING,
    readable,
    with_spread,
)
from powersketch.comparison.results import Comparison, Measurement
from powersketch.comparison.units import bytes_text, seconds_text


@dataclass(frozen=True)
class _Column:
    """A column: its head, what a cell shows, and the number by which rows are sorted."""

    head: str
    shown: Callable[[Measurement], str]
    value: Callable[[Measurement], object]
    role: str = "number"


def _interval(found: Measurement) -> str:
    if found.spectral is None:
        return MISSING
    low, high = found.spectral
    return f"[{readable(low)}, {readable(high)}]"


def _width(found: Measurement) -> float:
    """Return how far the interval reaches from one, by which it is sorted."""
    if found.spectral is None:
        return math.nan
    low, high = found.spectral
    return max(1.0 - low, high - 1.0)


def _column(
    head: str, value: Callable[[Measurement], float], shown: Callable[[float], str]
) -> _Column:
    return _Column(head, lambda found: shown(value(found)), value)


_COLUMNS = (
    _Column("method", lambda found: found.method, lambda found: found.method, "method"),
    _Column("components", lambda found: str(found.n_components), lambda found: found.n_components),
    _Column(
        "Frobenius error",
        lambda found: with_spread(found.frobenius, found.frobenius_spread),
        lambda found: found.frobenius,
    ),
    _column("operator norm error", lambda found: found.operator_norm, readable),
    _Column("spectral interval", _interval, _width),
    _column("fit", lambda found: found.fit_seconds, seconds_text),
    _column("transform, per row", lambda found: found.seconds_per_row, seconds_text),
    _column("memory", lambda found: float(found.memory_bytes or math.nan), bytes_text),
    _Column("kind", lambda found: found.kind, lambda found: found.kind, ""),
)
_NOTE = _Column(
    "note",
    lambda found: f"failed: {found.error_message}" if found.failed else "",
    lambda found: found.error_message or "",
    "note",
)


def table_section(comparison: Comparison) -> Markup:
    """Return the table in a box of its own, within which it scrolls."""
    if not comparison.measurements:
        return element("p", text("There are none."), class_="quiet")
    columns: tuple[_Column, ...] = _COLUMNS
    # A column of notes is there only if there is something to say.
    if any(found.failed for found in comparison.measurements):
        columns = (*_COLUMNS, _NOTE)
    best = _best_of_each_size(comparison)
    heads = [
        element("th", text(column.head), scope="col", class_=column.role or None)
        for column in columns
    ]
    rows = [
        element("tr", *(_cell(column, found, found in best) for column in columns))
        for found in comparison.measurements
    ]
    table = element(
        "table",
        element("thead", element("tr", *heads)),
        element("tbody", Markup("\n"), *rows),
    )
    box = element(
        "div", table, class_="scrolled", tabindex=0, role="region", aria_label="All measurements"
    )
    return joined(element("p", text(_explanation(comparison)), class_="small quiet"), box)


def _cell(column: _Column, found: Measurement, best: bool) -> Markup:
    value = column.value(found)
    marks = [column.role]
    if best and column.head == "Frobenius error":
        marks.append("best")
    return element(
        "th" if column.role == "method" else "td",
        text(column.shown(found)),
        class_=" ".join(filter(None, marks)) or None,
        scope="row" if column.role == "method" else None,
        data_value="" if isinstance(value, float) and math.isnan(value) else value,
    )


def _best_of_each_size(comparison: Comparison) -> set[Measurement]:
    best: dict[int, Measurement] = {}
    for found in comparison.measurements:
        known = best.get(found.n_components)
        if not found.failed and (known is None or found.frobenius < known.frobenius):
            best[found.n_components] = found
    return set(best.values())


def _explanation(comparison: Comparison) -> str:
    return (
        "Errors are relative, ‖Z Zᵀ − K‖ / ‖K‖, the median of "
        f"{comparison.seeds} seed{'s' * (comparison.seeds != 1)}; ± is half the range over the "
        "seeds. The smallest Frobenius error of every size is bold. The spectral "
        "interval holds the eigenvalues of Z Zᵀ + αI relative to K + αI, "
        f"α = {readable(comparison.alpha)}: [1, 1] is exact. Memory is that of the fitted map and "
        f"of the transform of {comparison.measured_rows} rows. {MAIN} is the library’s main method."
    )
