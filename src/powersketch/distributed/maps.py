"""Fits of feature maps: one pass at most, for a sample of the rows."""

from __future__ import annotations

from typing import Any

from powersketch.distributed.blocks import RowBlocks
from powersketch.distributed.sample import choice_rows
from powersketch.exceptions import FarRowWarning, held_back
from powersketch.feature_maps import DO_NOT_COUNT, FeatureMap
from powersketch.nystroem import LeverageNystroem


def fit_map(estimator: Any, X: Any) -> Any:
    """Fit the map to a sample of the rows, or to none where nothing depends on them."""
    rows = RowBlocks.of("X", X)
    # Bad parameters are refused before a pass over the data.
    estimator._check_parameters()
    if isinstance(estimator, FeatureMap) and not estimator.looks_at_rows(rows.array.shape[1]):
        return estimator.fit(rows.zeros(1))
    rows = rows.counted()
    chosen = choice_rows(rows, estimator.most_rows_in_view)
    # Rows absurdly far from all others have other numbers in the sample than the user knows.
    with held_back(FarRowWarning):
        estimator.fit(rows.named(chosen.rows))
    chosen.warn_of_far_rows(DO_NOT_COUNT)
    if isinstance(estimator, LeverageNystroem):
        estimator.landmark_indices_ = chosen.numbers[estimator.landmark_indices_]
    return estimator
