"""Choices for all rows: the pilot that they are made on, and rows that must not decide them.

A fill value such as 1e20 in one row would decide where the centre of the data is, how wide it is,
and which degrees have weight: such rows are kept out of choices that concern all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, Vector, divide_or_zero
from powersketch.exceptions import FarRowWarning, RangeWarning, warn_user
from powersketch.feature_maps.maps import (
    OUT_OF_RANGE,
    UNUSUAL,
    WITHOUT_SERIES,
    RowMap,
    features_of,
)
from powersketch.kernels import median_row
from powersketch.random_streams import RandomStreams

Map = TypeVar("Map", bound=RowMap)

PILOT_ROWS = 512
# A costlier map must be clearly better, not better by the chance of the pilot.
_WORTHWHILE_GAIN = 0.97
_WORSE = 1.3  # a little less than what users are promised: only some rows are measured
_NEGLIGIBLE = 1e-4  # norms of features beside those of others: errors of such rows do not count
_FEWEST_MEASURED, _MOST_MEASURED = 8, 64
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


class Pilot:
    """Rows that choices for all rows are made from."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.squared_norms = rows, routines.squared_norms(rows)

    @classmethod
    def of(cls, X: Rows, streams: RandomStreams, count: int = PILOT_ROWS) -> Pilot:
        """Draw a random sample of the rows in their order, all of them if they are few."""
        chosen: NDArray[np.int64] = np.arange(X.shape[0])
        if X.shape[0] > count:
            chosen = np.sort(streams.sample("pilot", X.shape[0], count))
        return cls(_taken(X, chosen))

    def fair_shares(self, norms: Vector) -> tuple[Vector, Vector]:
        """Return what :func:`fair_shares` makes of the norms of the rows' features."""
        return fair_shares(norms, np.sqrt(self.squared_norms))

    def relative_errors(self, maps: Sequence[RowMap], size: int, K: Real) -> list[float]:
        """Return ‖Z Zᵀ − K‖_F / ‖K‖_F of every map, both divided by the largest entry of K first.

        Rows of large norm are scaled down before, where they are so few that no other row would
        count.
        """
        _, factors = self.fair_shares(np.sqrt(np.maximum(K.diagonal(), 0.0)))
        K = K * factors[:, None] * factors
        largest = float(np.max(np.abs(K)))
        exact = K / largest if largest else K
        errors = []
        for row_map in maps:
            features = np.empty((len(factors), size), dtype=self.rows.dtype)
            row_map.write(self.rows, features, 1)
            Z = features.astype(np.float64) * factors[:, None]
            if largest == 0:
                errors.append(float(np.linalg.norm(Z)))
                continue
            Z = Z / np.sqrt(largest)
            errors.append(float(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact)))
        return errors

    def best_map(self, maps: Sequence[Map], size: int, kernel: Callable[[Rows], Real]) -> Map:
        """Return the map with the least error; earlier ones win near draws."""
        if len(maps) == 1:
            return maps[0]
        errors = self.relative_errors(maps, size, kernel(self.rows).astype(np.float64))
        best, best_error = maps[0], errors[0]
        for candidate, error in zip(maps[1:], errors[1:], strict=True):
            if error < _WORTHWHILE_GAIN * best_error:
                best, best_error = candidate, error
        return best


def _taken(X: Rows, chosen: NDArray[np.int64]) -> Rows:
    """Return some of the rows, contiguous in memory."""
    taken = X[chosen]
    return np.ascontiguousarray(taken) if isinstance(X, np.ndarray) else taken


def check_range(
    X: Rows,
    Z: Real,
    strangeness: NDArray[np.int8],
    kernel: Callable[[Rows], Real],
    safe_map: RowMap | None,
    remedy: str,
) -> None:
    """Warn of rows so unlike those given to fit that the safe map would be clearly better.

    Both are measured on some of the rows, if there are enough for it.
    """
    strange = strangeness >= OUT_OF_RANGE
    too_long = bool(np.any(strangeness == WITHOUT_SERIES))
    measurable = safe_map is not None and X.shape[0] >= _FEWEST_MEASURED
    if not strange.any():
        if not measurable or 2 * np.count_nonzero(strangeness >= UNUSUAL) <= X.shape[0]:
            return
        strange[:] = True
    figures = ""
    if safe_map is not None and measurable and not too_long:
        error, safe_error = _measured_errors(X, Z, strange, kernel, safe_map)
        if not error > _WORSE * safe_error:
            return
        figures = f", a relative error of {error:.2g} instead of {safe_error:.2g} for some of them"
    rows = np.flatnonzero(strange)
    warn_user(
        f"{len(rows)} of {X.shape[0]} rows, the first of them row {rows[0]}, are so unlike the "
        f"rows given to fit that their features are not accurate{figures}: fit on rows like these"
        f"{'' if too_long else f', or use {remedy}'}.",
        RangeWarning,
    )


def _measured_errors(
    X: Rows,
    Z: Real,
    strange: NDArray[np.bool_],
    kernel: Callable[[Rows], Real],
    safe_map: RowMap,
) -> tuple[float, float]:
    """Return the errors in the kernel of some strange rows with these and with others."""
    first = _spread(np.flatnonzero(strange), _MOST_MEASURED)
    others = _spread(np.flatnonzero(~strange), _MOST_MEASURED - len(first))
    chosen = np.concatenate([first, others])
    rows = _taken(X, chosen)
    K = kernel(rows).astype(np.float64)
    features = Z[chosen], features_of(safe_map, rows, Z.shape[1])
    root = np.sqrt(max(float(np.max(K.diagonal())), np.finfo(np.float64).tiny))
    norms = np.sqrt(K.diagonal())
    if float(norms[: len(first)].max()) <= _NEGLIGIBLE * float(norms.max()):
        return 0.0, 0.0
    # As they are, and all of norm one: the former is what users measure, the latter what they mean.
    scales = np.full_like(norms, 1.0 / root), divide_or_zero(1.0, norms)
    pairs = [_errors(features, K, scale[:, None], len(first)) for scale in scales]
    return max(pairs, key=lambda pair: pair[0] / max(pair[1], np.finfo(np.float64).tiny))


def _errors(features: tuple[Real, Real], K: Real, scale: Real, count: int) -> tuple[float, float]:
    # Of the smallest numbers nothing can be said: their errors are not comparable, either.
    with np.errstate(over="ignore", invalid="ignore"):
        K = scale * K * scale.T
        size = float(np.linalg.norm(K[:count])) or 1.0
        chosen, safe = (
            float(np.linalg.norm((scale * Z @ (scale * Z).T - K)[:count])) for Z in features
        )
        return chosen / size, safe / size


def _spread(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return at most this many of the rows, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64)]


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
    centre = median_row(X)
    distances = distances_from(centre, X)
    return TypicalRows(centre, _typical_size(distances)).absurdly_far(distances)


@dataclass(frozen=True, eq=False)
class TypicalRows:
    """Where rows are: their median, and a typical distance from it."""

    centre: Vector
    distance: float

    @classmethod
    def of(cls, X: Rows) -> Self:
        """Look at some rows; others can be compared with them."""
        centre = median_row(X)
        return cls(centre, _typical_size(distances_from(centre, X)))

    def absurd(self, X: Rows) -> tuple[NDArray[np.intp], Vector]:
        """Return rows that are absurdly far away, and how many times the typical distance."""
        return self.absurdly_far(distances_from(self.centre, X))

    def absurdly_far(self, distances: Vector) -> tuple[NDArray[np.intp], Vector]:
        """Return which of these distances from the centre are absurd, and by how many times."""
        absurd = np.flatnonzero(distances > _ABSURD * self.distance)
        return absurd, distances[absurd] / self.distance


def distances_from(centre: Vector, X: Rows) -> Vector:
    """Return the distance of every row from a centre; infinite if it exceeds float64."""
    squared_length = float(routines.row_moments(centre[None, :], centre)[0][0])
    squares, dots = routines.row_moments(X, centre)
    with np.errstate(over="ignore", invalid="ignore"):
        differences = squares - 2.0 * dots + squared_length
    distances = np.where(np.isfinite(squares), differences, np.inf)
    return np.sqrt(np.maximum(distances, 0.0))


def outlying(sizes: Vector, factor: float) -> NDArray[np.intp]:
    """Return which sizes are more than `factor` times a typical one."""
    return np.flatnonzero(sizes > factor * _typical_size(sizes))


def central_row(X: Rows, weights: Vector | None = None) -> Vector:
    """Return the weighted mean row, in which far rows count as if they were nearer."""
    weights = np.ones(X.shape[0]) if weights is None else weights
    distances = distances_from(median_row(X), X)
    limit = _FAR * _typical_size(distances)
    far = distances > limit
    if far.any() and not far.all():
        weights = weights * np.where(far, limit / np.where(far, distances, 1.0), 1.0)
    return column_sums(X, weights / math.fsum(weights))


def column_sums(X: Rows, weights: Vector, *, squared: bool = False) -> Vector:
    """Return Σ_i weights[i] · x_i (or x_i²) in double precision, rows added in their order.

    Dense and sparse rows give the same bits, and so does every machine: no BLAS, no SciPy.
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
            # Not by SciPy, whose products and sums are fused on some processors.
            products = block.data * np.repeat(factor, np.diff(block.indptr))
            total += np.bincount(block.indices, products, minlength=X.shape[1])
    return total


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
    if large.size:
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
