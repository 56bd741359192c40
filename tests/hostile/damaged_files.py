"""Files of every format, and damage to them that a seed repeats."""

from __future__ import annotations

import io
import os
import pickle
import random
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import pyarrow as pa
import zarr
from pyarrow import feather, parquet
from scipy import io as matrix_files
from scipy import sparse

_ROWS = np.array([[1.5, 0.0, -2.0], [0.0, 4.0, 1e-3], [7.0, 0.0, 0.25], [1e4, -3.5, 0.0]])
_WORDS = [
    *(b",", b";", b"\t", b" ", b"\n", b"\r", b"\r\n", b'"', b'""', b"'", b"#", b"%", b":", b"\\"),
    *(b"nan", b"inf", b"-Infinity", b"NA", b"1e999", b"1e-999", b"1_0", b"0x10", b"1,5", b"--1"),
    *(b"0", b"-1", b"2", b"99999999999", b"9223372036854775807", b"18446744073709551616", b"1e3"),
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\xa9", b"\xd9\xa4", b"\xe2\x80\xa8"),
    *(b"qid:1", b"symmetric", b"pattern", b"array", b"complex", b"integer", b"skew-symmetric"),
    *(b"|O", b"O8", b"<f8", b"<c16", b"<U4", b"<i8", b"True", b"(", b")", b"'shape'"),
    *(b"csr", b"csc", b"dia", b"bsr", b"PK\x03\x04", b"PAR1", b"\x93NUMPY\x01\x00"),
]


class Canary:
    """An object whose unpickling leaves a folder behind."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, tuple[str, int, bool]]:
        return os.makedirs, (str(self.place), 0o777, True)


@dataclass(frozen=True)
class Format:
    """A format: the ending of its files, some of them that are whole, and how one is damaged."""

    name: str
    suffix: str
    whole: tuple[bytes, ...]
    damage: Callable[[bytes, random.Random], bytes]

    def write(self, content: bytes, path: Path) -> None:
        """Write a file; a Zarr store, which is given as an archive, becomes a folder."""
        if self.suffix != ".zarr":
            path.write_bytes(content)
            return
        shutil.rmtree(path, ignore_errors=True)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(path)


def formats(canary: Path) -> tuple[Format, ...]:
    """Return all formats, some of whose files hold the canary."""
    return (
        Format("csv", ".csv", _tables(), damaged),
        Format("svmlight", ".svm", _svmlight(), damaged),
        Format("npy", ".npy", _arrays(canary), damaged),
        Format("npz dense", ".npz", _archives(canary), _damaged_archive),
        Format("npz sparse", ".npz", _sparse_archives(), _damaged_archive),
        Format("mtx", ".mtx", _matrix_market(), damaged),
        Format("parquet", ".parquet", _parquet(), damaged),
        Format("feather", ".feather", _feather(), damaged),
        Format("hdf5", ".h5", _hdf5(), damaged),
        Format("zarr", ".zarr", _zarr(), _damaged_member),
    )


def damaged(content: bytes, draws: random.Random) -> bytes:
    for _ in range(draws.choice((1, 1, 1, 2, 3, 6))):
        content = draws.choice(_DAMAGES)(content, draws)
    return content


def _damaged_archive(content: bytes, draws: random.Random) -> bytes:
    """Damage an archive as it is, or one of its members, with right sums, deep inside."""
    return damaged(content, draws) if draws.random() < 0.3 else _damaged_member(content, draws)


def _damaged_member(content: bytes, draws: random.Random) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w") as new:
        chosen = draws.choice(old.namelist())
        for name in old.namelist():
            member = old.read(name)
            new.writestr(
                zipfile.ZipInfo(name), damaged(member, draws) if name == chosen else member
            )
    return target.getvalue()


def _place(content: bytes, draws: random.Random) -> int:
    return draws.randrange(len(content) + 1)


def _other_byte(content: bytes, draws: random.Random) -> bytes:
    at = _place(content, draws)
    return content[:at] + bytes([draws.randrange(256)]) + content[at + 1 :]


def _flipped_bit(content: bytes, draws: random.Random) -> bytes:
    at = _place(content, draws)
    changed = bytes(byte ^ 1 << draws.randrange(8) for byte in content[at : at + 1])
    return content[:at] + changed + content[at + 1 :]


def _inserted_word(content: bytes, draws: random.Random) -> bytes:
    at = _place(content, draws)
    return content[:at] + draws.choice(_WORDS) + content[at + draws.choice((0, 1, 3)) :]


def _overwritten_word(content: bytes, draws: random.Random) -> bytes:
    at, word = _place(content, draws), draws.choice(_WORDS)
    return content[:at] + word + content[at + len(word) :]


def _cut_off(content: bytes, draws: random.Random) -> bytes:
    return content[: _place(content, draws)]


def _without_part(content: bytes, draws: random.Random) -> bytes:
    at = _place(content, draws)
    return content[:at] + content[at + draws.randrange(1, 20) :]


def _doubled_part(content: bytes, draws: random.Random) -> bytes:
    at = _place(content, draws)
    end = at + draws.randrange(1, 40)
    return content[:end] + content[at:end] + content[end:]


def _changed_lines(content: bytes, draws: random.Random) -> bytes:
    """Drop, double, empty or exchange lines."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    one, other = draws.randrange(len(lines)), draws.randrange(len(lines))
    kind = draws.randrange(4)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        lines.insert(one, b"\n")
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _other_number(content: bytes, draws: random.Random) -> bytes:
    """Replace a number that is written in digits, as in headers, by another one."""
    found = [*re.finditer(rb"\d+", content)]
    if not found:
        return content
    chosen = draws.choice(found)
    number = draws.choice((b"0", b"1", b"2", b"5", b"-3", b"1000000000", b"99999999999999999999"))
    return content[: chosen.start()] + number + content[chosen.end() :]


_DAMAGES = (
    _other_byte,
    _flipped_bit,
    _inserted_word,
    _overwritten_word,
    _cut_off,
    _without_part,
    _doubled_part,
    _changed_lines,
    _other_number,
    _other_number,
)


def _tables() -> tuple[bytes, ...]:
    plain = "\n".join(",".join(str(entry) for entry in row) for row in _ROWS.tolist()) + "\n"
    return (
        plain.encode(),
        b"a,b,c\n" + plain.encode(),
        b"# made by hand\r\n" + plain.replace("\n", "\r\n").encode(),
        b"a;b;c\n" + plain.replace(",", ";").encode(),
        b"a\tb\tc\n" + plain.replace(",", "\t").encode(),
        b'"a","b"\n"r1",1,2\n"r2",3,4\n"r3",5,6\n',
        b",a,b\n0,1,2\n1,3,4\n",
        b"\xef\xbb\xbfx\n1\n2.5\n-3\n",
        b"7\n",
    )


def _svmlight() -> tuple[bytes, ...]:
    return (
        b"1 1:1.5 3:-2\n0 2:4 3:0.001\n1 1:7 3:0.25\n",
        b"# comment\n-1 qid:1 0:1.5 2:-2 # more\n\n+1\n0.5 1:1e10\n",
        b"1 1:1\r\n1 1:2\r\n",
    )


def _matrix_market() -> tuple[bytes, ...]:
    square = _ROWS[:3] + _ROWS[:3].T
    return tuple(
        _written(
            lambda stream, matrix=matrix, named=named: matrix_files.mmwrite(stream, matrix, **named)
        )
        for matrix, named in (
            (sparse.coo_array(_ROWS), {"symmetry": "general"}),
            (_ROWS, {"symmetry": "general"}),
            (sparse.coo_array(square), {"symmetry": "symmetric"}),
            (square, {"symmetry": "symmetric"}),
            (sparse.coo_array(_ROWS != 0.0), {"field": "pattern", "symmetry": "general"}),
        )
    )


def _arrays(canary: Path) -> tuple[bytes, ...]:
    arrays = (
        *(_ROWS, np.asfortranarray(_ROWS), _ROWS.astype(np.float32), _ROWS.astype(">f8")),
        *(_ROWS.astype(np.int16), _ROWS > 0.0, _ROWS.astype(np.float16), _ROWS.astype("g")),
        np.array([[Canary(canary)]], dtype=object),
    )
    written = [_written(lambda stream, array=array: np.save(stream, array)) for array in arrays]
    return (*written, pickle.dumps(Canary(canary)))


def _archives(canary: Path) -> tuple[bytes, ...]:
    return (
        _written(lambda stream: np.savez(stream, _ROWS)),
        _written(lambda stream: np.savez_compressed(stream, X=_ROWS, y=np.arange(4))),
        _written(lambda stream: np.savez(stream, np.array([[Canary(canary)]], dtype=object))),
    )


def _sparse_archives() -> tuple[bytes, ...]:
    matrix = sparse.coo_array(np.kron(_ROWS, np.ones((2, 2))))
    return tuple(
        _written(
            lambda stream, kind=kind, packed=packed: sparse.save_npz(
                stream, matrix.asformat(kind), compressed=packed
            )
        )
        for kind in ("csr", "csc", "coo", "bsr", "dia")
        for packed in (True, False)
    )


def _parquet() -> tuple[bytes, ...]:
    columns = [*_ROWS.T, np.arange(4), np.array([True, False, True, True])]
    table = pa.table(columns, names=["a", "b", "c", "d", "e"])
    return tuple(
        _written(lambda stream, how=how: parquet.write_table(table, stream, **how))
        for how in (
            {"compression": "none"},
            {"compression": "snappy", "use_dictionary": False},
            {"compression": "zstd", "row_group_size": 2},
        )
    )


def _feather() -> tuple[bytes, ...]:
    table = pa.table([*_ROWS.T, np.arange(4)], names=["a", "b", "c", "d"])
    return tuple(
        _written(lambda stream, how=how: feather.write_feather(table, stream, **how))
        for how in ({"compression": "uncompressed"}, {"compression": "zstd", "chunksize": 2})
    )


def _hdf5() -> tuple[bytes, ...]:
    def write(stream: Any, **how: Any) -> None:
        with h5py.File(stream, "w") as file:
            file.create_dataset("X", data=_ROWS, **how)

    options: tuple[dict[str, Any], ...] = (
        {},
        {"chunks": (2, 3), "compression": "gzip", "fletcher32": True},
        {"dtype": "f4"},
    )
    return tuple(_written(lambda stream, how=how: write(stream, **how)) for how in options)


def _zarr() -> tuple[bytes, ...]:
    return tuple(_zarr_archive(version) for version in (2, 3))


def _zarr_archive(version: Literal[2, 3]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "rows.zarr"
        shape: Any = _ROWS.shape
        stored = zarr.create_array(
            str(store), shape=shape, chunks=(2, 3), dtype=float, zarr_format=version
        )
        stored[:] = _ROWS
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w") as archive:
            for path in sorted(store.rglob("*")):
                if path.is_file():
                    name = zipfile.ZipInfo(str(path.relative_to(store)))
                    archive.writestr(name, path.read_bytes())
        return target.getvalue()


def _written(write: Callable[[Any], Any]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()
