"""Threads: what `n_jobs` means, work that they share, and calls that Ctrl-C can interrupt."""

from __future__ import annotations

import numbers
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import ThreadpoolController

from powersketch.exceptions import InputError, InputTypeError

Task = TypeVar("Task")
Result = TypeVar("Result")

# Results per thread that may wait for the one that is needed next.
_AHEAD = 2
_THREADS_PER_PROCESSOR = 4
_SECONDS_BETWEEN_CHECKS = 0.1


def thread_count(n_jobs: int | None) -> int:
    """Return scikit-learn's meaning of `n_jobs`; "all" is limited by OMP_NUM_THREADS if set.

    However many are asked for, there are at most four for every processor: more would only take
    turns, and a system has no room for thousands. Results are the same for any number.
    """
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral)
    ):
        raise InputTypeError(
            f"n_jobs={n_jobs!r} must be an integer or None: use -1 for all processors."
        )
    if n_jobs == 0:
        raise InputError(
            "n_jobs=0 has no meaning: use None or 1 for one thread, -1 for all processors."
        )
    threads = int(effective_n_jobs(n_jobs))
    limit = os.environ.get("OMP_NUM_THREADS", "")
    if n_jobs is not None and n_jobs < 0 and limit.isdigit() and int(limit) > 0:
        threads = min(threads, int(limit))
    # The processors are only counted where it matters, because that takes time.
    if threads > _THREADS_PER_PROCESSOR:
        threads = min(threads, _THREADS_PER_PROCESSOR * cpu_count())
    return threads


class _BlasLimits:
    """The number of BLAS threads of the process, which several callers may limit at a time.

    The smallest limit holds. The last caller to leave restores the number from before the first
    one came: if every caller restored what it found, the limit of another could stay for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: list[int] = []
        self._before: Any = None

    def add(self, count: int) -> None:
        with self._lock:
            if not self._counts:
                self._before = _limited(count)
            self._counts.append(count)
            _limited(min(self._counts))

    def remove(self, count: int) -> None:
        with self._lock:
            self._counts.remove(count)
            if self._counts:
                _limited(min(self._counts))
            else:
                self._before.restore_original_limits()


_BLAS_LIMITS = _BlasLimits()


@contextmanager
def blas_threads(count: int) -> Iterator[None]:
    """Let calls into BLAS use at most `count` threads."""
    _BLAS_LIMITS.add(count)
    try:
        yield
    finally:
        _BLAS_LIMITS.remove(count)


def blas_thread_count() -> int:
    """Return how many threads a call into BLAS may use at present."""
    pools = _threadpools().info()
    return max(
        (int(pool["num_threads"]) for pool in pools if pool["user_api"] == "blas"), default=1
    )


def _limited(count: int) -> Any:
    """Set the number of threads; return what can restore the one before."""
    return _threadpools().limit(limits=count, user_api="blas")


@cache
def _threadpools() -> ThreadpoolController:
    """Look once for the libraries that have threads, which takes milliseconds.

    NumPy's and SciPy's are loaded by then.
    """
    return ThreadpoolController()


def ordered_map(
    function: Callable[[Task], Result], tasks: Iterable[Task], threads: int
) -> Generator[Result, None, None]:
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


def interruptible(call: Callable[[], Result]) -> Result:
    """Return what the call returns; an interrupt ends the wait for it at once.

    Python handles signals only between its own instructions, and a whole factorisation is one of
    them. So the call runs in a thread of its own while this one waits, which a signal can end. The
    thread then finishes its work in vain: the call must not write to what others can see.
    """
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="powersketch-interruptible", daemon=True).start()
    # A signal that reaches another thread is noticed here only when the wait ends.
    while not done.wait(_SECONDS_BETWEEN_CHECKS):
        pass
    if errors:
        raise errors[0]
    return results[0]
