"""Rows of numbers from files of many formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from powersketch.arrays import Rows, slices
from powersketch.exceptions import InputError
from powersketch.files.chunked_files import HDF5, ChunkedSource
from powersketch.files.column_files import FEATHER, ColumnSource
from powersketch.files.sources import NpySource, RowSource, SvmlightSource, TextSource, WholeSource
from powersketch.files.text_tables import column_label
from powersketch.parameters import refuse_unless_default

_CHECKED_AT_ONCE = 2**20
_TEXT_TABLES = (".csv", ".tsv")
_SOURCES: dict[str, Callable[[Path, str | None], RowSource]] = {
    ".npy": NpySource,
    ".npz": WholeSource,
    ".svm": SvmlightSource,
    ".libsvm": SvmlightSource,
    ".svmlight": SvmlightSource,
    ".mtx": WholeSource,
    **dict.fromkeys((".parquet", *FEATHER), ColumnSource),
    **dict.fromkeys((*HDF5, ".zarr"), ChunkedSource),
}
_FORMATS = (*_TEXT_TABLES, *_SOURCES)
_TEXTS = (*_TEXT_TABLES, ".svm", ".libsvm", ".svmlight", ".mtx")


def is_data(path: str | os.PathLike[str]) -> bool:
    """Tell by its name whether a file holds rows or a table."""
    return Path(path).suffix.lower() in _FORMATS


def open_rows(
    path: str | os.PathLike[str], target: str | None = None, header: bool | None = None
) -> RowSource:
    """Return a source of the rows of a file, which reads them by blocks.

    Parameters
    ----------
    path : str or path
        Its name tells the format: .npy, .npz, .csv, .tsv, .svm, .libsvm, .svmlight, .mtx,
        .parquet, .feather, .arrow, .h5, .hdf5 or .zarr.
    target : str or None, default=None
        Name or number of a column to leave out; numbers begin at 0. The labels of the svmlight
        format are always left out, and do not count as a column.
    header : bool or None, default=None
        Whether the first row of a .csv or .tsv file holds names. None detects it, and refuses files
        where it is not clear.

    Returns
    -------
    RowSource
        With `shape` (the number of rows is None where it is not known), `dtype`, `is_sparse`,
        `column_names`, and ``blocks(rows, start=0)``.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.is_file() and not (suffix == ".zarr" and path.is_dir()):
        raise InputError(f"{path} is not a file; give the path of a table of numbers.")
    if suffix not in _FORMATS:
        raise InputError(
            f"{path.name} has an unknown format; allowed are {', '.join(_FORMATS)}: convert it, "
            "for instance with numpy.save."
        )
    if suffix in _TEXT_TABLES:
        return TextSource(path, target, header)
    refuse_unless_default("header", header, None, f"for {suffix} files, which have no such row")
    with errors_that_name(path):
        return _SOURCES[suffix](path, target)


def read_rows(path: Path, target: str | None = None, header: bool | None = None) -> Rows:
    """Return the rows of a file, without the target's column if there is one.

    Nothing is left out in silence: a file is read as a whole, or refused with the place of what
    cannot be read. The matrix has rows and columns, and all its entries are finite real numbers.

    Parameters
    ----------
    path, target, header
        As in :func:`open_rows`.

    Returns
    -------
    ndarray or sparse matrix of shape (n_samples, n_features)
        As the file has it.

    Raises
    ------
    InputError
        Where the format is unknown, or an entry is not a finite number.
    """
    source = open_rows(path, target, header)
    with errors_that_name(path):
        rows = source.read()
    check_matrix(path, rows)
    return rows


@contextmanager
def errors_that_name(path: Path) -> Iterator[None]:
    """Name the file in every error of a library that reads it; readers of text do so by line."""
    try:
        yield
    except InputError:
        raise
    # Libraries raise errors of any kind at damaged files, and those of NumPy and zipfile are not
    # even listed.
    except Exception as error:
        if path.suffix.lower() in _TEXTS:
            raise
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path.name} cannot be read as {path.suffix}: {reason} Check the file and its name."
        ) from error


def check_matrix(path: Path, rows: Any) -> None:
    """Refuse what has no entries, or has one that is not finite."""
    if 0 in rows.shape:
        raise InputError(
            f"{path.name} has {rows.shape[0]} rows and {rows.shape[1]} columns to use; at least "
            "one of each is needed."
        )
    place = first_not_finite(rows)
    if place is not None:
        row, column = place
        raise InputError(
            f"{path.name}, row {row + 1}, {column_label(None, column)}: NaN or infinity is not "
            "finite; remove the row, or fill the entry."
        )


def first_not_finite(rows: Any) -> tuple[int, int] | None:
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
