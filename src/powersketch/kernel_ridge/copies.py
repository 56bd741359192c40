"""Rows that come more than once, as one row of a larger weight.

A copy that stays behind would tell the target of a row that is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.arrays import Real, Rows, is_sparse, slices
from powersketch.kernel_ridge.training_rows import TrainingRows

Words = NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_BLOCK_ENTRIES = 1 << 21


def without_copies(rows: TrainingRows) -> TrainingRows:
    """Return every row once, with the weights of its copies added to its own.

    Rows are copies if their targets are equal, too, and no equal row has another target: else they
    are observations of the same point, each of which says something of its own.
    """
    first = _first_equal(rows)
    copied = np.flatnonzero(first != np.arange(rows.count))
    if not copied.size:
        return rows
    weights = np.bincount(first, rows.weights, minlength=rows.count).astype(np.float64)
    return TrainingRows(rows.X, rows.targets, weights, rows.numbers).without(copied)


def _first_equal(rows: TrainingRows) -> NDArray[np.intp]:
    """Return for every row the first one that it is a copy of, which may be itself."""
    hashes = _hashes(rows.X)
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
    groups = np.repeat(np.arange(starts.size), np.diff(starts, append=order.size))
    heads = order[starts[groups]]
    others = np.flatnonzero(order != heads)
    left, right = order[others], heads[others]
    targets = rows.targets.reshape(rows.count, -1)
    equal = _equal(rows.X, left, right) & (targets[left] == targets[right]).all(axis=1)
    mixed = np.isin(groups[others], groups[others][~equal])
    first = np.arange(rows.count)
    first[left[~mixed]] = right[~mixed]
    return first


def _equal(X: Rows, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.bool_]:
    if is_sparse(X):
        differences = abs(X[left] - X[right])
        return np.asarray(np.ravel(differences.sum(axis=1)) == 0.0)
    return np.asarray((X[left] == X[right]).all(axis=1))


def _hashes(X: Rows) -> Words:
    """Return a word for every row; those of equal rows are equal, and hardly any others."""
    factors = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if is_sparse(X):
        words = _words(X.data) * factors[X.indices]
        ones = np.ones(X.shape[1], dtype=np.uint64)
        return np.asarray(sparse.csr_array((words, X.indices, X.indptr), shape=X.shape) @ ones)
    parts = slices(X.shape[0], max(_BLOCK_ENTRIES // max(X.shape[1], 1), 1))
    return np.concatenate([_words(X[part]) @ factors for part in parts])


def _words(entries: Real) -> Words:
    """Return the bits of numbers, mixed; zero for both zeros."""
    bits = np.ascontiguousarray(entries + entries.dtype.type(0.0)).view(
        np.uint64 if entries.dtype.itemsize == 8 else np.uint32
    )
    return _mixed(bits.astype(np.uint64))


def _mixed(words: Words) -> Words:
    words = words * _ODD
    return words ^ (words >> _SHIFT)
