"""Rows and targets in blocks, and thresholds small enough for small data to be many rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import dask.array as da
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_USERS = (
    "kernel_ridge.fitting",
    "kernel_ridge.choosing.metric",
    "distributed.ridge",
    "distributed.ridge_rows",
    "distributed.tables",
)


def waves(rows: int, columns: int = 4, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows, and targets that depend on three columns."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, columns))
    noise = 0.1 * rng.standard_normal(rows)
    return X, np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + noise


def in_blocks(X: Any, rows: Any) -> da.Array:
    """Return an array divided into blocks of so many rows; sparse rows stay sparse."""
    if not sp.issparse(X):
        return da.from_array(X, chunks=(rows, *X.shape[1:]))
    dense = da.from_array(X.toarray(), chunks=(rows, X.shape[1]))
    return dense.map_blocks(sp.csr_array, meta=sp.csr_array((0, X.shape[1]), dtype=X.dtype))


@contextmanager
def many_rows_from(rows: int) -> Iterator[None]:
    """Let models take more rows than these for so many that they choose on a sample."""
    patches = [mock.patch(f"powersketch.{user}.MOST_CHOICE_ROWS", rows) for user in _USERS]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        mock.patch.stopall()


def relative_difference(a: Any, b: Any) -> float:
    """Return ‖a − b‖ / ‖a‖."""
    a, b = np.asarray(a), np.asarray(b)
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))
