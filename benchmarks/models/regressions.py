"""Default regressors on tables: R², time, memory and the coverage of their intervals."""

from collections.abc import Mapping

from benchmarks.figures import dot_figure
from benchmarks.models.methods import BOOSTING, METHODS, OURS, RIDGE
from benchmarks.models.results import (
    NOT_TRIED,
    Result,
    cost_rows,
    errors_by_method,
    honesty_bars,
    not_below,
    results,
    score_cells,
)
from benchmarks.report import Bar, Row, Table, at_least

BELOW_RIDGE, BELOW_BOOSTING = 0.003, 0.002
SHARE_NOT_BELOW_BOOSTING = 2 / 3
LEAST_R2 = {"taxi": 0.66, "diamonds": 0.99, "flights": 0.895}
COVERED = ("taxi", "diamonds", "flights")
LEAST_COVERAGE, MOST_COVERAGE = 0.92, 0.97


def regression_scores(*, quick: bool) -> Table:
    reached = results("regressions", quick=quick)
    title = "Default regressors: R² on rows they have not seen"
    rows = [
        Row(score_cells(name, result, "coverage"), _bars(name, result))
        for name, result in reached.items()
    ]
    unexplained = errors_by_method(reached)
    return Table(
        title,
        "Mean of 5 random splits, four rows in five to train on, 30,000 of taxi, diamonds and "
        "flights. SketchedKernelRidge has its default parameters; categories are columns of zeros "
        "and ones, and boosting takes them as they are. RidgeCV and SVR get standardised columns, "
        "SVR a standardised target, too; Nystroem (1000 landmarks) gets its gamma from held-out "
        "rows. Ours is held to RidgeCV − 0.003 everywhere and to boosting − 0.002 on two thirds "
        "of the tables. Coverage: the share of targets in our intervals of 95 %. A fit of xRFM may "
        "take 5 minutes; beyond one minute it gets one split only.",
        [*rows, _against_boosting(reached)],
        figure=dot_figure(
            "default_regressors", title, unexplained, methods=list(METHODS), x="1 − R²"
        ),
    )


def _bars(name: str, result: Result) -> list[Bar]:
    bars = not_below(result, RIDGE, BELOW_RIDGE)
    if name in LEAST_R2:
        bars.append(at_least(result.our_score(), LEAST_R2[name]))
    if name in COVERED:
        bars += honesty_bars(result, "coverage", LEAST_COVERAGE, MOST_COVERAGE)
    return bars


def _against_boosting(reached: Mapping[str, Result]) -> Row:
    """Return the share of tables on which ours keeps up with boosting."""
    example = score_cells(*next(iter(reached.items())), "coverage")
    margins = [
        margin for result in reached.values() if (margin := result.our_margin(BOOSTING)) is not None
    ]
    share = sum(margin >= -BELOW_BOOSTING for margin in margins) / len(margins)
    cells = {"data": f"share of tables with ours ≥ {BOOSTING} − {BELOW_BOOSTING}"}
    return Row(
        dict.fromkeys(example, NOT_TRIED) | cells | {OURS: f"{share:.2f}"},
        [at_least(share, SHARE_NOT_BELOW_BOOSTING)],
    )


def regression_costs(*, quick: bool) -> Table:
    return Table(
        "Default regressors: time and memory",
        "Mean of the splits, on one core where there are fewer than 10,000 rows, else on two; the "
        "spread is the standard deviation of R² over them. The memory is "
        "the peak of a process that holds the table and makes all splits.",
        list(cost_rows(results("regressions", quick=quick), "coverage")),
    )


MEASUREMENTS = (regression_scores, regression_costs)
