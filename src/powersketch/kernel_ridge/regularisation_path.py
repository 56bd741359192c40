"""The choice of alpha: scores of many values from one eigendecomposition."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powersketch.exceptions import InputError
from powersketch.kernel_ridge.spectrum import GramSpectrum
from powersketch.kernel_ridge.statistics import RidgeSolution, RidgeStatistics
from powersketch.validation import sound_array

_VALUES = 50
_DECADES = 10
LEAST_SHARE = 10.0**-_DECADES  # of the trace of the Gram matrix, for the smallest alpha
# Leverages come with rounding errors; one minus a leverage is not taken for less than this.
SMALLEST_SLACK = 1e-12
_COLUMNS_AT_A_TIME = 1024


class RegularisationWarning(UserWarning):
    """The best alpha is the smallest that was tried, and the error is not negligible.

    The message names what helps most: more features, a kernel that varies faster, smaller alphas.
    """


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
    cross: NDArray[np.float64]
    target_squares: NDArray[np.float64]

    @classmethod
    def of(cls, statistics: RidgeStatistics, *, fit_intercept: bool) -> Self:
        """Decompose the Gram matrix."""
        gram, cross, squares = statistics.moments(fit_intercept=fit_intercept)
        spectrum = GramSpectrum.of(gram)
        rotated = spectrum.vectors.T @ cross
        return cls(
            statistics,
            fit_intercept,
            spectrum,
            rotated.reshape(rotated.shape[0], -1),
            np.atleast_1d(squares),
        )

    def default_alphas(self) -> NDArray[np.float64]:
        """Return 50 values down to 1e-10 of the trace of the Gram matrix, ascending."""
        trace = float(self.spectrum.values.sum()) or 1.0
        return trace * np.logspace(-_DECADES, 0.0, _VALUES)

    def solve(self, alpha: float) -> RidgeSolution:
        """Return the solution for one alpha."""
        coef = self.spectrum.vectors @ (self.spectrum.inverses(alpha)[:, np.newaxis] * self.cross)
        coef = coef.reshape(self.statistics.cross.shape)
        return self.statistics.solution(coef, fit_intercept=self.fit_intercept)

    def generalised_errors(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return the scores of generalised cross-validation [GHW79].

        They are RSS / n / (1 − p / n)² with p the effective number of parameters, and infinite
        where p exceeds n / 2: there the residuals say nothing of the error.
        """
        rows = self.statistics.count
        parameters = self.effective_parameters(alphas)
        usable = parameters <= 0.5 * rows
        slack = np.where(usable, 1.0 - parameters / rows, 1.0)
        return np.where(usable, self.squared_residuals(alphas) / rows / slack**2, np.inf)

    def effective_parameters(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return tr H of every alpha, H the matrix from targets to predictions."""
        return np.asarray(self.spectrum.effective_dimension(alphas) + float(self.fit_intercept))

    def squared_residuals(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ w_i (y_i − prediction)² of every alpha, in the mean over the targets."""
        inverses = self.spectrum.inverses(alphas)
        # λ/(λ + α) of the target's part along an eigenvector is explained twice over, less once
        # squared: y² − 2 c²/(λ + α) + λ c²/(λ + α)².
        explained = 2.0 * inverses - self.spectrum.values[:, np.newaxis] * inverses**2
        squares = self.target_squares.mean() - np.mean(self.cross**2, axis=1) @ explained
        return np.asarray(np.maximum(squares, 0.0))

    def left_out_errors(
        self, alphas: NDArray[np.float64], blocks: Iterable[tuple[Any, Any, Any]]
    ) -> NDArray[np.float64]:
        """Return the mean squared error at rows left out one at a time, without any refit.

        A row of leverage h that is left out has a residual larger by 1 / (1 − h): an identity,
        with weights and an intercept too. The mean is over the rows of the blocks (features,
        targets, weights or None), which are some or all of the rows of the statistics.
        """
        total, weight = np.zeros(alphas.size), 0.0
        for Z, y, weights in blocks:
            weights = np.ones(Z.shape[0]) if weights is None else weights
            total += weights @ self._left_out_squares(alphas, Z, y, weights)
            weight += float(weights.sum())
        return total / weight

    def _left_out_squares(
        self,
        alphas: NDArray[np.float64],
        Z: Any,
        y: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the squares for every row and alpha, in the mean over the targets."""
        targets = y.reshape(y.shape[0], -1)
        if self.fit_intercept:
            Z, targets = Z - self.statistics.feature_mean, targets - self.statistics.target_mean
        rotated = np.asarray(Z, dtype=np.float64) @ self.spectrum.vectors
        inverses = self.spectrum.inverses(alphas)
        squares = self._squared_residuals_of(rotated, targets, inverses)
        constant = 1.0 / self.statistics.weight if self.fit_intercept else 0.0
        known = np.square(rotated, out=rotated) @ inverses + constant
        slack = np.maximum(1.0 - weights[:, np.newaxis] * known, SMALLEST_SLACK)
        return np.asarray(squares / slack**2)

    def _squared_residuals_of(
        self,
        rotated: NDArray[np.float64],
        targets: NDArray[np.float64],
        inverses: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return them for every row and alpha, in the mean over the targets."""
        squares = np.empty((rotated.shape[0], inverses.shape[1]))
        step = max(_COLUMNS_AT_A_TIME // targets.shape[1], 1)
        for start in range(0, inverses.shape[1], step):
            part = slice(start, start + step)
            coefs = inverses[:, part, np.newaxis] * self.cross[:, np.newaxis]
            fitted = rotated @ coefs.reshape(coefs.shape[0], -1)
            residuals = targets[:, np.newaxis] - fitted.reshape(-1, *coefs.shape[1:])
            squares[:, part] = np.mean(residuals**2, axis=2)
        return squares


def checked_alphas(alphas: ArrayLike | None) -> NDArray[np.float64] | None:
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


def chosen_by_left_out(alphas: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """Return the alpha of the least error."""
    return float(alphas[np.argmin(scores)])


def chosen_by_generalised(
    alphas: NDArray[np.float64], scores: NDArray[np.float64], rows: int
) -> float:
    """Return the largest alpha whose score is within a standard error of the least.

    The score is a mean of squares of about normal numbers, whose relative standard error is
    √(2 / n). Towards small alphas it is often flat to that amount while the error is not.
    """
    if not np.isfinite(scores).any():
        return float(alphas[-1])
    near = np.flatnonzero(scores <= scores.min() * (1.0 + np.sqrt(2.0 / rows)))
    return float(alphas[near[-1]])
