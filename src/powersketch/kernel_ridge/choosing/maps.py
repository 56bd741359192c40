"""The choice of a feature map and its size from a pilot and a budget."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from powersketch.exceptions import held_back, warn_user
from powersketch.kernel_ridge.choosing.budgets import (
    MOST_SUMMED_FEATURES,
    Budget,
    bytes_of_fit,
    bytes_of_scores,
    exact_fits,
    most_iterated_landmarks,
    most_on_pilot,
    most_summed,
)
from powersketch.kernel_ridge.choosing.model import Model
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.features import (
    LANDMARKS,
    Features,
    fitted_map,
    has_sketch,
    map_of_kernel,
)
from powersketch.kernel_ridge.solving.iterative import JITTER_OF_STORED
from powersketch.kernel_ridge.solving.path import ridge_solution
from powersketch.kernel_ridge.solving.statistics import statistics_of_blocks
from powersketch.kernels import Kernel, Linear
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

Result = TypeVar("Result")

_PILOT_ROWS = 4000
_LARGEST_PILOT_MAP = 512
_ROWS_PER_FEATURE = 4  # of the pilot, at least
_FEWEST_ROWS = 64  # in half of a pilot, else it says nothing
_SIZES = tuple(2**power for power in range(5, 15))
# Errors below this many times the least count as equal, and the first candidate is taken: random
# landmarks predict well on most data, and leverage scores cost most.
_EQUAL_ERRORS = 1.02
_PILOT_SHARE = 0.25  # of the memory, for the rows of the pilot
_FEWEST_PILOT_FEATURES = 16
# Of the predicted time, for the budget that is advised: predictions vary.
_ADVISED_TIME = 1.5
# Times are measured this often where a budget of seconds depends on them; the shortest counts.
_REPETITIONS = 3
_TITLES = {
    "exact": "exact kernel",
    "columns": "linear model on the columns",
    "landmarks": "Nyström map",
    "row-sketch": "row sketch of the kernel",
    "sketch": "sketch of the kernel",
    "uniform": "Nyström map with random landmarks",
    "leverage": "Nyström map with landmarks by leverage",
}


@storable
@dataclass(frozen=True)
class Candidate:
    """A feature map as it did on the pilot.

    Attributes
    ----------
    name : {"sketch", "uniform", "leverage"}
        The sketch of the kernel, or LeverageNystroem with landmarks at random or by leverage.
    error : float
        Mean squared error at the pilot's other half, relative to that of the mean.
    features : int
        Size of the map on the pilot.
    seconds_per_row : float
        Time to compute the features of a row.
    seconds_to_fit : float
        Time to fit the map on a half of the pilot.
    seconds_per_product : float
        Time per row and pair of features to sum the Gram matrix.
    columns : int
        Number of columns of the data.
    """

    name: str
    error: float
    features: int
    seconds_per_row: float
    seconds_to_fit: float
    seconds_per_product: float
    columns: int

    def seconds(self, rows: int, features: int) -> float:
        """Return the predicted time of a fit."""
        transform = rows * self.seconds_per_row * self._work(features) / self._work(self.features)
        growth = features / self.features
        products = rows * features**2 + features**3
        # Landmarks are chosen with a factorisation, and looking at every row.
        fit = self.seconds_to_fit * (growth**2 if self.name in LANDMARKS else growth)
        return transform + fit + products * self.seconds_per_product

    def bytes(self, rows: int, features: int) -> float:
        """Return the predicted memory of a fit, with blocks of rows as short as they get."""
        scores = bytes_of_scores(rows, features) if self.name == "leverage" else 0.0
        return max(bytes_of_fit(rows, features, self.columns), scores)

    def _work(self, features: int) -> float:
        """Return a number in proportion to the work for the features of a row."""
        if self.name in LANDMARKS:
            return 2.0 * self.columns * features + features**2
        return float(features)


@storable
@dataclass(frozen=True)
class Choice:
    """What was chosen for a fit, and why; ``print(model.choice_)`` says it in sentences.

    Attributes
    ----------
    name : {"exact", "columns", "sketch", "uniform", "leverage", "landmarks", "row-sketch"}
        The features: none, with the exact kernel; the columns themselves, of a linear model; a
        sketch; or landmarks, drawn at random or by leverage.
    n_components : int
        Their number; 0 with the exact kernel.
    candidates : tuple of Candidate
        Feature maps that were measured; empty where there was no choice.
    reason : str
        Why these features, in words.
    model : tuple of str
        Why this kernel, its parameters, the columns, the linear part and the metric, in sentences
        with the figures that were compared; empty if all that was given.
    """

    name: str
    n_components: int
    candidates: tuple[Candidate, ...]
    reason: str
    model: tuple[str, ...] = ()

    def __str__(self) -> str:
        size = f" of {self.n_components} features" if self.n_components else ""
        features = f"{_TITLES[self.name]}{size}: {self.reason}"
        return " ".join((*self.model, f"{features}." if self.model else features))


def chosen_features(
    rows: TrainingRows,
    model: Model,
    alpha: float | str,
    budget: Budget,
    *,
    fit_intercept: bool,
    more_to_come: bool,
    iterates: bool,
    seed: int,
    n_jobs: int | None,
    total: int,
) -> tuple[Any, Choice]:
    """Return "exact", None for the columns themselves, or an unfitted map; and the reason.

    The rows are those that the kernel sees, or some that stand for `total` of them.
    """
    columns, whole = int(rows.X.shape[1]), not more_to_come and alpha != "gcv"
    if budget.n_components is None:
        exact = whole and exact_fits(total, columns, budget)
        if isinstance(model.kernel, Linear) and not (exact and columns > rows.count):
            reason = "the kernel is linear in them"
            return None, Choice("columns", columns, (), reason, model.reasons)
        if exact:
            reason = f"{rows.count} rows are few enough for it"
            return "exact", Choice("exact", 0, (), reason, model.reasons)
    size = most_iterated_landmarks(total)
    unlimited = budget == Budget()
    if iterates and whole and unlimited and size > MOST_SUMMED_FEATURES:
        # Columns beside landmarks would slow down iterations: a linear part is one of the kernel.
        feature_map = map_of_kernel("uniform", model.whole_kernel, size, seed=seed, n_jobs=n_jobs)
        feature_map.set_params(jitter=JITTER_OF_STORED)
        reason = "solved for by iterations, which take more of them than sums do"
        return feature_map, Choice("uniform", size, (), reason, model.reasons)
    feature_map, choice = chosen_map(
        rows,
        model.kernel,
        alpha,
        budget,
        fit_intercept=fit_intercept,
        seed=seed,
        n_jobs=n_jobs,
        total=total,
    )
    return feature_map, replace(choice, model=model.reasons)


def chosen_map(
    rows: TrainingRows,
    kernel: Kernel,
    alpha: float | str,
    budget: Budget,
    *,
    fit_intercept: bool,
    seed: int,
    n_jobs: int | None,
    total: int,
) -> tuple[Any, Choice]:
    """Return an unfitted map for the rows, or those they stand for, and what speaks for it."""

    def unfitted(name: str, size: int) -> Any:
        return map_of_kernel(name, kernel, size, seed=seed, n_jobs=n_jobs)

    pilot = rows.sample(_pilot_rows(rows, budget), RandomStreams(seed, "kernel-ridge/pilot"))
    if pilot.count // 2 < _FEWEST_ROWS:
        size, reason = _size_without_pilot(rows, budget)
        return unfitted("uniform", size), Choice("uniform", size, (), reason)
    half, held_out = pilot[::2], pilot[1::2]
    size = _pilot_features(half.count, budget)
    if not isinstance(alpha, str):
        # The penalty of a mean over fewer rows.
        alpha = alpha * half.count / total
    measured = partial(
        _measured,
        pilot=pilot,
        half=half,
        held_out=held_out,
        alpha=alpha,
        fit_intercept=fit_intercept,
        repetitions=1 if budget.seconds is None else _REPETITIONS,
    )
    names = ("uniform", "sketch", "leverage") if has_sketch(kernel) else LANDMARKS
    # What candidates have to say of the pilot is not about the fit.
    with held_back(UserWarning):
        candidates = tuple(measured(name, unfitted(name, size)) for name in names)
    best, why = _best(_affordable(candidates, total, budget.bytes), total, budget)
    size, limit = _size(best, rows, budget, total)
    return unfitted(best.name, size), Choice(best.name, size, candidates, f"{why}; {limit}")


def _measured(
    name: str,
    feature_map: Any,
    *,
    pilot: TrainingRows,
    half: TrainingRows,
    held_out: TrainingRows,
    alpha: float | str,
    fit_intercept: bool,
    repetitions: int,
) -> Candidate:
    """Fit on every other row of the pilot, and measure times, and the error on the others."""
    _, seconds_to_fit = _timed(lambda: fitted_map(feature_map, half), 1)
    transform = Features(feature_map).transform
    Z, seconds_to_transform = _timed(lambda: transform(pilot.X), repetitions)
    block = (Z[::2], half.targets, half.weights)
    statistics, seconds_to_sum = _timed(lambda: statistics_of_blocks([block]), repetitions)
    solution = ridge_solution(statistics, alpha, None, [block], fit_intercept=fit_intercept)
    return Candidate(
        name,
        _relative_error(Z[1::2] @ solution.coef.T + solution.intercept, held_out),
        Z.shape[1],
        seconds_to_transform / pilot.count,
        seconds_to_fit,
        seconds_to_sum / (half.count * Z.shape[1] ** 2),
        int(pilot.X.shape[1]),
    )


def _pilot_rows(rows: TrainingRows, budget: Budget) -> int:
    """Return how many rows a pilot has: fewer where they would fill the memory."""
    if budget.bytes is None:
        return _PILOT_ROWS
    most = int(_PILOT_SHARE * budget.bytes / (8 * rows.X.shape[1]))
    return min(max(most, 2 * _FEWEST_ROWS), _PILOT_ROWS)


def _pilot_features(rows: int, budget: Budget) -> int:
    """Return the size of the maps that are compared on a pilot of `rows` rows."""
    size = min(rows // _ROWS_PER_FEATURE, _LARGEST_PILOT_MAP)
    size = min(size, budget.n_components or size)
    if budget.bytes is None:
        return size
    return min(size, max(most_on_pilot(rows, budget.bytes), _FEWEST_PILOT_FEATURES))


def _size_without_pilot(rows: TrainingRows, budget: Budget) -> tuple[int, str]:
    """Return the number of landmarks and the reason where rows are too few to be divided."""
    size, too_few = rows.count, f"{rows.count} rows are too few for a pilot"
    if budget.n_components is not None:
        size = min(budget.n_components, rows.count)
        _warn_if_cut(budget, size)
    elif budget.bytes is not None:
        sizes = _sizes(rows.count)
        needed = {size: bytes_of_fit(rows.count, size, rows.X.shape[1]) for size in sizes}
        allowed = [size for size in sizes if needed[size] <= budget.bytes]
        if not allowed:
            _warn_of_budget(f"{sizes[0]} features", budget, None, needed[sizes[0]])
        size = max(allowed, default=sizes[0])
        if size < rows.count:
            return size, f"{too_few}, and memory is limited"
    return size, f"{too_few}, and landmarks can be all of them"


def _sizes(rows: int) -> list[int]:
    """Return the numbers of features to choose from, ascending: no more than rows."""
    return sorted({min(size, rows) for size in _SIZES})


def _timed(call: Callable[[], Result], repetitions: int) -> tuple[Result, float]:
    """Return what the call returns, and the seconds of its fastest repetition."""
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def _relative_error(predictions: Any, rows: TrainingRows) -> float:
    weights = np.ones(rows.count) if rows.weights is None else rows.weights
    mean = np.average(rows.targets, axis=0, weights=weights)
    error = float(np.sum(weights @ (predictions - rows.targets) ** 2))
    scale = float(np.sum(weights @ (rows.targets - mean) ** 2))
    return error / scale if scale > 0.0 else 0.0


def _affordable(candidates: Sequence[Candidate], rows: int, bytes: float | None) -> list[Candidate]:
    """Leave out those that memory allows less than half of the features that another can have.

    Where memory is scarce, that for scores of leverage is better spent on more landmarks.
    """
    if bytes is None:
        return list(candidates)
    memory = Budget(bytes=bytes)
    largest = [
        max((size for size in _sizes(rows) if _fits(candidate, rows, size, memory)), default=0)
        for candidate in candidates
    ]
    pairs = zip(candidates, largest, strict=True)
    return [candidate for candidate, size in pairs if 2 * size >= max(largest)]


def _best(candidates: Sequence[Candidate], rows: int, budget: Budget) -> tuple[Candidate, str]:
    """Return the candidate of the least error; the first one where errors are equal.

    The order decides because measured times would make the choice differ from run to run.
    """
    size = budget.n_components or candidates[0].features
    least = min(candidate.error for candidate in candidates)
    equal = [c for c in candidates if c.error <= _EQUAL_ERRORS * least]
    figures = ", ".join(
        f"{c.error:.4g} ({c.name}, {c.seconds(rows, size):.2g} s for {size} features)"
        for c in candidates
    )
    first = f"first of those within {_EQUAL_ERRORS - 1:.0%} of the least error, in this order"
    rule = "least error" if len(equal) == 1 else first
    return equal[0], f"{rule}; relative squared errors on the pilot are {figures}"


def _size(
    best: Candidate, rows: TrainingRows, budget: Budget, total: int | None = None
) -> tuple[int, str]:
    """Return the number of features and what limits it; rows may stand for `total` of them."""
    total = total or rows.count
    if budget.n_components is not None:
        if best.name not in LANDMARKS or budget.n_components <= rows.count:
            return budget.n_components, "the size was given"
        _warn_if_cut(budget, rows.count)
        return rows.count, "landmarks can be no more than the rows"
    if budget.seconds is None and budget.bytes is None:
        return max(
            min(most_summed(total), rows.count), 1
        ), "as many features as their sums take about half a minute for"
    sizes = _sizes(rows.count)
    allowed = [size for size in sizes if _fits(best, total, size, budget)]
    size = max(allowed, default=sizes[0])
    seconds, bytes = best.seconds(total, size), best.bytes(total, size)
    if not allowed:
        _warn_of_budget(f"{size} features", budget, seconds, bytes)
    return size, f"predicted to take {seconds:.2g} s and {bytes:.2g} bytes"


def _warn_if_cut(budget: Budget, size: int) -> None:
    if budget.n_components is not None and size < budget.n_components:
        warn_user(
            f"n_components={budget.n_components} exceeds the {size} rows that landmarks can be: "
            f"there are {size} features. Give more rows at a time, or use features='sketch'."
        )


def _warn_of_budget(least: str, budget: Budget, seconds: float | None, bytes: float) -> None:
    """Say that even the least that can be fitted is beyond a budget, and which one would do."""
    needs, remedies = [], []
    if budget.bytes is not None and bytes > budget.bytes:
        needs.append(f"{bytes:.2g} bytes, more than memory_budget={budget.bytes:g}")
        remedies.append(f"memory_budget={math.ceil(bytes)}")
    if budget.seconds is not None and seconds is not None and seconds > budget.seconds:
        needs.append(f"{seconds:.2g} s, more than time_budget={budget.seconds:g}")
        remedies.append(f"time_budget={_ADVISED_TIME * seconds:.2g}")
    warn_user(
        f"even {least} are predicted to take {' and '.join(needs)}. They are used all the same: "
        f"give {' and '.join(remedies)} or more, or None."
    )


def _fits(candidate: Candidate, rows: int, features: int, budget: Budget) -> bool:
    in_time = budget.seconds is None or candidate.seconds(rows, features) <= budget.seconds
    return in_time and (budget.bytes is None or candidate.bytes(rows, features) <= budget.bytes)
