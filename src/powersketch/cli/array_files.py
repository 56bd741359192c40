"""Arrays in NumPy's formats: .npy, and .npz, dense or sparse.

Headers are held against the size of the file before memory is taken for what they announce, and
nothing is ever unpickled.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.cli.sparse_archives import sparse_matrix
from powersketch.comparison import bytes_text
from powersketch.execution import available_memory

# Shape, whether columns come first, and the type of the entries.
Header = tuple[tuple[int, ...], bool, np.dtype[Any]]

# What the rows are called in an archive of several arrays.
_USUAL_NAMES = ("X", "x", "data")
_OF_SPARSE_ARCHIVES = {"format", "shape", "data"}
_KINDS_OF_NUMBERS = "biuf"
# No compression of .npz files makes more bytes from one.
_MOST_EXPANSION = 1032
_ARCHIVE = b"PK\x03\x04"
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_array(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file, which stays on the disk until its rows are needed."""
    with path.open("rb") as stream:
        shape, fortran, kind = _header(stream, path.stat().st_size)
        offset = stream.tell()
    _check_kind(kind)
    return np.memmap(
        path, dtype=kind, mode="r", offset=offset, shape=shape, order="F" if fortran else "C"
    )


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
            rows = _member(archive, members[_chosen([*members])])
            _check_kind(rows.dtype)
            return rows
        arrays = {name: _member(archive, info) for name, info in members.items()}
    _check_kind(arrays["data"].dtype)
    return sparse_matrix(arrays, most_rows=_MOST_EXPANSION * path.stat().st_size)


def _chosen(names: list[str]) -> str:
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


def _check_kind(kind: np.dtype[Any]) -> None:
    if kind.kind not in _KINDS_OF_NUMBERS:
        raise ValueError(f"it holds entries of type {kind}; allowed are real numbers: convert it.")
