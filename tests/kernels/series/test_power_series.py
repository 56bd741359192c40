"""What every power series promises, and the series with finitely many terms."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersketch.kernels.dot_product import as_power_series
from powersketch.kernels.series import (
    NAMED_SERIES,
    CoefficientSeries,
    PowerSeries,
    callable_series,
    exponential_series,
)
from tests.kernels.kernel_cases import arc_cosine_series, neural_tangent_series

SERIES: list[PowerSeries] = [
    *NAMED_SERIES.values(),
    exponential_series(0.3),
    exponential_series(7.0),
    CoefficientSeries([0.25, 0.0, 3.0, 1e-3]),
    CoefficientSeries([2.0]),
    arc_cosine_series(0),
    arc_cosine_series(1, depth=2),
    arc_cosine_series(2, depth=3),
    neural_tangent_series(1, train_output=False),
    neural_tangent_series(3, weight_variance=1.5, bias_variance=0.2, squared_norm=3.0),
    callable_series(np.exp, radius=2.0),
    callable_series(np.arcsin),
]
all_series = pytest.mark.parametrize("series", SERIES, ids=repr)


def arguments(series: PowerSeries) -> list[float]:
    """Positive arguments up to the edge of the disk, as far as the series converges."""
    radius = min(series.radius, 4.0)
    shares = [1e-3, 0.3, 0.7, 0.95, *([1.0] if series.closed else [])]
    return [share * radius for share in shares]


def summed(series: PowerSeries, degree: int, t: float) -> Fraction:
    """The sum of all terms up to the degree, with the coefficients as they are, not rounded."""
    total = Fraction(0)
    for coefficient in series.coefficients(degree)[::-1].tolist():
        total = total * Fraction(t) + Fraction(coefficient)
    return total


class TestEverySeries:
    @all_series
    def test_coefficients_are_not_negative_and_begin_alike(self, series: PowerSeries) -> None:
        many = series.coefficients(300)
        assert many.shape == (301,)
        assert many.dtype == np.float64
        assert (many >= 0.0).all()
        for degree in (0, 1, 2, 63, 64, 65, 299):
            np.testing.assert_array_equal(series.coefficients(degree), many[: degree + 1])

    @all_series
    def test_what_is_returned_may_be_changed(self, series: PowerSeries) -> None:
        before = series.coefficients(5)
        series.coefficients(5)[:] = -1.0
        series.terms(5, 0.5)[:] = -1.0
        np.testing.assert_array_equal(series.coefficients(5), before)
        assert (series.terms(5, 0.5) >= 0.0).all()

    @all_series
    def test_terms_are_coefficients_times_powers(self, series: PowerSeries) -> None:
        for t in arguments(series):
            powers = t ** np.arange(60)
            terms = series.terms(59, t)
            np.testing.assert_allclose(terms, series.coefficients(59) * powers, rtol=1e-12)
        np.testing.assert_array_equal(series.terms(2, 0.0)[1:], 0.0)

    @all_series
    def test_value_is_the_sum_up_to_the_tail(self, series: PowerSeries) -> None:
        for t in arguments(series):
            for sign in (1.0, -1.0):
                difference = float(series.value(sign * t)) - float(summed(series, 80, sign * t))
                allowed = series.tail_bound(80, t) + 1e-13 * float(series.value(t))
                assert abs(difference) <= allowed

    @all_series
    def test_value_keeps_the_shape(self, series: PowerSeries) -> None:
        t = np.linspace(-0.5, 0.5, 6).reshape(2, 3)
        values = series.value(t)
        assert values.shape == (2, 3)
        assert values.dtype == np.float64
        assert series.value(0.5).shape == ()
        assert float(series.value(0.5)) == pytest.approx(values[1, 2], rel=1e-15)

    @all_series
    def test_tail_bound_is_not_below_the_terms_that_follow(self, series: PowerSeries) -> None:
        for t in arguments(series):
            long = summed(series, 300, t)
            for degree in (0, 1, 2, 7, 50, 299):
                following = long - summed(series, degree, t)
                # Coefficients are rounded to nearest, so that their sum may be a little too large.
                bound = Fraction(series.tail_bound(degree, t))
                assert bound >= following * (1 - Fraction(1, 10**12))

    @all_series
    def test_tail_bound_does_not_grow(self, series: PowerSeries) -> None:
        for t in arguments(series):
            bounds = [series.tail_bound(degree, t) for degree in range(0, 200, 11)]
            assert bounds == sorted(bounds, reverse=True)
            assert bounds[-1] >= 0.0

    @all_series
    def test_nothing_follows_at_zero(self, series: PowerSeries) -> None:
        assert series.tail_bound(0, 0.0) == 0.0
        assert series.degree_for(1e-9, 0.0) == 0
        assert float(series.value(0.0)) == pytest.approx(series.coefficients(0)[0], abs=1e-13)

    @all_series
    def test_degree_for_is_the_smallest(self, series: PowerSeries) -> None:
        t = 0.7 * min(series.radius, 4.0)
        for eps in (0.5, 1e-2, 1e-6, 1e-10):
            degree = series.degree_for(eps, t)
            allowed = eps * float(series.value(t))
            assert series.tail_bound(degree, t) <= allowed
            assert degree == 0 or series.tail_bound(degree - 1, t) > allowed

    @all_series
    def test_outside_the_disk(self, series: PowerSeries) -> None:
        outside = 1.001 * series.radius
        for call in (
            lambda: series.value([0.0, -outside]),
            lambda: series.tail_bound(3, outside),
            lambda: series.terms(3, outside),
            lambda: series.degree_for(0.1, outside),
            lambda: series.convergence_rate(outside),
        ):
            with pytest.raises(ValueError, match=r"radius \d|finite|less than the radius inf"):
                call()
        assert not series.contains(outside)
        assert not series.contains(math.nan)
        assert series.contains([0.0, -0.5 * min(series.radius, 1.0)])

    @all_series
    def test_roundings_beyond_the_radius_are_forgiven(self, series: PowerSeries) -> None:
        if not series.closed:
            assert not series.contains(series.radius)
            return
        beyond = series.radius * (1.0 + 1e-15)
        assert series.contains(beyond)
        assert not series.contains(series.radius * (1.0 + 1e-6))
        assert series.contains(series.radius * (1.0 + 1e-6), tolerance=1e-5)
        np.testing.assert_array_equal(
            series.value([beyond, -beyond]), series.value([series.radius, -series.radius])
        )
        assert series.tail_bound(9, beyond) == series.tail_bound(9, series.radius)

    @all_series
    def test_refused_numbers(self, series: PowerSeries) -> None:
        with pytest.raises(ValueError, match=r"degree=-1 .* at least 0"):
            series.coefficients(-1)
        with pytest.raises(TypeError, match=r"degree=2.0 is a float"):
            series.tail_bound(2.0, 0.5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"t=-0.5 is out of range"):
            series.tail_bound(2, -0.5)
        with pytest.raises(TypeError, match=r"t='0.5' is a str"):
            series.terms(2, "0.5")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"eps=0.0 .* above 0"):
            series.degree_for(0.0, 0.5)
        with pytest.raises(ValueError, match=r"limit=-1 .* at least 0"):
            series.degree_for(0.1, 0.5, limit=-1)

    @pytest.mark.parametrize("series", SERIES[:-2], ids=repr)
    def test_pickled(self, series: PowerSeries) -> None:
        copy = pickle.loads(pickle.dumps(series))
        np.testing.assert_array_equal(copy.coefficients(50), series.coefficients(50))
        assert repr(copy) == repr(series)


class TestDegreeFor:
    def test_limit_not_reached(self) -> None:
        series = neural_tangent_series(1)
        with pytest.raises(
            ValueError, match=r"above limit=100 for eps=0.001 at t=1: .*tail bound is 0\.0.*radius"
        ):
            series.degree_for(1e-3, 1.0, limit=100)

    def test_the_limit_itself_is_tried(self) -> None:
        series = exponential_series(1.0)
        degree = series.degree_for(1e-8, 3.0)
        assert series.degree_for(1e-8, 3.0, limit=degree) == degree
        with pytest.raises(ValueError, match=f"above limit={degree - 1} "):
            series.degree_for(1e-8, 3.0, limit=degree - 1)

    @pytest.mark.parametrize(
        ("squared_radius", "degrees"),
        [(1.0, (5, 9, 11)), (4.0, (11, 17, 21)), (16.0, (30, 38, 45)), (64.0, (90, 105, 117))],
    )
    def test_poisson_tails(self, squared_radius: float, degrees: tuple[int, ...]) -> None:
        # The tail relative to the value is the probability that a Poisson variable is above q.
        series = exponential_series(1.0)
        assert degrees == tuple(
            series.degree_for(eps, squared_radius) for eps in (1e-3, 1e-6, 1e-9)
        )


class TestCoefficientSeries:
    def test_value_by_hand(self) -> None:
        series = CoefficientSeries([1.0, 0.0, 3.0])
        np.testing.assert_array_equal(series.value([0.0, 2.0, -2.0]), [1.0, 13.0, 13.0])

    def test_all_coefficients_by_default_and_zeros_beyond(self) -> None:
        series = CoefficientSeries([1, 2])
        np.testing.assert_array_equal(series.coefficients(), [1.0, 2.0])
        np.testing.assert_array_equal(series.coefficients(3), [1.0, 2.0, 0.0, 0.0])
        np.testing.assert_array_equal(series.coefficients(0), [1.0])

    def test_converges_everywhere_and_ends(self) -> None:
        series = CoefficientSeries([1.0, 1.0, 1.0])
        assert series.radius == math.inf
        assert series.convergence_rate() == math.inf
        assert series.tail_bound(2, 1e6) == 0.0
        assert series.tail_bound(100, 1e6) == 0.0
        assert series.degree_for(1e-300, 1e6) == 2

    @given(
        coefficients=st.lists(
            st.one_of(st.just(0.0), st.floats(1e-9, 1e9)), min_size=1, max_size=30
        ),
        t=st.floats(1e-6, 1e6),
        degree=st.integers(0, 35),
    )
    def test_tail_is_the_exact_sum_rounded_up(
        self, coefficients: list[float], t: float, degree: int
    ) -> None:
        exact = sum(
            (Fraction(c) * Fraction(t) ** n for n, c in enumerate(coefficients) if n > degree),
            Fraction(0),
        )
        bound = Fraction(CoefficientSeries(coefficients).tail_bound(degree, t))
        assert exact <= bound <= exact * (1 + Fraction(1, 10**13))

    def test_powers_beyond_float64_with_finite_terms(self) -> None:
        series = CoefficientSeries([math.comb(100, n) * 1e-4**n for n in range(77)])
        expected = [float(math.comb(100, n)) for n in range(77)]
        np.testing.assert_allclose(series.terms(76, 1e4), expected, rtol=1e-12)
        assert series.tail_bound(0, 1e4) == pytest.approx(sum(expected) - 1, rel=1e-12)

    def test_overflow_is_an_error(self) -> None:
        series = CoefficientSeries([0.0, 0.0, 1e300])
        with pytest.raises(ValueError, match=r"above the largest float64 at t=1e\+06.*scale"):
            series.value([1.0, 1e6])
        with pytest.raises(ValueError, match=r"term 2 .* above the largest float64.*t=1e\+06"):
            series.terms(4, 1e6)
        assert series.tail_bound(1, 1e6) == math.inf

    def test_the_array_given_is_left_alone_and_not_shared(self) -> None:
        given_array = np.array([1.0, 2.0])
        series = CoefficientSeries(given_array)
        given_array[0] = 5.0
        np.testing.assert_array_equal(series.coefficients(), [1.0, 2.0])
        assert given_array.flags.writeable

    @pytest.mark.parametrize(
        ("coefficients", "error", "message"),
        [
            ([], ValueError, r"shape \(0,\)"),
            ([[1.0]], ValueError, r"shape \(1, 1\); allowed is \(n \+ 1,\)"),
            (3.0, ValueError, r"shape \(\)"),
            (
                [1.0, -0.5],
                ValueError,
                r"coefficient 1 is -0.5: the kernel is not positive definite",
            ),
            ([1.0, np.nan], ValueError, "coefficient 1 is nan; allowed are finite"),
            ([np.inf, 1.0], ValueError, "coefficient 0 is inf"),
            ([1j, 1.0], TypeError, "dtype complex128"),
            (["a"], TypeError, "dtype <U1"),
        ],
    )
    def test_refused(self, coefficients: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            CoefficientSeries(coefficients)


class TestPowerSeries:
    def test_a_series_is_passed_through(self) -> None:
        series = CoefficientSeries([1.0])
        assert as_power_series(series) is series

    def test_names(self) -> None:
        for name, series in NAMED_SERIES.items():
            assert as_power_series(name) is series

    @pytest.mark.parametrize("coefficients", [[1, 2], (1.0, 2.0), np.array([1.0, 2.0])])
    def test_coefficients(self, coefficients: Any) -> None:
        np.testing.assert_array_equal(as_power_series(coefficients).coefficients(1), [1.0, 2.0])

    def test_callables_take_the_radius(self) -> None:
        series = as_power_series(np.exp, radius=3.0)
        assert series.radius == 3.0
        np.testing.assert_allclose(series.coefficients(3), [1.0, 1.0, 1 / 2, 1 / 6], rtol=1e-13)

    def test_unknown_name(self) -> None:
        with pytest.raises(ValueError, match=r"series='tan' is unknown; .*'exp', 'cosh'.*callable"):
            as_power_series("tan")

    @pytest.mark.parametrize("wrong", [None, 3.0, {"exp": 1}])
    def test_anything_else(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"is a .*; allowed are the names .*PowerSeries"):
            as_power_series(wrong)
