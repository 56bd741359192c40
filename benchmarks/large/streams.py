"""Millions of rows: float32 sums against float64 ones, and against what the machine allows."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.linalg.blas import ssyrk

from benchmarks.features.memory import peak_bytes
from benchmarks.peers.large import PlainSums
from benchmarks.report import Row, Table, at_least, at_most, from_fresh_process, print_figures
from benchmarks.timing import shortest, timed
from powersketch import PolynomialSketch, SketchedKernelRidge

MADE_ROWS = 10_000
TEST_ROWS = 20_000
RELATIVE_ALPHA = 1e-4


def million_rows(*, quick: bool) -> Table:
    rows, features = (100_000, 1024) if quick else (1_000_000, 4096)
    ours, plain = (
        from_fresh_process(__spec__.name, way, rows, 100, features)
        for way in ("powersketch", "float64 sums")
    )
    faster = plain["seconds"] / ours["seconds"]
    bars = [
        at_least(faster, 2.0),
        at_most(abs(ours["R²"] - plain["R²"]), 1e-4),
        at_most(ours["peak MB"], 1500),
    ]
    return Table(
        "A million rows by sums in float32",
        f"{rows} × 100 float32 rows in memory, {features} features of a polynomial sketch, one "
        "alpha, two cores. The other is what version 0.1 did: blocks in float64, one after the "
        "other.",
        [
            Row({"sums": "powersketch", **ours, "times faster": faster}, bars),
            Row({"sums": "float64, one step after the other", **plain, "times faster": 1.0}),
        ],
    )


def ten_million_rows(*, quick: bool) -> Table:
    rows, features = (300_000, 1024) if quick else (10_000_000, 1024)
    with tempfile.TemporaryDirectory() as folder:
        figures = from_fresh_process(__spec__.name, "stream", rows, 20, features, folder)
    share = figures["least s"] / figures["seconds"]
    return Table(
        "Ten million rows from a memory map",
        f"{rows} × 20 float32 rows by partial_fit, {features} features of a polynomial sketch. The "
        "least time is that of SYRK in float32 on two cores for all rows plus that of the "
        "features on both; the memory is that of the process without the pages of the file.",
        [
            Row(
                {**figures, "share of the limit": share},
                [at_least(share, 0.6), at_most(figures["peak MB"], 1000)],
            )
        ],
    )


def measure(way: str, rows: int, columns: int, features: int, folder: str = "") -> None:
    X_test, y_test = made(10**6, TEST_ROWS, columns)
    alpha, sketch = RELATIVE_ALPHA * rows, sketch_of(columns, features)
    if way == "stream":
        _measure_stream(rows, columns, features, Path(folder))
        return
    X, y = np.empty((rows, columns), np.float32), np.empty(rows, np.float32)
    for start in range(0, rows, MADE_ROWS):
        part = slice(start, start + MADE_ROWS)
        X[part], y[part] = made(start, MADE_ROWS, columns)
    model = PlainSums(sketch, alpha)
    if way == "powersketch":
        model = SketchedKernelRidge(features=sketch, alpha=alpha, solver="gram")
    _, seconds = timed(lambda: model.fit(X, y))
    error = np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test)
    print_figures({"seconds": seconds, "R²": 1.0 - float(error), "peak MB": peak_bytes() / 1e6})


def _measure_stream(rows: int, columns: int, features: int, folder: Path) -> None:
    path, step = folder / "rows.npy", 100_000
    # Written, not mapped: pages of a map would count as memory of this process.
    with path.open("wb") as file:
        shape = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns + 1)}
        np.lib.format.write_array_header_1_0(file, shape)
        for start in range(0, rows, step):
            np.column_stack(made(start, step, columns)).tofile(file)
    alpha, sketch = RELATIVE_ALPHA * rows, sketch_of(columns, features)
    model = SketchedKernelRidge(features=sketch, alpha=alpha, solver="gram")
    start_of_fit = time.perf_counter()
    for start in range(0, rows, step):
        # Mapped anew: pages that were read are given back.
        block = np.load(path, mmap_mode="r")[start : start + step]
        model.partial_fit(np.ascontiguousarray(block[:, :columns]), block[:, columns])
    _ = model.coef_
    seconds, peak = time.perf_counter() - start_of_fit, peak_bytes()
    least = _least_seconds(model.feature_map_, rows, columns, features)
    print_figures({"seconds": seconds, "least s": least, "peak MB": peak / 1e6})


def _least_seconds(sketch: PolynomialSketch, rows: int, columns: int, features: int) -> float:
    """Return what SYRK and the features of so many rows take at the least, from some of them."""
    some = 65_536
    X, _ = made(0, some, columns)
    Z, transform = shortest(lambda: sketch.transform(X), rounds=3)
    total = np.zeros((features, features), np.float32, order="F")
    _, sums = shortest(lambda: ssyrk(1.0, Z.T, beta=1.0, c=total, overwrite_c=True), rounds=3)
    return (transform + sums) * rows / some


def sketch_of(columns: int, features: int) -> PolynomialSketch:
    return PolynomialSketch(
        3, gamma=1 / columns, coef0=1.0, n_components=features, random_state=0, n_jobs=-1
    )


def made(seed: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets that depend on the seed only, as if read from a file."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rows, columns), dtype=np.float32)
    noise = generator.standard_normal(rows, dtype=np.float32)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise / 10


MEASUREMENTS = (million_rows, ten_million_rows)

if __name__ == "__main__":
    measure(sys.argv[1], *map(int, sys.argv[2:5]), *sys.argv[5:])
