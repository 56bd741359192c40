"""Ridge regression by iterations: every product is one pass over the blocks, summed as a tree.

Features are computed anew in every pass. Rows stay where they are if the collection was persisted,
and are read again where not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Vector
from powersketch.distributed.ridge_rows import Block, DaskRows, coded_rows
from powersketch.distributed.running import compute, tree
from powersketch.kernel_ridge import (
    DenseFeatures,
    FeatureFit,
    Features,
    KnownTargets,
    LandmarkValues,
    RowPreparation,
    SideMeans,
    TrainingRows,
    Trial,
)
from powersketch.routines import normal_product


class _Moments(NamedTuple):
    """Sums over rows of weights w, of w y, of w z and of w z yᵀ, for values z.

    Those of several sides stand beside each other, (w y) below each other.
    """

    weights: Vector
    targets: Float64
    values: Float64
    cross: Float64

    @classmethod
    def merged(cls, parts: Sequence[_Moments | None]) -> _Moments | None:
        """Add up those of several blocks, from the first to the last."""
        found = [part for part in parts if part is not None]
        return (
            cls(*(sum(each[1:], each[0]) for each in zip(*found, strict=True))) if found else None
        )


class DaskProducts:
    """Products with the features of all rows, for `IterativeRidge`.

    The rows that may be held out are those of the sample, which are here; the preconditioner
    comes from them, too. Products are computed in float64.
    """

    least_residual = 1e-10

    def __init__(self, everything: DaskRows, fit: FeatureFit) -> None:
        sample = fit.sample
        self.rows, self._everything, self._fit_intercept = sample, everything, fit.fit_intercept
        self._given = (everything.model, everything.known, fit.preparation, fit.features)
        self.targets = sample.targets.reshape(sample.count, -1)
        self.all_weights = np.ones(sample.count) if sample.weights is None else sample.weights
        self._held: list[NDArray[np.int64]] = []
        self._few = self._of_sample(fit.features, fit.seed)
        self.size = self._few.size

    def _of_sample(self, features: Features, seed: int) -> DenseFeatures | LandmarkValues:
        """Return products with the rows of the sample, weighted as if they were all rows."""
        tasks = self._everything.each(_weight_of, *self._given[:3])
        total = sum(compute(tasks, "the sum of weights"))
        weights = self.all_weights * (total / float(self.all_weights.sum()))
        rows, intercept = replace(self.rows, weights=weights), self._fit_intercept
        few: DenseFeatures | LandmarkValues
        if features.landmarks is not None:
            few = LandmarkValues(features, rows, fit_intercept=intercept, seed=seed, precise=True)
        else:
            few = DenseFeatures(features, rows, fit_intercept=intercept, seed=seed, precise=True)
        few.leave_out(np.empty(0, np.intp))
        return few

    def leave_out(self, *held: Any) -> None:
        """Weigh the rows once for each of so many sides, without some rows of the sample each."""
        assert self.rows.numbers is not None
        self.sides = len(held)
        self._held = [self.rows.numbers[rows] for rows in held]
        tasks = self._everything.each(_block_moments, *self._given, self._held)
        moments: _Moments = compute([tree(tasks, _Moments.merged)], "means of features")[0]
        target_means = moments.targets / moments.weights[:, np.newaxis]
        means = self._few.to_features(moments.values) / moments.weights
        centres = float(self._fit_intercept)
        self._means = SideMeans(centres * means, centres * target_means)
        cross = self._few.to_features(moments.cross)
        self._right = self._means.about(cross, moments.targets.ravel())

    def right_side(self) -> Float64:
        """Return ΦᵀW times the targets about their means, of shape (m, t) for every side."""
        return self._right

    def normal_product(self, V: Float64) -> Float64:
        """Return ΦᵀWΦ V in one pass."""
        values, offsets = np.ascontiguousarray(self._few.to_values(V)), self._means.product(V)
        tasks = self._everything.each(_block_product, *self._given, self._held, values, offsets)
        total = compute([tree(tasks, _added)], "products with features")[0]
        return self._means.about(self._few.to_features(total[:-1]), total[-1])

    def product(self, V: Float64, rows: Any) -> Float64:
        """Return the features of some rows of the sample times coefficients."""
        return self._few.product(V, rows)

    def inverses(self, alpha: float, patience: float) -> Iterator[Trial]:
        """Return an approximate inverse of ΦᵀWΦ + alpha I, from the sample, at once.

        Any step, a pass over all blocks, takes longer than that.
        """
        return self._few.inverses(alpha, patience=0.0)

    def trace(self) -> float:
        """Return about the trace of ΦᵀWΦ, from the sample."""
        return self._few.trace()

    def likely_alpha(self) -> float:
        """Return an alpha that is best for a few rows of the sample, in proportion to all."""
        # The sample's weights are those of as many equal rows, which would know more of their mean.
        share = float(self.all_weights.sum() / self._few.all_weights.sum())
        return self._few.likely_alpha() * math.sqrt(share)

    def intercept(self, coef: Float64) -> Vector:
        """Return the constant term of every target, side by side."""
        return self._means.intercept(coef)


def _prepared(
    block: Block, model: Any, known: KnownTargets, preparation: RowPreparation
) -> TrainingRows:
    return preparation.prepared(coded_rows(block, model, known))[0]


def _weight_of(block: Block, model: Any, known: KnownTargets, preparation: RowPreparation) -> float:
    rows = _prepared(block, model, known, preparation)
    return float(rows.count if rows.weights is None else rows.weights.sum())


def _values_and_weights(
    rows: TrainingRows, features: Features, held: Sequence[NDArray[np.int64]]
) -> tuple[Real, Float64]:
    """Return features, or kernel values at landmarks, and weights of every side."""
    assert rows.numbers is not None
    values = features.transform if features.landmarks is None else features.values()
    weights = np.ones(rows.count) if rows.weights is None else rows.weights
    sides = np.column_stack([weights * ~np.isin(rows.numbers, some) for some in held])
    return np.ascontiguousarray(values(rows.X), dtype=np.float64), sides


def _block_moments(
    block: Block,
    model: Any,
    known: KnownTargets,
    preparation: RowPreparation,
    features: Features,
    held: Sequence[NDArray[np.int64]],
) -> _Moments | None:
    rows = _prepared(block, model, known, preparation)
    if not rows.count:
        return None
    Z, weights = _values_and_weights(rows, features, held)
    targets = rows.targets.reshape(rows.count, 1, -1)
    weighted = (weights[:, :, np.newaxis] * targets).reshape(rows.count, -1)
    sums = weighted.sum(axis=0).reshape(weights.shape[1], -1)
    return _Moments(weights.sum(axis=0), sums, Z.T @ weights, Z.T @ weighted)


def _block_product(
    block: Block,
    model: Any,
    known: KnownTargets,
    preparation: RowPreparation,
    features: Features,
    held: Sequence[NDArray[np.int64]],
    values: Float64,
    offsets: Vector,
) -> Float64 | None:
    """Return Zᵀ W (Z V − offsets), and below it the sum over rows of what Zᵀ is multiplied by."""
    rows = _prepared(block, model, known, preparation)
    if not rows.count:
        return None
    Z, weights = _values_and_weights(rows, features, held)
    return normal_product(Z, values, offsets, weights)


def _added(parts: Sequence[Float64 | None]) -> Float64 | None:
    found = [part for part in parts if part is not None]
    return sum(found[1:], found[0]) if found else None
