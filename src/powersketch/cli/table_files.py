"""Tables from files, as data frames of pandas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas

from powersketch.exceptions import InputError

_TABLES = (".csv", ".tsv", ".parquet", ".feather")
_ROWS = (".npy", ".npz", ".svm", ".libsvm", ".svmlight", ".mtx")


def is_table(path: Path) -> bool:
    """Tell whether a file holds a table, by its name."""
    return path.suffix.lower() in _TABLES


def is_data(path: Path) -> bool:
    """Tell whether a file holds data, by its name."""
    return path.suffix.lower() in (*_TABLES, *_ROWS)


def read_table(path: Path, header: bool | None = None) -> Any:
    """Return the table of a file."""
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a table.")
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".feather"):
        return getattr(pandas, f"read_{suffix[1:]}")(path)
    separator = "\t" if suffix == ".tsv" else ","
    return pandas.read_csv(path, sep=separator, header=None if header is False else 0)


def table_blocks(path: Path, rows: int, header: bool | None = None) -> Iterator[Any]:
    """Yield the rows of a table, so many at a time."""
    table = read_table(path, header)
    for start in range(0, len(table), rows):
        yield table.iloc[start : start + rows]
