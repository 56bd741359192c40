"""Ridge regression on features, block by block, for one alpha or for a path of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.exceptions import InputError
from powersketch.execution import Progress
from powersketch.feature_maps import FeatureMap
from powersketch.kernel_ridge.accumulation import BLOCK_BYTES, row_blocks
from powersketch.kernel_ridge.factored_path import factored_path, factors_are_cheaper
from powersketch.kernel_ridge.regularisation_path import (
    RegularisationPath,
    chosen_by_generalised,
    chosen_by_left_out,
)
from powersketch.kernel_ridge.solutions import PrimalSolution
from powersketch.kernel_ridge.statistics import RidgeStatistics
from powersketch.kernel_ridge.targets import check_some_weight
from powersketch.nystroem import LeverageNystroem
from powersketch.random_streams import RandomStreams

# The leave-one-out error is a mean over so many rows at most: its standard error is then about
# 3 % of it, and the differences along the path have much smaller ones.
LEFT_OUT_ROWS = 2048

Blocks = Iterator[tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64] | None]]


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows, targets, and weights that are above 0 or None; the numbers that the user knows."""

    X: Any
    targets: NDArray[np.float64]
    weights: NDArray[np.float64] | None
    numbers: NDArray[np.int64] | None = None

    @classmethod
    def of_positive_weight(
        cls, X: Any, targets: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> TrainingRows:
        """Leave out the rows of weight zero; refuse to leave out all."""
        check_some_weight(weights)
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            return cls(X[kept], targets[kept], weights[kept], kept)
        return cls(X, targets, weights)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def __getitem__(self, rows: Any) -> TrainingRows:
        weights = None if self.weights is None else self.weights[rows]
        return TrainingRows(self.X[rows], self.targets[rows], weights)

    def without(self, rows: NDArray[np.intp]) -> TrainingRows:
        """Leave out some rows; the others keep the numbers that the user knows."""
        kept = np.delete(np.arange(self.count), rows)
        others = self[kept]
        numbers = kept if self.numbers is None else self.numbers[kept]
        return TrainingRows(others.X, others.targets, others.weights, numbers)

    def sample(self, count: int, streams: RandomStreams) -> TrainingRows:
        """Return some rows in their order, all of them if they are few."""
        if count >= self.count:
            return self
        return self[np.sort(streams.sample("rows", self.count, count))]


def features_of(feature_map: Any, X: Any) -> NDArray[Any]:
    """Return the features of rows as a dense array, whatever the map returns."""
    Z = feature_map.transform(X)
    return np.asarray(Z.toarray() if sparse.issparse(Z) else Z)


def feature_blocks(
    feature_map: Any, rows: TrainingRows, progress: Progress, block_bytes: int = BLOCK_BYTES
) -> Blocks:
    """Yield features, targets and weights, so few rows at a time that the features stay small."""
    for part in map_blocks(feature_map, rows.X, block_bytes):
        block = rows[part]
        yield features_of(feature_map, block.X), block.targets, block.weights
        progress.update(part.stop)


def map_blocks(feature_map: Any, X: Any, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of the rows of which a block of features is to be made."""
    return row_blocks(X.shape[0], _feature_count(feature_map, X), block_bytes)


def _feature_count(feature_map: Any, X: Any) -> int:
    """Return how many features a row has.

    Maps of others tell by the features of one row. Those of this package might warn of such a row,
    which they cannot compare with others.
    """
    if isinstance(feature_map, FeatureMap | LeverageNystroem):
        return feature_map.n_components_
    return int(features_of(feature_map, X[:1]).shape[1])


def primal_solution(
    statistics: RidgeStatistics,
    alpha: float | str,
    alphas: NDArray[np.float64] | None,
    *,
    fit_intercept: bool,
    left_out: Blocks,
) -> PrimalSolution:
    """Solve for the given alpha, or for the one chosen by "gcv", or by "loo" from `left_out`."""
    if not isinstance(alpha, str):
        solution = statistics.solve(alpha, fit_intercept=fit_intercept)
        return PrimalSolution(float(alpha), solution.coef, solution.intercept, fit_intercept)
    if statistics.count < 2:
        raise InputError(
            f"alpha={alpha!r} needs at least 2 rows of positive weight, got {statistics.count}: "
            "give more rows, or a number for alpha."
        )
    features = statistics.feature_mean.size
    if (
        alpha == "loo"
        and alphas is not None
        and factors_are_cheaper(alphas.size, features, LEFT_OUT_ROWS)
    ):
        blocks = list(left_out)
        factored = _by_factors(statistics, alphas, blocks, fit_intercept=fit_intercept)
        if factored is not None:
            return factored
        left_out = iter(blocks)
    path = RegularisationPath.of(statistics, fit_intercept=fit_intercept)
    alphas = path.default_alphas() if alphas is None else alphas
    if alpha == "gcv":
        scores = path.generalised_errors(alphas)
        chosen = chosen_by_generalised(alphas, scores, statistics.count)
    else:
        scores = path.left_out_errors(alphas, left_out)
        chosen = chosen_by_left_out(alphas, scores)
    solution = path.solve(chosen)
    in_use = float(path.spectrum.effective_dimension(chosen))
    return PrimalSolution(
        chosen, solution.coef, solution.intercept, fit_intercept, alphas, scores, in_use
    )


def _by_factors(
    statistics: RidgeStatistics,
    alphas: NDArray[np.float64],
    blocks: list[tuple[Any, Any, Any]],
    *,
    fit_intercept: bool,
) -> PrimalSolution | None:
    """Choose among a few alphas; None where one is too small for a Cholesky factorisation."""
    path = factored_path(statistics, alphas, blocks, fit_intercept=fit_intercept)
    if path is None:
        return None
    scores, solutions, in_use = path
    best = solutions[int(np.argmin(scores))]
    chosen = chosen_by_left_out(alphas, scores)
    return PrimalSolution(chosen, best.coef, best.intercept, fit_intercept, alphas, scores, in_use)
