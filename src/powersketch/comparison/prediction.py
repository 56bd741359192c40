"""Predictions of a target from features, beside those of models that people take anyway."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from powersketch.arrays import is_sparse
from powersketch.exceptions import InputError
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.parameters import one_of

TASKS = ("auto", "regression", "classification")
ERROR_NAMES = {"regression": "1 − R²", "classification": "share of wrong classes"}

LINEAR, BOOSTING = "linear model", "gradient boosting"
_PENALTIES = np.logspace(-3, 3, 13)
# Whole numbers of no more kinds, each of them this often on average, are taken for classes.
_MOST_CLASSES, _ROWS_PER_CLASS = 20, 5
# In fewer rows, texts that are different everywhere may be chance.
_FEWEST_NAMES = 20


@dataclass(frozen=True)
class Task:
    """Whether numbers or classes are to be predicted, and why that is assumed."""

    name: str
    reason: str


def task_of(y: Any, task: str = "auto") -> Task:
    """Return what the values of a target ask for, or what is said about them.

    Parameters
    ----------
    y : array of shape (n_samples,)
        The target.
    task : {"auto", "regression", "classification"}, default="auto"
        "auto" takes text, truth values, and whole numbers of at most 20 kinds for classes.

    Returns
    -------
    Task
        With the attributes `name` and `reason`.

    Examples
    --------
    >>> from powersketch.comparison import task_of
    >>> task_of([0.5, 1.5, 2.5]).name
    'regression'
    >>> print(task_of(["yes", "no", "yes"]).reason)
    its values are texts
    """
    one_of("task", task, TASKS)
    values = np.asarray(y)
    if task != "auto":
        _check_numbers(values, task)
        return Task(task, "as asked for")
    if values.dtype.kind not in "iuf":
        _check_classes(values)
        kind = "truth values" if values.dtype.kind == "b" else "texts"
        return Task("classification", f"its values are {kind}")
    kinds = np.unique(values)
    few = kinds.size <= min(_MOST_CLASSES, values.size // _ROWS_PER_CLASS)
    if few and np.array_equal(kinds, np.rint(kinds)):
        return Task("classification", f"its values are {kinds.size} different whole numbers")
    return Task("regression", f"its values are numbers, {kinds.size} different ones")


def _check_numbers(values: NDArray[Any], task: str) -> None:
    if task == "regression" and values.dtype.kind not in "iufb":
        raise InputError(
            "task='regression' needs a target of numbers, and this one has texts: use "
            "'classification'."
        )


def _check_classes(values: NDArray[Any]) -> None:
    """Refuse texts that name rows, or are numbers in an unknown spelling."""
    if values.size >= _FEWEST_NAMES and np.unique(values).size == values.size:
        raise InputError(
            f"each of the {values.size} rows has a target of its own, such as {str(values[0])!r}, "
            "and what no two rows share cannot be learned: give another target, or write it as "
            "numbers."
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """A target on the rows to fit on and on those to measure on, and what it asks for."""

    task: str
    fit_rows: Any
    fit_target: NDArray[Any]
    measured_rows: Any
    measured_target: NDArray[Any]

    def error(self, model: Any) -> float:
        """Return the error of a model, which is fitted, at the rows held out.

        It is the share of wrong classes, or 1 − R²: squared errors relative to the variance.
        """
        model.fit(self.fit_rows, self.fit_target)
        return 1.0 - float(model.score(self.measured_rows, self.measured_target))

    def error_on(self, feature_map: Any, n_jobs: int | None) -> float:
        """Return the error of ridge regression on the features of a map."""
        return self.error(model_on(clone(feature_map), self.task, n_jobs=n_jobs))


def model_on(features: Any, task: str, **options: Any) -> Any:
    """Return the model that predicts from features, not yet fitted."""
    kind = SketchedKernelRidge if task == "regression" else SketchedKernelRidgeClassifier
    return kind(features=features, random_state=0, **options)


@dataclass(frozen=True)
class Baseline:
    """A model that the features have to be better than.

    Parameters
    ----------
    name : str
        What it is called.
    error : float
        Its error at the rows held out.
    seconds : float
        Time of its fit and of its predictions.
    """

    name: str
    error: float
    seconds: float


def baseline_models(task: str, sparse: bool) -> dict[str, Any]:
    """Return a linear model and gradient boosting, which does not take sparse rows."""
    scaler = MaxAbsScaler() if sparse else StandardScaler()
    if task == "regression":
        linear, boosting = RidgeCV(_PENALTIES), HistGradientBoostingRegressor(random_state=0)
    else:
        linear = RidgeClassifierCV(_PENALTIES)
        boosting = HistGradientBoostingClassifier(random_state=0)
    models: dict[str, Any] = {LINEAR: make_pipeline(scaler, linear)}
    return models if sparse else models | {BOOSTING: boosting}


def measured_baselines(prediction: Prediction) -> tuple[Baseline, ...]:
    """Fit every baseline and return what it comes to at the rows held out."""
    baselines = []
    models = baseline_models(prediction.task, is_sparse(prediction.fit_rows))
    for name, model in models.items():
        begin = time.perf_counter()
        with warnings.catch_warnings():
            # Of penalties at the end of their range, and systems that are nearly singular.
            warnings.simplefilter("ignore")
            error = prediction.error(model)
        baselines.append(Baseline(name, error, time.perf_counter() - begin))
    return tuple(baselines)
