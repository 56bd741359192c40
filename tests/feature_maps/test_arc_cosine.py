"""ArcCosineSketch: exact diagonals, homogeneity, and errors against random neurons."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse as sp

from powersketch import ArcCosineSketch
from powersketch.kernels import ArcCosine
from tests.feature_maps.cases import (
    assert_series_within_bound,
    digits,
    each_float,
    relative_error,
    squared_lengths,
    uncentred,
    unit_rows,
)

Array = NDArray[Any]

KERNELS = [(0, 1), (0, 3), (1, 1), (1, 3), (2, 1), (2, 2)]
each_kernel = pytest.mark.parametrize(("order", "depth"), KERNELS)
each_expansion = pytest.mark.parametrize("expansion", ["mean", "none"])


def sketch_of(order: int, depth: int, **parameters: Any) -> ArcCosineSketch:
    defaults = {"n_components": 128, "random_state": 0}
    return ArcCosineSketch(order, depth, **{**defaults, **parameters})


@cache
def digit_errors(order: int, depth: int, method: str, expansion: str, size: int) -> Array:
    """Return the relative errors of three seeds on 600 digits of norm one."""
    X = unit_rows(digits(600))
    K = ArcCosine(order, depth)(X)
    sketches = [
        sketch_of(
            order,
            depth,
            method=method,
            expansion=expansion,
            n_components=size,
            random_state=seed,
        )
        for seed in range(3)
    ]
    return np.array([relative_error(sketch.fit_transform(X), K) for sketch in sketches])


class TestIdentities:
    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    @each_kernel
    @each_expansion
    @each_float
    def test_the_diagonal_is_exact(
        self, order: int, depth: int, expansion: str, dtype: Any
    ) -> None:
        """For rows of all norms, whether fit has seen them or not."""
        X = (uncentred(80, 20) * np.linspace(0.1, 3, 80)[:, None]).astype(dtype)
        sketch = sketch_of(order, depth, expansion=expansion).fit(X[:40])
        lengths = squared_lengths(sketch.transform(X))
        tolerance = 1e-5 if dtype == np.float32 else 1e-12
        expected = ArcCosine(order, depth).diagonal(X.astype(np.float64))
        np.testing.assert_allclose(lengths, expected, rtol=tolerance)

    @each_kernel
    @each_expansion
    @pytest.mark.parametrize("factor", [1e-5, 0.3, 7.0])
    def test_homogeneous(self, order: int, depth: int, expansion: str, factor: float) -> None:
        """z(c x) = c^h z(x) with h = order^depth for c > 0."""
        X = uncentred(30, 20)
        sketch = sketch_of(order, depth, expansion=expansion).fit(X)
        expected = factor ** (order**depth) * sketch.transform(X)
        np.testing.assert_allclose(
            sketch.transform(factor * X), expected, rtol=0, atol=1e-9 * np.abs(expected).max()
        )

    @each_kernel
    @pytest.mark.parametrize("method", ["power", "random"])
    def test_zero_rows_have_zero_features(self, order: int, depth: int, method: str) -> None:
        X = uncentred(30, 20)
        X[[3, 7]] = 0
        Z = sketch_of(order, depth, method=method).fit_transform(X)
        assert not Z[[3, 7]].any()
        assert np.all(squared_lengths(np.delete(Z, [3, 7], axis=0)) > 0)

    @each_kernel
    def test_one_column(self, order: int, depth: int) -> None:
        """All rows are parallel or opposite."""
        X = np.array([[1.0], [-2.0], [0.5], [-1.0]])
        sketch = sketch_of(order, depth, n_components=256)
        Z = sketch.fit_transform(X)
        bound = np.outer(*[np.abs(X[:, 0]) ** (order**depth)] * 2) * sketch.series_error_bound_
        assert np.all(np.abs(Z @ Z.T - ArcCosine(order, depth)(X)) <= bound + 1e-9)


class TestSeries:
    @each_kernel
    @pytest.mark.parametrize("tail", ["truncate", "sample"])
    def test_tail_mass_is_what_the_diagonal_lacks(self, order: int, depth: int, tail: str) -> None:
        X = unit_rows(uncentred(60, 20))
        sketch = sketch_of(order, depth, tail=tail, tail_eps=0.05)
        lacking = ArcCosine(order, depth).diagonal(X) - squared_lengths(sketch.fit_transform(X))
        assert sketch.tail_mass_ >= 0
        np.testing.assert_allclose(lacking, sketch.tail_mass_, rtol=0, atol=1e-11)

    @each_kernel
    @pytest.mark.parametrize("tail", ["fit", "truncate", "sample"])
    def test_the_series_is_within_its_bound(self, order: int, depth: int, tail: str) -> None:
        X = unit_rows(np.random.default_rng(0).normal(size=(60, 3)))
        own = {} if tail == "fit" else {"tail_eps": 0.05}
        sketch = sketch_of(order, depth, tail=tail, **own).fit(X)
        assert_series_within_bound(sketch, X, fitted_share=0.1)

    def test_random_neurons_have_no_series(self) -> None:
        sketch = sketch_of(1, 1, method="random").fit(uncentred(20, 5))
        assert sketch.expansion_ == "random"
        for name in ("degrees_", "coefficients_", "tail_mass_", "series_error_bound_"):
            assert getattr(sketch, name) is None


class TestAccuracy:
    @pytest.mark.parametrize(
        ("order", "depth", "limit"),
        [(0, 1, 0.007), (0, 3, 0.010), (1, 1, 0.0017), (1, 3, 0.0028), (2, 1, 0.0035)],
    )
    def test_digits_of_unit_norm(self, order: int, depth: int, limit: float) -> None:
        """1024 features, mean of three seeds: .0052, .0078, .0011, .0019 and .0024."""
        assert digit_errors(order, depth, "power", "auto", 1024).mean() <= limit

    @pytest.mark.parametrize(
        ("order", "depth", "ratio"), [(0, 1, 4), (0, 3, 2), (1, 1, 15), (1, 3, 10), (2, 1, 20)]
    )
    def test_better_than_random_neurons(self, order: int, depth: int, ratio: float) -> None:
        """8, 3, 37, 46 and 39 times, at 1024 features."""
        random = digit_errors(order, depth, "random", "auto", 1024).mean()
        assert random >= ratio * digit_errors(order, depth, "power", "auto", 1024).mean()

    @pytest.mark.parametrize(("order", "depth"), [(0, 1), (1, 1), (1, 3), (2, 1)])
    def test_auto_is_near_the_better_of_both(self, order: int, depth: int) -> None:
        """Each of three seeds."""
        better = np.minimum(
            digit_errors(order, depth, "power", "mean", 256),
            digit_errors(order, depth, "power", "none", 256),
        )
        assert np.all(digit_errors(order, depth, "power", "auto", 256) <= 1.05 * better)

    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_error_falls_with_the_root_of_the_size(self, order: int) -> None:
        """Or faster, as more coordinates become exact: slopes of −0.64 in log error."""
        X, sizes = unit_rows(np.random.default_rng(0).normal(size=(150, 60))), [128, 256, 512, 1024]
        K = ArcCosine(order)(X)
        errors = [
            np.mean(
                [
                    relative_error(
                        sketch_of(order, 1, n_components=size, random_state=seed).fit_transform(X),
                        K,
                    )
                    for seed in range(2)
                ]
            )
            for size in sizes
        ]
        assert -0.8 <= np.polyfit(np.log(sizes), np.log(errors), 1)[0] <= -0.5

    def test_literal_sketches_converge(self) -> None:
        """By the Taylor series: the fit has degrees that are too high for a literal sketch."""
        X = unit_rows(uncentred(100, 20))
        K = ArcCosine(1)(X)
        errors = [
            relative_error(
                sketch_of(
                    1, 1, n_components=size, norm_preserving=False, tail="truncate"
                ).fit_transform(X),
                K,
            )
            for size in (128, 2048)
        ]
        assert errors[1] < 0.1 * errors[0]
        assert errors[1] < 0.002


class TestRandomNeurons:
    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_unbiased(self, order: int) -> None:
        """The mean over 500 seeds is the kernel, within 4.5 standard errors and 0.5 %.

        Ten pairs, three cases: failure probability 2e-4.
        """
        X = unit_rows(np.random.default_rng(1).normal(loc=0.3, size=(4, 20)))
        kernels = []
        for seed in range(500):
            Z = sketch_of(
                order, 1, method="random", n_components=64, random_state=seed
            ).fit_transform(X)
            kernels.append(Z @ Z.T)
        K = ArcCosine(order)(X)
        errors = np.std(kernels, axis=0) / math.sqrt(500)
        assert np.all(np.abs(np.mean(kernels, axis=0) - K) <= 4.5 * errors + 5e-3 * K.max())

    @pytest.mark.parametrize(("order", "depth"), [(0, 2), (1, 2), (1, 3)])
    def test_deep_ones_converge(self, order: int, depth: int) -> None:
        X = unit_rows(uncentred(60, 20))
        K = ArcCosine(order, depth)(X)
        errors = [
            np.mean(
                [
                    relative_error(
                        sketch_of(
                            order, depth, method="random", n_components=size, random_state=seed
                        ).fit_transform(X),
                        K,
                    )
                    for seed in range(4)
                ]
            )
            for size in (128, 2048)
        ]
        assert errors[1] < 0.5 * errors[0]
        assert errors[1] < 0.09

    @pytest.mark.parametrize(("order", "depth"), [(1, 1), (1, 3), (2, 2)])
    def test_homogeneous(self, order: int, depth: int) -> None:
        X = uncentred(30, 20)
        sketch = sketch_of(order, depth, method="random").fit(X)
        expected = 2.0 ** (order**depth) * sketch.transform(X)
        np.testing.assert_allclose(sketch.transform(2 * X), expected, rtol=1e-12)


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"order": 3}, ValueError, "order=3"),
            ({"order": -1}, ValueError, "order=-1"),
            ({"order": 1.0}, TypeError, "order=1.0"),
            ({"depth": 0}, ValueError, "depth=0"),
            ({"depth": True}, TypeError, "depth=True"),
            ({"method": "relu"}, ValueError, "method='relu' is unknown.*'power',.*'random'"),
            ({"tail": "cut"}, ValueError, "tail='cut' is unknown"),
            ({"tail_eps": 0.0}, ValueError, "tail_eps=0.0"),
            ({"expansion": "median"}, ValueError, "expansion='median' is unknown"),
        ],
        ids=str,
    )
    def test_bad_parameters(
        self, parameters: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            ArcCosineSketch(**parameters).fit(uncentred(10, 3))

    def test_kernel_values_that_overflow(self) -> None:
        X = (1e12 * unit_rows(uncentred(10, 3))).astype(np.float32)
        with pytest.raises(ValueError, match=r"overflows float32.*[Ss]cale"):
            sketch_of(2, 2).fit(X)


@pytest.mark.parametrize("factor", [1e-310, 1e-300, 1e-20, 1e200, 1e300])
@pytest.mark.parametrize("method", ["power", "random"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_directions_of_rows_of_any_size(factor: float, method: str, container: Any) -> None:
    """Order 0 has no use for norms, whose squares may not be numbers of float64."""
    X = uncentred(40, 6)
    sketch = ArcCosineSketch(0, n_components=256, method=method, random_state=0)
    expected = sketch.fit_transform(container(X))
    features = sketch.fit_transform(container(factor * X))
    np.testing.assert_allclose(features, expected, atol=1e-12)
