"""Fits of ridge models: choices on a sample, one pass of sums, or iterations of one pass each."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from powersketch.arrays import is_sparse
from powersketch.distributed.blocks import RowBlocks, aligned, sharing
from powersketch.distributed.ridge_rows import Block, DaskRows
from powersketch.distributed.running import compute
from powersketch.exceptions import InputError
from powersketch.feature_maps import MOST_CHOICE_ROWS, are_many
from powersketch.kernel_ridge import NEED_ALL_ROWS, warn_of_outlying_targets
from powersketch.validation import checked_rows


def fit_ridge(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a ridge model to Dask collections; few rows are fitted in memory."""
    model._check_parameters()
    if y is None:
        raise InputError("y is None, and there has to be a target for every row: give y.")
    blocks = RowBlocks.of("X", X).counted()
    targets, weights = aligned("y", y, blocks), aligned("sample_weight", sample_weight, blocks)
    assert targets is not None
    rows = DaskRows(clone(model), *sharing([blocks, targets, weights]))
    if not are_many(blocks.count, MOST_CHOICE_ROWS):
        return _fit_in_memory(model, rows)
    if model._kind in NEED_ALL_ROWS:
        raise InputError(
            f"features={model.features!r} needs all {blocks.count} rows in memory; allowed are "
            f"{MOST_CHOICE_ROWS + 1}: use features='sketch', 'landmarks' or 'auto'."
        )
    known = rows.known
    sample = rows.sample
    if known.classes is None:
        warn_of_outlying_targets(sample.targets, sample.weights, sample.numbers)
    attributes = {} if known.classes is None else {"classes_": known.classes}
    model.fit_elsewhere(rows, rows.few, **attributes)
    return model


def _fit_in_memory(model: Any, rows: DaskRows) -> Any:
    """Load all rows, which are few, and fit them as if they had been given."""
    parts = compute(rows.each(_loaded, rows.model), "rows")
    X = sparse.vstack([p.X for p in parts], format="csr") if is_sparse(parts[0].X) else None
    X = np.concatenate([part.X for part in parts]) if X is None else X
    y = np.concatenate([part.y for part in parts])
    weights = None
    if rows.weights is not None:
        weights = np.concatenate([part.weights for part in parts])
    return model.fit(rows.X.named(X), y, sample_weight=weights)


def _loaded(block: Block, model: Any) -> Block:
    """Return a block whose rows are numbers."""
    return block._replace(X=checked_rows(block.X, estimator=model))
