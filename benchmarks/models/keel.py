"""Default classifiers on the 43 tables of KEEL with ten folds each: mean accuracy and rank."""

import statistics
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from scipy.stats import rankdata

from benchmarks.figures import dot_figure
from benchmarks.models.fitting import Outcome, all_outcomes
from benchmarks.models.methods import BOOSTING, NYSTROEM, OURS, RIDGE, SUPPORT_VECTORS
from benchmarks.models.problems import folded_problems
from benchmarks.report import Bar, Row, Table
from benchmarks.tables import fold_names

COMPARED = (OURS, RIDGE, BOOSTING, NYSTROEM, SUPPORT_VECTORS)
"""A process for every fit, with a limit, would take xRFM hours for 430 folds."""
FOLDS, QUICK_FOLDS, QUICK_TABLES = 10, 2, ("iris", "sonar", "vehicle", "wine")
ABOVE_OTHERS, BELOW_RIDGE = 0.003, 0.005

Reached = Mapping[str, Mapping[str, Sequence[Outcome]]]
"""Outcomes of the folds by model and table."""


def keel_summary(*, quick: bool) -> Table:
    reached = _reached(quick=quick)
    accuracies = {method: _accuracies(tables) for method, tables in reached.items()}
    ranks = _mean_ranks(accuracies)
    return Table(
        "Default classifiers on the tables of KEEL: mean accuracy and rank",
        "43 tables, the ten folds that come with them; numbers there are replaced by intervals, "
        "counted from zero. All columns are taken as numbers. Fits have one core, on tables of "
        "10,000 rows or more two. The rank is that of a model's mean "
        "accuracy on a table, 1 the best, averaged over the tables. Seconds: all fits, and all "
        "predictions. Ours is held to the accuracy of boosting and of SVC + 0.003, to the best "
        "rank, and on no table to less than that of RidgeClassifierCV − 0.005.",
        [
            Row(
                {
                    "model": method,
                    "mean accuracy": f"{np.mean(accuracies[method]):.4f}",
                    "mean rank": ranks[method],
                    "tables where best": _times_best(accuracies, method),
                    "calibration": _mean_calibration(tables),
                    "fit s": _total(tables, "fit"),
                    "predict s": _total(tables, "predict"),
                },
                _bars(accuracies, ranks) if method == OURS else (),
            )
            for method, tables in reached.items()
        ],
    )


def keel_tables(*, quick: bool) -> Table:
    reached = _reached(quick=quick)
    title = "Default classifiers on the tables of KEEL: accuracy by table"
    accuracies = {method: _accuracies(tables) for method, tables in reached.items()}
    names = list(reached[OURS])
    errors = {
        name: {method: 1 - accuracies[method][number] for method in accuracies}
        for number, name in enumerate(names)
    }
    return Table(
        title,
        "Means of the ten folds.",
        [
            Row(
                {"data": name}
                | {method: f"{accuracies[method][number]:.4f}" for method in accuracies}
            )
            for number, name in enumerate(names)
        ],
        figure=dot_figure(
            "default_classifiers_keel", title, errors, methods=COMPARED, x="share of errors"
        ),
    )


@cache
def _reached(*, quick: bool) -> Reached:
    names = list(QUICK_TABLES) if quick else fold_names()
    count = QUICK_FOLDS if quick else FOLDS
    problems = {name: folded_problems(name)[:count] for name in names}
    tasks = {(method, name): folds for method in COMPARED for name, folds in problems.items()}
    reached = all_outcomes(tasks)
    return {method: {name: reached[method, name] for name in names} for method in COMPARED}


def _accuracies(tables: Mapping[str, Sequence[Outcome]]) -> list[float]:
    return [
        statistics.fmean(outcome["score"] for outcome in reached) for reached in tables.values()
    ]


def _mean_ranks(accuracies: Mapping[str, Sequence[float]]) -> dict[str, float]:
    # Rounded, so that equal numbers of errors are equal whatever the order of the sum.
    ranks = rankdata(-np.round(list(accuracies.values()), 12), axis=0).mean(axis=1)
    return dict(zip(accuracies, ranks.tolist(), strict=True))


def _times_best(accuracies: Mapping[str, Sequence[float]], method: str) -> int:
    best = np.max(list(accuracies.values()), axis=0)
    return int(np.sum(np.asarray(accuracies[method]) >= best - 1e-12))


def _mean_calibration(tables: Mapping[str, Sequence[Outcome]]) -> str | float:
    values = [
        outcome["calibration"]
        for reached in tables.values()
        for outcome in reached
        if "calibration" in outcome
    ]
    return statistics.fmean(values) if values else "–"


def _total(tables: Mapping[str, Sequence[Outcome]], figure: str) -> float:
    return sum(outcome[figure] for reached in tables.values() for outcome in reached)


def _bars(accuracies: Mapping[str, Sequence[float]], ranks: Mapping[str, float]) -> list[Bar]:
    ours = np.asarray(accuracies[OURS])
    below_ridge = float(np.max(np.asarray(accuracies[RIDGE]) - ours))
    others = [
        Bar(
            f"accuracy ≥ {other} + {ABOVE_OTHERS:g}",
            bool(ours.mean() >= np.mean(accuracies[other]) + ABOVE_OTHERS),
        )
        for other in (BOOSTING, SUPPORT_VECTORS)
    ]
    best_rank = min(rank for method, rank in ranks.items() if method != OURS)
    return [
        *others,
        Bar(f"rank < {best_rank:.3g}", ranks[OURS] < best_rank),
        Bar(f"on every table ≥ {RIDGE} − {BELOW_RIDGE:g}", below_ridge <= BELOW_RIDGE),
    ]


MEASUREMENTS = (keel_summary, keel_tables)
