"""The series of arc-cosine and neural tangent kernels: exact sums, tables, proven precision."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.kernels import ArcCosine, NeuralTangent
from powersketch.kernels.series import (
    PowerSeries,
    callable_series,
)
from powersketch.kernels.series.layers import PositiveSeries, _cached_table
from tests.kernels.kernel_cases import arc_cosine_series, neural_tangent_series

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620900")
UNIT = 2.0**-53
NEURAL: list[PowerSeries] = [
    *(arc_cosine_series(order, depth) for order in (0, 1, 2) for depth in (1, 2, 4)),
    *(neural_tangent_series(depth, train) for depth in (1, 2, 5) for train in (True, False)),
    neural_tangent_series(1, bias_variance=0.5),
    neural_tangent_series(3, True, 1.3, 0.7, 0.01),
    neural_tangent_series(2, False, 3.0, 0.1, 40.0),
]
all_neural = pytest.mark.parametrize("series", NEURAL, ids=repr)


def central_binomial(n: int) -> Fraction:
    return Fraction(math.comb(2 * n, n), 4**n)


def kappa_coefficient(order: int, degree: int) -> tuple[Fraction, Fraction]:
    """Return a and b of the coefficient a + b / pi, by integrating the series of kappa_0."""
    if order == 0:
        if degree % 2:
            return Fraction(0), central_binomial(degree // 2) / degree
        return Fraction(degree == 0, 2), Fraction(0)
    if degree == 0:
        return (Fraction(0), Fraction(1)) if order == 1 else (Fraction(1, 2), Fraction(0))
    plain, over_pi = kappa_coefficient(order - 1, degree - 1)
    factor = Fraction(1 if order == 1 else 4, degree)
    return plain * factor, over_pi * factor


# An independent expansion in 60 decimals: a square root and a quotient of power series, instead of
# one recurrence, and arccosines from their Taylor series.


def decimal_product(f: list[Decimal], g: list[Decimal]) -> list[Decimal]:
    return [sum((f[k] * g[n - k] for k in range(n + 1)), Decimal(0)) for n in range(len(f))]


def decimal_sqrt(f: list[Decimal]) -> list[Decimal]:
    root = [f[0].sqrt()]
    for n in range(1, len(f)):
        crossed = sum((root[k] * root[n - k] for k in range(1, n)), Decimal(0))
        root.append((f[n] - crossed) / (2 * root[0]))
    return root


def decimal_quotient(f: list[Decimal], g: list[Decimal]) -> list[Decimal]:
    quotient: list[Decimal] = []
    for n in range(len(f)):
        known = sum((quotient[k] * g[n - k] for k in range(n)), Decimal(0))
        quotient.append((f[n] - known) / g[0])
    return quotient


def decimal_integral(f: list[Decimal], first: Decimal) -> list[Decimal]:
    return [first, *(f[n - 1] / n for n in range(1, len(f)))]


def decimal_kappas(s: list[Decimal]) -> list[list[Decimal]]:
    """Return kappa_0, kappa_1, kappa_2 of a series."""
    derivative = [*(n * s[n] for n in range(1, len(s))), Decimal(0)]
    square = decimal_product(s, s)
    sine = decimal_sqrt([1 - square[0], *(-c for c in square[1:])])
    at_zero = decimal_kappas_at(s[0], sine[0])
    slopes = [c / PI for c in decimal_quotient(derivative, sine)]
    kappas = [decimal_integral(slopes, at_zero[0])]
    for factor, first in ((1, at_zero[1]), (4, at_zero[2])):
        slopes = [factor * c for c in decimal_product(kappas[-1], derivative)]
        kappas.append(decimal_integral(slopes, first))
    return kappas


def decimal_kappas_at(cosine: Decimal, sine: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    # pi - arccos(c) = pi / 2 + arcsin(c); halving the angle first makes the series short.
    half = cosine / (2 * (1 + sine)).sqrt()
    angle, term, n = Decimal(0), half, 0
    while n < 400:
        angle += term / (2 * n + 1)
        term *= half * half * (2 * n + 1) / (2 * n + 2)
        n += 1
    angle = PI / 2 + 2 * angle
    return (
        angle / PI,
        (sine + cosine * angle) / PI,
        (3 * cosine * sine + (1 + 2 * cosine * cosine) * angle) / PI,
    )


def decimal_arc_cosine(order: int, depth: int, size: int) -> list[Decimal]:
    kernel = [Decimal(int(n == 1)) for n in range(size)]
    diagonal = Decimal(1)
    for _ in range(depth):
        cosine = [c / diagonal for c in kernel]
        kernel = [c * diagonal**order for c in decimal_kappas(cosine)[order]]
        diagonal = diagonal**order * (1, 1, 3)[order]
    return kernel


def decimal_tangent(
    size: int, depth: int, train_output: bool, weight: float, bias: float, squared_norm: float
) -> list[Decimal]:
    gain, offset = Decimal(weight) / 2, Decimal(bias)
    diagonal = gain * Decimal(squared_norm) + offset
    covariance = tangent = [diagonal * int(n == 1) for n in range(size)]
    for layer in range(1, depth + 1):
        slope, image, _ = decimal_kappas([c / diagonal for c in covariance])
        product = decimal_product(slope, tangent)
        if layer == depth and not train_output:
            return [c / 2 for c in product]
        covariance = [gain * diagonal * c + offset * int(n == 0) for n, c in enumerate(image)]
        diagonal = gain * diagonal + offset
        tangent = [s + gain * c for s, c in zip(covariance, product, strict=True)]
    return tangent


def complex_kappas(rho: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    angle = np.pi - np.arccos(rho)
    sine = np.sqrt(1 - rho) * np.sqrt(1 + rho)
    return (
        angle / np.pi,
        (sine + rho * angle) / np.pi,
        (3 * rho * sine + (1 + 2 * rho * rho) * angle) / np.pi,
    )


def truncation_error(order: int, terms: int) -> float:
    """What is missing at one after the terms 0, ..., p of the sums for kappa_0 or kappa_1."""
    return arc_cosine_series(order).tail_bound(2 * terms + 1 + order, 1.0)


class TestPromisedRoundings:
    """No coefficient is further off than the series says, where the inputs are exact."""

    def coefficients(self, seed: int) -> NDArray[np.float64]:
        generator = np.random.default_rng(seed)
        return generator.random(60) * (generator.random(60) < 0.7)

    def check(self, series: PositiveSeries, exact: list[Fraction]) -> None:
        promised = series.roundings().tolist()
        computed = series.coefficients.tolist()
        for coefficient, value, count in zip(computed, exact, promised, strict=True):
            assert abs(Fraction(coefficient) - value) <= Fraction(count * UNIT) * value

    @pytest.mark.parametrize("seed", range(5))
    def test_product(self, seed: int) -> None:
        f, g = self.coefficients(seed), self.coefficients(seed + 100)
        exact = [
            sum((Fraction(f[k]) * Fraction(g[n - k]) for k in range(n + 1)), Fraction(0))
            for n in range(60)
        ]
        self.check(PositiveSeries(f, 0, 0) * PositiveSeries(g, 0, 0), exact)

    @pytest.mark.parametrize("seed", range(5))
    def test_inverse_square_root(self, seed: int) -> None:
        f = self.coefficients(seed) / 64
        f[0] = 0.75
        # w = (1 - f)^(-1/2) is the series with w_0 = 2 and w² (1 - f) = 1.
        reciprocal = [Fraction(4)]
        root = [Fraction(2)]
        for n in range(1, 60):
            reciprocal.append(4 * sum(Fraction(f[k]) * reciprocal[n - k] for k in range(1, n + 1)))
            crossed = sum(root[k] * root[n - k] for k in range(1, n))
            root.append((reciprocal[n] - crossed) / 4)
        self.check(PositiveSeries(f, 0, 0).inverse_sqrt_of_rest(0.25), root)

    @pytest.mark.parametrize("seed", range(5))
    def test_integral(self, seed: int) -> None:
        f, inner = self.coefficients(seed), self.coefficients(seed + 100)
        exact = [Fraction(1, 2)]
        for n in range(1, 60):
            products = (k * Fraction(inner[k]) * Fraction(f[n - k]) for k in range(1, n + 1))
            exact.append(sum(products, Fraction(0)) / n)
        series = PositiveSeries(f, 0, 0).integral_along(PositiveSeries(inner, 0, 0), 0.5)
        self.check(series, exact)

    def test_sum_and_factor(self) -> None:
        f, g = self.coefficients(1), self.coefficients(2)
        exact = [(Fraction(a) + Fraction(b)) * Fraction(0.7) for a, b in zip(f, g, strict=True)]
        series = (PositiveSeries(f, 0, 0) + PositiveSeries(g, 0, 0)).scaled(0.7)
        self.check(series, exact)


class TestOneLayer:
    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_coefficients_to_full_relative_precision(self, order: int) -> None:
        with localcontext(prec=60):
            for degree, coefficient in enumerate(arc_cosine_series(order).coefficients(600)):
                plain, over_pi = kappa_coefficient(order, degree)
                exact = Decimal(plain.numerator) / plain.denominator
                exact += Decimal(over_pi.numerator) / over_pi.denominator / PI
                if exact == 0:
                    assert coefficient == 0.0
                else:
                    assert abs(Decimal(float(coefficient)) / exact - 1) < Decimal("4e-15")

    def test_relative_precision_at_degree_2000(self) -> None:
        for order in (0, 1, 2):
            degree = 2001 - order % 2
            over_pi = kappa_coefficient(order, degree)[1]
            coefficient = arc_cosine_series(order).coefficients(degree)[degree]
            assert coefficient == pytest.approx(float(over_pi) / math.pi, rel=1e-14)

    @pytest.mark.parametrize(
        ("terms", "error_0", "error_1"),
        [
            (2, 0.1048, 5.3e-3),
            (4, 0.0809, 2.6e-3),
            (8, 0.0601, 1.1e-3),
            (16, 0.0437, 4.2e-4),
            (32, 0.0313, 1.6e-4),
            (64, 0.0223, 5.7e-5),
        ],
    )
    def test_table_of_truncation_errors(self, terms: int, error_0: float, error_1: float) -> None:
        assert truncation_error(0, terms) == pytest.approx(error_0, abs=0.5e-4)
        assert truncation_error(1, terms) == pytest.approx(error_1, rel=0.05)

    def test_errors_of_taylor_polynomials(self) -> None:
        # The largest errors over [-1, 1] at degrees 4, 8 and 16, which are those at one.
        for series, errors in (
            (arc_cosine_series(0), (0.129, 0.091, 0.064)),
            (arc_cosine_series(1), (0.0093, 0.0035, 0.0013)),
            (neural_tangent_series(1), (0.138, 0.094, 0.065)),
        ):
            for degree, error in zip((4, 8, 16), errors, strict=True):
                assert series.tail_bound(degree, 1.0) == pytest.approx(error, rel=0.04)

    def test_tangent_kernel_by_hand(self) -> None:
        coefficients = neural_tangent_series(1).coefficients(9)
        expected = [0.318310, 1.0, 0.477465, 0.0, 0.066315, 0.0, 0.027852, 0.0, 0.015987, 0.0]
        np.testing.assert_allclose(coefficients, expected, atol=5e-7)
        np.testing.assert_array_equal(coefficients[3::2], 0.0)

    def test_the_paper_s_tangent_kernel(self) -> None:
        coefficients = neural_tangent_series(1, train_output=False).coefficients(400)
        assert coefficients[0] == 0.0
        assert coefficients[1] == 0.25
        np.testing.assert_array_equal(coefficients[3::2], 0.0)
        for n in range(199):
            exact = float(central_binomial(n) / (2 * n + 1)) / (2 * math.pi)
            assert coefficients[2 * n + 2] == pytest.approx(exact, rel=1e-14)


class TestLayers:
    @pytest.mark.parametrize(("order", "depth"), [(0, 2), (0, 3), (1, 2), (1, 4), (2, 2), (2, 3)])
    def test_arc_cosine_in_many_digits(self, order: int, depth: int) -> None:
        self.check(arc_cosine_series(order, depth), lambda n: decimal_arc_cosine(order, depth, n))

    @pytest.mark.parametrize(
        "parameters",
        [
            (2, True, 2.0, 0.0, 1.0),
            (4, True, 2.0, 0.0, 1.0),
            (3, False, 2.0, 0.0, 1.0),
            (1, True, 2.0, 0.3, 1.0),
            (3, True, 1.3, 0.7, 0.01),
            (2, False, 3.0, 0.1, 40.0),
        ],
    )
    def test_tangent_in_many_digits(self, parameters: Any) -> None:
        self.check(neural_tangent_series(*parameters), lambda n: decimal_tangent(n, *parameters))

    def check(self, series: Any, exact_series: Any) -> None:
        """Compare with the exact coefficients: small errors, and none above what is promised."""
        size = 81
        with localcontext(prec=60):
            exact = exact_series(size)
            roundings = series._table(size - 1).roundings()
            for degree, coefficient in enumerate(series.coefficients(size - 1)):
                error = abs(Decimal(float(coefficient)) - exact[degree])
                assert error <= exact[degree] * Decimal(roundings[degree] * UNIT)
                assert error <= exact[degree] * Decimal("2e-14")

    @pytest.mark.parametrize("depth", [2, 3])
    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_arc_cosine_on_a_circle_in_the_complex_plane(self, order: int, depth: int) -> None:
        def kernel(t: NDArray[Any]) -> NDArray[Any]:
            scale = 1.0
            for _ in range(depth):
                t = complex_kappas(t)[order] / (1, 1, 3)[order]
                scale = scale**order * (1, 1, 3)[order]
            return scale * t

        series = arc_cosine_series(order, depth)
        difference = series.coefficients(2000) - callable_series(kernel).coefficients(2000)
        assert np.abs(difference).max() < 1e-13 * float(series.value(1.0))

    @all_neural
    def test_sum_at_one(self, series: PowerSeries) -> None:
        partial = math.fsum(series.coefficients(1000))
        missing = float(series.value(1.0)) - partial
        bound = series.tail_bound(1000, 1.0)
        assert missing <= bound <= missing + 1e-11 * float(series.value(1.0))

    @all_neural
    def test_the_degrees_asked_for_do_not_change_the_bits(self, series: PowerSeries) -> None:
        long = series.coefficients(700)
        for degree in (3, 63, 64, 200):
            np.testing.assert_array_equal(series.coefficients(degree), long[: degree + 1])

    def test_deep_networks_keep_their_bounds_useful(self) -> None:
        series = neural_tangent_series(20)
        partial = math.fsum(series.coefficients(500))
        assert series.tail_bound(500, 1.0) == pytest.approx(21.0 - partial, rel=1e-9)


class TestValues:
    @pytest.mark.parametrize(
        ("depth", "values"),
        [
            (1, (0.0, -0.0576688856, 0.3183098862, 0.9423311144, 1.6803287350, 2.0)),
            (2, (0.3183098862, 0.3438622463, 0.6857086363, 1.3514795611, 2.3688136627, 3.0)),
            (3, (0.6857086363, 0.7422493226, 1.0603881068, 1.7378446792, 2.9856931874, 4.0)),
            (5, (1.4303904972, 1.5071068020, 1.7921959668, 2.4628931325, 4.0608947406, 6.0)),
        ],
    )
    def test_table_of_the_tangent_kernel(self, depth: int, values: tuple[float, ...]) -> None:
        cosines = [-1.0, -0.5, 0.0, 0.5, 0.9, 1.0]
        computed = neural_tangent_series(depth).value(cosines)
        np.testing.assert_allclose(computed, values, atol=6e-11)

    @pytest.mark.parametrize("depth", [1, 2, 5])
    def test_at_one(self, depth: int) -> None:
        assert float(neural_tangent_series(depth).value(1.0)) == depth + 1
        assert float(neural_tangent_series(depth, False).value(1.0)) == depth / 2
        assert float(arc_cosine_series(0, depth).value(1.0)) == 1.0
        assert float(arc_cosine_series(1, depth).value(1.0)) == 1.0
        assert float(arc_cosine_series(2, depth).value(1.0)) == 3.0 ** (2**depth - 1)

    @pytest.mark.parametrize("depth", [1, 3])
    @pytest.mark.parametrize("order", [0, 1, 2])
    def test_arc_cosine_of_unit_rows(self, order: int, depth: int) -> None:
        cosines = np.linspace(-1.0, 1.0, 41)
        kernel = ArcCosine(order=order, depth=depth)
        np.testing.assert_allclose(
            kernel.power_series().value(cosines), kernel.profile(cosines), rtol=1e-12
        )

    @pytest.mark.parametrize("train_output", [True, False])
    @pytest.mark.parametrize(("weight", "bias"), [(2.0, 0.0), (1.4, 0.3), (2.5, 2.0)])
    @pytest.mark.parametrize("squared_norm", [1.0, 0.2, 7.0])
    def test_tangent_of_rows_of_one_length(
        self, train_output: bool, weight: float, bias: float, squared_norm: float
    ) -> None:
        kernel = NeuralTangent(3, train_output, weight, bias)
        cosines = np.linspace(-1.0, 1.0, 41)
        np.testing.assert_allclose(
            kernel.power_series(squared_norm).value(cosines),
            kernel.profile(cosines, squared_norm),
            rtol=1e-12,
            atol=1e-14,
        )

    def test_with_bias_the_series_is_in_the_cosine_of_the_augmented_rows(self) -> None:
        x, y = np.array([[0.6, 0.8]]), np.array([[1.0, 0.0]])
        kernel = NeuralTangent(depth=2, weight_variance=1.5, bias_variance=0.4)
        cosine = (0.75 * (x @ y.T) + 0.4) / (0.75 + 0.4)
        series = neural_tangent_series(2, True, 1.5, 0.4, 1.0)
        np.testing.assert_allclose(series.value(cosine), kernel(x, y), rtol=1e-13)

    def test_the_caller_s_decimal_precision_does_not_matter(self) -> None:
        parameters = (2, True, 1.37, 0.41, 1.9)
        value = float(neural_tangent_series(*parameters).value(0.3))
        coefficients = neural_tangent_series(*parameters).coefficients(9)
        _cached_table.cache_clear()
        with localcontext(prec=3):
            series = neural_tangent_series(*parameters)
            assert float(series.value(0.3)) == value
            np.testing.assert_array_equal(series.coefficients(9), coefficients)


class TestTails:
    @all_neural
    @given(degree=st.integers(0, 300), t=st.floats(0.01, 1.0))
    def test_not_below_the_sum_of_what_follows(
        self, series: PowerSeries, degree: int, t: float
    ) -> None:
        following = math.fsum(series.terms(1023, t)[degree + 1 :])
        assert series.tail_bound(degree, t) >= following * (1 - 1e-12)

    @all_neural
    def test_small_inside_the_disk(self, series: PowerSeries) -> None:
        # Roundings of the value must not hide how fast the tail falls, though they cost something.
        following = math.fsum(series.terms(1000, 0.5)[151:])
        bound = series.tail_bound(150, 0.5)
        assert following <= bound <= 2000 * following
        assert bound < 1e-40 * float(series.value(0.5))

    def test_next_to_one_the_value_is_rounded_up(self) -> None:
        # kappa_0 has an infinite slope at one, where a lost digit costs eight.
        series = arc_cosine_series(0, depth=3)
        for gap in (1e-16, 1e-15, 1e-12, 1e-9, 1e-6):
            t = 1.0 - gap
            following = math.fsum(series.terms(4000, t)[101:])
            assert series.tail_bound(100, t) >= following
            assert series.tail_bound(100, t) <= series.tail_bound(100, 1.0) + 1e-14


class TestConvergenceRate:
    @pytest.mark.parametrize(
        ("series", "rate"),
        [
            (neural_tangent_series(1, train_output=False), 1.5),
            (neural_tangent_series(1), 1.5),
            (neural_tangent_series(5), 1.5),
            (arc_cosine_series(0), 1.5),
            (arc_cosine_series(1), 2.5),
            (arc_cosine_series(2), 3.5),
            (arc_cosine_series(1, depth=3), 2.5),
            # kappa_0(kappa_0(t)) is one minus a fourth root at one.
            (arc_cosine_series(0, depth=2), 1.25),
        ],
        ids=repr,
    )
    def test_known_rates(self, series: PowerSeries, rate: float) -> None:
        assert series.convergence_rate() == pytest.approx(rate, abs=0.05)
        assert series.convergence_rate(0.8) == math.inf


class TestParameters:
    def test_deepest_of_order_2(self) -> None:
        assert float(arc_cosine_series(2, 9).value(1.0)) == pytest.approx(float(3**511))
        with pytest.raises(ValueError, match=r"depth=10 .* from 1 to 9"):
            arc_cosine_series(2, 10)

    def test_overflow(self) -> None:
        series = neural_tangent_series(5, weight_variance=1e80)
        with pytest.raises(ValueError, match=r"above the largest float64.*smaller depth, variance"):
            series.coefficients(3)
