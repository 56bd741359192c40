"""Runs every model on every problem once, and writes what came out as rows of tables."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.models.fitting import Outcome, Outcomes, all_outcomes
from benchmarks.models.methods import METHODS, OURS, installed_methods
from benchmarks.models.problems import CLASSIFICATIONS, REGRESSIONS, Problem
from benchmarks.report import Bar, Cell, Row

QUICK_ROWS = 1000
NOT_TRIED, NOT_FINISHED = "–", "did not finish"
KINDS: dict[str, Mapping[str, Callable[[], Problem]]] = {
    "regressions": REGRESSIONS,
    "classifications": CLASSIFICATIONS,
}


@dataclass(frozen=True)
class Result:
    """What the models reached on one problem; no outcome at all is that of an unfinished fit."""

    shape: tuple[int, int]
    by_method: Mapping[str, Sequence[Outcome]]

    def mean(self, method: str, figure: str) -> float | None:
        values = [outcome[figure] for outcome in self.by_method[method] if figure in outcome]
        return statistics.fmean(values) if values else None

    def score(self, method: str) -> float | None:
        return self.mean(method, "score") if self.by_method.get(method) else None

    def spread(self, method: str) -> float:
        """Return the standard deviation of the scores over the splits."""
        return statistics.pstdev([outcome["score"] for outcome in self.by_method[method]])

    def our_score(self) -> float:
        return statistics.fmean(outcome["score"] for outcome in self.by_method[OURS])

    def our_margin(self, method: str) -> float | None:
        """Return by how much our score is above the method's, if that finished."""
        score = self.score(method)
        return None if score is None else self.our_score() - score


@cache
def results(kind: str, *, quick: bool) -> dict[str, Result]:
    """Return what the models reached on the regressions or the classifications."""
    problems = {name: load() for name, load in KINDS[kind].items()}
    if quick:
        problems = {name: problem.first(QUICK_ROWS) for name, problem in problems.items()}
    tasks = {
        (method, name): [problem]
        for name, problem in problems.items()
        for method, chosen in installed_methods().items()
        if chosen.suits(problem)
    }
    reached = all_outcomes(tasks)
    return {name: _result(name, problem, reached) for name, problem in problems.items()}


def _result(name: str, problem: Problem, reached: Outcomes) -> Result:
    by_method = {method: reached[method, name] for method in METHODS if (method, name) in reached}
    return Result(problem.training_shape, by_method)


def score_cells(name: str, result: Result, honesty: str) -> dict[str, Cell]:
    """Return a row of scores; `honesty` names what says how well we know our own errors."""
    rows, columns = result.shape
    our_honesty = result.mean(OURS, honesty)
    return {
        "data": name,
        "rows": rows,
        "columns": columns,
        **{method: _score_cell(method, result) for method in METHODS},
        honesty: NOT_TRIED if our_honesty is None else our_honesty,
    }


def errors_by_method(reached: Mapping[str, Result]) -> dict[str, dict[str, float]]:
    """Return one minus the score of every method that has one, for every problem."""
    return {
        name: {
            method: 1 - score for method in METHODS if (score := result.score(method)) is not None
        }
        for name, result in reached.items()
    }


def _score_cell(method: str, result: Result) -> Cell:
    if method not in result.by_method:
        return NOT_TRIED
    score = result.score(method)
    return NOT_FINISHED if score is None else f"{score:.4f}"


def our_seconds(result: Result) -> float:
    """Return the mean seconds of our fit and predict."""
    return statistics.fmean(
        outcome["fit"] + outcome["predict"] for outcome in result.by_method[OURS]
    )


def cost_rows(results: Mapping[str, Result], honesty: str) -> Iterator[Row]:
    """Return a row for every problem and model that finished."""
    for name, result in results.items():
        for method, reached in result.by_method.items():
            if not reached:
                continue
            honest = result.mean(method, honesty)
            yield Row(
                {
                    "data": name,
                    "model": method,
                    "score": f"{result.score(method):.4f}",
                    "spread": result.spread(method),
                    "fit s": result.mean(method, "fit") or 0.0,
                    "predict s": result.mean(method, "predict") or 0.0,
                    "peak MB": max(outcome["peak MB"] for outcome in reached),
                    honesty: NOT_TRIED if honest is None else honest,
                }
            )


def not_below(result: Result, method: str, tolerance: float) -> list[Bar]:
    margin = result.our_margin(method)
    return [] if margin is None else [Bar(f"≥ {method} − {tolerance:g}", margin >= -tolerance)]


def honesty_bars(result: Result, honesty: str, low: float, high: float) -> list[Bar]:
    """Return the bar of a coverage or a calibration error, if the estimator has one."""
    value = result.mean(OURS, honesty)
    if value is None:
        return []
    if low <= 0:
        return [Bar(f"{honesty} ≤ {high:g}", value <= high)]
    return [Bar(f"{honesty} {low:g} to {high:g}", low <= value <= high)]
