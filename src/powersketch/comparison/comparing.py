"""Feature maps side by side on the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from powersketch.accuracy import DataRows
from powersketch.comparison.measuring import Laboratory, Picture
from powersketch.comparison.methods import chosen_methods
from powersketch.comparison.pilot import (
    FEWEST_ROWS,
    ExactReference,
    check_memory,
    divided_rows,
)
from powersketch.comparison.plan import Plan
from powersketch.comparison.results import Comparison, Measurement
from powersketch.exceptions import InputError
from powersketch.execution import Progress, blas_threads, thread_count
from powersketch.kernels import Kernel, as_kernel
from powersketch.random_streams import RandomStreams, seed_from

# Told how many measurements of how many are done, and what the next one is.
Callback = Callable[[int, int, str], None]

_SEED_LIMIT = 2**32
_TEXT_WIDTH = 40


def compare(
    X: Any,
    kernel: Kernel | str,
    *,
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
    what a map knows of the rows that it was fitted on says little about new ones. Rows are drawn
    at random; half of `pilot_rows` are measured, and up to `pilot_rows` others are fitted on. If X
    has no more than `pilot_rows` rows, one half is fitted on and the other one measured.

    For every method, size and seed the errors of Z Zᵀ against the exact kernel matrix K of the
    measured rows are computed, relative to K: in Frobenius norm over all pairs, in operator norm
    (100 Lanczos steps, which find it from below), and as the extreme eigenvalues of the pencil
    (Z Zᵀ + αI, K + αI) on up to 512 of the rows. Times are those of `fit` and `transform`; memory
    is what the fitted map stores and what Python and NumPy allocate during a transform. Figures
    are medians over the seeds.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Rows are samples, at least 4.
    kernel : powersketch.kernels.Kernel or str
        The kernel, or a name that :func:`powersketch.kernels.as_kernel` knows, for one with
        default parameters; that of "gaussian" is gamma = 1 / (n_features · variance of X).
    methods : list of str or None, default=None
        Names of ``powersketch.comparison.METHODS``; None takes all that can do the kernel.
    components : iterable of int, default=(128, 256, 512, 1024)
        Numbers of features.
    seeds : int, default=3
        How many draws of every method are measured.
    pilot_rows : int, default=2000
        See above; at least 4. Its square decides the memory that the exact kernel takes.
    alpha : float or None, default=None
        The α of the pencil, positive. None is a hundredth of the trace of K on its rows.
    time_budget : float or None, default=None
        Seconds that the transform of all rows of X may take, for the recommendation.
    memory_budget : int or None, default=None
        Bytes that the fitted map and the transform of all rows at once may take, likewise.
    random_state : int, RandomState instance or None, default=None
        What the choice of rows and all seeds come from. With an int, everything but times and
        memory is the same again on the same machine.
    n_jobs : int or None, default=None
        Number of threads, with scikit-learn's meaning: None is 1, -1 all processors.
    verbose : int, default=0
        Whether progress is reported on standard error.
    callback : callable or None, default=None
        Called before every measurement and at the end, with the number of those that are done, the
        number of all, and a text that names the next one.

    Returns
    -------
    Comparison
        A table of all figures, with spectra and parts of the matrices. A method that fails, such
        as Nyström's with more features than rows to fit on, is listed with its message. After an
        interruption (Ctrl-C) what is finished is returned, with ``complete=False``.

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
    >>> found = compare(
    ...     X,
    ...     Polynomial(degree=3, gamma=0.05, coef0=1.0),
    ...     methods=["power", "sklearn-countsketch"],
    ...     components=[32, 64],
    ...     random_state=0,
    ... )
    >>> found.best(components=64).method
    'power'
    """
    plan = Plan.of(components, seeds, pilot_rows, alpha, time_budget, memory_budget)
    kernel = as_kernel(kernel)
    thread_count(n_jobs)
    seed = seed_from(random_state)
    rows = _enough_rows(X)
    exact_kernel = kernel.resolve(rows.matrix)
    chosen = chosen_methods(methods, exact_kernel)
    laboratory = _laboratory(exact_kernel, rows, plan, RandomStreams(seed, "comparison"), n_jobs)
    tasks = [(method, size) for size in plan.components for method in chosen]
    report = _reporter(len(tasks), verbose, callback)
    # Methods that rest on BLAS get as many threads as those that do not.
    with blas_threads(thread_count(n_jobs)):
        measurements, pictures, complete = _run(laboratory, tasks, report)
    common = _common_size(measurements, plan.components)
    shown = {method: picture for (method, size), picture in pictures.items() if size == common}
    exact = laboratory.exact
    return Comparison(
        kernel=repr(exact_kernel),
        data_shape=rows.matrix.shape,
        fit_rows=laboratory.fitted.count,
        measured_rows=laboratory.measured.count,
        components=plan.components,
        seeds=plan.seeds,
        seed=seed,
        measurements=tuple(measurements),
        exact=exact.cost,
        alpha=exact.alpha * exact.scale,
        spectrum=exact.spectrum * exact.scale,
        common_components=common,
        approximate_spectra={method: picture.spectrum for method, picture in shown.items()},
        kernel_image=exact.image_of(exact.matrix),
        approximate_images={method: picture.image for method, picture in shown.items()},
        time_budget=plan.time_budget,
        memory_budget=plan.memory_budget,
        complete=complete,
    )


def _enough_rows(X: Any) -> DataRows:
    rows = DataRows.of(X)
    if rows.count < FEWEST_ROWS:
        raise InputError(
            f"X has {rows.count} rows; at least {FEWEST_ROWS} are needed, of which one half is "
            "fitted on and the other half measured: pass more rows."
        )
    return rows


def _laboratory(
    kernel: Kernel, rows: DataRows, plan: Plan, streams: RandomStreams, n_jobs: int | None
) -> Laboratory:
    """Divide the rows and compute the exact kernel, if there is room for it."""
    fitted, measured = divided_rows(rows, plan.pilot_rows, streams)
    check_memory(measured.count)
    exact = ExactReference.of(kernel, measured, plan.alpha, streams, n_jobs)
    return Laboratory(kernel, fitted, measured, exact, _drawn_seeds(streams, plan.seeds), n_jobs)


def _reporter(total: int, verbose: int, callback: Callback | None) -> Callback:
    """Return what tells the user and the user's callback how far the comparison is."""
    progress = Progress("compare", total, verbose, unit="measurements")

    def report(done: int, total: int, text: str) -> None:
        # Texts of one length, so that none leaves an end of the one before it on the line.
        progress.update(done, f" {text}".ljust(_TEXT_WIDTH))
        if callback is not None:
            callback(done, total, text)

    return report


def _drawn_seeds(streams: RandomStreams, count: int) -> tuple[int, ...]:
    return tuple(int(word) % _SEED_LIMIT for word in streams.words("seeds", count))


def _run(
    laboratory: Laboratory, tasks: list[Any], report: Callback
) -> tuple[list[Measurement], dict[tuple[str, int], Picture], bool]:
    """Measure one task after the other, until all are done or the user has had enough."""
    measurements: list[Measurement] = []
    pictures: dict[tuple[str, int], Picture] = {}
    try:
        for done, (method, size) in enumerate(tasks):
            report(done, len(tasks), f"{method.name}, {size} components")
            found, picture = laboratory.measure(method, size)
            measurements.append(found)
            if picture is not None:
                pictures[method.name, size] = picture
        report(len(tasks), len(tasks), "")
    except KeyboardInterrupt:
        return measurements, pictures, False
    return measurements, pictures, True


def _common_size(measurements: list[Measurement], components: tuple[int, ...]) -> int:
    """Return the size at which most methods worked, the largest of such."""
    working = Counter(found.n_components for found in measurements if not found.failed)
    return max(components, key=lambda size: (working[size], size))
