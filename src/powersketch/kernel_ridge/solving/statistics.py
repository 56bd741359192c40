"""What ridge regression needs to know of its rows: sums that can be merged, and their solution."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.blas import dger

from powersketch.arrays import Float64, Real, Vector, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.kernel_ridge.rows.training_rows import checked_targets, checked_weights, row_blocks
from powersketch.kernel_ridge.solving.sums import GramSum, mirror_upper_triangle
from powersketch.linalg import cholesky_solution
from powersketch.parameters import checked_non_negative
from powersketch.storable import storable

MOST_ROWS_OF_PRODUCTS = 4096
"""Longer sums in float32 would lose digits, and in one go they would take more memory."""

ALPHA_PER_ROUNDING = 10.0
"""Errors of the Gram matrix this much smaller than the penalty cannot be seen in predictions."""

_CACHED = 2**16  # numbers that stay in cache

Blocks: TypeAlias = Iterable[tuple[Any, Float64, Vector | None]]
"""Features, targets, and weights or None, of one block of rows after the other."""


@storable
@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Coefficients and intercept, in the shapes of scikit-learn's ``Ridge``.

    Attributes
    ----------
    coef : ndarray of shape (m,) or (t, m)
        Of the features; with the exact kernel those of the rows, of shape (n,) or (n, t).
    intercept : ndarray of shape () or (t,)
        The constant term.
    alpha, fit_intercept : float, bool
        The penalty, and whether the intercept was free.
    alphas, scores : ndarray or None
        The path that alpha was chosen from, if it was.
    effective_dimension : float or None
        That of the features at this alpha, where it came with the choice.
    """

    coef: Float64
    intercept: Float64
    alpha: float = field(repr=False)
    fit_intercept: bool = field(repr=False)
    alphas: Vector | None = field(default=None, repr=False)
    scores: Vector | None = field(default=None, repr=False)
    effective_dimension: float | None = field(default=None, repr=False)


@storable
@dataclass(frozen=True, eq=False)
class RidgeStatistics:
    """Weighted sums over rows of features Z and targets y that ridge regression is solved from.

    Second moments are about the means, which keeps their digits where the means are large. Objects
    merge into that of all their rows, in any order and grouping, up to rounding errors: rows can be
    split among blocks, processes and machines.

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
    rounding : float, default=0.0
        About the norm of the errors of `gram` where products were computed in float32; 0 where
        everything was in float64, or errors are far smaller than `gram` in every direction.

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
    feature_mean: Float64
    target_mean: Float64
    gram: Float64
    cross: Float64
    target_squares: Float64
    rounding: float = 0.0

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
        if self.cross.shape != other.cross.shape:
            raise InputError(
                f"statistics of shape {self.cross.shape} and {other.cross.shape} cannot be merged; "
                "the numbers of features and of targets must be equal: use the same fitted map and "
                "the same targets for all blocks."
            )
        if not (self.weight and other.weight):
            return self if self.weight else other
        weight = self.weight + other.weight
        share, root = other.weight / weight, np.sqrt(self.weight * other.weight / weight)
        # Second moments about the joint mean [CGL83].
        apart = root * (other.feature_mean - self.feature_mean)
        targets_apart = root * (other.target_mean - self.target_mean)
        gram = np.add(self.gram, other.gram, order="F")
        return RidgeStatistics(
            count=self.count + other.count,
            weight=weight,
            feature_mean=(1.0 - share) * self.feature_mean + share * other.feature_mean,
            target_mean=np.asarray((1.0 - share) * self.target_mean + share * other.target_mean),
            gram=dger(1.0, apart, apart, a=gram, overwrite_a=True),
            cross=self.cross + other.cross + np.multiply.outer(apart, targets_apart),
            target_squares=self.target_squares + other.target_squares + targets_apart**2,
            rounding=self.rounding + other.rounding,
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

    def check_finite(self) -> None:
        """Refuse sums that are infinite or NaN, which no penalty repairs."""
        if not (np.isfinite(self.gram.diagonal()).all() and np.isfinite(self.cross).all()):
            raise InputError(
                "sums of products of features are infinite or NaN: features are so large that "
                "their squares are beyond the range of float64. Scale the columns of X, or use the "
                "Gaussian kernel, which is bounded."
            )

    def smallest_alpha(self, gram: Float64) -> float:
        """Return the penalty below which rounding errors of the Gram matrix decide."""
        return max(rounding_level(gram), ALPHA_PER_ROUNDING * self.rounding)

    def moments(self, *, fit_intercept: bool = True) -> tuple[Float64, Float64, Float64]:
        """Return ZᵀWZ, ZᵀWy and yᵀWy: not copied and about the means, or about 0 if b = 0."""
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
        gram, cross, _ = self.moments(fit_intercept=fit_intercept)
        rounding = self.smallest_alpha(gram)
        alpha = checked_non_negative("alpha", alpha, reason="as it penalises the coefficients")
        if alpha > rounding:
            # Row by row, as the factorisation takes it; the matrix is symmetric.
            coef = cholesky_solution(gram.T.copy(order="C"), cross, alpha)
        else:
            coef = GramSpectrum.of(gram).solve(cross, alpha)
        return self.solution(coef, alpha, fit_intercept=fit_intercept)

    def solution(
        self, coef: Float64, alpha: float, *, fit_intercept: bool, **path: Any
    ) -> RidgeSolution:
        """Return these coefficients, of shape (m,) or (m, t), with the intercept they call for."""
        intercept = np.zeros_like(self.target_mean)
        if fit_intercept:
            intercept = self.target_mean - self.feature_mean @ coef
        transposed = np.ascontiguousarray(coef.T)
        return RidgeSolution(transposed, np.asarray(intercept), alpha, fit_intercept, **path)


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


def statistics_of_blocks(
    blocks: Blocks, precision: Any = np.float64, rounding: float = 0.0
) -> RidgeStatistics:
    """Return the statistics of all blocks (features, targets, weights or None) together.

    Products of features may be computed in float32; then `rounding` says how large their errors
    are. They are computed while the iterator prepares the next block.
    """
    total: _StatisticsSum | None = None
    with ExitStack() as stack:
        for Z, y, weights in blocks:
            if total is None:
                gram = stack.enter_context(GramSum(Z.shape[1]))
                total = _StatisticsSum(Z, y, gram, precision)
            total.add(Z, y, weights)
        if total is None:
            raise InputError("there are no rows; at least 1 is necessary: give a block of rows.")
        return total.centred(rounding)


class _StatisticsSum:
    """First and second moments of features and targets about fixed shifts.

    The moments about the means follow at the end. Shifts near the means, here the means of the
    first block, keep their digits. Products of a block are computed in the given precision.
    """

    def __init__(self, Z: Any, y: Float64, gram: GramSum, precision: Any) -> None:
        # As it is subtracted from features of this precision.
        shift = np.asarray(Z.mean(axis=0, dtype=np.float64)).reshape(-1).astype(precision)
        self._shift, self._gram, features = shift, gram, shift.size
        self.target_shift = np.asarray(y.mean(axis=0))
        self._count, self._weight = 0, 0.0
        self._sums = np.zeros(features)
        # Two, as the products of a block are computed while the next one comes.
        self._memory = [np.empty((0, features), precision) for _ in range(2)]
        self._target_sums = np.zeros_like(self.target_shift)
        self._cross = np.zeros((features, *self.target_shift.shape))
        self._target_squares = np.zeros_like(self.target_shift)

    def add(self, Z: Any, y: Float64, weights: Float64 | None) -> None:
        """Add the rows of a block; weights of None are ones."""
        for part in slices(Z.shape[0], MOST_ROWS_OF_PRODUCTS):
            self._add(Z[part], y[part], None if weights is None else weights[part])

    def _add(self, Z: Any, y: Float64, weights: Float64 | None) -> None:
        Z = Z.toarray() if is_sparse(Z) else Z
        deviations = self._deviations_of(Z)
        roots = np.ones(Z.shape[0]) if weights is None else np.sqrt(weights)
        if weights is not None:
            deviations *= roots[:, np.newaxis].astype(deviations.dtype)
        targets = (y - self.target_shift) * roots.reshape(-1, *(1,) * (y.ndim - 1))
        self._gram.add(deviations)
        beside = np.column_stack((roots, targets)).astype(deviations.dtype, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = deviations.T @ beside
        self._sums += sums[:, 0]
        self._cross += sums[:, 1:].reshape(self._cross.shape)
        self._target_sums += roots @ targets
        self._target_squares += np.einsum("i...,i...->...", targets, targets)
        self._weight += float(roots @ roots)
        self._count += int(np.count_nonzero(roots))

    def _deviations_of(self, Z: Real) -> Real:
        """Return Z without the shift, in memory that is the same for every second block."""
        self._memory.reverse()
        if Z.shape[0] > self._memory[0].shape[0]:
            self._memory[0] = np.empty((Z.shape[0], self._shift.size), self._shift.dtype)
        deviations = self._memory[0][: Z.shape[0]]
        # Rows stay in cache between the two steps, which are faster than one of mixed dtypes.
        for part in slices(Z.shape[0], max(_CACHED // self._shift.size, 1)):
            deviations[part] = Z[part]
            deviations[part] -= self._shift
        return deviations

    def centred(self, rounding: float) -> RidgeStatistics:
        """Return the moments about the means; nothing can be added afterwards."""
        scale = 1.0 / self._weight if self._weight else 0.0
        drift, target_drift = scale * self._sums, scale * self._target_sums
        # Symmetric: its transpose, which lies in memory as the routine takes it, is the same.
        gram = self._gram.total().T
        gram = dger(-self._weight, drift, drift, a=gram, overwrite_a=True)
        mirror_upper_triangle(gram.T)
        statistics = RidgeStatistics(
            count=self._count,
            weight=self._weight,
            feature_mean=self._shift + drift,
            target_mean=np.asarray(self.target_shift + target_drift),
            gram=gram,
            cross=self._cross - self._weight * np.multiply.outer(drift, target_drift),
            target_squares=np.asarray(self._target_squares - self._weight * target_drift**2),
            rounding=rounding,
        )
        statistics.check_finite()
        return statistics


@dataclass(frozen=True, eq=False)
class GramSpectrum:
    """G = V diag(values) Vᵀ for a symmetric matrix without negative eigenvalues."""

    values: Float64
    vectors: Float64

    @classmethod
    def of(cls, gram: Float64) -> Self:
        """Decompose the matrix, which is left as it is."""
        values, vectors = interruptible(lambda: np.linalg.eigh(gram))
        # Rounding errors can make the smallest ones negative.
        return cls(np.maximum(values, 0.0), vectors)

    def inverses(self, alpha: float | Float64) -> Float64:
        """Return 1 / (values + alpha), and 0 where that is below rounding errors.

        With alpha = 0, zeros instead of huge numbers give the least-squares solution of least norm.
        """
        shifted = np.add.outer(self.values, alpha)
        rounding = self.values.size * float(np.finfo(np.float64).eps) * self.values.max()
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=shifted > rounding)

    def solve(self, right: Float64, alpha: float) -> Float64:
        """Return (G + alpha I)⁻¹ right, of least norm where that is not unique."""
        inverses = self.inverses(alpha).reshape(-1, *(1,) * (right.ndim - 1))
        solution: Float64 = self.vectors @ ((self.vectors.T @ right) * inverses)
        return solution

    def explained(self, alpha: float | Vector) -> Float64:
        """Return by how much the squared residuals fall per c², c = VᵀZᵀWy.

        They are y² − 2 c²/(λ + alpha) + λ c²/(λ + alpha)², λ the eigenvalues.
        """
        inverses = self.inverses(alpha)
        values = self.values.reshape(-1, *(1,) * (inverses.ndim - 1))
        return 2.0 * inverses - values * inverses**2

    def effective_dimension(self, alpha: float | Float64) -> Any:
        """Return tr(G (G + alpha I)⁻¹), the degrees of freedom that the regularisation leaves."""
        return self.values @ self.inverses(alpha)


def rounding_level(gram: Float64) -> float:
    """Return the penalty below which G + alpha I may be singular to working precision."""
    return float(gram.shape[0] * np.finfo(np.float64).eps * np.trace(gram))
