"""Clusters of processes on this machine, and rows that their workers generate."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask.array as da
import numpy as np

from powersketch import PolynomialSketch, SketchedKernelRidge

COLUMNS = 256


def _rows(block: int, seed: int, block_id: Any = None) -> Any:
    rng = np.random.default_rng([seed, block_id[0]])
    return rng.random((block, COLUMNS))


def targets_of(X: Any) -> Any:
    """Return the targets of rows."""
    return np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2]


def generated(rows: int, block: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows and targets that are generated block by block where they are needed."""
    chunks = ((block,) * (rows // block), (COLUMNS,))
    X = da.map_blocks(_rows, block, seed, chunks=chunks, meta=np.empty((0, COLUMNS)))
    return X, X.map_blocks(targets_of, drop_axis=1, meta=np.empty(0))


def model(features: int, rows: int) -> SketchedKernelRidge:
    """Return a model of fixed features, by sums."""
    sketch = PolynomialSketch(2, coef0=1.0, n_components=features, random_state=0)
    return SketchedKernelRidge(features=sketch, alpha=1e-4 * rows, random_state=0, solver="gram")


@contextmanager
def cluster(workers: int, memory: str = "auto") -> Iterator[Any]:
    """Start workers of one thread each, and a client that Dask uses."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit=memory,
            silence_logs=50,
        ) as started,
        Client(started) as client,
    ):
        client.wait_for_workers(workers)
        client.run(_warm)
        yield client


def _warm() -> None:
    X = np.random.default_rng(0).random((200, 4))
    model(16, 200).fit(X, X[:, 0])


def peak_megabytes(client: Any) -> float:
    """Return the largest peak of all workers."""
    return max(client.run(_peak).values())


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def timed_fit(fitted: SketchedKernelRidge, X: Any, y: Any) -> float:
    """Fit, and return the seconds that it took."""
    start = time.perf_counter()
    fitted.fit(X, y)
    return time.perf_counter() - start
