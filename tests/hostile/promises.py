"""The table of all promises: what is checked, on which subjects, with which inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.kernels import Gaussian
from tests.hostile.containers import CONTAINERS
from tests.hostile.corrupt_sparse import CORRUPT
from tests.hostile.isolation import in_child
from tests.hostile.matrices import ABSURD_ROWS, BAD, GOOD
from tests.hostile.outcomes import Outcome, demand, outcome_of
from tests.hostile.promises_of_accuracy import (
    CERTIFIED,
    CERTIFIED_ROWS,
    CHOOSERS,
    REGIONS,
    absurd_row_is_named,
    certificate_is_true,
    choice_is_good,
    clean_rows_keep_their_accuracy,
    clean_rows_keep_their_bits,
)
from tests.hostile.promises_of_bits import (
    containers_change_nothing,
    failed_fit_leaves_the_last_one,
    is_held_exactly,
    splits_change_nothing,
    threads_change_nothing,
)
from tests.hostile.promises_of_options import (
    HUGE,
    OPTIONS,
    huge_parameter_is_bearable,
    is_for,
    may_be_idle,
    option_is_used_or_refused,
)
from tests.hostile.promises_of_values import (
    bad_new_rows_are_refused,
    bad_rows_are_refused,
    diagonal_is_exact,
    gaussian_is_translation_invariant,
    kernel_is_positive,
    residual_is_told,
    results_are_finite,
)
from tests.hostile.subjects import EXACT_KERNELS, FITTED, MAPS, METRICS, RIDGE, SUBJECTS, SYSTEMS

# The sizes that nobody can take for measurements.
_ABSURD_SIZES = {name: row for name, row in ABSURD_ROWS.items() if name != "-9999"}
_GAUSSIAN = {name: s for name, s in EXACT_KERNELS.items() if isinstance(s.kernel, Gaussian)}  # type: ignore[attr-defined]
_GAUSSIAN_SYSTEMS = {name: s for name, s in SYSTEMS.items() if isinstance(s.kernel, Gaussian)}  # type: ignore[attr-defined]
_MODERATE = {name: matrix for name, matrix in GOOD.items() if matrix.has_finite_norms}
_EXACT_DIAGONAL = {name: s for name, s in MAPS.items() if s.case.diagonal != "neither"}  # type: ignore[attr-defined]
_SKETCHED_RIDGE = {
    name: subject
    for name, subject in RIDGE.items()
    if not any(word in name for word in ("exact", "landmarks", "auto", "row-sketch"))
}
_DEFAULT_MAPS = {name: subject for name, subject in MAPS.items() if "method=" in name}


def always(subject: Any, given: Any) -> bool:
    """Every input is for every subject."""
    del subject, given
    return True


@dataclass(frozen=True)
class Promise:
    """A check, and the table of subjects and inputs that it is made for."""

    check: Callable[[Any, Any, int], None]
    subjects: Mapping[str, Any]
    inputs: Mapping[str, Any]
    applies: Callable[[Any, Any], bool] = always
    refusal: str = ""  # where the input does not say
    isolated: bool = False
    cases_in_tests: int = 60

    def outcome(self, subject: str, given: str, seed: int) -> Outcome:
        """Check one case."""
        who, what = self.subjects[subject], self.inputs[given]

        def run() -> Outcome:
            return outcome_of(lambda: self.check(who, what, seed), refusal=self._refusal(who, what))

        return in_child(run) if self.isolated else run()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the names of all subjects and inputs that belong together."""
        for subject, who in self.subjects.items():
            for given, what in self.inputs.items():
                if self.applies(who, what):
                    yield subject, given

    def _refusal(self, who: Any, what: Any) -> str:
        refusal = self.refusal or getattr(what, "refusal", "allowed")
        # Rows that are too long for a series with a radius are refused, however ordinary.
        limited = getattr(who, "largest_norm", float("inf")) < float("inf")
        return "allowed" if refusal == "wrong" and limited else refusal


def corrupt_rows_are_refused(subject: Any, make: Callable[[], Any], seed: int) -> None:
    """Arrays that contradict each other are refused with a ValueError, in `fit` or in the call."""
    del seed
    X, y = make(), np.arange(40) % 3.0
    with suppress(ValueError):
        subject.apply(subject.fit(X, y), X)
        demand(False, "was accepted")


def corrupt_new_rows_are_refused(subject: Any, make: Callable[[], Any], seed: int) -> None:
    """The same for `transform` and `predict`."""
    fitted, X = subject.fit(GOOD["one-hot CSR"].rows(seed)), make()
    with suppress(ValueError):
        subject.apply(fitted, X)
        demand(False, "was accepted")


PROMISES: dict[str, Promise] = {
    "results are finite": Promise(results_are_finite, {**SUBJECTS, **METRICS}, GOOD),
    "bad rows are refused": Promise(bad_rows_are_refused, {**SUBJECTS, **METRICS}, BAD),
    "bad new rows are refused": Promise(bad_new_rows_are_refused, {**FITTED, **METRICS}, BAD),
    "corrupt rows are refused": Promise(
        corrupt_rows_are_refused, {**SUBJECTS, **METRICS}, CORRUPT, isolated=True
    ),
    "corrupt new rows are refused": Promise(
        corrupt_new_rows_are_refused, {**FITTED, **METRICS}, CORRUPT, isolated=True
    ),
    "the diagonal is exact": Promise(diagonal_is_exact, _EXACT_DIAGONAL, GOOD, refusal="allowed"),
    "kernels are positive": Promise(kernel_is_positive, EXACT_KERNELS, GOOD),
    "Gaussian kernels do not care where": Promise(
        gaussian_is_translation_invariant, _GAUSSIAN, GOOD
    ),
    "residuals are told": Promise(residual_is_told, SYSTEMS, GOOD, refusal="allowed"),
    # K + alpha I has eigenvalues of at least alpha, wherever the rows are.
    "Gaussian systems are solved": Promise(
        residual_is_told, _GAUSSIAN_SYSTEMS, _MODERATE, refusal="wrong"
    ),
    "splits change nothing": Promise(
        splits_change_nothing, {**FITTED, **METRICS}, GOOD, refusal="allowed"
    ),
    "threads change nothing": Promise(threads_change_nothing, SUBJECTS, GOOD, refusal="allowed"),
    "containers change nothing": Promise(
        containers_change_nothing,
        SUBJECTS,
        CONTAINERS,
        applies=is_held_exactly,
        refusal="allowed",
    ),
    "a failed fit leaves the last one": Promise(
        failed_fit_leaves_the_last_one, {**FITTED, **METRICS}, {**BAD, **GOOD}, refusal="allowed"
    ),
    "the choice is good": Promise(choice_is_good, CHOOSERS, REGIONS),
    "certificates are true": Promise(
        certificate_is_true, CERTIFIED, CERTIFIED_ROWS, refusal="allowed", cases_in_tests=18
    ),
    "clean rows keep their accuracy": Promise(
        clean_rows_keep_their_accuracy, {**FITTED, **EXACT_KERNELS}, ABSURD_ROWS
    ),
    "clean rows keep their bits": Promise(clean_rows_keep_their_bits, FITTED, ABSURD_ROWS),
    "the absurd row is named": Promise(
        absurd_row_is_named, {**MAPS, **_SKETCHED_RIDGE}, _ABSURD_SIZES
    ),
    "options are used or refused": Promise(
        option_is_used_or_refused,
        {**_DEFAULT_MAPS, **RIDGE},
        {option: option for option in OPTIONS},
        applies=may_be_idle,
    ),
    "huge parameters are bearable": Promise(
        huge_parameter_is_bearable,
        {**_DEFAULT_MAPS, **RIDGE},
        HUGE,
        applies=is_for,
        isolated=True,
    ),
}
