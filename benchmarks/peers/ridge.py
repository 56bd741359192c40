"""Ridge regression with scikit-learn's kernels and maps, penalties chosen on held-out rows."""

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel


def held_out_split(rows: int) -> int:
    """Return where the last tenth of the rows begins, on which penalties are compared."""
    return rows - rows // 10


class RidgeOnFeatures:
    """Ridge regression on the features of a map, from normal equations that are summed up once.

    That is far cheaper than scikit-learn's Ridge for every penalty, with the same result.
    """

    def __init__(self, feature_map: Any, penalties: Sequence[float]) -> None:
        self._map, self._penalties = feature_map, penalties

    def fit(self, X: Any, Y: np.ndarray) -> Self:
        Z = self._map.fit(X).transform(X)
        self._feature_mean, self._target_mean = Z.mean(axis=0), Y.mean(axis=0)
        Z -= self._feature_mean
        Y = (Y - self._target_mean).astype(Z.dtype)
        split = held_out_split(len(Y))
        gram, cross = _normal_equations(Z[:split], Y[:split])
        held_out, wanted = Z[split:], Y[split:]

        def error(penalty: float) -> float:
            weights = _solved(gram, cross, penalty * split)
            if not np.isfinite(weights).all():
                return math.inf
            return float(np.linalg.norm(held_out @ weights.astype(Z.dtype) - wanted))

        self.penalty = min(self._penalties, key=error)
        more_gram, more_cross = _normal_equations(held_out, wanted)
        weights = _solved(gram + more_gram, cross + more_cross, self.penalty * len(Y))
        self._weights = weights.astype(Z.dtype)
        return self

    def predict(self, X: Any) -> np.ndarray:
        Z = self._map.transform(X)
        return (Z - self._feature_mean) @ self._weights + self._target_mean


def _normal_equations(Z: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (Z.T @ Z).astype(np.float64), (Z.T @ Y).astype(np.float64)


def _solved(gram: np.ndarray, cross: np.ndarray, penalty: float) -> np.ndarray:
    """Return the weights; infinite ones where rounding errors of float32 exceed the penalty."""
    shifted = gram.copy()
    shifted[np.diag_indices(len(gram))] += penalty
    try:
        return scipy.linalg.solve(shifted, cross, assume_a="pos", overwrite_a=True)
    except np.linalg.LinAlgError:
        return np.full_like(cross, np.inf)


class SubsampledKernelRidge:
    """scikit-learn's KernelRidge on as many rows as it can take."""

    def __init__(self, gamma: float, rows: int, penalties: Sequence[float]) -> None:
        self._gamma, self._rows, self._penalties = gamma, rows, penalties

    def fit(self, X: Any, Y: np.ndarray) -> Self:
        self._X, Y = X[: self._rows], Y[: self._rows]
        self._target_mean = Y.mean(axis=0)
        Y = Y - self._target_mean
        K = rbf_kernel(self._X, gamma=self._gamma)
        split = held_out_split(len(Y))

        def error(penalty: float) -> float:
            model = _precomputed(penalty * split).fit(K[:split, :split], Y[:split])
            return float(np.linalg.norm(model.predict(K[split:, :split]) - Y[split:]))

        self.penalty = min(self._penalties, key=error)
        self._model = _precomputed(self.penalty * len(Y)).fit(K, Y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        K = rbf_kernel(X, self._X, gamma=self._gamma)
        return self._model.predict(K) + self._target_mean


def _precomputed(alpha: float) -> KernelRidge:
    return KernelRidge(alpha=alpha, kernel="precomputed")
