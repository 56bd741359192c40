"""Numbers for people: few digits, units, signs that are read at a glance."""

from __future__ import annotations

import math

MISSING = "–"

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_AMOUNTS = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(number: float) -> str:
    """Return a number with three significant digits.

    Examples
    --------
    >>> from powersketch.pages import number_text
    >>> [number_text(number) for number in (0.012345, 1.0, 1234567.0, -2e-9)]
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


def spread_text(number: float, spread: float) -> str:
    """Return a number and how far it spreads, in the same unit as the number.

    Examples
    --------
    >>> from powersketch.pages import spread_text
    >>> spread_text(0.25, 0.0512), spread_text(0.25, 0.0)
    ('0.25 ± 0.051', '0.25')
    """
    if not (math.isfinite(spread) and spread > 0.0):
        return number_text(number)
    return f"{number_text(number)} ± {number_text(float(f'{spread:.1e}'))}"


def tick_text(number: float) -> str:
    """Return a round number in the few letters that fit beside an axis.

    Examples
    --------
    >>> from powersketch.pages import tick_text
    >>> [tick_text(number) for number in (0.001, 50.0, 1e-5, 2e7)]
    ['0.001', '50', '10⁻⁵', '2·10⁷']
    """
    if 1e-3 <= number < 1e5:
        return number_text(number)
    digits, exponent = f"{number:.0e}".split("e")
    power = _power_of_ten(int(exponent))
    return power if digits == "1" else f"{digits}·{power}"


def seconds_text(seconds: float) -> str:
    """Return a time with three digits.

    Examples
    --------
    >>> from powersketch.pages import seconds_text
    >>> [seconds_text(seconds) for seconds in (0.01234, 75.0, 1234.0)]
    ['12.3 ms', '75 s', '1234 s']
    """
    return _with_unit(seconds, _TIMES)


def bytes_text(amount: float) -> str:
    """Return an amount of memory with three digits.

    Examples
    --------
    >>> from powersketch.pages import bytes_text
    >>> [bytes_text(amount) for amount in (0, 1000, 5 * 2**20)]
    ['0 B', '1000 B', '5 MiB']
    """
    return _with_unit(amount, _AMOUNTS)


def _with_unit(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return MISSING
    size, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    shown = value / size
    return f"{shown:.0f} {unit}" if shown >= 100 else f"{shown:.3g} {unit}"


def _power_of_ten(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def _without_zeros(digits: str) -> str:
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
