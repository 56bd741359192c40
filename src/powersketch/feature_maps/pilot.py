"""The pilot: a few hundred rows on which maps are measured, to choose among them or to warn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, Vector, divide_or_zero
from powersketch.exceptions import RangeWarning, warn_user
from powersketch.feature_maps.maps import (
    OUT_OF_RANGE,
    UNUSUAL,
    WITHOUT_SERIES,
    RowMap,
    features_of,
)
from powersketch.feature_maps.rows import fair_shares, take_rows
from powersketch.random_streams import RandomStreams

Map = TypeVar("Map", bound=RowMap)

PILOT_ROWS = 512
# A costlier map must be clearly better, not better by the chance of the pilot.
_WORTHWHILE_GAIN = 0.97
_WORSE = 1.3  # a little less than what users are promised: only some rows are measured
_NEGLIGIBLE = 1e-4  # norms of features beside those of others: errors of such rows do not count
_FEWEST_MEASURED, _MOST_MEASURED = 8, 64


class Pilot:
    """Rows that choices for all rows are made from."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    @classmethod
    def of(cls, X: Rows, streams: RandomStreams, count: int = PILOT_ROWS) -> Pilot:
        """Draw a random sample of the rows in their order, all of them if they are few."""
        chosen: NDArray[np.int64] = np.arange(X.shape[0])
        if X.shape[0] > count:
            chosen = np.sort(streams.sample("pilot", X.shape[0], count))
        return cls(take_rows(X, chosen))

    @cached_property
    def lengths(self) -> Vector:
        """‖x‖ of every row."""
        return np.sqrt(routines.squared_norms(self.rows))

    def relative_error(self, row_map: RowMap, size: int, K: Real) -> float:
        """Return ‖Z Zᵀ − K‖_F / ‖K‖_F, both divided by the largest entry of K first.

        Rows of large norm are scaled down before, where they are so few that no other row would
        count.
        """
        Z = features_of(row_map, self.rows, size).astype(np.float64)
        _, factors = fair_shares(np.sqrt(np.maximum(K.diagonal(), 0.0)), self.lengths)
        Z, K = Z * factors[:, None], K * factors[:, None] * factors
        largest = float(np.max(np.abs(K)))
        if largest == 0:
            return float(np.linalg.norm(Z))
        Z, exact = Z / np.sqrt(largest), K / largest
        return float(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))

    def best_map(self, maps: Sequence[Map], size: int, kernel: Callable[[Rows], Real]) -> Map:
        """Return the map with the least error; earlier ones win near draws."""
        if len(maps) == 1:
            return maps[0]
        K = kernel(self.rows).astype(np.float64)
        best, best_error = maps[0], self.relative_error(maps[0], size, K)
        for candidate in maps[1:]:
            error = self.relative_error(candidate, size, K)
            if error < _WORTHWHILE_GAIN * best_error:
                best, best_error = candidate, error
        return best


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
    rows = take_rows(X, chosen)
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
