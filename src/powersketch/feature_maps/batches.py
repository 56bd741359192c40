"""Feeds the rows of any array to a map in batches that stay in cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, is_sparse
from powersketch.execution import Progress
from powersketch.feature_maps.row_maps import ORDINARY, RowMap

_BATCH_BYTES = 4 << 20


def batch_rows(X: Rows, size: int, threads: int) -> int:
    """Return how many rows make a batch: a few MiB, whole groups of rows for every thread.

    The larger of a row and its `size` outputs counts; a sparse row counts by its entries.
    """
    group = 32 * threads
    width: int = X.nnz // max(X.shape[0], 1) if is_sparse(X) else X.shape[1]
    rows: int = _BATCH_BYTES // (max(width, size, 1) * X.dtype.itemsize)
    return max(rows // group, 1) * group


def contiguous_batches(X: Rows, rows: int) -> Iterator[tuple[slice, Rows]]:
    """Yield slices of the rows and the rows themselves, as the kernels want them.

    Only the current batch is copied, and only if X is strided, Fortran-ordered or misaligned.
    """
    for start in range(0, X.shape[0], rows):
        part = slice(start, min(start + rows, X.shape[0]))
        block = X[part]
        yield part, block if is_sparse(X) else np.require(block, requirements=["C", "A"])


def dense_parts(X: Rows) -> Iterator[tuple[slice, Real]]:
    """Yield slices of the rows and the rows themselves, dense: a few MiB, or one row, at a time."""
    step = max(_BATCH_BYTES // (max(X.shape[1], 1) * X.dtype.itemsize), 1)
    for start in range(0, X.shape[0], step):
        part = slice(start, min(start + step, X.shape[0]))
        yield part, X[part].toarray() if is_sparse(X) else X[part]


def largest_squared_norm(X: Rows) -> float:
    """Return the largest ‖x‖² of all rows."""
    rows = batch_rows(X, 1, 1)
    largest = (
        float(routines.squared_norms(block).max()) for _, block in contiguous_batches(X, rows)
    )
    return max(largest, default=0.0)


def transform_rows(
    row_map: RowMap, X: Rows, size: int, *, threads: int, progress: Progress
) -> tuple[Real, NDArray[np.int8]]:
    """Return the features of every row of X, and how strange each row is to the map."""
    dtype: np.dtype[Any] = X.dtype
    out = np.empty((X.shape[0], size), dtype=dtype)
    strangeness = np.full(X.shape[0], ORDINARY, dtype=np.int8)
    for part, block in contiguous_batches(X, batch_rows(X, size, threads)):
        strange = row_map.write(block, out[part], threads)
        if strange is not None:
            strangeness[part] = strange
        progress.update(part.stop)
    return out, strangeness
