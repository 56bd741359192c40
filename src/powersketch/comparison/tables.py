"""A comparison as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from powersketch.comparison.page_numbers import MISSING, readable, with_short_numbers, with_spread
from powersketch.comparison.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from powersketch.comparison.results import Comparison, Measurement

HEADINGS = (
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
# These hold texts; all others hold numbers, which are aligned at their right.
TEXT_HEADINGS = ("method", "kind")
INTERRUPTED = "The comparison was interrupted: some measurements are missing."


@dataclass(frozen=True)
class TableRow:
    """The cells of one measurement, and whether it is the best of its size."""

    cells: tuple[str, ...]
    best: bool


def table_rows(comparison: Comparison) -> list[TableRow]:
    """Return a row for every measurement that worked, the most accurate first at every size."""
    working = [found for found in comparison.measurements if not found.failed]
    working.sort(key=lambda found: (found.n_components, found.frobenius, found.method))
    rows = []
    size = 0
    for found in working:
        rows.append(TableRow(_cells(found), found.n_components != size))
        size = found.n_components
    return rows


def failure_lines(comparison: Comparison) -> list[str]:
    """Return what went wrong, a line each."""
    return [
        f"{found.method} with {found.n_components} components failed: {found.error_message}"
        for found in comparison.measurements
        if found.failed
    ]


def kernel_text(comparison: Comparison) -> str:
    """Return the kernel for people; all digits are in ``Comparison.kernel``."""
    return with_short_numbers(comparison.kernel)


def title(comparison: Comparison) -> str:
    """Return what was compared, in one line."""
    rows, columns = comparison.data_shape
    seeds = f"{comparison.seeds} seed{'s' * (comparison.seeds > 1)}"
    return (
        f"{kernel_text(comparison)} on {rows} × {columns}: fitted on {comparison.fit_rows} rows, "
        f"measured on {comparison.measured_rows} others, median of {seeds}"
    )


def exact_line(comparison: Comparison) -> str:
    """Return what the exact kernel costs, in one line."""
    exact = comparison.exact
    return (
        f"The exact kernel of the measured rows takes {seconds_text(exact.seconds)} and "
        f"{bytes_text(exact.bytes)}."
    )


def text_table(comparison: Comparison) -> str:
    """Return title, table, failures and costs of the exact kernel as plain text."""
    grid = [HEADINGS, *(row.cells for row in table_rows(comparison))]
    widths = [max(len(cells[column]) for cells in grid) for column in range(len(HEADINGS))]
    lines = [title(comparison), ""]
    for cells in grid:
        aligned = [
            cell.ljust(width) if heading in TEXT_HEADINGS else cell.rjust(width)
            for heading, cell, width in zip(HEADINGS, cells, widths, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    lines += ["", *failure_lines(comparison), exact_line(comparison)]
    if not comparison.complete:
        lines.append(INTERRUPTED)
    return "\n".join(lines)


def _cells(found: Measurement) -> tuple[str, ...]:
    return (
        str(found.n_components),
        found.method,
        found.kind,
        with_spread(found.frobenius, found.frobenius_spread),
        readable(found.operator_norm),
        _interval(found.spectral),
        seconds_text(found.fit_seconds),
        seconds_text(found.transform_seconds),
        seconds_text(found.seconds_per_row),
        bytes_text(found.memory_bytes),
    )


def _interval(ends: tuple[float, float] | None) -> str:
    return MISSING if ends is None else f"{readable(ends[0])} … {readable(ends[1])}"
