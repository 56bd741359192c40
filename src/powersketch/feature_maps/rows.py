"""Rows on their way into a map: batches, sums, refusals, and rows far from all others.

A fill value such as 1e20 in one row would decide where the centre of the data is, how wide it is,
and which degrees have weight: such rows are kept out of choices that concern all rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from powersketch import routines
from powersketch.arrays import Real, Rows, Vector, divide_or_zero, is_sparse, median_row, slices
from powersketch.exceptions import FarRowWarning, InputError, warn_user
from powersketch.powers import Scaled

_BATCH_BYTES = 4 << 20
# In units of a typical distance from the centre. Rows beyond the first limit pull at the mean no
# more than rows at it; those beyond the second are left out of all choices, with a warning.
_FAR = 4.0
_ABSURD = 300.0
DO_NOT_COUNT = (
    "They do not count where fit makes a choice for all rows, so that the features of all others "
    "are as good as without them."
)
_FEWEST_ROWS = 5  # in fewer, nothing tells an outlier from the others
_MOST_NAMED = 3
_LONG = 2.0  # typical lengths: from there on, a row is a long one
_LARGEST_RATIO = 1e150  # of norms, whose squares are numbers, too
# No long row of a sample of many has a larger share in a choice.
_LARGEST_SHARE = 1 / 32
_LARGEST_SHARE_OF_FEW = 4  # rows' worth


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


def without_rows(X: Rows, left_out: NDArray[np.intp]) -> Rows:
    """Return the other rows; X itself, and no copy, if none is left out."""
    return X[np.delete(np.arange(X.shape[0]), left_out)] if left_out.size else X


def absurd_rows(X: Rows) -> NDArray[np.intp]:
    """Return the rows that are absurdly far from all others; a warning names them."""
    absurd, ratios = absurd_distances(X)
    if absurd.size:
        warn_of_far_rows(absurd, ratios, DO_NOT_COUNT)
    return absurd


def absurd_distances(X: Rows) -> tuple[NDArray[np.intp], Vector]:
    """Return the absurd rows, and how many times as far from the centre as is typical they are."""
    if X.shape[0] < _FEWEST_ROWS:
        return np.empty(0, dtype=np.intp), np.empty(0)
    distances = distances_from(X, median_row(X))
    absurd = outlying(distances, _ABSURD)
    return absurd, distances[absurd] / _typical_size(distances)


def outlying(sizes: Vector, factor: float) -> NDArray[np.intp]:
    """Return which sizes are more than `factor` times a typical one."""
    return np.flatnonzero(sizes > factor * _typical_size(sizes))


def central_row(X: Rows, weights: Vector | None = None) -> Vector:
    """Return the weighted mean row, in which far rows count as if they were nearer."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    distances = distances_from(X, median_row(X))
    limit = _FAR * _typical_size(distances)
    far = distances > limit
    if far.any() and not far.all():
        weights = weights * np.where(far, limit / np.where(far, distances, 1.0), 1.0)
    return column_sums(X, weights / math.fsum(weights))


def fair_shares(norms: Vector, lengths: Vector) -> tuple[Vector, Vector]:
    """Return squares of feature norms with those of long rows limited, and what limits the norms.

    The squares are relative to the largest of the other rows, however much larger the norms of a
    few long rows are; the factors are one for all but these.
    """
    large = outlying(lengths, _LONG)
    # Where all other rows have norm zero, the long ones are all there is.
    unit = float(np.delete(norms, large).max(initial=0.0)) or float(norms.max(initial=0.0)) or 1.0
    with np.errstate(over="ignore"):
        relative = np.minimum(norms / unit, _LARGEST_RATIO)
    squares = np.minimum(capped(np.square(relative), lengths), len(norms))
    factors = np.ones_like(norms)
    factors[large] = np.minimum(divide_or_zero(np.sqrt(squares[large]), relative[large]), 1.0)
    return squares, factors


def capped(weights: Vector, sizes: Vector) -> Vector:
    """Return the weights; those of rows of outlying size are no more than a small share of all.

    Where weights grow steeply with sizes, ordinary rows may differ by far more: these are left.
    """
    large = outlying(sizes, _LONG)
    if not large.size:
        return weights
    share = max(_LARGEST_SHARE, _LARGEST_SHARE_OF_FEW / len(weights))
    descending = -np.sort(-weights)
    for count in range(math.ceil(1.0 / share)):
        # With `count` weights at the limit, it is this share of them and of the rest.
        limit = share * math.fsum(descending[count:]) / (1.0 - share * count)
        if count == len(weights) or descending[count] <= limit:
            break
    limited = weights.copy()
    limited[large] = np.minimum(weights[large], limit)
    return limited


def _typical_size(sizes: Vector) -> float:
    """Return the upper quartile of the sizes above zero; infinite if there are none.

    Where more than a quarter of the rows are larger, they are not outliers: the data is like that.
    """
    positive = np.sort(sizes[sizes > 0.0])
    return float(positive[3 * (len(positive) - 1) // 4]) if len(positive) else math.inf


def warn_of_far_rows(numbers: NDArray[np.intp], ratios: Vector, fate: str) -> None:
    """Name rows that are absurdly far from all others, and say what became of them."""
    pairs = zip(numbers[:_MOST_NAMED].tolist(), ratios[:_MOST_NAMED].tolist(), strict=True)
    named = ", ".join(f"row {number} ({ratio:.3g} times)" for number, ratio in pairs)
    more = f" and {len(numbers) - _MOST_NAMED} more" if len(numbers) > _MOST_NAMED else ""
    warn_user(
        f"X has {len(numbers)} row(s) absurdly far from the centre, compared with the typical "
        f"distance: {named}{more}. {fate} Remove or correct such rows; impute fill values.",
        FarRowWarning,
    )
