"""Rows of numbers from files of many formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from powersketch.arrays import Rows, slices
from powersketch.cli.array_files import read_archive, read_array
from powersketch.cli.cells import column_label, target_column
from powersketch.cli.sparse_text import read_matrix_market, read_svmlight
from powersketch.cli.tables import read_parquet, read_text
from powersketch.exceptions import InputError
from powersketch.parameters import refuse_unless_default

_CHECKED_AT_ONCE = 2**20


def read_rows(path: Path, target: str | None = None, header: bool | None = None) -> Rows:
    """Return the rows of a file, without the target's column if there is one.

    Nothing is left out in silence: a file is read as a whole, or refused with the place of what
    cannot be read. The matrix has rows and columns, and all its entries are finite real numbers.

    Parameters
    ----------
    path : Path
        Its name tells the format: .npy, .npz, .csv, .tsv, .svm, .libsvm, .svmlight, .mtx or
        .parquet.
    target : str or None, default=None
        Name or number of a column to leave out; numbers begin at 0. The labels of the svmlight
        format are left out always, and no column of theirs is counted.
    header : bool or None, default=None
        Whether the first row of a .csv or .tsv file holds names. None finds out, and refuses files
        where it is not clear.

    Returns
    -------
    ndarray or sparse matrix of shape (n_samples, n_features)
        As the file has it.

    Raises
    ------
    InputError
        Where the format is unknown, or an entry is not a finite number.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a table of numbers.")
    suffix = path.suffix.lower()
    if suffix in _TABLES:
        rows = _TABLES[suffix](path, target, header)
    elif suffix in _READERS:
        refuse_unless_default("header", header, None, f"for {suffix} files, which have no such row")
        rows = _READERS[suffix](path, target)
    else:
        raise InputError(
            f"{path.name} has an unknown format; allowed are {', '.join([*_TABLES, *_READERS])}: "
            "convert it, for instance with numpy.save."
        )
    _check_matrix(path, rows)
    return rows


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say which file it is that a library cannot read, whatever the library raises."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path.name} cannot be read as {path.suffix}: {reason} Check the file and its name."
        ) from error


def _binary(read: Callable[[Path], Rows]) -> Callable[[Path], Rows]:
    """Return a reader whose every error names the file."""

    def read_named(path: Path) -> Rows:
        with _readable(path):
            return read(path)

    return read_named


def _matrix(read: Callable[[Path], Rows]) -> Callable[[Path, str | None], Rows]:
    """Return a reader of a format that knows no names of columns."""

    def read_without_target(path: Path, target: str | None) -> Rows:
        rows = read(path)
        if rows.ndim != 2:
            return rows
        column = target_column(None, rows.shape[1], target)
        return rows if column is None else _without_column(rows, column)

    return read_without_target


def _without_column(rows: Any, column: int) -> Rows:
    if not sparse.issparse(rows):
        return np.delete(rows, column, axis=1)
    # A list of the columns that stay would be longer than all entries of a wide matrix.
    entries = rows.tocoo()
    kept = entries.col != column
    columns = entries.col[kept] - (entries.col[kept] > column)
    shape = (rows.shape[0], rows.shape[1] - 1)
    return sparse.csr_array((entries.data[kept], (entries.row[kept], columns)), shape=shape)


def _read_parquet(path: Path, target: str | None) -> Rows:
    with _readable(path):
        return read_parquet(path, target)


def _check_matrix(path: Path, rows: Any) -> None:
    """Refuse what is no matrix, has no entries, or has one that is not finite."""
    if rows.ndim != 2:
        raise InputError(
            f"{path.name} holds an array with {rows.ndim} dimensions; allowed are 2, rows and "
            "columns: reshape it."
        )
    if 0 in rows.shape:
        raise InputError(
            f"{path.name} has {rows.shape[0]} rows and {rows.shape[1]} columns to use; at least "
            "one of each is needed."
        )
    place = _first_not_finite(rows)
    if place is not None:
        row, column = place
        raise InputError(
            f"{path.name}, row {row + 1}, {column_label(None, column)}: NaN or infinity is not "
            "finite; remove the row, or fill the entry."
        )


def _first_not_finite(rows: Any) -> tuple[int, int] | None:
    """Return row and column of the first entry that is not finite, if there is one."""
    if sparse.issparse(rows):
        entries = rows.tocoo()
        bad = np.flatnonzero(~np.isfinite(entries.data))
        return (int(entries.row[bad[0]]), int(entries.col[bad[0]])) if bad.size else None
    for block in slices(rows.shape[0], max(1, _CHECKED_AT_ONCE // rows.shape[1])):
        with np.errstate(over="ignore"):
            # Numbers that are too large for float64 will be infinite, too.
            part = rows[block].astype(np.float64, copy=False)
        places = np.argwhere(~np.isfinite(part))
        if places.size:
            return block.start + int(places[0, 0]), int(places[0, 1])
    return None


_TABLES: dict[str, Callable[[Path, str | None, bool | None], Rows]] = {
    ".csv": read_text,
    ".tsv": read_text,
}
_READERS: dict[str, Callable[[Path, str | None], Rows]] = {
    ".npy": _matrix(_binary(read_array)),
    ".npz": _matrix(_binary(read_archive)),
    ".svm": _matrix(read_svmlight),
    ".libsvm": _matrix(read_svmlight),
    ".svmlight": _matrix(read_svmlight),
    ".mtx": _matrix(read_matrix_market),
    ".parquet": _read_parquet,
}
