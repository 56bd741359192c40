"""The suite itself: it sees what is broken, covers what is public, and repeats itself exactly."""

from __future__ import annotations

import os
import signal
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import powersketch
from powersketch.exceptions import InputError
from tests.hostile.cases import cases, sample
from tests.hostile.corrupt_sparse import CORRUPT
from tests.hostile.isolation import in_child
from tests.hostile.matrices import GOOD, MATRICES
from tests.hostile.outcomes import FAILED, HELD, REFUSED, Outcome, demand, outcome_of
from tests.hostile.promises import PROMISES
from tests.hostile.promises_of_values import results_are_finite
from tests.hostile.subjects import FITTED, METRICS, SUBJECTS, Subject


def _raise(error: Exception) -> None:
    raise error


class TestOutcomes:
    def test_nothing_special_is_held(self) -> None:
        assert outcome_of(lambda: None) == Outcome(HELD)

    def test_a_broken_promise_is_told(self) -> None:
        assert outcome_of(lambda: demand(False, "too bad")) == Outcome(FAILED, "too bad")

    @pytest.mark.parametrize(
        ("refusal", "verdict"), [("allowed", REFUSED), ("wrong", FAILED), ("expected", HELD)]
    )
    def test_clear_refusals(self, refusal: str, verdict: str) -> None:
        error = InputError("degree=-1 is out of range; choose an integer of at least 1.")
        assert outcome_of(lambda: _raise(error), refusal=refusal).verdict == verdict

    @pytest.mark.parametrize(
        "error",
        [InputError("wrong"), ValueError("x=3; choose 4."), MemoryError(), np.linalg.LinAlgError()],
    )
    def test_other_errors_fail(self, error: Exception) -> None:
        assert outcome_of(lambda: _raise(error), refusal="expected").verdict == FAILED

    def test_numerical_warnings_fail(self) -> None:
        def divide() -> None:
            warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)

        assert outcome_of(divide).verdict == FAILED

    def test_what_must_be_refused_may_not_pass(self) -> None:
        assert outcome_of(lambda: None, refusal="expected").verdict == FAILED

    def test_a_crash_fails(self) -> None:
        def crash() -> Outcome:
            os.kill(os.getpid(), signal.SIGSEGV)
            return Outcome(HELD)

        assert in_child(crash) == Outcome(FAILED, "the process died of SIGSEGV")

    def test_a_child_tells_its_outcome(self) -> None:
        assert in_child(lambda: Outcome(REFUSED, "why")) == Outcome(REFUSED, "why")

    def test_numbers_that_are_not_finite_fail(self) -> None:
        class Broken(Subject):
            def fit(self, X: Any, y: Any = None, **changes: Any) -> Any:
                return self

            def apply(self, fitted: Any, X: Any) -> Any:
                return np.array([[1.0, np.nan]])

        check = lambda: results_are_finite(Broken("broken", "map"), GOOD["normal"], 0)  # noqa: E731
        assert "not finite" in outcome_of(check).reason


class TestCoverage:
    def test_every_public_estimator_is_attacked(self) -> None:
        attacked = {
            type(subject.estimator()).__name__ for subject in {**FITTED, **METRICS}.values()
        }
        classes = [getattr(powersketch, name) for name in powersketch.__all__]
        # Texts and gaps, which the others must refuse, are what tables are made of.
        public = {
            each.__name__
            for each in classes
            if hasattr(each, "fit") and each is not powersketch.TablePreparation
        }
        assert public <= attacked

    def test_every_subject_and_input_is_in_the_sample(self) -> None:
        subjects = {case.subject for promise in PROMISES for case in sample(promise)}
        assert set(SUBJECTS) <= subjects
        for promise, table in PROMISES.items():
            assert {case.given for case in sample(promise)} == {g for _, g in table.pairs()}


class TestRepeatability:
    @pytest.mark.parametrize("name", MATRICES)
    def test_the_same_seed_gives_the_same_rows(self, name: str) -> None:
        first, again = (MATRICES[name].rows(3) for _ in range(2))
        if sp.issparse(first):
            first, again = first.toarray(), again.toarray()
        np.testing.assert_array_equal(first, again)

    def test_matrices_that_may_not_be_refused_are_finite(self) -> None:
        for matrix in GOOD.values():
            X = matrix.rows()
            assert np.isfinite(X.data if sp.issparse(X) else X).all(), matrix.name

    def test_corrupt_matrices_can_be_made(self) -> None:
        for make in CORRUPT.values():
            assert make().shape == (40, 12)

    def test_the_long_run_goes_through_all_seeds(self) -> None:
        many = cases(2000, 0, "Gaussian kernels")
        assert len(set(many)) == 2000
        assert {case.seed for case in many} == set(range(37))
