"""Exact kernel ridge regression on 60,000 and 100,000 rows, with the matrix stored and without."""

import sys

import numpy as np

from benchmarks.data import fashion_mnist
from benchmarks.features.memory import peak_bytes
from benchmarks.large.tables import GAMMAS, problem
from benchmarks.report import Row, Table, at_most, from_fresh_process, print_figures
from benchmarks.timing import timed
from powersketch import SketchedKernelRidge

TEST_ROWS = 20_000
# Bytes of a fit beside the rows, most seconds, and most gigabytes of the process.
WAYS = {"stored in float32": (17e9, 240, 18), "recomputed": (3e9, 900, 4)}


def stored_kernel(*, quick: bool) -> Table:
    return _table("stored in float32", quick=quick)


def recomputed_kernel(*, quick: bool) -> Table:
    return _table("recomputed", quick=quick)


def hundred_thousand_rows(*, quick: bool) -> Table:
    """Flights from New York, whose kernel matrix would take 40 GB in float32."""
    rows = 10_000 if quick else 100_000
    figures = from_fresh_process(__spec__.name, "flights", rows)
    return Table(
        "Exact kernel ridge regression on flights, the matrix recomputed",
        f"{rows} rows of 130 columns, alpha = 1e-6 n, residual 1e-4, float32, two cores. The error "
        "is that of 20,000 other rows, relative to the variance.",
        [Row(figures, [at_most(figures["GB"], 4), at_most(figures["residual"], 1e-4)])],
    )


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
    if name == "flights":
        X, y, X_test, y_test = problem("flights", rows)
        budget = WAYS["recomputed"][0]
        figures, predicted = _solved(GAMMAS[name], X, y, 1e-6, budget, X_test[:TEST_ROWS])
        error = float(np.mean((predicted - y_test[:TEST_ROWS]) ** 2) / np.var(y_test))
    else:
        X, y = (part[:rows] for part in fashion_mnist("train"))
        X_test, y_test = fashion_mnist("t10k")
        targets = np.where(y[:, np.newaxis] == np.arange(10), 1.0, -1.0)
        budget = WAYS[name][0] * (rows / 60_000) ** 2
        figures, predicted = _solved("scale", X, targets, 1e-6, budget, X_test)
        error = float(np.mean(predicted.argmax(axis=1) != y_test))
    print_figures({**figures, "error": error})


def _solved(
    gamma: float | str, X: np.ndarray, y: np.ndarray, penalty: float, budget: float, new: np.ndarray
) -> tuple[dict[str, float], np.ndarray]:
    """Return what a fit takes, and its predictions at new rows."""
    model = SketchedKernelRidge(
        "gaussian", kernel_params={"gamma": gamma}, features="exact", alpha=penalty * len(X),
        tol=1e-4, memory_budget=int(budget), random_state=0,
    )  # fmt: skip
    _, seconds = timed(lambda: model.fit(X, y))
    result = model.solver_result_
    figures = {"seconds": seconds, "GB": peak_bytes() / 1e9, "steps": result.iterations}
    return {**figures, "residual": result.residual}, model.predict(new)


MEASUREMENTS = (stored_kernel, recomputed_kernel, hundred_thousand_rows)

if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]))
