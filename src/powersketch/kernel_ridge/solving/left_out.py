"""Rows that are left out one at a time, without any refit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powersketch.arrays import Float64, Real, Vector
from powersketch.kernel_ridge.solving.statistics import (
    Blocks,
    GramSpectrum,
    RidgeSolution,
    RidgeStatistics,
)
from powersketch.linalg import TriangularRows, cholesky_in_place
from powersketch.storable import storable

# The leave-one-out error is a mean over at most this many rows: its standard error is then about
# 3 % of it, and the differences along the path have much smaller ones.
LEFT_OUT_ROWS = 2048
# Leverages come with rounding errors; one minus a leverage is not taken for less than this.
SMALLEST_SLACK = 1e-12


@storable
@dataclass(frozen=True, eq=False)
class LeftOut:
    """Some of the rows, each predicted by the model of all others.

    `predictions` and `targets` have shape (n, t); `slacks` are one minus the leverages, by which
    residuals are smaller where the row itself took part.
    """

    predictions: Float64
    targets: Float64
    slacks: Vector
    weights: Vector

    def mean(self, costs: Vector) -> float:
        """Return the weighted mean of a cost of every row."""
        return float(self.weights @ costs / self.weights.sum())


def squares(left_out: LeftOut) -> Vector:
    """Return the mean square of the residuals of every row."""
    return np.asarray(np.mean((left_out.targets - left_out.predictions) ** 2, axis=1))


def left_out_predictions(
    statistics: RidgeStatistics, solution: RidgeSolution, blocks: Blocks
) -> LeftOut:
    """Return what every row would be predicted to be by the model of all others."""
    fit_intercept = solution.fit_intercept
    gram, _, _ = statistics.moments(fit_intercept=fit_intercept)
    spectrum: GramSpectrum | None = None
    factor = gram.T.copy(order="C")
    factor[np.diag_indices_from(factor)] += solution.alpha
    if solution.alpha <= statistics.smallest_alpha(gram) or not cholesky_in_place(factor):
        spectrum = GramSpectrum.of(gram)
    coef = np.atleast_2d(solution.coef).T
    parts = []
    for Z, y, given in blocks:
        deviations, targets, weights, constant = centred(
            statistics, np.asarray(Z, np.float64), y, given, fit_intercept=fit_intercept
        )
        residuals = targets - deviations @ coef
        if spectrum is None:
            TriangularRows.of(factor).solve(deviations)
            known = np.einsum("ij,ij->i", deviations, deviations) + constant
        else:
            known = (deviations @ spectrum.vectors) ** 2 @ spectrum.inverses(
                solution.alpha
            ) + constant
        slack = np.maximum(1.0 - weights * known, SMALLEST_SLACK)
        original = y.reshape(len(y), -1)
        parts.append((original - residuals / slack[:, np.newaxis], original, slack, weights))
    return LeftOut(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def centred(
    statistics: RidgeStatistics, Z: Real, y: Float64, weights: Vector | None, *, fit_intercept: bool
) -> tuple[Real, Float64, Vector, float]:
    """Return a block about the means, with weights and what the intercept adds to leverages.

    Features of float32 stay that: leverages of six digits are good enough for a score.
    """
    Z = Z if Z.dtype == np.float32 else Z.astype(np.float64, copy=False)
    weights = np.ones(Z.shape[0]) if weights is None else weights
    targets = y.reshape(y.shape[0], -1)
    if not fit_intercept:
        return Z, targets, weights, 0.0
    deviations = Z - statistics.feature_mean.astype(Z.dtype)
    return deviations, targets - statistics.target_mean, weights, 1.0 / statistics.weight
