"""Regressions on many rows of tables: error against seconds and memory, in fresh processes."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import taxi
from benchmarks.features.memory import peak_bytes
from benchmarks.large.frontier import frontier_table, measured_sizes
from benchmarks.report import Table, print_figures
from benchmarks.tables import flights_table
from benchmarks.timing import timed
from powersketch import LeverageNystroem, SketchedKernelRidge
from powersketch.kernels import Gaussian

RELATIVE_ALPHA = 1e-7
NOISE = 0.05
MILLION = 1_000_000
# Gammas: the best of a few on 20,000 rows, held-out rows judging.
GAMMAS = {"flights": 0.0005, "taxi": 0.2}


def _landmarks(size: int, gamma: float, rows: int) -> Any:
    landmarks = LeverageNystroem(
        Gaussian(gamma), n_components=size, landmarks="uniform", jitter=1e-5
    )
    return SketchedKernelRidge(features=landmarks, alpha=RELATIVE_ALPHA * rows, random_state=0)


def _scikit_learn(size: int, gamma: float, rows: int) -> Any:
    features = Nystroem(gamma=gamma, n_components=size, random_state=0)
    return make_pipeline(features, Ridge(alpha=RELATIVE_ALPHA * rows))


def _gradients(size: int, gamma: float, rows: int) -> Any:
    features = Nystroem(gamma=gamma, n_components=size, random_state=0)
    return make_pipeline(features, SGDRegressor(alpha=RELATIVE_ALPHA, random_state=0))


METHODS: dict[str, Callable[[int, float, int], Any]] = {
    "powersketch, landmarks": _landmarks,
    "scikit-learn, Nystroem + Ridge": _scikit_learn,
    "scikit-learn, Nystroem + SGD": _gradients,
}
SIZES = {
    "powersketch, landmarks": (512, 1024, 2048, 4096),
    "scikit-learn, Nystroem + Ridge": (512, 1024),
    "scikit-learn, Nystroem + SGD": (512,),
}


def flights(*, quick: bool) -> Table:
    """All flights from New York in 2013 that arrived."""
    return _frontier("flights", 10_000 if quick else 0)


def taxi_with_noise(*, quick: bool) -> Table:
    """Trips again and again, with noise in columns and targets."""
    return _frontier("taxi", 10_000 if quick else MILLION)


def _frontier(name: str, rows: int) -> Table:
    measured = measured_sizes(__spec__.name, SIZES, name, rows)
    count = int(next(iter(measured.values()))["rows"])
    repeated = f"; the others are repeated with normal noise of {NOISE}" if name == "taxi" else ""
    return frontier_table(
        f"large_{name}",
        f"{name}, {count} rows: error against seconds and memory",
        "Gaussian kernel, random landmarks, one alpha, float32. Errors are those of a fifth of the "
        f"given rows, which no fit has seen{repeated}.",
        measured,
        error="squared error / variance",
    )


def measure(method: str, size: int, name: str, rows: int) -> None:
    X, y, X_test, y_test = problem(name, rows)
    model = METHODS[method](size, GAMMAS[name], len(y))
    _, seconds = timed(lambda: model.fit(X, y))
    peak = peak_bytes()
    error = float(np.mean((model.predict(X_test) - y_test) ** 2) / np.var(y_test))
    print_figures({"rows": len(y), "seconds": seconds, "GB": peak / 1e9, "error": error})


def problem(name: str, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return rows to fit and to test in units of their spread; 0 rows are all there are."""
    if name == "taxi":
        X, y = taxi()
    else:
        table = flights_table()
        X, y = table.one_hot(), table.target
    generator = np.random.default_rng(0)
    train, test = np.split(generator.permutation(len(y)), [4 * len(y) // 5])
    scaler = StandardScaler().fit(X[train].astype(np.float64))
    scaled = scaler.transform(X.astype(np.float64)).astype(np.float32)
    y = ((y - y[train].mean()) / y[train].std()).astype(np.float32)
    chosen = train[:rows] if rows else train
    X_train, y_train = scaled[chosen], y[chosen]
    if rows > len(train):
        chosen = train[generator.integers(len(train), size=rows)]
        noise = generator.standard_normal((rows, X.shape[1]), dtype=np.float32)
        X_train = scaled[chosen] + NOISE * noise
        y_train = y[chosen] + NOISE * generator.standard_normal(rows, dtype=np.float32)
    return X_train, y_train, scaled[test], y[test]


MEASUREMENTS = (flights, taxi_with_noise)

if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
