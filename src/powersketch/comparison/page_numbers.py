"""Numbers as people read them."""

from __future__ import annotations

import math
import re

MISSING = "–"

# Whole numbers are degrees, depths and sizes, which are not rounded.
_DECIMAL = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+")
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable(number: float) -> str:
    """Return a number with three significant digits.

    Examples
    --------
    >>> from powersketch.comparison.page_numbers import readable
    >>> [readable(number) for number in (0.012345, 1.0, 1234567.0, -2e-9)]
    ['0.0123', '1', '1.23 × 10⁶', '−2 × 10⁻⁹']
    """
    if math.isnan(number):
        return MISSING
    sign = "−" if number < 0.0 else ""
    size = abs(number)
    if math.isinf(size):
        return f"{sign}∞"
    if size == 0.0:
        return "0"
    digits, exponent = f"{size:.2e}".split("e")
    if not -4 <= int(exponent) <= 5:
        return f"{sign}{_without_zeros(digits)} × {_power_of_ten(int(exponent))}"
    rounded = float(f"{digits}e{exponent}")
    return sign + _without_zeros(f"{rounded:.{max(0, 2 - int(exponent))}f}")


def with_spread(number: float, spread: float) -> str:
    """Return a number and how far it spreads, in the same unit as the number.

    Examples
    --------
    >>> from powersketch.comparison.page_numbers import with_spread
    >>> with_spread(0.25, 0.0512), with_spread(0.25, 0.0)
    ('0.25 ± 0.051', '0.25')
    """
    if not (math.isfinite(spread) and spread > 0.0):
        return readable(number)
    return f"{readable(number)} ± {readable(float(f'{spread:.1e}'))}"


def with_short_numbers(content: str) -> str:
    """Return a text in which no decimal number has more than four digits.

    Examples
    --------
    >>> from powersketch.comparison.page_numbers import with_short_numbers
    >>> with_short_numbers("Gaussian(gamma=0.012345678901234567), degree=123456")
    'Gaussian(gamma=0.01235), degree=123456'
    """
    return _DECIMAL.sub(lambda found: _shortest(found.group()), content)


def _shortest(digits: str) -> str:
    rounded = f"{float(digits):.4g}"
    return rounded if len(rounded) < len(digits) and float(rounded) != float(digits) else digits


def short(number: float) -> str:
    """Return a round number in the few letters that fit beside an axis.

    Examples
    --------
    >>> from powersketch.comparison.page_numbers import short
    >>> [short(number) for number in (0.001, 50.0, 1e-5, 2e7)]
    ['0.001', '50', '10⁻⁵', '2·10⁷']
    """
    if 1e-3 <= number < 1e5:
        return readable(number)
    digits, exponent = f"{number:.0e}".split("e")
    power = _power_of_ten(int(exponent))
    return power if digits == "1" else f"{digits}·{power}"


def _power_of_ten(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def _without_zeros(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
