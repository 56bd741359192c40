"""Peak memory of ridge regression on a stream of rows, measured in a fresh process."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.features.memory import peak_bytes
from benchmarks.report import Row, Table, at_most, from_fresh_process, print_figures
from powersketch import PolynomialSketch, SketchedKernelRidge

MOST_MEGABYTES, LARGEST_DIFFERENCE = 1500, 1e-8
COLUMNS, BLOCK_ROWS = 100, 10_000
RELATIVE_ALPHA = 1e-4


def streamed_ridge(*, quick: bool) -> Table:
    rows, components = (50_000, 512) if quick else (1_000_000, 2048)
    with tempfile.TemporaryDirectory() as folder:
        streamed, from_stream = _measured("streamed", rows, components, folder)
        at_once, expected = _measured("in one call", rows, components, folder)
    difference = float(np.linalg.norm(from_stream - expected) / np.linalg.norm(expected))
    return Table(
        "Ridge regression on a stream of rows",
        f"{rows} rows, 100 columns, float32, {components} components of PolynomialSketch. The "
        "memory is that of the whole process; fitted in one call it holds all rows. The difference "
        "is that of the coefficients, relative (Euclidean).",
        [
            Row(
                {"rows": "streamed by partial_fit", **streamed, "difference": difference},
                [
                    at_most(streamed["peak MB"], MOST_MEGABYTES),
                    at_most(difference, LARGEST_DIFFERENCE),
                ],
            ),
            Row({"rows": "in one call of fit", **at_once, "difference": 0.0}),
        ],
    )


def _measured(
    way: str, rows: int, components: int, folder: str
) -> tuple[dict[str, float], np.ndarray]:
    """Return seconds and memory, and the coefficients with the intercept behind them."""
    path = Path(folder) / f"{way}.npy"
    figures = from_fresh_process(__spec__.name, way, rows, components, path)
    return figures, np.load(path)


def measure(way: str, rows: int, components: int, coefficients: str) -> None:
    start = time.perf_counter()
    # Without the expansion around the mean, the map is the same whichever rows it is fitted on.
    sketch = PolynomialSketch(
        3,
        gamma=1 / COLUMNS,
        coef0=1.0,
        n_components=components,
        expansion="none",
        random_state=0,
        n_jobs=-1,
    )
    model = SketchedKernelRidge(features=sketch, alpha=RELATIVE_ALPHA * rows)
    {"streamed": fit_blocks, "in one call": fit_at_once}[way](model, rows)
    np.save(coefficients, np.append(model.coef_, model.intercept_))
    print_figures({"seconds": time.perf_counter() - start, "peak MB": peak_bytes() / 1e6})


def fit_blocks(model: SketchedKernelRidge, rows: int) -> None:
    for number in range(rows // BLOCK_ROWS):
        model.partial_fit(*block(number))


def fit_at_once(model: SketchedKernelRidge, rows: int) -> None:
    X, y = np.empty((rows, COLUMNS), np.float32), np.empty(rows, np.float32)
    for number in range(rows // BLOCK_ROWS):
        part = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
        X[part], y[part] = block(number)
    model.fit(X, y)


def block(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets that depend on the number only, as if read from a file."""
    generator = np.random.default_rng(number)
    X = generator.standard_normal((BLOCK_ROWS, COLUMNS), dtype=np.float32)
    noise = generator.standard_normal(BLOCK_ROWS, dtype=np.float32)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise / 10


MEASUREMENTS = (streamed_ridge,)

if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
