"""Reports: scores on rows held out, beside others, and what the model says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powersketch.exceptions import InputError
from powersketch.reports import ModelReport, assess, automatic_model, fitted

RANDOM = np.random.default_rng(0)
N = 150
TABLE = pandas.DataFrame(
    {
        "size": RANDOM.normal(size=N),
        "colour": RANDOM.choice(["red", "blue", "green"], size=N),
        "noise": RANDOM.normal(size=N),
    }
)
Y = 3.0 * TABLE["size"].to_numpy() + 2.0 * (TABLE["colour"] == "red").to_numpy()
Y = Y + 0.1 * RANDOM.normal(size=N)
CLASSES = np.where(Y > 0.5, "large", "small")
LINEAR: dict[str, Any] = {"kernel": "linear", "random_state": 0}


@pytest.fixture(scope="module")
def regression() -> ModelReport:
    model = automatic_model("regression", random_state=0)
    return assess(model, TABLE, Y, random_state=0, targets=["price"], data_name="a.csv")


@pytest.fixture(scope="module")
def classification() -> ModelReport:
    return assess(automatic_model("classification", random_state=0), TABLE, CLASSES, random_state=0)


def test_scores_are_those_of_rows_held_out(regression: ModelReport) -> None:
    kept, out = train_test_split(np.arange(N), test_size=30, random_state=0)
    assert (regression.fit_rows, regression.held_out_rows) == (120, 30)
    np.testing.assert_array_equal(np.sort(regression.true), np.sort(Y[out]))
    ours, linear, boosting = regression.scores
    model = automatic_model("regression", random_state=0).fit(TABLE.iloc[kept], Y[kept])
    assert ours.score == pytest.approx(model.score(TABLE.iloc[out], Y[out]), rel=1e-6)
    rows = model[0].transform(TABLE)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    assert linear.score == pytest.approx(ridge.fit(rows[kept], Y[kept]).score(rows[out], Y[out]))
    assert ours.error == pytest.approx(
        np.sqrt(np.mean((model.predict(TABLE.iloc[out]) - Y[out]) ** 2)), rel=1e-6
    )
    assert boosting.name == "gradient boosting"
    assert ours.score > 0.97


def test_what_the_report_says(regression: ModelReport) -> None:
    text = repr(regression)
    assert "Regression of price from the rows of a.csv" in text
    assert f"R² {regression.scores[0].score:.4f} at 30 rows that the model has not seen" in text
    assert regression.recipe[1] == "colour: 3 categories, a column for each"
    assert "models were tried" in regression.choice[0]
    assert 0.8 < regression.coverage(0.95) <= 1.0
    figures = regression.to_dict()
    assert figures["scores"][1]["name"] == "linear model"
    assert figures["task_reason"] == "its values are numbers, 150 different ones"
    assert figures["coverage_of_95_percent"] == regression.coverage(0.95)


@pytest.mark.parametrize("metric", ["diagonal", None])
def test_importances_are_those_of_the_columns_of_the_table(metric: str | None) -> None:
    options = {"kernel": "gaussian", "kernel_params": {"gamma": "auto"}} if metric else LINEAR
    model = automatic_model("regression", **(options | {"metric": metric or "auto"}))
    found = assess(model, TABLE, Y, random_state=0).importances
    names = [name for name, _ in found.shares]
    assert names == ["size", "colour", "noise"]
    assert ("learned metric" in found.how) == bool(metric)
    if metric:
        assert sum(share for _, share in found.shares) == pytest.approx(1.0)


def test_classes(classification: ModelReport) -> None:
    assert classification.task == "classification"
    assert classification.classes == ("large", "small")
    assert classification.probabilities is not None
    assert classification.probabilities.shape == (30, 2)
    assert classification.log_loss is not None
    right = np.mean(classification.true == classification.predicted)
    assert classification.scores[0].score == pytest.approx(right)
    shares = [np.mean(part == "large") for part in (classification.true, CLASSES)]
    assert shares[0] == pytest.approx(shares[1], abs=0.03)


def test_a_class_that_only_rows_held_out_have(tmp_path: Path) -> None:
    """They cannot be stratified, and no probability was given to it."""
    classes = np.where(np.arange(N) % 5 == 0, np.array([f"own {k}" for k in range(N)]), CLASSES)
    model = automatic_model("classification", kernel="linear", alpha=1.0)
    report = assess(model, TABLE, classes, random_state=0)
    assert set(report.true) - set(report.classes)
    assert report.log_loss is None
    report.save_html(tmp_path / "page.html")
    assert "loss is infinite, as a row has a class" in (tmp_path / "page.html").read_text("utf-8")


def test_weights_count_in_fits_and_in_scores() -> None:
    weights = np.where(TABLE["colour"] == "red", 1.0, 0.0)
    red = (TABLE["colour"] == "red").to_numpy()
    found = assess(
        automatic_model("regression", **LINEAR), TABLE, Y, weights=weights, random_state=0
    )
    kept, out = train_test_split(np.arange(N), test_size=30, random_state=0)
    model = fitted(
        automatic_model("regression", **LINEAR), TABLE.iloc[kept], Y[kept], weights[kept]
    )
    predicted = model.predict(TABLE.iloc[out][red[out]])
    error = np.sqrt(np.mean((predicted - Y[out][red[out]]) ** 2))
    assert found.scores[0].error == pytest.approx(error, rel=1e-6)


def test_several_targets_and_rows_of_numbers() -> None:
    X = np.column_stack([TABLE["size"], TABLE["noise"]])
    both = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] - X[:, 1]])
    model = automatic_model("regression", table=False, **LINEAR)
    found = assess(model, X, both, random_state=0, targets=["sum", "difference"])
    assert len(found.scores) == 3
    assert found.scores[0].score > 0.999
    assert found.recipe == ()
    assert found.importances.shares[0][0] in ("0", "1")


def test_sparse_rows_stay_sparse() -> None:
    X = sparse.csr_array(np.column_stack([TABLE["size"], TABLE["noise"]]))
    found = assess(automatic_model("regression", table=False, **LINEAR), X, Y, random_state=0)
    assert [score.name for score in found.scores] == ["powersketch", "linear model"]
    assert found.importances.shares == ()


def test_warnings_are_part_of_the_report() -> None:
    kept, _ = train_test_split(np.arange(N), test_size=30, random_state=0)
    far = TABLE.assign(size=TABLE["size"].where(TABLE.index != kept[0], 1e20))
    model = automatic_model("regression", kernel="poly", alpha=1.0, random_state=0)
    found = assess(model, far, Y, random_state=0)
    assert any("far" in text for text in found.warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": 1.5}, "held_out=1.5 is out of range"),
        ({"held_out": 0.001}, "150 rows are too few to hold out a share of 0.001"),
        ({"task": "ranking"}, "task='ranking' is unknown"),
    ],
)
def test_wishes_that_cannot_be_met(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assess(automatic_model("regression", **LINEAR), TABLE, Y, **options)
