"""Times one long call with all processors; short ones are compared by `timing`."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


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
