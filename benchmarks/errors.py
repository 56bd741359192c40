"""Relative errors of features against the exact kernel, averaged over seeds."""

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

Maker = Callable[..., Any]
"""Called with n_components and random_state, it gives a map with scikit-learn's interface."""


def relative_error(Z: np.ndarray, K: np.ndarray) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ (Frobenius)."""
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def mean_errors(
    makers: Mapping[str, Maker], X: np.ndarray, K: np.ndarray, size: int, *, seeds: int
) -> dict[str, float]:
    """Return the mean error over the seeds 0, 1, … for every map."""

    def error(make: Maker, seed: int) -> float:
        return relative_error(make(n_components=size, random_state=seed).fit_transform(X), K)

    return {
        name: fmean(error(make, seed) for seed in range(seeds)) for name, make in makers.items()
    }


def usual_seeds(quick: bool) -> int:
    return 1 if quick else 3
