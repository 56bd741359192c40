"""Fits ridge regression to many rows, block by block or in one call, and prints memory as JSON."""

import json
import sys
import time

import numpy as np
from memory_probe import peak_bytes

from powersketch import PolynomialSketch, SketchedKernelRidge

COLUMNS, BLOCK_ROWS = 100, 10_000
RELATIVE_ALPHA = 1e-4


def main(way: str, rows: int, components: int, coefficients: str) -> None:
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
    model = SketchedKernelRidge(sketch, alpha=RELATIVE_ALPHA * rows)
    {"streamed": fit_blocks, "in one call": fit_at_once}[way](model, rows)
    np.save(coefficients, np.append(model.coef_, model.intercept_))
    print(json.dumps({"seconds": time.perf_counter() - start, "peak MB": peak_bytes() / 1e6}))


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


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
