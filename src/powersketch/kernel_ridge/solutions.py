"""Solutions of ridge regression: coefficients of features, or of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PrimalSolution:
    """Predictions are z(x) @ coefᵀ + intercept; with the path of alphas if there was one."""

    alpha: float
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    alphas: NDArray[np.float64] | None = None
    scores: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Predictions are k(x, X) @ coef + intercept."""

    alpha: float
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
