"""Every warning points at the line of the user, also through scikit-learn; remedies work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powersketch import GaussianSketch, kernels
from powersketch.kernel_ridge import (
    CoarseSketchWarning,
    RegularisationWarning,
    SketchedKernelRidge,
)
from tests.kernel_ridge.ridge_data import diabetes, ridge, waves

Data = tuple[Any, Any]


def exact(rows: int = 120) -> Data:
    """Return a function without noise, of which the smallest alpha is the best."""
    X, _ = waves(rows)
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1]


CASES: dict[str, tuple[SketchedKernelRidge, Data, type[Warning]]] = {
    "smallest alpha": (
        ridge(alpha="loo", alphas=[0.1, 1.0], n_components=20, random_state=0),
        exact(),
        RegularisationWarning,
    ),
    "landmarks beyond the rows": (
        ridge(features="auto", n_components=400, random_state=0),
        waves(50),
        UserWarning,
    ),
    "budget too small": (
        ridge(features="auto", memory_budget=1000, random_state=0),
        waves(300),
        UserWarning,
    ),
    "no convergence": (
        ridge(kernels.Gaussian(5.0), features="exact", alpha=1e-7, tol=1e-15),
        waves(400),
        ConvergenceWarning,
    ),
    "coarse features": (
        ridge(features="row-sketch", n_components=10, alpha=0.1, random_state=0),
        diabetes(),
        CoarseSketchWarning,
    ),
}
WAYS: dict[str, Callable[[Any], BaseEstimator]] = {
    "alone": lambda model: model,
    "pipeline": lambda model: make_pipeline(StandardScaler(with_std=False), model),
    "search": lambda model: GridSearchCV(model, {"fit_intercept": [True]}, cv=2, n_jobs=None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_it_names_the_line_of_the_user(case: str, way: str) -> None:
    model, (X, y), category = CASES[case]
    with pytest.warns(category) as caught:
        WAYS[way](model).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_it_does_so_where_blocks_are_solved_later() -> None:
    model = ridge(alpha="gcv", alphas=[0.1, 1.0], n_components=20, random_state=0)
    X, y = exact()
    model.partial_fit(X, y)
    for ask in (model.predict, lambda X: model.partial_fit(X, y).coef_):
        with pytest.warns(RegularisationWarning) as caught:
            ask(X)
        assert {warning.filename for warning in caught} == {__file__}


def test_the_first_row_is_not_looked_at_on_its_own() -> None:
    """Among 500 rows, one that is somewhat further away does no harm to any feature."""
    X = 0.3 * np.random.default_rng(0).standard_normal((501, 5))
    X[0] *= 10.0
    sketch = GaussianSketch(0.5, n_components=200, method="power", random_state=0)
    model = ridge(features=sketch, alpha=1e-3).fit(X[1:], X[1:, 0])
    model.feature_map_.transform(X)
    model.predict(X)


def nearly_dependent(rows: int, difference: float) -> Data:
    """Return columns of which the last is the sum of the others but for what is to be found."""
    rng = np.random.default_rng(0)
    parts, rest = rng.normal(size=(rows, 4)), rng.normal(size=rows)
    X = np.column_stack((parts, parts.sum(axis=1) + difference * rest))
    return X, rest * (1.0 + 0.01 * rng.normal(size=rows))


def test_columns_that_need_a_smaller_alpha_get_one() -> None:
    X, y = nearly_dependent(400, 1e-5)
    with pytest.warns(RegularisationWarning, match="columns may depend on each other") as caught:
        poor = SketchedKernelRidge(random_state=0).fit(X, y)
    assert poor.score(X, y) < 0.2
    given = re.search(r"such as (\[.*?\])", str(caught[0].message))
    assert given is not None
    followed = SketchedKernelRidge(random_state=0, alphas=json.loads(given[1])).fit(X, y)
    assert followed.score(X, y) > 0.999


def test_a_linear_model_that_leaves_nothing_to_gain_is_not_warned_of() -> None:
    X, y = nearly_dependent(400, 1e-2)
    model = SketchedKernelRidge(random_state=0).fit(X, y)
    assert model.alpha_ == model.alphas_[0]
    assert model.score(X, y) > 0.999


@pytest.mark.parametrize("alphas", [[1e4, 1e5], [30.0, 300.0]])
def test_alphas_that_are_all_too_large_are_named_also_where_a_line_is_best(
    alphas: list[float],
) -> None:
    X, noise = nearly_dependent(400, 1.0)
    y = X[:, 0] + 0.1 * noise
    with pytest.warns(RegularisationWarning, match="Give smaller alphas, or None for the default"):
        SketchedKernelRidge(random_state=0, alphas=alphas).fit(X, y)
