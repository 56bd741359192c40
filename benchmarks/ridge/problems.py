"""Data sets to predict: rows to train on, rows to test on, and what an error is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from benchmarks.data import diamonds, fashion_mnist, newsgroups, taxi


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and targets; integers are classes, other numbers are to be met.

    `gamma` is that of the Gaussian kernel, for all methods alike.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    gamma: float

    @property
    def is_classification(self) -> bool:
        return np.issubdtype(self.y.dtype, np.integer)

    @property
    def targets(self) -> np.ndarray:
        """Numbers to fit: a column for every class, or y itself."""
        return (
            np.eye(self.y.max() + 1, dtype=np.float32)[self.y] if self.is_classification else self.y
        )

    @property
    def mean_squared_norm(self) -> float:
        return float(
            self.X.multiply(self.X).sum()
            if hasattr(self.X, "multiply")
            else np.vdot(self.X, self.X)
        ) / len(self.y)

    def first(self, rows: int) -> "Problem":
        return Problem(
            self.X[:rows], self.y[:rows], self.X_test[:rows], self.y_test[:rows], self.gamma
        )

    def error(self, predicted: np.ndarray) -> float:
        """Return the share of wrong classes, or the squared error relative to the variance."""
        if not self.is_classification:
            return float(np.mean((predicted - self.y_test) ** 2) / np.var(self.y_test))
        classes = predicted.argmax(axis=1) if predicted.ndim > 1 else predicted
        return float(np.mean(classes != self.y_test))


def fashion_mnist_problem() -> Problem:
    return Problem(*fashion_mnist("train"), *fashion_mnist("t10k"), gamma=0.01)


def taxi_problem() -> Problem:
    return _regression(*taxi(), gamma=0.2)


def diamonds_problem() -> Problem:
    return _regression(*diamonds(), gamma=0.05)


def newsgroups_problem() -> Problem:
    """Return documents as tf-idf vectors of norm one, in random order."""
    parts = newsgroups()
    (texts, names), (test_texts, test_names) = parts["train"], parts["test"]
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    X = vectorizer.fit_transform(texts)
    groups, y = np.unique(names, return_inverse=True)
    order = _order(len(y))
    y_test = np.searchsorted(groups, test_names)
    test_order = _order(len(y_test))
    X_test = vectorizer.transform(test_texts)
    return Problem(X[order], y[order], X_test[test_order], y_test[test_order], gamma=0.5)


def _regression(X: np.ndarray, y: np.ndarray, gamma: float) -> Problem:
    """Return standardised columns, four rows in five to train on."""
    order = _order(len(y))
    train, test = np.split(order, [4 * len(y) // 5])
    scaler = StandardScaler().fit(X[train].astype(np.float64))
    rows = scaler.transform(X.astype(np.float64)).astype(np.float32)
    return Problem(rows[train], y[train], rows[test], y[test], gamma)


def _order(count: int) -> np.ndarray:
    return np.random.default_rng(0).permutation(count)


# Gammas: the best of a few for kernel ridge regression on 3000 rows, held-out rows judging.
PROBLEMS: dict[str, Callable[[], Problem]] = {
    "Fashion-MNIST": fashion_mnist_problem,
    "taxi": taxi_problem,
    "diamonds": diamonds_problem,
    "20 Newsgroups": newsgroups_problem,
}
