"""How a table of text is laid out: its delimiter, its header, its row names."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path

from powersketch.cli.text_lines import is_number, refuse, text_lines
from powersketch.exceptions import InputError

Record = tuple[int, list[str]]

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# What often stands for a value that is not there.
_MISSING = {"", "NA", "N/A", "null", "NULL", "None", "?", "-", "."}
_SAY_SO = "say --header if it holds names, or --no-header if it is a row."


@dataclass(frozen=True)
class Layout:
    """How a table is to be read.

    Parameters
    ----------
    delimiter : str
        What stands between cells.
    skipped : int
        How many lines come before the first record.
    header_line : int or None
        The line of the header, if there is one.
    names : list of str or None
        The names of all columns; that of row names is empty.
    width : int
        The number of cells of every row.
    row_names : bool
        Whether the first column holds names of rows: R and pandas leave its name empty, or out.
    """

    delimiter: str
    skipped: int
    header_line: int | None
    names: list[str] | None
    width: int
    row_names: bool


def layout_of(path: Path, header: bool | None) -> Layout:
    """Return the layout, or say what about the first lines is unclear.

    Lines before the first record that are empty or begin with # are skipped. The first record is
    a header where none of its cells is a number; `header` decides where that is not so.
    """
    skipped = _skipped_lines(path)
    delimiter = _delimiter(path, skipped)
    found = _first_records(path, delimiter, skipped)
    if not found:
        raise InputError(f"{path.name} has no rows; give a table of numbers with at least one.")
    first, *following = found
    _check_comments(path, delimiter, skipped, len(first[1]))
    if header is None:
        header = _is_header(path, first, following)
    if not header:
        return Layout(delimiter, skipped, None, None, len(first[1]), False)
    return _with_names(path, Layout(delimiter, skipped, first[0], None, 0, False), first, following)


def records(path: Path, delimiter: str, skipped: int) -> Iterator[Record]:
    """Yield the number of the first line and the cells of every record; an empty line has none."""
    lines = (line if line.strip(" \r\n") else "\n" for line in text_lines(path, skipped))
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=True)
    while True:
        start = skipped + reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            refuse(path, start, f"{error}", "check quotes and delimiters.")
        if cells is None:
            return
        yield start, cells


def _first_records(path: Path, delimiter: str, skipped: int) -> list[Record]:
    filled = (record for record in records(path, delimiter, skipped) if record[1])
    return [*islice(filled, 2)]


def _skipped_lines(path: Path) -> int:
    count = 0
    for line in text_lines(path):
        if line.strip(" \r\n") and not line.startswith("#"):
            break
        count += 1
    return count


def _check_comments(path: Path, delimiter: str, skipped: int, width: int) -> None:
    """Refuse a first comment that might be a row: as many cells, and a number among them."""
    for number, line in enumerate(islice(text_lines(path), skipped), 1):
        cells = line.removeprefix("#").split(delimiter)
        if line.startswith("#") and len(cells) == width and any(map(is_number, cells)):
            remedy = "remove the # if it is a row, or the line if it is none."
            refuse(path, number, "it begins with # and looks like a row", remedy)


def _delimiter(path: Path, skipped: int) -> str:
    """Return the delimiter that divides the first two records alike."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    widths = {sign: _widths(path, sign, skipped) for sign in _DELIMITERS}
    used = [sign for sign, (first, _) in widths.items() if first > 1]
    alike = [sign for sign in used if widths[sign][1] - widths[sign][0] in (0, 1)]
    if len(alike) > 1:
        found = " and ".join(_DELIMITERS[sign] for sign in alike)
        remedy = "divide cells by one of them only, and write decimal points, not commas."
        refuse(path, skipped + 1, f"it has both {found}", remedy)
    return (alike or used or [","])[0]


def _widths(path: Path, delimiter: str, skipped: int) -> tuple[int, int]:
    """Return the numbers of cells of the first two records; of one alone, its number twice."""
    try:
        found = [len(cells) for _, cells in _first_records(path, delimiter, skipped)] or [0]
    except InputError:
        # Quotes do not fit this delimiter. If they fit none, the file is refused when it is read.
        return 0, 0
    return found[0], found[-1]


def _is_header(path: Path, first: Record, following: Sequence[Record]) -> bool:
    line, cells = first
    numeric = [is_number(cell) for cell in cells]
    if all(numeric):
        if len(cells) > 1 and _counted(cells):
            refuse(path, line, "it counts from 0, as a header may", _SAY_SO)
        return False
    if len(cells) > 1 and not cells[0].strip() and (_counted(cells[1:]) or not any(numeric)):
        # The first cell stands above row names, and the others count columns or name them.
        cells = cells[1:]
    elif any(numeric):
        return _mixed_header(path, first, following)
    for cell in cells:
        if cell.strip() in _MISSING:
            refuse(path, line, f"{cell!r} is a name or a missing value", _SAY_SO)
    return True


def _mixed_header(path: Path, first: Record, following: Sequence[Record]) -> bool:
    """Tell whether texts among numbers are entries: the next record then has texts there, too."""
    line, cells = first
    below = following[0][1] if following else []
    for cell, under in zip_longest(cells, below[: len(cells)], fillvalue=""):
        if not is_number(cell) and (is_number(under) or not under.strip()):
            refuse(path, line, f"it has numbers and also {cell!r}, which is none", _SAY_SO)
    return False


def _counted(cells: Sequence[str]) -> bool:
    return [cell.strip() for cell in cells] == [str(number) for number in range(len(cells))]


def _with_names(path: Path, layout: Layout, first: Record, following: Sequence[Record]) -> Layout:
    names = [cell.strip() for cell in first[1]]
    line, cells = following[0] if following else (first[0] + 1, [])
    if len(cells) == len(names) + 1 and names[0]:
        if not cells[-1].strip():
            remedy = "remove what follows the last cell."
            refuse(path, line, "it ends with a delimiter, and the header does not", remedy)
        names = ["", *names]
    row_names = len(names) > 1 and not names[0] and all(names[1:])
    return Layout(
        layout.delimiter, layout.skipped, layout.header_line, names, len(names), row_names
    )
