"""Pickled models are small, predict the same, and say what they can no longer do."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from tests.kernel_ridge.ridge_data import diabetes, digits

COMPONENTS = 400
GRAM = 8 * COMPONENTS**2


def loaded(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def fitted(**parameters: Any) -> SketchedKernelRidge:
    X, y = diabetes()
    return SketchedKernelRidge(n_components=COMPONENTS, random_state=0, **parameters).fit(X, y)


@pytest.mark.parametrize("alpha", [1.0, "loo", "gcv"])
def test_a_pickle_holds_what_predictions_need(alpha: float | str) -> None:
    X, _ = diabetes()
    model = fitted(alpha=alpha)
    model.predict_std(X)
    assert len(pickle.dumps(model)) < GRAM / 8
    again = loaded(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert (again.intercept_, again.alpha_) == (model.intercept_, model.alpha_)
    assert model.statistics_.count == 442  # the model itself has lost nothing


@pytest.mark.parametrize("use", ["statistics_", "predict_std", "effective_dimension_"])
def test_what_is_missing_names_the_remedy(use: str) -> None:
    X, _ = diabetes()
    model = loaded(fitted())
    calls = {"predict_std": lambda: model.predict_std(X)}
    with pytest.raises(AttributeError, match=f"{use} .*pickle.*partial_fit.*statistics_"):
        calls.get(use, lambda: getattr(model, use))()


def test_a_loaded_model_does_not_start_anew_in_silence() -> None:
    X, y = diabetes()
    model = loaded(fitted())
    before = model.predict(X)
    with pytest.raises(AttributeError, match=r"partial_fit .*pickle"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    model.fit(X, y).partial_fit(X, y)  # a new fit has everything again
    assert model.statistics_.count == 884
    classifier = SketchedKernelRidgeClassifier(n_components=50, random_state=0).fit(*digits(200))
    with pytest.raises(AttributeError, match=r"partial_fit .*pickle"):
        loaded(classifier).partial_fit(*digits(200))


def test_statistics_that_are_put_back_serve_again() -> None:
    X, y = diabetes()
    model = fitted()
    again = loaded(model)
    again.statistics_ = loaded(model.statistics_)
    np.testing.assert_array_equal(again.predict_std(X), model.predict_std(X))
    assert again.effective_dimension_ == model.effective_dimension_
    assert again.partial_fit(X, y).statistics_.count == 884


def test_a_model_of_blocks_goes_on_after_loading() -> None:
    X, y = diabetes()
    model = SketchedKernelRidge(n_components=40, random_state=0).partial_fit(X[:200], y[:200])
    again = loaded(model).partial_fit(X[200:], y[200:])
    expected = model.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(again.predict(X), expected.predict(X))
    np.testing.assert_array_equal(again.predict_std(X), expected.predict_std(X))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_in_memory_keeps_everything(copied: Any) -> None:
    X, y = diabetes()
    model = fitted()
    again = copied(model)
    np.testing.assert_array_equal(again.predict_std(X), model.predict_std(X))
    again.partial_fit(X, y)
    assert (again.statistics_.count, model.statistics_.count) == (884, 442)


def test_the_exact_mode_stores_rows_once() -> None:
    X, y = diabetes()
    model = SketchedKernelRidge(mode="exact").fit(X, y)
    assert len(pickle.dumps(model)) < 2 * X.nbytes
    np.testing.assert_array_equal(loaded(model).predict(X), model.predict(X))


@pytest.mark.parametrize("mode", ["primal", "exact", "row-sketch"])
def test_rows_that_are_changed_after_the_fit_change_nothing(mode: str) -> None:
    X, y = diabetes(100)
    mine = X.copy()
    model = SketchedKernelRidge(mode=mode, random_state=0).fit(mine, y)
    before = model.predict(X)
    mine[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), before)
