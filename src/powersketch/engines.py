"""Rows that are elsewhere, such as those of Dask: who computes with them.

Estimators know nothing of it but this: a method marked by `elsewhere_too` that is given such rows
is run by the room that can. That room is imported when it is first needed, by its name: it stands
above all others, and its own dependencies need not be installed.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from powersketch.exceptions import InputTypeError

Given = ParamSpec("Given")
Result = TypeVar("Result")
Self = TypeVar("Self")

# The package that a collection's type comes from, and the room that computes with it.
_ROOMS = {"dask": "powersketch.distributed"}


class Engine(Protocol):
    """What computes with rows that are elsewhere."""

    def run(
        self, method: str, estimator: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Do what the estimator's method of this name does with rows in memory."""

    def solve(self, **given: Any) -> Any:
        """Do what `solve_kernel_system` does with rows in memory, given all its parameters."""


def is_elsewhere(X: Any) -> bool:
    """Tell whether X is a collection that another package computes when it is asked to."""
    return _package_of(X) in _ROOMS


def engine_of(arrays: Iterable[Any]) -> Engine | None:
    """Return what computes with the first of the arrays that is elsewhere; None if none is."""
    for X in arrays:
        room = _ROOMS.get(_package_of(X))
        if room is not None:
            engine: Engine = importlib.import_module(room).ENGINE
            return engine
    return None


def elsewhere_too(
    method: Callable[Concatenate[Self, Given], Result],
) -> Callable[Concatenate[Self, Given], Result]:
    """Let a method of an estimator take rows that are elsewhere, too."""

    @functools.wraps(method)
    def run(self: Self, /, *given: Given.args, **named: Given.kwargs) -> Result:
        engine = engine_of((*given, *named.values()))
        if engine is None:
            return method(self, *given, **named)
        result: Result = engine.run(method.__name__, self, given, dict(named))
        return result

    return run


def refuse_elsewhere(name: str, X: Any) -> None:
    """Refuse collections where rows have to be in memory: they would be loaded without a word."""
    if is_elsewhere(X):
        raise InputTypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}; allowed here are rows in "
            f"memory: give {name}.compute(), or a part of the rows that fits."
        )


def _package_of(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
