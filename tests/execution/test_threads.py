"""What `n_jobs` means; work shared among threads comes back in order; interrupts end waits."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from joblib import cpu_count, parallel_config
from threadpoolctl import threadpool_info

from powersketch.execution import blas_threads, interruptible, ordered_map, thread_count


@pytest.fixture(autouse=True)
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


class TestThreadCount:
    @pytest.mark.parametrize(("n_jobs", "threads"), [(None, 1), (1, 1), (2, 2), (4, 4)])
    def test_as_many_as_asked_for(self, n_jobs: int | None, threads: int) -> None:
        assert thread_count(n_jobs) == threads

    def test_negative_numbers_count_from_all_processors(self) -> None:
        assert thread_count(-1) == cpu_count()
        assert thread_count(-2) == max(cpu_count() - 1, 1)
        assert thread_count(-10_000) == 1

    @pytest.mark.parametrize("n_jobs", [10**4, 10**9, 2**63, 10**30])
    def test_no_more_than_four_for_every_processor(self, n_jobs: int) -> None:
        assert thread_count(n_jobs) == 4 * cpu_count()

    @pytest.mark.parametrize("n_jobs", [-(10**9), -(2**63), -(10**30)])
    def test_far_below_zero_is_one(self, n_jobs: int) -> None:
        assert thread_count(n_jobs) == 1

    @pytest.mark.parametrize(("limit", "threads"), [("1", 1), ("100000", None)])
    def test_all_is_limited_by_the_environment(
        self, limit: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert thread_count(-1) == (threads or cpu_count())

    @pytest.mark.parametrize("limit", ["", "0", "many", "-3", "2,1"])
    def test_a_limit_that_is_no_number_is_ignored(
        self, limit: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert thread_count(-1) == cpu_count()

    def test_a_number_is_not_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        assert thread_count(3) == 3

    def test_none_follows_joblib(self) -> None:
        with parallel_config(backend="threading", n_jobs=2):
            assert thread_count(None) == 2

    def test_zero_has_no_meaning(self) -> None:
        with pytest.raises(ValueError, match="n_jobs=0 has no meaning: use None or 1"):
            thread_count(0)


def blas_limits() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_keeps_to_so_many_threads() -> None:
    before = blas_limits()
    for count in (1, 2, 1):
        with blas_threads(count):
            assert blas_limits() == {count}
        assert blas_limits() == before


def test_blas_limits_within_each_other() -> None:
    before = blas_limits()
    with blas_threads(2):
        with blas_threads(1):
            assert blas_limits() == {1}
        assert blas_limits() == {2}
    assert blas_limits() == before


def test_blas_limits_of_several_threads_leave_nothing_behind() -> None:
    before = blas_limits()
    first, second = blas_threads(1), blas_threads(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert blas_limits() == {1}
    second.__exit__(None, None, None)
    assert blas_limits() == before


class TestOrderedMap:
    def test_blas_keeps_to_its_thread(self) -> None:
        assert list(ordered_map(lambda _: blas_limits(), range(3), 2)) == [{1}] * 3

    @pytest.mark.parametrize("threads", [1, 2, 5])
    def test_results_come_in_the_order_of_the_tasks(self, threads: int) -> None:
        def slow_at_first(task: int) -> int:
            time.sleep(0.01 if task == 0 else 0.0)
            return task * task

        assert list(ordered_map(slow_at_first, range(40), threads)) == [i * i for i in range(40)]

    def test_several_threads_do_the_work(self) -> None:
        both = threading.Barrier(2, timeout=10.0)
        assert sorted(ordered_map(lambda _: both.wait(), range(2), 2)) == [0, 1]

    def test_no_more_threads_than_tasks(self) -> None:
        both = threading.Barrier(2, timeout=10.0)
        before = threading.active_count()

        def alive(_: int) -> int:
            both.wait()
            return threading.active_count()

        assert max(ordered_map(alive, range(2), 1000)) <= before + 2
        assert threading.active_count() == before

    @pytest.mark.parametrize("threads", [1, 2])
    def test_few_results_wait(self, threads: int) -> None:
        started: list[int] = []
        results = ordered_map(started.append, range(100), threads)
        next(results)
        results.close()
        assert len(started) <= 3 * threads

    @pytest.mark.parametrize("threads", [1, 2])
    def test_errors_reach_the_caller(self, threads: int) -> None:
        with pytest.raises(ZeroDivisionError):
            list(ordered_map(lambda task: 1 // task, [1, 0, 1], threads))


class TestInterruptible:
    def test_the_result_is_that_of_the_call(self) -> None:
        assert interruptible(lambda: 42) == 42

    def test_errors_reach_the_caller(self) -> None:
        with pytest.raises(ZeroDivisionError):
            interruptible(lambda: 1 // 0)

    def test_an_interrupt_ends_the_wait(self) -> None:
        never = threading.Event()
        interrupt = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
        started = time.monotonic()
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            interruptible(lambda: never.wait(20.0))
        assert time.monotonic() - started < 10.0
        never.set()
