"""Cost of a path of penalties with leave-one-out against one fit, and the errors it finds."""

from functools import partial

import numpy as np

from benchmarks.report import Row, Table, at_most
from benchmarks.timing import shortest
from powersketch import GaussianSketch, SketchedKernelRidge

ALPHAS = np.logspace(-4, 3, 50)
COLUMNS, GAMMA = 50, 0.01


def path_against_one_fit(*, quick: bool) -> Table:
    rows, sizes = (5000, (256,)) if quick else (50_000, (1024, 2048))
    X, y = _rows(rows, seed=0)
    return Table(
        "Fifty penalties with leave-one-out against one fit",
        f"{rows} rows, {COLUMNS} columns, float32, GaussianSketch, all processors, the shortest of "
        "a few fits; the one fit has the penalty that the path chose, as the precision of sums "
        "depends on it. Leave-one-out errors are compared with refits without each of 60 rows.",
        [_path_row(X, y, size, rounds=1 if quick else 3) for size in sizes],
    )


def _path_row(X: np.ndarray, y: np.ndarray, size: int, *, rounds: int) -> Row:
    path = _model(size, "loo")
    _, path_seconds = shortest(partial(path.fit, X, y), rounds=rounds)
    one = _model(size, float(path.alpha_))
    _, one_seconds = shortest(partial(one.fit, X, y), rounds=rounds)
    difference = _difference_from_refits()
    cells = {
        "components": size,
        "one fit s": one_seconds,
        "path s": path_seconds,
        "path / one fit": path_seconds / one_seconds,
        "difference from refits": difference,
    }
    return Row(cells, [at_most(path_seconds / one_seconds, 2), at_most(difference, 1e-8)])


def _model(size: int, alpha: float | str) -> SketchedKernelRidge:
    sketch = GaussianSketch(GAMMA, n_components=size, random_state=0, n_jobs=-1)
    alphas = ALPHAS if isinstance(alpha, str) else None
    return SketchedKernelRidge(features=sketch, alpha=alpha, alphas=alphas, solver="gram")


def _difference_from_refits() -> float:
    """Return the largest relative difference over the path; the map is that of all rows."""
    X, y = _rows(60, seed=1)
    X = X.astype(np.float64)
    path = _model(20, "loo").fit(X, y)
    Z = path.feature_map_.transform(X)
    refits = [np.mean([_left_out_error(Z, y, i, alpha) for i in range(len(y))]) for alpha in ALPHAS]
    return float(np.max(np.abs(path.scores_ - refits) / refits))


def _left_out_error(Z: np.ndarray, y: np.ndarray, row: int, alpha: float) -> float:
    kept = np.arange(len(y)) != row
    feature_mean, target_mean = Z[kept].mean(axis=0), y[kept].mean()
    centred = Z[kept] - feature_mean
    gram = centred.T @ centred + alpha * np.eye(Z.shape[1])
    coef = np.linalg.solve(gram, centred.T @ (y[kept] - target_mean))
    return float((y[row] - target_mean - (Z[row] - feature_mean) @ coef) ** 2)


def _rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((count, COLUMNS), dtype=np.float32)
    noise = generator.standard_normal(count)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + noise / 2


MEASUREMENTS = (path_against_one_fit,)
