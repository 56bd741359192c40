"""Numbers that are known to lie between two others, and the parameters that such claims need."""

from __future__ import annotations

from dataclasses import dataclass

from powersketch.parameters import checked_fraction


@dataclass(frozen=True)
class Interval:
    """A measured value and the bounds within which the true one lies.

    Parameters
    ----------
    value : float
        What was measured.
    low, high : float
        The bounds; equal to the value where it is exact.

    Examples
    --------
    >>> from powersketch.accuracy import Interval
    >>> interval = Interval(0.05, 0.045, 0.056)
    >>> print(interval)
    0.05 [0.045, 0.056]
    >>> 0.05 in interval, interval.exact, float(interval)
    (True, False, 0.05)
    """

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the value is the true one, but for rounding errors."""
        return self.low == self.high

    def to_dict(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return {"value": self.value, "low": self.low, "high": self.high}

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        bounds = "exact" if self.exact else f"{self.low:.3g}, {self.high:.3g}"
        return f"{self.value:.3g} [{bounds}]"


def checked_confidence(confidence: object) -> float:
    """Return the probability with which an interval is to contain the true value."""
    return checked_fraction("confidence", confidence, remedy="0.99 is the default")
