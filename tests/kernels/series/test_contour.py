"""Coefficients of callables, from circles in the complex plane, against known ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.kernels.series import NAMED_SERIES, callable_series
from tests.kernels.kernel_cases import arc_cosine_series


class Case(NamedTuple):
    name: str
    function: Callable[[Any], Any]
    coefficients: list[float]
    radius: float = 1.0


def kappa_1(t: NDArray[Any]) -> NDArray[Any]:
    return (np.sqrt(1 - t) * np.sqrt(1 + t) + t * (np.pi - np.arccos(t))) / np.pi


def cos_on_real_and_exp_on_complex(t: NDArray[Any]) -> NDArray[Any]:
    return np.exp(1j * t) if np.iscomplexobj(t) else np.cos(t)


def cosh_on_real_and_exp_on_complex(t: NDArray[Any]) -> NDArray[Any]:
    return np.exp(t) if np.iscomplexobj(t) else np.cosh(t)


def exp_on_real_only(t: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.imag(t) == 0.0, np.exp(t), np.nan)


def factorial_series(scale: float, size: int) -> list[float]:
    return [math.exp(n * math.log(scale) - math.lgamma(n + 1)) for n in range(size)]


CASES = [
    Case("exp", np.exp, [1 / math.factorial(n) for n in range(171)]),
    Case("exp of radius 0.01", np.exp, [1 / math.factorial(n) for n in range(100)], 0.01),
    Case("exp of radius 50", np.exp, [1 / math.factorial(n) for n in range(160)], 50.0),
    Case("exp of radius 600", np.exp, [1 / math.factorial(n) for n in range(100)], 600.0),
    Case("cosh", np.cosh, [(1 - n % 2) / math.factorial(n) for n in range(171)]),
    Case("far pole", lambda t: 1 / (2 - t), [2.0 ** -(n + 1) for n in range(500)]),
    Case("near pole", lambda t: 1 / (1.01 - t), [1.01 ** -(n + 1) for n in range(4097)]),
    Case("polynomial", lambda t: (1 + t) ** 10, [float(math.comb(10, n)) for n in range(30)]),
    Case("odd polynomial", lambda t: t**3 + t, [0.0, 1.0, 0.0, 1.0, *[0.0] * 50]),
    Case("constant", lambda t: np.full(t.shape, 2.5), [2.5, *[0.0] * 50]),
    Case("zero", lambda t: 0 * t, [0.0] * 50),
    Case("geometric", lambda t: 1 / (1 - t), [1.0] * 2000, 0.99),
    Case("arcsin", np.arcsin, NAMED_SERIES["arcsin"].coefficients(4096).tolist()),
    Case("kappa_1", kappa_1, arc_cosine_series(1).coefficients(4096).tolist()),
    Case("tiny", lambda t: 1e-200 * np.exp(t), [1e-200 / math.factorial(n) for n in range(40)]),
    Case("huge", lambda t: 1e200 * np.exp(t), [1e200 / math.factorial(n) for n in range(40)]),
    Case("steep", lambda t: np.exp(100 * t), factorial_series(100.0, 300)),
]
cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def scaled(case: Case) -> NDArray[np.float64]:
    """The exact C_l R^n, which the powers alone may leave float64 on the way to."""
    degrees = np.arange(len(case.coefficients))
    with np.errstate(divide="ignore"):
        logarithms = np.log(case.coefficients) + degrees * math.log(case.radius)
    exact: NDArray[np.float64] = np.exp(logarithms)
    return exact


class TestCoefficients:
    @cases
    def test_as_precise_as_promised(self, case: Case) -> None:
        series = callable_series(case.function, case.radius)
        exact, degree = scaled(case), len(case.coefficients) - 1
        error = np.abs(series.terms(degree, case.radius) - exact)
        value = float(series.value(case.radius))
        assert error.max() <= 1e-13 * value
        # The expected numbers are rounded too.
        assert (error <= series.coefficient_error(degree) + 1e-12 * exact).all()

    @cases
    def test_promises_enough(self, case: Case) -> None:
        series = callable_series(case.function, case.radius)
        value = float(series.value(case.radius))
        assert (series.coefficient_error(1000) <= 1.5e-13 * value).all()

    def test_what_is_below_the_error_is_zero(self) -> None:
        np.testing.assert_array_equal(callable_series(np.sinh).coefficients(100)[::2], 0.0)
        np.testing.assert_array_equal(callable_series(np.arcsin).coefficients(4096)[::2], 0.0)

    def test_high_degrees(self) -> None:
        far, edge = callable_series(np.exp), callable_series(np.arcsin)
        np.testing.assert_array_equal(far.coefficients(10_000)[200:], 0.0)
        with pytest.raises(ValueError, match=r"degree=4097 .* known up to 4096"):
            edge.coefficients(4097)

    def test_singularity_removed(self) -> None:
        series = callable_series(lambda t: np.expm1(t) / t)
        expected = [1 / math.factorial(n + 1) for n in range(20)]
        np.testing.assert_allclose(series.coefficients(19), expected, atol=1e-15)
        with pytest.raises(ValueError, match="is nan at t=0"):
            series.value(0.0)


class TestTails:
    @cases
    def test_bounds_what_follows(self, case: Case) -> None:
        series = callable_series(case.function, case.radius)
        exact = scaled(case)
        for share in (0.1, 0.6, 0.95, 1.0):
            terms = exact * share ** np.arange(exact.size)
            for degree in (0, 1, 5, 20, 49):
                following = math.fsum(terms[degree + 1 :])
                bound = series.tail_bound(degree, share * case.radius)
                assert bound >= following * (1 - 1e-12)
                value = float(series.value(case.radius))
                missing = max(value - math.fsum(exact), 0.0)
                assert bound <= 1.0001 * following + missing + 1e-11 * value

    def test_errors_of_the_coefficients_count(self) -> None:
        series = callable_series(np.arcsin)
        terms = series.terms(400, 1.0)
        errors = math.fsum(series.coefficient_error(400)[terms > 0.0])
        assert series.tail_bound(400, 1.0) >= math.pi / 2 - math.fsum(terms) + 0.99 * errors

    def test_errors_that_add_up_do_not_raise_the_bound(self) -> None:
        series = callable_series(np.exp, radius=50.0)
        bounds = [series.tail_bound(degree, 50.0) for degree in range(150, 4000, 350)]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[0] < 1e-11 * math.exp(50.0)

    def test_degree_for(self) -> None:
        assert callable_series(np.exp, 4.0).degree_for(1e-6, 4.0) == 17
        assert callable_series(lambda t: 1 / (2 - t)).degree_for(1e-9, 1.0) == 29

    def test_rates(self) -> None:
        assert callable_series(np.arcsin).convergence_rate() == pytest.approx(1.5, abs=0.05)
        assert callable_series(kappa_1).convergence_rate() == pytest.approx(2.5, abs=0.05)
        assert callable_series(np.exp).convergence_rate() == math.inf
        assert callable_series(lambda t: 1 / (1.5 - t)).convergence_rate() == math.inf


class TestNotPositiveDefinite:
    @pytest.mark.parametrize(
        ("function", "coefficient"),
        [
            (np.cos, "2 of cos is -0.5"),
            (np.tanh, "3 of tanh is -0.33333"),
            (lambda t: np.exp(-t), "1 of <lambda> is -1"),
            (lambda t: 1 - t, "1 of <lambda> is -1"),
            (lambda t: -np.exp(t), "0 of <lambda> is -1"),
            (lambda t: np.exp(t) - 1e-9 * t**7 / 5040 - t**7 / 5040, "7 of <lambda> is -1.98"),
            (np.arctan, "3 of arctan is -0.33333"),
        ],
    )
    def test_refused(self, function: Any, coefficient: str) -> None:
        with pytest.raises(
            ValueError, match=f"coefficient {coefficient}.*: the kernel is not positive definite"
        ):
            callable_series(function, radius=0.9)

    def test_a_negative_coefficient_below_the_error_is_none(self) -> None:
        series = callable_series(lambda t: np.exp(t) - 1e-15 - 1.0)
        assert series.coefficients(0)[0] == 0.0


class TestNotAnalytic:
    @pytest.mark.parametrize(
        ("function", "reason"),
        [
            (np.abs, "give different coefficients, so that it is not analytic"),
            (np.sign, "give different coefficients"),
            (lambda t: 1 / t, "singularity"),
            (np.conj, "singularity"),
            (np.real, "singularity"),
            (lambda t: np.exp(np.real(t)), "singularity"),
            (lambda t: np.exp(1 / (t + 5e-2)), "singularity"),
            (lambda t: np.cbrt(np.abs(t)) ** 4, "different coefficients"),
            (exp_on_real_only, r"not finite on the circle \|t\| = 0.9997"),
            (cos_on_real_and_exp_on_complex, "coefficients are not real"),
            (cosh_on_real_and_exp_on_complex, "real and for complex numbers do not agree"),
        ],
    )
    def test_refused_with_the_reason(self, function: Any, reason: str) -> None:
        with pytest.raises(ValueError, match=rf"not the sum of a power .* \|t\| < 1: .*{reason}"):
            callable_series(function)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (np.sqrt, r"sqrt is nan at t=-1; .*analytic, which sqrt, log and 1/t are not at 0"),
            (np.log, r"log is nan at t=-1; .*analytic"),
            (lambda t: 1 / (1 - t), r"is inf at t=1; .*finite"),
            (lambda t: 1 / (0.5 - t), r"is inf at t=0.5"),
            (lambda t: t * np.nan, r"is nan at t=-1"),
        ],
    )
    def test_not_finite(self, function: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            callable_series(function)


class TestUnfitCallables:
    @pytest.mark.parametrize(
        "function", [math.exp, math.cosh, lambda t: np.exp(np.asarray(t, float))]
    )
    def test_complex_arrays_are_needed(self, function: Any) -> None:
        with pytest.raises(TypeError, match=r"cannot be called with .*complex NumPy.*numpy.exp"):
            callable_series(function)

    def test_wrong_shape(self) -> None:
        with pytest.raises(ValueError, match=r"returns shape \(\) for shape \(4,\)"):
            callable_series(lambda t: 1.0)

    def test_complex_for_real(self) -> None:
        with pytest.raises(TypeError, match="returns complex128 for real numbers"):
            callable_series(lambda t: t + 0j)

    def test_no_numbers(self) -> None:
        with pytest.raises(TypeError, match="returns <U1; it must return numbers"):
            callable_series(lambda t: np.full(t.shape, "a"))

    def test_errors_of_the_callable(self) -> None:
        def failing(t: Any) -> Any:
            raise KeyError("no such thing")

        with pytest.raises(ValueError, match=r"failing raises KeyError .*no such thing") as caught:
            callable_series(failing)
        assert isinstance(caught.value.__cause__, KeyError)

    @pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
    def test_radius(self, radius: float) -> None:
        with pytest.raises(ValueError, match=r"radius=.* above 0"):
            callable_series(np.exp, radius)
