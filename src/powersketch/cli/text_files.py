"""Tables of numbers in text files whose cells are divided by commas, semicolons or tabs."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np

from powersketch.arrays import Rows
from powersketch.cli.columns import label, shortened, target_column
from powersketch.cli.csv_layout import Layout, Record, layout_of, records
from powersketch.cli.printing import print_note
from powersketch.cli.text_lines import finite_numbers, problem_of, refuse

_REMEDY = "remove or fill it, or leave its column out with --target."


def read_text(path: Path, target: str | None, header: bool | None = None) -> Rows:
    """Return the numbers of all rows, or refuse the file by line and column.

    Every row has as many cells as the header, and every cell outside the target's column is a
    finite number. Names of rows, which R and pandas write as a first column without a name, are
    left out with a note. Empty lines are no rows; among the rows of a single column they may stand
    for missing values, and are refused.
    """
    layout = layout_of(path, header)
    left_out = target_column(layout.names, layout.width, target)
    kept = [column for column in range(layout.width) if column != left_out]
    if layout.row_names and left_out != 0:
        kept.remove(0)
        print_note(
            f"the first column of {path.name} holds names of rows and is left out; name it in the "
            "header to keep it."
        )
    numbers, count = array("d"), 0
    for line, cells in _rows(path, layout):
        chosen = cells if len(kept) == layout.width else [cells[column] for column in kept]
        found = finite_numbers(chosen)
        if found is None:
            _refuse_cells(path, line, layout, cells, kept)
        numbers.extend(found)
        count += 1
    return np.array(numbers).reshape(count, len(kept))


def _rows(path: Path, layout: Layout) -> Iterator[Record]:
    """Yield the records below the header, all of the same width."""
    empty_line = None
    for line, cells in records(path, layout.delimiter, layout.skipped):
        if line == layout.header_line:
            continue
        if not cells:
            empty_line = empty_line or line
            continue
        if empty_line is not None and layout.width == 1:
            remedy = "remove the line, or write the missing value."
            refuse(path, empty_line, "it is empty between the rows of a single column", remedy)
        if len(cells) != layout.width:
            _refuse_width(path, line, layout, len(cells))
        yield line, cells


def _refuse_width(path: Path, line: int, layout: Layout, count: int) -> NoReturn:
    model = "the first row" if layout.header_line is None else f"line {layout.header_line}"
    refuse(
        path,
        line,
        f"it has {count} cell{'s' * (count != 1)} and {model} has {layout.width}",
        "allowed are rows of equal length: complete the line, or quote cells with delimiters.",
    )


def _refuse_cells(
    path: Path, line: int, layout: Layout, cells: list[str], kept: list[int]
) -> NoReturn:
    """Refuse a row for what it has in place of finite numbers."""
    bad = [column for column in kept if finite_numbers([cells[column]]) is None]
    if len(bad) == 1:
        column = bad[0]
        place = label(layout.names, column)
        refuse(path, line, problem_of(cells[column]), _REMEDY, column=place)
    names = [layout.names[column] if layout.names else str(column) for column in bad]
    refuse(
        path,
        line,
        f"it has no finite numbers in the columns {shortened(names)}",
        "encode or remove them, or leave one of them out with --target.",
    )
