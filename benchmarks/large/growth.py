"""How the time of a fit grows with its sizes, and that of a single prediction beside features."""

import itertools
import math
from functools import partial
from typing import Any

import numpy as np

from benchmarks.large.choices import COLUMNS, KINDS, map_of, rows_of
from benchmarks.report import Row, Table, at_most
from benchmarks.timing import best_seconds, shortest, usual_rounds
from powersketch import (
    GaussianSketch,
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
)
from powersketch.kernels import Gaussian


def growth(*, quick: bool) -> Table:
    """Exponents of the time of a fit in rows, features and columns, from doubling each."""
    base = {"rows": 5000, "features": 256} if quick else {"rows": 40_000, "features": 2048}
    base["columns"] = COLUMNS
    rows = []
    for kind, solver in itertools.product(KINDS, ("gram", "cg")):
        first = _seconds(kind, solver, **base)
        cells: dict[str, Any] = {"map": kind, "solver": solver, "seconds": first}
        for name, size in base.items():
            doubled = _seconds(kind, solver, **{**base, name: 2 * size})
            cells[f"exponent in {name}"] = math.log2(doubled / first)
        rows.append(Row(cells))
    note = (
        f"{base['rows']} rows of {COLUMNS} columns and {base['features']} features in float32, one "
        "alpha, two cores; then twice as many of each."
    )
    return Table("Growth of the time of a fit", note, rows)


def _seconds(kind: str, solver: str, rows: int, features: int, columns: int) -> float:
    X, y = rows_of(rows, 1, columns)
    model = SketchedKernelRidge(
        features=map_of(kind, features, columns), alpha=1.0, solver=solver, random_state=0
    )
    return shortest(partial(model.fit, X, y), rounds=2)[1]


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


MEASUREMENTS = (growth, single_rows)
