"""Feature maps that choose their size for an error: do they meet it, and are they too large?"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.certificates.coverage import clustered_rows, off_diagonal_error
from benchmarks.data import digits, fashion_mnist
from benchmarks.report import Row, Table, at_least, at_most
from powersketch import ArcCosineSketch, GaussianSketch, NeuralTangentSketch, PolynomialSketch

EPS = 0.05
LARGEST, STEP = 65_536, 1.05
SEEDS_OF_SMALLEST = 5


@dataclass(frozen=True, eq=False)
class Case:
    """A map without its size, rows to fit it to and others to judge it by."""

    make: Callable[..., Any]
    X: np.ndarray
    held_out: np.ndarray

    def error(self, sketch: Any, K: np.ndarray) -> float:
        Z = sketch.transform(self.held_out).astype(np.float64)
        return off_diagonal_error(Z @ Z.T, K)

    def mean_error(self, size: int, K: np.ndarray) -> float:
        """Return the mean over a few seeds for maps of this size."""
        return fmean(
            self.error(self.make(n_components=size, random_state=seed).fit(self.X), K)
            for seed in range(SEEDS_OF_SMALLEST)
        )


def sizes_for_an_error(*, quick: bool) -> Table:
    runs = 1 if quick else 25
    return Table(
        f"Sizes that n_components='auto' finds for a relative error of {EPS:g}",
        f"{runs} seeds for every map. The error is that of pairs of different held-out rows. The "
        f"smallest size that would do is where the mean error of {SEEDS_OF_SMALLEST} seeds, on "
        f"the held-out rows themselves, falls to {EPS:g}, to within {STEP - 1:.0%}.",
        [_measured_row(name, case, runs) for name, case in _cases(quick).items()],
    )


def _cases(quick: bool) -> dict[str, Case]:
    rows, held_out = (1500, 400) if quick else (5000, 1500)
    images = fashion_mnist("train")[0][:rows], fashion_mnist("t10k")[0][:held_out]
    numbers = digits(1797) / np.sqrt(np.mean(np.sum(digits(1797) ** 2, axis=1)))
    clusters = clustered_rows(np.random.default_rng(0), rows + held_out)
    return {
        "GaussianSketch, Fashion-MNIST": Case(
            lambda **options: GaussianSketch("scale", **options), *images
        ),
        "PolynomialSketch, degree 4, digits": Case(
            lambda **options: PolynomialSketch(4, coef0=1.0, **options),
            numbers[:1000],
            numbers[1000:],
        ),
        "ArcCosineSketch, clusters": Case(
            lambda **options: ArcCosineSketch(1, **options), clusters[:rows], clusters[rows:]
        ),
        "NeuralTangentSketch, Fashion-MNIST": Case(NeuralTangentSketch, *images),
    }


def _measured_row(name: str, case: Case, runs: int) -> Row:
    maps = [
        case.make(n_components="auto", eps=EPS, random_state=seed).fit(case.X)
        for seed in range(runs)
    ]
    K = maps[0].kernel_(case.held_out.astype(np.float64), n_jobs=-1)
    errors = [case.error(sketch, K) for sketch in maps]
    sizes = [sketch.n_components_ for sketch in maps]
    smallest = _smallest_size(case, K)
    met = sum(error <= EPS for error in errors)
    cells = {
        "map and rows": name,
        "runs": runs,
        "met": met,
        "median error": float(np.median(errors)),
        "largest error": max(errors),
        "median size": float(np.median(sizes)),
        "smallest size": smallest,
        "largest size / smallest": max(sizes) / smallest,
    }
    return Row(cells, [at_least(100 * met / runs, 95), at_most(max(sizes) / smallest, 2)])


def _smallest_size(case: Case, K: np.ndarray) -> int:
    """Return the smallest size with a mean error of at most EPS, by bisection."""
    low = high = 16
    while case.mean_error(high, K) > EPS and high < LARGEST:
        low, high = high, 2 * high
    while high > STEP * low + 1:
        middle = round((low * high) ** 0.5)
        if case.mean_error(middle, K) > EPS:
            low = middle
        else:
            high = middle
    return high


MEASUREMENTS = (sizes_for_an_error,)
