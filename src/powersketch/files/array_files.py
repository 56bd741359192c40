"""Numbers in NumPy's formats: .npy, and .npz, dense or sparse.

Headers are checked against the size of the file before memory is allocated, all indices before
SciPy's compiled code uses them, and nothing is ever unpickled.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy import sparse

from powersketch.arrays import Rows
from powersketch.execution import available_memory
from powersketch.pages import bytes_text

# Shape, whether columns come first, and the type of the entries.
Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
Arrays = Mapping[str, NDArray[Any]]
Indices = NDArray[np.int64]
# Rows, columns and entries, one of each for every entry.
Entries = tuple[Indices, Indices, NDArray[Any]]

# What the rows are called in an archive of several arrays.
_USUAL_NAMES = ("X", "x", "data")
_OF_SPARSE_ARCHIVES = {"format", "shape", "data"}
_KINDS_OF_NUMBERS = "biuf"
# No compression of .npz files makes more bytes from one.
_MOST_EXPANSION = 1032
_ARCHIVE = b"PK\x03\x04"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class NpyHeader(NamedTuple):
    """What a .npy file says of its array, and where the numbers begin."""

    shape: tuple[int, ...]
    fortran: bool
    kind: np.dtype[Any]
    offset: int


def read_npy_header(path: Path) -> NpyHeader:
    """Return the header of a .npy file of real numbers whose size is right."""
    with path.open("rb") as stream:
        shape, fortran, kind = _header(stream, path.stat().st_size)
        offset = stream.tell()
    check_kind(kind)
    return NpyHeader(shape, fortran, kind, offset)


def read_array(path: Path, header: NpyHeader) -> NDArray[Any]:
    """Return the array of a .npy file, which stays on the disk until its rows are needed."""
    order: Any = "F" if header.fortran else "C"
    return np.memmap(path, header.kind, "r", header.offset, header.shape, order)


def read_archive(path: Path) -> Rows:
    """Return the one array of a .npz file, the one that is named X, or SciPy's sparse matrix."""
    with path.open("rb") as stream:
        # An archive can be hidden behind other bytes, and other programs would read those.
        if stream.read(len(_ARCHIVE)) != _ARCHIVE:
            raise ValueError("it is not an archive that was written by numpy.savez.")
    with zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if len(members) < len(archive.infolist()):
            raise ValueError("two of its arrays have the same name.")
        if not set(members) >= _OF_SPARSE_ARCHIVES:
            rows = _member(archive, members[chosen_array([*members])])
            check_kind(rows.dtype)
            return rows
        arrays = {name: _member(archive, info) for name, info in members.items()}
    check_kind(arrays["data"].dtype)
    return _sparse_matrix(arrays, most_rows=_MOST_EXPANSION * path.stat().st_size)


def chosen_array(names: list[str]) -> str:
    """Return the name of the array with the rows: the only one, or one that is called X."""
    usual = [*names] if len(names) == 1 else [name for name in _USUAL_NAMES if name in names]
    if not usual:
        raise ValueError(
            f"it holds the arrays {', '.join(names) or '(none)'}; allowed is one, or one that is "
            "named X: save the rows alone."
        )
    return usual[0]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    shape, fortran, kind = _checked_member(archive, info)
    content = archive.read(info)
    offset = len(content) - math.prod(shape) * kind.itemsize
    order: Any = "F" if fortran else "C"
    return np.ndarray(shape, kind, buffer=content, offset=offset, order=order)


def _checked_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    """Return the header of an array of the archive, if there is room for the array."""
    if info.file_size > available_memory():
        raise ValueError(
            f"{info.filename} needs {bytes_text(info.file_size)} of memory, and "
            f"{bytes_text(available_memory())} are available: save it with numpy.save, which lets "
            "rows stay on the disk."
        )
    with archive.open(info) as stream:
        return _header(stream, info.file_size)


def _header(stream: IO[bytes], size: int) -> Header:
    """Return shape, order and kind of numbers; what follows has exactly the size they need."""
    if stream.read(len(npy.MAGIC_PREFIX)) != npy.MAGIC_PREFIX:
        raise ValueError("it is not an array that was written by numpy.save.")
    version = tuple(stream.read(2))
    if version not in _HEADERS:
        raise ValueError(f"its format has the version {version}; allowed are (1, 0) and (2, 0).")
    with warnings.catch_warnings():
        # Headers by Python 2 are read, too.
        warnings.simplefilter("ignore")
        shape, fortran, kind = _HEADERS[version](stream)
    if kind.hasobject:
        raise ValueError("it holds Python objects; allowed are numbers: save an array of floats.")
    needed, present = math.prod(shape) * kind.itemsize, size - stream.tell()
    if min(shape, default=0) < 0 or needed != present:
        raise ValueError(
            f"its header announces {shape} numbers of type {kind}, {needed} bytes, and {present} "
            "follow: it is cut off or damaged."
        )
    return shape, fortran, kind


def check_kind(kind: np.dtype[Any]) -> None:
    """Refuse what are no real numbers."""
    if kind.kind not in _KINDS_OF_NUMBERS:
        raise ValueError(f"it holds entries of type {kind}; allowed are real numbers: convert it.")


def _sparse_matrix(arrays: Arrays, most_rows: int) -> sparse.csr_array:
    """Return the matrix, which has no more than `most_rows` rows, or say what is wrong with it."""
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
    wrong = bounds.size != count + 1 or bounds[0] != 0 or bounds[-1] != entries
    if wrong or (np.diff(bounds) < 0).any():
        raise ValueError(f"its bounds do not divide {entries} entries into {count} parts.")
    return np.repeat(np.arange(count), np.diff(bounds))


def _integers(arrays: Arrays, name: str) -> Indices:
    if name not in arrays:
        raise ValueError(f"it has no array {name}.")
    array = arrays[name]
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ValueError(f"its array {name} is not a list of integers.")
    return array.astype(np.int64)


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
