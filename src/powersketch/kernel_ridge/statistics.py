"""What ridge regression needs to know of its rows: sums that can be merged, and their solution."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dger

from powersketch.exceptions import InputError
from powersketch.kernel_ridge.accumulation import StatisticsSum, row_blocks
from powersketch.kernel_ridge.spectrum import GramSpectrum
from powersketch.kernel_ridge.targets import checked_targets, checked_weights
from powersketch.linalg import CholeskyFactor
from powersketch.parameters import checked_non_negative

__all__ = ["RidgeSolution", "RidgeStatistics", "block_statistics"]


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Coefficients and intercept, in the shapes of scikit-learn's ``Ridge``."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RidgeStatistics:
    """Weighted sums over rows of features Z and targets y that ridge regression is solved from.

    Second moments are about the means, which keeps their digits where the means are large. Two of
    these objects merge into that of all their rows, in any order and grouping, up to rounding
    errors: rows can be split among blocks, processes and machines.

    Parameters
    ----------
    count : int
        Number of rows of positive weight.
    weight : float
        Sum of the weights, w.
    feature_mean : ndarray of shape (m,)
        Σ w_i z_i / Σ w_i.
    target_mean : ndarray of shape () or (t,)
        Σ w_i y_i / Σ w_i.
    gram : ndarray of shape (m, m)
        Σ w_i (z_i − mean)(z_i − mean)ᵀ.
    cross : ndarray of shape (m,) or (m, t)
        Σ w_i (z_i − mean)(y_i − mean).
    target_squares : ndarray of shape () or (t,)
        Σ w_i (y_i − mean)².

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.kernel_ridge import RidgeStatistics, block_statistics
    >>> Z, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, 7.0])
    >>> halves = [block_statistics(Z[:2], y[:2]), block_statistics(Z[2:], y[2:])]
    >>> RidgeStatistics.merged(halves).solve(alpha=0.0)
    RidgeSolution(coef=array([2.]), intercept=array(1.))
    """

    count: int
    weight: float
    feature_mean: NDArray[np.float64]
    target_mean: NDArray[np.float64]
    gram: NDArray[np.float64]
    cross: NDArray[np.float64]
    target_squares: NDArray[np.float64]

    def __repr__(self) -> str:
        """Return the sizes: the arrays are too large to be read."""
        return (
            f"RidgeStatistics({self.count} rows of weight {self.weight:g}, "
            f"{self.feature_mean.size} features, {self.target_mean.size} targets)"
        )

    def merge(self, other: RidgeStatistics) -> RidgeStatistics:
        """Return the statistics of the rows of both.

        Parameters
        ----------
        other : RidgeStatistics
            Of the same numbers of features and targets.

        Returns
        -------
        RidgeStatistics
            A new object.
        """
        self._check_compatible(other)
        weight = self.weight + other.weight
        if not (self.weight and other.weight):
            return self if self.weight else other
        share, root = other.weight / weight, np.sqrt(self.weight * other.weight / weight)
        # Second moments about the joint mean [CGL83].
        apart = root * (other.feature_mean - self.feature_mean)
        targets_apart = root * (other.target_mean - self.target_mean)
        gram = np.add(self.gram, other.gram, order="F")
        return RidgeStatistics(
            count=self.count + other.count,
            weight=weight,
            feature_mean=_between(self.feature_mean, other.feature_mean, share),
            target_mean=_between(self.target_mean, other.target_mean, share),
            gram=dger(1.0, apart, apart, a=gram, overwrite_a=True),
            cross=self.cross + other.cross + np.multiply.outer(apart, targets_apart),
            target_squares=self.target_squares + other.target_squares + targets_apart**2,
        )

    @staticmethod
    def merged(parts: Iterable[RidgeStatistics]) -> RidgeStatistics:
        """Return the statistics of the rows of all parts.

        Parameters
        ----------
        parts : iterable of RidgeStatistics
            At least one.

        Returns
        -------
        RidgeStatistics
            The parts merged from the first to the last.
        """
        total = functools.reduce(lambda sum, part: sum.merge(part) if sum else part, parts, None)
        if total is None:
            raise InputError("there are no statistics to merge; at least 1 is necessary: give one.")
        return total

    def moments(
        self, *, fit_intercept: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return ZᵀWZ, ZᵀWy and yᵀWy: about the means if there is an intercept, else about 0.

        The first is the object's own array if there is an intercept: it is not to be changed.
        """
        if fit_intercept:
            return self.gram, self.cross, self.target_squares
        root = np.sqrt(self.weight)
        mean, target_mean = root * self.feature_mean, root * self.target_mean
        gram = dger(1.0, mean, mean, a=np.array(self.gram, order="F"), overwrite_a=True)
        cross = self.cross + np.multiply.outer(mean, target_mean)
        return gram, cross, self.target_squares + target_mean**2

    def solve(self, alpha: float, *, fit_intercept: bool = True) -> RidgeSolution:
        """Return the minimiser of Σ w_i (y_i − ⟨z_i, β⟩ − b)² + alpha ‖β‖².

        Parameters
        ----------
        alpha : float
            Not negative. With 0, the minimiser of least norm.
        fit_intercept : bool, default=True
            Whether b is free, and not penalised; otherwise b = 0.

        Returns
        -------
        RidgeSolution
            β of shape (m,) or (t, m), and b of shape () or (t,).
        """
        alpha = checked_non_negative("alpha", alpha, reason="as it penalises the coefficients")
        gram, cross, _ = self.moments(fit_intercept=fit_intercept)
        rounding = gram.shape[0] * float(np.finfo(np.float64).eps) * np.trace(gram)
        if alpha > rounding:
            # Row by row, as the factorisation takes it; the matrix is symmetric.
            coef = CholeskyFactor(gram.T.copy(order="C"), alpha=alpha) @ cross
        else:
            coef = GramSpectrum.of(gram).solve(cross, alpha)
        return self.solution(coef, fit_intercept=fit_intercept)

    def solution(self, coef: NDArray[np.float64], *, fit_intercept: bool) -> RidgeSolution:
        """Return these coefficients, of shape (m,) or (m, t), with the intercept they call for."""
        intercept = np.zeros_like(self.target_mean)
        if fit_intercept:
            intercept = self.target_mean - self.feature_mean @ coef
        return RidgeSolution(np.ascontiguousarray(coef.T), np.asarray(intercept))

    def _check_compatible(self, other: RidgeStatistics) -> None:
        if self.cross.shape != other.cross.shape:
            raise InputError(
                f"statistics of shape {self.cross.shape} and {other.cross.shape} cannot be merged; "
                "the numbers of features and of targets must be equal: use the same fitted map and "
                "the same targets for all blocks."
            )


def block_statistics(
    Z: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> RidgeStatistics:
    """Return the statistics of a block of rows.

    Parameters
    ----------
    Z : {array-like, sparse matrix or array} of shape (n, m)
        Features, finite real numbers.
    y : array-like of shape (n,) or (n, t)
        Targets, finite real numbers.
    sample_weight : array-like of shape (n,), default=None
        Weights, not negative. None means ones.

    Returns
    -------
    RidgeStatistics
        All sums in float64, whatever the dtype of Z.

    Examples
    --------
    >>> from powersketch.kernel_ridge import block_statistics
    >>> block_statistics([[0.0, 1.0], [2.0, 3.0]], [1.0, 2.0], sample_weight=[1.0, 0.5])
    RidgeStatistics(2 rows of weight 1.5, 2 features, 1 targets)
    """
    features, targets = checked_targets(Z, y)
    weights = checked_weights(sample_weight, features)
    return statistics_of_blocks(
        (features[rows], targets[rows], None if weights is None else weights[rows])
        for rows in row_blocks(*features.shape)
    )


def statistics_of_blocks(blocks: Iterator[tuple[Any, Any, Any]]) -> RidgeStatistics:
    """Return the statistics of all blocks (features, targets, weights or None) together."""
    total: StatisticsSum | None = None
    for Z, y, weights in blocks:
        if total is None:
            total = StatisticsSum.about_means(Z, y)
        total.add(Z, y, weights)
    if total is None:
        raise InputError("there are no rows; at least 1 is necessary: give a block of rows.")
    return RidgeStatistics(**total.centred())


def _between(first: NDArray[Any], second: NDArray[Any], share: float) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = np.asarray((1.0 - share) * first + share * second)
    return mean
