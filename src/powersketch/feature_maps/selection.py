"""Chooses among feature maps by measuring them on a few hundred rows of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from powersketch.arrays import Real, Rows, is_sparse
from powersketch.feature_maps.outliers import fair_shares
from powersketch.feature_maps.row_maps import RowMap
from powersketch.random_streams import RandomStreams

Map = TypeVar("Map", bound=RowMap)

PILOT_ROWS = 512
# A costlier map must be clearly better, not better by the chance of the pilot.
_WORTHWHILE_GAIN = 0.97


def pilot_rows(X: Rows, streams: RandomStreams) -> Rows:
    """Return a random sample of the rows in their order, all of them if they are few."""
    count = X.shape[0]
    if count <= PILOT_ROWS:
        chosen = np.arange(count)
    else:
        chosen = np.sort(streams.sample("pilot", count, PILOT_ROWS))
    sample = X[chosen]
    return sample if is_sparse(X) else np.ascontiguousarray(sample)


def features_of_few(row_map: RowMap, rows: Rows, size: int) -> Real:
    """Return the features of rows that are no more than a batch."""
    Z = np.empty((rows.shape[0], size), dtype=rows.dtype)
    row_map.write(rows, Z, 1)
    return Z


def relative_error(row_map: RowMap, rows: Rows, size: int, K: Real) -> float:
    """Return ‖Z Zᵀ − K‖_F / ‖K‖_F on the rows, both divided by the largest entry of K first.

    Rows of large norm are scaled down first, where they are so few that no other row would count.
    """
    Z = features_of_few(row_map, rows, size).astype(np.float64)
    _, factors = fair_shares(np.sqrt(np.maximum(K.diagonal(), 0.0)), rows)
    Z, K = Z * factors[:, None], K * factors[:, None] * factors
    largest = float(np.max(np.abs(K)))
    if largest == 0:
        return float(np.linalg.norm(Z))
    Z, exact = Z / np.sqrt(largest), K / largest
    return float(np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact))


def best_map(maps: Sequence[Map], pilot: Rows, size: int, kernel: Callable[[Rows], Real]) -> Map:
    """Return the map with the least error on the pilot; earlier ones win near draws."""
    if len(maps) == 1:
        return maps[0]
    K = kernel(pilot).astype(np.float64)
    best, best_error = maps[0], relative_error(maps[0], pilot, size, K)
    for candidate in maps[1:]:
        error = relative_error(candidate, pilot, size, K)
        if error < _WORTHWHILE_GAIN * best_error:
            best, best_error = candidate, error
    return best
