"""1, 2 and 4 workers against the model of docs/scaling.md, and what it says of 100 workers."""

import os
import time
from dataclasses import replace

import numpy as np

from benchmarks.dask.clusters import COLUMNS, cluster, generated, model, targets_of, timed_fit
from benchmarks.dask.model import Fit, Machine
from benchmarks.report import Row, Table, at_most
from powersketch.execution import blas_threads
from powersketch.feature_maps import ChoiceRows
from powersketch.kernel_ridge import block_statistics

NETWORK = 1.25e8  # bytes a second: gigabit Ethernet
TASKS, SENT = 500, 1 << 24
SAMPLE = 65_536


def measured_machine(features: int, block: int) -> Machine:
    """Measure the rates of a worker by one block and one fit, and those of the scheduler."""
    X, _ = generated(block, block)

    def taken() -> tuple[np.ndarray, np.ndarray]:
        rows = X.compute(scheduler="synchronous")
        ChoiceRows.of_all(rows, 1000)
        return rows, targets_of(rows)

    with blas_threads(1):
        # The first pass asks the system for memory, which later ones have.
        taken()
        (rows, targets), passes = timed(taken)
        fitted = model(features, block).fit(rows, targets)
        fitted.feature_map_.transform(rows)
        Z, transform = timed(lambda: fitted.feature_map_.transform(rows))
        part, sums = timed(lambda: block_statistics(Z, targets))
        _, merge = timed(lambda: part.merge(part))
    sent, task = _of_the_scheduler()
    machine = Machine(
        passes_per_second=block / passes,
        products_per_second=block * features**2 / sums,
        features_per_second=block * features / transform,
        bytes_per_second=sent,
        seconds_per_task=task,
        additions_per_second=features**2 / merge,
    )
    return _as_in_a_worker(machine, features, block)


def _as_in_a_worker(machine: Machine, features: int, block: int) -> Machine:
    """Return the rates of a worker, which beside its work takes tasks and hands results on.

    All of them are those of one core divided by the same number, from a fit by one worker of twice
    the rows that choices are made from.
    """
    rows = 2 * SAMPLE // block * block
    with cluster(1):
        seconds = timed_fit(model(features, rows), *generated(rows, block))
    slower = seconds / Fit(rows, COLUMNS, features, block, 1, machine).seconds
    rates = ("passes", "products", "features", "additions")
    names = [f"{rate}_per_second" for rate in rates]
    return replace(machine, **{name: getattr(machine, name) / slower for name in names})


def _of_the_scheduler() -> tuple[float, float]:
    """Return bytes a second from a worker to the client, and seconds for a task of no work."""
    from distributed import wait

    with cluster(1) as client:
        _, tasks = timed(lambda: wait(client.map(abs, range(TASKS))))
        there = client.submit(np.ones, SENT)
        wait(there)
        values, seconds = timed(there.result)
    return values.nbytes / seconds, tasks / TASKS


def timed(call):
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def workers_against_the_model(*, quick: bool) -> Table:
    rows, block, features = (100_000, 5_000, 256) if quick else (300_000, 10_000, 768)
    machine, lines = measured_machine(features, block), []
    cores = os.cpu_count() or 1
    for workers in (1, 2, 4):
        with cluster(workers) as _:
            seconds = timed_fit(model(features, rows), *generated(rows, block))
        # More workers than cores share them.
        predicted = Fit(rows, COLUMNS, features, block, min(workers, cores), machine).seconds
        off = abs(seconds / predicted - 1.0)
        cells = {"workers": workers, "cores": min(workers, cores), "s": seconds}
        lines.append(Row({**cells, "predicted, s": predicted, "off by": off}, [at_most(off, 0.35)]))
    return Table(
        "Workers against the model",
        f"{rows} × {COLUMNS} rows, {features} features; the model has the rates of one worker, "
        f"measured by one block and a fit of {2 * SAMPLE} rows: {_shown(machine)}.",
        lines,
    )


def _shown(machine: Machine) -> str:
    rates = {name.replace("_", " "): rate for name, rate in vars(machine).items()}
    return ", ".join(f"{name} {rate:.3g}" for name, rate in rates.items())


def a_billion_rows(*, quick: bool) -> Table:
    machine = measured_machine(256 if quick else 1024, 10_000)
    far = Machine(**{**vars(machine), "bytes_per_second": NETWORK})
    lines = []
    for workers in (1, 10, 100):
        fit = Fit(1e9, COLUMNS, 1024, 100_000, workers, far)
        lines.append(
            Row(
                {
                    "workers": workers,
                    "h": fit.seconds / 3600,
                    "most bytes received by one, GB": fit.simulated[1] / 1e9,
                    "of perfect": Fit(1e9, COLUMNS, 1024, 100_000, 1, far).seconds
                    / (workers * fit.seconds),
                }
            )
        )
    return Table(
        "A billion rows, simulated",
        "10⁹ × 256 rows in blocks of 100,000, 1024 features, one core each, gigabit Ethernet.",
        lines,
    )


MEASUREMENTS = (workers_against_the_model, a_billion_rows)
