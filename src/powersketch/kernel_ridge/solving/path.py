"""The penalty alpha: a number, or the value of a path with the best score."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Float64, Real, Vector, slices
from powersketch.exceptions import InputError, warn_user
from powersketch.kernel_ridge.solving.factored_path import (
    DECADES,
    LEAST_SHARE,
    USUAL_TRIES,
    factored_path,
    factors_are_cheaper,
)
from powersketch.kernel_ridge.solving.left_out import SMALLEST_SLACK, centred
from powersketch.kernel_ridge.solving.statistics import (
    Blocks,
    GramSpectrum,
    RidgeSolution,
    RidgeStatistics,
)
from powersketch.validation import sound_array

_VALUES = 50
_EQUAL_SCORES = 1e-12  # relative differences that are rounding errors
_COLUMNS_AT_A_TIME = 1024
# With more than this share of the features in use, further ones would be used as well.
_MOST_IN_USE = 0.75
# Relative change of the score per relative change of alpha; with less, the curve has levelled off.
# That of large alphas may well be about to fall.
_STEEP, _STEEP_OF_LARGE = 0.2, 0.05
# Of the targets' variance. Such a fit leaves nothing to gain.
_PERFECT = 1e-6
# Of the targets' variance. With such errors, a curve may have levelled off far from its minimum.
_USELESS = 0.5
# An alpha this many times above the smallest default is large.
_LARGE = 10.0


class RegularisationWarning(UserWarning):
    """The best alpha is the smallest that was tried, and the error is not negligible.

    The message names what helps most: more features, a kernel that varies faster, smaller alphas.
    """


def checked_alphas(alphas: ArrayLike | None) -> Vector | None:
    """Return the values in ascending order; None stays None."""
    if alphas is None:
        return None
    values = np.asarray(sound_array("alphas", alphas))
    if values.dtype == object and values.ndim == 1:
        values = np.array([v if isinstance(v, numbers.Real) else np.nan for v in values])
    positive = values.ndim == 1 and values.size > 0 and values.dtype.kind in "iuf"
    if not (positive and (np.isfinite(values) & (values > 0.0)).all()):
        raise InputError(
            f"alphas={alphas!r}: allowed is a list of finite numbers above 0, at least one: "
            "give for example numpy.logspace(-6, 3, 50), or None."
        )
    return np.unique(values.astype(np.float64))


def ridge_solution(
    statistics: RidgeStatistics,
    alpha: float | str,
    alphas: Vector | None,
    left_out: Blocks,
    *,
    fit_intercept: bool,
    start: float | None = None,
) -> RidgeSolution:
    """Solve for the given alpha, or for the one chosen by "gcv", or by "loo" from `left_out`.

    Of many features, the default alphas are tried from a start downhill, by factors.
    """
    if not isinstance(alpha, str):
        return statistics.solve(alpha, fit_intercept=fit_intercept)
    if statistics.count < 2:
        raise InputError(
            f"alpha={alpha!r} needs at least 2 rows of positive weight, got 1 sample: give more "
            "rows, or a number for alpha."
        )
    tries = USUAL_TRIES if alphas is None else alphas.size
    if alpha == "loo" and factors_are_cheaper(tries, statistics.feature_mean.size):
        left_out = list(left_out)
        solution = factored_path(
            statistics, alphas, left_out, fit_intercept=fit_intercept, start=start
        )
        if solution is not None:
            return solution
    path = RegularisationPath.of(statistics, fit_intercept=fit_intercept)
    alphas = path.default_alphas() if alphas is None else alphas
    if alpha == "gcv":
        scores = path.generalised_errors(alphas)
        chosen = largest_within_error(alphas, scores, statistics.count)
    else:
        scores = path.left_out_errors(alphas, left_out)
        # Of equal scores that of the largest: where features say nothing, all are equal.
        best = np.flatnonzero(scores <= (1.0 + _EQUAL_SCORES) * scores.min())[-1]
        chosen = float(alphas[best])
    return path.solve(chosen, alphas=alphas, scores=scores)


def default_alphas(trace: float, count: int = _VALUES) -> Vector:
    """Return values from 1e-10 to 1 times the trace of a matrix, ascending."""
    return (trace or 1.0) * np.logspace(-DECADES, 0.0, count)


def largest_within_error(alphas: Vector, scores: Vector, rows: int) -> float:
    """Return the largest alpha whose generalised score is within a standard error of the least.

    The score is a mean of squares of about normal numbers, whose relative standard error is
    √(2 / n). Towards small alphas it is often flat to that amount while the error is not.
    """
    if not np.isfinite(scores).any():
        return float(alphas[-1])
    near = np.flatnonzero(scores <= scores.min() * (1.0 + np.sqrt(2.0 / rows)))
    return float(alphas[near[-1]])


@dataclass(frozen=True, eq=False)
class RegularisationPath:
    """Ridge regression for many values of alpha at once.

    In the basis of the eigenvectors of the Gram matrix every alpha is a division of numbers, so
    that fifty of them cost little more than one.
    """

    statistics: RidgeStatistics
    fit_intercept: bool
    spectrum: GramSpectrum
    # ZᵀWy in the basis of the eigenvectors, of shape (m, t).
    cross: Float64
    target_squares: Vector

    @classmethod
    def of(cls, statistics: RidgeStatistics, *, fit_intercept: bool) -> Self:
        """Decompose the Gram matrix."""
        gram, cross, squares = statistics.moments(fit_intercept=fit_intercept)
        spectrum = GramSpectrum.of(gram)
        rotated = spectrum.vectors.T @ cross
        rotated = rotated.reshape(rotated.shape[0], -1)
        return cls(statistics, fit_intercept, spectrum, rotated, np.atleast_1d(squares))

    def default_alphas(self, count: int = _VALUES) -> Vector:
        """Return values down to 1e-10 of the trace of the Gram matrix, ascending."""
        return default_alphas(float(self.spectrum.values.sum()), count)

    def solve(self, alpha: float, **path: Any) -> RidgeSolution:
        """Return the solution for one alpha."""
        coef = self.spectrum.vectors @ (self.spectrum.inverses(alpha)[:, np.newaxis] * self.cross)
        return self.statistics.solution(
            coef.reshape(self.statistics.cross.shape),
            alpha,
            fit_intercept=self.fit_intercept,
            effective_dimension=float(self.spectrum.effective_dimension(alpha)),
            **path,
        )

    def generalised_errors(self, alphas: Vector) -> Vector:
        r"""Return the scores of generalised cross-validation [GHW79].

        They are RSS / n / (1 − p / n)² with p the effective number of parameters, and infinite
        where p exceeds n / 2: there the residuals say nothing of the error.
        """
        rows = self.statistics.count
        parameters = self.effective_parameters(alphas)
        usable = parameters <= 0.5 * rows
        slack = np.where(usable, 1.0 - parameters / rows, 1.0)
        return np.where(usable, self.squared_residuals(alphas) / rows / slack**2, np.inf)

    def effective_parameters(self, alphas: Vector) -> Vector:
        """Return tr H of every alpha, H the matrix from targets to predictions."""
        return np.asarray(self.spectrum.effective_dimension(alphas) + float(self.fit_intercept))

    def squared_residuals(self, alphas: Vector) -> Vector:
        """Return Σ w_i (y_i − prediction)² of every alpha, in the mean over the targets."""
        squares = self.target_squares.mean()
        squares = squares - np.mean(self.cross**2, axis=1) @ self.spectrum.explained(alphas)
        return np.asarray(np.maximum(squares, 0.0))

    def left_out_errors(self, alphas: Vector, blocks: Blocks) -> Vector:
        """Return the mean squared error at rows left out one at a time.

        The mean is over the rows of the blocks, which are some or all of those of the statistics.
        """
        total, weight = np.zeros(alphas.size), 0.0
        for Z, y, given in blocks:
            weights = np.ones(Z.shape[0]) if given is None else given
            total += weights @ self.left_out_squares(alphas, Z, y, given)
            weight += float(weights.sum())
        return total / weight

    def left_out_squares(
        self, alphas: Vector, features: Real, y: Float64, given: Vector | None
    ) -> Float64:
        """Return the squared errors of rows left out one at a time, without any refit.

        A row of leverage h that is left out has a residual larger by 1 / (1 − h): an identity,
        with weights and an intercept too. There is a column for every alpha, and the mean is over
        the targets.
        """
        precise = features.astype(np.float64, copy=False)
        Z, targets, weights, constant = centred(
            self.statistics, precise, y, given, fit_intercept=self.fit_intercept
        )
        inverses = self.spectrum.inverses(alphas)
        rotated = Z @ self.spectrum.vectors
        squares = self._squared_residuals_of(rotated, targets, inverses)
        known = np.square(rotated, out=rotated) @ inverses + constant
        slack = np.maximum(1.0 - weights[:, np.newaxis] * known, SMALLEST_SLACK)
        return np.asarray(squares / slack**2)

    def _squared_residuals_of(
        self, rotated: Float64, targets: Float64, inverses: Float64
    ) -> Float64:
        """Return them for every row and alpha, in the mean over the targets."""
        squares = np.empty((rotated.shape[0], inverses.shape[1]))
        for part in slices(inverses.shape[1], max(_COLUMNS_AT_A_TIME // targets.shape[1], 1)):
            coefs = inverses[:, part, np.newaxis] * self.cross[:, np.newaxis]
            fitted = rotated @ coefs.reshape(coefs.shape[0], -1)
            residuals = targets[:, np.newaxis] - fitted.reshape(-1, *coefs.shape[1:])
            squares[:, part] = np.mean(residuals**2, axis=2)
        return squares


def warn_at_lower_end(
    solution: RidgeSolution,
    statistics: RidgeStatistics,
    *,
    are_columns: bool = False,
    best_of_kernels: bool = False,
) -> None:
    """Warn if the chosen alpha is the smallest of several, and name what helps most first.

    Features may be the columns themselves, which have no gamma; that other kernels are no better
    may be known.
    """
    alphas, scores = solution.alphas, solution.scores
    if alphas is None or scores is None or alphas.size == 1 or solution.alpha != alphas[0]:
        return
    gram, _, squares = statistics.moments(fit_intercept=solution.fit_intercept)
    if scores[0] * statistics.count <= _PERFECT * float(np.mean(squares)):
        return
    large = solution.alpha > _LARGE * LEAST_SHARE * float(np.trace(gram))
    slope = _slope(alphas, scores) if solution.alpha > statistics.smallest_alpha(gram) else 0.0
    if are_columns and best_of_kernels:
        useless = scores[0] * statistics.count > _USELESS * float(np.mean(squares))
        if useless or slope > (_STEEP_OF_LARGE if large else _STEEP):
            warn_user(_advice_on_best_line(solution.alpha, large=large), RegularisationWarning)
        return
    advice = [f"the best score is that of alpha={solution.alpha:.3g}, the smallest that was tried."]
    if large and slope > _STEEP_OF_LARGE:
        advice.append("Give smaller alphas, or None for the default ones.")
    in_use, features = solution.effective_dimension or 0.0, statistics.feature_mean.size
    advise = _advice_on_columns if are_columns else _advice_on_features
    advice.append(advise(in_use, features, statistics.count))
    if not large and slope > _STEEP:
        advice.append("Smaller alphas may help as well, if the data has no noise.")
    warn_user(" ".join(advice), RegularisationWarning)


def _advice_on_features(in_use: float, features: int, rows: int) -> str:
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


def _advice_on_columns(in_use: float, columns: int, rows: int) -> str:
    if in_use < _MOST_IN_USE * min(columns, rows):
        return (
            f"Give the columns equal spread (scaling='scaled'): of {columns}, only {in_use:.0f} "
            "are large enough to be in use."
        )
    return "Use a kernel that is not linear, or 'auto'."


def _advice_on_best_line(alpha: float, *, large: bool) -> str:
    found = f"the best score is that of alpha={alpha:.3g}, the smallest that was tried."
    if large:
        return f"{found} Give smaller alphas, or None for the default ones."
    smaller = [float(f"{alpha * ratio:.1g}") for ratio in (1e-6, 1e-4, 1e-2, 1.0)]
    return (
        f"{found} No other kernel is better than a line, and columns may depend on each other: "
        f"give smaller alphas, such as {smaller}, or remove columns that follow from others."
    )


def _slope(alphas: Vector, scores: Vector) -> float:
    """Return d log score / d log alpha at the smallest alpha."""
    if not (np.isfinite(scores[:2]).all() and scores[:2].min() > 0.0):
        return 0.0
    return math.log(scores[1] / scores[0]) / math.log(alphas[1] / alphas[0])
