"""Rows, targets and weights of ridge models in blocks: a sample of them, and sums over all.

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
from sklearn.base import is_classifier

from powersketch.arrays import Float64, Vector
from powersketch.distributed.blocks import RowBlocks, aligned_in_memory, checked_block, in_block
from powersketch.distributed.lazy import shared_task
from powersketch.distributed.running import compute, tree
from powersketch.exceptions import InputError, OutlierWarning, held_back
from powersketch.execution import blas_threads
from powersketch.feature_maps import DO_NOT_COUNT, MOST_CHOICE_ROWS, ChoiceRows
from powersketch.kernel_ridge import (
    FarRows,
    FeatureFit,
    FeatureSums,
    KnownTargets,
    RidgeStatistics,
    RowPreparation,
    TrainingRows,
)
from powersketch.kernels import EntryMoments

NO_WEIGHT = (
    "sample_weight is zero for every row; at least one must be above 0: give weights that leave "
    "some rows, or None."
)


class Block(NamedTuple):
    """Rows, targets and weights of a block, its number and that of its first row."""

    X: Any
    y: Any
    weights: Any
    number: int
    first: int

    def checked(self, meta: Any) -> Block:
        """Return the block if it is what it was declared to be."""
        X = checked_block(self.X, self.number, meta)
        for name, values in (("y", self.y), ("sample_weight", self.weights)):
            if values is not None and len(values) != self.X.shape[0]:
                raise InputError(f"{name} has {len(values)} rows, X has {self.X.shape[0]}.")
        y, weights = aligned_in_memory(self.y), aligned_in_memory(self.weights)
        return self._replace(X=X, y=y, weights=weights)


class _Chosen(NamedTuple):
    """What the first pass finds in blocks: rows to choose from, and the range of all targets."""

    rows: ChoiceRows
    targets: Float64
    weights: Vector | None
    low: Any
    high: Any

    @property
    def training(self) -> TrainingRows:
        """The rows with their targets and weights."""
        return TrainingRows(self.rows.rows, self.targets, self.weights, self.rows.numbers)

    @classmethod
    def merged(cls, parts: Sequence[_Chosen | None]) -> _Chosen | None:
        """Return what is known of several blocks, in their order."""
        found = [part for part in parts if part is not None]
        if not found:
            return None
        rows = ChoiceRows.merged([part.rows for part in found])
        numbers = np.concatenate([part.rows.numbers for part in found])
        kept = np.searchsorted(numbers, rows.numbers)
        weighted = found[0].weights is not None
        return cls(
            rows,
            np.concatenate([part.targets for part in found])[kept],
            np.concatenate([part.weights for part in found])[kept] if weighted else None,
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
        tasks = self.each(_chosen_rows, self.model, self.known, self.total, MOST_CHOICE_ROWS)
        chosen: _Chosen | None = compute([tree(tasks, _Chosen.merged)], "the sample of rows")[0]
        if chosen is None:
            raise InputError(NO_WEIGHT)
        return chosen

    @property
    def sample(self) -> TrainingRows:
        """Rows that choices are made from."""
        return self._chosen.training

    @property
    def moments(self) -> EntryMoments | None:
        """Those of the entries of all rows, where a model asks for them."""
        return self._chosen.rows.moments

    @property
    def few(self) -> Any:
        """Some rows as they were given, which tell the names of columns."""
        return self.X.named(self._chosen.rows.rows)

    @property
    def target_range(self) -> Float64:
        """The least and the largest of every target, as if they were two rows."""
        return np.array([self._chosen.low, self._chosen.high])

    def products(self, fit: FeatureFit) -> Any:
        """Return products with the features of all rows, for iterations."""
        # It is built on the blocks of this file.
        from powersketch.distributed.products import DaskProducts

        return DaskProducts(self, fit)

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
            return function(Block(X, y, weights, number, first).checked(meta), *given)

    return in_block(number, first, call)


def _seen_targets(block: Block, model: Any) -> Any:
    _, labels = model._checked_labels(block.X, block.y)
    weights = None if block.weights is None else np.asarray(block.weights)
    return model._seen_targets(labels, weights)


def coded_rows(block: Block, model: Any, known: KnownTargets) -> TrainingRows:
    """Return the rows of a block that have weight, with their numbers among all."""
    rows: TrainingRows = model._rows_of_block(block.X, block.y, block.weights, known)
    numbers = np.arange(rows.count) if rows.numbers is None else rows.numbers
    return replace(rows, numbers=numbers + block.first)


def _chosen_rows(
    block: Block, model: Any, known: KnownTargets, total: int, most: int
) -> _Chosen | None:
    rows = coded_rows(block, model, known)
    if not rows.count:
        return None
    assert rows.numbers is not None
    chosen: ChoiceRows = model._choice_rows(rows, total, most)
    places = np.searchsorted(rows.numbers, chosen.numbers)
    weights = None if rows.weights is None else rows.weights[places]
    limits = rows.targets.min(axis=0), rows.targets.max(axis=0)
    return _Chosen(chosen, rows.targets[places], weights, *limits)


def _block_sums(
    block: Block,
    model: Any,
    known: KnownTargets,
    preparation: RowPreparation,
    sums: FeatureSums,
    block_bytes: int,
) -> _Sums | None:
    # What maps and models have to say of a single block would be said for every one.
    with held_back(OutlierWarning):
        rows, far = preparation.prepared(coded_rows(block, model, known))
        return _Sums(sums.of_rows(rows, block_bytes), far) if rows.count else None
