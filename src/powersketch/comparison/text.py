"""Comparisons as text for people: numbers with few digits, units, tables and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from powersketch.pages import MISSING, bytes_text, number_text, seconds_text, spread_text

if TYPE_CHECKING:
    from powersketch.comparison.results import Comparison, Measurement

_KERNEL_HEADINGS = (
    "components",
    "method",
    "kind",
    "Frobenius",
    "operator",
    "pencil",
    "fit",
    "transform",
    "per row",
    "memory",
)
# These columns hold text; all others hold numbers, which are aligned on the right.
TEXT_HEADINGS = ("method", "kind")
INTERRUPTED = "The comparison was interrupted: some measurements are missing."

# Whole numbers are degrees, depths and sizes, which are not rounded.
_DECIMAL = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+")


def kernel_text(kernel: str) -> str:
    """Return a kernel with no more than four digits of every decimal number.

    Examples
    --------
    >>> from powersketch.comparison.text import kernel_text
    >>> kernel_text("Polynomial(degree=123456, gamma=0.012345678901234567)")
    'Polynomial(degree=123456, gamma=0.01235)'
    """
    return _DECIMAL.sub(lambda match: _fewer_digits(match.group()), kernel)


def seeds_text(comparison: Comparison) -> str:
    """Return the number of seeds with its noun."""
    return f"{comparison.seeds} seed{'s' * (comparison.seeds != 1)}"


def title(comparison: Comparison) -> str:
    """Return what was compared, in one line."""
    rows, columns = comparison.data_shape
    return (
        f"{kernel_text(comparison.kernel)} on {rows} × {columns}: fitted on "
        f"{comparison.fit_rows} rows, measured on {comparison.measured_rows} others, median of "
        f"{seeds_text(comparison)}"
    )


def exact_line(comparison: Comparison) -> str:
    """Return what the exact kernel costs, in one line."""
    exact = comparison.exact
    return (
        f"The exact kernel of the measured rows takes {seconds_text(exact.seconds)} and "
        f"{bytes_text(exact.bytes)}."
    )


def note_lines(comparison: Comparison) -> list[str]:
    """Return which methods failed, and what the others warned of, a line each."""
    failures = [
        f"{measurement.method} with {measurement.n_components} components failed: "
        f"{measurement.error_message}"
        for measurement in comparison.measurements
        if measurement.failed
    ]
    sizes: dict[tuple[str, str], list[str]] = {}
    for measurement in comparison.successes:
        for warning in measurement.warnings:
            same = sizes.setdefault((measurement.method, warning), [])
            same.append(str(measurement.n_components))
    return failures + [
        f"{method} with {', '.join(same)} components warned: {warning}"
        for (method, warning), same in sizes.items()
    ]


@dataclass(frozen=True)
class TableRow:
    """The cells of one measurement, and whether it is the best of its size."""

    cells: tuple[str, ...]
    best: bool


def headings(comparison: Comparison) -> tuple[str, ...]:
    """Return the names of the table's columns; with a target, predictions come first."""
    if comparison.task is None:
        return _KERNEL_HEADINGS
    return (*_KERNEL_HEADINGS[:3], "prediction", *_KERNEL_HEADINGS[3:])


def table_rows(comparison: Comparison) -> list[TableRow]:
    """Return a row for every successful measurement, the most accurate first at every size."""
    with_target = comparison.task is not None

    def rank(each: Measurement) -> tuple[int, float, str]:
        error = each.prediction_error if with_target else each.frobenius
        return each.n_components, error, each.method

    rows = []
    size = 0
    for measurement in sorted(comparison.successes, key=rank):
        first = measurement.n_components != size
        rows.append(TableRow(_cells(measurement, with_target=with_target), first))
        size = measurement.n_components
    return rows


def text_table(comparison: Comparison) -> str:
    """Return title, table, notes and costs of the exact kernel as plain text."""
    names = headings(comparison)
    grid = [names, *(row.cells for row in table_rows(comparison))]
    widths = [max(len(cells[column]) for cells in grid) for column in range(len(names))]
    lines = [title(comparison), ""]
    for cells in grid:
        aligned = [
            cell.ljust(width) if heading in TEXT_HEADINGS else cell.rjust(width)
            for heading, cell, width in zip(names, cells, widths, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    return "\n".join([*lines, "", *remaining_lines(comparison)])


def html_table(comparison: Comparison) -> str:
    """Return the same as HTML, for notebooks, which bring their own style."""
    names = headings(comparison)
    rows = table_rows(comparison)
    return "\n".join(
        [
            f"<p>{escape(title(comparison))}</p>",
            "<table>",
            f"<thead>{_html_row('th', names)}</thead>",
            "<tbody>",
            *(_html_row("td", row.cells, bold=row.best) for row in rows),
            "</tbody>",
            "</table>",
            *(f"<p>{escape(line)}</p>" for line in remaining_lines(comparison)),
        ]
    )


def _html_row(tag: str, cells: Iterable[str], *, bold: bool = False) -> str:
    shown = (f"<strong>{escape(cell)}</strong>" if bold else escape(cell) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in shown)}</tr>"


def remaining_lines(comparison: Comparison) -> list[str]:
    """Return what is to be said besides the table, a line each."""
    lines = [*comparison.remarks, *note_lines(comparison), baseline_line(comparison)]
    lines.append(exact_line(comparison))
    if not comparison.complete:
        lines.append(INTERRUPTED)
    return [line for line in lines if line]


def baseline_line(comparison: Comparison) -> str:
    """Return what models without features come to, in one sentence; empty without a target."""
    if not comparison.baselines or comparison.task is None:
        return ""
    found = ", ".join(f"{number_text(each.error)} by {each.name}" for each in comparison.baselines)
    return f"On the columns themselves, the error of predictions is {found}."


def _cells(measurement: Measurement, *, with_target: bool) -> tuple[str, ...]:
    return (
        str(measurement.n_components),
        measurement.method,
        measurement.kind,
        *[number_text(measurement.prediction_error)] * with_target,
        spread_text(measurement.frobenius, measurement.frobenius_spread),
        number_text(measurement.operator_norm),
        _interval(measurement.spectral),
        seconds_text(measurement.fit_seconds),
        seconds_text(measurement.transform_seconds),
        seconds_text(measurement.seconds_per_row),
        bytes_text(measurement.memory_bytes),
    )


def _interval(ends: tuple[float, float] | None) -> str:
    return MISSING if ends is None else f"{number_text(ends[0])} … {number_text(ends[1])}"


def _fewer_digits(digits: str) -> str:
    rounded = f"{float(digits):.4g}"
    return rounded if len(rounded) < len(digits) and float(rounded) != float(digits) else digits
