"""Times short calls in turn, so that what disturbs one disturbs all, and single long calls."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

Result = TypeVar("Result")

_TURN_SECONDS = 0.15


def best_seconds(calls: Mapping[str, Callable[[], Any]], *, rounds: int) -> dict[str, float]:
    """Return the shortest time of every call; BLAS has one thread meanwhile."""
    best = dict.fromkeys(calls, float("inf"))
    with threadpool_limits(limits=1):
        for _ in range(rounds):
            for name, call in calls.items():
                best[name] = min(best[name], _best_of_turn(call))
    return best


def usual_rounds(quick: bool) -> int:
    return 2 if quick else 7


def _best_of_turn(call: Callable[[], Any]) -> float:
    """Call at least once and until the turn is over, so that short calls are repeated more."""
    best, turn_end = float("inf"), time.perf_counter() + _TURN_SECONDS
    while True:
        start = time.perf_counter()
        result = call()
        stop = time.perf_counter()
        del result  # memory is given back outside the measured time
        best = min(best, stop - start)
        if stop > turn_end:
            return best


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """Return what the call returns, and its seconds."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def shortest(call: Callable[[], Result], *, rounds: int) -> tuple[Result, float]:
    """Return the last result and the shortest time of a few calls."""
    result, best = timed(call)
    for _ in range(rounds - 1):
        # Results are let go before the next call, which may use their memory.
        del result
        result, seconds = timed(call)
        best = min(best, seconds)
    return result, best
