"""A metric learned from gradients: which columns, and which directions, a prediction depends on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from powersketch.arrays import Float64, Rows, Vector
from powersketch.docstrings import documented
from powersketch.ecosystem import DocumentationLinks, in_library_of
from powersketch.engines import elsewhere_too
from powersketch.exceptions import warn_user
from powersketch.feature_maps import MOST_CHOICE_ROWS, ChoiceRows, are_many
from powersketch.kernel_ridge.choosing.pilot import (
    GAMMAS,
    Pilot,
    Trial,
    least_error,
    standard_error,
    without_copies,
)
from powersketch.kernel_ridge.rows.columns import (
    SCALINGS,
    Columns,
    checked_clip,
    median_squared_distance,
    normalised,
    plain_columns,
    prepared_columns,
    summary_of,
)
from powersketch.kernel_ridge.rows.training_rows import (
    LEFT_OUT,
    TrainingRows,
    checked_targets,
    checked_weights,
    without_absurd_rows,
)
from powersketch.kernel_ridge.solving.many_rows import sample_of
from powersketch.kernels import Gaussian, Kernel, Linear
from powersketch.parameters import one_of
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.storable import storable
from powersketch.validation import REAL_ROWS, checked_rows, sound_array

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
# Standard errors that a gain must be above where a line, the simplest model, is best without it.
_ERRORS_ABOVE_A_LINE = 2.0
# Directions of smaller gradients, relative to the largest, are rounding errors.
_SMALLEST = 1e-12


@storable
@documented
class LearnedMetric(
    DocumentationLinks, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    """Columns turned and stretched such that distances are those that matter for y.

    A kernel ridge regression is fitted, the mean outer product of its gradients says which
    directions the prediction depends on, and in the metric of a power of it the regression is
    fitted again: recursive feature machines [1]_. Powers ½ and 1 and up to five steps are tried on
    a pilot of the rows, and held-out rows decide. What comes after it in a pipeline, such as a
    feature map of the Gaussian kernel or nearest neighbours, sees Euclidean distances
    ‖z(x) − z(y)‖² = (x − y)ᵀM(x − y) of columns that were clipped and scaled before.

    Parameters
    ----------
    metric : {"full", "diagonal"}, default="full"
        Whether columns are mixed, or only weighted. Of more than 256 columns, the full metric has
        a rank of 256 at most.
    scaling : {"scaled", "as-is", "indicators", "ranks"}, default="scaled"
        What is done to columns before: equal spread for all, nothing but one factor, as "scaled"
        with a column for every value of those that have few whole numbers, or as "scaled" with
        skewed columns by rank.
    clip : float, "auto" or None, default="auto"
        Entries further from the median of a column than this many standard deviations are clipped;
        "auto" clips what is beyond all plausible values, None nothing.
    %(random_state)s

    Attributes
    ----------
    metric_ : ndarray of shape (d, d)
        The metric M of the scaled columns, of trace one.
    feature_importances_ : ndarray of shape (n_features,)
        Its diagonal by given columns, of sum one.
    seed_ : int
        The seed that all random numbers come from.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns seen by `fit`, if they had string names.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning in
       neural networks and backpropagation-free machine learning models", Science 383, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import LearnedMetric
    >>> random = np.random.RandomState(0)
    >>> X = random.randn(400, 6)
    >>> y = np.sin(2 * X[:, 0] + X[:, 1])
    >>> metric = LearnedMetric("diagonal", random_state=0).fit(X, y)
    >>> bool(metric.feature_importances_[:2].sum() > 0.95)
    True
    """

    _columns: Columns

    def __init__(
        self,
        metric: str = "full",
        *,
        scaling: str = "scaled",
        clip: float | str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.metric = metric
        self.scaling = scaling
        self.clip = clip
        self.random_state = random_state

    @elsewhere_too
    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the metric: of very many rows, from a sample of 65,536 and the longest row.

        Parameters
        ----------
        %(ridge_rows)s
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Numbers to be predicted, or labels that are texts or truth values. Labels that are
            numbers are taken for numbers: convert them with ``astype(str)``.
        %(ridge_weights)s

        Returns
        -------
        self : LearnedMetric
            The transformer, fitted.
        """
        one_of("metric", self.metric, FORMS)
        one_of("scaling", self.scaling, SCALINGS)
        checked_clip(self.clip)
        seed = seed_from(self.random_state)
        rows = self._training_rows(X, y, sample_weight)
        total = int(_num_samples(X))
        if are_many(total, MOST_CHOICE_ROWS):
            numbers = np.arange(total) if rows.numbers is None else rows.numbers
            chosen = ChoiceRows.of(rows.X, numbers, total, MOST_CHOICE_ROWS)
            chosen.warn_of_far_rows(LEFT_OUT)
            rows = sample_of(rows, chosen)
        rows, _ = without_absurd_rows(rows, lambda _: Linear())
        rows = without_copies(rows)
        columns = self._learned_columns(rows, RandomStreams(seed, "learned-metric"))
        validate_data(self, X, skip_check_array=True)
        self.seed_, self._columns = seed, columns
        return self

    @elsewhere_too
    @documented
    def transform(self, X: Any) -> Rows:
        """Return the rows in the metric.

        Parameters
        ----------
        %(ridge_rows)s

        Returns
        -------
        Z : ndarray or sparse matrix of shape (n_samples, n_features)
            float32 for float32 rows, else float64; sparse for sparse rows and a diagonal metric.
        """
        check_is_fitted(self)
        rows = validate_data(self, sound_array("X", X), **REAL_ROWS, reset=False)
        return in_library_of(X, self._columns.transform(rows), self)

    @property
    def metric_(self) -> Float64:
        """The metric of the scaled columns."""
        check_is_fitted(self)
        return self._columns.metric_matrix()

    @property
    def feature_importances_(self) -> Vector:
        """The diagonal of the metric by given columns."""
        check_is_fitted(self)
        return self._columns.importances()

    @property
    def _n_features_out(self) -> int:
        root = self._columns.metric
        assert root is not None
        return int(root.shape[-1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _learned_columns(self, rows: TrainingRows, streams: RandomStreams) -> Columns:
        """Return the scaled columns in the metric, which begins with the best of a few gammas."""
        summary = summary_of(rows.X, self.clip)
        scaled = prepared_columns(rows.X, summary, self.scaling, self.clip)
        columns = normalised(scaled or plain_columns(rows.X), rows.X, streams)
        pilot = Pilot.of(rows, fit_intercept=True, streams=streams, threads=1)
        start = least_error(pilot.trials(pilot.view(columns), map(Gaussian, GAMMAS)))
        learned = learned_metric(pilot, start, [start], [self.metric], streams, always=True)
        if learned.form is None or learned.trial.columns is None:
            warn_user(
                f"{learned.reason} All columns count alike: give at least {_FEWEST_ROWS} rows."
            )
            width = columns.transform(rows.X[:1]).shape[1]
            return replace(columns, metric=np.ones(width))
        return learned.trial.columns

    def _training_rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        labels = np.asarray(y) if y is not None else None
        if labels is not None and labels.dtype.kind in "OUSb" and labels.ndim == 1:
            rows = checked_rows(X, estimator=self)
            classes = np.unique(labels)
            targets = np.where(labels[:, np.newaxis] == classes, 1.0, -1.0)
        else:
            rows, targets = checked_targets(X, y, estimator=self)
        weights = checked_weights(sample_weight, rows)
        return TrainingRows.of_positive_weight(rows, targets, weights)


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
    needed = _ERRORS_ABOVE_A_LINE if isinstance(best.kernel, Linear) else 1.0
    if gain <= needed * noise and not always:
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
    gradients = np.broadcast_to(trial.slopes.T, (count, *trial.slopes.T.shape))
    if not isinstance(trial.kernel, Linear):
        gradients = gradients + trial.kernel.gradients(P, trial.values, trial.landmarks)
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
