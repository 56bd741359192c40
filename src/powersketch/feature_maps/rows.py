"""Rows on their way into a map: batches that stay in cache, sums over rows, and refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from sklearn.utils import assert_all_finite

from powersketch import routines
from powersketch.arrays import Real, Rows, Vector, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.powers import Scaled

_BATCH_BYTES = 4 << 20


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


def take_rows(X: Rows, chosen: Real) -> Rows:
    """Return some of the rows, contiguous in memory."""
    taken = X[chosen]
    return np.ascontiguousarray(taken) if isinstance(X, np.ndarray) else taken


def largest_squared_norm(X: Rows) -> float:
    """Return the largest ‖x‖² of all rows."""
    batches = contiguous_batches(X)
    return max((float(routines.squared_norms(block).max()) for _, block in batches), default=0.0)


def distances_from(X: Rows, centre: Vector) -> Vector:
    """Return the distance of every row from the centre; infinite if it exceeds float64."""
    squared_length = float(routines.row_moments(centre[None, :], centre)[0][0])
    distances = np.empty(X.shape[0])
    for part, block in contiguous_batches(X):
        squares, dots = routines.row_moments(block, centre)
        with np.errstate(over="ignore", invalid="ignore"):
            differences = squares - 2.0 * dots + squared_length
        distances[part] = np.where(np.isfinite(squares), differences, np.inf)
    return np.sqrt(np.maximum(distances, 0.0))


def column_sums(X: Rows, weights: Vector, *, squared: bool = False) -> Vector:
    """Return Σ_i weights[i] · x_i (or x_i²) in double precision, rows added in their order.

    Dense and sparse rows give the same bits, and so does every machine: no BLAS.
    """
    total, dense = np.zeros(X.shape[1]), isinstance(X, np.ndarray)
    for start in range(0, X.shape[0], 64):
        block, factor = X[start : start + 64].astype(np.float64), weights[start : start + 64]
        if squared:
            block = block * block if dense else block.multiply(block).tocsr()
        if dense:
            # A reduction may add pairwise where it runs along memory; an accumulation may not.
            total += np.add.accumulate(block * factor[:, None], axis=0)[-1]
        else:
            total += block.T @ factor
    return total


# The norms tell whether the entries of rows are finite and their kernel values within the dtype:
# no pass over the data is needed for it.


def check_power(X: Rows, squared_norms: Vector, degree: int) -> None:
    """Refuse rows for which (gamma ‖x‖² + coef0)^degree overflows the dtype of X."""
    largest = float(squared_norms.max(initial=0.0))
    limit = float(np.finfo(X.dtype).max)
    if largest <= 1.0:
        return
    # Logarithms decide where it is clear, and products where rounding errors might.
    if math.isfinite(largest) and (
        degree * math.log2(largest) < math.log2(limit) - 1.0
        or Scaled.of(np.array(largest)).power(degree).to_float() <= limit
    ):
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        f"the kernel value overflows {X.dtype}: the largest gamma * ||x||^2 + coef0 is "
        f"{largest:.6g}, and its power {degree} exceeds {limit:.3g}. "
        f"Scale the rows of X (for instance to unit norm) or lower gamma{_wider(X)}."
    )


def check_norms(X: Rows, squared_norms: Vector) -> None:
    """Refuse rows whose squared norms are not finite."""
    if math.isfinite(squared_norms.max(initial=0.0)):
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        "the squared norm of a row exceeds the largest float64, "
        f"{np.finfo(np.float64).max:.3g}: scale the rows of X."
    )


def check_values(X: Rows, values: Vector) -> None:
    """Refuse rows whose value of the kernel with themselves overflows the dtype of X."""
    largest, limit = float(values.max(initial=0.0)), float(np.finfo(X.dtype).max)
    if largest <= limit:
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        f"the kernel value overflows {X.dtype}: the largest k(x, x) is {largest:.6g}, above "
        f"{limit:.3g}. Scale the rows of X{_wider(X)}."
    )


def _wider(X: Rows) -> str:
    return "" if X.dtype == np.float64 else ", or pass X as float64"
