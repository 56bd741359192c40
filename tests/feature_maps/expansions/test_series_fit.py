"""Fitted series: exact at the radius, bounded everywhere, and what they are solved with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import nnls

from powersketch.feature_maps.expansions.finite_series import (
    FiniteSeries,
    fitted_series,
    largest_difference,
    least_squares,
    nonnegative_least_squares,
    truncated_series,
)
from powersketch.kernels import NeuralTangent
from powersketch.kernels.series import (
    NAMED_SERIES,
    CoefficientSeries,
    PowerSeries,
    callable_series,
)
from tests.feature_maps.cases import digits, unit_rows
from tests.kernels.kernel_cases import arc_cosine_series, neural_tangent_series

Array = NDArray[Any]

FITTED: list[tuple[PowerSeries, float]] = [
    *((arc_cosine_series(order, depth), 1.0) for order in (0, 1, 2) for depth in (1, 3)),
    *((neural_tangent_series(depth), 1.0) for depth in (1, 2, 3, 5)),
    (neural_tangent_series(1, False), 1.0),
    (neural_tangent_series(3), 0.4),
    (NAMED_SERIES["arcsin"], 1.0),
    (NAMED_SERIES["arcsin"], 0.3),
    (NAMED_SERIES["inverse"], 0.9),
    (NAMED_SERIES["exp"], 1.0),
    (NAMED_SERIES["exp"], 6.0),
    (NAMED_SERIES["cosh"], 2.0),
    (CoefficientSeries([0.5, 0.0, 2.0, 1.0]), 3.0),
    (callable_series(lambda t: 1 / (2 - t), 1.5), 1.5),
]
each_fit = pytest.mark.parametrize(("series", "radius"), FITTED, ids=str)


def root_mean_square(series: PowerSeries, fit: FiniteSeries, largest: float) -> float:
    """Return the error on |s| ≤ largest relative to κ(radius)."""
    s = np.linspace(-largest, largest, 4001)
    errors = series.value(fit.radius * s) - fit.value(s)
    return float(np.sqrt(np.mean(errors**2)) / series.value(fit.radius))


class TestPromises:
    @each_fit
    def test_exact_at_the_radius(self, series: PowerSeries, radius: float) -> None:
        fit, total = fitted_series(series, radius), float(series.value(radius))
        assert fit.radius == radius
        assert fit.missing == 0
        np.testing.assert_allclose(fit.value(np.array(1.0)), total, rtol=1e-14)

    @each_fit
    def test_a_handful_of_positive_terms(self, series: PowerSeries, radius: float) -> None:
        fit = fitted_series(series, radius)
        assert np.all(fit.terms > 0)
        assert list(fit.degrees) == sorted(set(fit.degrees))
        assert 1 <= len(fit.degrees) == len(fit.terms) <= 20
        assert 0 <= min(fit.degrees) <= max(fit.degrees) <= 256

    @each_fit
    def test_no_difference_is_above_the_bound(self, series: PowerSeries, radius: float) -> None:
        """On a grid eight times as fine as the one that the bound comes from, and near ±1."""
        fit, total = fitted_series(series, radius), float(series.value(radius))
        s = np.cos(np.linspace(0, math.pi, 131_073))
        s = np.concatenate([s, np.linspace(-1, 1, 50_001), 1 - 10.0 ** np.linspace(-16, -1, 2000)])
        largest = float(np.abs(series.value(radius * s) - fit.value(s)).max())
        assert largest <= fit.error_bound + 1e-13 * total
        assert fit.error_bound <= 1.05 * largest + 2e-3 * total

    @each_fit
    def test_same_bits_with_and_without_the_cache(self, series: PowerSeries, radius: float) -> None:
        cached = fitted_series(series, radius)
        assert fitted_series(series, radius) is cached
        again = fitted_series.__wrapped__(series, radius)
        assert again.degrees == cached.degrees
        assert again.terms.tobytes() == cached.terms.tobytes()
        assert again.error_bound == cached.error_bound

    def test_fixed_bits(self) -> None:
        fit = fitted_series(neural_tangent_series(3), 1.0)
        assert fit.degrees == (0, 1, 2, 3, 4, 5, 6, 7, 10, 23, 32, 47, 48, 255, 256)
        assert [float(term).hex() for term in fit.terms[:3]] == [
            "0x1.0f76653c7777bp+0",
            "0x1.d2b529b76ea40p-1",
            "0x1.540a965436296p-1",
        ]


class TestAccuracy:
    @pytest.mark.parametrize(
        ("series", "limit"),
        [
            (neural_tangent_series(1, False), 1e-4),
            (neural_tangent_series(1), 5e-5),
            (neural_tangent_series(3), 1e-4),
            (neural_tangent_series(5), 2e-4),
            (arc_cosine_series(0, 1), 1e-4),
            (arc_cosine_series(1, 1), 5e-6),
            (arc_cosine_series(2, 1), 1e-6),
            (NAMED_SERIES["arcsin"], 2e-4),
            (NAMED_SERIES["exp"], 2e-7),
        ],
        ids=str,
    )
    def test_where_cosines_of_data_lie(self, series: PowerSeries, limit: float) -> None:
        """Root mean square on |s| ≤ 0.94, relative to κ(1); about three times better."""
        assert root_mean_square(series, fitted_series(series, 1.0), 0.94) <= limit

    @pytest.mark.parametrize("depth", [1, 3, 5])
    def test_better_than_taylor_of_the_same_highest_degree(self, depth: int) -> None:
        series = neural_tangent_series(depth)
        fit, taylor = fitted_series(series, 1.0), truncated_series(series, 1.0, 1e-9)
        assert len(fit.degrees) < len(taylor.degrees) / 10
        assert fit.error_bound < taylor.error_bound

    def test_kernel_of_digits(self) -> None:
        """Frobenius error of the fitted kernel itself: 0.9e-4."""
        X = unit_rows(digits(800))
        K = NeuralTangent(3)(X)
        fit = fitted_series(neural_tangent_series(3), 1.0)
        cosines = np.clip(X @ X.T, -1, 1)
        assert np.linalg.norm(fit.value(cosines) - K) <= 3e-4 * np.linalg.norm(K)

    def test_a_polynomial_is_found_again(self) -> None:
        fit = fitted_series(CoefficientSeries([0.5, 0.0, 2.0, 1.0]), 3.0)
        s = np.linspace(-1, 1, 101)
        np.testing.assert_allclose(fit.value(s), 0.5 + 18 * s**2 + 27 * s**3, atol=45.5e-5)


class TestParity:
    @pytest.mark.parametrize(
        ("series", "parity"),
        [
            (NAMED_SERIES["arcsin"], 1),
            (NAMED_SERIES["sinh"], 1),
            (NAMED_SERIES["cosh"], 0),
            (arc_cosine_series(0, 1), 1),
            (arc_cosine_series(1, 1), 0),
            (neural_tangent_series(1), 0),
            (neural_tangent_series(1, False), 0),
        ],
        ids=str,
    )
    def test_only_degrees_of_the_kind_that_the_kernel_has(
        self, series: PowerSeries, parity: int
    ) -> None:
        """Degrees 0 and 1 may be there by themselves, as in ½ + arcsin(t)/π."""
        degrees = [degree for degree in fitted_series(series, 1.0).degrees if degree > 1]
        assert degrees
        assert {degree % 2 for degree in degrees} == {parity}

    def test_both_kinds_where_there_are_both(self) -> None:
        degrees = fitted_series(neural_tangent_series(3), 1.0).degrees
        assert {degree % 2 for degree in degrees if degree > 1} == {0, 1}

    @pytest.mark.parametrize("name", ["arcsin", "sinh"])
    def test_odd_kernels_stay_odd(self, name: str) -> None:
        """On both sides alike: −κ(−t) = κ(t) but for a constant that is hardly there."""
        fit, s = fitted_series(NAMED_SERIES[name], 1.0), np.linspace(0, 1, 101)
        np.testing.assert_allclose(fit.value(-s), -fit.value(s), atol=5e-5)


class TestOtherRadii:
    @pytest.mark.parametrize("radius", [0.05, 0.5, 2.0, 30.0])
    def test_exponential(self, radius: float) -> None:
        series = NAMED_SERIES["exp"]
        assert root_mean_square(series, fitted_series(series, radius), 1.0) <= 1e-4

    def test_a_series_in_other_units_is_the_same(self) -> None:
        """κ(t) on |t| ≤ 2 has the terms of κ(2 s) on |s| ≤ 1."""
        wide = fitted_series(NAMED_SERIES["exp"], 2.0)
        narrow = fitted_series(callable_series(lambda t: np.exp(2 * t)), 1.0)
        assert wide.degrees == narrow.degrees
        np.testing.assert_allclose(wide.terms, narrow.terms, rtol=1e-6)


class TestLargestDifference:
    def test_of_a_constant(self) -> None:
        """|1 + t − 1| on |t| ≤ 2 is 2; the bound may be above by a step of the grid."""
        fit = FiniteSeries((0,), np.ones(1), 2.0, 0.0, math.inf)
        bound = largest_difference(CoefficientSeries([1.0, 1.0]), fit)
        assert 2.0 <= bound <= 2.001

    def test_of_the_series_itself(self) -> None:
        """Nothing, but for what the functions change from one point of the grid to the next."""
        fit = FiniteSeries((0, 3), np.array([1.0, 2.0]), 1.0, 0.0, math.inf)
        bound = largest_difference(CoefficientSeries([1.0, 0.0, 0.0, 2.0]), fit)
        assert 0 <= bound <= 6 * math.pi / 2 / 8192

    def test_on_the_negative_side(self) -> None:
        """t² against t: they differ at −1 only."""
        fit = FiniteSeries((1,), np.ones(1), 1.0, 0.0, math.inf)
        bound = largest_difference(CoefficientSeries([0.0, 0.0, 1.0]), fit)
        assert 2.0 <= bound <= 2.001

    @given(seed=st.integers(0, 2**32 - 1))
    def test_of_random_series(self, seed: int) -> None:
        generator = np.random.default_rng(seed)
        exact, other = generator.exponential(size=(2, 12)) * (generator.random((2, 12)) < 0.4)
        radius = float(generator.uniform(0.3, 1.5))
        degrees = np.flatnonzero(other + (np.arange(12) == 0))
        terms = (other * radius ** np.arange(12))[degrees] + 1e-12
        fit = FiniteSeries(tuple(degrees.tolist()), terms, radius, 0.0, math.inf)
        series = CoefficientSeries(exact)
        s = generator.uniform(-1, 1, 3000)
        largest = np.abs(series.value(radius * s) - fit.value(s)).max()
        assert largest <= largest_difference(series, fit) + 1e-12


def problem(seed: int, rows: int, columns: int) -> tuple[list[Array], Array]:
    generator = np.random.default_rng(seed)
    A = generator.normal(size=(rows, columns)) + generator.integers(0, 3)
    return list(A.T), generator.normal(size=rows)


class TestSolvers:
    @given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 15))
    def test_least_squares(self, seed: int, columns: int) -> None:
        A, b = problem(seed, 40, columns)
        expected = np.linalg.lstsq(np.array(A).T, b, rcond=None)[0]
        np.testing.assert_allclose(least_squares(A, b), expected, rtol=1e-9, atol=1e-11)

    @given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 15))
    def test_nonnegative_least_squares(self, seed: int, columns: int) -> None:
        A, b = problem(seed, 40, columns)
        expected, _ = nnls(np.array(A).T, b)
        solution = nonnegative_least_squares(A, b)
        assert np.all(solution >= 0)
        np.testing.assert_allclose(solution, expected, rtol=1e-8, atol=1e-9)

    @given(seed=st.integers(0, 2**32 - 1), columns=st.integers(1, 15))
    def test_conditions_of_a_minimum(self, seed: int, columns: int) -> None:
        """No column could still help, and those in use are orthogonal to the residual."""
        A, b = problem(seed, 30, columns)
        solution = nonnegative_least_squares(A, b)
        gains = np.array(A) @ (b - np.array(A).T @ solution)
        assert np.all(gains <= 1e-8)
        assert np.all(np.abs(gains[solution > 0]) <= 1e-8)

    @pytest.mark.parametrize("columns", [1, 5, 20])
    def test_an_exact_solution_is_found(self, columns: int) -> None:
        A, _ = problem(3, 60, columns)
        wanted = np.arange(columns) % 3 * 0.5
        solution = nonnegative_least_squares(A, np.array(A).T @ wanted)
        np.testing.assert_allclose(solution, wanted, atol=1e-10)

    def test_nothing_helps(self) -> None:
        """All columns point away from the target."""
        A = [np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])]
        assert nonnegative_least_squares(A, np.array([-1.0, -2.0, 3.0])).tolist() == [0.0, 0.0]

    def test_equal_columns(self) -> None:
        """One of them does, and neither is divided by nothing."""
        column = np.array([1.0, 2.0, 2.0])
        solution = nonnegative_least_squares([column, column], 3 * column)
        np.testing.assert_allclose(solution.sum(), 3.0, rtol=1e-12)
        np.testing.assert_allclose(least_squares([column, 0 * column], 3 * column), [3.0, 0.0])

    def test_powers_as_ill_conditioned_as_those_of_the_fit(self) -> None:
        """No worse than scipy's residual by more than a millionth of the target."""
        s = np.linspace(-0.99, 0.99, 201)
        A, b = [s**k for k in range(24)], np.arccos(-s) / math.pi
        expected = nnls(np.array(A).T, b)[1]
        solution = nonnegative_least_squares(A, b)
        residual = np.linalg.norm(np.array(A).T @ solution - b)
        assert residual <= expected + 1e-6 * np.linalg.norm(b)
