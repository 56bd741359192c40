"""Solutions of ridge regression: coefficients of features, or of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.kernels import Kernel


@dataclass(frozen=True, eq=False)
class PrimalSolution:
    """Predictions are z(x) @ coefᵀ + intercept; with the path of alphas if there was one.

    The effective dimension is known where the smallest alpha of the path was chosen.
    """

    alpha: float
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    fit_intercept: bool
    alphas: NDArray[np.float64] | None = None
    scores: NDArray[np.float64] | None = None
    effective_dimension: float | None = None


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Predictions are k(x, X) @ coef + intercept."""

    alpha: float
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KernelSum:
    """The function x ↦ k(x, points) @ coef, which needs no features of x."""

    kernel: Kernel
    points: Any
    coef: NDArray[np.float64]

    def values(self, X: Any, n_jobs: int | None) -> NDArray[Any]:
        """Return the function's values at rows, without holding the kernel's."""
        return self.kernel.product(X, self.coef, self.points, n_jobs=n_jobs)
