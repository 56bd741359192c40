"""Tables in text, .csv and .tsv, whose layout is detected; lines, numbers and columns of any text.

All is read strictly: what is unclear is refused by its place.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import NoReturn

import numpy as np

from powersketch.arrays import Float64
from powersketch.exceptions import InputError

Record = tuple[int, list[str]]

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# What often stands for a value that is not there.
_MISSING = {"", "NA", "N/A", "null", "NULL", "None", "?", "-", "."}
_REMEDY = "remove or fill it, or leave its column out with --target."
_DECIMAL = re.compile(r"\s*[+-]?\d+([.,])\d+([eE][+-]?\d+)?\s*$")
# How many records tell points from commas in numbers.
_LOOKED_AT = 1000
_MOST_LETTERS = 40
_MOST_NAMES = 10
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
    decimal : str
        What stands before decimal places.
    """

    delimiter: str
    skipped: int
    header_line: int | None
    names: list[str] | None
    width: int
    row_names: bool
    decimal: str = "."


def layout_of(path: Path, header: bool | None) -> Layout:
    """Return the layout, or say what about the first lines is unclear.

    Lines before the first record that are empty or begin with # are skipped. The first record is
    a header where none of its cells is a number; `header` decides where that is not so.
    """
    skipped = _skipped_lines(path)
    delimiter = _delimiter(path, skipped)
    filled = _first_records(path, delimiter, skipped)
    if not filled:
        raise InputError(f"{path.name} has no rows; give a table of numbers with at least one.")
    first, *following = filled
    _check_comments(path, delimiter, skipped, len(first[1]))
    if header is None:
        header = _is_header(path, first, following)
    decimal = _decimal(path, delimiter, skipped)
    if not header:
        return Layout(delimiter, skipped, None, None, len(first[1]), False, decimal)
    named = Layout(delimiter, skipped, first[0], None, 0, False, decimal)
    return _with_names(path, named, first, following)


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
        names = " and ".join(_DELIMITERS[sign] for sign in alike)
        remedy = "divide cells by one of them only, and write decimal points, not commas."
        refuse(path, skipped + 1, f"it has both {names}", remedy)
    return (alike or used or [","])[0]


def _decimal(path: Path, delimiter: str, skipped: int) -> str:
    """Return a comma if the first numbers have decimal commas and none has a point."""
    if delimiter == ",":
        return "."
    first = islice(records(path, delimiter, skipped), _LOOKED_AT)
    signs = {found[1] for _, cells in first for cell in cells if (found := _DECIMAL.match(cell))}
    return "," if signs == {","} else "."


def _widths(path: Path, delimiter: str, skipped: int) -> tuple[int, int]:
    """Return the numbers of cells of the first two records; of one alone, its number twice."""
    try:
        widths = [len(cells) for _, cells in _first_records(path, delimiter, skipped)] or [0]
    except InputError:
        # Quotes do not fit this delimiter. If they fit none, the file is refused when it is read.
        return 0, 0
    return widths[0], widths[-1]


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
    return replace(layout, names=names, width=len(names), row_names=row_names)


class TextRows:
    """The numbers of a table in text, read strictly: refused by line and column, or read right.

    Every row has as many cells as the header, and every cell outside the target's column is a
    finite number. Names of rows, which R and pandas write as a first column without a name, are
    left out with a note. Empty lines are no rows; among the rows of a single column they may stand
    for missing values, and are refused.
    """

    def __init__(self, path: Path, target: str | None, header: bool | None = None) -> None:
        self._path, self._layout = path, layout_of(path, header)
        left_out = target_column(self._layout.names, self._layout.width, target)
        self._kept = [column for column in range(self._layout.width) if column != left_out]
        if self._layout.row_names and left_out != 0:
            self._kept.remove(0)
            note_row_names(path)

    @property
    def names(self) -> list[str] | None:
        """The names of the columns that are read."""
        names = self._layout.names
        return None if names is None else [names[column] for column in self._kept]

    @property
    def width(self) -> int:
        """The number of columns that are read."""
        return len(self._kept)

    def blocks(self, rows: int | None) -> Iterator[Float64]:
        """Yield so many rows at a time, all of them for None; the last block may be shorter."""
        numbers, count = array("d"), 0
        for line, cells in _rows(self._path, self._layout):
            every = len(self._kept) == self._layout.width
            values = finite_numbers(cells if every else [cells[column] for column in self._kept])
            if values is None:
                _refuse_cells(self._path, line, self._layout, cells, self._kept)
            numbers.extend(values)
            count += 1
            if count == rows:
                yield np.array(numbers).reshape(count, self.width)
                numbers, count = array("d"), 0
        if count or rows is None:
            yield np.array(numbers).reshape(count, self.width)


def note_row_names(path: Path) -> None:
    """Say that a column is not read."""
    sys.stderr.write(
        f"note: the first column of {path.name} holds names of rows and is left out; name it "
        "in the header to keep it.\n"
    )


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
            refuse_width(path, line, layout, len(cells))
        yield line, cells if layout.decimal == "." else [_with_point(cell) for cell in cells]


def _with_point(cell: str) -> str:
    """Return a number with a decimal point in place of its comma, and other texts as they are."""
    return cell.replace(",", ".") if _DECIMAL.match(cell) else cell


def refuse_width(path: Path, line: int, layout: Layout, count: int) -> NoReturn:
    """Refuse a row that has another number of cells than the first line."""
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
        place = column_label(layout.names, column)
        refuse(path, line, problem_of(cells[column]), _REMEDY, column=place)
    names = [layout.names[column] if layout.names else str(column) for column in bad]
    refuse(
        path,
        line,
        f"it has no finite numbers in the columns {shortened(names)}",
        "encode or remove them, or leave one of them out with --target.",
    )


def text_lines(path: Path, skipped: int = 0) -> Iterator[str]:
    """Yield the lines of a file after the skipped ones, with their ends as they are.

    A byte order mark at the beginning is not part of the first line.
    """
    # Bytes that are not UTF-8 become surrogates, so that their line can be named.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        for number, line in enumerate(islice(lines, skipped, None), skipped + 1):
            if not line.isascii() and any("\ud800" <= sign <= "\udfff" for sign in line):
                refuse(
                    path,
                    number,
                    "it is not a text in UTF-8",
                    "convert the file, or give its encoding, such as cp1252.",
                )
            yield line


def refuse(path: Path, line: int, what: str, remedy: str, *, column: str = "") -> NoReturn:
    """Refuse a file for what one of its lines, counted from 1, has or is."""
    place = f"{path.name}, line {line}{', ' * bool(column)}{column}"
    raise InputError(f"{place}: {what}; {remedy}")


def finite_numbers(texts: Sequence[str]) -> list[float] | None:
    """Return what the texts are as numbers, or None if one is no finite number.

    Python also reads 1_000 and digits of other scripts; other programs do not, so that such a
    text is probably a slip.
    """
    joined = "".join(texts)
    if not joined.isascii() or "_" in joined:
        return None
    try:
        numbers = [*map(float, texts)]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def is_number(text: str) -> bool:
    """Tell whether a text is a number; NaN and infinity are."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def whole_number(text: str) -> int | None:
    """Return what decimal digits stand for, and None for any other text or more than 18 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def whole_numbers(texts: Sequence[str]) -> list[int] | None:
    """Return what the texts are as whole numbers, or None if one is none."""
    joined = "".join(texts)
    if not (joined.isascii() and joined.isdecimal() and all(texts) and max(map(len, texts)) <= 18):
        return None
    return [*map(int, texts)]


def problem_of(text: str) -> str:
    """Return what is wrong with a text that stands where a finite number is needed."""
    if not text.strip():
        return "the entry is empty"
    shown = repr(text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…")
    return f"{shown} is {'not finite' if is_number(text) else 'no number'}"


def target_column(names: Sequence[str] | None, count: int, target: str | None) -> int | None:
    """Return the number of the target's column, which is given by its name or by its number.

    A name comes first: a column that is called 3 is meant, not column number 3.
    """
    if target is None:
        return None
    if names is not None and target in names:
        _check_unique(names, target)
        return list(names).index(target)
    if _is_column_number(target, count):
        return int(target) % count
    known = shortened(names) if names is not None else "without names"
    raise InputError(
        f"there is no column {target!r}; the columns are {known}: name one of them, or give a "
        f"number from 0 to {count - 1}."
    )


def column_label(names: Sequence[str] | None, column: int) -> str:
    """Return what a column is called in messages."""
    numbered = f"column number {column} (the first is 0)"
    return numbered if names is None or not names[column] else f"column {names[column]!r}"


def shortened(names: Sequence[str]) -> str:
    """Return the names in one line, only the first few of many."""
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown}, … ({len(names)} in all)"


def _check_unique(names: Sequence[str], target: str) -> None:
    same = [number for number, name in enumerate(names) if name == target]
    if len(same) > 1:
        raise InputError(
            f"{len(same)} columns are called {target!r}, numbers {', '.join(map(str, same))}: give "
            "the number of one of them."
        )


def _is_column_number(text: str, count: int) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) <= 18 and -count <= int(text) < count
