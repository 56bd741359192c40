"""Predictions beside errors of the kernel, what is recommended, and the code that does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powersketch import (
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
)
from powersketch.comparison import Comparison, compare, task_of
from powersketch.exceptions import InputError
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.comparison.measured_rows import unit_rows

X = unit_rows(200)
Y = np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2
CLASSES = np.array(["low", "high"])[(X[:, 0] > X[:, 1]).astype(int)]
KERNEL = Polynomial(degree=3, gamma=2.0, coef0=1.0)
FEW: dict[str, Any] = {"methods": ["power", "nystroem"], "components": [8, 40], "random_state": 0}


@pytest.fixture(scope="module")
def regression() -> Comparison:
    return compare(X, KERNEL, y=Y, seeds=1, **FEW)


def parts(found: Comparison) -> tuple[np.ndarray, np.ndarray, int]:
    """Return which rows were fitted on, which were measured, and the first seed."""
    streams = RandomStreams(found.seed, "comparison")
    order = streams.permutation("rows", len(X))
    return order[100:], order[:100], int(streams.words("seeds", 1)[0]) % 2**32


def test_the_error_is_that_of_a_fit_on_other_rows(regression: Comparison) -> None:
    fitted, measured, seed = parts(regression)
    maps = {
        "power": PolynomialSketch(3, gamma=2.0, coef0=1.0, random_state=seed),
        "nystroem": LeverageNystroem(KERNEL, random_state=seed),
    }
    for each in regression.measurements:
        features = maps[each.method].set_params(n_components=each.n_components)
        model = SketchedKernelRidge(features=features, random_state=0)
        score = model.fit(X[fitted], Y[fitted]).score(X[measured], Y[measured])
        assert each.prediction_error == pytest.approx(1.0 - score, rel=1e-9)
    assert regression.task == "regression"


def test_baselines_are_fitted_and_measured_on_the_same_rows(regression: Comparison) -> None:
    linear, boosting = regression.baselines
    assert (linear.name, boosting.name) == ("linear model", "gradient boosting")
    fitted, measured, _ = parts(regression)
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    score = model.fit(X[fitted], Y[fitted]).score(X[measured], Y[measured])
    assert linear.error == pytest.approx(1.0 - score, rel=1e-9)
    assert min(linear.seconds, boosting.seconds) > 0.0
    assert "On the columns themselves, the error of predictions is" in regression.table()


def test_the_best_is_the_best_at_predicting(regression: Comparison) -> None:
    least = min(regression.successes, key=lambda each: each.prediction_error)
    best = regression.best()
    assert (best.norm, best.method, best.n_components) == (
        "prediction",
        least.method,
        least.n_components,
    )
    assert "error of predictions (1 − R²)" in best.reason
    assert regression.best(norm="frobenius").norm == "frobenius"
    assert best.to_dict()["kernel"] == repr(KERNEL)


@pytest.mark.filterwarnings("ignore::powersketch.kernel_ridge.StraightLineWarning")
@pytest.mark.parametrize("method", ["power", "adaptive", "nystroem", "sklearn-countsketch"])
@pytest.mark.parametrize("target", [None, Y, CLASSES], ids=["none", "numbers", "classes"])
def test_the_recommended_estimator_fits_and_its_code_is_the_same(method: str, target: Any) -> None:
    found = compare(X, KERNEL, y=target, methods=[method], components=[8], seeds=1).best()
    names: dict[str, Any] = {"X": X, "y": target}
    exec(found.code(), names)
    if target is None:
        np.testing.assert_array_equal(found.estimator().fit_transform(X), names["Z"])
        return
    kinds = {"f": SketchedKernelRidge, "U": SketchedKernelRidgeClassifier}
    model = found.estimator()
    assert type(model) is kinds[target.dtype.kind] is type(names["model"])
    np.testing.assert_array_equal(model.fit(X, target).predict(X), names["model"].predict(X))


def test_classes() -> None:
    found = compare(X, KERNEL, y=CLASSES, seeds=1, **FEW)
    assert found.task == "classification"
    assert all(each.prediction_error * 100 % 1 < 1e-9 for each in found.successes)
    assert found.best().error < 0.3
    assert "share of wrong classes" in found.best().reason
    assert found.to_dict()["baselines"][0]["name"] == "linear model"


def test_sparse_rows_have_no_boosting_beside_them() -> None:
    rows = sparse.csr_array(X * (X > 0.2))
    found = compare(rows, KERNEL, y=Y, seeds=1, **FEW)
    assert [each.name for each in found.baselines] == ["linear model"]


@pytest.mark.parametrize(
    ("target", "name", "reason"),
    [
        (Y, "regression", "numbers, 200 different ones"),
        (CLASSES, "classification", "texts"),
        (CLASSES == "low", "classification", "truth values"),
        (np.arange(200) % 5, "classification", "5 different whole numbers"),
        (np.arange(200.0) % 5, "classification", "5 different whole numbers"),
        (np.arange(200) % 50, "regression", "numbers, 50 different ones"),
        (np.arange(20) % 5, "regression", "numbers, 5 different ones"),
        (np.arange(200) % 5 + 0.5, "regression", "numbers, 5 different ones"),
    ],
)
def test_what_a_target_asks_for(target: Any, name: str, reason: str) -> None:
    task = task_of(target)
    assert task.name == name
    assert reason in task.reason
    assert task_of(target, "classification").name == "classification"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": Y[:9]}, r"y has the shape \(9,\); allowed is one value for each of the 200 rows"),
        ({"y": np.full(200, np.nan)}, "y has values that are NaN or infinite"),
        ({"y": CLASSES, "task": "regression"}, "needs a target of numbers"),
        ({"y": Y, "task": "ranking"}, "task='ranking' is unknown"),
        ({"task": "regression"}, "has no effect without a target y"),
    ],
)
def test_targets_that_cannot_be_used(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(X, KERNEL, **options)
    with pytest.raises(InputError, match="needs a target: pass y"):
        compare(X, KERNEL, seeds=1, **FEW).best(norm="prediction")


def test_a_notebook_shows_the_table(regression: Comparison) -> None:
    shown = regression._repr_html_()
    assert shown.count("<tr>") == 1 + len(regression.successes)
    assert "<th>prediction</th>" in shown
    assert "linear model" in shown
    assert "<script" not in compare(X, Gaussian(1.0), seeds=1, **FEW)._repr_html_()


def test_predictions_come_first_on_the_page(regression: Comparison) -> None:
    from powersketch.comparison.page import page_text

    page = page_text(regression)
    assert page.index("Error against size, predictions") < page.index("size, Frobenius norm<")
    for words in ("linear model", "gradient boosting", "prediction error", "model.fit(X, y)"):
        assert words in page
