"""A worker killed at ten moments of a fit: the same bits, and the time that it costs."""

import os
import signal
import threading

import numpy as np

from benchmarks.dask.clusters import cluster, generated, model, timed_fit
from benchmarks.report import Row, Table, at_most


def killed_workers(*, quick: bool) -> Table:
    rows, block, features, moments = (
        (100_000, 5_000, 128, 3) if quick else (200_000, 5_000, 512, 10)
    )
    lines = []
    X, y = generated(rows, block)
    undisturbed = model(features, rows)
    with cluster(2):
        usual = timed_fit(undisturbed, X, y)
    for moment in range(moments):
        after = usual * (moment + 0.5) / moments
        fitted = model(features, rows)
        # Workers of its own for every moment: a nanny may take long to replace the one that died.
        with cluster(2) as client:
            pid = sorted(client.run(os.getpid).values())[moment % 2]
            timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
            timer.start()
            seconds = timed_fit(fitted, X, y)
            timer.join()
        changed = int(np.count_nonzero(fitted.coef_ != undisturbed.coef_))
        cells = {"killed after s": after, "s": seconds, "undisturbed, s": usual}
        lines.append(Row({**cells, "weights with other bits": changed}, [at_most(changed, 0)]))
    return Table(
        "Workers killed in the middle of a fit",
        f"{rows} × 256 rows, {features} features, two processes, one of them ended by SIGKILL.",
        lines,
    )


MEASUREMENTS = (killed_workers,)
