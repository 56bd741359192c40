"""Comparisons as text for people: numbers with few digits, units, tables and notes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powersketch.comparison.results import Comparison, Measurement

MISSING = "–"
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
# These columns hold text; all others hold numbers, which are aligned on the right.
TEXT_HEADINGS = ("method", "kind")
INTERRUPTED = "The comparison was interrupted: some measurements are missing."

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_AMOUNTS = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
# Whole numbers are degrees, depths and sizes, which are not rounded.
_DECIMAL = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(number: float) -> str:
    """Return a number with three significant digits.

    Examples
    --------
    >>> from powersketch.comparison.text import number_text
    >>> [number_text(number) for number in (0.012345, 1.0, 1234567.0, -2e-9)]
    ['0.0123', '1', '1.23 × 10⁶', '−2 × 10⁻⁹']
    """
    if math.isnan(number):
        return MISSING
    sign = "−" if number < 0.0 else ""
    size = abs(number)
    if math.isinf(size):
        return f"{sign}∞"
    if size == 0.0:
        return "0"
    digits, exponent = f"{size:.2e}".split("e")
    if not -4 <= int(exponent) <= 5:
        return f"{sign}{_without_zeros(digits)} × {_power_of_ten(int(exponent))}"
    rounded = float(f"{digits}e{exponent}")
    return sign + _without_zeros(f"{rounded:.{max(0, 2 - int(exponent))}f}")


def spread_text(number: float, spread: float) -> str:
    """Return a number and how far it spreads, in the same unit as the number.

    Examples
    --------
    >>> from powersketch.comparison.text import spread_text
    >>> spread_text(0.25, 0.0512), spread_text(0.25, 0.0)
    ('0.25 ± 0.051', '0.25')
    """
    if not (math.isfinite(spread) and spread > 0.0):
        return number_text(number)
    return f"{number_text(number)} ± {number_text(float(f'{spread:.1e}'))}"


def tick_text(number: float) -> str:
    """Return a round number in the few letters that fit beside an axis.

    Examples
    --------
    >>> from powersketch.comparison.text import tick_text
    >>> [tick_text(number) for number in (0.001, 50.0, 1e-5, 2e7)]
    ['0.001', '50', '10⁻⁵', '2·10⁷']
    """
    if 1e-3 <= number < 1e5:
        return number_text(number)
    digits, exponent = f"{number:.0e}".split("e")
    power = _power_of_ten(int(exponent))
    return power if digits == "1" else f"{digits}·{power}"


def seconds_text(seconds: float) -> str:
    """Return a time with three digits.

    Examples
    --------
    >>> from powersketch.comparison.text import seconds_text
    >>> [seconds_text(seconds) for seconds in (0.01234, 75.0, 1234.0)]
    ['12.3 ms', '75 s', '1234 s']
    """
    return _with_unit(seconds, _TIMES)


def bytes_text(amount: float) -> str:
    """Return an amount of memory with three digits.

    Examples
    --------
    >>> from powersketch.comparison.text import bytes_text
    >>> [bytes_text(amount) for amount in (0, 1000, 5 * 2**20)]
    ['0 B', '1000 B', '5 MiB']
    """
    return _with_unit(amount, _AMOUNTS)


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


def table_rows(comparison: Comparison) -> list[TableRow]:
    """Return a row for every successful measurement, the most accurate first at every size."""
    ranked = sorted(
        comparison.successes, key=lambda each: (each.n_components, each.frobenius, each.method)
    )
    rows = []
    size = 0
    for measurement in ranked:
        rows.append(TableRow(_cells(measurement), measurement.n_components != size))
        size = measurement.n_components
    return rows


def text_table(comparison: Comparison) -> str:
    """Return title, table, notes and costs of the exact kernel as plain text."""
    grid = [HEADINGS, *(row.cells for row in table_rows(comparison))]
    widths = [max(len(cells[column]) for cells in grid) for column in range(len(HEADINGS))]
    lines = [title(comparison), ""]
    for cells in grid:
        aligned = [
            cell.ljust(width) if heading in TEXT_HEADINGS else cell.rjust(width)
            for heading, cell, width in zip(HEADINGS, cells, widths, strict=True)
        ]
        lines.append("  ".join(aligned).rstrip())
    lines += ["", *note_lines(comparison), exact_line(comparison)]
    if not comparison.complete:
        lines.append(INTERRUPTED)
    return "\n".join(lines)


def _cells(measurement: Measurement) -> tuple[str, ...]:
    return (
        str(measurement.n_components),
        measurement.method,
        measurement.kind,
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


def _with_unit(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return MISSING
    size, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    shown = value / size
    return f"{shown:.0f} {unit}" if shown >= 100 else f"{shown:.3g} {unit}"


def _fewer_digits(digits: str) -> str:
    rounded = f"{float(digits):.4g}"
    return rounded if len(rounded) < len(digits) and float(rounded) != float(digits) else digits


def _power_of_ten(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def _without_zeros(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
