"""PolynomialSketch takes the place of scikit-learn's PolynomialCountSketch by its name alone."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import PolynomialCountSketch

from powersketch import PolynomialSketch
from tests.feature_maps.cases import each_float, relative_error, uncentred

CALLS: list[dict[str, Any]] = [
    {},
    {"degree": 3},
    {"degree": 4, "gamma": 0.5, "coef0": 1},
    {"gamma": 2.0, "n_components": 250},
    {"degree": 1, "n_components": 11},
]
SEEDS = range(8)

each_call = pytest.mark.parametrize("parameters", CALLS, ids=str)


def defaults(estimator: type) -> dict[str, Any]:
    return {n: p.default for n, p in inspect.signature(estimator).parameters.items()}


def test_every_parameter_has_the_same_default() -> None:
    theirs = defaults(PolynomialCountSketch)
    assert theirs == {name: defaults(PolynomialSketch)[name] for name in theirs}


@each_call
@each_float
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_same_shape(parameters: dict[str, Any], dtype: Any, container: Any) -> None:
    X = container(uncentred(60, 30, dtype))
    theirs = PolynomialCountSketch(**parameters, random_state=0).fit_transform(X)
    ours = PolynomialSketch(**parameters, random_state=0).fit_transform(X)
    assert ours.shape == theirs.shape
    assert ours.dtype == dtype


@each_call
@pytest.mark.parametrize(("expansion", "factor"), [("auto", 0.9), ("none", 1.1)])
def test_same_kernel_with_less_error(
    parameters: dict[str, Any], expansion: str, factor: float
) -> None:
    """Mean error over eight seeds, as a multiple of that of PolynomialCountSketch.

    The multiples are up to 0.79 (auto) and 0.99 (none) with a standard deviation of 0.04, so that
    other seeds fail with a probability below 1e-2.
    """
    X = uncentred(200, 30)
    ours, theirs = [], []
    for seed in SEEDS:
        sketch = PolynomialSketch(**parameters, expansion=expansion, random_state=seed)
        ours.append(relative_error(sketch.fit_transform(X), sketch.kernel_(X)))
        other = PolynomialCountSketch(**parameters, random_state=seed)
        theirs.append(relative_error(other.fit_transform(X), sketch.kernel_(X)))
    assert np.mean(ours) < factor * np.mean(theirs)
