"""Models that people take for tables today, each with what it needs to show its best."""

import importlib.util
from typing import Any, Self

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier, RidgeClassifierCV, RidgeCV
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GridSearchCV, ShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.models.problems import Split

ALPHAS = np.logspace(-3, 3, 13)
GAMMAS = 2.0 ** np.arange(-5, 4)
"""Relative to the inverse of the median squared distance."""
SEARCH_ROWS, SEARCH_LANDMARKS, LANDMARKS = 8000, 300, 1000


def ridge(split: Split) -> Any:
    """Return ridge regression; leave-one-out needs all eigenvectors, too much for long texts."""
    if split.is_sparse:
        held_out = ShuffleSplit(1, test_size=0.1, random_state=0)
        return GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 0.3, 1.0, 3.0, 10.0]}, cv=held_out)
    return make_pipeline(_scaler(split), _ridge_search(split.is_classification))


def _scaler(split: Split) -> Any:
    """Return what standardises columns, but for texts, whose rows have norm one."""
    return FunctionTransformer() if split.is_sparse else StandardScaler()


def _ridge_search(is_classification: bool) -> Any:
    return RidgeClassifierCV(ALPHAS) if is_classification else RidgeCV(ALPHAS)


def boosting(split: Split) -> Any:
    kind = (
        HistGradientBoostingClassifier if split.is_classification else HistGradientBoostingRegressor
    )
    return kind(categorical_features=split.is_category, random_state=0)


def support_vectors(split: Split) -> Any:
    if split.is_classification:
        return make_pipeline(_scaler(split), SVC())
    # The width of its tube is one for targets of any scale.
    model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return make_pipeline(_scaler(split), model)


class NystroemRidge:
    """Nystroem and ridge regression, gamma chosen on held-out rows with fewer landmarks."""

    def __init__(self, split: Split) -> None:
        self._is_classification = split.is_classification
        self._scaler = _scaler(split)

    def fit(self, X: Any, y: np.ndarray) -> Self:
        rows = np.random.default_rng(0).permutation(len(y))[:SEARCH_ROWS]
        sample, targets = self._scaler.fit(X).transform(X[rows]), y[rows]
        parts = train_test_split(sample, targets, test_size=0.2, random_state=0)

        def score(gamma: float) -> float:
            model = self._pipeline(gamma, SEARCH_LANDMARKS, rows=parts[0].shape[0])
            return model.fit(parts[0], parts[2]).score(parts[1], parts[3])

        self.gamma = max(GAMMAS / _median_squared_distance(sample), key=score)
        self._model = self._pipeline(self.gamma, LANDMARKS, rows=len(y))
        self._model.fit(self._scaler.transform(X), y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self._model.predict(self._scaler.transform(X))

    def _pipeline(self, gamma: float, landmarks: int, rows: int) -> Any:
        features = Nystroem(gamma=gamma, n_components=min(landmarks, rows), random_state=0)
        return make_pipeline(features, _ridge_search(self._is_classification))


def _median_squared_distance(X: Any) -> float:
    distances = euclidean_distances(X[:1000], squared=True)
    return float(np.median(distances[np.triu_indices_from(distances, 1)])) or 1.0


class RecursiveFeatureMachine:
    """xRFM with its own defaults; it wants numbers standardised, but not columns of zeros and ones.

    A fifth of the rows is what it chooses its number of steps on.
    """

    def __init__(self, split: Split) -> None:
        self._is_classification = split.is_classification

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        from xrfm import xRFM

        scaler = StandardScaler().fit(X)
        is_flag = np.isin(X, (0.0, 1.0)).all(axis=0)
        self._center = np.where(is_flag, 0.0, scaler.mean_)
        self._scale = np.where(is_flag, 1.0, scaler.scale_)
        if not self._is_classification:
            self._target_center, self._target_scale = y.mean(), y.std()
            y = ((y - self._target_center) / self._target_scale).astype(np.float32)
        rows, held_out, targets, wanted = train_test_split(
            self._scaled(X), y, test_size=0.2, random_state=0
        )
        self._model = xRFM(random_state=0, verbose=False)
        self._model.fit(rows, targets, held_out, wanted)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        predicted = np.asarray(self._model.predict(self._scaled(X))).reshape(len(X))
        if self._is_classification:
            return predicted
        return predicted * self._target_scale + self._target_center

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._model.predict_proba(self._scaled(X)))

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return ((X - self._center) / self._scale).astype(np.float32)


def has_xrfm() -> bool:
    return importlib.util.find_spec("xrfm") is not None
