"""Table 1 of the paper, measured: how time and size grow with n, d and p, and who wins where."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Self

import numpy as np
import scipy.linalg

from benchmarks.data import low_rank_rows, normal_rows
from benchmarks.figures import curve_figure
from benchmarks.report import Row, Table, at_most
from benchmarks.timing import best_seconds, usual_rounds
from powersketch import PolynomialSketch
from powersketch.kernels import Polynomial
from powersketch.powers.adaptive import drawn_tuples, tuple_law
from powersketch.random_streams import RandomStreams

EPSILON = 0.5
SIZES = tuple(2**power for power in range(6, 17))
SEEDS, QUICK_SEEDS = 3, 1


@dataclass(frozen=True)
class Growth:
    """Values at several n, d or p, all else fixed, and the exponent that the paper claims."""

    variable: str
    values: tuple[int, ...]
    quick: tuple[int, ...]

    def chosen(self, *, quick: bool) -> tuple[int, ...]:
        return self.quick if quick else self.values


@dataclass(frozen=True)
class Method:
    """A way to sketch a power, and what Table 1 says of it: exponents by variable."""

    make: Callable[..., Any]
    claimed_time: Mapping[str, str]
    claimed_size: Mapping[str, str]


@dataclass(frozen=True)
class LeverageSample:
    """The method of WZ20 by itself: monomials drawn by sketched leverage scores of these rows."""

    degree: int
    n_components: int
    random_state: int

    def fit(self, X: np.ndarray) -> Self:
        del X
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Draw and evaluate the monomials: the draw looks at the rows, so that it counts."""
        streams = RandomStreams(self.random_state, "benchmark")
        size, branch = self.n_components, streams.child("law")
        law = tuple_law(X, self.degree, size, branch, draw="sketched")
        return drawn_tuples(law, size, streams.child("draws")).features(X)

    def fit_transform(self, X: np.ndarray) -> np.ndarray:
        return self.transform(X)


def _sketch(**options: object) -> Callable[..., PolynomialSketch]:
    return partial(PolynomialSketch, n_jobs=1, **options)


LITERAL = {"norm_preserving": False, "expansion": "none"}
OURS = "this library's default"
METHODS = {
    OURS: Method(_sketch(), {"n": "1", "d": "1", "p": "0"}, {"n": "1", "p": "2"}),
    "norm preserving": Method(
        _sketch(expansion="none"), {"n": "1", "d": "1", "p": "0"}, {"n": "1", "p": "2"}
    ),
    "the paper, literal": Method(
        _sketch(**LITERAL), {"n": "1", "d": "1", "p": "0"}, {"n": "1", "p": "2"}
    ),
    "AKK+20 tree": Method(
        _sketch(method="tree", **LITERAL), {"n": "1", "d": "1", "p": "1"}, {"n": "2", "p": "1"}
    ),
    "ANW14 TensorSketch": Method(
        _sketch(method="tensorsketch", **LITERAL),
        {"n": "1", "d": "1", "p": "1"},
        {"n": "2", "p": "3^p"},
    ),
}
# Drawing by leverage takes a time in proportion to n, d, p and the number of draws, and minutes
# where the others take milliseconds: it is measured on smaller rows.
SAMPLED = "WZ20 adaptive"
LEVERAGE = Method(LeverageSample, {"n": "1 … 3", "d": "1", "p": "2.5"}, {"n": "1", "p": "0"})
ALL_METHODS = {**METHODS, SAMPLED: LEVERAGE}
EXACT = "exact kernel"
CLAIMED_EXACT = {"n": "2", "d": "1", "p": "0"}
COLOURS = ("#0b6e99", "#4aa3c7", "#7b6fb0", "#d9730d", "#6a994e", "#8c2f39", "#777777")
MARKERS = "osD^vPx"
STYLES = {
    name: {"color": colour, "marker": marker, "linewidth": 2.4 if name == OURS else 1.4}
    for name, colour, marker in zip([*METHODS, EXACT, SAMPLED], COLOURS, MARKERS, strict=True)
}

Points = dict[str, list[tuple[float, float]]]
"""Pairs of a value of n, d or p and what was measured there, by method."""


@dataclass(frozen=True)
class Experiment:
    """Methods, the n, d and p around which one of them varies, and how far it does."""

    methods: Mapping[str, Method]
    around: Mapping[str, int]
    growths: tuple[Growth, ...]

    def settings(self, growth: Growth, *, quick: bool) -> list[tuple[int, Mapping[str, int]]]:
        """Return the values of one variable, and all three for each of them."""
        values = growth.chosen(quick=quick)
        return [(value, {**self.around, growth.variable: value}) for value in values]

    @property
    def text(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in self.around.items())


TIME_BARS = {"p": 0.25, "d": 1.1}
TIME_SIZE, SAMPLED_SIZE = 512, 64
TIMES = Experiment(
    METHODS,
    {"n": 256, "d": 16_384, "p": 8},
    (
        Growth("n", (64, 128, 256, 512, 1024), (64, 256)),
        Growth("d", (8192, 16_384, 32_768, 65_536, 131_072), (8192, 32_768)),
        Growth("p", (2, 4, 8, 16, 32, 64), (2, 16)),
    ),
)
SAMPLED_TIMES = Experiment(
    {SAMPLED: LEVERAGE},
    {"n": 32, "d": 256, "p": 4},
    (
        Growth("n", (16, 32, 64), (16, 32)),
        Growth("d", (128, 256, 512), (128, 256)),
        Growth("p", (2, 4, 8), (2, 4)),
    ),
)
SIZE_COUNTS = Experiment(
    METHODS,
    {"n": 128, "d": 4096, "p": 8},
    (
        Growth("n", (32, 64, 128, 256), (32, 128)),
        Growth("d", (1024, 4096, 16_384), (1024, 4096)),
        Growth("p", (2, 4, 8, 16, 32), (2, 8)),
    ),
)
SAMPLED_COUNTS = Experiment(
    {SAMPLED: LEVERAGE},
    {"n": 16, "d": 64, "p": 4},
    (
        Growth("n", (8, 16, 32), (8, 16)),
        Growth("d", (32, 64, 128), (32, 64)),
        Growth("p", (2, 4, 6), (2, 4)),
    ),
)
MOST_SAMPLED = 1024


def time_exponents(*, quick: bool) -> Table:
    seconds = {
        growth.variable: _times(TIMES, growth, TIME_SIZE, quick=quick) for growth in TIMES.growths
    }
    sampled = {
        growth.variable: _times(SAMPLED_TIMES, growth, SAMPLED_SIZE, quick=quick)
        for growth in SAMPLED_TIMES.growths
    }
    panels = {f"time against {variable}": found for variable, found in seconds.items()}
    title = "Table 1 of the paper: growth of the time at a fixed size"
    return Table(
        title,
        "Exponents of n, d and p fitted to the shortest times of a transform, one thread, float32, "
        f"{TIME_SIZE} features, around {TIMES.text}. WZ20 draws its features for the rows at hand, "
        f"which counts: {SAMPLED_SIZE} features around {SAMPLED_TIMES.text}. In brackets: what "
        "Table 1 of the paper says of the leading term, logarithms left out.",
        [
            *(_time_row(name, seconds) for name in [*METHODS, EXACT]),
            _time_row(SAMPLED, sampled),
        ],
        figure=curve_figure(
            "table1_time", title, panels, styles=STYLES, x="n, d or p", y="seconds"
        ),
    )


def _times(experiment: Experiment, growth: Growth, size: int, *, quick: bool) -> Points:
    """Return (value, seconds) of every method, and of the exact kernel."""
    found: Points = {name: [] for name in [*experiment.methods, EXACT]}
    for value, setting in experiment.settings(growth, quick=quick):
        X = normal_rows(setting["n"], setting["d"])
        calls = {
            name: _timed_call(method, X, setting["p"], size)
            for name, method in experiment.methods.items()
        }
        calls[EXACT] = partial(Polynomial(setting["p"]), X)
        for name, seconds in best_seconds(calls, rounds=_rounds(experiment, quick=quick)).items():
            found[name].append((value, seconds))
    return found


def _rounds(experiment: Experiment, *, quick: bool) -> int:
    return 1 if SAMPLED in experiment.methods else usual_rounds(quick)


def _timed_call(method: Method, X: np.ndarray, degree: int, size: int) -> Callable[[], object]:
    sketch = method.make(degree=degree, n_components=size, random_state=0)
    return partial(sketch.fit(X).transform, X)


def _time_row(name: str, seconds: Mapping[str, Points]) -> Row:
    claimed = ALL_METHODS[name].claimed_time if name in ALL_METHODS else CLAIMED_EXACT
    exponents = {variable: exponent(found[name]) for variable, found in seconds.items()}
    cells = {"method": name} | {
        f"in {variable} (claimed)": f"{value:.2f} ({claimed[variable]})"
        for variable, value in exponents.items()
    }
    bars = [at_most(exponents[key], limit) for key, limit in TIME_BARS.items()]
    return Row(cells, bars if name == OURS else ())


def exponent(points: list[tuple[float, float]]) -> float:
    """Return the slope of a line through the logarithms."""
    x, y = np.log(np.array(points, dtype=np.float64)).T
    return float(np.polyfit(x, y, 1)[0])


def size_exponents(*, quick: bool) -> Table:
    sizes = {
        growth.variable: _sizes(SIZE_COUNTS, growth, SIZES, quick=quick)
        for growth in SIZE_COUNTS.growths
    }
    few = tuple(size for size in SIZES if size <= MOST_SAMPLED)
    sampled = {
        growth.variable: _sizes(SAMPLED_COUNTS, growth, few, quick=quick)
        for growth in SAMPLED_COUNTS.growths
    }
    title = "Table 1 of the paper: growth of the size for a fixed accuracy"
    panels = {
        f"size against {variable}": {name: points for name, points in found.items() if points}
        for variable, found in sizes.items()
    }
    return Table(
        title,
        f"The number of features with which all eigenvalues of (Z Zᵀ, K) lie in 1 ± {EPSILON:g}, "
        f"interpolated between sizes from {SIZES[0]} to {SIZES[-1]}, median of "
        f"{QUICK_SEEDS if quick else SEEDS} seeds; rows of which half lies in 20 directions, "
        f"around {SIZE_COUNTS.text}; WZ20: up to {MOST_SAMPLED} features, around "
        f"{SAMPLED_COUNTS.text}. '–' where fewer than two settings had a size that was enough.",
        [*(_size_row(name, sizes) for name in METHODS), _size_row(SAMPLED, sampled)],
        figure=curve_figure(
            "table1_size", title, panels, styles=STYLES, x="n, d or p", y="features"
        ),
    )


def _sizes(experiment: Experiment, growth: Growth, sizes: Sequence[int], *, quick: bool) -> Points:
    """Return (value, size) of every method, where there is a size that suffices."""
    found: Points = {name: [] for name in experiment.methods}
    seeds = QUICK_SEEDS if quick else SEEDS
    for value, setting in experiment.settings(growth, quick=quick):
        X = low_rank_rows(setting["n"], setting["d"]).astype(np.float64)
        for name, method in experiment.methods.items():
            size = needed_size(method, X, setting["p"], sizes, seeds=seeds)
            if math.isfinite(size):
                found[name].append((value, size))
    return found


def needed_size(
    method: Method, X: np.ndarray, degree: int, sizes: Sequence[int], *, seeds: int
) -> float:
    """Return the size that suffices, between two that were tried; infinity if none does."""
    K = Polynomial(degree)(X)
    before = None
    for size in sizes:
        error = median(_spectral_error(method, X, K, degree, size, seed) for seed in range(seeds))
        if error <= EPSILON:
            return float(size) if before is None else _between(before, (size, error))
        before = (size, error)
    return math.inf


def _spectral_error(
    method: Method, X: np.ndarray, K: np.ndarray, degree: int, size: int, seed: int
) -> float:
    """Return the largest |λ − 1| over the eigenvalues λ of (Z Zᵀ, K)."""
    sketch = method.make(degree=degree, n_components=size, random_state=seed)
    Z = sketch.fit_transform(X)
    eigenvalues = scipy.linalg.eigh(Z @ Z.T, K, eigvals_only=True)
    return float(max(abs(eigenvalues[0] - 1.0), abs(eigenvalues[-1] - 1.0)))


def _between(small: tuple[int, float], large: tuple[int, float]) -> float:
    """Return where the error, on logarithmic axes a line between the two sizes, is EPSILON."""
    (size, error), (more, less) = small, large
    share = math.log(error / EPSILON) / math.log(error / less)
    return float(size * (more / size) ** share)


def _size_row(name: str, sizes: Mapping[str, Points]) -> Row:
    claimed = ALL_METHODS[name].claimed_size
    cells: dict[str, str | float] = {"method": name}
    for variable, found in sizes.items():
        points = found[name]
        value = f"{exponent(points):.2f}" if len(points) > 1 else "–"
        cells[f"in {variable} (claimed)"] = f"{value} ({claimed.get(variable, '0')})"
        last = f"at {variable} = {points[-1][0]:g}: {points[-1][1]:.0f}" if points else "none"
        cells[f"largest, by {variable}"] = last
    return Row(cells)


CROSSOVER_ROWS = 256
CROSSOVER_DEGREES = Growth("p", (2, 4, 8, 16, 32), (2, 8))
CROSSOVER_COLUMNS = Growth("d", (1024, 4096, 16_384, 65_536), (1024, 16_384))


def crossovers(*, quick: bool) -> Table:
    """Time to the same accuracy: every method at the size that it needs."""
    rows, panels = [], {}
    for degree in CROSSOVER_DEGREES.chosen(quick=quick):
        sizes = _sizes_at_degree(degree, quick=quick)
        curves: dict[str, list[tuple[float, float]]] = {name: [] for name in [*sizes, EXACT]}
        for columns in CROSSOVER_COLUMNS.chosen(quick=quick):
            seconds = _seconds_to_accuracy(sizes, degree, columns, quick=quick)
            for name, value in seconds.items():
                curves[name].append((columns, value))
            rows.append(_crossover_row(degree, columns, seconds))
        panels[f"degree {degree}"] = curves
    title = "Time to the same accuracy, by degree and number of columns"
    return Table(
        title,
        f"{CROSSOVER_ROWS} rows, float32, one thread; milliseconds at the size with which all "
        f"eigenvalues of (Z Zᵀ, K) lie in 1 ± {EPSILON:g}, found at {SIZE_COUNTS.around['d']} "
        f"columns; '–' where no size up to {SIZES[-1]} suffices. The exact kernel is the matrix "
        "itself, not features of the rows: it wins where rows are few.",
        rows,
        figure=curve_figure(
            "table1_crossover", title, panels, styles=STYLES, x="columns", y="seconds"
        ),
    )


def _sizes_at_degree(degree: int, *, quick: bool) -> dict[str, int]:
    X = low_rank_rows(CROSSOVER_ROWS, SIZE_COUNTS.around["d"]).astype(np.float64)
    sizes = {
        name: needed_size(method, X, degree, SIZES, seeds=1 if quick else SEEDS)
        for name, method in METHODS.items()
    }
    return {name: math.ceil(size) for name, size in sizes.items() if math.isfinite(size)}


def _seconds_to_accuracy(
    sizes: Mapping[str, int], degree: int, columns: int, *, quick: bool
) -> dict[str, float]:
    X = low_rank_rows(CROSSOVER_ROWS, columns)
    calls: dict[str, Callable[[], object]] = {EXACT: partial(Polynomial(degree), X)}
    for name, size in sizes.items():
        method = METHODS[name]
        sketch = method.make(degree=degree, n_components=size, random_state=0)
        calls[name] = partial(sketch.fit(X).transform, X)
    return best_seconds(calls, rounds=1 if quick else 3)


def _crossover_row(degree: int, columns: int, seconds: Mapping[str, float]) -> Row:
    cells: dict[str, str | int | float] = {"degree": degree, "columns": columns}
    for name in [*METHODS, EXACT]:
        cells[name] = f"{1e3 * seconds[name]:.3g}" if name in seconds else "–"
    sketches = {name: value for name, value in seconds.items() if name != EXACT}
    cells["fastest sketch"] = min(sketches, key=sketches.__getitem__) if sketches else "–"
    return Row(cells)


MEASUREMENTS = (time_exponents, size_exponents, crossovers)
