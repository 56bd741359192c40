"""GaussianSketch: errors against random Fourier features, and the laws of the kernel."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler

from powersketch import GaussianSketch
from powersketch.exceptions import OutlierWarning
from powersketch.kernels import Gaussian
from tests.feature_maps.cases import (
    digits,
    each_float,
    relative_error,
    squared_lengths,
    uncentred,
)

Array = NDArray[Any]

METHODS = ("power", "single_power", "fourier")
GAMMAS = (1e-4, 5e-4, 2e-3, 1e-2)
SIZE = 1024
each_method = pytest.mark.parametrize("method", METHODS)


def centred(count: int, columns: int) -> Array:
    return np.random.default_rng(0).normal(size=(count, columns)) / math.sqrt(columns)


DATA = {"digits": digits(800), "normal": centred(500, 30)}


@cache
def exact(data: str, gamma: float) -> Array:
    return Gaussian(gamma)(DATA[data])


@cache
def errors(data: str, gamma: float, method: str, size: int = SIZE) -> Array:
    """Return the relative errors of three seeds."""
    sketches = [
        GaussianSketch(gamma, n_components=size, method=method, random_state=seed)
        for seed in range(3)
    ]
    X = DATA[data]
    return np.array(
        [relative_error(sketch.fit_transform(X), exact(data, gamma)) for sketch in sketches]
    )


def error_on(X: Array, gamma: float, **parameters: Any) -> float:
    sketch = GaussianSketch(gamma, random_state=0, **parameters)
    return relative_error(sketch.fit_transform(X), Gaussian(gamma)(X.astype(np.float64)))


def orthogonal_features(X: Array, gamma: float, size: int, seed: int) -> Array:
    """Return cosines and sines of Haar-distributed orthogonal frequencies with χ lengths."""
    generator = np.random.default_rng(seed)
    columns, count = X.shape[1], size // 2
    blocks = []
    for _ in range(-(-count // columns)):
        Q, R = np.linalg.qr(generator.normal(size=(columns, columns)))
        lengths = np.sqrt(generator.chisquare(columns, size=columns))
        blocks.append((Q * np.sign(np.diag(R))).T * lengths[:, None])
    phases = math.sqrt(2 * gamma) * X @ np.concatenate(blocks)[:count].T
    return np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(count)


class TestAgainstOthers:
    """800 digits, 1024 features, mean of three seeds: their error over ours."""

    @pytest.mark.parametrize(
        ("gamma", "ratio"), list(zip(GAMMAS, (15, 2.3, 0.97, 0.97), strict=True))
    )
    def test_random_fourier_features(self, gamma: float, ratio: float) -> None:
        """34.9, 2.80, 1.03 and 1.00 measured."""
        theirs = [
            relative_error(
                RBFSampler(gamma=gamma, n_components=SIZE, random_state=seed).fit_transform(
                    DATA["digits"]
                ),
                exact("digits", gamma),
            )
            for seed in range(3)
        ]
        assert np.mean(theirs) >= ratio * errors("digits", gamma, "auto").mean()

    @pytest.mark.parametrize(
        ("gamma", "ratio"), list(zip(GAMMAS, (2.5, 1.4, 0.95, 0.95), strict=True))
    )
    def test_orthogonal_random_features(self, gamma: float, ratio: float) -> None:
        """3.07, 1.59, 1.01 and 1.00 measured."""
        X = DATA["digits"] - DATA["digits"].mean(axis=0)
        theirs = [
            relative_error(orthogonal_features(X, gamma, SIZE, seed), exact("digits", gamma))
            for seed in range(3)
        ]
        assert np.mean(theirs) >= ratio * errors("digits", gamma, "auto").mean()


class TestChoice:
    @pytest.mark.parametrize(
        ("data", "gamma"),
        [
            *(("digits", gamma) for gamma in GAMMAS[::2]),
            *(("normal", gamma) for gamma in (0.05, 2.0)),
        ],
    )
    def test_auto_is_near_the_best_of_all_methods(self, data: str, gamma: float) -> None:
        """Each of three seeds."""
        best = np.min([errors(data, gamma, method, 512) for method in METHODS], axis=0)
        assert np.all(errors(data, gamma, "auto", 512) <= 1.05 * best)

    def test_wide_kernels_take_powers_and_narrow_ones_frequencies(self) -> None:
        chosen = [
            GaussianSketch(gamma, n_components=SIZE, random_state=0).fit(DATA["digits"]).method_
            for gamma in GAMMAS
        ]
        assert chosen == ["power", "power", "fourier", "fourier"]

    @each_method
    def test_a_method_by_name_is_taken(self, method: str) -> None:
        sketch = GaussianSketch(1.0, n_components=40, method=method).fit(uncentred(50, 6))
        assert sketch.method_ == method


class TestLaws:
    @each_method
    @each_float
    @pytest.mark.parametrize("gamma", [1e-3, 0.3, 5.0, 300.0])
    def test_rows_have_norm_one(self, method: str, dtype: Any, gamma: float) -> None:
        X = uncentred(60, 30, dtype)
        sketch = GaussianSketch(gamma, n_components=100, method=method, random_state=0)
        norms = np.sqrt(squared_lengths(sketch.fit_transform(X)))
        tolerance = 1e-6 if dtype == np.float32 else 1e-12
        np.testing.assert_allclose(norms, 1.0, rtol=0, atol=tolerance)

    @each_method
    @pytest.mark.parametrize("gamma", [0.05, 1.0])
    def test_shifted_data_has_the_same_error(self, method: str, gamma: float) -> None:
        X = uncentred(200, 20)
        parameters = {"method": method, "n_components": 128}
        shifted = error_on(X + 100.0, gamma, **parameters)
        np.testing.assert_allclose(shifted, error_on(X, gamma, **parameters), rtol=1e-6)

    @pytest.mark.parametrize(
        ("method", "gamma"), [("power", 4.0), ("single_power", 4.0), ("fourier", 2.0)]
    )
    def test_error_falls_with_the_root_of_the_size(self, method: str, gamma: float) -> None:
        """Slope of log error against log size in [−0.6, −0.4]; it is −0.51 ± 0.01."""
        X, sizes = DATA["normal"], [128, 256, 512, 1024]
        found = []
        for size in sizes:
            sketches = [
                GaussianSketch(gamma, n_components=size, method=method, random_state=seed)
                for seed in range(3)
            ]
            found.append(
                np.mean(
                    [relative_error(s.fit_transform(X), exact("normal", gamma)) for s in sketches]
                )
            )
        slope = np.polyfit(np.log(sizes), np.log(found), 1)[0]
        assert -0.6 <= slope <= -0.4

    def test_gamma_can_be_that_of_the_data(self) -> None:
        """1 / (n_features · variance), as in scikit-learn."""
        X = digits(200)
        scaled = GaussianSketch("scale", n_components=64, random_state=0).fit(X)
        np.testing.assert_allclose(scaled.gamma_, 1 / (64 * X.var()), rtol=1e-12)
        assert scaled.kernel_ == Gaussian(scaled.gamma_)
        same = GaussianSketch(scaled.gamma_, n_components=64, random_state=0)
        np.testing.assert_array_equal(same.fit_transform(X), scaled.transform(X))

    def test_rows_not_seen_by_fit(self) -> None:
        """Half of the digits tell the kernel of the others as well as their own."""
        X = digits(1000)
        sketch = GaussianSketch(2e-4, n_components=512, random_state=0).fit(X[:500])
        own = relative_error(sketch.transform(X[:500]), sketch.kernel_(X[:500]))
        others = relative_error(sketch.transform(X[500:]), sketch.kernel_(X[500:]))
        assert others < 1.5 * own

    def test_literal_sketches_converge(self) -> None:
        X = uncentred(150, 20)
        small, large = (
            error_on(X, 0.3, n_components=size, method="power", norm_preserving=False)
            for size in (100, 1600)
        )
        assert large < 0.35 * small
        assert large < 0.01

    def test_literal_rows_need_not_have_norm_one(self) -> None:
        X = uncentred(150, 20)
        sketch = GaussianSketch(1.0, n_components=64, norm_preserving=False, random_state=0)
        lengths = squared_lengths(sketch.fit_transform(X))
        assert sketch.method_ == "power"
        assert np.abs(lengths - 1).max() > 0.01


class TestExtremes:
    @each_method
    @pytest.mark.parametrize("gamma", [1e-300, 1e-20, 1e-8])
    def test_tiny_gamma(self, method: str, gamma: float) -> None:
        """The kernel is one everywhere."""
        assert error_on(uncentred(50, 8), gamma, method=method, n_components=64) < 1e-7

    @pytest.mark.parametrize("method", ["auto", "single_power", "power"])
    @pytest.mark.parametrize("gamma", [1e5, 1e100, 1e300])
    def test_huge_gamma(self, method: str, gamma: float) -> None:
        """The kernel is the identity: its error is that of random directions, √(n / m)."""
        X = np.random.default_rng(0).normal(size=(50, 8))
        assert error_on(X, gamma, method=method, n_components=64) < 1.3 * math.sqrt(50 / 64)

    @each_method
    @pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e140])
    def test_units_do_not_matter(self, method: str, scale: float) -> None:
        """gamma / scale² for scale · X is the same kernel."""
        X = uncentred(60, 10)
        parameters = {"method": method, "n_components": 64}
        own = error_on(X, 0.5, **parameters)
        np.testing.assert_allclose(
            error_on(scale * X, 0.5 / scale**2, **parameters), own, rtol=1e-6
        )

    @pytest.mark.parametrize("columns", [1, 2])
    @pytest.mark.parametrize("gamma", [0.1, 1.0])
    def test_few_columns_are_exact(self, columns: int, gamma: float) -> None:
        """All monomials that matter fit."""
        X = np.random.default_rng(0).uniform(-1, 1, size=(100, columns))
        assert error_on(X, gamma, n_components=200) < 1e-4

    def test_one_column_and_a_narrow_kernel(self) -> None:
        """As exact as 400 monomials of one number can be; random features have 0.2."""
        X = np.random.default_rng(0).uniform(-1, 1, size=(200, 1))
        assert error_on(X, 100.0, n_components=400) < 0.01

    def test_two_columns_and_a_narrow_kernel(self) -> None:
        """No exact degree helps; 0.56 against 0.53 ± 0.01 of orthogonal random features."""
        X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
        K = Gaussian(100.0)(X)
        theirs = [relative_error(orthogonal_features(X, 100.0, 400, seed), K) for seed in range(3)]
        assert error_on(X, 100.0, n_components=400) < 1.15 * np.mean(theirs)

    def test_an_outlier_changes_nothing(self) -> None:
        X = uncentred(200, 20)
        X[0] *= 1000
        with pytest.warns(OutlierWarning, match="row 0"):
            assert error_on(X, 0.3, n_components=256) < 0.03

    def test_equal_rows(self) -> None:
        """All rows are at the centre, and the kernel is one."""
        assert error_on(np.full((20, 5), 3.7), 1.0, n_components=16) < 1e-12
