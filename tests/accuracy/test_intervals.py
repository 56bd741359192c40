"""Intervals, and the checks of what they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from powersketch.accuracy import Interval
from powersketch.accuracy.intervals import checked_confidence
from powersketch.parameters import checked_fraction


def test_interval_knows_what_it_contains() -> None:
    interval = Interval(2.0, 1.0, 4.0)
    assert 1.0 in interval
    assert 4.0 in interval
    assert 0.999 not in interval
    assert 4.001 not in interval
    assert float(interval) == 2.0
    assert not interval.exact
    assert interval.to_dict() == {"value": 2.0, "low": 1.0, "high": 4.0}
    assert str(interval) == "2 [1, 4]"


def test_exact_interval_has_no_width() -> None:
    assert Interval(2.0, 2.0, 2.0).exact
    assert str(Interval(2.0, 2.0, 2.0)) == "2 [exact]"


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0, ValueError, "above 0"),
        (1.0, ValueError, "below 1"),
        (7, ValueError, "below 1"),
        (-0.5, ValueError, "above 0"),
        (float("nan"), ValueError, "finite"),
        (True, TypeError, "bool"),
        ("0.9", TypeError, "str"),
        (None, TypeError, "NoneType"),
    ],
)
def test_bad_probabilities_are_refused(value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        checked_confidence(value)
    with pytest.raises(error, match="share"):
        checked_fraction("share", value, remedy="0.5 is half")


def test_good_probabilities_become_floats() -> None:
    assert checked_confidence(0.9) == 0.9
