"""Sums or iterations: both measured on a grid, what "auto" takes, and the rates it goes by."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from benchmarks.outcomes import kept, library_sources
from benchmarks.report import Row, Table, at_most
from benchmarks.timing import timed
from powersketch import (
    GaussianSketch,
    LeverageNystroem,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
)
from powersketch.kernel_ridge.choosing.solvers import RATES, Problem, planned, seconds
from powersketch.kernels import Gaussian

COLUMNS, LONG_ROWS, CLASSES = 50, 800, 10
# Fits of each place, in turn; those of so many seconds are measured once.
TURNS, LONG_FIT = 3, 4.0
SIZES = ((10_000, 1024), (50_000, 1024), (40_000, 2048), (20_000, 4096))
KINDS = ("landmarks", "sketch")
# A rate may differ by this factor from the one that is stored.
MOST_CHANGE = 5.0


@dataclass(frozen=True)
class Place:
    """A place of the grid; `targets` are classes where they are `classes`."""

    rows: int
    features: int
    kind: str
    alpha: float | str
    targets: int
    classes: bool
    dtype: str = "float32"
    columns: int = COLUMNS

    def model(self, solver: str) -> Any:
        estimator = SketchedKernelRidgeClassifier if self.classes else SketchedKernelRidge
        features = map_of(self.kind, self.features, self.columns)
        return estimator(features=features, alpha=self.alpha, solver=solver, random_state=0)

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        X, Y = rows_of(self.rows, self.targets, self.columns, self.dtype)
        return X, Y.argmax(axis=1) if self.classes else Y

    def problem(self) -> Problem:
        searched = isinstance(self.alpha, str)
        return Problem(
            self.rows,
            self.columns,
            self.features,
            self.targets,
            0 if searched else 1,
            self.kind == "landmarks",
            np.dtype(self.dtype),
            searched or self.classes,
        )


def grid(*, quick: bool) -> Iterator[Place]:
    sizes = ((3000, 256),) if quick else SIZES
    targets = ((1, False), (CLASSES, False), (CLASSES, True))
    for (rows, features), kind, alpha, of in itertools.product(sizes, KINDS, (1.0, "loo"), targets):
        yield Place(rows, features, kind, alpha, *of)
    for kind, alpha in itertools.product(KINDS, (1.0, "loo")):
        yield Place(*sizes[-1], kind, alpha, 1, False, "float64")
    for dtype in ("float32", "float64"):
        yield Place(*sizes[0], "landmarks", 1.0, 1, False, dtype, LONG_ROWS)


def measured(place: Place) -> dict[str, float]:
    """Return the seconds of either solver, which do not depend on the rates of "auto"."""

    def times() -> dict[str, float]:
        X, y = place.data()
        best = dict.fromkeys(("gram", "cg"), float("inf"))
        for turn in range(TURNS):
            for solver in best:
                # What others do on the machine decides on the time of a short fit.
                if turn == 0 or best[solver] < LONG_FIT:
                    _, time = timed(partial(place.model(solver).fit, X, y))
                    best[solver] = min(best[solver], time)
        return best

    return kept(["choices", TURNS, place, *library_sources("solvers.py")], times)


def solver_choices(*, quick: bool) -> Table:
    return Table(
        'What solver="auto" takes, against the better of both',
        f"{COLUMNS} columns unless said, Gaussian kernel, one alpha or the search for one, two "
        f"cores, the best of {TURNS} fits in turn where one takes less than {LONG_FIT:g} s; the "
        "ratio is the time of what is taken over that of the better.",
        [_choice(place, quick=quick) for place in grid(quick=quick)],
    )


def _choice(place: Place, *, quick: bool) -> Row:
    times, problem = measured(place), place.problem()
    chosen = planned(problem, "auto", None).solver
    ratio = times[chosen] / min(times.values())
    cells = {
        "rows": place.rows if place.columns == COLUMNS else f"{place.rows} × {place.columns}",
        "features": f"{place.features} {place.kind}",
        "alpha": str(place.alpha),
        "targets": f"{place.targets} {'classes' if place.classes else 'numbers'}",
        "dtype": place.dtype,
        "gram s": times["gram"],
        "predicted": seconds(problem.work_of_sums()),
        "cg s": times["cg"],
        "predicted ": seconds(problem.work_of_iterations()),
        "auto": chosen,
        "ratio": ratio,
    }
    # Of fits that take no time worth saving, it is that of their other parts that is measured.
    return Row(cells, () if quick else [at_most(ratio, 1.25)])


def rates(*, quick: bool) -> Table:
    """The rates that predict the grid best, beside those that are stored."""
    work, times = [], []
    for place in grid(quick=quick):
        problem = place.problem()
        work += [problem.work_of_sums(), problem.work_of_iterations()]
        times += [measured(place)[solver] for solver in ("gram", "cg")]
    # Every prediction is a sum of work over rates; relative errors count.
    shares = np.array(
        [[of.get(name, 0.0) / rate / time for name, rate in RATES.items()]
         for of, time in zip(work, times, strict=True)]
    )  # fmt: skip
    best = lsq_linear(shares, np.ones(len(times)), (1 / MOST_CHANGE, MOST_CHANGE)).x
    rows = []
    for (name, rate), slower in zip(RATES.items(), best, strict=True):
        rows.append(Row({"rate": name, "stored": rate, "fits best": float(rate / slower)}))
    note = (
        "Of two cores, in products, numbers or bytes a second: those that are stored in the "
        "library, and those of least relative errors of all times above."
    )
    return Table('Rates by which solver="auto" decides', note, rows)


def map_of(kind: str, size: int, columns: int = COLUMNS) -> Any:
    gamma = 0.5 / columns
    if kind == "landmarks":
        return LeverageNystroem(
            Gaussian(gamma), n_components=size, landmarks="uniform", random_state=0
        )
    return GaussianSketch(gamma, n_components=size, random_state=0, n_jobs=-1)


def rows_of(
    rows: int, targets: int, columns: int = COLUMNS, dtype: Any = "float32"
) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rows, columns), dtype=np.float32)
    noise = generator.standard_normal((rows, targets))
    smooth = np.sin(X[:, :1] + np.arange(targets)) + X[:, 1:2] * X[:, 2:3]
    y = smooth + noise / 2
    return X.astype(dtype), y[:, 0] if targets == 1 else y


MEASUREMENTS = (solver_choices, rates)
