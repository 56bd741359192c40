"""A few rows of a kernel matrix times vectors, for rows of X that are very long."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from powersketch.kernel_systems.centring import shifted, useful_shift
from powersketch.kernels import Kernel
from powersketch.native import Real, Rows, is_sparse

# Columns of X that are multiplied at a time; their sums are added in float64.
_COLUMNS = 2048
# In units of the largest eigenvalue: below this, products in float32 lose too much of a direction,
_SMALLEST_OF_FLOAT32 = 1e-4
# and below this there are rounding errors of float64 only.
_SMALLEST_OF_FLOAT64 = 1e-14


def sampled_products(
    kernel: Kernel, X: Rows, V: NDArray[np.float64], chosen: NDArray[np.int64], n_jobs: int | None
) -> NDArray[np.float64]:
    """Return k(X[chosen], X) @ V.

    Long rows are first replaced by short ones with the same norms, and with the same inner products
    with the chosen rows: their coordinates in the space of the chosen ones, and the length of the
    rest. Long inner products are then computed once only, and in float32 where that suffices.
    """
    if not is_sparse(X) and X.shape[1] > 4 * chosen.size:
        X = _short_rows(X, chosen, useful_shift(kernel, X))
    products = kernel.product(X[chosen], V, X, n_jobs=n_jobs)
    return products.astype(np.float64, copy=False)


def _short_rows(X: Real, chosen: NDArray[np.int64], shift: Real | None) -> NDArray[np.float64]:
    products, squares, values, vectors = _decomposed(X, chosen, shift, X.dtype)
    if X.dtype == np.float32 and values[0] < _SMALLEST_OF_FLOAT32 * values[-1]:
        products, squares, values, vectors = _decomposed(X, chosen, shift, np.float64)
    kept = values > _SMALLEST_OF_FLOAT64 * values[-1]
    coordinates = products @ (vectors[:, kept] / np.sqrt(values[kept]))
    rest = squares - np.einsum("ij,ij->i", coordinates, coordinates)
    rest[chosen] = 0.0
    return np.column_stack((coordinates, np.sqrt(np.maximum(rest, 0.0))))


def _decomposed(
    X: Real, chosen: NDArray[np.int64], shift: Real | None, dtype: DTypeLike
) -> tuple[NDArray[np.float64], ...]:
    """Return inner products with the chosen rows, squared norms, and the chosen rows' spectrum."""
    products = np.zeros((X.shape[0], chosen.size))
    squares = np.zeros(X.shape[0])
    for start in range(0, X.shape[1], _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        part = shifted(X[:, columns], None if shift is None else shift[columns])
        part = part.astype(dtype, copy=False)
        products += part @ part[chosen].T
        squares += np.einsum("ij,ij->i", part, part)
    core = products[chosen]
    return products, squares, *np.linalg.eigh(0.5 * (core + core.T))
