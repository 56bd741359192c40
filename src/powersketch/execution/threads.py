"""Threads: what `n_jobs` means, and work that is shared among them."""

from __future__ import annotations

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Task = TypeVar("Task")
Result = TypeVar("Result")

# So many results per thread may wait for the one that is asked for next.
_AHEAD = 2


def thread_count(n_jobs: int | None) -> int:
    """Return scikit-learn's meaning of `n_jobs`; "all" is limited by OMP_NUM_THREADS if set."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral)
    ):
        raise TypeError(f"n_jobs={n_jobs!r} must be an integer or None: use -1 for all processors.")
    if n_jobs == 0:
        raise ValueError(
            "n_jobs=0 has no meaning: use None or 1 for one thread, -1 for all processors."
        )
    threads = int(effective_n_jobs(n_jobs))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if n_jobs is not None and n_jobs < 0 and limit.isdigit() and int(limit) > 0:
        threads = min(threads, int(limit))
    return threads


def blas_threads(count: int) -> AbstractContextManager[Any]:
    """Return a context in which a call into BLAS uses so many threads."""
    limits: AbstractContextManager[Any] = _threadpools().limit(limits=count, user_api="blas")
    return limits


@cache
def _threadpools() -> ThreadpoolController:
    """Look once for the libraries that have threads, which takes milliseconds.

    NumPy's and SciPy's are loaded by then.
    """
    return ThreadpoolController()


def ordered_map(
    function: Callable[[Task], Result], tasks: Iterable[Task], threads: int
) -> Iterator[Result]:
    """Yield the function's results in the order of the tasks, computed by several threads.

    Only a few results wait at a time. Meanwhile every thread's calls into BLAS keep to that thread.
    """
    if threads == 1:
        yield from map(function, tasks)
        return
    with blas_threads(1), ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(function, task))
                if len(waiting) > _AHEAD * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
