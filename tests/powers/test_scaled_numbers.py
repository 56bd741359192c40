"""Scaled numbers against decimal arithmetic of sixty digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersketch.powers import Scaled, ascending_powers

HALF_ULP = Decimal(2) ** -53  # the largest relative error of one rounding
NOTHING = Decimal(10) ** -55  # what the decimal arithmetic itself rounds

numbers = st.floats(1e-300, 1e300) | st.floats(-1e300, -1e-300)
positive = st.floats(1e-300, 1e300)


@pytest.fixture(autouse=True, scope="module")
def sixty_digits() -> Iterator[None]:
    with localcontext(prec=60, Emax=10**9, Emin=-(10**9)):
        yield


def scaled(value: float) -> Scaled:
    return Scaled.of(np.array([value]))


def decimal(number: Scaled) -> Decimal:
    exponent = int(np.ravel(number.exponent)[0])
    return Decimal(float(np.ravel(number.mantissa)[0])) * Decimal(2) ** exponent


def relative_error(actual: Scaled, expected: Decimal) -> Decimal:
    return abs(decimal(actual) / expected - 1)


@given(value=numbers)
def test_splits_without_loss(value: float) -> None:
    number = scaled(value)
    assert 0.5 <= abs(number.mantissa[0]) < 1
    assert relative_error(number, Decimal(value)) < NOTHING
    assert number.to_float()[0] == value


@given(value=numbers, degree=st.integers(1, 1024))
def test_powers(value: float, degree: int) -> None:
    """Every factor carries its roundings: the error is at most (degree − 1) half ulps."""
    power = scaled(value).power(degree)
    assert 0.5 <= abs(power.mantissa[0]) < 1
    assert relative_error(power, Decimal(value) ** degree) <= degree * HALF_ULP


@given(value=numbers, degree=st.integers(1, 64))
def test_powers_of_products_of_four(value: float, degree: int) -> None:
    product = scaled(value) * scaled(value) * scaled(value) * scaled(value)
    expected = Decimal(value) ** (4 * degree)
    assert relative_error(product.power(16 * degree), expected**16) <= 64 * degree * HALF_ULP


@given(value=numbers, degrees=st.sets(st.integers(0, 1024), max_size=30))
def test_ascending_powers(value: float, degrees: set[int]) -> None:
    """Joining two powers rounds once more: one half ulp for every degree in the list."""
    powers = ascending_powers(scaled(value), sorted(degrees))
    for degree, power in zip(sorted(degrees), powers, strict=True):
        assert 0.5 <= abs(power.mantissa[0]) < 1
        error = relative_error(power, Decimal(value) ** degree)
        assert error <= (degree + len(degrees)) * HALF_ULP


@given(left=numbers, right=numbers)
def test_products(left: float, right: float) -> None:
    product = scaled(left) * scaled(right)
    assert relative_error(product, Decimal(left) * Decimal(right)) <= HALF_ULP


@given(left=positive, right=positive)
def test_square_roots(left: float, right: float) -> None:
    assert relative_error(scaled(left).sqrt(), Decimal(left).sqrt()) <= HALF_ULP
    product = scaled(left) * scaled(right)
    assert relative_error(product.sqrt(), decimal(product).sqrt()) <= HALF_ULP


@given(value=st.integers(0, 2**3000) | st.integers(1, 2**70))
def test_integers(value: int) -> None:
    """The nearest double up to 64 bits, beyond that one with 2⁻¹⁰ of a half ulp more error."""
    number = Scaled.of_integer(value)
    if value < 2**64:
        assert float(number.to_float()) == float(value)
    else:
        assert relative_error(number, Decimal(value)) <= HALF_ULP * (1 + Decimal(2) ** -10)


@given(value=numbers, exponent=st.integers(-(10**6), 10**6))
def test_powers_of_two_are_exact(value: float, exponent: int) -> None:
    shifted = scaled(value).times_power_of_two(np.array([exponent]))
    assert relative_error(shifted, Decimal(value) * Decimal(2) ** exponent) < NOTHING


@given(left=numbers, right=numbers)
def test_normalising_changes_no_value(left: float, right: float) -> None:
    product = scaled(left) * scaled(right)
    normal = product.normalised()
    assert 0.5 <= abs(normal.mantissa[0]) < 1
    assert relative_error(normal, decimal(product)) < NOTHING


def test_zero_stays_zero() -> None:
    zero = scaled(0.0)
    for result in (zero.power(1024), zero.sqrt(), zero * scaled(1e300), Scaled.of_integer(0)):
        assert np.ravel(result.to_float())[0] == 0.0


def test_power_zero_is_one() -> None:
    np.testing.assert_array_equal(scaled(1e300).power(0).to_float(), 1.0)


@pytest.mark.parametrize("value", [1e-300, 0.3, 1 - 1e-16, 1.0, 3.7, 1e300])
def test_a_power_can_be_undone(value: float) -> None:
    """x^1024 by x^-1024 is one, although neither need be an ordinary number."""
    product = scaled(value).power(1024) * scaled(1 / value).power(1024)
    np.testing.assert_allclose(product.to_float(), 1.0, rtol=2048 * 2.0**-53)


def test_what_double_precision_cannot_hold_is_zero_or_infinite() -> None:
    """Without a warning."""
    values = np.array([1e-300, -1e-300, 1e300, -1e300])
    powers = Scaled.of(values).power(1023).to_float()
    np.testing.assert_array_equal(powers, [0.0, -0.0, np.inf, -np.inf])


def test_arrays_are_treated_entry_by_entry() -> None:
    values = np.array([[1.5, -2.0, 0.0], [3.0, 1e-5, 7.0]])
    np.testing.assert_allclose(Scaled.of(values).power(5).to_float(), values**5, rtol=1e-15)


def test_fixed_bits() -> None:
    power = scaled(0.1).power(1000)
    assert (float(power.mantissa[0]).hex(), int(power.exponent[0])) == (
        "0x1.0d152311515bfp-1",
        -3321,
    )


@given(value=numbers)
def test_inverses(value: float) -> None:
    inverse = scaled(value).inverse()
    assert 0.5 <= abs(inverse.mantissa[0]) < 1
    assert relative_error(inverse, 1 / Decimal(value)) <= HALF_ULP
    product = scaled(value) * scaled(value)
    assert relative_error(product.inverse(), 1 / decimal(product)) <= HALF_ULP


@pytest.mark.parametrize("degree", [3, 64, 1024])
def test_inverses_of_powers_that_no_double_holds(degree: int) -> None:
    power = scaled(1e-300).power(degree)
    assert relative_error(power.inverse(), 1 / decimal(power)) <= HALF_ULP


@given(value=st.floats(-1e6, 1e6) | st.floats(-1.0, 1.0) | st.floats(-1e-300, 1e-300))
def test_exponentials(value: float) -> None:
    """A few units in the last place over all arguments for which the mantissa means anything."""
    result = Scaled.exp(np.array([value]))
    assert 0.5 <= result.mantissa[0] < 1
    assert relative_error(result, Decimal(value).exp()) <= 4 * HALF_ULP


@pytest.mark.parametrize(
    "value", [-1e6, -745.2, -0.5 * np.log(2), 0.0, 0.5 * np.log(2), 709.7, 1e6]
)
def test_exponentials_at_the_edges(value: float) -> None:
    """Where the exponent of two changes, where double precision ends, and far beyond."""
    for argument in (np.nextafter(value, -np.inf), value, np.nextafter(value, np.inf)):
        result = Scaled.exp(np.array([argument]))
        assert relative_error(result, Decimal(float(argument)).exp()) <= 4 * HALF_ULP


def test_exponentials_are_those_of_the_platform() -> None:
    values = np.linspace(-740.0, 700.0, 2001)
    np.testing.assert_allclose(Scaled.exp(values).to_float(), np.exp(values), rtol=1e-15)
    assert Scaled.exp(np.zeros(1)).to_float()[0] == 1.0


@pytest.mark.parametrize("value", [-1e9, -1e15, -1e40, -1e100, -1e300])
def test_exponentials_of_what_is_far_below(value: float) -> None:
    """Zero, without a warning."""
    assert Scaled.exp(np.array([value])).to_float()[0] == 0.0


def test_fixed_bits_of_an_exponential() -> None:
    number = Scaled.exp(np.array([-1234.5]))
    assert (float(number.mantissa[0]).hex(), int(number.exponent[0])) == (
        "0x1.fd830baad993dp-1",
        -1781,
    )


@pytest.mark.parametrize(
    ("n", "k"),
    [(5, 2), (4096, 2000), (5000, 0), (5000, 1), (5000, 5000), (5000, 2500), (10**6, 4000)],
)
def test_binomial_coefficients(n: int, k: int) -> None:
    """Beyond 4096 they are products of rounded ratios."""
    binomial, exact = Scaled.binomial(n, k).normalised(), Scaled.of_integer(math.comb(n, k))
    exact = exact.normalised()
    assert binomial.exponent == exact.exponent
    assert float(binomial.mantissa) == pytest.approx(float(exact.mantissa), rel=1e-13)


def test_sums_of_numbers_of_any_size() -> None:
    numbers = Scaled(
        np.array([[0.5, 0.0, 0.0], [0.75, 0.5, 0.0]]),
        np.array([[-5000, 7000, 0], [-5001, -9000, 0]]),
    )
    total = numbers.sum()
    np.testing.assert_array_equal(total.mantissa, [0.875, 0.5, 0.0])
    np.testing.assert_array_equal(total.exponent[:2], [-5000, -9000])


def test_ascending_powers_are_products_one_by_one() -> None:
    """To the bit, also for more degrees than mantissas can be multiplied as they are."""
    base, degrees = Scaled.of(np.array([0.7, -0.3, 1.9])), [*range(1500), 2000, 2001]
    current, last = base.power(0), 0
    for degree, power in zip(degrees, ascending_powers(base, degrees), strict=True):
        current = (current * base.power(degree - last)).normalised()
        np.testing.assert_array_equal(power.mantissa, current.mantissa)
        np.testing.assert_array_equal(power.exponent, current.exponent)
        last = degree
