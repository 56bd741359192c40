"""A path of a few alphas, each with a factorisation of its own, tried downhill."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Vector
from powersketch.kernel_ridge.solving.left_out import LEFT_OUT_ROWS, SMALLEST_SLACK, centred
from powersketch.kernel_ridge.solving.statistics import Blocks, RidgeSolution, RidgeStatistics
from powersketch.linalg import TriangularRows, cholesky_in_place
from powersketch.random_streams import RandomStreams

LEAST_PER_ROUNDING = 2.0
"""The least alpha that is tried, relative to that below which rounding errors decide."""

DECADES = 10
LEAST_SHARE = 10.0**-DECADES
"""Of the trace of the Gram matrix, for the smallest of the default alphas."""

USUAL_TRIES = 6
"""About so many of the default alphas are tried downhill."""

# In products of m × m matrices, m the number of features, an eigendecomposition takes about this
# long; as does a Cholesky factorisation, of which every alpha needs one.
_EIGENDECOMPOSITION = 12.0
_FACTORISATION = 0.5
_FEWEST_FEATURES = 256  # to factor for every alpha
# Alphas are tried first by one ratio, then by another, from this share of the trace where nothing
# better is known.
_RATIOS = (10.0, 10.0**0.5)
_USUAL_SHARE = 1e-6
_LEAST_GAIN = 1e-3  # of a score, to go on in a direction
_PROBES = 16


def factors_are_cheaper(alphas: int, features: int) -> bool:
    """Tell whether one Cholesky factorisation per alpha takes less than an eigendecomposition."""
    if features < _FEWEST_FEATURES:
        return False
    ratio = LEFT_OUT_ROWS / features
    return alphas * (_FACTORISATION + ratio) < _EIGENDECOMPOSITION + 2.0 * ratio


def factored_path(
    statistics: RidgeStatistics,
    alphas: Vector | None,
    left_out: Blocks,
    *,
    fit_intercept: bool,
    start: float | None = None,
) -> RidgeSolution | None:
    """Choose among a few alphas by leave-one-out, from a Cholesky factorisation for each.

    None if rounding errors leave a matrix indefinite.
    """
    path = _FactoredPath(statistics, left_out, fit_intercept=fit_intercept)
    try:
        if alphas is None:
            trace = float(np.trace(path.gram)) or 1.0
            least = max(
                LEAST_SHARE * trace, LEAST_PER_ROUNDING * statistics.smallest_alpha(path.gram)
            )
            descend(path.score, max(start or _USUAL_SHARE * trace, least), least)
        else:
            for alpha in alphas.tolist():
                path.score(alpha)
    except np.linalg.LinAlgError:
        return None
    return path.best()


def descend(
    score: Callable[[float], float],
    start: float,
    least: float,
    ratios: Sequence[float] = _RATIOS,
) -> None:
    """Try alphas from a start in the direction of smaller scores until they rise, then between.

    None is below the least; that one itself is tried where the way leads there.
    """
    scores = {start: score(start)}

    def tried(alpha: float) -> float:
        alpha = max(alpha, least)
        if alpha not in scores:
            scores[alpha] = score(alpha)
        return scores[alpha]

    for ratio in ratios:
        for direction in (1.0 / ratio, ratio):
            best = min(scores, key=lambda alpha: scores[alpha])
            while tried(best * direction) < (1.0 - _LEAST_GAIN) * scores[best]:
                best = max(best * direction, least)


class _FactoredPath:
    """Leave-one-out scores of single alphas, each from a factorisation."""

    def __init__(self, statistics: RidgeStatistics, blocks: Blocks, *, fit_intercept: bool) -> None:
        self.statistics, self.fit_intercept = statistics, fit_intercept
        self.gram, self._cross, _ = statistics.moments(fit_intercept=fit_intercept)
        self._blocks = [
            centred(statistics, *block, fit_intercept=fit_intercept) for block in blocks
        ]
        self._tried: dict[float, tuple[float, Float64]] = {}
        self._in_use = (math.inf, 0.0)

    def score(self, alpha: float) -> float:
        """Return the score of an alpha, and remember its solution."""
        # The matrix is symmetric: its transpose, which lies in memory row by row, is the same.
        factor = self.gram.T.copy(order="C")
        factor[np.diag_indices_from(factor)] += alpha
        if alpha <= self.statistics.smallest_alpha(self.gram) or not cholesky_in_place(factor):
            raise np.linalg.LinAlgError(f"alpha={alpha} is too small.")
        if alpha < self._in_use[0]:
            self._in_use = alpha, _effective_dimension(factor, alpha)
        coef = linalg.cho_solve((factor.T, False), self._cross, check_finite=False)
        score = _factored_score(TriangularRows.of(factor), coef, self._blocks)
        self._tried[alpha] = score, coef
        return score

    def best(self) -> RidgeSolution:
        """Return the solution of the least score, with all that were tried."""
        alphas = sorted(self._tried)
        scores = [self._tried[alpha][0] for alpha in alphas]
        best = int(np.argmin(scores))
        return self.statistics.solution(
            self._tried[alphas[best]][1],
            alphas[best],
            fit_intercept=self.fit_intercept,
            alphas=np.array(alphas),
            scores=np.array(scores),
            effective_dimension=None if best else self._in_use[1],
        )


def _effective_dimension(factor: Float64, alpha: float) -> float:
    """Return m − alpha tr (G + alpha I)⁻¹, up to a few percent, by products with random signs."""
    features = factor.shape[0]
    signs = RandomStreams(0, "kernel-ridge/trace").signs("probes", _PROBES * features)
    probes = signs.reshape(features, _PROBES)
    solved = linalg.cho_solve((factor.T, False), probes, check_finite=False)
    return float(features - alpha * np.sum(probes * solved) / _PROBES)


def _factored_score(
    solver: TriangularRows, coef: Float64, blocks: list[tuple[Real, Float64, Vector, float]]
) -> float:
    total, weight = 0.0, 0.0
    for Z, targets, weights, constant in blocks:
        residuals = targets - (Z @ coef).reshape(targets.shape)
        whitened = Z.copy()
        (solver.in_float32 if Z.dtype == np.float32 else solver).solve(whitened)
        known = np.einsum("ij,ij->i", whitened, whitened) + constant
        slack = np.maximum(1.0 - weights * known, SMALLEST_SLACK)
        total += float(weights @ (np.mean(residuals**2, axis=1) / slack**2))
        weight += float(weights.sum())
    return total / weight
