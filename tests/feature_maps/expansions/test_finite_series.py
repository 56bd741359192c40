"""Finite series: bounds that no error exceeds, and the sampling scheme of the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.feature_maps.expansions.finite_series import (
    FiniteSeries,
    finite_series_of,
    horner,
    sampled_series,
    sampling_plan,
    truncated_series,
)
from powersketch.kernels.series import (
    NAMED_SERIES,
    CoefficientSeries,
    PowerSeries,
)
from powersketch.random_streams import RandomStreams
from tests.kernels.kernel_cases import arc_cosine_series, neural_tangent_series

Array = NDArray[Any]

# Every series with radii at which it converges.
SERIES: list[tuple[PowerSeries, tuple[float, ...]]] = [
    (NAMED_SERIES["exp"], (0.3, 1.0, 4.0, 20.0)),
    (NAMED_SERIES["inverse"], (0.1, 0.5, 0.9, 0.99)),
    (NAMED_SERIES["log"], (0.2, 0.95)),
    (NAMED_SERIES["arcsin"], (0.3, 0.9, 1.0)),
    (NAMED_SERIES["cosh"], (0.5, 3.0)),
    *((arc_cosine_series(order, depth), (0.5, 1.0)) for order in (0, 1, 2) for depth in (1, 3)),
    *((neural_tangent_series(depth), (0.5, 1.0)) for depth in (1, 3)),
    (neural_tangent_series(1, False), (0.5, 1.0)),
]
SLOW: list[PowerSeries] = [
    NAMED_SERIES["arcsin"],
    arc_cosine_series(0, 1),
    arc_cosine_series(1, 1),
    neural_tangent_series(1),
    neural_tangent_series(3),
]
each_series = pytest.mark.parametrize(("series", "radii"), SERIES, ids=str)
each_slow_series = pytest.mark.parametrize("series", SLOW, ids=repr)


def inner_products(radius: float, generator: np.random.Generator) -> Array:
    """Return the Gram matrix of rows of squared norm `radius`, or some of them shorter."""
    count, columns = int(generator.integers(1, 30)), int(generator.integers(1, 8))
    X = generator.normal(size=(count, columns)) + generator.integers(0, 3)
    X *= math.sqrt(radius) / np.linalg.norm(X, axis=1, keepdims=True)
    if generator.random() < 0.5:
        X *= generator.random((count, 1)) ** 0.3
    return np.clip(X @ X.T, -radius, radius)


def assert_within_bound(series: PowerSeries, finite: FiniteSeries, products: Array) -> None:
    """Entry by entry, and in operator norm; rounding errors are allowed for."""
    errors = series.value(products) - finite.value(products / finite.radius)
    rounding = 1e-13 * float(series.value(finite.radius))
    assert np.abs(errors).max() <= finite.error_bound + rounding
    assert np.linalg.norm(errors, 2) <= len(products) * (finite.error_bound + rounding)


class TestBounds:
    """About 1500 trials, none of which may fail: the bounds are proven."""

    @each_series
    def test_truncation(self, series: PowerSeries, radii: tuple[float, ...]) -> None:
        generator = np.random.default_rng(0)
        for radius in radii:
            for eps in (0.3, 1e-2, 1e-5):
                finite = truncated_series(series, radius, eps)
                for _ in range(10):
                    assert_within_bound(series, finite, inner_products(radius, generator))

    @each_slow_series
    def test_samples(self, series: PowerSeries) -> None:
        generator = np.random.default_rng(1)
        for seed in range(40):
            rows, eps = int(generator.integers(2, 3000)), 10.0 ** generator.uniform(-3, 0)
            finite = sampled_series(series, 1.0, rows, eps, RandomStreams(seed))
            assert_within_bound(series, finite, inner_products(1.0, generator))

    @each_slow_series
    def test_the_bound_of_samples_adds_up_all_differences(self, series: PowerSeries) -> None:
        """|Σ (C_l − Ĉ_l) t^l| ≤ Σ |C_l − Ĉ_l|, of which those beyond q are the tail."""
        last = sampling_plan(series.convergence_rate(1.0), 500, 0.3)[1]
        finite = sampled_series(series, 1.0, 500, 0.3, RandomStreams(0))
        exact = series.coefficients(last)
        tail = float(series.value(1.0)) - math.fsum(exact)
        differences = math.fsum(np.abs(exact - finite.dense_terms(last)))
        assert differences > 0
        np.testing.assert_allclose(finite.error_bound, differences + tail, rtol=1e-9)

    def test_random_coefficients(self) -> None:
        generator = np.random.default_rng(2)
        for _ in range(300):
            coefficients = generator.exponential(size=generator.integers(1, 40))
            coefficients *= generator.random(coefficients.size) < 0.6
            coefficients[0] += generator.integers(0, 2)
            coefficients[-1] += 0.1
            series, radius = CoefficientSeries(coefficients), 10.0 ** generator.uniform(-2, 0.5)
            finite = truncated_series(series, radius, 10.0 ** generator.uniform(-6, 0))
            assert_within_bound(series, finite, inner_products(radius, generator))

    @each_series
    def test_truncation_keeps_what_was_asked(
        self, series: PowerSeries, radii: tuple[float, ...]
    ) -> None:
        """The bound is at most eps of κ(radius), and attained at the radius, below degree 512."""
        for radius in radii:
            total = float(series.value(radius))
            finite = truncated_series(series, radius, 1e-2)
            if max(finite.degrees) < 511:
                assert finite.error_bound <= 1e-2 * total
            attained = total - float(finite.value(np.array(1.0)))
            assert attained <= finite.error_bound + 1e-14 * total
            assert finite.error_bound <= attained + 1e-10 * total

    @pytest.mark.parametrize("radius", [150.0, 300.0])
    def test_bounds_hold_where_coefficients_are_below_the_smallest_double(
        self, radius: float
    ) -> None:
        """1/l! is below it from l = 178 on, while radius^l / l! has its weight at l = radius."""
        series = NAMED_SERIES["exp"]
        finite = truncated_series(series, radius, 1e-3)
        total = math.exp(radius)
        assert total - float(finite.value(np.array(1.0))) <= finite.error_bound + 1e-12 * total
        assert finite.missing <= 1e-3 * total


class TestMissingMass:
    @each_series
    def test_is_what_the_terms_lack_at_the_radius(
        self, series: PowerSeries, radii: tuple[float, ...]
    ) -> None:
        for radius in radii:
            total = float(series.value(radius))
            for eps in (0.5, 1e-2, 1e-8):
                finite = truncated_series(series, radius, eps)
                lacking = total - math.fsum(finite.terms)
                assert finite.missing >= 0
                np.testing.assert_allclose(finite.missing, lacking, rtol=0, atol=1e-14 * total)

    @each_slow_series
    def test_samples_have_the_mass_of_what_they_stand_for(self, series: PowerSeries) -> None:
        """Only the degrees beyond q are missing."""
        rows, eps = 500, 0.3
        _, last, count = sampling_plan(series.convergence_rate(1.0), rows, eps)
        assert count > 0
        finite = sampled_series(series, 1.0, rows, eps, RandomStreams(0))
        np.testing.assert_allclose(
            math.fsum(finite.terms), math.fsum(series.coefficients(last)), rtol=1e-13
        )
        lacking = float(series.value(1.0)) - math.fsum(finite.terms)
        np.testing.assert_allclose(finite.missing, lacking, rtol=1e-12)


class TestTruncation:
    @each_series
    def test_terms_are_those_of_the_series(
        self, series: PowerSeries, radii: tuple[float, ...]
    ) -> None:
        for radius in radii:
            finite = truncated_series(series, radius, 1e-3)
            coefficients = series.coefficients(max(finite.degrees))
            expected = coefficients[list(finite.degrees)] * radius ** np.array(finite.degrees)
            np.testing.assert_allclose(finite.terms, expected, rtol=1e-12)
            assert np.all(finite.terms > 0)
            assert list(finite.degrees) == sorted(set(finite.degrees))
            np.testing.assert_array_equal(np.flatnonzero(coefficients), finite.degrees)

    @each_series
    def test_less_error_takes_more_degrees(
        self, series: PowerSeries, radii: tuple[float, ...]
    ) -> None:
        for radius in radii:
            highest = [
                max(truncated_series(series, radius, eps).degrees)
                for eps in (0.3, 0.1, 1e-2, 1e-3, 1e-6)
            ]
            assert highest == sorted(highest)
            assert highest[-1] > highest[0]

    @pytest.mark.parametrize("eps", [1e-3, 1e-6, 1e-300])
    def test_at_most_512_degrees(self, eps: float) -> None:
        """The series of κ₀ falls like l^−1.5: its tail after 512 degrees still is 0.008."""
        series = arc_cosine_series(0, 1)
        finite = truncated_series(series, 1.0, eps)
        assert max(finite.degrees) == 511
        np.testing.assert_allclose(finite.missing, 0.18 / math.sqrt(256), rtol=0.1)

    def test_a_polynomial_is_kept_whole(self) -> None:
        series = CoefficientSeries([0.5, 0.0, 2.0, 1.0])
        finite = truncated_series(series, 3.0, 1e-3)
        assert finite.degrees == (0, 2, 3)
        np.testing.assert_allclose(finite.terms, [0.5, 18.0, 27.0], rtol=1e-15)
        assert finite.missing == 0
        assert finite.error_bound <= 1e-12


class TestSampling:
    @pytest.mark.parametrize("rows", [10, 100, 3000])
    @pytest.mark.parametrize("eps", [0.9, 0.1])
    @pytest.mark.parametrize("rate", [1.2, 1.5, 2.0, 2.0001, 2.5, 2.9])
    def test_plan(self, rate: float, rows: int, eps: float) -> None:
        """q = (n/ε)^(1/p); s of Theorem B.5 and Corollary B.6; ε⁻² n² s^(−2p) log(n/δ) samples."""
        first, last, samples = sampling_plan(rate, rows, eps)
        q = min(math.ceil((rows / eps) ** (1 / rate)), 512)
        s = (rows / eps) ** (2 / (1 + 2 * rate))
        if rate <= 2:
            s = rows ** ((2 + 2 / rate) / (3 + 2 * rate)) / eps ** (2 / (3 + 2 * rate))
        assert last == q
        assert first == min(math.ceil(s), q)
        wanted = rows**2 / eps**2 / first ** (2 * rate) * math.log(rows / 0.01)
        assert samples == (math.ceil(wanted) if first < q else 0)

    def test_plans_of_the_paper_do_sample(self) -> None:
        """Worked by hand: n/ε = 1000, p = 1.5 and 2.5."""
        assert sampling_plan(1.5, 100, 0.1) == (28, 100, 420)
        first, last, samples = sampling_plan(2.5, 100, 0.1)
        assert (first, last) == (10, 16)
        assert samples == math.ceil(1e6 * 1e-5 * math.log(1e4))

    @pytest.mark.parametrize(
        "series", [arc_cosine_series(2, 1), NAMED_SERIES["exp"], NAMED_SERIES["cosh"]], ids=repr
    )
    def test_fast_series_are_cut_off(self, series: PowerSeries) -> None:
        """From p = 3 on (Theorem B.2)."""
        assert series.convergence_rate(1.0) >= 3
        sampled = sampled_series(series, 1.0, 100, 1e-2, RandomStreams(0))
        cut = truncated_series(series, 1.0, 1e-2)
        np.testing.assert_array_equal(sampled.dense_terms(), cut.dense_terms())
        assert (sampled.missing, sampled.error_bound) == (cut.missing, cut.error_bound)

    @pytest.mark.parametrize("rate", [1.01, 1.5, 2.5])
    def test_at_most_512_degrees(self, rate: float) -> None:
        first, last, _ = sampling_plan(rate, 10**6, 1e-3)
        assert first <= last == 512

    @pytest.mark.parametrize("rate", [1.0, 0.5, 0.0])
    def test_slow_series_are_refused(self, rate: float) -> None:
        with pytest.raises(ValueError, match=rf"l\^-{rate:.2f}.* above 1.*tail=.truncate."):
            sampling_plan(rate, 100, 0.1)

    @each_slow_series
    def test_unbiased(self, series: PowerSeries) -> None:
        """The mean of 400 sampled series is the series up to q, each degree within 5 errors.

        At most 60 degrees: failure probability 4e-5.
        """
        rows, eps = 60, 0.5
        first, last, count = sampling_plan(series.convergence_rate(1.0), rows, eps)
        assert count > 0
        assert first < last
        draws = np.array(
            [
                sampled_series(series, 1.0, rows, eps, RandomStreams(seed)).dense_terms(last)
                for seed in range(400)
            ]
        )
        exact = series.coefficients(last)
        errors = draws.std(axis=0) / math.sqrt(400)
        assert np.all(np.abs(draws.mean(axis=0) - exact) <= 5 * errors + 1e-14)
        kept = draws[:, : first + 1]
        np.testing.assert_allclose(kept, np.tile(exact[: first + 1], (400, 1)), rtol=1e-13)
        assert np.any(errors[first + 1 :] > 0)

    @each_slow_series
    def test_sampled_terms_are_multiples_of_one_share(self, series: PowerSeries) -> None:
        rows, eps = 60, 0.5
        first, last, count = sampling_plan(series.convergence_rate(1.0), rows, eps)
        finite = sampled_series(series, 1.0, rows, eps, RandomStreams(3))
        share = math.fsum(series.coefficients(last)[first + 1 :]) / count
        hits = finite.dense_terms(last)[first + 1 :] / share
        np.testing.assert_allclose(hits, np.round(hits), atol=1e-9)
        assert round(hits.sum()) == count

    @pytest.mark.parametrize(
        "series", [NAMED_SERIES["exp"], CoefficientSeries([0.0, 0.0, 0.0, 1.0])], ids=repr
    )
    def test_series_that_fall_faster_than_every_power_lose_little(
        self, series: PowerSeries
    ) -> None:
        """However few degrees (n/ε)^(1/p) is for an infinite p."""
        finite = sampled_series(series, 1.0, 100, 1e-2, RandomStreams(0))
        assert finite.missing <= 1e-2 * float(series.value(1.0))

    def test_seeds_matter_and_repeat(self) -> None:
        series = neural_tangent_series(1)
        one, same, other = (
            sampled_series(series, 1.0, 60, 0.5, RandomStreams(seed)) for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(one.dense_terms(512), same.dense_terms(512))
        assert np.any(one.dense_terms(512) != other.dense_terms(512))


class TestFiniteSeries:
    series = FiniteSeries((0, 2, 5), np.array([0.5, 1.0, 2.0]), 4.0, 0.25, 0.75)

    def test_values(self) -> None:
        s = np.linspace(-1, 1, 9)
        np.testing.assert_allclose(self.series.value(s), 0.5 + s**2 + 2 * s**5, rtol=1e-15)

    def test_dense_terms(self) -> None:
        assert self.series.dense_terms().tolist() == [0.5, 0, 1, 0, 0, 2]
        assert self.series.dense_terms(3).tolist() == [0.5, 0, 1, 0]
        assert self.series.dense_terms(7).tolist() == [0.5, 0, 1, 0, 0, 2, 0, 0]

    def test_multiples(self) -> None:
        triple = self.series.scaled(3.0)
        assert triple.terms.tolist() == [1.5, 3.0, 6.0]
        assert (triple.degrees, triple.radius) == ((0, 2, 5), 4.0)
        assert (triple.missing, triple.error_bound) == (0.75, 2.25)

    def test_horner(self) -> None:
        s = np.array([[0.0, -1.0], [2.0, 0.5]])
        np.testing.assert_array_equal(horner(np.array([1.0, 2.0, 3.0]), s), 1 + 2 * s + 3 * s * s)


class TestNames:
    def test_each_name_is_its_own_scheme(self) -> None:
        series, streams = neural_tangent_series(1), RandomStreams(0)
        made = {
            tail: finite_series_of(series, 1.0, tail, 0.1, 200, streams)
            for tail in ("fit", "truncate", "sample")
        }
        assert made["fit"].missing == 0
        np.testing.assert_array_equal(
            made["truncate"].dense_terms(), truncated_series(series, 1.0, 0.1).dense_terms()
        )
        np.testing.assert_array_equal(
            made["sample"].dense_terms(),
            sampled_series(series, 1.0, 200, 0.1, streams).dense_terms(),
        )
