"""A few rows of a kernel matrix times vectors, for rows of X that are very long."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, is_sparse
from powersketch.execution import thread_count
from powersketch.kernel_systems.centring import shifted, useful_shift
from powersketch.kernels import Kernel

# Large, as the sample is rearranged for every product.
_BATCH_BYTES = 256 << 20
# How far inner products in float32 may be off, in units of its epsilon and of both norms.
_ROUNDINGS = 8.0


def diagonal_entries(kernel: Kernel, X: Rows, n_jobs: int | None) -> NDArray[np.float64]:
    """Return the diagonal of the kernel matrix in float64, from one pass over X.

    A kernel of this package depends on norms there, so that rows of one entry have the same.
    """
    squares, threads = np.empty(X.shape[0]), thread_count(n_jobs)
    for rows in _batches(X, threads):
        batch = X[rows] if is_sparse(X) else np.ascontiguousarray(X[rows])
        squares[rows] = routines.squared_norms(batch, threads=threads)
    return kernel.diagonal(np.sqrt(squares)[:, np.newaxis]).astype(np.float64, copy=False)


def sampled_products(
    kernel: Kernel, X: Rows, V: NDArray[np.float64], chosen: NDArray[np.int64], n_jobs: int | None
) -> NDArray[np.float64]:
    """Return k(X[chosen], X) @ V at float64 accuracy."""
    products = kernel.product(X[chosen], V, X, n_jobs=n_jobs)
    return products.astype(np.float64, copy=False)


def rounded_products(
    kernel: Kernel, X: Rows, V: NDArray[np.float64], chosen: NDArray[np.int64], n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return k(X[chosen], X) @ V from inner products in float32, and how far off it is about.

    Nothing where that would save no time: for rows that are sparse, short, or float64.
    """
    if is_sparse(X) or X.dtype != np.float32 or X.shape[1] <= 4 * chosen.size:
        return None
    products, squares = _inner_products(X, chosen, useful_shift(kernel, X), thread_count(n_jobs))
    roundings = _ROUNDINGS * float(np.finfo(np.float32).eps)
    changed = products - roundings * np.sqrt(np.outer(squares[chosen], squares))
    K, other = (
        kernel.from_inner_products(entries, squares[chosen], squares, n_jobs=n_jobs)
        for entries in (products, changed)
    )
    return K @ V, np.sqrt((K - other) ** 2 @ V**2)


def _inner_products(
    X: Real, chosen: NDArray[np.int64], shift: Real | None, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return inner products of the chosen rows with all, and all squared norms."""
    products, squares = np.empty((chosen.size, X.shape[0])), np.empty(X.shape[0])
    sample = shifted(X[chosen], shift)
    for rows in _batches(X, threads):
        part = np.ascontiguousarray(shifted(X[rows], shift))
        products[:, rows] = sample @ part.T
        squares[rows] = routines.squared_norms(part, threads=threads)
    return products, squares


def _batches(X: Rows, threads: int) -> Iterator[slice]:
    step = max(_BATCH_BYTES // (X.shape[1] * X.dtype.itemsize), threads)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))
