"""What a report holds: scores, predictions, and what the model says of itself."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64
from powersketch.files import atomic_write
from powersketch.pages import number_text, seconds_text

OURS = "powersketch"
HEADINGS = {
    "regression": ("model", "R²", "root mean squared error", "fit"),
    "classification": ("model", "accuracy", "share of wrong classes", "fit"),
}


@dataclass(frozen=True)
class Score:
    """A model at the rows held out.

    Parameters
    ----------
    name : str
        What it is called.
    score : float
        R², the mean of all targets, or the accuracy.
    error : float
        The root of the mean squared error, or the share of wrong classes.
    seconds : float
        Time of its fit.
    """

    name: str
    score: float
    error: float
    seconds: float


@dataclass(frozen=True)
class Importance:
    """Columns and their shares, the largest first, and how these were found."""

    how: str
    shares: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False, repr=False)
class ModelReport:
    """A model beside others on rows held out; printed, a table.

    It is what :func:`powersketch.reports.assess` returns.

    Parameters
    ----------
    task : {"regression", "classification"}
        What is predicted.
    task_reason : str
        Why that is assumed, as the end of a sentence.
    targets : tuple of str
        The columns that are predicted.
    data_name, date : str
        What the data are called, and the day as YYYY-MM-DD.
    shape : tuple of two ints
        Rows and columns, without the targets.
    fit_rows, held_out_rows : int
        On how many rows models were fitted, and on how many others they were measured.
    scores : tuple of Score
        Ours first.
    true, predicted : ndarray
        Targets and predictions of up to 4000 rows held out.
    importances : Importance
        How much every column matters.
    choice : tuple of str
        What the model chose and why, in sentences.
    recipe : tuple of str
        What became of every column of the table.
    warnings : tuple of str
        What the library warned of.
    deviations : ndarray or None
        Standard deviations of the predictions, for numbers.
    no_deviations : str
        Why there are none.
    probabilities : ndarray or None
        Those of the classes, which are in `classes`.
    classes : tuple of str
        The classes.
    log_loss : float or None
        The mean of minus the logarithm of the true class's probability; None for numbers, and
        where a row held out has a class that no fitted row has.
    code : str
        The lines of Python that do the same; empty if unknown.
    """

    task: str
    task_reason: str
    targets: tuple[str, ...]
    data_name: str
    date: str
    shape: tuple[int, int]
    fit_rows: int
    held_out_rows: int
    scores: tuple[Score, ...]
    true: NDArray[Any]
    predicted: NDArray[Any]
    importances: Importance
    choice: tuple[str, ...] = ()
    recipe: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    deviations: Float64 | None = None
    no_deviations: str = ""
    probabilities: Float64 | None = None
    classes: tuple[str, ...] = ()
    log_loss: float | None = None
    code: str = ""

    @property
    def title(self) -> str:
        """What is predicted from what."""
        of = f" of {self.data_name}" if self.data_name else ""
        return (
            f"{self.task.capitalize()} of {', '.join(self.targets)}{of and ' from the rows' + of}"
        )

    @property
    def summary(self) -> str:
        """How the model compares, in one sentence."""
        ours, *others = self.scores
        measure = {"regression": "R²", "classification": "Accuracy"}[self.task]
        beside = " and ".join(f"{_digits(each.score)} by {each.name}" for each in others)
        return (
            f"{measure} {_digits(ours.score)} at {self.held_out_rows} rows that the model has not "
            f"seen, beside {beside}."
        )

    def table(self) -> list[tuple[str, ...]]:
        """Return headings and a row for every model, as text."""
        rows = [
            (each.name, _digits(each.score), number_text(each.error), seconds_text(each.seconds))
            for each in self.scores
        ]
        return [HEADINGS[self.task], *rows]

    def __repr__(self) -> str:
        grid = self.table()
        widths = [max(len(row[column]) for row in grid) for column in range(len(grid[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in grid
        ]
        return "\n".join([self.title, "", *lines, "", self.summary])

    def coverage(self, level: float) -> float:
        """Return the share of rows within intervals that are to hold this share of them."""
        from scipy.special import ndtri

        if self.deviations is None:
            return float("nan")
        errors = np.abs(self.true - self.predicted)
        return float(np.mean(errors <= ndtri(0.5 + 0.5 * level) * self.deviations))

    def to_dict(self) -> dict[str, Any]:
        """Return all figures but those of single rows as what :func:`json.dumps` takes."""
        left_out = {"true", "predicted", "deviations", "probabilities", "scores", "importances"}
        figures = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in left_out
        }
        figures["scores"] = [dataclasses.asdict(score) for score in self.scores]
        figures["importances"] = dict(self.importances.shares)
        figures["importances_by"] = self.importances.how
        if self.deviations is not None:
            figures["coverage_of_95_percent"] = self.coverage(0.95)
        return figures

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page with all figures, which needs neither network nor other files.

        Parameters
        ----------
        path : str or path
            The file, which appears under this name when it is complete.
        """
        # Loaded when it is first needed: those who want scores need neither charts nor Jinja2.
        from powersketch.reports.page import page_text

        content = page_text(self)
        with atomic_write(path) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="\n")


def _digits(score: float) -> str:
    """Return a score with as many digits as rows held out can tell apart."""
    return f"{score:.4f}"
