"""Ridge models: choices on a sample of the rows, sums over blocks, merged as a tree in their order.

All blocks are summed in float64 by one thread of BLAS each, so that weights have the same bits for
any number of workers and whatever fails on the way, and hardly depend on the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed
from scipy import sparse
from sklearn.base import clone, is_classifier

from powersketch.arrays import Float64, is_sparse
from powersketch.distributed.blocks import RowBlocks, aligned, checked_block, in_block
from powersketch.distributed.lazy import shared_task
from powersketch.distributed.running import compute, tree
from powersketch.exceptions import InputError, OutlierWarning, held_back
from powersketch.execution import blas_threads
from powersketch.feature_maps import DO_NOT_COUNT, MOST_CHOICE_ROWS, ChoiceRows, are_many
from powersketch.kernel_ridge import (
    NEED_ALL_ROWS,
    FarRows,
    FeatureSums,
    KnownTargets,
    RidgeStatistics,
    RowPreparation,
    TrainingRows,
    joined_rows,
    warn_of_outlying_targets,
)
from powersketch.validation import checked_rows


class _Block(NamedTuple):
    """Rows, targets and weights of a block, its number and that of its first row."""

    X: Any
    y: Any
    weights: Any
    number: int
    first: int

    def checked(self, meta: Any) -> _Block:
        """Return the block if it is what it was declared to be."""
        checked_block(self.X, self.number, meta)
        for name, values in (("y", self.y), ("sample_weight", self.weights)):
            if values is not None and len(values) != self.X.shape[0]:
                raise InputError(f"{name} has {len(values)} rows, X has {self.X.shape[0]}.")
        return self


class _Chosen(NamedTuple):
    """What the first pass finds in blocks: rows to choose from, labels, the range of targets."""

    rows: ChoiceRows
    training: TrainingRows
    low: Any
    high: Any

    @classmethod
    def merged(cls, parts: Sequence[_Chosen | None]) -> _Chosen | None:
        """Return what is known of several blocks, in their order."""
        found = [part for part in parts if part is not None]
        if not found:
            return None
        rows = ChoiceRows.merged([part.rows for part in found])
        every = joined_rows([part.training for part in found])
        numbers = np.concatenate([part.rows.numbers for part in found])
        kept = np.searchsorted(numbers, rows.numbers)
        return cls(
            rows,
            replace(every[kept], numbers=rows.numbers),
            np.min([part.low for part in found], axis=0),
            np.max([part.high for part in found], axis=0),
        )


class _Sums(NamedTuple):
    """Sums over the features of some rows, and which rows were left out of them."""

    statistics: RidgeStatistics
    far: FarRows

    @classmethod
    def merged(cls, parts: Sequence[_Sums | None]) -> _Sums | None:
        """Add up those of several blocks, from the first to the last."""
        found = [part for part in parts if part is not None]
        if not found:
            return None
        with blas_threads(1):
            statistics = RidgeStatistics.merged([part.statistics for part in found])
        return cls(
            statistics, FarRows(*map(np.concatenate, zip(*[p.far for p in found], strict=True)))
        )


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Rows, targets and weights in blocks; `model` is an unfitted copy that knows its targets."""

    model: Any
    X: RowBlocks
    y: RowBlocks
    weights: RowBlocks | None

    @property
    def total(self) -> int:
        """Number of all rows."""
        return self.X.count

    def each(self, function: Callable[..., Any], *given: Any) -> list[Delayed]:
        """Return a task for every block: the function of the block and what is given."""
        weights = [None] * len(self.X.tasks) if self.weights is None else self.weights.tasks
        call = dask.delayed(_on_block, pure=True)
        shared = [shared_task(value) for value in given]
        meta = self.X.array._meta
        parts = zip(self.X.tasks, self.y.tasks, weights, self.X.starts, self.X.lengths, strict=True)
        return [
            call(function, X, y, w, number, first, meta, *shared)
            for number, (X, y, w, first, length) in enumerate(parts)
            if length
        ]

    @cached_property
    def known(self) -> KnownTargets:
        """What has to be known of all targets; classifiers read them all for it."""
        if not is_classifier(self.model):
            return KnownTargets()
        seen = compute(self.each(_seen_targets, self.model), "the classes")
        known: KnownTargets = self.model._known_targets(seen)
        return known

    @cached_property
    def _chosen(self) -> _Chosen:
        tasks = self.each(_chosen_rows, self.model, self.known, self.total)
        chosen: _Chosen | None = compute([tree(tasks, _Chosen.merged)], "the sample of rows")[0]
        if chosen is None:
            raise InputError(
                "sample_weight is zero for every row; at least one must be above 0: give weights "
                "that leave some rows, or None."
            )
        return chosen

    @property
    def sample(self) -> TrainingRows:
        """Rows that choices are made from."""
        return self._chosen.training

    @property
    def few(self) -> Any:
        """Some rows as they were given, which tell the names of columns."""
        return self.X.named(self._chosen.rows.rows)

    @property
    def target_range(self) -> Float64:
        """The least and the largest of every target, as if they were two rows."""
        return np.array([self._chosen.low, self._chosen.high])

    def sums(
        self, preparation: RowPreparation, sums: FeatureSums, block_bytes: int
    ) -> RidgeStatistics:
        """Return the sums over the features of all rows, before they are finished."""
        tasks = self.each(_block_sums, self.model, self.known, preparation, sums, block_bytes)
        total: _Sums | None = compute([tree(tasks, _Sums.merged)], "sums over blocks")[0]
        if total is None:
            raise InputError("no row is left: all are absurdly far from those of a sample.")
        if preparation.typical is None:
            self._chosen.rows.warn_of_far_rows(DO_NOT_COUNT)
        total.far.warn()
        return total.statistics


def fit_ridge(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a ridge model to Dask collections; few rows are fitted in memory."""
    model._check_parameters()
    if y is None:
        raise InputError("y is None, and there has to be a target for every row: give y.")
    blocks = RowBlocks.of("X", X).counted()
    targets, weights = aligned("y", y, blocks), aligned("sample_weight", sample_weight, blocks)
    assert targets is not None
    rows = DaskRows(clone(model), blocks, targets, weights)
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


def _on_block(
    function: Callable[..., Any],
    X: Any,
    y: Any,
    weights: Any,
    number: int,
    first: int,
    meta: Any,
    *given: Any,
) -> Any:
    """Call a function for one block, with one thread of BLAS; errors tell which block it was."""

    def call() -> Any:
        with blas_threads(1):
            return function(_Block(X, y, weights, number, first).checked(meta), *given)

    return in_block(number, first, call)


def _loaded(block: _Block, model: Any) -> _Block:
    """Return a block whose rows are numbers."""
    return block._replace(X=checked_rows(block.X, estimator=model))


def _seen_targets(block: _Block, model: Any) -> Any:
    _, labels = model._checked_labels(block.X, block.y)
    weights = None if block.weights is None else np.asarray(block.weights)
    return model._seen_targets(labels, weights)


def _coded(block: _Block, model: Any, known: KnownTargets) -> TrainingRows:
    """Return the rows of a block that have weight, with their numbers among all."""
    rows: TrainingRows = model._rows_of_block(block.X, block.y, block.weights, known)
    numbers = np.arange(rows.count) if rows.numbers is None else rows.numbers
    return replace(rows, numbers=numbers + block.first)


def _chosen_rows(block: _Block, model: Any, known: KnownTargets, total: int) -> _Chosen | None:
    rows = _coded(block, model, known)
    if not rows.count:
        return None
    assert rows.numbers is not None
    chosen = ChoiceRows.of(rows.X, rows.numbers, total, MOST_CHOICE_ROWS)
    training = rows[np.searchsorted(rows.numbers, chosen.numbers)]
    return _Chosen(chosen, training, rows.targets.min(axis=0), rows.targets.max(axis=0))


def _block_sums(
    block: _Block,
    model: Any,
    known: KnownTargets,
    preparation: RowPreparation,
    sums: FeatureSums,
    block_bytes: int,
) -> _Sums | None:
    # What maps and models have to say of a single block would be said for every one.
    with held_back(OutlierWarning):
        rows, far = preparation.prepared(_coded(block, model, known))
        return _Sums(sums.of_rows(rows, block_bytes), far) if rows.count else None
