"""The system of kernel ridge regression in the coefficients of the rows, with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from powersketch.kernel_ridge.primal import TrainingRows, features_of
from powersketch.kernel_systems import (
    SketchPreconditioner,
    default_rank,
    exact_preconditioner,
    is_factored,
)
from powersketch.kernels import Kernel
from powersketch.linalg import CholeskyFactor, KernelOperator, LowRankInverse
from powersketch.nystroem import LeverageNystroem
from powersketch.parameters import checked_alpha

_PANEL_ROWS = 512


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
        options: dict[str, Any] = {"memory_budget": self.memory_budget, "n_jobs": self.n_jobs}
        weights = self._weights
        if weights is not None:
            checked_alpha(self.alpha / float(weights.min()))
        if weights is None:
            return KernelOperator(self.kernel, self.rows.X, self.alpha, **options)
        return _WeightedOperator(
            KernelOperator(self.kernel, self.rows.X, **options), self.alpha / weights
        )

    def inverse(self, operator: Any, verbose: int = 0) -> Any:
        """Return an approximate inverse of the operator, which was made here, weights included.

        This is a Cholesky factor of the stored matrix up to the size to which systems without
        weights are factored, and else the inverse of a Nyström approximation. Its `nugget`, if it
        has one, is the alpha that rounding errors would have needed.
        """
        weights = self._weights
        if weights is None:
            return exact_preconditioner(operator, seed=self.seed, verbose=verbose)
        if is_factored(operator.kernel):
            return _factored(operator, weights, self.alpha, self.rows.X.dtype)
        return self._low_rank(weights)

    def preconditioner(self) -> SketchPreconditioner:
        """Return an approximate inverse; weights count by their geometric mean."""
        return SketchPreconditioner(
            self.rows.X,
            self.kernel,
            self.alpha / self._mean_weight,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )

    def _low_rank(self, weights: NDArray[np.float64]) -> _ScaledInverse:
        """Return W^½ (W^½ K' W^½ + nugget)⁻¹ W^½ for a Nyström approximation K' of K."""
        features = LeverageNystroem(
            self.kernel,
            n_components=default_rank(self.rows.count),
            landmarks="uniform",
            random_state=self.seed,
            n_jobs=self.n_jobs,
        ).fit(self.rows.X)
        roots = np.sqrt(weights)
        Z = features_of(features, self.rows.X).astype(np.float64, copy=False)
        Z *= roots[:, np.newaxis]
        return _ScaledInverse(roots, LowRankInverse.with_tail(Z, self.alpha), self.alpha)

    @property
    def _weights(self) -> NDArray[np.float64] | None:
        """None also where there is no penalty that they could change."""
        return self.rows.weights if self.alpha else None

    @property
    def _mean_weight(self) -> float:
        """The geometric mean: no weight is further from it than the extremes are apart."""
        weights = self.rows.weights
        return 1.0 if weights is None else float(np.exp(np.log(weights).mean()))


class _WeightedOperator(LinearOperator):
    """A kernel matrix plus a diagonal matrix."""

    def __init__(self, kernel: KernelOperator, penalties: NDArray[np.float64]) -> None:
        super().__init__(np.dtype(np.float64), kernel.shape)
        self.kernel, self.penalties = kernel, penalties
        self.rounding = kernel.rounding

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"{self.kernel.describe()}, with weights"

    def exact_product(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product at float64 accuracy."""
        return self._shifted(self.kernel.exact_product(V), V)

    def _matvec(self, vector: Any) -> Any:
        return self._matmat(np.reshape(vector, (-1, 1)))

    def _matmat(self, V: Any) -> Any:
        return self._shifted(self.kernel.matmat(V), V)

    def _shifted(self, product: Any, V: NDArray[np.float64]) -> NDArray[np.float64]:
        shifted: NDArray[np.float64] = product + (V.T * self.penalties).T
        return shifted

    def _adjoint(self) -> Self:
        return self


class _ScaledInverse(LinearOperator):
    """S M S for a diagonal matrix S, where M approximates the inverse of S A S."""

    def __init__(
        self,
        scales: NDArray[np.float64],
        inverse: CholeskyFactor | LowRankInverse,
        nugget: float,
    ) -> None:
        super().__init__(np.dtype(np.float64), inverse.shape)
        self._scales, self._inverse = scales[:, np.newaxis], inverse
        self.nugget = nugget

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"with weights: {self._inverse.describe()}"

    def _matvec(self, vector: Any) -> Any:
        return self._matmat(np.reshape(vector, (-1, 1)))

    def _matmat(self, V: Any) -> Any:
        return self._scales * self._inverse.matmat(self._scales * V)

    def _adjoint(self) -> Self:
        return self


def _factored(
    operator: _WeightedOperator, weights: NDArray[np.float64], alpha: float, dtype: Any
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


def _scaled(matrix: NDArray[Any], scales: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    """Return S K S with ones on the diagonal; no entry is larger, so that float32 suffices."""
    scaled = np.empty(matrix.shape, dtype)
    for start in range(0, matrix.shape[0], _PANEL_ROWS):
        rows = slice(start, start + _PANEL_ROWS)
        scaled[rows] = matrix[rows] * scales * scales[rows, np.newaxis]
    np.fill_diagonal(scaled, 1.0)
    return scaled
