"""Times and amounts of memory as people write them."""

from __future__ import annotations

import math

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_AMOUNTS = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def seconds_text(seconds: float) -> str:
    """Return a time with three digits.

    Examples
    --------
    >>> from powersketch.comparison.units import seconds_text
    >>> [seconds_text(seconds) for seconds in (0.01234, 75.0, 1234.0)]
    ['12.3 ms', '75 s', '1234 s']
    """
    return _with_unit(seconds, _TIMES)


def bytes_text(amount: float) -> str:
    """Return an amount of memory with three digits.

    Examples
    --------
    >>> from powersketch.comparison.units import bytes_text
    >>> [bytes_text(amount) for amount in (0, 1000, 5 * 2**20)]
    ['0 B', '1000 B', '5 MiB']
    """
    return _with_unit(amount, _AMOUNTS)


def _with_unit(value: float, units: tuple[tuple[float, str], ...]) -> str:
    if not math.isfinite(value):
        return "–"
    size, unit = next((pair for pair in units if value >= pair[0]), units[-1])
    shown = value / size
    return f"{shown:.0f} {unit}" if shown >= 100 else f"{shown:.3g} {unit}"
