"""Rows of numbers from files of many formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from powersketch.arrays import Rows, slices
from powersketch.exceptions import InputError
from powersketch.files.array_files import read_archive, read_array, read_parquet
from powersketch.files.sparse_text import read_matrix_market, read_svmlight
from powersketch.files.text_tables import column_label, read_text, target_column
from powersketch.parameters import refuse_unless_default

_CHECKED_AT_ONCE = 2**20
_TEXT_TABLES = (".csv", ".tsv")
# Formats that know no names of columns.
_MATRICES: dict[str, Callable[[Path], Rows]] = {
    ".npy": read_array,
    ".npz": read_archive,
    ".svm": read_svmlight,
    ".libsvm": read_svmlight,
    ".svmlight": read_svmlight,
    ".mtx": read_matrix_market,
}
_FORMATS = (*_TEXT_TABLES, *_MATRICES, ".parquet")
_BINARY = (".npy", ".npz", ".parquet")


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
        format are always left out, and do not count as a column.
    header : bool or None, default=None
        Whether the first row of a .csv or .tsv file holds names. None detects it, and refuses files
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
    if suffix not in _FORMATS:
        raise InputError(
            f"{path.name} has an unknown format; allowed are {', '.join(_FORMATS)}: convert it, "
            "for instance with numpy.save."
        )
    if suffix in _TEXT_TABLES:
        rows = read_text(path, target, header)
    else:
        refuse_unless_default("header", header, None, f"for {suffix} files, which have no such row")
        with _errors_that_name(path):
            rows = _MATRICES[suffix](path) if suffix in _MATRICES else read_parquet(path, target)
    if suffix in _MATRICES and rows.ndim == 2:
        column = target_column(None, rows.shape[1], target)
        rows = rows if column is None else _without_column(rows, column)
    _check_matrix(path, rows)
    return rows


@contextmanager
def _errors_that_name(path: Path) -> Iterator[None]:
    """Name the file in every error of a library that reads it; readers of text do so by line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if path.suffix.lower() not in _BINARY:
            raise
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path.name} cannot be read as {path.suffix}: {reason} Check the file and its name."
        ) from error


def _without_column(rows: Any, column: int) -> Rows:
    if not sparse.issparse(rows):
        return np.delete(rows, column, axis=1)
    # A list of the columns that stay would be longer than all entries of a wide matrix.
    entries = rows.tocoo()
    kept = entries.col != column
    columns = entries.col[kept] - (entries.col[kept] > column)
    shape = (rows.shape[0], rows.shape[1] - 1)
    return sparse.csr_array((entries.data[kept], (entries.row[kept], columns)), shape=shape)


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
