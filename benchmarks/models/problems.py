"""Tables, texts and images to predict, and how they are split into training and test rows."""

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas
import scipy.sparse as sp
from sklearn import datasets

from benchmarks.data import TEXTBOOK, fashion_mnist, packaged_file
from benchmarks.ridge.problems import newsgroups_problem
from benchmarks.tables import REGRESSIONS as TABLES
from benchmarks.tables import LabelledTable, folds

SPLITS = 5
LARGE_TABLES = ("taxi", "diamonds", "flights")
ROWS_OF_LARGE_TABLES = 30_000


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on and rows to test; `is_category` is None where no column is one."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    is_category: np.ndarray | None = None

    @property
    def is_classification(self) -> bool:
        return np.issubdtype(self.y.dtype, np.integer)

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and targets; integers are classes, other numbers are to be met.

    `codes` are the rows with categories as codes in place of one column for every value. Without
    random splits, the first rows are those to train on.
    """

    X: Any
    y: np.ndarray
    codes: np.ndarray | None = None
    is_category: np.ndarray | None = None
    train_rows: int | None = None
    splits: int = SPLITS

    def split(self, number: int, *, coded: bool = False) -> Split:
        """Return a split; `coded` is whether categories are codes, where there are any."""
        train, test = np.split(self._order(number), [self._train_rows])
        coded = coded and self.codes is not None
        X = self.codes if coded else self.X
        is_category = self.is_category if coded else None
        parts = (_as_floats(X[train]), self.y[train], _as_floats(X[test]), self.y[test])
        return Split(*parts, is_category)

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def training_shape(self) -> tuple[int, int]:
        return self._train_rows, self.X.shape[1]

    def first(self, rows: int) -> "Problem":
        """Return a small problem of random rows with one split, to try things quickly."""
        chosen = np.random.default_rng(0).permutation(len(self.y))[:rows]
        codes = None if self.codes is None else self.codes[chosen]
        return replace(
            self, X=self.X[chosen], y=self.y[chosen], codes=codes, train_rows=None, splits=1
        )

    @property
    def _train_rows(self) -> int:
        return self.train_rows or 4 * len(self.y) // 5

    def _order(self, number: int) -> np.ndarray:
        if self.splits == 1:
            return np.arange(len(self.y))
        return np.random.default_rng(number).permutation(len(self.y))


def _as_floats(X: Any) -> Any:
    return X if np.issubdtype(X.dtype, np.floating) else X.astype(np.float64)


def _given(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> Problem:
    stacked = sp.vstack([X, X_test], "csr") if sp.issparse(X) else np.concatenate([X, X_test])
    return Problem(stacked, np.concatenate([y, y_test]), train_rows=len(y), splits=1)


def _table(load: Callable[[], LabelledTable], train_rows: int | None = None) -> Problem:
    table = load()
    codes, is_category = table.with_codes()
    return Problem(table.one_hot(), table.target, codes, is_category, train_rows)


def _sklearn(name: str) -> Problem:
    loaded = getattr(datasets, f"load_{name}")()
    return Problem(loaded.data.astype(np.float64), loaded.target)


def _cancers() -> Problem:
    """Return the genes of cancers that occur four times or more."""
    X = np.load(io.BytesIO(packaged_file(TEXTBOOK, "ISLP/data/NCI60data.npy")))
    labels = pandas.read_csv(io.BytesIO(packaged_file(TEXTBOOK, "ISLP/data/NCI60labs.csv")))
    _, y, counts = np.unique(labels["label"], return_inverse=True, return_counts=True)
    kept = counts[y] >= 4
    return Problem(X[kept].astype(np.float64), np.unique(y[kept], return_inverse=True)[1])


def _newsgroups() -> Problem:
    problem = newsgroups_problem()
    return _given(problem.X, problem.y, problem.X_test, problem.y_test)


def _fashion(rows: int) -> Problem:
    X, y = fashion_mnist("train")
    return _given(X[:rows], y[:rows], *fashion_mnist("t10k"))


REGRESSIONS: dict[str, Callable[[], Problem]] = {
    **{
        name: partial(_table, load, ROWS_OF_LARGE_TABLES if name in LARGE_TABLES else None)
        for name, load in TABLES.items()
    },
    "flights, all": partial(_table, TABLES["flights"]),
    "diabetes": partial(_sklearn, "diabetes"),
}
CLASSIFICATIONS: dict[str, Callable[[], Problem]] = {
    "20 Newsgroups": _newsgroups,
    "Fashion-MNIST, 10,000": partial(_fashion, 10_000),
    "Fashion-MNIST, 60,000": partial(_fashion, 60_000),
    "NCI60": _cancers,
    "digits": partial(_sklearn, "digits"),
    "breast cancer": partial(_sklearn, "breast_cancer"),
    "wine": partial(_sklearn, "wine"),
    "iris": partial(_sklearn, "iris"),
}


def folded_problems(name: str) -> list[Problem]:
    """Return one problem for every fold of a classification."""
    return [
        _given(X, y.astype(np.intp), X_test, y_test.astype(np.intp))
        for X, y, X_test, y_test in folds(name)
    ]
