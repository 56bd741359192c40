"""Fits a model without some of the rows, and measures it there beside models of others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, log_loss, r2_score, root_mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline

from powersketch.arrays import Float64, is_sparse
from powersketch.comparison import BOOSTING, baseline_models, task_of
from powersketch.exceptions import InputError
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.parameters import checked_fraction
from powersketch.reports.results import OURS, Importance, ModelReport, Score
from powersketch.tables import TablePreparation

# More rows than these say nothing more about a score, or take too long for a figure.
_MOST_HELD_OUT = 20_000
_MOST_IN_FIGURES = 4000
_MOST_PERMUTED = 500
_FEWEST_ROWS = 10
_PERMUTATIONS = 3
_REMEDY_OF_SHARE = "0.2 holds out one row of five"

# Called with what is about to be done.
Callback = Callable[[str], None]


def automatic_model(
    task: str, *, table: bool = True, preparation: Any = None, **options: Any
) -> Any:
    """Return the library's model for a task, on a table or on rows of numbers, not yet fitted.

    Parameters
    ----------
    task : {"regression", "classification"}
        What is to be predicted.
    table : bool, default=True
        Whether the rows are those of a table, whose columns become numbers first.
    preparation : dict or None, default=None
        Parameters of :class:`powersketch.TablePreparation`.
    **options : dict
        Parameters of :class:`powersketch.SketchedKernelRidge` or of the classifier.

    Returns
    -------
    estimator
        The model, or a pipeline of a preparation and the model.
    """
    kind = SketchedKernelRidge if task == "regression" else SketchedKernelRidgeClassifier
    model = kind(**options)
    if not table:
        return model
    return Pipeline([("table", TablePreparation(**(preparation or {}))), ("model", model)])


@dataclass(frozen=True, eq=False)
class _Part:
    """Rows, their targets and weights."""

    X: Any
    y: NDArray[Any]
    weights: Float64 | None

    def fitted(self, model: Any) -> Any:
        """Return the model, fitted to the rows."""
        return fitted(model, self.X, self.y, self.weights)

    def prepared(self, preparation: Any) -> _Part:
        """Return the rows as numbers."""
        X = self.X if preparation is None else preparation.transform(self.X)
        return _Part(X, self.y, self.weights)

    def first(self, count: int) -> _Part:
        """Return the first rows; all are in random order."""
        X = self.X.iloc[:count] if hasattr(self.X, "iloc") else self.X[:count]
        weights = None if self.weights is None else self.weights[:count]
        return _Part(X, self.y[:count], weights)


def fitted(model: Any, X: Any, y: Any, weights: Any = None) -> Any:
    """Fit a model, or a pipeline that ends with one, to rows that may have weights."""
    if weights is None:
        return model.fit(X, y)
    last = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    return model.fit(X, y, **{f"{last}sample_weight": weights})


def assess(
    model: Any,
    X: Any,
    y: Any,
    *,
    task: str = "auto",
    weights: Any = None,
    held_out: float = 0.2,
    random_state: int | None = None,
    targets: Sequence[str] = ("target",),
    data_name: str = "",
    callback: Callback | None = None,
) -> ModelReport:
    """Measure a model on rows held out, beside a linear model and gradient boosting.

    All of them are fitted to the same rows; the others see the columns as they are after the
    model's preparation of the table, if it has one.

    Parameters
    ----------
    model : estimator
        One of the library's models, or a pipeline that ends with one. It is cloned.
    X : data frame, array or sparse matrix
        The rows.
    y : array of shape (n_samples,) or (n_samples, n_targets)
        What is to be predicted: numbers, or one column of classes.
    task : {"auto", "regression", "classification"}, default="auto"
        Which of both.
    weights : array of shape (n_samples,) or None, default=None
        Weights of the rows, in fits and in scores.
    held_out : float, default=0.2
        The share of rows that is held out, but no more than 20,000 rows.
    random_state : int or None, default=None
        Which rows these are.
    targets : sequence of str, default=("target",)
        What the columns of y are called.
    data_name : str, default=""
        What the data are called.
    callback : callable or None, default=None
        Called with a few words before every fit.

    Returns
    -------
    ModelReport
        Scores, predictions and what the model says of itself.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from powersketch.reports import assess, automatic_model
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = automatic_model("regression", random_state=0)
    >>> report = assess(model, X, y, random_state=0, targets=["progression"])
    >>> [score.name for score in report.scores]
    ['powersketch', 'linear model', 'gradient boosting']
    """
    tell = callback or (lambda text: None)
    values = np.asarray(y)
    name, reason = ("regression", "it has several columns")
    if values.ndim == 1:
        found = task_of(values, task)
        name, reason = found.name, found.reason
    train, test = _divided(X, values, weights, name, held_out, random_state)
    tell(f"fitting without {len(test.y)} rows held out")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        ours = train.fitted(clone(model))
        seconds = time.perf_counter() - begin
        predicted = ours.predict(test.X)
    preparation = ours[:-1] if isinstance(ours, Pipeline) else None
    others = _others(name, train.prepared(preparation), test.prepared(preparation), tell)
    tell("figures")
    sample = test.first(_MOST_IN_FIGURES)
    return ModelReport(
        task=name,
        task_reason=reason,
        targets=tuple(targets),
        data_name=data_name,
        date=date.today().isoformat(),
        shape=(values.shape[0], X.shape[1]),
        fit_rows=len(train.y),
        held_out_rows=len(test.y),
        scores=(_score(OURS, name, test, predicted, seconds), *others),
        true=sample.y,
        predicted=np.asarray(predicted)[: len(sample.y)],
        importances=_importances(ours, test),
        choice=_choice(ours),
        recipe=tuple(getattr(_table_step(ours), "recipe_", ())),
        warnings=tuple(dict.fromkeys(" ".join(str(each.message).split()) for each in caught)),
        **_honesty(ours, sample, name),
    )


def _divided(
    X: Any, y: NDArray[Any], weights: Any, task: str, held_out: float, seed: int | None
) -> tuple[_Part, _Part]:
    """Return the rows to fit on and those held out, of all classes their share in both."""
    share = checked_fraction("held_out", held_out, remedy=_REMEDY_OF_SHARE)
    count = min(round(share * len(y)), _MOST_HELD_OUT)
    if len(y) < _FEWEST_ROWS or not 1 <= count < len(y) - 1:
        raise InputError(
            f"{len(y)} rows are too few to hold out a share of {share:g} of them; at least "
            f"{_FEWEST_ROWS} rows are needed: give more rows, or another share "
            f"({_REMEDY_OF_SHARE})."
        )
    parts = [np.arange(len(y)), y]
    stratify = y if task == "classification" and _can_be_stratified(y, count) else None
    kept, out, _, _ = train_test_split(
        *parts, test_size=count, random_state=seed, stratify=stratify
    )
    return _taken(X, y, weights, kept), _taken(X, y, weights, out)


def _can_be_stratified(y: NDArray[Any], count: int) -> bool:
    classes, sizes = np.unique(y, return_counts=True)
    return bool(sizes.min() > 1 and classes.size <= min(count, len(y) - count))


def _taken(X: Any, y: NDArray[Any], weights: Any, rows: NDArray[np.intp]) -> _Part:
    chosen = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    return _Part(chosen, y[rows], None if weights is None else np.asarray(weights)[rows])


def _score(name: str, task: str, test: _Part, predicted: Any, seconds: float) -> Score:
    weights = {"sample_weight": test.weights}
    if task == "classification":
        accuracy = float(accuracy_score(test.y, predicted, **weights))
        return Score(name, accuracy, 1.0 - accuracy, seconds)
    return Score(
        name,
        float(r2_score(test.y, predicted, **weights)),
        float(root_mean_squared_error(test.y, predicted, **weights)),
        seconds,
    )


def _others(task: str, train: _Part, test: _Part, tell: Callback) -> list[Score]:
    """Return the scores of models that people take anyway."""
    scores = []
    for name, model in baseline_models(task, is_sparse(train.X)).items():
        tell(name)
        if name == BOOSTING and train.y.ndim > 1:
            model = MultiOutputRegressor(model)
        with warnings.catch_warnings():
            # Of penalties at the end of their range, and systems that are nearly singular.
            warnings.simplefilter("ignore")
            begin = time.perf_counter()
            train.fitted(model)
            seconds = time.perf_counter() - begin
            scores.append(_score(name, task, test, model.predict(test.X), seconds))
    return scores


def _honesty(model: Any, sample: _Part, task: str) -> dict[str, Any]:
    """Return standard deviations or probabilities, as far as the model has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The same ones have been collected before.
        if task == "classification":
            probabilities = model.predict_proba(sample.X)
            return {
                "probabilities": probabilities,
                "classes": tuple(map(str, model.classes_)),
                "log_loss": _log_loss(sample.y, probabilities, model.classes_),
            }
        try:
            _, deviations = model.predict(sample.X, return_std=True)
        except (InputError, AttributeError) as error:
            return {"no_deviations": str(error)}
        return {"deviations": np.asarray(deviations)}


def _log_loss(y: NDArray[Any], probabilities: Float64, classes: NDArray[Any]) -> float | None:
    """Return the logarithmic loss, or None where a row has a class that no fitted row has."""
    if not np.isin(y, classes).all():
        return None
    return float(log_loss(y, probabilities, labels=classes))


def _table_step(model: Any) -> Any:
    steps = model.steps if isinstance(model, Pipeline) else []
    return next((step for _, step in steps if isinstance(step, TablePreparation)), None)


def _final(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _choice(model: Any) -> tuple[str, ...]:
    """Return what the model chose and why, sentence by sentence."""
    choice = getattr(_final(model), "choice_", None)
    if choice is None:
        return ()
    return (*choice.model, str(choice).removeprefix(" ".join(choice.model)).strip())


def _importances(model: Any, test: _Part) -> Importance:
    """Return how much every column of the table matters, by the metric or by shuffling it."""
    names = [str(name) for name in getattr(test.X, "columns", range(test.X.shape[1]))]
    try:
        of_numbers = _final(model).feature_importances_
    except AttributeError:
        return _by_shuffling(model, test, names)
    table = _table_step(model)
    if table is None:
        shares = dict(zip(names, of_numbers.tolist(), strict=True))
    else:
        shares = dict.fromkeys(names, 0.0)
        origins = table.origins()
        for origin, share in zip(origins, of_numbers.tolist(), strict=True):
            shares[origin] += share
    return Importance("by the learned metric, whose diagonal adds up to 1", _ordered(shares))


def _by_shuffling(model: Any, test: _Part, names: Sequence[str]) -> Importance:
    if is_sparse(test.X):
        return Importance("no metric was learned", ())
    sample = test.first(_MOST_PERMUTED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Shuffled columns make strange rows, as they should.
        found = permutation_importance(
            model, sample.X, sample.y, n_repeats=_PERMUTATIONS, random_state=0
        )
    shares = dict(zip(names, np.maximum(found.importances_mean, 0.0).tolist(), strict=True))
    why = "by how much the score falls where a column is shuffled, as no metric was learned"
    return Importance(why, _ordered(shares))


def _ordered(shares: dict[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(shares.items(), key=lambda pair: -pair[1]))
