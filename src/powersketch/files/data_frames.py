"""Tables of mixed columns from CSV, TSV, Parquet and Feather files, whole or by blocks of rows.

pandas reads text. What it would pass over in silence is looked for before: lines of the wrong
length, bytes that are no text, names that occur twice.
"""

from __future__ import annotations

import codecs
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from powersketch.exceptions import InputError
from powersketch.files.column_files import FEATHER, ColumnFile
from powersketch.files.rows import errors_that_name
from powersketch.files.text_tables import (
    Layout,
    layout_of,
    note_row_names,
    records,
    refuse,
    refuse_width,
    shortened,
    text_lines,
)

_TEXTS = (".csv", ".tsv")
_FORMATS = (*_TEXTS, ".parquet", *FEATHER)
_WIDE = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_COPIED_AT_ONCE = 1 << 20


def is_table(path: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a file holds a table, whose columns may be of any type."""
    return Path(path).suffix.lower() in _FORMATS


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    encoding: str | None = None,
) -> Any:
    """Return a table as a data frame of pandas; every column has the type that its cells have.

    Lines before the first row that are empty or begin with # are skipped, and so are such lines
    further down that have another number of cells. Cells are divided by commas, semicolons or
    tabs, which is found out; beside semicolons and tabs, numbers may have decimal commas, if none
    has a point. Names of rows, a first column without a name, are left out with a
    note.

    Parameters
    ----------
    path : str or path
        A .csv, .tsv, .parquet, .feather or .arrow file.
    columns : list of str or None, default=None
        The columns to read; None reads all.
    header : bool or None, default=None
        Whether the first row of a .csv or .tsv file holds names; None finds out, and refuses files
        where it is not clear. Columns without names are called "0", "1", ….
    encoding : str or None, default=None
        How a text is encoded, for instance "cp1252"; None is UTF-8, or UTF-16 with a mark.

    Returns
    -------
    pandas.DataFrame
        At least one row.

    Raises
    ------
    InputError
        With the line and what is wrong with it.
    """
    return next(table_blocks(path, None, columns=columns, header=header, encoding=encoding))


def reading_code(
    path: str | os.PathLike[str], *, header: bool | None = None, encoding: str | None = None
) -> str:
    """Return the expression by which pandas reads the same table, for people to paste."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _TEXTS:
        return f"pandas.read_{'parquet' if suffix == '.parquet' else 'feather'}({path.name!r})"
    with _in_utf8(path, encoding) as text:
        layout = layout_of(text, header)
    options = {
        "sep": (layout.delimiter, ","),
        "decimal": (layout.decimal, "."),
        "skiprows": (layout.skipped, 0),
        "encoding": (encoding, None),
        "header": (None if layout.names is None else "infer", "infer"),
    }
    unusual = [f", {name}={value!r}" for name, (value, usual) in options.items() if value != usual]
    named = ".rename(columns=str)" if layout.names is None else ""
    return f"pandas.read_csv({path.name!r}{''.join(unusual)}){named}"


def table_blocks(
    path: str | os.PathLike[str],
    rows: int | None,
    *,
    columns: Sequence[str] | None = None,
    header: bool | None = None,
    encoding: str | None = None,
) -> Iterator[Any]:
    """Yield data frames of so many rows, the last one may be shorter; None is one of all rows.

    What is wrong with a file is said before the first one. The other parameters are those of
    :func:`read_table`.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a table.")
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise InputError(
            f"{path.name} has an unknown format; allowed are {', '.join(_FORMATS)}: convert it, "
            "for instance to .csv."
        )
    if suffix in _TEXTS:
        with _in_utf8(path, encoding) as text:
            yield from _text_blocks(text, rows, columns, header)
        return
    with errors_that_name(path):
        yield from _column_blocks(path, rows, columns)


def _column_blocks(path: Path, rows: int | None, columns: Sequence[str] | None) -> Iterator[Any]:
    file = ColumnFile(path)
    _check_names(path, file.names, columns)
    if not file.count:
        raise InputError(f"{path.name} has no rows; give a table with at least one.")
    wanted = None if columns is None else [*columns]
    for table in file.batches(rows or file.count, wanted):
        yield table.to_pandas(date_as_object=False, ignore_metadata=True)


def _text_blocks(
    path: Path, rows: int | None, columns: Sequence[str] | None, header: bool | None
) -> Iterator[Any]:
    pandas = _pandas(path)
    layout = layout_of(path, header)
    names = layout.names or [str(number) for number in range(layout.width)]
    used = names[1:] if layout.row_names else names
    _check_names(path, used, columns)
    skipped = _skipped_lines(path, layout)
    if layout.row_names:
        note_row_names(path)
    reader = pandas.read_csv(
        _RowLines(path, skipped),
        sep=layout.delimiter,
        decimal=layout.decimal,
        header=None,
        # The first name may be that of row names, which is empty; no two columns have one name.
        names=["\0", *used] if layout.row_names else used,
        usecols=[*(used if columns is None else columns)],
        skipinitialspace=True,
        low_memory=False,
        # Without it, one row would be read at a time by none.
        iterator=True,
    )
    with reader:
        while True:
            try:
                frame = reader.read(rows)
            except StopIteration:
                return
            if not len(frame):
                return
            yield frame if columns is None else frame[[*columns]]
            if rows is None:
                return


class _RowLines:
    """The lines of a file that are rows, as pandas reads from a file.

    Its own way to skip lines counts those inside quotes differently, also in comments.
    """

    def __init__(self, path: Path, skipped: set[int]) -> None:
        numbered = enumerate(text_lines(path))
        self._lines = (line for number, line in numbered if number not in skipped)

    def __iter__(self) -> Iterator[str]:
        return self._lines

    def read(self, size: int = -1) -> str:
        """Return whole lines, about so many letters of them; all for −1."""
        parts, length = [], 0
        for line in self._lines:
            parts.append(line)
            length += len(line)
            if 0 <= size <= length:
                break
        return "".join(parts)


def _skipped_lines(path: Path, layout: Layout) -> set[int]:
    """Return the numbers, from 0, of lines that are no rows; refuse rows of the wrong length."""
    skipped = {*range(layout.skipped)}
    count = 0
    for line, cells in records(path, layout.delimiter, layout.skipped):
        if line == layout.header_line:
            # A name may go on in the next line.
            skipped.update(range(line - 1, line + sum(cell.count("\n") for cell in cells)))
            continue
        if not cells:
            skipped.add(line - 1)
            continue
        if len(cells) != layout.width:
            if not cells[0].startswith("#"):
                refuse_width(path, line, layout, len(cells))
            skipped.add(line - 1)
            continue
        count += 1
    if not count:
        raise InputError(f"{path.name} has no rows; give a table with at least one.")
    return skipped


def _check_names(path: Path, names: Sequence[str], columns: Sequence[str] | None) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{path.name} has several columns that are called {twice[0]!r}; allowed are different "
            "names: rename them."
        )
    missing = [name for name in columns or () if name not in names]
    if missing:
        raise InputError(
            f"{path.name} has no column {missing[0]!r}; its columns are {shortened(names)}: name "
            "one of them."
        )


@contextmanager
def _in_utf8(path: Path, encoding: str | None) -> Iterator[Path]:
    """Give a file of this text in UTF-8: itself, or a copy under the same name."""
    if encoding is None:
        with path.open("rb") as stream:
            encoding = _WIDE.get(stream.read(2))
    if encoding is None:
        yield path
        return
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise InputError(
            f"encoding={encoding!r} is unknown; use for instance 'utf-8', 'utf-16' or 'cp1252'."
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        try:
            with (
                path.open(encoding=encoding, newline="") as source,
                copy.open("w", encoding="utf-8", newline="") as target,
            ):
                while part := source.read(_COPIED_AT_ONCE):
                    target.write(part)
        except UnicodeError as error:
            line = copy.read_bytes().count(b"\n") + 1
            what = f"it or a line near it is not a text in {encoding} ({error})"
            refuse(path, line, what, "give another encoding.")
        yield copy


def _pandas(path: Path) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise InputError(
            f"{path.name} needs pandas, which is not installed: pip install 'powersketch[io]'."
        ) from error
    return pandas
