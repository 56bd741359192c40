"""Fits of feature maps: one pass at most, for the rows that choices are made from."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np

from powersketch.distributed.blocks import RowBlocks, checked_block, in_block
from powersketch.distributed.running import compute, tree
from powersketch.execution import blas_threads
from powersketch.feature_maps import DO_NOT_COUNT, ChoiceRows, FeatureMap
from powersketch.kernels import asks_for_scale
from powersketch.validation import checked_rows


def fit_map(estimator: Any, X: Any) -> Any:
    """Fit the map to a sample of the rows, or to none where nothing depends on them."""
    rows = RowBlocks.of("X", X)
    # Bad parameters are refused before a pass over the data.
    estimator._check_before_fit()
    if isinstance(estimator, FeatureMap) and not estimator._looks_at_rows(rows.array.shape[1]):
        return estimator.fit(rows.zeros(1))
    rows, scale = rows.counted(), asks_for_scale(estimator._exact_kernel())
    chosen = choice_rows(rows, estimator._most_rows_in_view, measure=scale)
    chosen.warn_of_far_rows(DO_NOT_COUNT)
    return estimator._fit_chosen(rows.named(chosen.rows), chosen)


def choice_rows(rows: RowBlocks, most: int, *, measure: bool = False) -> ChoiceRows:
    """Return a sample of all rows: all of them if they are few.

    Every entry of X is checked on the way, and rows absurdly far from all others are found. The
    moments of all entries are measured where they are asked for.
    """
    take = dask.delayed(_taken, pure=True)
    numbered = enumerate(zip(rows.tasks, rows.starts, rows.lengths, strict=True))
    parts = [
        take(block, number, first, rows.count, most, measure, rows.array._meta)
        for number, (block, first, length) in numbered
        if length
    ]
    chosen: ChoiceRows = compute([tree(parts, ChoiceRows.merged)], "the sample of rows")[0]
    return chosen


def _taken(
    block: Any, number: int, first: int, total: int, most: int, measure: bool, meta: Any
) -> ChoiceRows:
    def call() -> ChoiceRows:
        with blas_threads(1):
            rows = checked_rows(checked_block(block, number, meta))
            numbers = first + np.arange(rows.shape[0])
            return ChoiceRows.of(rows, numbers, total, most, measure=measure)

    chosen: ChoiceRows = in_block(number, first, call)
    return chosen
