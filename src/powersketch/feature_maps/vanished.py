"""Features of rows whose sketch is zero although they are not: sums of few entries can cancel.

A sketch of rows with a handful of entries, such as one-hot rows, may map a row to zero. Its norm,
which is promised, would be lost. Such a row gets a random direction of its own, the same for equal
rows: it is then as far from all others as random directions are, which is what its sketch would
have been with other signs.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, is_sparse
from powersketch.random_streams import RandomStreams


def restore_vanished(X: Rows, block: Real, norms: NDArray[np.float64], seed: int) -> None:
    """Give rows of a block of features that are all zero the norms that they should have.

    `seed` tells the blocks of a map apart.
    """
    if not block.shape[1] or block[:, 0].all():
        return
    smallest = float(np.finfo(block.dtype).tiny) * block.shape[1]
    suspects = np.flatnonzero((block[:, 0] == 0) & (norms > smallest))
    for row in suspects[~block[suspects].any(axis=1)].tolist():
        block[row] = norms[row] * random_direction(X, row, seed, block.shape[1])


def random_direction(X: Rows, row: int, seed: int, size: int) -> NDArray[np.float64]:
    """Return a vector of norm one that depends on the entries of a row."""
    signs = RandomStreams(_fingerprint(X, row), "direction").signs(str(seed), size)
    direction: NDArray[np.float64] = signs / np.sqrt(size)
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
