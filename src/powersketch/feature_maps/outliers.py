"""Keeps rows that are far from all others out of choices that concern all rows.

A fill value such as 1e20 in one row would otherwise decide where the centre of the data is, how
wide it is, and which degrees have weight, at the expense of every other row.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows, Vector, divide_or_zero, median_row
from powersketch.exceptions import FarRowWarning, warn_user
from powersketch.feature_maps.rows import column_sums, distances_from

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
