"""SciPy's sparse matrices from the arrays that they are stored as.

All indices are checked before SciPy sees them: wrong ones would make its compiled code write
anywhere in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Arrays = Mapping[str, NDArray[Any]]
Indices = NDArray[np.int64]
# Rows, columns and entries, one of each for every entry.
Entries = tuple[Indices, Indices, NDArray[Any]]


def sparse_matrix(arrays: Arrays, most_rows: int) -> sparse.csr_array:
    """Return the matrix, which has at most so many rows, or say what is wrong with it."""
    name = _name(arrays["format"])
    if name not in _FORMATS:
        raise ValueError(f"its format is {name!r}; allowed are {', '.join(_FORMATS)}.")
    shape = _integers(arrays, "shape")
    if shape.shape != (2,) or shape.min() < 0 or shape[0] > most_rows:
        raise ValueError(f"its shape is {shape.tolist()}, which no file of this size can have.")
    size = (int(shape[0]), int(shape[1]))
    rows, columns, values = _FORMATS[name](arrays, size)
    if not rows.shape == columns.shape == values.shape:
        raise ValueError("its arrays do not have the same length.")
    _check_range("row", rows, size[0])
    _check_range("column", columns, size[1])
    return sparse.coo_array((values, (rows, columns)), shape=size).tocsr()


def _coordinates(arrays: Arrays, size: tuple[int, int]) -> Entries:
    return _integers(arrays, "row"), _integers(arrays, "col"), arrays["data"].ravel()


def _compressed_rows(arrays: Arrays, size: tuple[int, int]) -> Entries:
    indices = _integers(arrays, "indices")
    return _expanded(arrays, size[0], indices.size), indices, arrays["data"].ravel()


def _compressed_columns(arrays: Arrays, size: tuple[int, int]) -> Entries:
    indices = _integers(arrays, "indices")
    return indices, _expanded(arrays, size[1], indices.size), arrays["data"].ravel()


def _blocks(arrays: Arrays, size: tuple[int, int]) -> Entries:
    data, columns = arrays["data"], _integers(arrays, "indices")
    if data.ndim != 3 or data.shape[0] != columns.size or 0 in data.shape[1:]:
        raise ValueError(f"its blocks have the shape {data.shape}, for {columns.size} blocks.")
    _, high, wide = data.shape
    if size[0] % high or size[1] % wide:
        raise ValueError(f"its shape {size} is not made of blocks of {high} × {wide}.")
    _check_range("column", columns, size[1] // wide)
    rows = _expanded(arrays, size[0] // high, columns.size)
    all_rows = rows[:, None, None] * high + np.arange(high)[:, None]
    all_columns = columns[:, None, None] * wide + np.arange(wide)
    rows, columns = np.broadcast_arrays(all_rows, all_columns)
    return rows.ravel(), columns.ravel(), data.ravel()


def _diagonals(arrays: Arrays, size: tuple[int, int]) -> Entries:
    data, offsets = arrays["data"], _integers(arrays, "offsets")
    if data.ndim != 2 or data.shape[0] != offsets.size or np.unique(offsets).size < offsets.size:
        raise ValueError(f"its diagonals have the shape {data.shape}, for {offsets.size} of them.")
    if offsets.size and (offsets.min() < -size[0] or offsets.max() > size[1]):
        raise ValueError("one of its diagonals is outside of the matrix.")
    columns, shifts = np.broadcast_arrays(np.arange(data.shape[1]), offsets[:, None])
    rows = columns - shifts
    # What a diagonal has beyond the corners is no part of the matrix.
    inside = (rows >= 0) & (rows < size[0]) & (columns < size[1])
    return rows[inside], columns[inside], data[inside]


def _expanded(arrays: Arrays, count: int, entries: int) -> Indices:
    """Return the row of every entry, or the column, where only its bounds are stored."""
    bounds = _integers(arrays, "indptr")
    falls = bounds.size != count + 1 or bounds[0] != 0 or bounds[-1] != entries
    if falls or (np.diff(bounds) < 0).any():
        raise ValueError(f"its bounds do not divide {entries} entries into {count} parts.")
    return np.repeat(np.arange(count), np.diff(bounds))


def _integers(arrays: Arrays, name: str) -> Indices:
    if name not in arrays:
        raise ValueError(f"it has no array {name}.")
    found = arrays[name]
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise ValueError(f"its array {name} is not a list of integers.")
    return found.astype(np.int64)


def _check_range(name: str, indices: Indices, count: int) -> None:
    if indices.size and not 0 <= indices.min() <= indices.max() < count:
        raise ValueError(f"it has entries outside of its {count} {name}s.")


def _name(stored: NDArray[Any]) -> str:
    if stored.ndim != 0 or stored.dtype.kind not in "SU":
        raise ValueError("its format is not a name.")
    name = stored.item()
    return name.decode("ascii", errors="replace") if isinstance(name, bytes) else str(name)


_FORMATS: dict[str, Callable[[Arrays, tuple[int, int]], Entries]] = {
    "csr": _compressed_rows,
    "csc": _compressed_columns,
    "coo": _coordinates,
    "bsr": _blocks,
    "dia": _diagonals,
}
