"""Exact kernel ridge regression whose alpha is chosen by leaving out one row at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Rows, Vector
from powersketch.exceptions import InputError
from powersketch.execution import check_fits_memory, interruptible
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.dual import with_intercept
from powersketch.kernel_ridge.solving.factored_path import descend
from powersketch.kernel_ridge.solving.left_out import LeftOut, squares
from powersketch.kernel_ridge.solving.path import default_alphas
from powersketch.kernel_ridge.solving.statistics import GramSpectrum, RidgeSolution
from powersketch.kernels import Kernel
from powersketch.linalg import cholesky_in_place
from powersketch.random_streams import RandomStreams

# Up to this many rows an eigendecomposition gives all alphas; beyond, each takes a factorisation.
_ROWS_TO_DECOMPOSE = 1536
_MATRICES_OF_FACTOR = 2
EXACT_MATRICES = 4
"""Of rows × rows: the kernel matrix, a weighted copy, its eigenvectors, what LAPACK needs."""
# Of the steps from an alpha to begin with.
_RATIO = 10.0**0.5
# Of the mean diagonal of the kernel matrix: no smaller alpha leaves a matrix to factor.
_SMALLEST_ALPHA = 1e-12
_SMALLEST_SLACK = 1e-12
_STANDARD_ERRORS = 0.5
_EQUAL_COSTS = 1e-6  # relative differences that are rounding errors, or nearly so
# Of the least mean square: what another cost, of more noise, may choose from.
_LARGEST_SQUARES = 1.1
# Scores are means over at most this many rows, each of which takes as long as a few products.
_LEFT_OUT_ROWS = 1024
_SMALLEST_FREEDOM = 1e-10  # per row


class Inverse(Protocol):
    """Applies (K + alpha W⁻¹)⁻¹, and knows its diagonal at some rows."""

    def solve(self, right: Float64) -> Float64:
        """Return the product with some columns."""

    def diagonal(self, rows: Any) -> Vector:
        """Return the entries of the diagonal at some rows."""


@dataclass(frozen=True, eq=False)
class _Tried:
    alpha: float
    coef: Float64
    intercept: Vector
    left_out: LeftOut

    @property
    def score(self) -> float:
        """The mean square of the residuals of rows left out."""
        return self.left_out.mean(squares(self.left_out))


def exact_path(
    rows: TrainingRows,
    kernel: Kernel,
    alphas: Vector | None,
    *,
    fit_intercept: bool,
    streams: RandomStreams,
    n_jobs: int | None,
    start: Callable[[], float],
    costs: Callable[[LeftOut], Vector] | None = None,
    memory_budget: float | None = None,
) -> tuple[RidgeSolution, LeftOut]:
    """Return the dual solution of the least leave-one-out error, and what rows left out got.

    Of many rows, alphas are tried downhill from what `start` returns, which is called if needed.
    `costs` are what errors at single rows cost, if not their squares.
    """
    if rows.count < 2:
        raise InputError(
            "alpha='loo' needs at least 2 rows of positive weight, got 1 sample: give more "
            "rows, or a number for alpha."
        )
    _check_memory(rows.count, memory_budget)
    matrix = kernel(rows.X, dtype=np.float64, n_jobs=n_jobs)
    sample = streams.sample("left-out", rows.count, min(rows.count, _LEFT_OUT_ROWS))
    tried: dict[float, _Tried] = {}

    def score(alpha: float, inverse: Inverse) -> float:
        tried[alpha] = _tried(alpha, inverse, rows, np.sort(sample), fit_intercept=fit_intercept)
        return tried[alpha].score

    if rows.count <= _ROWS_TO_DECOMPOSE:
        decomposed = Decomposed.of(matrix, rows)
        values = default_alphas(float(decomposed.spectrum.values.sum()))
        for alpha in (values if alphas is None else alphas).tolist():
            score(alpha, decomposed.with_alpha(alpha))
    elif alphas is not None:
        for alpha in alphas.tolist():
            score(alpha, Factored.of(matrix, rows, alpha))
    else:
        least = _SMALLEST_ALPHA * float(matrix.diagonal().mean())
        descend(
            lambda alpha: score(alpha, Factored.of(matrix, rows, alpha)),
            max(start(), least),
            least,
            (_RATIO,),
        )
    best = _best(list(tried.values()), costs)
    shape, path = rows.targets.shape, sorted(tried)
    solution = RidgeSolution(
        best.coef.reshape(shape),
        best.intercept.reshape(shape[1:]),
        best.alpha,
        fit_intercept,
        np.array(path),
        np.array([tried[alpha].score for alpha in path]),
    )
    return solution, best.left_out


def _check_memory(rows: int, budget: float | None) -> None:
    """Refuse a kernel matrix that does not fit beside its factor, or what decomposing it takes."""
    matrices = _MATRICES_OF_FACTOR if rows > _ROWS_TO_DECOMPOSE else EXACT_MATRICES
    what, needed = f"the kernel matrix of {rows} rows and its factor", matrices * 8 * rows**2
    remedy = "use features='landmarks' or 'sketch', or give fewer rows"
    check_fits_memory(what, needed, remedy)
    if budget is not None and needed > budget:
        raise InputError(
            f"{what} takes {needed} bytes of memory, and memory_budget={budget:g}: {remedy}, or a "
            "number for alpha, for which the matrix need not be stored."
        )


def alpha_for_few(matrix: Float64, rows: TrainingRows, *, fit_intercept: bool) -> float:
    """Return the alpha of the least leave-one-out error for the kernel matrix of a few rows."""
    decomposed, every = Decomposed.of(matrix, rows), np.arange(rows.count)
    values = default_alphas(float(decomposed.spectrum.values.sum()))
    tried = [
        _tried(alpha, decomposed.with_alpha(alpha), rows, every, fit_intercept=fit_intercept)
        for alpha in values.tolist()
    ]
    return _best(tried, None).alpha


def _best(tried: list[_Tried], costs: Callable[[LeftOut], Vector] | None) -> _Tried:
    """Return the largest alpha whose costs are within chance of the least.

    A larger penalty is safer with rows unlike these, and its coefficients cancel less.
    """
    if costs is not None:
        largest = _LARGEST_SQUARES * min(one.score for one in tried)
        tried = [one for one in tried if one.score <= largest]
    tried = sorted(tried, key=lambda one: one.alpha)
    row_costs = [(costs or squares)(one.left_out) for one in tried]
    means = [one.left_out.mean(cost) for one, cost in zip(tried, row_costs, strict=True)]
    least = int(np.argmin(means))
    for number in range(len(tried) - 1, least, -1):
        differences = row_costs[number] - row_costs[least]
        noise = float(np.std(differences)) / math.sqrt(differences.size)
        slack = max(_STANDARD_ERRORS * noise, _EQUAL_COSTS * abs(means[least]))
        if means[number] - means[least] <= slack:
            return tried[number]
    return tried[least]


def _tried(
    alpha: float, inverse: Inverse, rows: TrainingRows, sample: Any, *, fit_intercept: bool
) -> _Tried:
    """Solve, and leave out one row at a time.

    A row has the residual c_i / B_ii if it is left out, where c are the coefficients and B is the
    inverse matrix, without its part along ones if there is an intercept: an identity.
    """
    targets = rows.targets.reshape(rows.count, -1)
    known = inverse.diagonal(sample)
    if fit_intercept:
        solved = inverse.solve(np.column_stack((targets, np.ones(rows.count))))
        coef, intercept = with_intercept(solved)
        ones = solved[:, -1]
        known = known - ones[sample] ** 2 / ones.sum()
    else:
        coef, intercept = inverse.solve(targets), np.zeros(targets.shape[1])
    weights = np.ones(len(sample)) if rows.weights is None else rows.weights[sample]
    slacks = np.maximum(alpha * known / weights, _SMALLEST_SLACK)
    residuals = alpha * coef[sample] / (weights * slacks)[:, np.newaxis]
    kept = targets[sample]
    return _Tried(alpha, coef, intercept, LeftOut(kept - residuals, kept, slacks, weights))


@dataclass(frozen=True, eq=False)
class Decomposed:
    """W^½ K W^½ by its eigenvectors, which serve all alphas."""

    spectrum: GramSpectrum
    roots: Vector
    alpha: float = 0.0

    @classmethod
    def of(cls, matrix: Float64, rows: TrainingRows) -> Decomposed:
        """Decompose the kernel matrix of some rows."""
        roots = np.ones(rows.count) if rows.weights is None else np.sqrt(rows.weights)
        return cls(GramSpectrum.of(matrix * roots * roots[:, np.newaxis]), roots)

    def with_alpha(self, alpha: float) -> Decomposed:
        """Return the inverse for another alpha."""
        return Decomposed(self.spectrum, self.roots, alpha)

    def solve(self, right: Float64) -> Float64:
        """Return the product with some columns."""
        scaled = self.roots[:, np.newaxis] * right
        rotated = self.spectrum.vectors.T @ scaled
        rotated *= (1.0 / (self.spectrum.values + self.alpha))[:, np.newaxis]
        return np.asarray(self.roots[:, np.newaxis] * (self.spectrum.vectors @ rotated))

    def diagonal(self, rows: Any) -> Vector:
        """Return the entries of the diagonal at some rows."""
        squares = self.spectrum.vectors[rows] ** 2
        sums = squares @ (1.0 / (self.spectrum.values + self.alpha))
        return np.asarray(self.roots[rows] ** 2 * sums)


@dataclass(frozen=True, eq=False)
class Factored:
    """K + alpha W⁻¹ by its Cholesky factor."""

    factor: Float64

    @classmethod
    def of(cls, matrix: Float64, rows: TrainingRows, alpha: float) -> Factored:
        """Factor a copy of the matrix; say which alpha would do if this one is too small."""
        factor = matrix.copy()
        penalties = alpha if rows.weights is None else alpha / rows.weights
        factor[np.diag_indices_from(factor)] += penalties
        if not cholesky_in_place(factor):
            raise InputError(
                f"alpha={alpha:.3g} is too small for the kernel matrix of these rows, which is "
                "singular to working precision: give larger alphas, or leave alphas at None."
            )
        return cls(factor)

    def solve(self, right: Float64) -> Float64:
        """Return the product with some columns."""
        return interruptible(
            lambda: linalg.cho_solve((self.factor.T, False), right, check_finite=False)
        )

    def diagonal(self, rows: Any) -> Vector:
        """Return the entries of the diagonal at some rows."""
        unit = np.zeros((self.factor.shape[0], len(rows)), order="F")
        unit[rows, np.arange(len(rows))] = 1.0
        half = self.half(unit)
        return np.asarray(np.einsum("ij,ij->j", half, half))

    def half(self, right: Float64) -> Float64:
        """Return the product of the inverse of the factor and some columns."""
        return interruptible(
            lambda: linalg.solve_triangular(
                self.factor.T, right, trans=1, lower=False, check_finite=False
            )
        )


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """The posterior of f and the intercept given all rows, with the exact kernel.

    It is that of a Gaussian process with the prior covariance σ² / alpha · k and noise of variance
    σ² / w_i, and a flat prior of the intercept.
    """

    kernel: Kernel
    points: Rows
    alpha: float
    inverse: Factored
    # A⁻¹ 1, or None without an intercept.
    ones: Vector | None
    noise_variance: Float64

    @classmethod
    def of(
        cls, rows: TrainingRows, kernel: Kernel, solution: RidgeSolution, seed: int
    ) -> ExactPosterior:
        """Factor the system, and estimate the noise by the residuals."""
        alpha, weights = solution.alpha, rows.weights
        weights = np.ones(rows.count) if weights is None else weights
        inverse = Factored.of(kernel(rows.X, dtype=np.float64), rows, alpha)
        streams = RandomStreams(seed, "kernel-ridge/noise")
        sample = streams.sample("rows", rows.count, min(rows.count, _LEFT_OUT_ROWS))
        known, ones = inverse.diagonal(sample), None
        if solution.fit_intercept:
            ones = inverse.solve(np.ones(rows.count))
            known = known - ones[sample] ** 2 / ones.sum()
        freedom = rows.count * float(np.mean(alpha * known / weights[sample]))
        check_freedom(freedom, rows.count)
        residuals = (alpha / weights * solution.coef.T).T
        squares = weights @ residuals**2
        return cls(kernel, rows.X, alpha, inverse, ones, np.asarray(squares / freedom))

    def variances(self, X: Rows) -> Float64:
        """Return the variance of new observations of weight one, for every target."""
        values = self.kernel(self.points, X, dtype=np.float64)
        half = self.inverse.half(values)
        unknown = self.kernel.diagonal(X) - np.einsum("ij,ij->j", half, half)
        if self.ones is not None:
            unknown = unknown + (1.0 - self.ones @ values) ** 2 / self.ones.sum()
        factors = 1.0 + np.maximum(unknown, 0.0) / self.alpha
        return np.asarray(np.multiply.outer(factors, self.noise_variance))


def check_freedom(freedom: float, rows: int) -> None:
    """Refuse to estimate noise where residuals are rounding errors."""
    if freedom <= _SMALLEST_FREEDOM * rows:
        raise InputError(
            f"the noise is estimated by residuals, for which {rows} rows leave "
            f"{max(freedom, 0.0):.3g} degrees of freedom; necessary is more than rounding errors: "
            "give more rows, or use a larger alpha."
        )
