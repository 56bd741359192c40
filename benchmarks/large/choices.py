"""Sums or iterations: both measured on a grid, beside what "auto" takes; growth; single rows."""

import itertools
import math
from typing import Any

import numpy as np

from benchmarks.report import Row, Table, at_most
from benchmarks.timing import best_seconds, shortest, usual_rounds
from powersketch import (
    GaussianSketch,
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
)
from powersketch.kernels import Gaussian

COLUMNS, GAMMA = 50, 0.01


def solver_choices(*, quick: bool) -> Table:
    rows_of, sizes = ((4000,), (256,)) if quick else ((20_000, 60_000), (1024, 2048, 4096))
    grid = itertools.product(rows_of, sizes, ("landmarks", "sketch"), (1.0, "loo"), (1, 10))
    return Table(
        'What solver="auto" takes, against the better of both',
        f"{COLUMNS} columns, float32, Gaussian kernel, two cores, one fit each.",
        [_choice(*place) for place in grid],
    )


def _choice(rows: int, size: int, kind: str, alpha: Any, targets: int) -> Row:
    X, Y = _rows(rows, targets)
    seconds = {}
    for solver in ("gram", "cg"):
        model = _model(kind, size, alpha, solver)
        _, seconds[solver] = shortest(lambda model=model: model.fit(X, Y), rounds=1)
    automatic = _model(kind, size, alpha, "auto").fit(X, Y)
    chosen = "cg" if hasattr(automatic, "solver_result_") else "gram"
    ratio = seconds[chosen] / min(seconds.values())
    cells = {"rows": rows, "features": size, "kind": kind, "alpha": str(alpha), "targets": targets}
    figures = {f"{name} s": value for name, value in seconds.items()}
    return Row({**cells, **figures, "auto": chosen, "ratio": ratio}, [at_most(ratio, 1.25)])


def growth(*, quick: bool) -> Table:
    """Exponents of the time of a fit in rows, features and columns, from doubling each."""
    base = {"rows": 10_000, "size": 512} if quick else {"rows": 40_000, "size": 2048}
    rows = []
    for kind, solver in itertools.product(("landmarks", "sketch"), ("gram", "cg")):
        cells: dict[str, Any] = {"kind": kind, "solver": solver}
        first = _seconds(kind, solver, **base)
        for name in base:
            doubled = _seconds(kind, solver, **{**base, name: 2 * base[name]})
            cells[f"exponent in {name}"] = math.log2(doubled / first)
        cells["exponent in columns"] = math.log2(
            _seconds(kind, solver, **base, columns=2 * COLUMNS) / first
        )
        rows.append(Row(cells))
    note = f"{base['rows']} rows and {base['size']} features, one alpha, then twice as many."
    return Table("Growth of the time of a fit", note, rows)


def _seconds(kind: str, solver: str, rows: int, size: int, columns: int = COLUMNS) -> float:
    X, Y = _rows(rows, 1, columns)
    model = _model(kind, size, 1.0, solver)
    return shortest(lambda: model.fit(X, Y), rounds=1)[1]


def single_rows(*, quick: bool) -> Table:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((3000, 784), dtype=np.float32)
    maps = {
        "Gaussian": GaussianSketch(1e-3, n_components=1024, random_state=0),
        "polynomial": PolynomialSketch(3, gamma=1e-3, coef0=1.0, n_components=1024, random_state=0),
        "landmarks": LeverageNystroem(Gaussian(1e-3), n_components=1024, random_state=0),
    }
    rows = []
    for name, feature_map in maps.items():
        model = SketchedKernelRidge(features=feature_map, alpha=1.0).fit(X, X[:, 0])
        seconds = best_seconds(
            {
                "features": lambda model=model: model.feature_map_.transform(X[:1]),
                "predict": lambda model=model: model.predict(X[:1]),
            },
            rounds=usual_rounds(quick),
        )
        ratio = seconds["predict"] / seconds["features"]
        figures = {f"{what} ms": 1e3 * value for what, value in seconds.items()}
        rows.append(Row({"map": name, **figures, "ratio": ratio}, [at_most(ratio, 2.0)]))
    note = "784 columns, 1024 features, float32, one thread."
    return Table("Prediction of a single row against its features", note, rows)


def _model(kind: str, size: int, alpha: Any, solver: str) -> SketchedKernelRidge:
    features: Any = GaussianSketch(GAMMA, n_components=size, random_state=0, n_jobs=-1)
    if kind == "landmarks":
        features = LeverageNystroem(
            Gaussian(GAMMA), n_components=size, landmarks="uniform", random_state=0
        )
    return SketchedKernelRidge(features=features, alpha=alpha, solver=solver, random_state=0)


def _rows(rows: int, targets: int, columns: int = COLUMNS) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rows, columns), dtype=np.float32)
    noise = generator.standard_normal((rows, targets))
    y = np.sin(X[:, :1]) + X[:, 1:2] * X[:, 2:3] + noise / 2
    return X, y[:, 0] if targets == 1 else y


MEASUREMENTS = (single_rows, growth, solver_choices)
