"""Rows of numbers in files of many formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from powersketch.cli.columns import kept_columns, refuse_texts
from powersketch.cli.text_files import read_text
from powersketch.exceptions import InputError
from powersketch.native import Rows

# What the rows are called in an archive of several arrays.
_USUAL_NAMES = ("X", "x", "data")
_OF_SPARSE_ARCHIVES = {"format", "shape", "data"}


def read_rows(path: Path, target: str | None = None) -> Rows:
    """Return the rows of a file, without the target's column if there is one.

    Parameters
    ----------
    path : Path
        Its name tells the format: .npy, .npz, .csv, .tsv, .svm, .libsvm, .svmlight, .mtx or
        .parquet.
    target : str or None, default=None
        Name or number of a column to leave out. That of the svmlight format is left out always.

    Returns
    -------
    ndarray or sparse matrix of shape (n_samples, n_features)
        As the file has it.

    Raises
    ------
    ValueError
        Where the format is unknown, or an entry is not a number.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the path of a table of numbers.")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(
            f"{path.name} has an unknown format; allowed are {', '.join(_READERS)}: convert it, "
            "for instance with numpy.save."
        )
    rows = read(path, target)
    if rows.ndim != 2:
        raise InputError(
            f"{path.name} holds an array with {rows.ndim} dimensions; allowed are 2, rows and "
            "columns: reshape it."
        )
    return rows


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say which file it is that a library cannot read."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"{path.name} cannot be read as {path.suffix}: {error} Check the file and its name."
        ) from error


def _read_array(path: Path, target: str | None) -> Rows:
    with _readable(path):
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    return _without_target(rows, target)


def _read_archive(path: Path, target: str | None) -> Rows:
    with _readable(path):
        archive = np.load(path, allow_pickle=False)
    with archive:
        names: list[str] = archive.files
        if set(names) >= _OF_SPARSE_ARCHIVES:
            return _without_target(sparse.load_npz(path).tocsr(), target)
        usual = [*names] if len(names) == 1 else [name for name in _USUAL_NAMES if name in names]
        if not usual:
            raise InputError(
                f"{path.name} holds the arrays {', '.join(names) or '(none)'}; allowed is one, or "
                "one that is named X: save the rows alone."
            )
        return _without_target(archive[usual[0]], target)


def _read_svmlight(path: Path, target: str | None) -> Rows:
    # Loaded when it is first needed, as the following are.
    from sklearn.datasets import load_svmlight_file

    with _readable(path):
        rows, _ = load_svmlight_file(str(path))
    return _without_target(rows, target)


def _read_matrix_market(path: Path, target: str | None) -> Rows:
    from scipy.io import mmread

    with _readable(path):
        rows = mmread(path)
    return _without_target(rows.tocsr() if sparse.issparse(rows) else rows, target)


def _read_parquet(path: Path, target: str | None) -> Rows:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"{path.name} needs pyarrow, which is not installed: pip install pyarrow, or convert "
            "the file to .npy or .csv."
        ) from error
    with _readable(path):
        table = parquet.read_table(path)
    names = list(table.column_names)
    kept = [names[column] for column in kept_columns(names, len(names), target)]
    columns = {name: np.asarray(table.column(name).to_numpy()) for name in kept}
    refuse_texts(path.name, [name for name in kept if columns[name].dtype.kind not in "biuf"])
    return np.column_stack([columns[name] for name in kept]) if kept else np.empty((0, 0))


def _without_target(rows: Any, target: str | None) -> Rows:
    if target is None or rows.ndim != 2:
        return rows
    return rows[:, kept_columns(None, rows.shape[1], target)]


_READERS: dict[str, Callable[[Path, str | None], Rows]] = {
    ".npy": _read_array,
    ".npz": _read_archive,
    ".csv": read_text,
    ".tsv": read_text,
    ".svm": _read_svmlight,
    ".libsvm": _read_svmlight,
    ".svmlight": _read_svmlight,
    ".mtx": _read_matrix_market,
    ".parquet": _read_parquet,
}
