"""Both estimators behave as scikit-learn expects."""

from __future__ import annotations

import inspect
import os
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from powersketch import GaussianSketch
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from tests.kernel_ridge.ridge_data import diabetes, digits

ESTIMATORS = (SketchedKernelRidge, SketchedKernelRidgeClassifier)
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS)


@each_estimator
def test_every_check_passes_and_none_is_skipped(estimator: Any) -> None:
    array_api = os.environ.get("SCIPY_ARRAY_API")
    assert array_api == "1", "set SCIPY_ARRAY_API=1, or scikit-learn leaves out a check"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings of their own
        results = check_estimator(estimator(), on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] != "passed"}
    assert failed == {}
    assert len(results) >= 54  # 61 for the regressor of scikit-learn 1.9, 64 for the classifier


@each_estimator
def test_every_parameter_but_the_sketch_is_given_by_name(estimator: Any) -> None:
    parameters = list(inspect.signature(estimator).parameters.values())
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == ["sketch"]


@each_estimator
def test_a_clone_and_a_pickle_are_the_same(estimator: Any) -> None:
    X, y = digits(200)
    model = estimator(GaussianSketch("scale", n_components=30), random_state=0).fit(X, y)
    again = clone(model).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    for other in (again, loaded):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


@each_estimator
def test_column_names_are_kept_and_checked(estimator: Any) -> None:
    X, y = digits(100)
    table = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(64)])
    model = estimator(random_state=0).fit(table, y)
    assert list(model.feature_names_in_) == list(table.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table.rename(columns={"pixel 0": "other"}))


def test_works_in_a_pipeline_and_a_grid_search() -> None:
    X, y = diabetes()
    sketch = GaussianSketch("scale", n_components=50, random_state=0)
    pipeline = make_pipeline(StandardScaler(), SketchedKernelRidge(sketch))
    grid = {
        "sketchedkernelridge__alpha": [1.0, 10.0],
        "sketchedkernelridge__sketch__n_components": [20, 50],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.3
    assert sketch.n_components == 50  # the map that was passed in is not touched
    assert not hasattr(sketch, "kernel_")


def test_a_pipeline_can_be_the_feature_map() -> None:
    X, y = diabetes()
    inner = make_pipeline(StandardScaler(), GaussianSketch("scale", n_components=40))
    first, second = (
        SketchedKernelRidge(inner, random_state=3).fit(X, y).predict(X) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
