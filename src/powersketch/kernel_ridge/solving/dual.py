"""Functions that are sums of kernel values, and the system that makes one of all rows the best."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Rows, Vector, slices
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.features import Features, map_of_kernel
from powersketch.kernel_ridge.solving.statistics import RidgeSolution
from powersketch.kernel_systems import (
    SketchPreconditioner,
    bytes_of_matrix,
    default_rank,
    exact_preconditioner,
    is_factored,
)
from powersketch.kernels import Kernel
from powersketch.linalg import (
    CholeskyFactor,
    KernelOperator,
    LowRankInverse,
    SolverResult,
    SymmetricOperator,
    conjugate_gradients,
    dominant_rows_message,
    warn_if_not_converged,
)
from powersketch.parameters import checked_alpha, checked_tolerance
from powersketch.storable import storable

_PANEL_ROWS = 512
# So few rows are predicted with points that are prepared once, and held if they are not too large.
_FEW_ROWS, _BYTES_HELD = 32, 256 << 20
# For every number of a target: those of the iterations.
_BYTES_OF_VECTORS = 100
_MOST_WEIGHTED = 2000  # components beside weights, which are kept in float64


@storable
@dataclass(frozen=True, eq=False)
class KernelSum:
    """The function x ↦ k(x, points) @ coef + x @ slopes, which needs no features of x."""

    kernel: Kernel
    points: Rows
    coef: Float64
    slopes: Float64 | None = None

    def values(self, X: Rows, n_jobs: int | None) -> Real:
        """Return the function's values at rows, without holding the kernel's for many of them."""
        if X.shape[0] <= _FEW_ROWS and 8 * math.prod(self.points.shape) <= _BYTES_HELD:
            values = self._columns(X, np.dtype(np.float64)) @ self.coef
        else:
            values = self.kernel.product(X, self.coef, self.points, n_jobs=n_jobs)
        return values if self.slopes is None else values + X @ self.slopes

    @cached_property
    def _columns(self) -> Callable[[Rows, np.dtype[Any]], Real]:
        """The kernel's values at the points, which are prepared once: single rows come often."""
        return self.kernel.columns(self.points)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_columns"}


def sum_at_landmarks(features: Features, coef: Float64) -> KernelSum | None:
    """Return z(·) @ coefᵀ as a sum of kernel values if the map is one of landmarks."""
    landmarks = features.landmarks
    if landmarks is None:
        return None
    size = len(landmarks.factor_)
    of_map, of_columns = coef.T[:size], coef.T[size:]
    solved = linalg.solve_triangular(
        landmarks.factor_, of_map, trans=1, lower=True, check_finite=False
    )
    slopes = math.sqrt(features.weight) * of_columns if features.weight else None
    return KernelSum(landmarks.kernel_, landmarks.landmarks_, solved, slopes)


@dataclass(frozen=True, eq=False)
class DualSystem:
    """K + alpha W⁻¹, whose solution for y gives the coefficients of the rows of weights W.

    They minimise Σ w_i (y_i − f(x_i))² + alpha ‖f‖² over f = Σ coef_i k(·, x_i).
    """

    rows: TrainingRows
    kernel: Kernel
    alpha: float
    memory_budget: int | None
    seed: int
    n_jobs: int | None

    def operator(self) -> Any:
        """Return the matrix as an operator."""
        budget = self.memory_budget
        if budget is not None:
            budget = bytes_of_matrix(self.rows.count, self._bytes_left)
        options: dict[str, Any] = {"memory_budget": budget, "n_jobs": self.n_jobs}
        weights = self._weights
        if weights is None:
            return KernelOperator(self.kernel, self.rows.X, self.alpha, **options)
        checked_alpha(self.alpha / float(weights.min()))
        return _WeightedOperator(
            KernelOperator(self.kernel, self.rows.X, **options), self.alpha / weights
        )

    def inverse(self, operator: Any, verbose: int = 0) -> Any:
        """Return an approximate inverse of the operator of this system, weights included.

        This is a Cholesky factor of the stored matrix up to the size to which systems without
        weights are factored, and else the inverse of a Nyström approximation. Its `nugget`, if it
        has one, is the alpha that rounding errors would have needed.
        """
        weights = self._weights
        if weights is None:
            size = None if is_factored(operator) else self._rank(operator)
            return exact_preconditioner(
                operator, n_components=size, seed=self.seed, verbose=verbose
            )
        if is_factored(operator.kernel):
            return _factored(operator, weights, self.alpha, self.rows.X.dtype)
        rank = min(self._rank(operator.kernel, in_float64=True), _MOST_WEIGHTED)
        return self._low_rank(weights, rank)

    def preconditioner(self) -> SketchPreconditioner:
        """Return an approximate inverse; weights count by their geometric mean."""
        return SketchPreconditioner(
            self.rows.X,
            self.kernel,
            self.alpha / self._mean_weight,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )

    def _rank(self, operator: KernelOperator, *, in_float64: bool = False) -> int:
        """Return how many columns fit beside what is stored of the matrix."""
        stored = 0 if operator.stored == "nothing" else np.dtype(operator.stored).itemsize
        left = max(self._bytes_left - stored * self.rows.count**2, 0.0)
        return default_rank(self.rows.count, left, in_float64=in_float64)

    def _low_rank(self, weights: Vector, rank: int) -> _ScaledInverse:
        """Return W^½ (W^½ K' W^½ + nugget)⁻¹ W^½ for a Nyström approximation K' of K."""
        roots = np.sqrt(weights)
        features = map_of_kernel("uniform", self.kernel, rank, seed=self.seed, n_jobs=self.n_jobs)
        Z = features.fit(self.rows.X).transform(self.rows.X).astype(np.float64, copy=False)
        Z *= roots[:, np.newaxis]
        return _ScaledInverse(roots, LowRankInverse.with_tail(Z, self.alpha), self.alpha)

    @property
    def _bytes_left(self) -> float:
        """What the budget leaves for matrices beside vectors, and the rows that a model keeps."""
        if self.memory_budget is None:
            return math.inf
        numbers = self.rows.targets.size + self.rows.count
        return max(self.memory_budget - _BYTES_OF_VECTORS * numbers - self.rows.bytes, 0.0)

    @property
    def _weights(self) -> Vector | None:
        """None also where there is no penalty that they could change."""
        return self.rows.weights if self.alpha else None

    @property
    def _mean_weight(self) -> float:
        """The geometric mean: no weight is further from it than the extremes are apart."""
        weights = self.rows.weights
        return 1.0 if weights is None else float(np.exp(np.log(weights).mean()))


def exact_solution(
    system: DualSystem, *, fit_intercept: bool, tol: float, verbose: int
) -> tuple[RidgeSolution, SolverResult]:
    """Return coefficients and intercept without any approximation, and how the solver fared."""
    tol = checked_tolerance(tol)
    targets = system.rows.targets
    right = targets.reshape(targets.shape[0], -1)
    if fit_intercept:
        right = np.column_stack((right, np.ones(right.shape[0])))
    result = _solve(system, right, tol, verbose)
    if not result.interrupted:
        warn_if_not_converged(result)
    coef, constant = result.x, np.zeros(result.x.shape[1])
    if fit_intercept:
        coef, constant = with_intercept(result.x)
    intercept = constant.reshape(targets.shape[1:])
    solution = RidgeSolution(coef.reshape(targets.shape), intercept, system.alpha, fit_intercept)
    return solution, result


def _solve(system: DualSystem, right: Float64, tol: float, verbose: int) -> SolverResult:
    operator = system.operator()
    inverse = system.inverse(operator, verbose)
    options: dict[str, Any] = {"keep_interrupted": True, "verbose": verbose}
    result = conjugate_gradients(operator, right, preconditioner=inverse, tol=tol, **options)
    if result.converged or result.interrupted:
        return result
    needed = getattr(inverse, "nugget", system.alpha)
    cause = dominant_rows_message(system.kernel.diagonal(system.rows.X), system.rows.numbers)
    message = _failure(result, tol, system.alpha, needed, cause)
    return replace(result, message=message)


def _failure(
    result: SolverResult, tol: float, alpha: float, needed: float, cause: str | None
) -> str:
    """Say what was reached, and what a user of the estimator can change."""
    reached = (
        f"features='exact' has not converged: a residual of {result.residual:.2g} after "
        f"{result.iterations} iterations is above tol={tol:g}"
    )
    if cause is not None:
        return f"{reached}: {cause}."
    if needed > alpha:
        return (
            f"{reached}. The system is singular to working precision, as it is for alpha=0 where "
            f"rows of X are equal: use an alpha well above {needed:.1e}, which its factor took, or "
            "features='sketch'."
        )
    return f"{reached}: use a larger tol, a larger alpha than {alpha:g}, or features='sketch'."


def with_intercept(
    solutions: Float64,
) -> tuple[Float64, Float64]:
    """Return coefficients and intercepts from the solutions for the targets and for ones.

    The derivative by the intercept vanishes where the coefficients have the sum zero.
    """
    of_targets, of_ones = solutions[:, :-1], solutions[:, -1]
    # The sum is zero only where the solver has failed at once, and all is zero.
    intercept = of_targets.sum(axis=0) / (of_ones.sum() or 1.0)
    return of_targets - np.multiply.outer(of_ones, intercept), intercept


class _WeightedOperator(SymmetricOperator):
    """A kernel matrix plus a diagonal matrix."""

    def __init__(self, kernel: KernelOperator, penalties: Vector) -> None:
        super().__init__(kernel.shape[0])
        self.kernel, self.penalties = kernel, penalties
        self.rounding = kernel.rounding

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"{self.kernel.describe()}, with weights"

    def exact_product(self, V: Float64) -> Float64:
        """Return the product at float64 accuracy."""
        return self._shifted(self.kernel.exact_product(V), V)

    def _matmat(self, V: Any) -> Any:
        return self._shifted(self.kernel.matmat(V), V)

    def _shifted(self, product: Any, V: Float64) -> Float64:
        shifted: Float64 = product + (V.T * self.penalties).T
        return shifted


class _ScaledInverse(SymmetricOperator):
    """S M S for a diagonal matrix S, where M approximates the inverse of S A S."""

    def __init__(
        self,
        scales: Vector,
        inverse: CholeskyFactor | LowRankInverse,
        nugget: float,
    ) -> None:
        super().__init__(inverse.shape[0])
        self._scales, self._inverse = scales[:, np.newaxis], inverse
        self.nugget = nugget

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"with weights: {self._inverse.describe()}"

    def _matmat(self, V: Any) -> Any:
        return self._scales * self._inverse.matmat(self._scales * V)


def _factored(
    operator: _WeightedOperator, weights: Vector, alpha: float, dtype: Any
) -> _ScaledInverse:
    """Return the inverse by a factor of the stored matrix, scaled to a diagonal of ones.

    Penalties of many orders of magnitude are then no reason to add a jitter of the size of the
    largest, or to take float32 for too short.
    """
    matrix: Any = operator.kernel.matrix
    diagonal = matrix.diagonal() + operator.penalties
    scales = 1.0 / np.sqrt(diagonal)
    factor = CholeskyFactor(_scaled(matrix, scales, dtype), dtype=dtype)
    if factor.precision != dtype and matrix.dtype != dtype:
        # Rounding the matrix has cost digits that a factor in float64 needs.
        factor = CholeskyFactor(_scaled(matrix, scales, matrix.dtype))
    nugget = alpha + factor.jitter * float((weights * diagonal).max())
    return _ScaledInverse(scales, factor, nugget)


def _scaled(matrix: Real, scales: Vector, dtype: Any) -> Real:
    """Return S K S with ones on the diagonal; no entry is larger, so that float32 suffices."""
    scaled = np.empty(matrix.shape, dtype)
    for rows in slices(matrix.shape[0], _PANEL_ROWS):
        scaled[rows] = matrix[rows] * scales * scales[rows, np.newaxis]
    np.fill_diagonal(scaled, 1.0)
    return scaled
