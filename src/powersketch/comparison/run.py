"""Feature maps side by side on the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.accuracy import DataRows
from powersketch.comparison.advice import remarks_on
from powersketch.comparison.measure import MATRICES_IN_MEMORY, ExactReference, Experiment, Picture
from powersketch.comparison.methods import Method, chosen_methods
from powersketch.comparison.prediction import Baseline, Prediction, measured_baselines, task_of
from powersketch.comparison.results import Comparison, Measurement
from powersketch.docstrings import documented
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import Progress, available_memory, blas_threads, thread_count
from powersketch.kernels import Kernel, as_kernel
from powersketch.pages import bytes_text
from powersketch.parameters import checked_integer, checked_positive, refuse_unless_default
from powersketch.random_streams import RandomStreams, seed_from

# Called with the number of measurements that are done, that of all, and the name of the next one.
Callback = Callable[[int, int, str], None]
Task = tuple[Method, int]
# The kind of task, and the values to predict.
Target = tuple[str, NDArray[Any]]

_FEWEST_ROWS = 4
_MOST_SEEDS = 10**6
_SEED_LIMIT = 2**32
_TEXT_WIDTH = 40


@documented
def compare(
    X: Any,
    kernel: Kernel | str,
    *,
    y: Any = None,
    task: str = "auto",
    methods: Sequence[str] | None = None,
    components: Iterable[int] = (128, 256, 512, 1024),
    seeds: int = 3,
    pilot_rows: int = 2000,
    alpha: float | None = None,
    time_budget: float | None = None,
    memory_budget: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    callback: Callback | None = None,
) -> Comparison:
    """Measure every way to approximate a kernel on a pilot of the rows.

    All maps, whether they look at the data or not, are fitted on some rows and measured on others:
    errors on the rows that a map was fitted on say little about new ones. Rows are drawn at
    random; half of `pilot_rows` are measured, and up to `pilot_rows` others are fitted on. If X
    has no more than `pilot_rows` rows, one half is fitted on and the other one measured.

    For every method, size and seed the errors of Z Zᵀ against the exact kernel matrix K of the
    measured rows are computed, relative to K: in Frobenius norm over all pairs, in operator norm
    (100 Lanczos steps, which approach it from below), and as the extreme eigenvalues of the pencil
    (Z Zᵀ + αI, K + αI) on up to 512 of the rows. Times are those of `fit` and `transform`; memory
    is what the fitted map stores and what Python and NumPy allocate during a transform. Figures
    are medians over the seeds.

    With a target `y`, predictions are measured as well: ridge regression on the features, with its
    penalty by leave-one-out errors, is fitted to the rows for fitting, and its error at the
    measured rows stands beside those of a linear model and of gradient boosting on the columns
    themselves. A small error of the kernel is no promise of good predictions, nor needed for them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows are samples, at least 4.
    kernel : powersketch.kernels.Kernel or str
        The kernel, or a name that :func:`powersketch.kernels.as_kernel` knows, for one with
        default parameters; that of "gaussian" is gamma = 1 / (n_features · variance of X).
    y : array of shape (n_samples,) or None, default=None
        What is to be predicted, numbers or classes.
    task : {"auto", "regression", "classification"}, default="auto"
        Which of both; "auto" takes text, truth values, and whole numbers of at most 20 kinds for
        classes.
    methods : list of str or None, default=None
        Names of ``powersketch.comparison.METHODS``; None takes all that can do the kernel.
    components : iterable of int, default=(128, 256, 512, 1024)
        Numbers of features.
    seeds : int, default=3
        How many draws of every method are measured.
    pilot_rows : int, default=2000
        See above; at least 4. The memory for the exact kernel grows with its square.
    alpha : float or None, default=None
        The α of the pencil, positive. None is a hundredth of the trace of K on its rows.
    time_budget : float or None, default=None
        Seconds that the transform of all rows of X may take, for the recommendation.
    memory_budget : int or None, default=None
        Bytes that the fitted map and the transform of all rows at once may take, likewise.
    random_state : int, RandomState instance or None, default=None
        Where the choice of rows and all seeds come from. With an int, everything except times and
        memory is reproducible on the same machine.
    %(n_jobs)s
    %(verbose)s
    callback : callable or None, default=None
        Called before every measurement and at the end with three arguments: how many measurements
        are done, how many there are, and a text that names the next one.

    Returns
    -------
    Comparison
        All figures, with spectra and parts of the matrices; printed, a table. A method that fails,
        such as Nyström's with more features than rows to fit on, is listed with its message, and
        warnings are listed likewise. After an interruption (Ctrl-C) the measurements so far are
        returned, with ``complete=False``.

    Raises
    ------
    ValueError
        For unknown methods, or methods that cannot do the kernel; the message names those that can.
    MemoryError
        If there is not enough memory for the exact kernel on the measured rows.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import compare
    >>> from powersketch.kernels import Polynomial
    >>> X = np.random.RandomState(0).rand(300, 20)
    >>> comparison = compare(
    ...     X,
    ...     Polynomial(degree=3, gamma=0.05, coef0=1.0),
    ...     methods=["power", "sklearn-countsketch"],
    ...     components=[32, 64],
    ...     random_state=0,
    ... )
    >>> comparison.best(components=64).method
    'power'
    """
    sizes = _checked_sizes(components)
    remedy = "it is how many draws are measured"
    seeds = checked_integer("seeds", seeds, 1, _MOST_SEEDS, remedy=remedy)
    pilot_rows = checked_integer("pilot_rows", pilot_rows, _FEWEST_ROWS)
    alpha = None if alpha is None else checked_positive("alpha", alpha)
    if time_budget is not None:
        time_budget = checked_positive("time_budget", time_budget)
    if memory_budget is not None:
        memory_budget = checked_integer("memory_budget", memory_budget, 1)
    threads = thread_count(n_jobs)
    named_kernel = as_kernel(kernel)
    rows = _checked_rows(X)
    target = _checked_target(y, task, rows.count)
    exact_kernel = named_kernel.resolve(rows.matrix)
    chosen = chosen_methods(methods, exact_kernel)
    seed = seed_from(random_state)
    tasks = [(method, size) for size in sizes for method in chosen]
    experiment = _experiment(exact_kernel, rows, target, pilot_rows, seeds, alpha, seed, n_jobs)
    report = _reporter(len(tasks), verbose, callback)
    # Methods that rest on BLAS get as many threads as those that do not.
    with blas_threads(threads):
        baselines, measurements, pictures, complete = _run(experiment, tasks, report)
    common = _common_size(measurements, sizes)
    shown = {method: picture for (method, size), picture in pictures.items() if size == common}
    spectra = {method: picture.spectrum for method, picture in shown.items()}
    images = {method: picture.image for method, picture in shown.items()}
    exact = experiment.exact
    return Comparison(
        kernel=repr(exact_kernel),
        data_shape=rows.matrix.shape,
        fit_rows=experiment.fit_rows.count,
        measured_rows=experiment.measured_rows.count,
        components=sizes,
        seeds=seeds,
        seed=seed,
        measurements=tuple(measurements),
        exact=exact.cost,
        alpha=exact.alpha * exact.scale,
        spectrum=exact.spectrum * exact.scale,
        common_components=common,
        approximate_spectra=spectra,
        kernel_image=exact.image_of(exact.matrix),
        approximate_images=images,
        time_budget=time_budget,
        memory_budget=memory_budget,
        complete=complete,
        date=date.today().isoformat(),
        task=None if target is None else target[0],
        baselines=baselines,
        remarks=remarks_on(exact_kernel, exact.matrix, experiment.measured_rows.matrix),
        exact_kernel=exact_kernel,
    )


def _checked_sizes(components: Any) -> tuple[int, ...]:
    if isinstance(components, str) or not isinstance(components, Iterable):
        raise InputTypeError(
            f"components={components!r} is a {type(components).__name__}; allowed is a list of "
            "integers of at least 1: pass for instance [128, 512]."
        )
    sizes = {checked_integer("components", size, 1) for size in components}
    if not sizes:
        raise InputError("components is empty; give at least one number of features.")
    return tuple(sorted(sizes))


def _checked_rows(X: Any) -> DataRows:
    rows = DataRows.of(X)
    if rows.count < _FEWEST_ROWS:
        raise InputError(
            f"X has {rows.count} rows; at least {_FEWEST_ROWS} are needed, of which one half is "
            "fitted on and the other half measured: pass more rows."
        )
    return rows


def _checked_target(y: Any, task: str, rows: int) -> Target | None:
    """Return what is to be predicted and its values, or say what is wrong with them."""
    if y is None:
        refuse_unless_default("task", task, "auto", "without a target y")
        return None
    values = np.asarray(y)
    if values.shape != (rows,):
        raise InputError(
            f"y has the shape {values.shape}; allowed is one value for each of the {rows} rows of "
            "X: pass an array of one dimension."
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError("y has values that are NaN or infinite: leave their rows out.")
    return task_of(values, task).name, values


def _experiment(
    kernel: Kernel,
    rows: DataRows,
    target: Target | None,
    pilot_rows: int,
    seeds: int,
    alpha: float | None,
    seed: int,
    n_jobs: int | None,
) -> Experiment:
    """Divide the rows and compute the exact kernel, if there is enough memory for it.

    Half of the pilot is measured; as many rows as the pilot has are fitted on, if that many others
    exist.
    """
    streams = RandomStreams(seed, "comparison")
    order = streams.permutation("rows", rows.count)
    measured = min(rows.count, pilot_rows) // 2
    fitted = min(rows.count - measured, pilot_rows)
    _check_memory(measured)
    measured_rows = rows.take(order[:measured])
    fit_rows = rows.take(order[measured : measured + fitted])
    prediction = None
    if target is not None:
        name, values = target
        targets = values[order[measured : measured + fitted]], values[order[:measured]]
        prediction = Prediction(name, fit_rows.given, targets[0], measured_rows.given, targets[1])
    return Experiment(
        kernel,
        fit_rows=fit_rows,
        measured_rows=measured_rows,
        exact=ExactReference.of(kernel, measured_rows, alpha, streams, n_jobs),
        seeds=tuple(int(word) % _SEED_LIMIT for word in streams.words("seeds", seeds)),
        n_jobs=n_jobs,
        prediction=prediction,
    )


def _check_memory(measured: int) -> None:
    """Refuse more measured rows than there is memory for their kernel matrices."""
    entry = 8 * MATRICES_IN_MEMORY
    needed, available = entry * measured * measured, available_memory()
    if needed > available:
        most = int((available / entry) ** 0.5)
        raise MemoryError(
            f"the exact kernel on {measured} measured rows and what it is compared with need "
            f"{bytes_text(needed)}, and {bytes_text(available)} are available: choose "
            f"pilot_rows of at most {2 * most}."
        )


def _reporter(total: int, verbose: int, callback: Callback | None) -> Callback:
    """Return what informs the user and the user's callback about progress."""
    progress = Progress("compare", total, verbose, unit="measurements")

    def report(done: int, total: int, text: str) -> None:
        # Texts of one length, so that each one covers all of the one before it on the line.
        progress.update(done, f" {text}".ljust(_TEXT_WIDTH))
        if callback is not None:
            callback(done, total, text)

    return report


def _run(
    experiment: Experiment, tasks: list[Task], report: Callback
) -> tuple[tuple[Baseline, ...], list[Measurement], dict[tuple[str, int], Picture], bool]:
    """Carry out one task after the other, until all are done or the user interrupts."""
    baselines: tuple[Baseline, ...] = ()
    measurements: list[Measurement] = []
    pictures: dict[tuple[str, int], Picture] = {}
    try:
        if experiment.prediction is not None:
            report(0, len(tasks), "models to compare with")
            baselines = measured_baselines(experiment.prediction)
        for done, (method, size) in enumerate(tasks):
            report(done, len(tasks), f"{method.name}, {size} components")
            measurement, picture = experiment.measure(method, size)
            measurements.append(measurement)
            if picture is not None:
                pictures[method.name, size] = picture
        report(len(tasks), len(tasks), "")
    except KeyboardInterrupt:
        return baselines, measurements, pictures, False
    return baselines, measurements, pictures, True


def _common_size(measurements: list[Measurement], sizes: tuple[int, ...]) -> int:
    """Return the size at which the most methods succeeded, the largest of such sizes."""
    successes = Counter(each.n_components for each in measurements if not each.failed)
    return max(sizes, key=lambda size: (successes[size], size))
