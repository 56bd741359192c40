"""Exact kernel ridge regression on all of Fashion-MNIST, with the matrix stored and without."""

import sys

import numpy as np

from benchmarks.data import fashion_mnist
from benchmarks.features.memory import peak_bytes
from benchmarks.report import Row, Table, at_most, from_fresh_process, print_figures
from benchmarks.timing import timed
from powersketch import SketchedKernelRidge

# Bytes of the kernel matrix, most seconds and most gigabytes.
WAYS = {"stored in float32": (15e9, 240, 18), "recomputed": (1e9, 900, 4)}


def stored_kernel(*, quick: bool) -> Table:
    return _table("stored in float32", quick=quick)


def recomputed_kernel(*, quick: bool) -> Table:
    return _table("recomputed", quick=quick)


def _table(way: str, *, quick: bool) -> Table:
    rows = 10_000 if quick else 60_000
    _, seconds, gigabytes = WAYS[way]
    figures = from_fresh_process(__spec__.name, way, rows)
    bars = [at_most(figures["seconds"], seconds), at_most(figures["GB"], gigabytes)]
    return Table(
        f"Exact kernel ridge regression on Fashion-MNIST, the matrix {way}",
        f"{rows} rows, 10 columns, alpha = 1e-6 n, residual 1e-4, float32, two cores.",
        [Row(figures, [*bars, at_most(figures["residual"], 1e-4)])],
    )


def measure(name: str, rows: int) -> None:
    X, y = (part[:rows] for part in fashion_mnist("train"))
    X_test, y_test = fashion_mnist("t10k")
    targets = np.where(y[:, np.newaxis] == np.arange(10), 1.0, -1.0)
    budget = int(WAYS[name][0] * (rows / 60_000) ** 2)
    model = SketchedKernelRidge(
        "gaussian", features="exact", alpha=1e-6 * rows, tol=1e-4, memory_budget=budget,
        random_state=0,
    )  # fmt: skip
    _, seconds = timed(lambda: model.fit(X, targets))
    result = model.solver_result_
    figures = {"seconds": seconds, "GB": peak_bytes() / 1e9, "steps": result.iterations}
    error = float(np.mean(model.predict(X_test).argmax(axis=1) != y_test))
    print_figures({**figures, "residual": result.residual, "error": error})


MEASUREMENTS = (stored_kernel, recomputed_kernel)

if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]))
