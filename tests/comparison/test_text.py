"""Numbers and comparisons as text."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from powersketch.pages import number_text
from tests.comparison.synthetic import FAST, LARGE, MADE


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.0, "0"),
        (0.00123456, "0.00123"),
        (999.9, "1000"),
        (123456.0, "123000"),
        (math.inf, "∞"),
        (math.nan, "–"),
        (-1.5, "−1.5"),
        (1.5e-7, "1.5 × 10⁻⁷"),
    ],
)
def test_numbers_are_readable(number: float, shown: str) -> None:
    assert number_text(number) == shown


def test_the_table_has_every_measurement_in_order() -> None:
    lines = MADE.table().splitlines()
    assert repr(MADE) == MADE.table()
    assert lines[0].startswith("Polynomial(degree=2) on 1000 × 5: fitted on 100 rows")
    assert [line.split()[:2] for line in lines[3:6]] == [
        ["64", "exact"],
        ["64", "fast"],
        ["128", "fast"],
    ]
    assert "0.4 ± 0.01" in lines[4]
    assert "0.5 … 2" in lines[4]
    assert "broken with 64 components failed: it broke" in lines
    assert lines[-1] == "The exact kernel of the measured rows takes 250 ms and 78.1 KiB."


def test_warnings_are_told_once_for_all_sizes() -> None:
    warned = [replace(each, warnings=("too few rows",)) for each in (FAST, LARGE)]
    lines = replace(MADE, measurements=tuple(warned)).table().splitlines()
    assert "fast with 64, 128 components warned: too few rows" in lines
    assert "warned" not in MADE.table()
