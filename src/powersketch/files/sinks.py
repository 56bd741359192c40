"""Rows of numbers to files, a block at a time, that appear under their name when complete.

Rows go to an unfinished .npy file beside the output, and a small file says how many of them are
there. Other formats are made of it at the end. A run that was killed finds both and goes on.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy

from powersketch.arrays import Real
from powersketch.exceptions import InputError
from powersketch.files.outputs import check_outputs, disk_errors
from powersketch.files.sources import NpySource, RowSource
from powersketch.files.unbuffered import PAGE, UnbufferedFile
from powersketch.pages import bytes_text

# Of a .npy file, longer than needed: the number of rows is written at the end, and rows begin with
# a page.
_HEADER_BYTES = PAGE
_BLOCK_BYTES = 16 << 20
_SECONDS_BETWEEN_NOTES = 0.2


class Sink:
    """A file that rows are written to, of which nothing is seen before :meth:`commit`.

    It is a context: after an error nothing is left behind; a process that is interrupted or killed
    leaves the unfinished file, with which ``resume=True`` goes on.

    Attributes
    ----------
    rows : int
        How many rows are there, more than none after resuming.
    """

    def __init__(
        self, path: Path, columns: int, dtype: np.dtype[Any], *, run: str, resume: bool
    ) -> None:
        self.path, self.rows = path, 0
        self._columns, self._dtype, self._run = columns, dtype, run
        final = Path(os.path.realpath(path))
        self._unfinished = final.with_name(f".{final.name}.unfinished")
        self._state = final.with_name(f".{final.name}.progress")
        # Without an unfinished file, an old note of progress means nothing.
        resume = resume and self._unfinished.exists() and self._state.exists()
        self._file = UnbufferedFile(self._unfinished, os.O_RDWR | os.O_CREAT)
        try:
            self._file.lock(f"another process is writing {path.name}")
            self.rows = self._rows_done() if resume else 0
            os.truncate(self._unfinished, _HEADER_BYTES + self.rows * self._row_bytes)
        except BaseException:
            self._file.close()
            raise
        # Blocks that are written before those above them: where they begin and end.
        self._ahead: dict[int, int] = {}
        self._noting, self._noted = threading.Lock(), -math.inf

    def write(self, block: Real, start: int | None = None) -> None:
        """Write rows, of the sink's number of columns, to a place or after those that are there.

        Threads may write different blocks at a time, in any order.
        """
        if block.ndim != 2 or block.shape[1] != self._columns:
            raise InputError(
                f"a block has shape {block.shape}; allowed are rows of {self._columns} columns."
            )
        first = self.rows if start is None else start
        content = np.ascontiguousarray(block, dtype=self._dtype).reshape(-1).view(np.uint8)
        with disk_errors(self.path):
            self._file.write(content, _HEADER_BYTES + first * self._row_bytes)
            with self._noting:
                self._ahead[first] = first + len(block)
                while self.rows in self._ahead:
                    self.rows = self._ahead.pop(self.rows)
                if time.monotonic() > self._noted + _SECONDS_BETWEEN_NOTES:
                    self._note_progress()

    def commit(self) -> None:
        """Give the file its name, in its format."""
        with disk_errors(self.path):
            self._file.write(np.frombuffer(self._header(), np.uint8), 0)
            self._file.sync()
        suffix, final = self.path.suffix.lower(), Path(os.path.realpath(self.path))
        if suffix == ".npy":
            os.replace(self._unfinished, final)
        else:
            converted = final.with_name(f".{final.name}.converted")
            _remove(converted)
            try:
                height = max(_BLOCK_BYTES // self._row_bytes, 1)
                with disk_errors(self.path):
                    _CONVERSIONS[suffix](NpySource(self._unfinished, None), height, converted)
                if final.is_dir():
                    shutil.rmtree(final)
                os.replace(converted, final)
            finally:
                _remove(converted)
        self.discard()

    def discard(self) -> None:
        """Remove what is unfinished."""
        self._file.close()
        _remove(self._unfinished)
        _remove(self._state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception):
            self.discard()
        elif error is not None:
            self._note_progress()
        self._file.close()

    @property
    def _row_bytes(self) -> int:
        return self._columns * self._dtype.itemsize

    def _rows_done(self) -> int:
        """Return how many rows of the same run are in the unfinished file."""
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            rows, run = int(state["rows"]), str(state["run"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self._state} is damaged; remove it to start anew.") from error
        present = self._unfinished.stat().st_size - _HEADER_BYTES
        if run != self._run or not 0 <= rows * self._row_bytes <= max(present, 0):
            raise InputError(
                f"the unfinished {self.path.name} is of another run: of other data, parameters, "
                "sizes or versions. Run without resume to start anew."
            )
        return rows

    def _note_progress(self) -> None:
        """Write how many rows are there, at once: a kill leaves the old number or the new one."""
        temporary = self._state.with_name(f"{self._state.name}.new")
        temporary.write_text(json.dumps({"rows": self.rows, "run": self._run}), encoding="utf-8")
        os.replace(temporary, self._state)
        self._noted = time.monotonic()

    def _header(self) -> bytes:
        shape = (self.rows, self._columns)
        described = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False}
        text = f"{described | {'shape': shape}!r}"
        length = _HEADER_BYTES - len(npy.magic(1, 0)) - 2
        padded = text.ljust(length - 1).encode("ascii") + b"\n"
        return npy.magic(1, 0) + length.to_bytes(2, "little") + padded


def open_sink(
    path: str | os.PathLike[str],
    shape: tuple[int | None, int],
    dtype: Any,
    *,
    run: str = "",
    resume: bool = False,
) -> Sink:
    """Return a file to write rows to, block by block.

    Parameters
    ----------
    path : str or path
        Its name tells the format: .npy, .npz, .parquet or .zarr.
    shape : tuple
        The number of rows, None if it is not known, and of columns.
    dtype : dtype
        The type of the numbers.
    run : str, default=""
        What tells this run from others: only the same one can be resumed.
    resume : bool, default=False
        Whether to go on where an earlier run was interrupted, if there is one.

    Returns
    -------
    Sink
        With ``rows``, ``write(block)`` and ``commit()``.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".npy", *_CONVERSIONS):
        raise InputError(
            f"{path.name} has a format that cannot be written; allowed are .npy, "
            f"{', '.join(_CONVERSIONS)}: choose one of these endings."
        )
    if not (suffix == ".zarr" and (path / "zarr.json").is_file()):
        check_outputs([], [path])
    rows, columns = shape
    kind = np.dtype(dtype)
    # What is converted is on the disk twice for a while.
    needed = (rows or 0) * columns * kind.itemsize * (1 if suffix == ".npy" else 2)
    sink = Sink(path, columns, kind, run=run, resume=resume)
    free = shutil.disk_usage(sink.path.absolute().parent).free
    missing = needed - sink.rows * columns * kind.itemsize - free
    if missing > 0:
        sink.discard()
        raise InputError(
            f"{path.name} takes {bytes_text(needed)}, and {bytes_text(free)} are free in its "
            "folder: free some, or choose another disk."
        )
    return sink


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _to_archive(rows: RowSource, height: int, path: Path) -> None:
    """Write what numpy.savez_compressed(path, X=rows) would, block by block."""
    # One fixed time, so that the same rows are the same bytes.
    member = zipfile.ZipInfo("X.npy", (1980, 1, 1, 0, 0, 0))
    member.compress_type = zipfile.ZIP_DEFLATED
    kind = npy.dtype_to_descr(rows.dtype)
    header = {"descr": kind, "fortran_order": False, "shape": rows.shape}
    with (
        zipfile.ZipFile(path, "w") as archive,
        archive.open(member, "w", force_zip64=True) as stream,
    ):
        npy.write_array_header_1_0(stream, header)
        for block in rows.blocks(height):
            stream.write(block.reshape(-1).view(np.uint8).data)


def _to_parquet(rows: RowSource, height: int, path: Path) -> None:
    """Write columns x0, x1, …, a group of rows for every block."""
    import pyarrow
    from pyarrow import parquet

    kind = pyarrow.from_numpy_dtype(rows.dtype)
    schema = pyarrow.schema([(f"x{number}", kind) for number in range(rows.shape[1])])
    with parquet.ParquetWriter(path, schema) as writer:
        for block in rows.blocks(height):
            columns = [pyarrow.array(np.ascontiguousarray(column)) for column in block.T]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))


def _to_zarr(rows: RowSource, height: int, path: Path) -> None:
    """Write an array whose chunks are blocks of rows."""
    import zarr

    chunks = (height, rows.shape[1])
    shape: Any = rows.shape
    stored = zarr.create_array(str(path), shape=shape, chunks=chunks, dtype=rows.dtype)
    for number, block in enumerate(rows.blocks(height)):
        stored[number * height : number * height + len(block)] = block


_CONVERSIONS: dict[str, Callable[[RowSource, int, Path], None]] = {
    ".npz": _to_archive,
    ".parquet": _to_parquet,
    ".zarr": _to_zarr,
}
