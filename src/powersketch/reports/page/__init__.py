"""A report as one page of HTML, figures included, that needs no network and no other file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.arrays import Vector
from powersketch.pages import (
    Cell,
    Chart,
    Line,
    LinearAxis,
    Look,
    Point,
    across,
    number_text,
    rendered,
    seconds_text,
    upwards,
)
from powersketch.reports.results import HEADINGS, OURS, ModelReport

_MOST_DOTS = 1500
_MOST_COLUMNS = 15
_MOST_CLASSES = 12
_BINS = 10
_FEWEST_IN_BIN = 5
_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# Axes end at these quantiles: a single absurd row would squeeze all others.
_QUANTILES = (0.002, 0.998)
_BLUE = Look(0)


def page_text(report: ModelReport) -> str:
    """Return the page; the same report gives the same text.

    Parameters
    ----------
    report : ModelReport
        What is shown.

    Returns
    -------
    str
        HTML that contains its styles, script and figures.
    """
    return rendered(
        "report.html",
        __name__,
        report=report,
        title=report.title,
        scores=_score_table(report),
        charts=charts(report),
        confusion=confusion(report) if report.task == "classification" else None,
        importances=_importance_bars(report),
    )


def charts(report: ModelReport) -> list[Chart]:
    """Return the figures: predictions and residuals of numbers, and calibration."""
    if report.task == "classification":
        return [_reliability_chart(report)]
    found = []
    for name, true, predicted in _by_target(report):
        of = f" of {name}" if len(report.targets) > 1 else ""
        found.append(_prediction_chart(of, true, predicted))
        found.append(_residual_chart(of, true, predicted))
    return [*found, _coverage_chart(report)]


def _by_target(report: ModelReport) -> Iterator[tuple[str, Vector, Vector]]:
    """Yield the name of every target, its values and their predictions."""
    true = np.asarray(report.true, dtype=np.float64).reshape(len(report.true), -1)
    predicted = np.asarray(report.predicted, dtype=np.float64).reshape(true.shape)
    yield from zip(report.targets, true.T, predicted.T, strict=True)


def _prediction_chart(of: str, true: Vector, predicted: Vector) -> Chart:
    ends = _ends(np.concatenate([true, predicted]))
    dots = [*zip(true[:_MOST_DOTS].tolist(), predicted[:_MOST_DOTS].tolist(), strict=True)]
    lines = [
        Line("equal", path=[(end, end) for end in ends]),
        Line("rows", _BLUE, dots=dots),
    ]
    caption = (
        f"{len(dots)} rows that the model has not seen. On the grey line, predictions are right."
    )
    return Chart(
        f"Predicted against true values{of}",
        caption,
        lines,
        across(LinearAxis, ends, label="true", text=number_text),
        upwards(LinearAxis, ends, label="predicted", text=number_text),
    )


def _residual_chart(of: str, true: Vector, predicted: Vector) -> Chart:
    residuals = true - predicted
    dots = [*zip(predicted[:_MOST_DOTS].tolist(), residuals[:_MOST_DOTS].tolist(), strict=True)]
    places, heights = _ends(predicted), _ends(residuals)
    lines = [
        Line("zero", path=[(place, 0.0) for place in places]),
        Line("rows", _BLUE, dots=dots),
    ]
    half = float(np.median(np.abs(residuals)))
    caption = (
        f"Half of the residuals are within ± {number_text(half)}; a trend or a funnel would tell "
        "what the model has missed."
    )
    return Chart(
        f"Residuals{of}: true minus predicted",
        caption,
        lines,
        across(LinearAxis, places, label="predicted", text=number_text),
        upwards(LinearAxis, [*heights, 0.0], label="residual", text=number_text),
    )


def _coverage_chart(report: ModelReport) -> Chart:
    title = "Calibration of intervals"
    if report.deviations is None:
        return Chart(title, f"There are no intervals: {report.no_deviations}")
    points = [
        Point(level, found, f"intervals of {level:.0%} hold {found:.1%} of the rows")
        for level, found in ((level, report.coverage(level)) for level in _LEVELS)
    ]
    caption = (
        "How many of the rows held out lie within intervals that are to hold so many of them. "
        f"Those of 95 % hold {number_text(100.0 * points[-1].y)} %."
    )
    return _calibration_chart(title, caption, points, "share promised", "share found")


def _reliability_chart(report: ModelReport) -> Chart:
    title = "Calibration of probabilities"
    assert report.probabilities is not None
    confidence = report.probabilities.max(axis=1)
    right = np.asarray(report.true == report.predicted, dtype=np.float64)
    bins = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    points = []
    for number in range(_BINS):
        inside = bins == number
        if inside.sum() >= _FEWEST_IN_BIN:
            said, found = float(confidence[inside].mean()), float(right[inside].mean())
            text = f"{inside.sum()} rows of confidence {said:.2f}: {found:.1%} are right"
            points.append(Point(said, found, text))
    loss = "infinite, as a row has a class that no fitted row has"
    if report.log_loss is not None:
        loss = number_text(report.log_loss)
    caption = (
        "How often the predicted class is right, by how probable the model says it is. The mean "
        f"logarithmic loss is {loss}."
    )
    return _calibration_chart(title, caption, points, "probability", "share right")


def _calibration_chart(title: str, caption: str, points: Sequence[Point], x: str, y: str) -> Chart:
    if not points:
        return Chart(title, "There are too few rows for a figure.")
    lines = [
        Line("right", path=[(0.0, 0.0), (1.0, 1.0)]),
        Line(OURS, _BLUE, [(point.x, point.y) for point in points], points),
    ]
    ends = (0.0, 1.0)
    return Chart(
        title,
        caption,
        lines,
        across(LinearAxis, ends, label=x, text=number_text),
        upwards(LinearAxis, ends, label=y, text=number_text),
    )


def _ends(values: Vector) -> tuple[float, float]:
    low, high = np.quantile(values, _QUANTILES).tolist()
    return (low, high) if high > low else (low - 1.0, high + 1.0)


@dataclass(frozen=True)
class Confusion:
    """How often every class was taken for which; rows are true classes, columns predicted ones."""

    names: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    left_out: int

    def shade(self, row: int, column: int) -> float:
        """Return the share of the row that is in the cell."""
        total = sum(self.rows[row])
        return round(self.rows[row][column] / total, 3) if total else 0.0


def confusion(report: ModelReport) -> Confusion:
    """Return the matrix of the classes, only the most frequent ones of many."""
    true, predicted = (np.asarray(labels).astype(str) for labels in (report.true, report.predicted))
    known, counts = np.unique(true, return_counts=True)
    frequent = set(known[np.argsort(-counts, kind="stable")[:_MOST_CLASSES]].tolist())
    names = tuple(name for name in report.classes if name in frequent)
    rows = tuple(
        tuple(int(((true == row) & (predicted == column)).sum()) for column in names)
        for row in names
    )
    return Confusion(names, rows, len(report.classes) - len(names))


def _score_table(report: ModelReport) -> list[list[Cell]]:
    best = max(each.score for each in report.scores)
    names = HEADINGS[report.task]
    return [
        [
            Cell(names[0], "method", each.name, each.name),
            Cell(
                names[1], "number", f"{each.score:.4f}", _sortable(each.score), each.score == best
            ),
            Cell(names[2], "number", number_text(each.error), _sortable(each.error)),
            Cell(names[3], "number", seconds_text(each.seconds), each.seconds),
        ]
        for each in report.scores
    ]


def _sortable(value: float) -> Any:
    return value if math.isfinite(value) else ""


def _importance_bars(report: ModelReport) -> list[dict[str, Any]]:
    shares = report.importances.shares
    return [
        {"name": name, "share": share, "text": number_text(share)}
        for name, share in shares[:_MOST_COLUMNS]
    ]
