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
    runs = [timed(call) for _ in range(rounds)]
    return runs[-1][0], min(seconds for _, seconds in runs)
