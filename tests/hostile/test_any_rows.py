"""Promises for rows of any shape and numbers, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.matrices import Matrix
from tests.hostile.outcomes import FAILED, outcome_of
from tests.hostile.promises import PROMISES
from tests.hostile.strategies import hostile_rows


def _holds(promise: str) -> Callable[..., Any]:
    """Return a property test of one promise for all of its subjects."""
    subjects, check = PROMISES[promise].subjects, PROMISES[promise].check

    @given(name=st.sampled_from(list(subjects)), rows=hostile_rows, seed=st.integers(0, 1000))
    @settings(max_examples=80)
    def test(self: object, name: str, rows: Matrix, seed: int) -> None:
        outcome = outcome_of(lambda: check(subjects[name], rows, seed))
        assert outcome.verdict != FAILED, outcome.reason

    return test


class TestAnyRows:
    test_results_are_finite = _holds("results are finite")
    test_diagonal_is_exact = _holds("the diagonal is exact")
    test_kernels_are_positive = _holds("kernels are positive")
    test_splits_change_nothing = _holds("splits change nothing")
    test_residuals_are_told = _holds("residuals are told")
    test_failed_fit_leaves_the_last_one = _holds("a failed fit leaves the last one")
