"""The named power series against exact fractions and their functional equations."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersketch.kernels.series import NAMED_SERIES, exponential_series

Coefficient = Callable[[int], Fraction]


def central_binomial(n: int) -> Fraction:
    return Fraction(math.comb(2 * n, n), 4**n)


EXACT: dict[str, Coefficient] = {
    "exp": lambda n: Fraction(1, math.factorial(n)),
    "cosh": lambda n: Fraction(1 - n % 2, math.factorial(n)),
    "sinh": lambda n: Fraction(n % 2, math.factorial(n)),
    "inverse": lambda n: Fraction(1),
    "inverse_sqrt": central_binomial,
    "log": lambda n: Fraction(1, n) if n else Fraction(0),
    "arcsin": lambda n: central_binomial(n // 2) / n if n % 2 else Fraction(0),
}
names = pytest.mark.parametrize("name", EXACT)
open_disks = pytest.mark.parametrize("name", ["inverse", "inverse_sqrt", "log"])


def exact_tails(name: str, t: float, degrees: list[int], last: int) -> list[float]:
    """Sum what follows each degree in 60 decimals, up to the last degree."""
    with localcontext(prec=60):
        tails, total, power = {}, Decimal(0), Decimal(t) ** last
        for degree in range(last, -1, -1):
            tails[degree] = total
            exact = EXACT[name](degree)
            total += power * exact.numerator / exact.denominator
            power /= Decimal(t)
        return [float(tails[degree]) for degree in degrees]


class TestCoefficients:
    def test_every_name_has_an_exact_formula(self) -> None:
        assert list(EXACT) == list(NAMED_SERIES)

    @names
    def test_rounded_once(self, name: str) -> None:
        half_unit = Fraction(1, 2**53) * (1 + Fraction(1, 10**20))
        smallest = Fraction(1, 2**1075)
        for degree, coefficient in enumerate(NAMED_SERIES[name].coefficients(400).tolist()):
            exact = EXACT[name](degree)
            assert abs(Fraction(coefficient) - exact) <= max(half_unit * exact, smallest)

    def test_relative_precision_at_high_degree(self) -> None:
        assert NAMED_SERIES["log"].coefficients(4096)[4096] == 1 / 4096
        assert NAMED_SERIES["inverse_sqrt"].coefficients(2000)[2000] == float(
            central_binomial(2000)
        )

    @given(scale=st.floats(1e-3, 200.0), degree=st.integers(0, 150))
    def test_exponential_with_scale(self, scale: float, degree: int) -> None:
        exact = float(Fraction(scale) ** degree / math.factorial(degree))
        assert exponential_series(scale).coefficients(degree)[degree] == exact

    def test_underflow_is_zero(self) -> None:
        coefficients = exponential_series(1e-3).coefficients(500)
        assert coefficients[50] > 0.0
        assert coefficients[500] == 0.0

    def test_overflow_is_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"coefficient \d+ of exp\(2000.0 t\) is above"):
            exponential_series(2000.0).coefficients(1000)

    def test_terms_without_overflow_of_coefficients(self) -> None:
        # The coefficients exceed float64, and the powers fall below it.
        terms = exponential_series(2000.0).terms(1500, 0.01)
        assert math.fsum(terms) == pytest.approx(math.exp(20.0), rel=1e-14)
        rescaled = exponential_series(1e-9).terms(100, 2e10)
        np.testing.assert_allclose(rescaled, exponential_series(1.0).terms(100, 20.0), rtol=1e-13)

    @pytest.mark.parametrize(
        ("scale", "error"),
        [(0.0, ValueError), (-1.0, ValueError), (np.inf, ValueError), (np.nan, ValueError)],
    )
    def test_refused_scales(self, scale: float, error: type[Exception]) -> None:
        with pytest.raises(error, match=r"scale=.* above 0"):
            exponential_series(scale)
        with pytest.raises(TypeError, match="scale='1' is a str"):
            exponential_series("1")  # type: ignore[arg-type]


class TestValues:
    def test_closed_forms(self) -> None:
        t = np.linspace(-0.9, 0.9, 19)
        for name, expected in {
            "exp": np.exp(t),
            "cosh": (np.exp(t) + np.exp(-t)) / 2,
            "sinh": (np.exp(t) - np.exp(-t)) / 2,
            "inverse": 1 / (1 - t),
            "inverse_sqrt": (1 - t) ** -0.5,
            "log": -np.log(1 - t),
            "arcsin": np.arcsin(t),
        }.items():
            values = NAMED_SERIES[name].value(t)
            np.testing.assert_allclose(values, expected, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(exponential_series(3.0).value(t), np.exp(t) ** 3, rtol=1e-14)

    def test_disks(self) -> None:
        for name in ("exp", "cosh", "sinh"):
            assert NAMED_SERIES[name].radius == math.inf
        for name in ("inverse", "inverse_sqrt", "log", "arcsin"):
            assert NAMED_SERIES[name].radius == 1.0
        assert [name for name, series in NAMED_SERIES.items() if series.closed] == ["arcsin"]

    @open_disks
    def test_not_at_the_radius(self, name: str) -> None:
        with pytest.raises(ValueError, match=r"t=1 is outside .*less than the radius 1"):
            NAMED_SERIES[name].value(1.0)
        with pytest.raises(ValueError, match=r"less than the radius 1"):
            NAMED_SERIES[name].tail_bound(3, 1.0)

    def test_overflow(self) -> None:
        with pytest.raises(ValueError, match=r"exp is above the largest float64 at t=1000"):
            NAMED_SERIES["exp"].value([0.0, 1000.0])


class TestTails:
    @names
    @pytest.mark.parametrize("t", [1e-6, 0.5, 0.97])
    def test_tight_above_the_exact_tail(self, name: str, t: float) -> None:
        degrees = [0, 1, 2, 3, 4, 5, 10, 11, 40, 41, 100]
        tails = exact_tails(name, t, degrees, last=1500)
        value = float(NAMED_SERIES[name].value(t))
        for degree, exact in zip(degrees, tails, strict=True):
            bound = NAMED_SERIES[name].tail_bound(degree, t)
            assert bound >= exact
            # The difference to the partial sum is precise up to roundings of the value, and
            # without that, the geometric series is.
            assert bound <= exact + (5 * degree + 50) * 2.0**-53 * value
            assert bound <= 1.01 * exact / (1 - t) + 1e-300

    @pytest.mark.parametrize(
        ("name", "t"), [("exp", 5.0), ("exp", 500.0), ("cosh", 60.0), ("sinh", 60.0)]
    )
    def test_entire_functions_far_out(self, name: str, t: float) -> None:
        series = NAMED_SERIES[name]
        degrees = [0, 10, int(t), int(1.5 * t), int(3 * t), int(5 * t)]
        for degree, exact in zip(
            degrees, exact_tails(name, t, degrees, int(5 * t) + 100), strict=True
        ):
            bound = series.tail_bound(degree, t)
            assert exact <= bound <= exact * 1.01 + 1e-12 * float(series.value(t))
            if degree >= 3 * t:
                assert bound <= 2 * exact + 1e-307

    @given(q=st.integers(0, 300), t=st.floats(1e-3, 0.999))
    def test_geometric_series_is_exact(self, q: int, t: float) -> None:
        exact = Fraction(t) ** (q + 1) / (1 - Fraction(t))
        bound = Fraction(NAMED_SERIES["inverse"].tail_bound(q, t))
        assert exact <= bound
        assert bound <= exact * (1 + Fraction(1, 10**15)) + Fraction(1, 10**307)

    @given(q=st.integers(0, 60), scale=st.floats(0.01, 30.0), t=st.floats(0.01, 3.0))
    def test_exponential_with_scale(self, q: int, scale: float, t: float) -> None:
        with localcontext(prec=60, rounding=ROUND_DOWN):
            x = Decimal(scale) * Decimal(t)
            term, below = Decimal(1), Decimal(0)
            for n in range(1, q + 300):
                term *= x / n
                if n > q:
                    below += term
        assert Decimal(exponential_series(scale).tail_bound(q, t)) >= below

    @given(scale=st.floats(0.1, 7.0), x=st.floats(300.0, 700.0))
    def test_rounding_of_a_large_argument(self, scale: float, x: float) -> None:
        t = x / scale
        with localcontext(prec=40):
            exact = (Decimal(scale) * Decimal(t)).exp() - 1
        assert Decimal(exponential_series(scale).tail_bound(0, t)) >= exact

    @pytest.mark.parametrize("degree", [1, 2, 9, 100, 1001, 4000])
    def test_arcsin_at_the_radius(self, degree: int) -> None:
        partial = sum(float(EXACT["arcsin"](n)) for n in range(degree, 0, -1))
        tail = NAMED_SERIES["arcsin"].tail_bound(degree, 1.0)
        assert tail == pytest.approx(math.pi / 2 - partial, abs=2e-12)
        # C_l falls like sqrt(2 / pi) l^(-3/2) on odd l.
        assert tail == pytest.approx(math.sqrt(2 / math.pi / degree), rel=1.0 / degree)


class TestConvergenceRate:
    @pytest.mark.parametrize(
        ("name", "rate"), [("inverse", 0.0), ("inverse_sqrt", 0.5), ("log", 1.0), ("arcsin", 1.5)]
    )
    def test_inside_the_disk_and_next_to_its_edge(self, name: str, rate: float) -> None:
        series = NAMED_SERIES[name]
        assert series.convergence_rate(1.0 - 1e-9) == pytest.approx(rate, abs=0.02)
        assert series.convergence_rate(0.9) == math.inf
        assert series.convergence_rate(0.0) == math.inf

    @pytest.mark.parametrize("name", ["exp", "cosh", "sinh"])
    @pytest.mark.parametrize("t", [0.1, 1.0, 100.0])
    def test_entire_functions(self, name: str, t: float) -> None:
        assert NAMED_SERIES[name].convergence_rate(t) == math.inf
