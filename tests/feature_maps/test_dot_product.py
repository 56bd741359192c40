"""DotProductSketch: every kernel that is a power series of the inner product."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import DotProductSketch
from powersketch.powers import monomial_count
from tests.feature_maps.cases import (
    digits,
    each_float,
    relative_error,
    squared_lengths,
    uncentred,
    unit_rows,
)

Array = NDArray[Any]

NAMED: dict[str, Any] = {
    "exp": np.exp,
    "cosh": np.cosh,
    "sinh": np.sinh,
    "inverse": lambda t: 1 / (1 - t),
    "inverse_sqrt": lambda t: (1 - t) ** -0.5,
    "log": lambda t: -np.log(1 - t),
    "arcsin": np.arcsin,
}
each_name = pytest.mark.parametrize("name", NAMED)
each_tail = pytest.mark.parametrize("tail", ["truncate", "fit"])


def error_of(X: Array, series: Any, **parameters: Any) -> float:
    sketch = DotProductSketch(series, **{"random_state": 0, **parameters})
    return relative_error(sketch.fit_transform(X), sketch.kernel_(X.astype(np.float64)))


def isotropic(count: int, columns: int) -> Array:
    return unit_rows(np.random.default_rng(0).normal(size=(count, columns)))


def short_rows(count: int = 80, columns: int = 20) -> Array:
    """Rows of norms between 0.3 and 0.9, inside the disk of all named series."""
    return unit_rows(uncentred(count, columns)) * np.linspace(0.3, 0.9, count)[:, None]


class TestAccuracy:
    def test_an_exponential_given_as_a_callable(self) -> None:
        """Mean of three seeds on digits of norm one: 0.0018."""
        X = unit_rows(digits(800))
        errors = [error_of(X, np.exp, n_components=1024, random_state=seed) for seed in range(3)]
        assert np.mean(errors) <= 0.0025

    @each_name
    @pytest.mark.parametrize("expansion", ["mean", "none"])
    def test_every_name(self, name: str, expansion: str) -> None:
        parameters = {"n_components": 1024, "expansion": expansion, "tail_eps": 1e-6}
        assert error_of(short_rows(), name, **parameters) < 0.03

    @each_name
    @each_tail
    def test_the_diagonal_is_that_of_the_finite_series(self, name: str, tail: str) -> None:
        X = short_rows()
        sketch = DotProductSketch(name, n_components=100, tail=tail, random_state=0)
        lengths = squared_lengths(sketch.fit_transform(X))
        t = squared_lengths(X)
        expected = sum(c * t**k for k, c in zip(sketch.degrees_, sketch.coefficients_, strict=True))
        np.testing.assert_allclose(lengths, expected, rtol=1e-11)
        exact = sketch.kernel_.diagonal(X)
        assert np.abs(lengths - exact).max() <= sketch.series_error_bound_ * (1 + 1e-9)

    @pytest.mark.parametrize("columns", [1, 2, 3])
    @pytest.mark.parametrize(
        "coefficients", [[0.5, 1.0, 0.25], [0.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 1.0], [2.0, 3.0]]
    )
    def test_exact_where_the_monomials_fit(self, columns: int, coefficients: list[float]) -> None:
        X = 2 * uncentred(60, columns)
        size = sum(
            monomial_count(columns, degree)
            for degree, coefficient in enumerate(coefficients)
            if coefficient
        )
        parameters = {"n_components": size + 2, "expansion": "none"}
        assert error_of(X, coefficients, **parameters) < 1e-12

    def test_rows_of_different_norms(self) -> None:
        """exp(⟨x, y⟩) of rows whose norms are between 0.1 and 2: 0.069."""
        X = unit_rows(uncentred(200, 20)) * np.linspace(0.1, 2.0, 200)[:, None]
        assert error_of(X, "exp", n_components=1024) < 0.09

    @pytest.mark.parametrize(
        ("norm", "limit"), [(0.01, 1e-3), (3.0, 1e-3), (10.0, 0.02), (15.0, 0.03)]
    )
    def test_rows_of_any_norm(self, norm: float, limit: float) -> None:
        """Nearly parallel rows are easy for every power; exp(225) is 5e97."""
        X = norm * unit_rows(10 + uncentred(50, 8))
        assert error_of(X, "exp", n_components=512) < limit

    def test_literal_sketches_converge(self) -> None:
        X = unit_rows(uncentred(100, 20))
        small, large = (
            error_of(X, "exp", n_components=size, norm_preserving=False) for size in (100, 1600)
        )
        assert large < 0.4 * small
        assert large < 0.02

    @each_tail
    def test_error_falls_with_the_root_of_the_size(self, tail: str) -> None:
        """Slope of log error against log size in [−0.65, −0.4]: −0.48 and −0.58."""
        X, sizes = isotropic(150, 40), [128, 256, 512, 1024]
        errors = [
            np.mean(
                [
                    error_of(X, "arcsin", n_components=size, tail=tail, random_state=seed)
                    for seed in range(2)
                ]
            )
            for size in sizes
        ]
        assert -0.65 <= np.polyfit(np.log(sizes), np.log(errors), 1)[0] <= -0.4


class TestSameKernel:
    @each_name
    def test_a_name_is_its_function(self, name: str) -> None:
        X = short_rows()
        by_name = DotProductSketch(name, n_components=200, random_state=0).fit(X)
        function = NAMED[name]
        by_function = DotProductSketch(function, n_components=200, random_state=0).fit(X)
        np.testing.assert_allclose(by_name.kernel_(X), function(X @ X.T), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(
            by_function.kernel_(X), function(X @ X.T), rtol=1e-12, atol=1e-15
        )
        assert by_name.degrees_ == by_function.degrees_
        np.testing.assert_allclose(by_function.coefficients_, by_name.coefficients_, rtol=1e-8)
        np.testing.assert_allclose(by_function.transform(X), by_name.transform(X), atol=1e-7)

    def test_coefficients_name_and_callable(self) -> None:
        X = unit_rows(uncentred(60, 20))
        coefficients = [1 / math.factorial(k) for k in range(25)]
        features = [
            DotProductSketch(series, n_components=200, random_state=0).fit_transform(X)
            for series in ("exp", np.exp, coefficients, np.array(coefficients))
        ]
        for Z in features[1:]:
            np.testing.assert_allclose(Z, features[0], atol=1e-9)

    @each_name
    @pytest.mark.parametrize("tail", ["truncate", "sample", "fit"])
    def test_coefficients_reproduce_the_kernel_within_the_bound(self, name: str, tail: str) -> None:
        X = short_rows()
        sketch = DotProductSketch(name, n_components=50, tail=tail, random_state=0).fit(X)
        t = X @ X.T
        finite = sum(c * t**k for k, c in zip(sketch.degrees_, sketch.coefficients_, strict=True))
        errors = sketch.kernel_(X) - finite
        assert np.abs(errors).max() <= sketch.series_error_bound_ * (1 + 1e-9)
        assert np.linalg.norm(errors, 2) <= len(X) * sketch.series_error_bound_
        assert 0 <= sketch.tail_mass_ <= sketch.series_error_bound_ * (1 + 1e-9)

    @each_name
    def test_tail_mass_is_what_the_longest_row_lacks(self, name: str) -> None:
        X = short_rows()
        sketch = DotProductSketch(name, n_components=50, tail_eps=0.05, random_state=0)
        lengths = squared_lengths(sketch.fit_transform(X))
        longest = int(np.argmax(squared_lengths(X)))
        lacking = sketch.kernel_.diagonal(X)[longest] - lengths[longest]
        assert sketch.tail_mass_ > 0
        np.testing.assert_allclose(sketch.tail_mass_, lacking, rtol=1e-9)

    def test_less_tail_takes_more_degrees(self) -> None:
        X = short_rows()
        sketches = [
            DotProductSketch("log", n_components=50, tail_eps=eps).fit(X)
            for eps in (0.1, 1e-2, 1e-4)
        ]
        counts = [len(sketch.degrees_) for sketch in sketches]
        assert counts[0] < counts[1] < counts[2]


@cache
def digit_errors(series: str, expansion: str) -> Array:
    X = 0.99 * unit_rows(digits(400))
    return np.array(
        [
            error_of(X, series, n_components=512, expansion=expansion, random_state=seed)
            for seed in range(3)
        ]
    )


class TestExpansion:
    @pytest.mark.parametrize(("series", "factor"), [("exp", 0.2), ("cosh", 0.2), ("log", 0.55)])
    def test_around_the_mean_is_better_on_uncentred_data(self, series: str, factor: float) -> None:
        """Ratios of 0.13, 0.14 and 0.41."""
        around_mean = digit_errors(series, "mean").mean()
        assert around_mean < factor * digit_errors(series, "none").mean()

    @pytest.mark.parametrize("series", ["exp", "cosh", "arcsin", "log", "inverse"])
    def test_auto_is_near_the_better_of_both(self, series: str) -> None:
        """Each of three seeds."""
        better = np.minimum(digit_errors(series, "mean"), digit_errors(series, "none"))
        assert np.all(digit_errors(series, "auto") <= 1.05 * better)

    def test_auto_is_near_the_better_of_both_on_centred_data(self) -> None:
        X = isotropic(300, 40)
        for seed in range(3):
            errors = {
                expansion: error_of(
                    X, "exp", n_components=256, expansion=expansion, random_state=seed
                )
                for expansion in ("auto", "mean", "none")
            }
            assert errors["auto"] <= 1.05 * min(errors.values())

    def test_what_was_chosen(self) -> None:
        X = unit_rows(digits(300))
        chosen = [
            DotProductSketch("exp", n_components=256, random_state=0, **parameters)
            .fit(X)
            .expansion_
            for parameters in (
                {},
                {"expansion": "none"},
                {"expansion": "mean"},
                {"norm_preserving": False},
            )
        ]
        assert chosen == ["mean", "none", "mean", "none"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("series", "message"),
        [
            ([1.0, -0.5], r"coefficient 1 is -0\.5: the kernel is not positive definite"),
            (np.cos, r"coefficient 2 of cos is -0\.5: the kernel is not positive definite"),
            ([1.0, math.nan], "coefficient 1 is nan"),
            ([math.inf], "coefficient 0 is inf"),
            ([], "shape"),
            (np.sqrt, "analytic"),
            (np.abs, "analytic"),
            (np.reciprocal, "singularity|finite"),
            ("tanh", "'tanh' is unknown.*'exp'"),
        ],
        ids=str,
    )
    def test_kernels_that_are_none(self, series: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            DotProductSketch(series).fit(short_rows())

    def test_a_failed_fit_leaves_nothing(self) -> None:
        sketch = DotProductSketch(np.cos)
        with pytest.raises(ValueError, match="positive definite"):
            sketch.fit(short_rows())
        assert not hasattr(sketch, "kernel_")

    @pytest.mark.parametrize("name", ["inverse", "inverse_sqrt", "log", "arcsin"])
    @pytest.mark.parametrize("norm", [1.01, 2.0])
    def test_rows_outside_the_disk_at_fit(self, name: str, norm: float) -> None:
        with pytest.raises(ValueError, match=rf"(?s){norm**2:.6g}.*radius.* 1\b"):
            DotProductSketch(name).fit(norm * unit_rows(uncentred(20, 5)))

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    @pytest.mark.parametrize("name", ["inverse", "inverse_sqrt", "log", "arcsin"])
    @pytest.mark.parametrize("expansion", ["none", "mean"])
    @pytest.mark.parametrize("norm", [0.1, 0.5, 0.9])
    def test_rows_outside_the_disk_at_transform(
        self, name: str, expansion: str, norm: float
    ) -> None:
        """Whatever rows fit has seen; those between them and the radius are taken."""
        X = unit_rows(uncentred(20, 5))
        sketch = DotProductSketch(name, n_components=30, expansion=expansion).fit(norm * X)
        assert np.all(np.isfinite(sketch.transform(0.99 * X)))
        with pytest.raises(ValueError, match=r"(?s)1\.05.*radius.* 1\b"):
            sketch.transform(1.05 * X)

    @pytest.mark.parametrize("norm", [0.2, 1.0, 5.0])
    def test_callables_take_rows_of_any_norm(self, norm: float) -> None:
        X = norm * unit_rows(10 + uncentred(40, 5))
        assert error_of(X, np.exp, n_components=400) < 0.01

    @each_float
    def test_rows_of_norm_one_are_inside_a_closed_disk(self, dtype: Any) -> None:
        """Although rounding errors make their norms a little larger."""
        X = unit_rows(uncentred(200, 30)).astype(dtype)
        sketch = DotProductSketch("arcsin", n_components=64, random_state=0).fit(X[:100])
        assert np.all(np.isfinite(sketch.transform(X)))

    def test_kernel_values_beyond_double_precision(self) -> None:
        with pytest.raises(ValueError, match=r"(?s)largest float64.*scale"):
            DotProductSketch("exp", gamma=1.0).fit(30 * unit_rows(uncentred(20, 5)))

    def test_kernel_values_beyond_single_precision(self) -> None:
        X = (10 * unit_rows(uncentred(20, 5))).astype(np.float32)
        with pytest.raises(ValueError, match="overflows float32"):
            DotProductSketch("exp", gamma=1.0).fit(X)

    @pytest.mark.parametrize(("dtype", "length"), [(np.float64, 30.0), (np.float32, 10.0)])
    def test_open_gamma_suits_long_rows_and_says_so(self, dtype: Any, length: float) -> None:
        X = (length * unit_rows(uncentred(20, 5))).astype(dtype)
        with pytest.warns(UserWarning, match="gamma was set to"):
            sketch = DotProductSketch("exp", n_components=200).fit(X)
        assert sketch.gamma_ == pytest.approx(length**-2, rel=1e-5)
        assert sketch.kernel_.gamma == sketch.gamma_
        assert relative_error(sketch.transform(X), sketch.kernel_(X)) < 1e-3


class TestUnusualKernels:
    def test_a_constant(self) -> None:
        assert error_of(short_rows(), [2.5], n_components=10) < 1e-14

    def test_nothing(self) -> None:
        Z = DotProductSketch([0.0], n_components=10).fit_transform(short_rows())
        assert not Z.any()

    def test_zero_rows(self) -> None:
        """Their features are those of the constant."""
        X = short_rows()
        X[:3] = 0
        for series, expected in (("exp", 1.0), ("sinh", 0.0)):
            for expansion in ("none", "mean"):
                sketch = DotProductSketch(series, n_components=60, expansion=expansion)
                lengths = squared_lengths(sketch.fit_transform(X))
                np.testing.assert_allclose(lengths[:3], expected, atol=1e-15)

    def test_nothing_but_zero_rows(self) -> None:
        Z = DotProductSketch("exp", n_components=10).fit_transform(np.zeros((5, 4)))
        np.testing.assert_allclose(Z @ Z.T, 1.0, rtol=1e-12)

    def test_one_high_degree(self) -> None:
        """t^100 of rows of norm one, as the polynomial kernel has it."""
        coefficients = np.zeros(101)
        coefficients[100] = 1.0
        X = unit_rows(10 + uncentred(30, 6))
        assert error_of(X, coefficients, n_components=512) < 0.05
