"""Runs tasks on whatever Dask is set to use, and notices if a cluster is lost.

A worker that dies is made up for by Dask: its tasks run again elsewhere, and as every task gives
the same bits wherever it runs, so does the whole. If the scheduler or all workers are gone, Dask
would wait for them for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed

from powersketch import __version__
from powersketch.exceptions import ClusterError

# Seconds between looks at the cluster, and how long it may be without an answer or a worker.
_BETWEEN_LOOKS, _BETWEEN_REPORTS = 2.0, 0.5
_PATIENCE = 30.0
_FAN_IN = 4
_REPORT: ContextVar[Callable[[int, int | None, str], None] | None] = ContextVar(
    "report", default=None
)
# Of tasks that are still to be done.
_UNFINISHED = ("released", "waiting", "no-worker", "queued", "processing")


@contextmanager
def telling(report: Callable[[int, int | None, str], None]) -> Iterator[None]:
    """Let passes tell, while the context is open, how many tasks of how many are done."""
    before = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(before)


def compute(tasks: Sequence[Delayed], what: str) -> list[Any]:
    """Return the results of tasks, in their order; `what` names them in errors."""
    client = active_client()
    if client is None:
        return list(dask.compute(*tasks))
    _check_versions(client)
    return _Watch(client, what).results(client.compute(list(tasks)))


def tree(parts: Sequence[Delayed], merge: Callable[[list[Any]], Any]) -> Delayed:
    """Return the task that merges all parts, a few neighbours at a time.

    The order depends on nothing but the number of parts.
    """
    level = list(parts)
    merged = dask.delayed(merge, pure=True)
    while len(level) > 1:
        level = [
            merged(level[start : start + _FAN_IN]) if len(level) - start > 1 else level[start]
            for start in range(0, len(level), _FAN_IN)
        ]
    return level[0]


def active_client() -> Any:
    """Return the client of a cluster that Dask is set to use; None if it computes here."""
    return getattr(get_scheduler(), "__self__", None)


def _check_versions(client: Any) -> None:
    """Refuse workers that have another version of this package, or none."""
    try:
        versions: dict[str, Any] = client.run(_version, on_error="return")
    except (OSError, RuntimeError) as error:
        raise ClusterError(
            f"the cluster of {client} does not answer ({error}): start it again, and fit again."
        ) from error
    # One that is gone before it answers is no other version: its tasks run elsewhere.
    others = {
        at: version
        for at, version in versions.items()
        if version != __version__ and not isinstance(version, OSError)
    }
    if others:
        at, version = next(iter(others.items()))
        has = f"version {version}" if isinstance(version, str) else f"an error ({version!r})"
        raise ClusterError(
            f"{len(others)} of {len(versions)} workers, {at} for instance, have {has} of "
            f"powersketch where this process has version {__version__}: install the same version "
            "everywhere, and start the workers again."
        )


def _version() -> str:
    import powersketch

    return powersketch.__version__


def _unfinished(dask_scheduler: Any) -> int:
    return sum(task.state in _UNFINISHED for task in dask_scheduler.tasks.values())


class _Watch:
    """Waits for futures, and gives up where nobody is left who could compute them."""

    def __init__(self, client: Any, what: str) -> None:
        self._client, self._what = client, what
        self._alive = time.monotonic()
        self._report, self._most = _REPORT.get(), 0

    def results(self, futures: list[Any]) -> list[Any]:
        """Return the results; whatever happens, nothing goes on to be computed."""
        from distributed import wait

        try:
            while True:
                try:
                    between = _BETWEEN_LOOKS if self._report is None else _BETWEEN_REPORTS
                    wait(futures, timeout=between, return_when="ALL_COMPLETED")
                    break
                except TimeoutError:
                    self._look(futures)
            self._raise_failure(futures)
            results: list[Any] = self._client.gather(futures)
            return results
        except CancelledError as error:
            raise self._lost("its scheduler is gone") from error
        finally:
            for future in futures:
                future.release()

    def _look(self, futures: list[Any]) -> None:
        self._raise_failure(futures)
        try:
            workers = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=_PATIENCE / 3
            )
            reason = "it has no workers left"
        except (OSError, RuntimeError) as error:
            workers, reason = {}, f"its scheduler does not answer ({type(error).__name__})"
        if workers:
            self._alive = time.monotonic()
            self._tell()
        elif time.monotonic() - self._alive > _PATIENCE:
            raise self._lost(f"{reason} for {_PATIENCE:.0f} s")

    def _tell(self) -> None:
        """Report how many tasks are done, of the most that were seen."""
        if self._report is None:
            return
        left = self._client.run_on_scheduler(_unfinished)
        self._most = max(self._most, left)
        self._report(self._most - left, self._most, self._what)

    def _raise_failure(self, futures: list[Any]) -> None:
        """Raise the error of the first task that failed, as if it had been raised here."""
        from distributed import KilledWorker

        for future in futures:
            if future.status in ("cancelled", "lost"):
                raise self._lost("its scheduler is gone, or has cancelled the tasks")
            if future.status != "error":
                continue
            error = future.exception()
            if isinstance(error, KilledWorker):
                raise ClusterError(
                    f"several workers died one after the other while computing {self._what} "
                    f"({error}): most often memory is too small for a block. Use blocks of fewer "
                    "rows, or fewer threads for every worker."
                ) from error
            raise error

    def _lost(self, reason: str) -> ClusterError:
        return ClusterError(
            f"the cluster was lost while computing {self._what}: {reason}. The estimator is as it "
            "was before: start the cluster again (client.wait_for_workers(n) waits for workers "
            "that take long to come), and fit again."
        )
