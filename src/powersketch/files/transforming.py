"""Features of rows from a file to a file: memory for a few blocks, whatever the sizes of both."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from copy import copy
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from powersketch.arrays import Real, Rows
from powersketch.exceptions import InputError, RangeWarning, held_back, warn_of_blocks
from powersketch.execution import thread_count
from powersketch.files.outputs import check_outputs
from powersketch.files.rows import errors_that_name, first_not_finite
from powersketch.files.sinks import Sink, open_sink
from powersketch.files.sources import RowSource
from powersketch.files.text_tables import column_label
from powersketch.files.unbuffered import aligned_empty, whole_page_rows
from powersketch.validation import checked_dtype

# Of a block of rows, the number of its first row, and an array to write to if that can be done.
Transform: TypeAlias = Callable[[Rows, int, Real], Real]

_BLOCK_BYTES = 16 << 20  # of rows and features together
_MOST_ROWS = 1 << 16


def transform_file(
    feature_map: Any,
    source: RowSource,
    path: str | os.PathLike[str],
    *,
    dtype: Any = None,
    resume: bool = False,
    run: str = "",
    progress: Callable[[int, int | None], None] | None = None,
) -> tuple[int, int]:
    """Write the features of all rows of a source to a file.

    While a block is transformed, the next one is read and the last one written, past the system's
    cache of files where that is possible. Blocks are the same in every run, so that a run that was
    interrupted and resumed gives the same bits.

    Parameters
    ----------
    feature_map : transformer
        Fitted, with ``transform`` and dense features.
    source : RowSource
        What :func:`open_rows` returns.
    path : str or path
        A .npy, .npz, .parquet or .zarr file, which appears under its name when it is complete.
    dtype : {"float32", "float64"} or None, default=None
        The type that rows are converted to before; None leaves them as they are.
    resume : bool, default=False
        Whether to go on where an earlier run was interrupted; if there is none, a run starts.
    run : str, default=""
        What tells the map from others, such as its parameters and its seed, or the checksum of its
        file: only a run of the same map on the same file is resumed.
    progress : callable or None, default=None
        Called with the number of rows that are done, and of all of them or None.

    Returns
    -------
    shape : tuple of int
        The numbers of rows and features written.
    """
    check_outputs([source.path], [Path(path)] if not Path(path).is_dir() else [])
    kind = None if dtype is None else checked_dtype(dtype)
    features = _features(feature_map, source.first(1), kind, source.path, 0)
    height = _block_rows(source, features, kind)
    same = _run_of(run, source, height, features)
    shape = (source.shape[0], features.shape[1])
    alone, threads = _with_one_thread(feature_map)
    with open_sink(path, shape, features.dtype, run=same, resume=resume) as sink:
        stream = _Stream(source, sink, height, threads, progress)
        stream.run(
            lambda block, start, out: _features(alone, block, kind, source.path, start, out),
            ((height, shape[1]), features.dtype),
        )
        sink.commit()
    stream.warn()
    return sink.rows, shape[1]


def _with_one_thread(feature_map: Any) -> tuple[Any, int]:
    """Return a map that uses one thread, and how many of it may be used at a time."""
    threads = thread_count(getattr(feature_map, "n_jobs", None))
    if threads == 1 or not hasattr(feature_map, "transform_into"):
        return feature_map, 1
    alone = copy(feature_map)
    alone.n_jobs = 1
    return alone, threads


class _Stream:
    """Workers, each of which reads a block, transforms it and writes its features, again and again.

    Blocks are read in their order, one at a time. As many are transformed at a time as there are
    threads for it; there is one worker more, for what is read and written meanwhile.
    """

    def __init__(
        self,
        source: RowSource,
        sink: Sink,
        height: int,
        threads: int,
        progress: Callable[[int, int | None], None] | None,
    ) -> None:
        self._source, self._sink, self._progress = source, sink, progress
        self._blocks, self._height = source.blocks(height, sink.rows), height
        self._next = self._done = sink.rows
        self._workers, self._transforming = threads + 1, threading.Semaphore(threads)
        self._reading, self._reporting = threading.Lock(), threading.Lock()
        # By the row where their blocks begin.
        self._errors: dict[int, BaseException] = {}
        self._warnings: dict[int, str] = {}

    def run(self, transform: Transform, output: tuple[tuple[int, int], np.dtype[Any]]) -> None:
        """Transform all blocks that are left; of several errors, the first in the file counts."""
        stop = threading.Event()
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                work = [
                    pool.submit(self._work, transform, aligned_empty(*output), stop)
                    for _ in range(self._workers)
                ]
                wait(work)
            finally:
                stop.set()
        if self._errors:
            raise self._errors[min(self._errors)]

    def _work(self, transform: Transform, out: Real, stop: threading.Event) -> None:
        while not stop.is_set():
            start = self._next
            try:
                with self._reading, errors_that_name(self._source.path):
                    start, block = self._next, next(self._blocks, None)
                    self._next += self._height
                if block is None:
                    return
                with self._transforming, held_back(RangeWarning) as messages:
                    features = transform(block, start, out)
                self._sink.write(features, start)
                self._report(start, len(features), messages)
            except BaseException as error:
                # Whatever it is, the thread that waits raises it again. Blocks before this one are
                # still in work; those after it are not begun.
                self._errors[start] = error
                stop.set()

    def _report(self, start: int, count: int, messages: list[str]) -> None:
        with self._reporting:
            self._done += count
            if messages:
                self._warnings[start] = messages[0]
            if self._progress is not None:
                self._progress(self._done, self._source.shape[0])

    def warn(self) -> None:
        """Pass on what maps had to say about the rows: once, not for every block."""
        said = sorted(self._warnings.items())
        messages = [f"From row {start + 1} on: {message}" for start, message in said]
        warn_of_blocks(messages, RangeWarning)


def _features(
    feature_map: Any,
    block: Rows,
    kind: np.dtype[Any] | None,
    path: Path,
    start: int,
    out: Real | None = None,
) -> Real:
    """Return the features of a block, or say which entry of the file they cannot be had for."""
    rows = block if kind is None else block.astype(kind, copy=False)
    try:
        # Memory that is used again need not be fetched from the system anew.
        if out is not None and hasattr(feature_map, "transform_into"):
            return np.asarray(feature_map.transform_into(rows, out[: rows.shape[0]]))
        return np.asarray(feature_map.transform(rows))
    except ValueError as error:
        place = first_not_finite(rows)
        if place is None:
            raise
        raise InputError(
            f"{path.name}, row {start + place[0] + 1}, {column_label(None, place[1])}: NaN or "
            "infinity is not finite; remove the row, or fill the entry."
        ) from error


def _block_rows(source: RowSource, features: Real, kind: np.dtype[Any] | None) -> int:
    """Return how many rows are taken at a time; it depends on the sizes of both files only."""
    entry = (source.dtype if kind is None else kind).itemsize
    beside = features.shape[1] * features.itemsize
    row = beside if source.is_sparse else source.shape[1] * entry + beside
    rows = int(np.clip(_BLOCK_BYTES // max(row, 1), 1, _MOST_ROWS))
    unit = whole_page_rows(beside)
    return rows if rows < unit else rows - rows % unit


def _run_of(run: str, source: RowSource, height: int, features: Real) -> str:
    """Return a text that differs where a run would write other bits, or blocks of other rows."""
    status = source.path.stat()
    facts = (
        version("powersketch"),
        run,
        str(source.path.absolute()),
        *(status.st_size, status.st_mtime_ns, source.shape, str(source.dtype)),
        *(height, features.shape[1], str(features.dtype)),
        hashlib.sha256(features.tobytes()).hexdigest(),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()
