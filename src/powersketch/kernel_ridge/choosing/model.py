"""The model to fit: what was asked for, and the best of what was left open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from powersketch.arrays import Float64, is_sparse
from powersketch.exceptions import warn_user
from powersketch.execution import blas_thread_count, blas_threads
from powersketch.kernel_ridge.choosing.metric import (
    FORMS,
    MOST_DIAGONAL_COLUMNS,
    MOST_FULL_COLUMNS,
    learned_metric,
)
from powersketch.kernel_ridge.choosing.pilot import Pilot, Trial
from powersketch.kernel_ridge.choosing.search import Search
from powersketch.kernel_ridge.rows.columns import (
    SCALINGS,
    Columns,
    given_columns,
    normalised,
    plain_columns,
    prepared_columns,
    summary_of,
)
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.statistics import RidgeSolution
from powersketch.kernels import Gaussian, Kernel, Linear, WithLinear
from powersketch.random_streams import RandomStreams

# With fewer rows nothing can be told from chance.
_FEWEST_ROWS = 10
_FEWEST_ROWS_FOR_A_LINE, _CLEARLY = 50, 2.0
# Predictions may leave the range of the targets by this share of it.
_WIDER = 0.25


@dataclass(frozen=True, eq=False)
class Wishes:
    """What a user has said of the model beside its kernel; "auto" leaves it to the search."""

    metric: str | None
    linear: bool | str
    scaling: str | None
    clip: Any
    fit_intercept: bool

    def search(self, rows: TrainingRows, streams: RandomStreams, threads: int) -> Search:
        """Return a search on some of the rows."""
        return Search(
            rows, streams, clip=self.clip, fit_intercept=self.fit_intercept, threads=threads
        )


@dataclass(frozen=True, eq=False)
class Model:
    """Columns, kernel and the weight of a linear part, with the reasons for them."""

    columns: Columns | None
    kernel: Kernel
    linear: float = 0.0
    reasons: tuple[str, ...] = ()
    # The best alpha on the pilot, divided by the root of its rows: on more of them it is larger,
    # but grows less than they do.
    alpha_per_root: float | None = None
    # The least and the largest prediction of every target; None for no limits.
    limits: Float64 | None = None

    @property
    def whole_kernel(self) -> Kernel:
        """The kernel, with the linear part."""
        return WithLinear(self.kernel, self.linear) if self.linear else self.kernel

    def prepared(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows as the kernel sees them."""
        return rows if self.columns is None else replace(rows, X=self.columns.transform(rows.X))


def found_model(
    rows: TrainingRows, kernel: Kernel | None, wishes: Wishes, streams: RandomStreams
) -> Model:
    """Return the model to fit: what was asked for, and the best of what was left open.

    With a kernel that has numbers for all parameters, "auto" adds nothing to what was given.
    """
    if kernel is None:
        return _on_single_threads(lambda threads: _chosen_model(rows, wishes, streams, threads))
    as_given = wishes.scaling in (None, "auto") and wishes.clip in (None, "auto")
    columns = None if as_given else given_columns(rows.X, wishes.scaling, wishes.clip)
    prepared = Model(columns, kernel).prepared(rows)
    searched = getattr(kernel, "gamma", None) == "auto"
    if not searched:
        weighted = prepared.weights is not None
        kernel = kernel.resolve(prepared.repeated_by_weight() if weighted else prepared.X)
    metric, linear = wishes.metric in FORMS, wishes.linear is True
    if not (searched or metric or linear):
        return Model(columns, kernel)
    base, given = columns or plain_columns(rows.X), kernel

    asked = wishes if metric else replace(wishes, metric=None)

    def completed(threads: int) -> Model:
        search = asked.search(rows, streams, threads)
        search.try_given(base, given)
        if linear and not isinstance(given, Linear):
            search.trials = search.linear_parts()
        return _with_metric(search, search.best(), asked, streams)

    return _on_single_threads(completed)


def _on_single_threads(search: Callable[[int], Model]) -> Model:
    """Search with as many threads as BLAS has, each of which calls BLAS by itself.

    Matrices of a pilot are too small for the threads of BLAS, whose number might change bits.
    """
    threads = blas_thread_count()
    with blas_threads(1):
        return search(threads)


def _chosen_model(
    rows: TrainingRows, wishes: Wishes, streams: RandomStreams, threads: int
) -> Model:
    """Choose everything that the user has left open."""
    if rows.count < _FEWEST_ROWS:
        return _default_model(rows, wishes, streams)
    search = wishes.search(rows, streams, threads)
    _warn_of_constants(search.pilot.rows)
    search.try_columns(wishes.scaling or "as-is")
    search.try_kernels()
    search.refine_gamma()
    if wishes.linear is True:
        search.trials = search.linear_parts()
    elif wishes.linear == "auto":
        search.trials += search.linear_parts()
    model = _with_metric(search, search.simplest_of_the_best(), wishes, streams)
    assert model.columns is not None
    # Where entries have no limits, predictions have none either.
    if np.isneginf(model.columns.lower).all():
        return model
    return replace(model, limits=_plausible(rows.targets))


def _with_metric(search: Search, best: Trial, wishes: Wishes, streams: RandomStreams) -> Model:
    """Learn a metric if that is wanted and possible, and give the reasons for the model."""
    pilot, start = search.pilot, best.columns
    reasons: tuple[str, ...] = search.reasons(best)
    width = int(pilot.rows.X.shape[1])
    forms: tuple[str, ...] = FORMS if wishes.metric == "auto" else (str(wishes.metric),)
    if wishes.metric == "auto" and width > MOST_FULL_COLUMNS:
        forms = ("diagonal",) if width <= MOST_DIAGONAL_COLUMNS else ()
    starts = search.starts() if wishes.metric == "auto" else search.starts_from(best)
    if wishes.metric is not None and forms and starts:
        learned = learned_metric(
            pilot, best, starts, forms, streams, always=wishes.metric != "auto"
        )
        best, reasons = learned.trial, (*reasons, learned.reason)
    if search.chooses_gamma or best.columns is not start:
        best, pilot, further = search.at_larger_scale(best)
        reasons = (*reasons, *further)
    best, further = search.in_metric(best, pilot)
    reasons = (*reasons, *further)
    linear = 0.0 if isinstance(best.kernel, Linear) else best.linear
    return Model(
        best.columns,
        best.kernel,
        linear,
        reasons,
        best.alpha / math.sqrt(pilot.rows.count),
    )


def _plausible(targets: Float64) -> Float64:
    """Return the range of the targets, widened at both ends: nothing was seen beyond."""
    least, most = targets.min(axis=0), targets.max(axis=0)
    return np.array([least - _WIDER * (most - least), most + _WIDER * (most - least)])


def widened(limits: Float64, targets: Float64) -> Float64:
    """Return limits that hold the plausible predictions of more targets as well."""
    more = _plausible(targets)
    return np.array([np.minimum(limits[0], more[0]), np.maximum(limits[1], more[1])])


def _warn_of_constants(rows: TrainingRows) -> None:
    """Say that there is nothing to learn: targets, or all columns, do not vary."""
    if (rows.targets == rows.targets[0]).all():
        warn_user(
            "y has the same value in every row, which is all that the model will predict: check "
            "that y is what is to be predicted, or give rows with other values."
        )
    largest, least = rows.X.max(axis=0), rows.X.min(axis=0)
    same = (largest != least).nnz == 0 if is_sparse(rows.X) else bool((largest == least).all())
    if same:
        warn_user(
            "every column of X has the same value in every row, so that the model can only predict "
            "the mean of y: give columns that vary."
        )


def _default_model(rows: TrainingRows, wishes: Wishes, streams: RandomStreams) -> Model:
    """Return what is taken where rows are too few for a choice."""
    few = "1 row is" if rows.count == 1 else f"{rows.count} rows are"
    warn_user(
        f"{few} too few to choose a kernel: a Gaussian one of the median distance is used. Give "
        f"at least {_FEWEST_ROWS} rows, or a kernel."
    )
    scaling = wishes.scaling if wishes.scaling in SCALINGS else "as-is"
    summary = summary_of(rows.X, wishes.clip)
    columns = prepared_columns(rows.X, summary, str(scaling), wishes.clip) or plain_columns(rows.X)
    columns = normalised(columns, rows.X, streams)
    reason = f"{few} too few for a pilot."
    return Model(columns, Gaussian(1.0), 0.0, (reason,))


class StraightLineWarning(UserWarning):
    """A linear model of the same columns would have predicted rows left out better."""


def warn_if_a_line_is_better(
    rows: TrainingRows, solution: RidgeSolution, streams: RandomStreams
) -> None:
    """Compare the leave-one-out error of a fit with that of a linear model on a pilot."""
    if solution.scores is None or rows.count < _FEWEST_ROWS_FOR_A_LINE:
        return
    pilot = Pilot.of(rows, fit_intercept=solution.fit_intercept, streams=streams, threads=1)
    with blas_threads(1):
        line = pilot.trial(pilot.view(None), Linear())
    error = float(solution.scores.min()) / pilot.variance
    noise = float(np.std(line.squares)) / math.sqrt(line.squares.size)
    if line.error + _CLEARLY * noise < error:
        warn_user(
            f"a straight line predicts better: its leave-one-out error relative to the variance is "
            f"{line.error:.3g} on {pilot.rows.count} rows, that of this model {error:.3g}. Use "
            "kernel='auto', which chooses the kernel and its gamma, or linear=True.",
            StraightLineWarning,
        )
