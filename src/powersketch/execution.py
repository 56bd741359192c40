"""How work is run: threads, calls that Ctrl-C can interrupt, progress, memory."""

from __future__ import annotations

import numbers
import os
import resource
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
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
_SECONDS_BETWEEN_REPORTS = 0.5
# Bytes. For less, asking how much memory is left is not worth the time.
_ALWAYS_AVAILABLE = 1 << 20
# What counts for an object that has hardly any numbers.
_SMALLEST_OBJECT = 1 << 12
_ALLOWANCE: ContextVar[Allowance | None] = ContextVar("allowance", default=None)
# Where the two versions of control groups are mounted, the names of their files, and of the entry
# of memory.stat that counts the cache of files: it is part of the usage, but is given back.
_GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


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


def thread_count_of_blocks(n_jobs: int | None) -> int:
    """Return how many threads share blocks of rows: with one asked for, as many as BLAS has."""
    threads = thread_count(n_jobs)
    return threads if threads > 1 else blas_thread_count()


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


class Progress:
    """Writes "done/total rows" to standard error now and then; silent unless asked for."""

    def __init__(self, what: str, total: int, verbose: int, *, unit: str = "rows") -> None:
        self._enabled = bool(verbose)
        self._what, self._total, self._unit = what, total, unit
        self._last = time.monotonic()

    def update(self, done: int, remark: str = "") -> None:
        """Report that `done` of them are finished."""
        if not self._enabled:
            return
        now = time.monotonic()
        if done == self._total or now - self._last >= _SECONDS_BETWEEN_REPORTS:
            self._last = now
            end = "\n" if done == self._total else ""
            percent = 100 * done // self._total
            sys.stderr.write(
                f"\r[{self._what}] {done}/{self._total} {self._unit} ({percent}%){remark}{end}"
            )
            sys.stderr.flush()

    def finish(self, done: int, remark: str = "") -> None:
        """Report that there will be no more than `done`."""
        self._total = done
        self.update(done, remark)


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes that can be had without swapping and without being killed.

    This is the least of what the machine has left, what is left of the limits of all control
    groups (containers) that the process is in, and of the limit of its address space. `root` is
    where the files of the system are.
    """
    left = [_left_on_machine(root), *_left_in_groups(root), *_left_in_address_space(root)]
    return max(min(left), 0)


class AllowanceError(InputError):
    """Something would take more memory than is allowed meanwhile."""


@dataclass
class Allowance:
    """How many bytes all that is made may take together, and each part of it by itself.

    While it is made, one of them may take a few times as much.
    """

    total: int
    each: int

    def take(self, what: str, needed: int) -> None:
        """Let something take so many bytes of what is left, or refuse it."""
        self.total -= max(needed, _SMALLEST_OBJECT)
        if self.total < 0 or needed > self.each:
            raise AllowanceError(
                f"{what} takes {needed} bytes of memory, more than is allowed here."
            )


@contextmanager
def memory_allowance(allowance: Allowance | None) -> Iterator[None]:
    """Let all that is checked to fit into memory meanwhile keep to an allowance, or to none."""
    token = _ALLOWANCE.set(allowance)
    try:
        yield
    finally:
        _ALLOWANCE.reset(token)


def check_fits_memory(what: str, needed: int, remedy: str) -> None:
    """Refuse, before the work begins, what takes more memory than is available."""
    allowance = _ALLOWANCE.get()
    if allowance is not None:
        allowance.take(what, needed)
    if needed <= _ALWAYS_AVAILABLE:
        return
    available = available_memory()
    if needed > available:
        raise InputError(
            f"{what} takes at least {needed / 2**30:.1f} GiB of memory, and "
            f"{available / 2**30:.1f} GiB are available: {remedy}."
        )


def _left_on_machine(root: Path) -> int:
    free = _entries(root / "proc/meminfo").get("MemAvailable:")
    # Only Linux has the file.
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return pages if free is None else free * 1024


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what is left of every limit, from the process's own group up to the root."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in _GROUPS:
                mount, *names = _GROUPS[controller]
                group = PurePosixPath(path.lstrip("/"))
                for folder in (group, *group.parents):
                    yield from _left_in_group(root / mount / folder, *names)


def _left_in_group(folder: Path, limit: str, usage: str, cache: str) -> Iterator[int]:
    """Yield what is left of the group's limit, if it has one that can be seen from here."""
    most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
    if most.isdigit() and used.isdigit():
        yield int(most) - int(used) + _entries(folder / "memory.stat").get(cache, 0)


def _left_in_address_space(root: Path) -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        pages = (_text(root / "proc/self/statm") or "0").split()[0]
        yield limit - int(pages) * resource.getpagesize()


def _entries(path: Path) -> dict[str, int]:
    """Return the lines "name number ..." of a file."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _text(path: Path) -> str:
    """Return what the file says; nothing where the system has no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
