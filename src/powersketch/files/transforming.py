"""Features of rows from a file to a file: memory for a few blocks, whatever the sizes of both."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from powersketch.arrays import Real, Rows
from powersketch.exceptions import InputError
from powersketch.files.outputs import check_outputs
from powersketch.files.rows import errors_that_name, first_not_finite
from powersketch.files.sinks import open_sink
from powersketch.files.sources import RowSource
from powersketch.files.text_tables import column_label
from powersketch.validation import checked_dtype

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

    While a block is transformed, the next one is read and the last one written. Blocks are the
    same in every run, so that a run that was interrupted and resumed gives the same bits.

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
    first = next(source.blocks(1), None)
    if first is None or not source.shape[1]:
        raise InputError(f"{source.path.name} has no rows or no columns; at least one is needed.")
    features = _features(feature_map, first, kind, source.path, 0)
    height = _block_rows(source, features, kind)
    same = _run_of(run, source, height, features)
    shape = (source.shape[0], features.shape[1])
    with open_sink(path, shape, features.dtype, run=same, resume=resume) as sink:
        with ThreadPoolExecutor(2) as pool:
            writing: Future[None] | None = None
            done = sink.rows
            # One is filled while the other one is written.
            outputs = cycle([np.empty((height, shape[1]), features.dtype) for _ in range(2)])
            for block in _ahead(pool, source, height, done):
                features = _features(feature_map, block, kind, source.path, done, next(outputs))
                done += len(features)
                if writing is not None:
                    writing.result()
                writing = pool.submit(sink.write, features)
                if progress is not None:
                    progress(done, source.shape[0])
            if writing is not None:
                writing.result()
        sink.commit()
    return done, shape[1]


def _ahead(pool: ThreadPoolExecutor, source: RowSource, rows: int, start: int) -> Iterator[Rows]:
    """Yield blocks, each of which was read while the one before was in use."""
    with errors_that_name(source.path):
        blocks = source.blocks(rows, start)
        following = pool.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = pool.submit(next, blocks, None)
            yield block


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
    return int(np.clip(_BLOCK_BYTES // max(row, 1), 1, _MOST_ROWS))


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
