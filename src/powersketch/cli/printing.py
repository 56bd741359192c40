"""A comparison on the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from powersketch.comparison import (
    HEADINGS,
    INTERRUPTED,
    TEXT_HEADINGS,
    exact_line,
    failure_lines,
    table_rows,
    title,
)
from powersketch.exceptions import InputError

if TYPE_CHECKING:
    from powersketch.comparison import Comparison

# A file or a pipe has no width that a table has to fit.
_WIDEST = 1000
# What narrow terminals do without, in this order.
_LEAST_NEEDED = ("transform", "kind", "fit", "pencil", "memory", "operator")


def print_note(text: str) -> None:
    """Tell the user what was decided, beside the results."""
    sys.stderr.write(f"note: {text}\n")


def print_comparison(comparison: Comparison) -> None:
    """Print the table, what failed, and the best method within the budget."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDEST)
    table, left_out = _fitting_table(comparison, console)
    console.print(title(comparison), highlight=False, markup=False, soft_wrap=True)
    console.print(table)
    lines = [*failure_lines(comparison), exact_line(comparison), _best_line(comparison)]
    if left_out:
        lines.insert(0, f"Not shown for want of room: {', '.join(left_out)}.")
    if not comparison.complete:
        lines.append(INTERRUPTED)
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _fitting_table(comparison: Comparison, console: Console) -> tuple[Table, tuple[str, ...]]:
    """Return a table with as many columns as there is room for, and the names of the others."""
    unlimited = console.options.update(width=_WIDEST)
    for count in range(len(_LEAST_NEEDED) + 1):
        left_out = _LEAST_NEEDED[:count]
        table = _table(comparison, left_out)
        if Measurement.get(console, unlimited, table).maximum <= console.width:
            break
    return table, left_out


def _table(comparison: Comparison, left_out: tuple[str, ...]) -> Table:
    table = Table()
    shown = [number for number, heading in enumerate(HEADINGS) if heading not in left_out]
    for number in shown:
        text = HEADINGS[number] in TEXT_HEADINGS
        table.add_column(HEADINGS[number], justify="left" if text else "right", no_wrap=True)
    for position, row in enumerate(table_rows(comparison)):
        if row.best and position:
            table.add_section()
        cells = [row.cells[number] for number in shown]
        table.add_row(*cells, style="bold" if row.best else None)
    return table


def _best_line(comparison: Comparison) -> str:
    try:
        return f"Best: {comparison.best().reason}"
    except InputError as error:
        return f"Best: {error}"
