"""Batches are read once, in any container, and give what the same rows give in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

from powersketch import SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernel_ridge import blockwise
from tests.kernel_ridge.ridge_data import Float64, classifier, ridge, std, waves, weights

PARTS = [slice(start, start + 100) for start in range(0, 400, 100)]


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two batches of a hundred rows do for the choices."""
    monkeypatch.setattr(blockwise, "FIRST_ROWS", 200)


def model(**parameters: Any) -> SketchedKernelRidge:
    return ridge(n_components=40, random_state=0, **parameters)


def pairs(X: Any, y: Any) -> list[tuple[Any, Any]]:
    return [(X[part], y[part]) for part in PARTS]


def table() -> pd.DataFrame:
    X, y = waves()
    return pd.DataFrame({"east": X[:, 0], "height": y, "north": X[:, 1]})


@pytest.mark.parametrize("alpha", [0.1, "loo", "gcv"])
def test_they_equal_blocks_of_the_same_rows(alpha: float | str) -> None:
    X, y = waves()
    found = model(alpha=alpha).fit_batches(pairs(X, y))
    expected = model(alpha=alpha).partial_fit(X[:200], y[:200])
    for part in PARTS[2:]:
        expected.partial_fit(X[part], y[part])
    assert found.alpha_ == expected.alpha_
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    np.testing.assert_array_equal(std(found, X), std(expected, X))
    assert found.statistics_.count == 400


def test_they_equal_blocks_with_everything_chosen() -> None:
    X, y = waves()
    found = SketchedKernelRidge(random_state=0).fit_batches(pairs(X, y))
    expected = SketchedKernelRidge(random_state=0).partial_fit(X[:200], y[:200])
    for part in PARTS[2:]:
        expected.partial_fit(X[part], y[part])
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.choice_.model == expected.choice_.model
    assert found.score(X, y) > 0.97


def test_few_rows_are_fitted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockwise, "FIRST_ROWS", 20_000)
    X, y = waves()
    found = SketchedKernelRidge("gaussian", random_state=0).fit_batches(pairs(X, y))
    assert found.choice_.name == "exact"
    expected = SketchedKernelRidge("gaussian", random_state=0).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_weights_may_come_with_some_of_them() -> None:
    X, y = waves()
    w = weights(400)
    w[:100] = 1.0
    batches = [(X[:100], y[:100]), *((X[part], y[part], w[part]) for part in PARTS[1:])]
    found = model().fit_batches(batches)
    expected = model().partial_fit(X[:200], y[:200], w[:200])
    for part in PARTS[2:]:
        expected.partial_fit(X[part], y[part], w[part])
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


class Arrow:
    """Something with the method of Arrow's tables."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def to_pandas(self) -> pd.DataFrame:
        return self.frame


class TestTables:
    @pytest.mark.parametrize(
        "container",
        [
            lambda frame: frame,
            Arrow,
            lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
            lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        ],
        ids=["pandas", "to_pandas", "record batch", "table"],
    )
    def test_name_their_target(self, container: Any) -> None:
        frame = table()
        found = model().fit_batches((container(frame[part]) for part in PARTS), target="height")
        rows = frame[["east", "north"]]
        assert list(found.feature_names_in_) == ["east", "north"]
        expected = model().partial_fit(rows[:200], frame["height"][:200])
        for part in PARTS[2:]:
            expected.partial_fit(rows[part], frame["height"][part])
        np.testing.assert_array_equal(found.predict(rows), expected.predict(rows))

    def test_without_the_target_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"batch 1 has no column 'height'; there are 'east'"):
            model().fit_batches([table()[:100], table()[["east"]]], target="height")
        with pytest.raises(InputTypeError, match=r"batch 0 is a DataFrame.*with target= a table"):
            model().fit_batches([table()])
        with pytest.raises(InputTypeError, match=r"batch 0 is a ndarray; allowed with target="):
            model().fit_batches([waves()[0]], target="height")

    def test_with_other_columns_are_refused(self) -> None:
        renamed = table().rename(columns={"east": "west"})
        with pytest.raises(ValueError, match="feature names"):
            model().fit_batches([table(), renamed], target="height")


class TestGenerators:
    def test_are_read_once(self) -> None:
        X, y = waves()
        read = []

        def batches() -> Iterator[tuple[Float64, Float64]]:
            for number, part in enumerate(PARTS):
                read.append(number)
                yield X[part], y[part]

        model().fit_batches(batches())
        assert read == [0, 1, 2, 3]

    @pytest.mark.parametrize("first", [100, 150])
    def test_may_fill_one_array_again_and_again(
        self, first: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(blockwise, "FIRST_ROWS", first)
        X, y = waves()
        rows, targets = np.empty((100, 2)), np.empty(100)

        def batches() -> Iterator[tuple[Float64, Float64]]:
            for part in PARTS:
                rows[:], targets[:] = X[part], y[part]
                yield rows, targets

        found = model(alpha="loo").fit_batches(batches())
        expected = model(alpha="loo").fit_batches(pairs(X, y))
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))

    def test_that_fail_leave_the_last_fit(self) -> None:
        X, y = waves()
        fitted = model().fit(X, y)
        before = fitted.predict(X)

        def batches() -> Iterator[tuple[Float64, Float64]]:
            yield from pairs(X, y)[:3]
            raise OSError("the disk is gone")

        with pytest.raises(OSError, match="the disk is gone"):
            fitted.fit_batches(batches())
        np.testing.assert_array_equal(fitted.predict(X), before)
        with pytest.raises(ValueError, match="NaN"):
            fitted.fit_batches([*pairs(X, y), (X, np.full(400, np.nan))])
        np.testing.assert_array_equal(fitted.predict(X), before)


def test_sparse_batches_stay_sparse() -> None:
    X, y = waves()
    sparse = ridge(features="landmarks", n_components=40, random_state=0)
    sparse.fit_batches([(sp.csr_array(rows), targets) for rows, targets in pairs(X, y)])
    assert sp.issparse(sparse.feature_map_.landmarks_)
    dense = ridge(features="landmarks", n_components=40, random_state=0).fit_batches(pairs(X, y))
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), dense.predict(X), atol=1e-6)


@pytest.mark.parametrize("batches", [3, "rows.csv", None, {"X": 1}])
def test_what_is_no_iterable_of_batches_is_refused(batches: Any) -> None:
    with pytest.raises(InputTypeError, match=r"batches is a .*; allowed is an iterable"):
        model().fit_batches(batches)


def test_none_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="there are no batches; at least 1 is necessary"):
        model().fit_batches([])


class TestClassifier:
    def test_takes_classes(self) -> None:
        X, y = waves()
        labels = np.digitize(y, [-0.5, 0.5])
        found = classifier(n_components=40, random_state=0)
        found.fit_batches(pairs(X, labels), classes=[0, 1, 2])
        expected = classifier(n_components=40, random_state=0)
        expected.partial_fit(X[:200], labels[:200], classes=[0, 1, 2])
        for part in PARTS[2:]:
            expected.partial_fit(X[part], labels[part])
        np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
        np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))

    def test_asks_for_classes_where_more_may_come(self) -> None:
        X, y = waves()
        with pytest.raises(InputError, match="classes=None in the first call"):
            SketchedKernelRidgeClassifier().fit_batches(pairs(X, y > 0.0))

    def test_needs_none_for_few_rows(self) -> None:
        X, y = waves()
        found = classifier(random_state=0).fit_batches(pairs(X, y > 0.0)[:2])
        np.testing.assert_array_equal(found.classes_, [False, True])
