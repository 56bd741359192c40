"""An option that has no effect in a mode is refused by `fit`, and never ignored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from powersketch import GaussianSketch
from powersketch.exceptions import InputError
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from tests.kernel_ridge.ridge_data import diabetes, digits

UNUSED: list[tuple[dict[str, Any], str]] = [
    ({"alphas": [0.1, 1.0]}, r"alphas=.* has no effect beside alpha=1\.0"),
    ({"eps": 0.2}, "eps=0.2 has no effect in mode='primal'"),
    ({"eps": 0.2, "mode": "exact"}, "eps=0.2 has no effect in mode='exact'"),
    ({"tol": 1e-8}, "tol=1e-08 has no effect in mode='primal'"),
    ({"tol": 1e-8, "mode": "row-sketch"}, "tol=1e-08 has no effect in mode='row-sketch'"),
    ({"n_components": 50, "mode": "exact"}, "n_components=50 has no effect in mode='exact'"),
    ({"time_budget": 5.0}, "time_budget=5.0 has no effect with sketch=None"),
    ({"time_budget": 5.0, "sketch": "polynomial"}, "time_budget=.* with sketch='polynomial'"),
    ({"time_budget": 5.0, "sketch": "auto", "mode": "exact"}, "time_budget=.*mode='exact'"),
    ({"time_budget": 5.0, "sketch": "auto", "n_components": 20}, "time_budget=.*n_components=20"),
    ({"memory_budget": 1e9}, "memory_budget=1000000000.0 has no effect with sketch=None"),
    ({"memory_budget": 1e9, "sketch": "auto", "n_components": 20}, "memory_budget=.*n_components"),
    (
        {"kernel_params": {"method": "power"}, "mode": "exact"},
        r"kernel_params\['method'\]='power' has no effect",
    ),
    (
        {"kernel_params": {"n_components": 9}, "mode": "exact"},
        r"kernel_params\['n_components'\]=9 has no effect",
    ),
    (
        {"kernel_params": {"n_components": 9}, "sketch": "auto"},
        r"kernel_params\['n_components'\]=9 has no effect",
    ),
    (
        {"kernel_params": {"n_components": 9}, "n_components": 20},
        "has no effect beside n_components=20",
    ),
]


@pytest.mark.parametrize(("parameters", "message"), UNUSED)
@pytest.mark.parametrize("estimator", [SketchedKernelRidge, SketchedKernelRidgeClassifier])
def test_an_option_without_effect_is_refused(
    estimator: Any, parameters: dict[str, Any], message: str
) -> None:
    X, y = digits(200)
    model = estimator(**parameters)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(InputError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "seed_")


USED: list[dict[str, Any]] = [
    {"alpha": "loo", "alphas": [0.1, 1.0, 10.0]},
    {"mode": "row-sketch", "eps": 0.2, "n_components": 300, "memory_budget": 10**9},
    {"mode": "exact", "tol": 1e-8, "memory_budget": 10**9},
    {"mode": "exact", "kernel_params": {"gamma": 0.1}},
    {"sketch": "auto", "mode": "exact", "kernel_params": {"gamma": 0.1}},
    {"sketch": "auto", "time_budget": 60.0, "memory_budget": 1e9},
    {"kernel_params": {"n_components": 20, "method": "power"}},
]


@pytest.mark.parametrize("parameters", USED)
def test_an_option_with_an_effect_is_taken(parameters: dict[str, Any]) -> None:
    X, y = diabetes(200)
    model = SketchedKernelRidge(random_state=0, **parameters).fit(X, y)
    assert model.predict(X).shape == (200,)


def test_a_default_that_was_given_as_another_type_is_the_default() -> None:
    X, y = diabetes(60)
    SketchedKernelRidge(eps=np.float64(0.1), tol=np.float64(1e-6)).fit(X, y)


def test_a_search_over_alpha_needs_no_alphas() -> None:
    X, y = diabetes()
    sketch = GaussianSketch("scale", n_components=50, random_state=0)
    search = GridSearchCV(SketchedKernelRidge(sketch), {"alpha": [1.0, "gcv"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("verbose", ["a", 1.5, None, -1])
@pytest.mark.parametrize("estimator", [SketchedKernelRidge, SketchedKernelRidgeClassifier])
def test_verbose_is_a_number_or_a_truth_value(estimator: Any, verbose: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=f"verbose={verbose!r}"):
        estimator(verbose=verbose).fit(*digits(100))
