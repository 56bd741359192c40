"""The page of a report: complete, safe to open, and with every figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powersketch.reports import ModelReport, Score
from powersketch.reports.page import charts, confusion, page_text
from powersketch.reports.results import Importance
from tests.comparison.page.test_render import Outline, charts_of

RANDOM = np.random.default_rng(1)
TRUE = RANDOM.normal(size=400)
COMMON: dict[str, Any] = {
    "task_reason": "as asked for",
    "data_name": "a.csv",
    "date": "2031-02-03",
    "shape": (2000, 3),
    "fit_rows": 1600,
    "held_out_rows": 400,
    "scores": (Score("powersketch", 0.9, 0.3, 1.5), Score("linear model", 0.5, 0.7, 0.1)),
    "importances": Importance("by the learned metric", (("size", 0.7), ("colour", 0.3))),
    "choice": ("The kernel is Gaussian.",),
    "recipe": ("size: a number",),
    "code": "model.fit(X, y)",
}
NUMBERS = ModelReport(
    task="regression",
    targets=("price",),
    true=TRUE,
    predicted=TRUE + 0.5 * RANDOM.normal(size=400),
    deviations=np.full(400, 0.5),
    **COMMON,
)
LABELS = RANDOM.choice(["a", "b", "c"], size=400)
PROBABILITIES = RANDOM.dirichlet([1.0, 1.0, 1.0], size=400)
LETTERS = ModelReport(
    task="classification",
    targets=("grade",),
    true=LABELS,
    predicted=np.array(["a", "b", "c"])[PROBABILITIES.argmax(axis=1)],
    probabilities=PROBABILITIES,
    classes=("a", "b", "c"),
    log_loss=1.2,
    **COMMON,
)


@pytest.mark.parametrize("report", [NUMBERS, LETTERS], ids=["numbers", "classes"])
def test_the_page_is_whole_and_needs_nothing_else(report: ModelReport) -> None:
    page = page_text(report)
    outline = Outline(page)
    for words in (
        "a.csv",
        "2031-02-03",
        "linear model",
        "The kernel is Gaussian.",
        "size: a number",
    ):
        assert words in outline.text
    assert "model.fit(X, y)" in outline.text
    assert "http" not in page.replace("http-equiv", "")
    assert not [found for _, found in outline.elements if "style" in found]
    assert "nan" not in outline.text
    assert page_text(report) == page


def test_figures_of_numbers() -> None:
    predictions, residuals, coverage = charts(NUMBERS)
    assert len(predictions.lines[1].dots) == len(residuals.lines[1].dots) == 400
    assert [point.y for point in coverage.lines[1].points] == pytest.approx(
        [point.x for point in coverage.lines[1].points], abs=0.08
    )
    assert len(charts_of(page_text(NUMBERS))) == 3
    several = replace(
        NUMBERS,
        targets=("price", "age"),
        true=np.column_stack([TRUE, TRUE]),
        predicted=np.column_stack([TRUE, TRUE]),
        deviations=np.full((400, 2), 0.5),
    )
    assert [chart.title for chart in charts(several)][2] == "Predicted against true values of age"


def test_no_intervals_is_said() -> None:
    found = replace(NUMBERS, deviations=None, no_deviations="alpha is 0.")
    assert "There are no intervals: alpha is 0." in Outline(page_text(found)).text


def test_the_confusion_of_classes() -> None:
    found = confusion(LETTERS)
    assert found.names == ("a", "b", "c")
    assert sum(map(sum, found.rows)) == 400
    assert found.rows[0][1] == int(((LABELS == "a") & (LETTERS.predicted == "b")).sum())
    assert sum(found.shade(0, column) for column in range(3)) == pytest.approx(1.0, abs=0.002)
    many = RANDOM.integers(0, 40, size=400)
    wide = replace(
        LETTERS, true=many, predicted=many, classes=tuple(str(number) for number in range(40))
    )
    assert len(confusion(wide).names) == 12
    assert "28 rarer classes are left out" in Outline(page_text(wide)).text


@pytest.mark.parametrize("value", [0.0, 1e300, -5.0])
def test_constant_targets_have_a_page(value: float) -> None:
    same = np.full(20, value)
    page_text(replace(NUMBERS, true=same, predicted=same, deviations=np.full(20, 0.5)))


def test_what_a_file_says_is_escaped() -> None:
    nasty = "<script>alert('&\"')</script>"
    found = replace(
        LETTERS,
        data_name=nasty,
        targets=(nasty,),
        classes=(nasty, "b", "c"),
        true=np.where(LABELS == "a", nasty, LABELS),
        importances=Importance(nasty, ((nasty, 1.0),)),
        warnings=(nasty,),
        choice=(nasty,),
        recipe=(nasty,),
        code=nasty,
    )
    page = page_text(found)
    assert nasty not in page
    assert page.count("<script") == 1


def test_a_page_appears_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    NUMBERS.save_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page_text(NUMBERS)

    def broken(self: Path, *_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", broken)
    with pytest.raises(OSError, match="disk full"):
        LETTERS.save_html(tmp_path / "page.html")
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]
