"""What a row map is: a drawn feature map that writes the features of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, Vector, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.execution import Progress
from powersketch.random_streams import RandomStreams

# How far every row of a batch is from those that the map was made for; None if it is as good for
# all rows. Rows without a series are too long for the finite series that stands for the kernel.
Strangeness: TypeAlias = NDArray[np.int8] | None
ORDINARY, UNUSUAL, OUT_OF_RANGE, WITHOUT_SERIES = range(4)

_BATCH_BYTES = 4 << 20


class RowMap(Protocol):
    """A drawn feature map."""

    @property
    def name(self) -> str:
        """How the map came about."""

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`, all of its columns."""


def features_of(row_map: RowMap, X: Rows, size: int, threads: int = 1) -> Real:
    """Return the features of rows that are no more than a batch."""
    Z = np.empty((X.shape[0], size), dtype=X.dtype)
    row_map.write(X, Z, threads)
    return Z


def batch_rows(X: Rows, size: int, threads: int) -> int:
    """Return how many rows make a batch: a few MiB, whole groups of rows for every thread.

    The larger of a row and its `size` outputs counts; a sparse row counts by its entries.
    """
    group = 32 * threads
    width: int = X.nnz // max(X.shape[0], 1) if is_sparse(X) else X.shape[1]
    rows: int = _BATCH_BYTES // (max(width, size, 1) * X.dtype.itemsize)
    return max(rows // group, 1) * group


def contiguous_batches(X: Rows, size: int = 1, threads: int = 1) -> Iterator[tuple[slice, Rows]]:
    """Yield slices of the rows and the rows themselves, laid out as compiled routines need them.

    Only the current batch is copied, and only if X is strided, Fortran-ordered or misaligned.
    """
    dense = isinstance(X, np.ndarray)
    for part in slices(X.shape[0], batch_rows(X, size, threads)):
        block = X[part]
        yield part, np.require(block, requirements=["C", "A"]) if dense else block


def dense_parts(X: Rows) -> Iterator[tuple[slice, Real]]:
    """Yield slices of the rows and the rows themselves, dense: a few MiB, or one row, at a time."""
    step = max(_BATCH_BYTES // (max(X.shape[1], 1) * X.dtype.itemsize), 1)
    for part in slices(X.shape[0], step):
        yield part, X[part].toarray() if is_sparse(X) else X[part]


def write_batches(
    row_map: RowMap, X: Rows, out: Real, threads: int, progress: Progress | None = None
) -> NDArray[np.int8]:
    """Write the features of any number of rows into `out`; return how strange each row is."""
    strangeness = np.zeros(X.shape[0], dtype=np.int8)
    for part, block in contiguous_batches(X, out.shape[1], threads):
        strange = row_map.write(block, out[part], threads)
        if strange is not None:
            strangeness[part] = strange
        if progress is not None:
            progress.update(part.stop)
    return strangeness


def overflow_error(dtype: object) -> ValueError:
    """Return the error for features of the literal sketch that exceed the dtype."""
    return InputError(
        f"the sketched features overflow {dtype}: without norm preservation the sketch's norm "
        "error is raised to the degree. Use norm_preserving=True, more n_components, or float64."
    )


# A sketch of rows with a handful of entries, such as one-hot rows, may map a row to zero because
# the entries cancel. Its norm, which is promised, would be lost. Such a row gets a random direction
# of its own, the same for equal rows: it is then as far from all others as random directions are,
# which is what its sketch would have been with other signs.


def restore_vanished(X: Rows, block: Real, norms: Vector, seed: int) -> None:
    """Give rows of a block of features that are all zero the norms that they should have.

    `seed` tells the blocks of a map apart.
    """
    if not block.shape[1] or block[:, 0].all():
        return
    smallest = float(np.finfo(block.dtype).tiny) * block.shape[1]
    suspects = np.flatnonzero((block[:, 0] == 0) & (norms > smallest))
    for row in suspects[~block[suspects].any(axis=1)].tolist():
        block[row] = norms[row] * random_direction(X, row, seed, block.shape[1])


def random_direction(X: Rows, row: int, seed: int, size: int) -> Vector:
    """Return a vector of norm one that depends on the entries of a row."""
    signs = RandomStreams(_fingerprint(X, row), "direction").signs(str(seed), size)
    direction: Vector = signs / np.sqrt(size)
    return direction


def _fingerprint(X: Rows, row: int) -> int:
    """Return a number that depends on the non-zero entries of a row only."""
    if is_sparse(X):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = X.indices[entries], X.data[entries]
        order = np.argsort(columns, kind="stable")
        columns, values = columns[order], values[order]
        columns, values = columns[values != 0], values[values != 0]
    else:
        columns = np.flatnonzero(X[row])
        values = X[row, columns]
    digest = hashlib.blake2b(columns.astype("<i8").tobytes(), digest_size=8)
    digest.update(values.astype("<f8").tobytes())
    return int.from_bytes(digest.digest(), "little") >> 1
