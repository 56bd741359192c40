"""The file of a model: a description in JSON and plain arrays, both covered by one checksum.

64 bytes come first: a magic text, the version of the format and the length of the description, and
the SHA-256 of these and of all that follows them. Then come the description and the arrays, each
from a multiple of 64 bytes on. Arrays of few different bytes are deflated.

Nothing is taken from a file whose checksum is wrong, and nothing is allocated that the size of the
file does not account for; what is deflated or described can be a few MiB larger.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError
from powersketch.files import atomic_write

FORMAT = 1
"""The version of the format that is written; those up to it are read."""

_MAGIC = b"powersketch\x00\x93\r\n\x1a"
_HEADER = struct.Struct("<16sQQ32s")
_UNIT = _HEADER.size
_COVERED = 32  # bytes of the header that the checksum covers
_LARGEST_DESCRIPTION = 1 << 20
# Bytes of all arrays that are deflated, as they are in memory.
_LARGEST_EXPANSION = 4 << 20
_WORTH_DEFLATING = 256
_MOST_DIMENSIONS = 4

DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
"""The types of numbers that files hold."""


@dataclass(frozen=True, eq=False)
class Content:
    """What a file holds, and its size and checksum."""

    description: Any
    arrays: list[NDArray[Any]]
    size: int
    checksum: str


def write_content(path: Path, description: Any, arrays: list[NDArray[Any]]) -> None:
    """Write the file, which appears under its name when it is complete."""
    left = _LARGEST_EXPANSION
    entries, parts = [], []
    for array in arrays:
        entry, part = _packed(array, left)
        left -= array.nbytes if entry["deflated"] else 0
        entries.append(entry)
        parts.append(part)
    text = json.dumps({"arrays": entries, "model": description}, separators=(",", ":")).encode()
    if len(text) > _LARGEST_DESCRIPTION:
        raise InputError(
            f"the description of the model takes {len(text)} bytes; allowed are "
            f"{_LARGEST_DESCRIPTION}: leave out what is long, such as columns of very many "
            "categories."
        )
    header = _HEADER.pack(_MAGIC, FORMAT, len(text), bytes(32))[:_COVERED]
    checksum = hashlib.sha256(header)
    with atomic_write(path) as temporary, temporary.open("wb") as stream:
        stream.write(bytes(_UNIT))
        for piece in _aligned(text, *parts):
            checksum.update(piece)
            stream.write(piece)
        stream.seek(0)
        stream.write(header + checksum.digest())


def _packed(array: NDArray[Any], left: int) -> tuple[dict[str, Any], Any]:
    """Return what the description says of an array, and its bytes."""
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    kind = array.dtype.newbyteorder("<")
    ordered = np.ascontiguousarray(array.T if fortran else array, dtype=kind)
    entry = {"dtype": kind.str, "shape": [*array.shape], "fortran": bool(fortran)}
    part = ordered.reshape(-1).view(np.uint8).data
    if _WORTH_DEFLATING <= array.nbytes <= left:
        deflated = zlib.compress(part, 6)
        if 2 * len(deflated) < array.nbytes:
            return {**entry, "deflated": True, "bytes": len(deflated)}, deflated
    return {**entry, "deflated": False, "bytes": array.nbytes}, part


def _aligned(*parts: Any) -> Iterator[Any]:
    for part in parts:
        yield part
        yield bytes(-len(part) % _UNIT)


def read_content(path: Path) -> Content:
    """Return what a file holds, or say what is wrong with it; raises ValueError and its kind."""
    with path.open("rb") as stream:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no ordinary file.")
        content = np.empty(status.st_size, dtype=np.uint8)
        if stream.readinto(content.data) != status.st_size:
            raise ValueError("it changed while it was read.")
    if content.size < _UNIT or content[: len(_MAGIC)].tobytes() != _MAGIC:
        raise ValueError("it is no model that was written by powersketch.save.")
    _, version, length, expected = _HEADER.unpack(content[:_UNIT].tobytes())
    checksum = hashlib.sha256(content[:_COVERED].data)
    checksum.update(content[_UNIT:].data)
    if checksum.digest() != expected:
        raise ValueError("its checksum is wrong: it was damaged or changed.")
    if not 1 <= version <= FORMAT:
        raise ValueError(f"its format has the version {version}; allowed are 1 to {FORMAT}.")
    if length > min(_LARGEST_DESCRIPTION, content.size - _UNIT):
        raise ValueError(f"its description has {length} bytes, which are too many.")
    text = content[_UNIT : _UNIT + length].tobytes()
    description = json.loads(text.decode("utf-8"))
    arrays = _arrays(description["arrays"], content, _UNIT + length + -length % _UNIT)
    return Content(description["model"], arrays, int(content.size), checksum.hexdigest())


def _arrays(entries: Any, content: NDArray[np.uint8], start: int) -> list[NDArray[Any]]:
    """Return the arrays, those not deflated as parts of the content; they fill all of it."""
    arrays, left = [], _LARGEST_EXPANSION
    for entry in entries:
        stop = start + _checked_count("bytes", entry["bytes"])
        if stop > content.size:
            raise ValueError("its arrays are longer than the file.")
        array = _unpacked(entry, content[start:stop], left)
        left -= array.nbytes if entry["deflated"] else 0
        arrays.append(array)
        start = stop + -entry["bytes"] % _UNIT
    if start != content.size:
        raise ValueError(f"it has {content.size} bytes, and its arrays end at {start}.")
    return arrays


def _unpacked(entry: Any, part: NDArray[np.uint8], left: int) -> NDArray[Any]:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"an array has the type {entry['dtype']!r}; allowed are {DTYPES}.")
    kind = np.dtype(entry["dtype"])
    shape = [_checked_count("length", length) for length in entry["shape"]]
    needed = math.prod(shape) * kind.itemsize
    if len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"an array has {len(shape)} dimensions; allowed are {_MOST_DIMENSIONS}.")
    if entry["deflated"]:
        if needed > left:
            raise ValueError(f"deflated arrays take more than {_LARGEST_EXPANSION} bytes.")
        part = _inflated(part, needed)
    if part.size != needed:
        raise ValueError(f"an array of shape {shape} and type {kind} has {part.size} bytes.")
    if kind.kind == "b" and (part > 1).any():
        raise ValueError("a truth value is neither 0 nor 1.")
    # The buffers of files start where every type of numbers can.
    array: NDArray[Any] = part.view(kind)
    array = array.reshape(shape[::-1]).T if entry["fortran"] else array.reshape(shape)
    return array.astype(kind.newbyteorder("="), copy=False)


def _inflated(part: NDArray[np.uint8], needed: int) -> NDArray[np.uint8]:
    inflater = zlib.decompressobj()
    text = inflater.decompress(part.data, needed + 1)
    if len(text) != needed or not inflater.eof or inflater.unused_data:
        raise ValueError(f"a deflated array does not have the {needed} bytes that it should.")
    return np.frombuffer(bytearray(text), dtype=np.uint8)


def _checked_count(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise ValueError(f"the {name} of an array is {value!r}; allowed are whole numbers.")
    return value
