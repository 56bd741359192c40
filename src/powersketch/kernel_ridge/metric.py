"""A metric learned from gradients: which columns, and which directions, a prediction depends on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from powersketch.arrays import Float64, Vector
from powersketch.kernel_ridge.columns import Columns, median_squared_distance
from powersketch.kernel_ridge.pilot import Pilot, Trial, least_error, standard_error
from powersketch.kernel_ridge.training_rows import TrainingRows
from powersketch.kernels import Gaussian, Kernel
from powersketch.random_streams import RandomStreams

FORMS = ("full", "diagonal")
MOST_FULL_COLUMNS = 256
MOST_DIAGONAL_COLUMNS = 4096
_EXPONENTS = (1.0, 0.5)
_MOST_STEPS = 5
_LEAST_GAIN = 0.002  # of the error, for another step
# Rows that gradients are taken at, and the entries that these may have.
_GRADIENT_ROWS = 1000
_MOST_ENTRIES = 1 << 24
# Fewer rows are held out in turn, more of them once.
_FOLDS, _ROWS_FOR_ONE_SPLIT = 3, 1200
_FEWEST_ROWS = 40
# Directions of smaller gradients, relative to the largest, are rounding errors.
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Learned:
    """What learning has led to: the trial in the metric, or that without one, and the reason."""

    trial: Trial
    form: str | None
    reason: str


def learned_metric(
    pilot: Pilot,
    best: Trial,
    starts: Sequence[Trial],
    forms: Sequence[str],
    streams: RandomStreams,
    *,
    always: bool = False,
) -> Learned:
    """Learn a metric where rows that are held out show a gain above noise, or always.

    Gradients of a fit tell which directions matter; in the metric of their mean outer product the
    fit is repeated, with gamma and alpha chosen anew [RBPB24]. From every start, every form and
    exponent takes a step, the better half of them another one, and the best goes on as long as
    the error at the rows held out falls. It is compared with that of the best trial without.
    """
    if pilot.rows.count < _FEWEST_ROWS:
        few = f"{pilot.rows.count} rows are too few to learn a metric from."
        return Learned(best, None, few)
    parts = _parts(pilot, streams)
    before = _held_out_squares(parts, [part.again(best) for part, _ in parts])
    run = min((_best_run(parts, start, forms) for start in starts), key=lambda run: run.error)
    gain, noise = float(np.mean(before - run.squares)), standard_error(before, run.squares)
    errors = f"{before.mean():.4f} without and {run.error:.4f} with one"
    if gain <= noise and not always:
        return Learned(best, None, f"A learned metric does not help: held-out errors are {errors}.")
    trial = run.start
    for _ in range(run.steps):
        trial = _step(pilot, trial, run.form, run.exponent)
    times = "step" if run.steps == 1 else "steps"
    return Learned(
        trial,
        run.form,
        f"A {run.form} metric was learned in {run.steps} {times} with exponent {run.exponent:g}: "
        f"held-out errors are {errors}.",
    )


def _best_run(parts: list[tuple[Pilot, TrainingRows]], start: Trial, forms: Sequence[str]) -> _Run:
    """Return the best run from a start, at the number of steps that was best."""
    first = [part.again(start) for part, _ in parts]
    runs = [_Run(start, form, exponent, first) for form in forms for exponent in _EXPONENTS]
    best: _Run | None = None
    for _ in range(_MOST_STEPS):
        runs = sorted((run.next(parts) for run in runs), key=lambda run: run.error)
        if best is not None and runs[0].error > (1.0 - _LEAST_GAIN) * best.error:
            break
        best, runs = runs[0], runs[: max(len(runs) // 2, 1)]
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class _Run:
    """Some steps of one form and exponent, on all parts of a pilot."""

    start: Trial
    form: str
    exponent: float
    trials: list[Trial]
    steps: int = 0
    squares: Vector = field(default_factory=lambda: np.empty(0))
    error: float = math.inf

    def next(self, parts: list[tuple[Pilot, TrainingRows]]) -> _Run:
        """Return the run with one more step, measured at the rows that were held out."""
        trials = [
            _step(pilot, trial, self.form, self.exponent)
            for (pilot, _), trial in zip(parts, self.trials, strict=True)
        ]
        squares = _held_out_squares(parts, trials)
        return replace(
            self, trials=trials, steps=self.steps + 1, squares=squares, error=float(squares.mean())
        )


def _parts(pilot: Pilot, streams: RandomStreams) -> list[tuple[Pilot, TrainingRows]]:
    """Return parts of the pilot to learn on, and the rows that are held out of each."""
    count = pilot.rows.count
    order = streams.child("folds").sample("rows", count, count)
    once = count >= _ROWS_FOR_ONE_SPLIT
    held_out = [order[: count // 3]] if once else [order[k::_FOLDS] for k in range(_FOLDS)]
    return [
        (pilot.part(np.setdiff1d(order, rows), streams), pilot.rows[np.sort(rows)])
        for rows in held_out
    ]


def _held_out_squares(parts: list[tuple[Pilot, TrainingRows]], trials: list[Trial]) -> Vector:
    pairs = zip(parts, trials, strict=True)
    return np.concatenate([pilot.squares_at(trial, held) for (pilot, held), trial in pairs])


def _step(pilot: Pilot, trial: Trial, form: str, exponent: float) -> Trial:
    """Learn a metric from the gradients of a trial, and fit in it with gamma chosen anew."""
    root = root_of_metric(_gradients(pilot, trial), form, exponent)
    view = pilot.view(_in_metric(pilot, trial, root))
    return least_error(pilot.trials(view, _nearby(trial.kernel), trial.linear))


def _in_metric(pilot: Pilot, trial: Trial, root: Float64) -> Columns:
    """Return the trial's columns in a new metric, in which distances are as large as before."""
    assert trial.columns is not None
    columns = replace(trial.columns, metric=root, constant=0.0)
    before = median_squared_distance(trial.landmarks)
    after = median_squared_distance(columns.transform(pilot.rows.X[pilot.landmarks]))
    columns = columns.times(math.sqrt(before / after))
    return columns.with_constant() if trial.columns.constant else columns


def _gradients(pilot: Pilot, trial: Trial) -> Float64:
    """Return gradients by the columns before the metric, one for every row and target."""
    assert trial.columns is not None
    targets = trial.slopes.shape[1]
    most = max(_MOST_ENTRIES // (trial.slopes.shape[0] * targets), 1)
    count = min(pilot.rows.count, _GRADIENT_ROWS, most)
    chosen = np.linspace(0, pilot.rows.count - 1, count).astype(np.int64)
    P = trial.columns.transform(pilot.rows.X[chosen]).astype(np.float64)
    gradients = trial.kernel.gradients(P, trial.values, trial.landmarks) + trial.slopes.T
    rows: Float64 = gradients.reshape(-1, trial.slopes.shape[0])
    if trial.columns.constant:
        rows = rows[:, :-1]
    root = trial.columns.metric
    if root is None:
        return rows
    return rows * root if root.ndim == 1 else rows @ root.T


def root_of_metric(gradients: Float64, form: str, exponent: float) -> Float64:
    """Return a matrix T with T Tᵀ = M^exponent for the mean outer product M of gradients.

    Of the diagonal form, only its diagonal is returned. Of many columns, the full form has a low
    rank.
    """
    if form == "diagonal":
        squares = np.mean(gradients**2, axis=0)
        return np.asarray((squares / (squares.max() or 1.0)) ** (exponent / 2.0))
    columns = gradients.shape[1]
    if columns <= MOST_FULL_COLUMNS:
        values, vectors = np.linalg.eigh(gradients.T @ gradients)
    else:
        _, roots, transposed = np.linalg.svd(gradients, full_matrices=False)
        kept = slice(0, min(MOST_FULL_COLUMNS, roots.size))
        values, vectors = roots[kept] ** 2, transposed[kept].T
    largest = float(values.max()) or 1.0
    powers = np.where(values > _SMALLEST * largest, values / largest, 0.0) ** (exponent / 2.0)
    root: Float64 = vectors * powers
    # The symmetric root keeps the meaning of columns, which the low rank cannot.
    return root @ vectors.T if columns <= MOST_FULL_COLUMNS else root


def _nearby(kernel: Kernel) -> list[Kernel]:
    """Return the kernel and, of the Gaussian ones, those of half and twice its gamma."""
    if not isinstance(kernel, Gaussian):
        return [kernel]
    return [Gaussian(kernel.gamma * ratio) for ratio in (1.0, 2.0, 0.5)]
