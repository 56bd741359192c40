"""What to do where the smallest alpha of a path is the best one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from powersketch.exceptions import warn_user
from powersketch.kernel_ridge.regularisation_path import LEAST_SHARE, RegularisationWarning
from powersketch.kernel_ridge.solutions import PrimalSolution
from powersketch.kernel_ridge.statistics import RidgeStatistics

# Of the features. With more of them in use, others would be used as well.
_MOST_IN_USE = 0.75
# Relative change of the score per relative change of alpha; with less, the curve has levelled off.
# That of large alphas may well be about to fall.
_STEEP, _STEEP_OF_LARGE = 0.2, 0.05
# Of the targets' variance. Such a fit leaves nothing to gain.
_PERFECT = 1e-6
# Alphas so many times above the least default are large ones, that were given.
_LARGE = 10.0


def warn_at_lower_end(
    solution: PrimalSolution, statistics: RidgeStatistics, *, fit_intercept: bool
) -> None:
    """Warn if the chosen alpha is the smallest of several, and name what helps most first."""
    alphas = solution.alphas
    if alphas is None or alphas.size == 1 or solution.alpha != alphas[0]:
        return
    remedies = list(_remedies(solution, statistics, fit_intercept=fit_intercept))
    if remedies:
        warn_user(
            f"the best score is that of alpha={solution.alpha:.3g}, the smallest that was tried. "
            + " ".join(remedies),
            RegularisationWarning,
        )


def _remedies(
    solution: PrimalSolution, statistics: RidgeStatistics, *, fit_intercept: bool
) -> Iterator[str]:
    gram, _, squares = statistics.moments(fit_intercept=fit_intercept)
    trace, features = float(np.trace(gram)), statistics.feature_mean.size
    rounding = features * float(np.finfo(np.float64).eps) * trace
    if _score(solution) * statistics.count <= _PERFECT * float(np.mean(squares)):
        return
    large = solution.alpha > _LARGE * LEAST_SHARE * trace
    slope = _slope(solution) if solution.alpha > rounding else 0.0
    if large and slope > _STEEP_OF_LARGE:
        yield "Give smaller alphas, or None for the default ones."
    yield _other_features(solution.effective_dimension or 0.0, features, statistics.count)
    if not large and slope > _STEEP:
        yield "Smaller alphas may help as well, if the data has no noise."


def _other_features(in_use: float, features: int, rows: int) -> str:
    if in_use < _MOST_IN_USE * min(features, rows):
        return (
            f"Use a larger gamma, or another kernel that varies faster: of {features} features, "
            f"this one has {in_use:.0f} in use."
        )
    if features < rows:
        return (
            f"Use more than the {features} features (n_components), which are all in use, or try "
            "another gamma."
        )
    return "Try another gamma: there are as many features as rows."


def _slope(solution: PrimalSolution) -> float:
    """Return d log score / d log alpha at the smallest alpha."""
    assert solution.alphas is not None
    assert solution.scores is not None
    (low, high), scores = solution.alphas[:2], solution.scores[:2]
    if not (np.isfinite(scores).all() and scores.min() > 0.0):
        return 0.0
    return math.log(scores[1] / scores[0]) / math.log(high / low)


def _score(solution: PrimalSolution) -> float:
    assert solution.scores is not None
    return float(solution.scores[0])
