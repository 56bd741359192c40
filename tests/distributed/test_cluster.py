"""Workers that die change no bit; lost clusters and other versions are reported, soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import dask.array as da
import numpy as np
import pytest

from powersketch import GaussianSketch, SketchedKernelRidge
from powersketch.distributed import running
from powersketch.exceptions import ClusterError, InputError
from tests.distributed.dask_data import many_rows_from, relative_difference

pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed"
)

ROWS, BLOCK = 6_000, 500
CHUNKS = ((BLOCK,) * (ROWS // BLOCK),)


@pytest.fixture(autouse=True)
def _many_rows() -> Iterator[None]:
    with many_rows_from(2000):
        yield


def _rows(seconds: float = 0.0, block_id: Any = None) -> Any:
    time.sleep(seconds)
    return np.random.default_rng(block_id[0]).random((BLOCK, 8))


def _targets(block: Any) -> Any:
    return np.sin(4 * block[:, 0]) + block[:, 1]


def _rows_after_reports(folder: Path, block_id: Any = None) -> Any:
    """Make rows once anything is told; the last ones once tasks are told to be done."""
    awaited = folder / ("done" if block_id[0] == len(CHUNKS[0]) - 1 else "begun")
    until = time.monotonic() + 30
    while not awaited.exists() and time.monotonic() < until:
        time.sleep(0.01)
    return _rows(0.2, block_id)


def generated(argument: Any = 0.0, rows: Any = _rows) -> tuple[da.Array, da.Array]:
    """Return rows and targets that workers generate when they are needed."""
    X = da.map_blocks(rows, argument, chunks=(*CHUNKS, (8,)), dtype=float, meta=np.empty((0, 8)))
    return X, X.map_blocks(_targets, drop_axis=1, meta=np.empty(0))


def model() -> SketchedKernelRidge:
    return SketchedKernelRidge(
        "gaussian", features="sketch", n_components=64, alpha=0.5, random_state=0, solver="gram"
    )


@contextmanager
def killing(client: Any, after: float) -> Iterator[None]:
    """Kill a worker's process, without any warning, after some seconds."""
    pid = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def test_the_same_bits_on_any_number_of_workers(client: Any) -> None:
    X, y = generated()
    on_two = model().fit(X, y)
    features = GaussianSketch(0.5, n_components=16, random_state=0).fit(X)
    one = next(iter(client.scheduler_info()["workers"]))
    with mock.patch.object(client, "compute", _only_on(client.compute, one)):
        on_one = model().fit(X, y)
    np.testing.assert_array_equal(on_one.coef_, on_two.coef_)
    block = X.blocks[3]
    expected = features.transform(block.compute())
    np.testing.assert_array_equal(features.transform(block).compute(), expected)


def _only_on(compute: Any, worker: str) -> Any:
    return lambda tasks: compute(tasks, workers=[worker], allow_other_workers=False)


@pytest.mark.parametrize("after", [0.3, 1.0])
def test_a_killed_worker_changes_no_bit(client: Any, after: float) -> None:
    X, y = generated(0.1)
    expected = model().fit(*dask.compute(*generated(), scheduler="threads")).coef_
    with killing(client, after):
        disturbed = model().fit(X, y).coef_
    assert relative_difference(expected, disturbed) < 1e-10
    np.testing.assert_array_equal(model().fit(*generated()).coef_, disturbed)


def test_passes_tell_how_far_they_are(client: Any, tmp_path: Path) -> None:
    told: list[tuple[int, int | None, str]] = []

    def report(done: int, total: int | None, what: str) -> None:
        told.append((done, total, what))
        (tmp_path / "begun").touch()
        if done:
            (tmp_path / "done").touch()

    with running.telling(report):
        model().fit(*generated(tmp_path, _rows_after_reports))
    assert {what for _, _, what in told} == {"the sample of rows", "sums over blocks"}
    assert all(total is not None and 0 <= done <= total for done, total, _ in told)
    assert max(done for done, _, _ in told) > 0


def test_errors_of_tasks_name_the_block(client: Any) -> None:
    X, y = generated()
    bad = da.concatenate([X.blocks[:3], X.blocks[3] * np.nan, X.blocks[4:]])
    with pytest.raises(InputError, match="block 3 of X, which begins at row 1500"):
        model().fit(bad, y)


def test_other_versions_are_refused(client: Any) -> None:
    X, y = generated()
    with (
        mock.patch.object(running, "__version__", "9.9"),
        pytest.raises(ClusterError, match=r"2 of 2 workers.*this process has version 9\.9"),
    ):
        model().fit(X, y)


def test_a_worker_that_dies_before_it_tells_its_version_is_no_other_version(client: Any) -> None:
    answers = {**client.run(running._version), "tcp://gone": OSError("Stream is closed")}
    X, y = generated()
    with mock.patch.object(client, "run", return_value=answers):
        assert model().fit(X, y).coef_.size


@contextmanager
def processes(*commands: list[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run commands of Dask, each as a process of its own, and end them."""
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            full = [sys.executable, "-m", *command]
            started.append(subprocess.Popen(full, stderr=subprocess.DEVNULL))
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def separate(folder: Path) -> Iterator[tuple[Any, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers as the documentation says, and a client."""
    from distributed import Client

    file = str(folder / "scheduler.json")
    scheduler = ["distributed.cli.dask_scheduler", "--scheduler-file", file, "--port", "0"]
    scheduler += ["--host", "127.0.0.1", "--no-dashboard"]
    worker = ["distributed.cli.dask_worker", "--scheduler-file", file, "--nthreads", "1"]
    worker += ["--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
    with processes(scheduler, worker, worker) as started:
        client = Client(scheduler_file=file, timeout=30)
        try:
            client.wait_for_workers(2, timeout=30)
            yield client, started
        finally:
            with mock.patch("distributed.client.logger"):
                client.close(timeout=1)


@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_a_lost_cluster_is_an_error_and_no_model(lost: str, tmp_path: Path) -> None:
    X, y = generated()
    slow = generated(3.0)
    with separate(tmp_path) as (_, started):
        fitted = model().fit(X, y)
        coef = fitted.coef_.copy()
        killed = started[1:] if lost == "workers" else started[:1]
        timers = [threading.Timer(1.0, process.kill) for process in killed]
        for timer in timers:
            timer.start()
        begin = time.monotonic()
        impatient = mock.patch.object(running, "_PATIENCE", 4.0)
        with impatient, pytest.raises(ClusterError, match="The estimator is as it was before"):
            fitted.fit(*slow)
        assert time.monotonic() - begin < 60.0
        np.testing.assert_array_equal(fitted.coef_, coef)
