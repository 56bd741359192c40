"""Bad parameters and data, and options without effect, are refused; nothing is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from powersketch import GaussianSketch, kernels
from powersketch.exceptions import InputError
from tests.kernel_ridge.ridge_data import Identity, classifier, diabetes, digits, ridge

PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"alpha": -1.0}, ValueError, r"alpha=-1\.0 is out of range.*at least 0"),
    ({"alpha": np.nan}, ValueError, "alpha=nan is out of range"),
    ({"alpha": "cv"}, ValueError, "alpha='cv' is unknown; use one of 'gcv', 'loo'"),
    ({"alpha": None}, TypeError, "alpha=None is a NoneType"),
    ({"alpha": "gcv", "features": "exact"}, ValueError, "alpha='gcv' cannot be used with"),
    ({"alpha": "loo", "features": "row-sketch"}, ValueError, "alpha='loo' cannot be used with"),
    ({"alpha": 0.0, "features": "row-sketch"}, ValueError, "a row sketch needs a penalty"),
    ({"alphas": [1.0, -1.0]}, ValueError, "alphas=.*finite numbers above 0"),
    ({"solver": "qr"}, ValueError, "solver='qr' is unknown; use one of 'auto', 'gram', 'cg'"),
    ({"eps": 0.0}, ValueError, r"eps=0\.0 is out of range"),
    ({"tol": -1e-3}, ValueError, r"tol=-0\.001 is out of range"),
    ({"fit_intercept": 1}, TypeError, "fit_intercept=1 is a int"),
    ({"n_components": 0}, ValueError, "n_components=0 is out of range"),
    ({"n_components": 2.5}, TypeError, r"n_components=2\.5 is a float"),
    ({"time_budget": 0}, ValueError, r"time_budget=0\.0 is out of range"),
    ({"memory_budget": "1GB"}, TypeError, "memory_budget='1GB' is a str"),
    ({"n_jobs": 0}, ValueError, "n_jobs=0 has no meaning"),
    ({"random_state": "seed"}, TypeError, "random_state='seed'"),
    (
        {"features": "primal"},
        ValueError,
        "features='primal' is unknown; use one of 'auto', 'sketch'",
    ),
    ({"features": 3}, TypeError, "features=3 is a int; allowed are 'auto', 'sketch'"),
    ({"features": GaussianSketch}, TypeError, "pass an instance, not a class"),
    ({"features": kernels.Gaussian()}, TypeError, "features=Gaussian.*a kernel as kernel"),
    ({"features": Identity(), "n_components": 5}, ValueError, "Identity has no such parameter"),
    ({"features": GaussianSketch(gamma=-1.0)}, ValueError, r"gamma=-1\.0 is out of range"),
    ({"kernel": "gauss"}, ValueError, "kernel='gauss' is unknown; use one of 'linear'"),
    ({"kernel": None}, TypeError, "kernel=None is a NoneType; allowed are the kernels"),
    ({"kernel": GaussianSketch()}, TypeError, "is a feature map: pass it as features"),
    ({"kernel_params": {"degree": 3}}, ValueError, "kernel_params={'degree': 3}: .*has no degree"),
    ({"kernel_params": {"X": [[1.0]]}}, TypeError, "kernel_params={'X': "),
    ({"kernel_params": ["gamma"]}, TypeError, r"kernel_params=\['gamma'\] is a list"),
    (
        {"kernel": kernels.Gaussian(), "kernel_params": {"gamma": 1.0}},
        ValueError,
        "go with the name of a kernel",
    ),
]


@pytest.mark.parametrize(("parameters", "error", "message"), PARAMETERS)
@pytest.mark.parametrize("estimator", [ridge, classifier])
def test_bad_parameters_are_refused(
    estimator: Any, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    X, y = digits(100)
    model = estimator(random_state=0).fit(X, y)
    before = model.predict(X)
    changed = {name: parameters.get(name, value) for name, value in model.get_params(False).items()}
    if not isinstance(changed["features"], str):
        changed["kernel"] = "auto"
    model.set_params(**changed)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    if "features" not in parameters:
        model.set_params(**estimator().get_params(False))
        np.testing.assert_array_equal(model.predict(X), before)


def with_entry(array: Any, value: float) -> Any:
    changed = np.array(array, dtype=float)
    changed.flat[0] = value
    return changed


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    X, y = diabetes(50)
    with pytest.raises(ValueError, match="Input X contains"):
        ridge().fit(with_entry(X, value), y)
    with pytest.raises(ValueError, match="Input y contains"):
        ridge().fit(X, with_entry(y, value))
    with pytest.raises(ValueError, match="sample_weight contains"):
        ridge().fit(X, y, with_entry(np.ones(50), value))
    with pytest.raises(ValueError, match="Input X contains"):
        ridge().fit(X, y).predict(with_entry(X, value))


def test_targets_and_weights_must_fit_the_rows() -> None:
    X, y = diabetes(50)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ridge().fit(X, y[1:])
    with pytest.raises(ValueError, match=r"y has shape \(50, 1, 1\)"):
        ridge().fit(X, y.reshape(50, 1, 1))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(49,\)"):
        ridge().fit(X, y, np.ones(49))
    with pytest.raises(ValueError, match=r"down to -1; negative"):
        ridge().fit(X, y, -np.ones(50))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_that_leave_no_row_are_refused(method: str) -> None:
    X, y = diabetes(50)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        getattr(ridge(), method)(X, y, np.zeros(50))


def test_a_path_needs_two_rows() -> None:
    X, y = diabetes(50)
    for alpha in ("loo", "gcv"):
        with pytest.raises(ValueError, match="needs at least 2 rows of positive weight, got 1"):
            ridge(alpha=alpha).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="needs at least 2 rows of positive weight, got 1"):
        ridge(features="exact", alpha="loo").fit(X, y, np.eye(50)[3])


def test_nothing_is_there_before_a_fit() -> None:
    X, _ = diabetes(50)
    model = ridge()
    for name in (
        "coef_",
        "intercept_",
        "alpha_",
        "scores_",
        "effective_dimension_",
        "noise_variance_",
    ):
        assert not hasattr(model, name)
    for return_std in (False, True):
        with pytest.raises(NotFittedError):
            model.predict(X, return_std=return_std)
    with pytest.raises(NotFittedError):
        classifier().decision_function(X)


UNUSED: list[tuple[dict[str, Any], str]] = [
    ({"alphas": [0.1, 1.0]}, r"alphas=.* has no effect beside alpha=1\.0"),
    ({"eps": 0.2}, "eps=0.2 has no effect with features='sketch'"),
    ({"eps": 0.2, "features": "exact"}, "eps=0.2 has no effect with features='exact'"),
    ({"tol": 1e-8}, "tol=1e-08 has no effect with features='sketch'"),
    ({"tol": 1e-8, "features": "row-sketch"}, "tol=1e-08 has no effect with features='row-sketch'"),
    ({"n_components": 50, "features": "exact"}, "n_components=50 has no effect with features='ex"),
    ({"time_budget": 5.0}, "time_budget=5.0 has no effect with features='sketch'"),
    ({"time_budget": 5.0, "features": "landmarks"}, "time_budget=.* with features='landmarks'"),
    ({"time_budget": 5.0, "features": "exact"}, "time_budget=.*features='exact'"),
    ({"time_budget": 5.0, "features": "auto", "n_components": 20}, "time_budget=.*n_components=20"),
    ({"solver": "gram", "features": "exact"}, "solver='gram' has no effect with features='exact'"),
    ({"solver": "cg", "features": "row-sketch"}, "solver='cg' has no effect with features='row"),
    ({"kernel": "polynomial", "features": Identity()}, "kernel='polynomial' has no effect with"),
    (
        {"kernel": kernels.Gaussian(), "features": Identity()},
        "kernel=Gaussian.* has no effect with",
    ),
    ({"kernel_params": {"gamma": 1.0}, "features": Identity()}, "kernel_params=.* has no effect"),
]


@pytest.mark.parametrize(("parameters", "message"), UNUSED)
@pytest.mark.parametrize("estimator", [ridge, classifier])
def test_an_option_without_effect_is_refused(
    estimator: Any, parameters: dict[str, Any], message: str
) -> None:
    X, y = digits(200)
    model = estimator(**parameters)
    assert repr(clone(model)) == repr(model)
    with pytest.raises(InputError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "seed_")


USED: list[dict[str, Any]] = [
    {"alpha": "loo", "alphas": [0.1, 1.0, 10.0]},
    {"features": "row-sketch", "eps": 0.2, "n_components": 300, "memory_budget": 10**9},
    {"features": "exact", "tol": 1e-8, "memory_budget": 10**9},
    {"features": "exact", "kernel_params": {"gamma": 0.1}},
    {"features": "auto", "time_budget": 60.0, "memory_budget": 1e9},
]


@pytest.mark.parametrize("parameters", USED)
def test_an_option_with_an_effect_is_taken(parameters: dict[str, Any]) -> None:
    X, y = diabetes(200)
    model = ridge(random_state=0, **parameters).fit(X, y)
    assert model.predict(X).shape == (200,)


def test_a_default_that_was_given_as_another_type_is_the_default() -> None:
    X, y = diabetes(60)
    ridge(eps=np.float64(0.1), tol=np.float64(1e-6)).fit(X, y)


def test_a_search_over_alpha_needs_no_alphas() -> None:
    X, y = diabetes()
    sketch = GaussianSketch("scale", n_components=50, random_state=0)
    search = GridSearchCV(ridge(features=sketch), {"alpha": [1.0, "gcv"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("verbose", ["a", 1.5, None, -1])
@pytest.mark.parametrize("estimator", [ridge, classifier])
def test_verbose_is_a_number_or_a_truth_value(estimator: Any, verbose: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"verbose={verbose!r}"):
        estimator(verbose=verbose).fit(*digits(100))
