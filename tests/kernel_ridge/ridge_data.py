"""Small data sets, and ridge regression by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_diabetes, load_digits

from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.kernels import Kernel

Float64 = NDArray[np.float64]


class Identity(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features that are the rows themselves, so that every result has a textbook formula."""

    def fit(self, X: Any, y: Any = None) -> Identity:
        del X, y
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X


@dataclass(frozen=True)
class Cauchy(Kernel):
    """A kernel of a user, 1 / (1 + gamma ‖x − y‖²), of which there is no sketch."""

    gamma: float = 1.0

    def _values(self, products: Float64, left: Float64, right: Float64) -> Float64:
        return 1.0 / (1.0 + self.gamma * (np.add.outer(left, right) - 2.0 * products))

    def _diagonal_values(self, sizes: Float64) -> Float64:
        return np.ones_like(sizes)


def ridge(kernel: Any = None, **parameters: Any) -> SketchedKernelRidge:
    """Return a regressor that chooses nothing, but for what it is told to."""
    return SketchedKernelRidge(**_plain(kernel, parameters))


def classifier(kernel: Any = None, **parameters: Any) -> SketchedKernelRidgeClassifier:
    """Return a classifier that chooses nothing, but for what it is told to."""
    return SketchedKernelRidgeClassifier(**_plain(kernel, parameters))


def _plain(kernel: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of a sketch of the Gaussian kernel with alpha 1, where none are given."""
    parameters = {"features": "sketch", "alpha": 1.0} | parameters
    if kernel is None and isinstance(parameters["features"], str):
        kernel = "gaussian"
    return parameters if kernel is None else {"kernel": kernel} | parameters


def features(rows: int = 60, columns: int = 12, seed: int = 0, mean: float = 2.0) -> Float64:
    """Return correlated features away from zero."""
    generator = np.random.default_rng(seed)
    mixing = generator.normal(size=(columns, columns)) / np.sqrt(columns)
    return generator.normal(size=(rows, columns)) @ mixing + mean


def targets(rows: int = 60, count: int | None = None, seed: int = 1) -> Float64:
    """Return one target, or several."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=rows if count is None else (rows, count)) + 3.0


def weights(rows: int = 60, seed: int = 2) -> Float64:
    """Return weights of very different sizes, above 0."""
    return np.random.default_rng(seed).gamma(0.7, size=rows) + 1e-3


def std(model: Any, X: Any) -> Any:
    """Return the standard deviations of new observations."""
    return model.predict(X, return_std=True)[1]


def brute_force(
    Z: Float64, y: Float64, alpha: float, w: Float64 | None = None, *, fit_intercept: bool = True
) -> tuple[Float64, Any]:
    """Return coefficients (m, t) and intercept from the rows stacked on the penalty."""
    roots = np.ones(len(Z)) if w is None else np.sqrt(w)
    A = np.column_stack((Z, np.ones(len(Z)))) if fit_intercept else Z
    penalty = np.sqrt(alpha) * np.eye(Z.shape[1], A.shape[1])
    right = (y.T * roots).T
    stacked = np.vstack((A * roots[:, np.newaxis], penalty))
    zeros = np.zeros((Z.shape[1], *y.shape[1:]))
    solution = np.linalg.lstsq(stacked, np.concatenate((right, zeros)), rcond=None)[0]
    return (solution[:-1], solution[-1]) if fit_intercept else (solution, 0.0)


def diabetes(rows: int = 442) -> tuple[Float64, Float64]:
    """Return measurements of patients, and how the disease went on."""
    X, y = load_diabetes(return_X_y=True)
    return X[:rows] / X.std(), y[:rows]


def digits(rows: int = 600) -> tuple[Float64, NDArray[np.int64]]:
    """Return images of handwritten digits, and which they show."""
    X, y = load_digits(return_X_y=True)
    return X[:rows] / 16.0, y[:rows]


def waves(rows: int = 400, seed: int = 0) -> tuple[Float64, Float64]:
    """Return points of the plane, and a smooth function of them with noise."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, size=(rows, 2))
    smooth = np.sin(3.0 * X[:, 0]) + np.cos(4.0 * X[:, 1])
    return X, smooth + 0.1 * generator.normal(size=rows)
