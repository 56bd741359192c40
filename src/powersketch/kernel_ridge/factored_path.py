"""Leave-one-out scores of a few values of alpha, from a Cholesky factorisation for each.

An eigendecomposition serves any number of alphas, but takes as long as dozens of factorisations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from powersketch.kernel_ridge.regularisation_path import SMALLEST_SLACK
from powersketch.kernel_ridge.statistics import RidgeSolution, RidgeStatistics
from powersketch.linalg import TriangularRows, cholesky_in_place
from powersketch.random_streams import RandomStreams

# An eigendecomposition of m features takes the time of about so many products of m × m matrices,
# and a factorisation of a half of one.
_EIGENDECOMPOSITION = 12.0
_FACTORISATION = 0.5
_FEWEST_FEATURES = 256
_PROBES = 16


def factors_are_cheaper(alphas: int, features: int, rows: int) -> bool:
    """Tell whether to factor for every alpha; `rows` are to be left out one at a time."""
    if features < _FEWEST_FEATURES:
        return False
    by_factors = alphas * (_FACTORISATION + rows / features)
    return by_factors < _EIGENDECOMPOSITION + 2.0 * rows / features


def factored_path(
    statistics: RidgeStatistics,
    alphas: NDArray[np.float64],
    blocks: Iterable[tuple[Any, Any, Any]],
    *,
    fit_intercept: bool,
) -> tuple[NDArray[np.float64], list[RidgeSolution], float] | None:
    """Return every alpha's mean squared error at rows left out one at a time, and its solution.

    The last number is the effective dimension of the smallest alpha, up to a few percent.

    None if rounding errors leave a matrix indefinite. The blocks hold features, targets and weights
    or None; a row of leverage h that is left out has a residual larger by 1 / (1 − h).
    """
    gram, cross, _ = statistics.moments(fit_intercept=fit_intercept)
    rows = [_prepared(statistics, *block, fit_intercept=fit_intercept) for block in blocks]
    scores, solutions, in_use = np.empty(alphas.size), [], 0.0
    for index, alpha in enumerate(alphas.tolist()):
        factor = _cholesky(gram, alpha)
        if factor is None:
            return None
        if index == 0:
            in_use = _effective_dimension(factor, alpha)
        coef = linalg.cho_solve((factor.T, False), cross, check_finite=False)
        scores[index] = _score(TriangularRows.of(factor), coef, rows)
        solutions.append(statistics.solution(coef, fit_intercept=fit_intercept))
    return scores, solutions, in_use


def _prepared(
    statistics: RidgeStatistics,
    Z: NDArray[Any],
    y: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    *,
    fit_intercept: bool,
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], float]:
    """Return a block about the means, with weights and what the intercept adds to leverages.

    Features of float32 stay that: leverages of six digits are good enough for a score.
    """
    Z = Z if Z.dtype == np.float32 else Z.astype(np.float64, copy=False)
    weights = np.ones(Z.shape[0]) if weights is None else weights
    if not fit_intercept:
        return Z, y, weights, 0.0
    centred = Z - statistics.feature_mean.astype(Z.dtype)
    return centred, y - statistics.target_mean, weights, 1.0 / statistics.weight


def _cholesky(gram: NDArray[np.float64], alpha: float) -> NDArray[Any] | None:
    rounding = gram.shape[0] * float(np.finfo(np.float64).eps) * np.trace(gram)
    if alpha <= rounding:
        return None
    # The matrix is symmetric: its transpose, which lies in memory row by row, is the same.
    factor = gram.T.copy(order="C")
    factor[np.diag_indices_from(factor)] += alpha
    return factor if cholesky_in_place(factor) else None


def _effective_dimension(factor: NDArray[Any], alpha: float) -> float:
    """Return m − alpha tr (G + alpha I)⁻¹ with the trace from products with vectors of signs."""
    features = factor.shape[0]
    signs = RandomStreams(0, "kernel-ridge/trace").signs("probes", _PROBES * features)
    probes = signs.reshape(features, _PROBES)
    solved = linalg.cho_solve((factor.T, False), probes, check_finite=False)
    return float(features - alpha * np.sum(probes * solved) / _PROBES)


def _score(
    solver: TriangularRows,
    coef: NDArray[np.float64],
    blocks: list[tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], float]],
) -> float:
    total, weight = 0.0, 0.0
    for Z, targets, weights, constant in blocks:
        residuals = (targets - Z @ coef).reshape(Z.shape[0], -1)
        whitened = Z.copy()
        solver.astype(Z.dtype).solve(whitened)
        known = np.einsum("ij,ij->i", whitened, whitened) + constant
        slack = np.maximum(1.0 - weights * known, SMALLEST_SLACK)
        total += float(weights @ (np.mean(residuals**2, axis=1) / slack**2))
        weight += float(weights.sum())
    return total / weight
