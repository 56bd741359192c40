"""Where the smallest alpha is the best one, the warning names a remedy that works."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from powersketch.kernel_ridge import RegularisationWarning, SketchedKernelRidge
from tests.kernel_ridge.ridge_data import Float64


def waves(frequency: float, noise: float = 0.0) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-1.0, 1.0, (2000, 2))
    y = np.sin(frequency * X[:, 0]) * np.cos(frequency * X[:, 1])
    return X, y + noise * generator.standard_normal(2000)


def model(gamma: float | str, n_components: int, **parameters: Any) -> SketchedKernelRidge:
    return SketchedKernelRidge(
        kernel_params={"gamma": gamma}, n_components=n_components, random_state=0, **parameters
    )


def error(model: SketchedKernelRidge, X: Float64, y: Float64) -> float:
    return float(np.mean((model.fit(X[:1000], y[:1000]).predict(X[1000:]) - y[1000:]) ** 2))


def error_and_advice(model: SketchedKernelRidge, X: Float64, y: Float64) -> tuple[float, str]:
    with pytest.warns(RegularisationWarning) as caught:
        value = error(model, X, y)
    assert len(caught) == 1
    return value, str(caught[0].message)


def silent_error(model: SketchedKernelRidge, X: Float64, y: Float64) -> float:
    """Return the error, whatever is said of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegularisationWarning)
        return error(model, X, y)


@pytest.mark.parametrize("alpha", ["loo", "gcv"])
def test_features_that_are_all_in_use_call_for_more(alpha: str) -> None:
    X, y = waves(12.0)
    before, advice = error_and_advice(model(10.0, 300, alpha=alpha), X, y)
    assert "Use more than the 300 features (n_components)" in advice
    assert advice.index("n_components") < advice.index("gamma")
    assert silent_error(model(10.0, 900, alpha=alpha), X, y) < 0.1 * before


@pytest.mark.parametrize(("alpha", "frequency"), [("loo", 3.0), ("gcv", 3.0), ("loo", 6.0)])
def test_a_kernel_that_is_too_smooth_calls_for_a_larger_gamma(alpha: str, frequency: float) -> None:
    X, y = waves(frequency)
    before, advice = error_and_advice(model(0.1, 300, alpha=alpha), X, y)
    assert "Use a larger gamma" in advice
    assert "n_components" not in advice
    assert silent_error(model(0.5, 300, alpha=alpha), X, y) < 0.5 * before


def test_alphas_that_are_all_large_call_for_smaller_ones() -> None:
    X, y = waves(6.0, 0.05)
    before, advice = error_and_advice(model(3.0, 300, alpha="loo", alphas=[30.0, 100.0]), X, y)
    assert "Give smaller alphas" in advice
    assert silent_error(model(3.0, 300, alpha="loo"), X, y) < 0.5 * before


def test_smaller_alphas_are_not_advised_where_they_change_nothing() -> None:
    X, y = waves(3.0)
    first = model(10.0, 300, alpha="loo")
    before, advice = error_and_advice(first, X, y)
    assert "alphas" not in advice
    fewer = model(10.0, 300, alpha="loo", alphas=1e-5 * first.alphas_)
    assert silent_error(fewer, X, y) > 0.8 * before


def test_nothing_is_said_where_nothing_is_left_to_gain() -> None:
    X, _ = waves(1.0)
    y = X @ [1.0, 2.0]
    poly = SketchedKernelRidge(
        "polynomial", kernel_params={"degree": 2, "coef0": 1.0}, alpha="loo", random_state=0
    )
    assert error(poly.set_params(alphas=[1e-9, 1e-8, 1.0]), X, y) < 1e-8


def test_few_alphas_by_factors_give_the_same_advice() -> None:
    X, y = waves(12.0)
    alphas = [1e-7, 1.0]
    _, advice = error_and_advice(model(10.0, 300, alpha="loo", alphas=alphas), X, y)
    assert "Use more than the 300 features (n_components)" in advice
