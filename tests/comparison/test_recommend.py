"""The best method for a budget."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.comparison.synthetic import FAST, MADE


def test_the_best_is_the_most_accurate_within_the_budget() -> None:
    best = MADE.best()
    assert (best.method, best.n_components, best.error) == ("exact", 64, 0.1)
    sentence = "exact with 64 components has the smallest relative Frobenius error, 0.1, of"
    assert best.reason == f"{sentence} the 3 measured."
    assert MADE.best(norm="operator").method == "fast"
    assert MADE.best(norm="operator").n_components == 128
    # 1000 rows take ten times as long as the 100 measured ones: 1, 5 and 2 seconds.
    assert MADE.best(transform_seconds=2.0).n_components == 128
    limited = MADE.best(transform_seconds=1.5)
    assert (limited.method, limited.n_components) == ("fast", 64)
    assert limited.reason.endswith("of the 1 measured within 1.5 s for 1000 rows.")
    # Likewise 10050, 90010 and 20090 bytes.
    assert MADE.best(memory_bytes=20_090).n_components == 128
    assert MADE.best(memory_bytes=20_089).n_components == 64
    assert MADE.best(components=100, transform_seconds=2.0).n_components == 64
    assert MADE.best().to_dict()["method"] == "exact"


def test_budgets_of_the_comparison_hold_unless_others_are_given() -> None:
    made = replace(MADE, time_budget=2.0, memory_budget=20_089)
    assert made.best().n_components == 64
    assert made.best(memory_bytes=10**6).n_components == 128
    assert made.best(memory_bytes=10**6, transform_seconds=9.0).method == "exact"


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"components": 63}, "components=63 is too little.*64 features, by fast"),
        ({"transform_seconds": 0.5}, "transform_seconds=0.5 is too little.*1 s for 1000 rows"),
        ({"memory_bytes": 9}, "memory_bytes=9 is too little.*9.81 KiB for 1000 rows, by fast"),
        ({"transform_seconds": math.nan}, "transform_seconds=nan is out of range"),
        ({"memory_bytes": 0}, "memory_bytes=0 is out of range"),
        ({"norm": "nuclear"}, "norm='nuclear' is unknown; use one of 'frobenius', 'operator'"),
    ],
)
def test_budgets_that_nothing_is_within(budget: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MADE.best(**budget)


def test_equal_errors_are_decided_by_time() -> None:
    slow = replace(FAST, method="slow", transform_seconds=9.0)
    assert replace(MADE, measurements=(slow, FAST)).best().method == "fast"
