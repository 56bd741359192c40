"""Settings that change between calls, data that would lose something, pickles and copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from powersketch import GaussianSketch
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernel_ridge import SketchedKernelRidge
from tests.kernel_ridge.ridge_data import classifier, diabetes, digits, ridge, std, waves


@pytest.mark.parametrize(
    "change",
    [
        {"n_components": 80},
        {"kernel": "polynomial"},
        {"kernel_params": {"gamma": 9.0}},
        {"random_state": 9},
    ],
)
def test_a_map_that_changes_between_blocks_is_refused(change: dict[str, Any]) -> None:
    X, y = waves(200)
    model = ridge(n_components=30, random_state=0).partial_fit(X, y)
    model.set_params(**change)
    with pytest.raises(InputError, match=f"{next(iter(change))} has changed since the first block"):
        model.partial_fit(X, y)
    assert model.statistics_.count == 200


def test_a_given_map_that_changes_between_blocks_is_refused() -> None:
    X, y = waves(200)
    model = ridge(features=GaussianSketch(n_components=30), random_state=0).partial_fit(X, y)
    model.set_params(features__gamma=3.0)
    with pytest.raises(InputError, match="features__gamma has changed since the first block"):
        model.partial_fit(X, y)


def test_what_the_solution_alone_depends_on_may_change() -> None:
    X, y = waves(200)
    model = ridge(n_components=30, random_state=0).partial_fit(X, y)
    model.set_params(alpha=5.0, fit_intercept=False, verbose=False).partial_fit(X, y)
    twice = np.vstack((X, X)), np.concatenate((y, y))
    once = ridge(features=model.feature_map_, alpha=5.0, fit_intercept=False).fit(*twice)
    np.testing.assert_allclose(model.predict(X), once.predict(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("change", [{"alpha": "cv"}, {"fit_intercept": "no"}, {"alpha": -1.0}])
def test_parameters_are_checked_when_blocks_are_solved(change: dict[str, Any]) -> None:
    X, y = waves(200)
    model = ridge(n_components=30, random_state=0).partial_fit(X, y)
    model.set_params(**change)
    with pytest.raises((InputError, InputTypeError), match=next(iter(change))):
        model.predict(X)


def test_what_was_fitted_does_not_depend_on_later_parameters() -> None:
    X, y = waves(200)
    parameters: dict[str, Any] = {"n_components": 30, "random_state": 0, "alpha": 0.1}
    model = ridge(**parameters).fit(X, y + 5.0)
    expected = std(model, X), model.effective_dimension_
    changed = ridge(**parameters).fit(X, y + 5.0).set_params(fit_intercept=False)
    np.testing.assert_array_equal(std(changed, X), expected[0])
    assert changed.effective_dimension_ == expected[1]


def masked(values: Any) -> Any:
    return np.ma.array(values, mask=np.asarray(values) > 0.5)


@pytest.mark.parametrize("estimator", [ridge, classifier])
def test_masked_values_are_refused(estimator: Any) -> None:
    X, y = waves(100)
    labels = (y > 0.0).astype(int)
    for name, arguments in (
        ("X", (masked(X), labels)),
        ("y", (X, masked(labels))),
        ("sample_weight", (X, labels, masked(np.ones(100)))),
    ):
        with pytest.raises(InputError, match=f"{name} is a masked array"):
            estimator().fit(*arguments)
    with pytest.raises(InputError, match="alphas is a masked array"):
        estimator(alpha="loo", alphas=masked([0.1, 1.0])).fit(X, labels)
    estimator().fit(np.ma.array(X), labels)  # without a masked entry nothing is lost


@pytest.mark.parametrize(
    "y",
    [
        pd.to_datetime(np.arange(100)),
        np.arange(100).astype("timedelta64[s]"),
        np.arange(100).astype(str),
    ],
)
def test_targets_that_are_no_numbers_are_refused(y: Any) -> None:
    X, _ = waves(100)
    with pytest.raises(InputTypeError, match="y has dtype"):
        ridge().fit(X, y)


def test_targets_of_any_numeric_type_are_taken() -> None:
    X, y = waves(100)
    for dtype in (bool, np.int8, np.float16, np.longdouble, object):
        model = ridge(random_state=0).fit(X, np.round(y).astype(dtype))
        assert model.predict(X).dtype == np.float64


@pytest.mark.parametrize(("scale", "reached"), [(1e39, "beyond"), (1e-60, "below")])
@pytest.mark.parametrize("kind", ["sketch", "exact"])
def test_predictions_that_float32_cannot_hold_are_refused(
    kind: str, scale: float, reached: str
) -> None:
    X, y = waves(100)
    model = ridge(features=kind, random_state=0).fit(X, scale * y)
    with pytest.raises(InputError, match=f"predictions are {reached} the range of float32"):
        model.predict(X.astype(np.float32))
    assert 0.0 < np.abs(model.predict(X)).max() < np.inf


def test_the_warning_of_a_column_of_labels_names_the_line_of_the_user() -> None:
    X, y = waves(100)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed") as caught:
        classifier().fit(X, (y > 0.0)[:, np.newaxis])
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("alphas", ["abc", [1j, 2.0], (a for a in (1.0, 2.0)), {1.0}])
def test_alphas_of_another_type_are_refused(alphas: Any) -> None:
    with pytest.raises(InputError, match=r"alphas=.*allowed is a list"):
        ridge(alpha="loo", alphas=alphas).fit(*waves(50))


COMPONENTS = 400
GRAM = 8 * COMPONENTS**2


def loaded(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def fitted(**parameters: Any) -> SketchedKernelRidge:
    X, y = diabetes()
    return ridge(n_components=COMPONENTS, random_state=0, **parameters).fit(X, y)


@pytest.mark.parametrize("alpha", [1.0, "loo", "gcv"])
def test_a_pickle_holds_what_predictions_need(alpha: float | str) -> None:
    X, _ = diabetes()
    model = fitted(alpha=alpha)
    std(model, X)
    assert len(pickle.dumps(model)) < GRAM / 8
    again = loaded(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert (again.intercept_, again.alpha_) == (model.intercept_, model.alpha_)
    assert model.statistics_.count == 442  # the model itself has lost nothing


@pytest.mark.parametrize(
    "use", ["statistics_", "noise_variance_", "predict", "effective_dimension_"]
)
def test_what_is_missing_names_the_remedy(use: str) -> None:
    X, _ = diabetes()
    model = loaded(fitted())
    with pytest.raises(AttributeError, match=r"pickle.*powersketch\.save.*compact=False"):
        _ = std(model, X) if use == "predict" else getattr(model, use)


def test_a_loaded_model_does_not_start_anew_in_silence() -> None:
    X, y = diabetes()
    model = loaded(fitted())
    before = model.predict(X)
    with pytest.raises(AttributeError, match=r"partial_fit .*pickle"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    model.fit(X, y).partial_fit(X, y)  # a new fit has everything again
    assert model.statistics_.count == 884
    labelled = classifier(n_components=50, random_state=0).fit(*digits(200))
    with pytest.raises(AttributeError, match=r"partial_fit .*pickle"):
        loaded(labelled).partial_fit(*digits(200))


def test_statistics_that_are_put_back_serve_again() -> None:
    X, y = diabetes()
    model = fitted()
    again = loaded(model)
    again.statistics_ = loaded(model.statistics_)
    np.testing.assert_array_equal(std(again, X), std(model, X))
    assert again.effective_dimension_ == model.effective_dimension_
    assert again.partial_fit(X, y).statistics_.count == 884


def test_a_model_of_blocks_goes_on_after_loading() -> None:
    X, y = diabetes()
    model = ridge(n_components=40, random_state=0).partial_fit(X[:200], y[:200])
    again = loaded(model).partial_fit(X[200:], y[200:])
    expected = model.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(again.predict(X), expected.predict(X))
    np.testing.assert_array_equal(std(again, X), std(expected, X))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_in_memory_keeps_everything(copied: Any) -> None:
    X, y = diabetes()
    model = fitted()
    again = copied(model)
    np.testing.assert_array_equal(std(again, X), std(model, X))
    again.partial_fit(X, y)
    assert (again.statistics_.count, model.statistics_.count) == (884, 442)


def test_the_exact_mode_stores_rows_once() -> None:
    X, y = diabetes()
    model = ridge(features="exact").fit(X, y)
    assert len(pickle.dumps(model)) < 2 * X.nbytes
    np.testing.assert_array_equal(loaded(model).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", ["sketch", "landmarks", "exact", "row-sketch"])
def test_rows_that_are_changed_after_the_fit_change_nothing(kind: str) -> None:
    X, y = diabetes(100)
    mine = X.copy()
    model = ridge(features=kind, random_state=0).fit(mine, y)
    before = model.predict(X)
    mine[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), before)
