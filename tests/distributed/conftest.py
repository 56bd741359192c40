"""One cluster for all tests of a session: two processes that can be killed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """Two workers with one thread each, restarted when they die."""
    from distributed import LocalCluster

    with (
        warnings.catch_warnings(),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit="2GiB",
            silence_logs=50,
        ) as started,
    ):
        yield started


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client that Dask uses while a test runs."""
    from distributed import Client

    with Client(cluster) as connected:
        connected.wait_for_workers(2)
        yield connected
