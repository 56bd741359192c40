"""Bad parameters and data get an error that names value, range and remedy; nothing is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from powersketch import GaussianSketch, kernels
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from tests.kernel_ridge.ridge_data import Identity, diabetes, digits

PARAMETERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"alpha": -1.0}, ValueError, r"alpha=-1\.0 is out of range.*at least 0"),
    ({"alpha": np.nan}, ValueError, "alpha=nan is out of range"),
    ({"alpha": "cv"}, ValueError, "alpha='cv' is unknown; use one of 'gcv', 'loo'"),
    ({"alpha": None}, TypeError, "alpha=None is a NoneType"),
    ({"alpha": "loo", "mode": "exact"}, ValueError, "alpha='loo' needs mode='primal'"),
    ({"alpha": 0.0, "mode": "row-sketch"}, ValueError, "a row sketch needs a penalty"),
    ({"alphas": [1.0, -1.0]}, ValueError, "alphas=.*finite numbers above 0"),
    ({"mode": "dual"}, ValueError, "mode='dual' is unknown; use one of 'primal', 'exact'"),
    ({"eps": 0.0}, ValueError, r"eps=0\.0 is out of range"),
    ({"tol": -1e-3}, ValueError, r"tol=-0\.001 is out of range"),
    ({"fit_intercept": 1}, TypeError, "fit_intercept=1 is a int"),
    ({"n_components": 0}, ValueError, "n_components=0 is out of range"),
    ({"n_components": 2.5}, TypeError, r"n_components=2\.5 is a float"),
    ({"time_budget": 0}, ValueError, r"time_budget=0\.0 is out of range"),
    ({"memory_budget": "1GB"}, TypeError, "memory_budget='1GB' is a str"),
    ({"n_jobs": 0}, ValueError, "n_jobs=0 has no meaning"),
    ({"random_state": "seed"}, TypeError, "random_state='seed'"),
    ({"sketch": "gauss"}, ValueError, "sketch='gauss' is unknown; use 'auto' or one of 'gaussian'"),
    ({"sketch": 3}, TypeError, "sketch=3 is a int; allowed are None, 'auto'"),
    ({"sketch": GaussianSketch}, TypeError, "pass an instance, not a class"),
    ({"sketch": "gaussian", "kernel_params": {"degree": 3}}, ValueError, "'degree', unknown to"),
    ({"sketch": GaussianSketch(), "kernel_params": {}}, ValueError, "is for a kernel given by its"),
    ({"sketch": "gaussian", "kernel": "gaussian"}, ValueError, "is for sketch='auto'"),
    ({"sketch": "auto", "kernel": "gauss"}, ValueError, "kernel='gauss' is unknown; use one of"),
    ({"sketch": Identity(), "n_components": 5}, ValueError, "Identity has no such parameter"),
    ({"sketch": Identity(), "mode": "exact"}, ValueError, "does not know its exact kernel"),
    ({"sketch": GaussianSketch(gamma=-1.0)}, ValueError, r"gamma=-1\.0 is out of range"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), PARAMETERS)
@pytest.mark.parametrize("estimator", [SketchedKernelRidge, SketchedKernelRidgeClassifier])
def test_bad_parameters_are_refused(
    estimator: Any, parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    X, y = digits(100)
    model = estimator(random_state=0).fit(X, y)
    before = model.predict(X)
    changed = {name: parameters.get(name, value) for name, value in model.get_params(False).items()}
    model.set_params(**changed)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    if "mode" not in parameters:
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
        SketchedKernelRidge().fit(with_entry(X, value), y)
    with pytest.raises(ValueError, match="Input y contains"):
        SketchedKernelRidge().fit(X, with_entry(y, value))
    with pytest.raises(ValueError, match="sample_weight contains"):
        SketchedKernelRidge().fit(X, y, with_entry(np.ones(50), value))
    with pytest.raises(ValueError, match="Input X contains"):
        SketchedKernelRidge().fit(X, y).predict(with_entry(X, value))


def test_targets_and_weights_must_fit_the_rows() -> None:
    X, y = diabetes(50)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SketchedKernelRidge().fit(X, y[1:])
    with pytest.raises(ValueError, match=r"y has shape \(50, 1, 1\)"):
        SketchedKernelRidge().fit(X, y.reshape(50, 1, 1))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(49,\)"):
        SketchedKernelRidge().fit(X, y, np.ones(49))
    with pytest.raises(ValueError, match=r"down to -1; negative"):
        SketchedKernelRidge().fit(X, y, -np.ones(50))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_weights_that_leave_no_row_are_refused(method: str) -> None:
    X, y = diabetes(50)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        getattr(SketchedKernelRidge(), method)(X, y, np.zeros(50))


def test_a_path_needs_two_rows() -> None:
    X, y = diabetes(50)
    for alpha in ("loo", "gcv"):
        with pytest.raises(ValueError, match="needs at least 2 rows of positive weight, got 1"):
            SketchedKernelRidge(alpha=alpha).fit(X[:1], y[:1])


def test_nothing_is_there_before_a_fit() -> None:
    X, _ = diabetes(50)
    model = SketchedKernelRidge()
    for name in ("coef_", "intercept_", "alpha_", "scores_", "effective_dimension_"):
        assert not hasattr(model, name)
    for method in ("predict", "predict_std"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError):
        SketchedKernelRidgeClassifier().decision_function(X)


def test_a_kernel_without_a_map_is_named() -> None:
    class Other(kernels.Gaussian):
        pass

    assert isinstance(SketchedKernelRidge(Other(0.1)).fit(*diabetes(50)).sketch_, GaussianSketch)
