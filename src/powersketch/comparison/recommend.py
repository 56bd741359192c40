"""What a comparison comes to: the best method for a budget, and where the main one loses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from powersketch.comparison.methods import METHODS
from powersketch.comparison.prediction import ERROR_NAMES, model_on
from powersketch.exceptions import InputError
from powersketch.kernels import Kernel
from powersketch.pages import bytes_text, number_text, seconds_text
from powersketch.parameters import checked_integer, checked_positive, one_of

if TYPE_CHECKING:
    from powersketch.comparison.results import Comparison, Measurement

# The default of the library's sketches; the Gaussian one chooses between it and others.
MAIN_METHOD = "power"

_NORMS = {
    "frobenius": "relative Frobenius error",
    "operator": "relative operator norm error",
    "prediction": "error of predictions",
}
# A method whose error is within this factor of another one counts as its equal.
_EQUAL = 1.1


@dataclass(frozen=True)
class Recommendation:
    """The most accurate method within a budget.

    Parameters
    ----------
    method : str
        Its name.
    n_components : int
        Its number of features.
    error : float
        Its relative error.
    norm : {"frobenius", "operator", "prediction"}
        What this error is.
    reason : str
        A sentence that says so.
    kernel : Kernel or None
        The kernel that is approximated.
    task : {"regression", "classification"} or None
        What is predicted, if there was a target.
    """

    method: str
    n_components: int
    error: float
    norm: str
    reason: str
    kernel: Kernel | None = field(default=None, repr=False)
    task: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what was found by name, as what :func:`json.dumps` takes."""
        return {**vars(self), "kernel": None if self.kernel is None else repr(self.kernel)}

    def estimator(self) -> Any:
        """Return it ready to fit: the feature map, or, if there was a target, a model on it.

        Returns
        -------
        estimator
            Not yet fitted, with ``random_state=0``.

        Examples
        --------
        >>> import numpy as np
        >>> from powersketch import compare
        >>> X = np.random.RandomState(0).rand(60, 5)
        >>> found = compare(X, "poly", methods=["power"], components=[16], random_state=0)
        >>> found.best().estimator()
        PolynomialSketch(coef0=0.0, n_components=16, random_state=0)
        """
        features = self._features()
        return features if self.task is None else model_on(features, self.task)

    def code(self) -> str:
        """Return the lines of Python that make the same estimator and fit it."""
        features = self._features()
        lines = [f"features = {features!r}"]
        names = [type(features)]
        if self.task is None:
            lines.append("Z = features.fit_transform(X)")
        else:
            model = model_on("features", self.task)
            lines.append(f"model = {model!r}".replace("'features'", "features"))
            lines.append("model.fit(X, y)")
            names.append(type(model))
        if "kernel" in features.get_params(deep=False) and isinstance(features.kernel, Kernel):
            names.append(type(features.kernel))
        return "\n".join([*_imports(names), "", *lines])

    def _features(self) -> Any:
        if self.kernel is None:
            raise InputError("the kernel of this comparison is unknown: compare again.")
        return METHODS[self.method].build(self.kernel, self.n_components, 0, None)


def _imports(names: Iterable[type]) -> list[str]:
    """Return the lines that import classes from where their users know them."""
    places: dict[str, list[str]] = {}
    for kind in names:
        package, room, *_ = kind.__module__.split(".")
        public = package == "powersketch" and room != "kernels"
        places.setdefault(package if public else f"{package}.{room}", []).append(kind.__name__)
    return [f"from {place} import {', '.join(sorted(found))}" for place, found in places.items()]


def recommend(
    comparison: Comparison,
    *,
    components: int | None = None,
    seconds: float | None = None,
    memory: int | None = None,
    norm: str | None = None,
) -> Recommendation:
    """Return the measurement of the smallest error within the limits, the fastest among equals.

    Seconds and memory that are not given are the budgets of the comparison, if it has any.
    """
    seconds = comparison.time_budget if seconds is None else seconds
    memory = comparison.memory_budget if memory is None else memory
    norm = _checked_norm(comparison, norm)
    limits = _limits(comparison.data_shape[0], components, seconds, memory)
    allowed: Sequence[Measurement] = comparison.successes
    if not allowed:
        raise InputError("no method has been measured: there is nothing to choose from.")
    for limit in limits:
        _check_any_fits(allowed, limit)
        allowed = [each for each in allowed if limit.used(each) <= limit.most]

    def error(measurement: Measurement) -> float:
        return _error(measurement, norm)

    best = min(allowed, key=lambda each: (error(each), each.transform_seconds))
    budget = " and ".join(limit.text(limit.most) for limit in limits)
    reason = (
        f"{best.method} with {best.n_components} components has the smallest "
        f"{error_name(comparison, norm)}, {number_text(error(best))}, of the {len(allowed)} "
        f"measured{' within ' + budget if budget else ''}."
    )
    kernel, task = comparison.exact_kernel, comparison.task
    return Recommendation(best.method, best.n_components, error(best), norm, reason, kernel, task)


def _checked_norm(comparison: Comparison, norm: str | None) -> str:
    if norm is None:
        return "frobenius" if comparison.task is None else "prediction"
    if norm == "prediction" and comparison.task is None:
        raise InputError("norm='prediction' needs a target: pass y to compare.")
    return one_of("norm", norm, tuple(_NORMS))


def _error(measurement: Measurement, norm: str) -> float:
    if norm == "prediction":
        return measurement.prediction_error
    return measurement.frobenius if norm == "frobenius" else measurement.operator_norm


def error_name(comparison: Comparison, norm: str) -> str:
    """Return what an error is called in sentences."""
    suffix = (
        f" ({ERROR_NAMES[comparison.task]})" if norm == "prediction" and comparison.task else ""
    )
    return f"{_NORMS[norm]}{suffix}"


def best_line(comparison: Comparison) -> str:
    """Return why the best method within the budget is the best, or why there is none."""
    try:
        return recommend(comparison).reason
    except InputError as error:
        return str(error)


def best_code(comparison: Comparison) -> str:
    """Return the code of the best method within the budget; empty where there is none."""
    if comparison.exact_kernel is None:
        return ""
    try:
        return recommend(comparison).code()
    except InputError:
        return ""


@dataclass(frozen=True)
class _Limit:
    name: str
    most: float
    used: Callable[[Measurement], float]
    text: Callable[[float], str]


def _limits(
    rows: int, components: int | None, seconds: float | None, memory: int | None
) -> list[_Limit]:
    limits = []
    if components is not None:
        most = checked_integer("components", components, 1)
        limits.append(
            _Limit("components", most, lambda each: each.n_components, lambda x: f"{x:g} features")
        )
    if seconds is not None:
        most_seconds = checked_positive("transform_seconds", seconds)
        limits.append(
            _Limit(
                "transform_seconds",
                most_seconds,
                lambda each: each.seconds_for(rows),
                lambda x: f"{seconds_text(x)} for {rows} rows",
            )
        )
    if memory is not None:
        most_bytes = checked_integer("memory_bytes", memory, 1)
        limits.append(
            _Limit(
                "memory_bytes",
                most_bytes,
                lambda each: each.bytes_for(rows),
                lambda x: f"{bytes_text(x)} for {rows} rows",
            )
        )
    return limits


def _check_any_fits(candidates: Sequence[Measurement], limit: _Limit) -> None:
    """Refuse a limit that no candidate meets."""
    leanest = min(candidates, key=limit.used)
    if limit.used(leanest) > limit.most:
        raise InputError(
            f"{limit.name}={limit.most:g} is too little for all that was measured; the least is "
            f"{limit.text(limit.used(leanest))}, by {leanest.method} with "
            f"{leanest.n_components} components: allow that much, or compare smaller components."
        )


@dataclass(frozen=True)
class Answer:
    """What a comparison comes to, in words.

    `best` names the best method, `code` makes it, `main` says how the main method did. `lists` has
    titles and the sentences below them: which method for which size and time, and where the main
    method is not the best.
    """

    best: str
    code: str = ""
    main: str = ""
    lists: tuple[tuple[str, list[str]], ...] = ()


def answer(comparison: Comparison) -> Answer:
    """Return the answer that the page gives."""
    successes = [each for each in comparison.successes if math.isfinite(each.frobenius)]
    if not successes:
        return Answer("No method has been measured: there is nothing to choose from.")
    lists = (
        ("The most accurate method of every size", _by_size(successes)),
        ("The most accurate method within a transform time", _by_time(successes)),
        (
            f"Where {MAIN_METHOD}, the library’s main method, is not the best",
            _losses(successes),
        ),
    )
    code = best_code(comparison)
    return Answer(best_line(comparison), code, _main_in_brief(successes), lists)


def _by_size(successes: list[Measurement]) -> list[str]:
    """Return the best method of every stretch of sizes."""
    sizes = sorted({each.n_components for each in successes})
    best = [_best(each for each in successes if each.n_components == size) for size in sizes]
    return [
        f"{_range(str(first.n_components), str(last.n_components))} components: {first.method}, "
        f"error {_errors(first, last)}"
        for first, last in _stretches(best)
    ]


def _by_time(successes: list[Measurement]) -> list[str]:
    """Return from which time on which method is the best one."""
    timed = [each for each in successes if math.isfinite(each.seconds_per_row)]
    front: list[Measurement] = []
    for each in sorted(timed, key=lambda each: (each.seconds_per_row, each.frobenius)):
        if not front or each.frobenius < front[-1].frobenius:
            front.append(each)
    return [
        f"from {seconds_text(first.seconds_per_row)} per row: {first.method} with "
        f"{_range(str(first.n_components), str(last.n_components))} components, "
        f"error {_errors(first, last)}"
        for first, last in _stretches(front)
    ]


def _stretches(measurements: list[Measurement]) -> Iterator[tuple[Measurement, Measurement]]:
    """Yield the first and the last measurement of every stretch of one method."""
    for _, group in groupby(measurements, key=lambda each: each.method):
        stretch = list(group)
        yield stretch[0], stretch[-1]


def _errors(first: Measurement, last: Measurement) -> str:
    return _range(number_text(first.frobenius), number_text(last.frobenius))


def _range(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _main_in_brief(successes: list[Measurement]) -> str:
    """Return how often the main method is as good as any, in one sentence."""
    main = [each for each in successes if each.method == MAIN_METHOD]
    if not main:
        return f"The library’s main method, {MAIN_METHOD}, is not among the measured methods."
    same_kind = [each for each in successes if each.kind == main[0].kind]
    of_kind = sum(_is_as_good(each, _of_same_size(same_kind, each)) for each in main)
    of_all = sum(_is_as_good(each, _of_same_size(successes, each)) for each in main)
    in_time = sum(_is_as_good(each, _not_slower(successes, each)) for each in main)
    return (
        f"At equal size, the library’s main method, {MAIN_METHOD}, is the most accurate "
        f"{main[0].kind} method or within 10\u00a0% of it for {of_kind} of {len(main)} sizes, and "
        f"of all methods for {of_all} of {len(main)}; at equal transform time it is so for "
        f"{in_time} of {len(main)}."
    )


def _losses(successes: list[Measurement]) -> list[str]:
    """Return where another method is better by more than a tenth, at equal size or time."""
    main = [each for each in successes if each.method == MAIN_METHOD]
    losses = []
    for each in main:
        rivals = _of_same_size(successes, each)
        if not _is_as_good(each, rivals):
            rival = _best(rivals)
            losses.append(
                f"{each.n_components} components: {rival.method} has error "
                f"{number_text(rival.frobenius)}, {MAIN_METHOD} has {number_text(each.frobenius)}"
            )
    for each in sorted(main, key=lambda each: each.seconds_per_row):
        rivals = _not_slower(successes, each)
        if not _is_as_good(each, rivals):
            rival = _best(rivals)
            losses.append(
                f"{seconds_text(each.seconds_per_row)} per row: {rival.method} with "
                f"{rival.n_components} components has error {number_text(rival.frobenius)}, "
                f"{MAIN_METHOD} with {each.n_components} has {number_text(each.frobenius)}"
            )
    return losses


def _is_as_good(measurement: Measurement, rivals: Iterable[Measurement]) -> bool:
    return measurement.frobenius <= _EQUAL * _best(rivals).frobenius


def _of_same_size(successes: list[Measurement], measurement: Measurement) -> list[Measurement]:
    return [each for each in successes if each.n_components == measurement.n_components]


def _not_slower(successes: list[Measurement], measurement: Measurement) -> list[Measurement]:
    return [each for each in successes if each.seconds_per_row <= measurement.seconds_per_row] or [
        measurement
    ]


def _best(measurements: Iterable[Measurement]) -> Measurement:
    return min(measurements, key=lambda each: each.frobenius)
