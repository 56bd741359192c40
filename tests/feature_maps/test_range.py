"""Rows unlike those of fit: a map is as good as the safest one, or says that it is not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    PolynomialSketch,
)
from powersketch.exceptions import RangeWarning
from tests.feature_maps.cases import relative_error

WORSE = 1.5


def data(name: str, count: int = 400) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    if name == "normal":
        return rng.standard_normal((count, 12))
    if name == "uniform":
        return rng.random((count, 20))
    return rng.standard_t(3, (count, 10))


def error_and_warnings(sketch: Any, X: NDArray[np.float64]) -> tuple[float, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Z = sketch.transform(X)
    assert all(warning.category is RangeWarning for warning in caught)
    return relative_error(Z, sketch.kernel_(X)), [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", ["normal", "uniform", "heavy tails"])
@pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("size", [128, 512])
def test_gaussian_maps_are_as_good_as_fourier_features_or_warn(
    name: str, gamma: float, size: int
) -> None:
    X = data(name)
    options: dict[str, Any] = {"n_components": size, "random_state": 0}
    sketch = GaussianSketch(gamma, **options).fit(X[::2])
    fourier = GaussianSketch(gamma, method="fourier", **options).fit(X[::2])
    new = X[1::2]
    assert error_and_warnings(sketch, new)[1] == []
    for other in (3 * new, 10 * new, 1000 * new, new + 5 * X.std(), np.abs(new) * 4):
        error, told = error_and_warnings(sketch, other)
        assert told or error <= WORSE * error_and_warnings(fourier, other)[0]
        assert len(told) <= 1


@pytest.mark.parametrize("name", ["normal", "uniform"])
@pytest.mark.parametrize("degree", [2, 3, 8])
def test_polynomial_maps_are_as_good_as_without_expansion_or_warn(name: str, degree: int) -> None:
    X = data(name)
    options: dict[str, Any] = {"gamma": 1 / X.shape[1], "coef0": 1.0, "n_components": 256}
    sketch = PolynomialSketch(degree, **options, random_state=0).fit(X[::2])
    plain = PolynomialSketch(degree, **options, expansion="none", random_state=0).fit(X[::2])
    new = X[1::2]
    assert error_and_warnings(sketch, new)[1] == []
    for other in (3 * new, 10 * new, new + 5 * X.std(), -new):
        error, told = error_and_warnings(sketch, other)
        assert told or error <= WORSE * error_and_warnings(plain, other)[0]


@pytest.mark.parametrize("degree", [32, 64])
def test_rows_given_to_fit_are_ordinary_in_any_batches(degree: int) -> None:
    """Where pictures of one writer follow each other, a batch may be unlike all rows."""
    X = load_digits().data
    X /= np.linalg.norm(X, axis=1).mean()
    for size in (256, 1024):
        sketch = PolynomialSketch(degree, n_components=size, random_state=0).fit(X)
        for start in range(0, len(X), 256):
            assert error_and_warnings(sketch, X[start : start + 256])[1] == []


def test_the_remedies_work() -> None:
    X = data("normal")
    new = 10 * X[1::2]
    error, told = error_and_warnings(GaussianSketch(0.1, random_state=0).fit(X[::2]), new)
    assert "method='fourier'" in told[0]
    assert "fit on rows like these" in told[0]
    for better in (
        GaussianSketch(0.1, method="fourier", random_state=0).fit(X[::2]),
        GaussianSketch(0.1, random_state=0).fit(new),
    ):
        assert error_and_warnings(better, new)[0] < error / WORSE


def test_rows_beyond_a_finite_series() -> None:
    """The series was cut off where the rows of fit end: nothing but another fit helps."""
    X = 0.3 * data("normal")
    sketch = DotProductSketch("exp", n_components=256, random_state=0).fit(X)
    error, told = error_and_warnings(sketch, 2 * X)
    assert error > 0.5
    assert told[0].endswith("fit on rows like these.")
    refitted = DotProductSketch("exp", n_components=256, random_state=0).fit(2 * X)
    assert error_and_warnings(refitted, 2 * X)[0] < error


def test_strange_rows_among_others_are_named() -> None:
    X = data("normal")
    sketch = GaussianSketch(0.1, n_components=256, random_state=0).fit(X)
    Y = X[:50].copy()
    Y[17:37] *= 10
    with pytest.warns(RangeWarning, match=r"20 of 50 rows, the first of them row 17") as caught:
        sketch.transform(Y)
    assert caught[0].filename == __file__
    with pytest.warns(RangeWarning, match="1 of 1 rows"):  # nothing to measure it with
        sketch.transform(Y[17:18])


@pytest.mark.parametrize("scale", [1e-200, 1e-170, 1.0, 1e170])
def test_kernels_of_directions_take_strange_rows_of_any_size(scale: float) -> None:
    """Features and warnings are those of the same directions."""
    X = 0.05 * data("normal") + 1.0
    sketch = ArcCosineSketch(0, n_components=64, expansion="mean", random_state=0).fit(X)
    Y = 2.0 ** round(np.log2(scale)) * data("normal", 20)
    assert error_and_warnings(sketch, Y) == error_and_warnings(sketch, data("normal", 20))


def test_maps_that_do_not_look_at_the_data_have_no_range() -> None:
    X = data("normal")
    for sketch in (
        GaussianSketch(0.1, method="fourier"),
        PolynomialSketch(3, expansion="none"),
        ArcCosineSketch(1, expansion="none"),
    ):
        assert error_and_warnings(sketch.fit(X), 100 * X)[1] == []
