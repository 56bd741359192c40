"""Both estimators behave as scikit-learn expects."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import re
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

from powersketch import GaussianSketch, kernels
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from tests.kernel_ridge.ridge_data import diabetes, digits, ridge, waves

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
def test_every_parameter_but_the_kernel_is_given_by_name(estimator: Any) -> None:
    parameters = list(inspect.signature(estimator).parameters.values())
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == ["kernel"]


@each_estimator
def test_every_parameter_is_documented_and_nothing_else(estimator: Any) -> None:
    section = re.search(r"Parameters\n-+\n(.*?)\n\n(?=\w+\n-+\n)", inspect.getdoc(estimator), re.S)
    documented = re.findall(r"^(\w+) : ", section[1], re.M)
    assert documented == list(inspect.signature(estimator).parameters)
    for name, parameter in inspect.signature(estimator).parameters.items():
        default = re.search(rf"^{name} : .*default=(.*)$", section[1], re.M)
        assert ast.literal_eval(default[1]) == parameter.default, name
    for method in ("fit", "partial_fit", "predict"):
        assert "%(" not in getattr(estimator, method).__doc__


@each_estimator
def test_a_clone_and_a_pickle_are_the_same(estimator: Any) -> None:
    X, y = digits(200)
    sketch = GaussianSketch("scale", n_components=30)
    model = estimator(features=sketch, alpha=1.0, random_state=0).fit(X, y)
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
    pipeline = make_pipeline(StandardScaler(), ridge(features=sketch))
    grid = {
        "sketchedkernelridge__alpha": [1.0, 10.0],
        "sketchedkernelridge__features__n_components": [20, 50],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.3
    assert sketch.n_components == 50  # the map that was passed in is not touched
    assert not hasattr(sketch, "kernel_")


@pytest.mark.parametrize("kind", ["sketch", "landmarks", "exact"])
def test_parameters_of_the_kernel_can_be_searched(kind: str) -> None:
    X, y = waves(200)
    kernel = kernels.Gaussian("scale")
    model = ridge(kernel, features=kind, alpha=0.1, random_state=0)
    search = GridSearchCV(model, {"kernel__gamma": [1e-4, "scale", 100.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"kernel__gamma": "scale"}
    assert search.best_estimator_.kernel_.gamma == pytest.approx(1.0 / (2 * X.var()), rel=1e-12)
    assert kernel.gamma == "scale"  # the kernel that was passed in is not touched


def test_a_pipeline_can_be_the_feature_map() -> None:
    X, y = diabetes()
    inner = make_pipeline(StandardScaler(), GaussianSketch("scale", n_components=40))
    first, second = (ridge(features=inner, random_state=3).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
