"""Arrays that are stored in chunks, HDF5 and Zarr: blocks of rows are read as they are needed.

Both formats can name code or other files to be read. What is not plain numbers, inside the file
and packed by a known method, is refused before the libraries look at it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from powersketch.arrays import Real, Rows, slices
from powersketch.exceptions import InputError
from powersketch.files.array_files import check_kind, chosen_array
from powersketch.files.sources import MatrixSource, check_announced, two_dimensions

# Zarr's names of what packs numbers. Pickle is another one: unpacking it would run code.
_CODECS = {
    *("blosc", "bz2", "bytes", "crc32c", "delta", "gzip", "lz4", "lzma", "shuffle"),
    *("sharding_indexed", "transpose", "zlib", "zstd"),
}
_LARGEST_CHUNK = 1 << 28  # entries


class ChunkedSource(MatrixSource):
    """One array of a file: the only one of two dimensions, or the one that is named X."""

    def _open(self) -> None:
        with self._array() as stored:
            self.shape, self.dtype = two_dimensions(tuple(stored.shape)), stored.dtype
            check_kind(self.dtype)

    @contextmanager
    def _array(self) -> Iterator[Any]:
        opened = _hdf5_array if self.path.suffix.lower() in HDF5 else _zarr_array
        with opened(self.path) as stored:
            yield stored

    def _blocks(self, rows: int, start: int) -> Iterator[Real]:
        with self._array() as stored:
            for part in slices(stored.shape[0] - start, rows):
                yield stored[start + part.start : start + part.stop]

    def read(self) -> Rows:
        """Return all rows; chunks that a file does not have count as rows, too."""
        with self._array() as stored:
            check_announced(*two_dimensions(tuple(stored.shape)), stored.dtype)
        return super().read()


HDF5 = (".h5", ".hdf5")
"""The endings of HDF5 files; other arrays in chunks are Zarr's."""


@contextmanager
def _hdf5_array(path: Path) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise _missing(path, "h5py") from error
    with h5py.File(path, "r") as file:
        links = {name: file.get(name, getlink=True) for name in file}
        inside = [name for name, link in links.items() if isinstance(link, h5py.HardLink)]
        arrays = [name for name in inside if isinstance(file[name], h5py.Dataset)]
        stored = file[chosen_array(arrays)]
        if stored.external or stored.is_virtual:
            raise ValueError("its numbers are in other files: copy them into one.")
        yield stored


@contextmanager
def _zarr_array(path: Path) -> Iterator[Any]:
    try:
        import zarr
    except ImportError as error:
        raise _missing(path, "zarr") from error
    folder = path if _is_array(path) else path / chosen_array(_members(path))
    _check_codecs(folder)
    yield zarr.open_array(store=str(folder), mode="r")


def _members(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir() if each.is_dir() and _is_array(each))


def _is_array(folder: Path) -> bool:
    if (folder / ".zarray").is_file():
        return True
    described = folder / "zarr.json"
    return described.is_file() and _read_json(described).get("node_type") == "array"


def _read_json(path: Path) -> dict[str, Any]:
    description = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(description, dict):
        raise ValueError(f"{path.name} is no description of an array.")
    return description


def _check_codecs(folder: Path) -> None:
    """Refuse arrays that are packed by other methods than those that are known to be harmless."""
    second = (folder / ".zarray").is_file()
    described = _read_json(folder / (".zarray" if second else "zarr.json"))
    if second:
        codecs = [described.get("compressor"), *(described.get("filters") or [])]
        names = [codec["id"] for codec in codecs if codec is not None]
        chunks = described["chunks"]
    else:
        names, chunks = _codec_names(described["codecs"]), _chunk_shape(described)
        if described.get("storage_transformers"):
            raise ValueError("it has transformers of storage, which are not supported.")
    unknown = [name for name in names if name not in _CODECS]
    if unknown:
        raise ValueError(
            f"it is packed by {unknown[0]!r}; allowed are {', '.join(sorted(_CODECS))}."
        )
    entries = 1
    for length in chunks:
        entries *= int(length)
    if not 0 < entries <= _LARGEST_CHUNK:
        raise ValueError(f"its chunks have {entries} entries; allowed are {_LARGEST_CHUNK}.")


def _codec_names(codecs: Any) -> list[str]:
    names = []
    for codec in codecs:
        names.append(codec if isinstance(codec, str) else codec["name"])
        if names[-1] == "sharding_indexed":
            inner = codec["configuration"]
            names += _codec_names(inner["codecs"]) + _codec_names(inner.get("index_codecs", []))
    return names


def _chunk_shape(described: dict[str, Any]) -> Any:
    return described["chunk_grid"]["configuration"]["chunk_shape"]


def _missing(path: Path, package: str) -> InputError:
    return InputError(
        f"{path.name} needs {package}, which is not installed: pip install {package}, or convert "
        "the file to .npy."
    )
