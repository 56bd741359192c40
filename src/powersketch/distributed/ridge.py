"""Fits of ridge models and metrics: choices on a sample, then one pass of sums or many passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from powersketch.arrays import is_sparse
from powersketch.distributed.blocks import RowBlocks, aligned, sharing
from powersketch.distributed.ridge_rows import NO_WEIGHT, Block, DaskRows
from powersketch.distributed.running import compute
from powersketch.exceptions import InputError
from powersketch.feature_maps import MOST_CHOICE_ROWS, ChoiceRows, are_many
from powersketch.kernel_ridge import (
    LEFT_OUT,
    NEED_ALL_ROWS,
    LearnedMetric,
    checked_weights,
    warn_of_outlying_targets,
)
from powersketch.validation import checked_rows


def fit_ridge(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a ridge model to Dask collections; few rows are fitted in memory."""
    model._check_parameters()
    rows = _rows_of(model, X, y, sample_weight)
    if not are_many(rows.total, MOST_CHOICE_ROWS):
        return _fit_loaded(model, rows, compute(rows.each(_loaded, rows.model), "rows"))
    if model._kind in NEED_ALL_ROWS:
        raise InputError(
            f"features={model.features!r} needs all {rows.total} rows in memory; allowed are "
            f"{MOST_CHOICE_ROWS + 1}: use features='sketch', 'landmarks' or 'auto'."
        )
    known = rows.known
    sample = rows.sample
    if known.classes is None:
        warn_of_outlying_targets(sample.targets, sample.weights, sample.numbers)
    attributes = {} if known.classes is None else {"classes_": known.classes}
    model._fit_elsewhere(rows, rows.few, **attributes)
    return model


def fit_metric(metric: LearnedMetric, X: Any, y: Any, sample_weight: Any = None) -> LearnedMetric:
    """Learn a metric from a sample of the rows, the one that it is learned from in memory."""
    rows = _rows_of(metric, X, y, sample_weight)
    sampled = compute(rows.each(_sampled, rows.total, MOST_CHOICE_ROWS), "the sample of rows")
    parts = [part for part in sampled if part is not None]
    if not parts:
        raise InputError(NO_WEIGHT)
    chosen = ChoiceRows.merged([each for each, _ in parts])
    chosen.warn_of_far_rows(LEFT_OUT)
    blocks = [block._replace(X=each.rows) for each, block in parts]
    kept = np.searchsorted(np.concatenate([each.numbers for each, _ in parts]), chosen.numbers)
    fitted: LearnedMetric = _fit_loaded(metric, rows, blocks, kept)
    return fitted


def _rows_of(model: Any, X: Any, y: Any, sample_weight: Any) -> DaskRows:
    """Return rows with their targets and weights, in the same blocks."""
    if y is None:
        raise InputError("y is None, and there has to be a target for every row: give y.")
    blocks = RowBlocks.of("X", X).counted()
    targets, weights = aligned("y", y, blocks), aligned("sample_weight", sample_weight, blocks)
    return DaskRows(clone(model), *sharing([blocks, targets, weights]))


def _fit_loaded(model: Any, rows: DaskRows, parts: list[Block], kept: Any = slice(None)) -> Any:
    """Fit rows that were loaded as if they had been given."""
    X = sparse.vstack([p.X for p in parts], format="csr") if is_sparse(parts[0].X) else None
    X = np.concatenate([part.X for part in parts]) if X is None else X
    y = np.concatenate([part.y for part in parts])
    weights = None
    if rows.weights is not None:
        weights = np.concatenate([part.weights for part in parts])
        weights = weights[kept]
    return model.fit(rows.X.named(X[kept]), y[kept], sample_weight=weights)


def _sampled(block: Block, total: int, most: int) -> tuple[ChoiceRows, Block] | None:
    """Return those rows of a block that choices are made from, with targets and weights."""
    X = checked_rows(block.X)
    weights = checked_weights(block.weights, X)
    some = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights)
    if not some.size:
        return None
    chosen = ChoiceRows.of(X[some], block.first + some, total, most)
    places = chosen.numbers - block.first
    weights = None if weights is None else weights[places]
    return chosen, block._replace(X=None, y=np.asarray(block.y)[places], weights=weights)


def _loaded(block: Block, model: Any) -> Block:
    """Return a block whose rows are numbers."""
    return block._replace(X=checked_rows(block.X, estimator=model))
