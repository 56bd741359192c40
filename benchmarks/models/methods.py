"""The models that are compared, and which problems each of them is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.models.problems import Problem, Split
from benchmarks.peers.models import (
    NystroemRidge,
    RecursiveFeatureMachine,
    boosting,
    has_xrfm,
    ridge,
    support_vectors,
)
from powersketch import SketchedKernelRidge, SketchedKernelRidgeClassifier


def defaults(split: Split) -> Any:
    """Return our estimator with default parameters."""
    if split.is_classification:
        return SketchedKernelRidgeClassifier(random_state=0)
    return SketchedKernelRidge(random_state=0)


@dataclass(frozen=True)
class Method:
    """A model for a split; more training rows than `most_rows` would take too long.

    `coded` is whether it takes categories as codes, `seconds` what one fit may take.
    """

    build: Callable[[Split], Any]
    most_rows: int | None = None
    takes_sparse: bool = True
    coded: bool = False
    seconds: float | None = None

    def suits(self, problem: Problem) -> bool:
        rows, _ = problem.training_shape
        return (self.takes_sparse or not problem.is_sparse) and rows <= (self.most_rows or rows)


OURS, RIDGE, BOOSTING = "powersketch", "RidgeCV", "HistGradientBoosting"
NYSTROEM, SUPPORT_VECTORS, FEATURE_MACHINE = "Nystroem + RidgeCV", "SVR / SVC", "xRFM"
METHODS: dict[str, Method] = {
    OURS: Method(defaults),
    RIDGE: Method(ridge),
    BOOSTING: Method(boosting, takes_sparse=False, coded=True),
    NYSTROEM: Method(NystroemRidge, most_rows=100_000),
    SUPPORT_VECTORS: Method(support_vectors, most_rows=10_000),
    FEATURE_MACHINE: Method(RecursiveFeatureMachine, takes_sparse=False, seconds=300.0),
}


def installed_methods() -> dict[str, Method]:
    return {
        name: method for name, method in METHODS.items() if name != FEATURE_MACHINE or has_xrfm()
    }
