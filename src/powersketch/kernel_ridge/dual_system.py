"""The system of kernel ridge regression in the coefficients of the rows, with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from powersketch.kernel_ridge.primal import TrainingRows
from powersketch.kernel_systems import SketchPreconditioner
from powersketch.kernels import Kernel
from powersketch.solvers import KernelOperator


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
        if self.rows.weights is None:
            return KernelOperator(self.kernel, self.rows.X, self.alpha, **options)
        return _WeightedOperator(
            KernelOperator(self.kernel, self.rows.X, **options), self.alpha / self.rows.weights
        )

    def preconditioner(self) -> SketchPreconditioner:
        """Return an approximate inverse; weights count by their geometric mean."""
        return SketchPreconditioner(
            self.rows.X,
            self.kernel,
            self.alpha / self._mean_weight,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )

    @property
    def _mean_weight(self) -> float:
        """The geometric mean: no weight is further from it than the extremes are apart."""
        weights = self.rows.weights
        return 1.0 if weights is None else float(np.exp(np.log(weights).mean()))


class _WeightedOperator(LinearOperator):
    """A kernel matrix plus a diagonal matrix."""

    def __init__(self, kernel: KernelOperator, diagonal: NDArray[np.float64]) -> None:
        super().__init__(np.dtype(np.float64), kernel.shape)
        self._kernel, self._diagonal = kernel, diagonal
        self.rounding = kernel.rounding

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"{self._kernel.describe()}, with weights"

    def exact_product(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the product at float64 accuracy."""
        return self._shifted(self._kernel.exact_product(V), V)

    def _matvec(self, vector: Any) -> Any:
        return self._matmat(np.reshape(vector, (-1, 1)))

    def _matmat(self, V: Any) -> Any:
        return self._shifted(self._kernel.matmat(V), V)

    def _shifted(self, product: Any, V: NDArray[np.float64]) -> NDArray[np.float64]:
        shifted: NDArray[np.float64] = product + (V.T * self._diagonal).T
        return shifted

    def _adjoint(self) -> Self:
        return self
