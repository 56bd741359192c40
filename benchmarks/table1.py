"""Table 1 of the paper, measured: how time and size grow with n, d and p, and who wins where."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import scipy.linalg
from data import low_rank_rows, normal_rows
from figures import curve_figure
from report import Row, Table, at_most
from timing import best_seconds, usual_rounds

from powersketch import PolynomialSketch
from powersketch.kernels import Polynomial

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

    make: Callable[..., PolynomialSketch]
    claimed_time: Mapping[str, str]
    claimed_size: Mapping[str, str]
    fit_counts: bool = False


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
    "WZ20 adaptive": Method(
        _sketch(method="adaptive", expansion="none"),
        {"n": "1 … 3", "d": "1", "p": "2.5"},
        {"n": "1", "p": "0"},
        fit_counts=True,
    ),
}
EXACT = "exact kernel"
CLAIMED_EXACT = {"n": "2", "d": "1", "p": "0"}
COLOURS = ("#0b6e99", "#4aa3c7", "#7b6fb0", "#d9730d", "#6a994e", "#8c2f39", "#777777")
MARKERS = "osD^vPx"
STYLES = {
    name: {"color": colour, "marker": marker, "linewidth": 2.4 if name == OURS else 1.4}
    for name, colour, marker in zip([*METHODS, EXACT], COLOURS, MARKERS, strict=True)
}

TIME_AT = {"n": 256, "d": 16_384, "p": 8}
TIME_SIZE = 512
TIME_GROWTHS = (
    Growth("n", (64, 128, 256, 512, 1024), (64, 256)),
    Growth("d", (8192, 16_384, 32_768, 65_536, 131_072), (8192, 32_768)),
    Growth("p", (2, 4, 8, 16, 32, 64), (2, 16)),
)
TIME_BARS = {"p": 0.25, "d": 1.1}
SIZE_AT = {"n": 128, "d": 4096, "p": 8}
SIZE_GROWTHS = (
    Growth("n", (32, 64, 128, 256), (32, 128)),
    Growth("p", (2, 4, 8, 16, 32), (2, 8)),
)


def time_exponents(*, quick: bool) -> Table:
    seconds = {growth.variable: _times(growth, quick=quick) for growth in TIME_GROWTHS}
    rows = [_time_row(name, seconds) for name in [*METHODS, EXACT]]
    panels = {f"time against {variable}": found for variable, found in seconds.items()}
    title = "Table 1 of the paper: growth of the time at a fixed size"
    fixed = ", ".join(f"{name} = {value}" for name, value in TIME_AT.items())
    return Table(
        title,
        f"Exponents of n, d and p fitted to the shortest times of a transform, float32, one "
        f"thread, {TIME_SIZE} features, around {fixed}; those of WZ20 include its fit, which "
        "samples from the data. In brackets: what Table 1 of the paper says of the leading term, "
        "logarithms left out.",
        rows,
        figure=curve_figure(
            "table1_time", title, panels, styles=STYLES, x="n, d or p", y="seconds"
        ),
    )


def _times(growth: Growth, *, quick: bool) -> dict[str, list[tuple[float, float]]]:
    """Return (value, seconds) of every method."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in [*METHODS, EXACT]}
    for value in growth.chosen(quick=quick):
        setting = TIME_AT | {growth.variable: value}
        X = normal_rows(setting["n"], setting["d"])
        calls = {name: _timed_call(method, X, setting["p"]) for name, method in METHODS.items()}
        calls[EXACT] = partial(Polynomial(setting["p"]), X)
        for name, seconds in best_seconds(calls, rounds=usual_rounds(quick)).items():
            found[name].append((value, seconds))
    return found


def _timed_call(method: Method, X: np.ndarray, degree: int) -> Callable[[], object]:
    sketch = method.make(degree=degree, n_components=TIME_SIZE, random_state=0)
    return partial(sketch.fit_transform if method.fit_counts else sketch.fit(X).transform, X)


def _time_row(name: str, seconds: Mapping[str, Mapping[str, list[tuple[float, float]]]]) -> Row:
    claimed = METHODS[name].claimed_time if name in METHODS else CLAIMED_EXACT
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
    sizes = {growth.variable: _sizes(growth, quick=quick) for growth in SIZE_GROWTHS}
    rows = [_size_row(name, sizes) for name in METHODS]
    title = "Table 1 of the paper: growth of the size for a fixed accuracy"
    panels = {
        f"size against {variable}": {name: points for name, points in found.items() if points}
        for variable, found in sizes.items()
    }
    fixed = ", ".join(f"{name} = {value}" for name, value in SIZE_AT.items())
    return Table(
        title,
        f"The number of features with which all eigenvalues of (Z Zᵀ, K) lie in 1 ± {EPSILON:g}, "
        f"interpolated between sizes from {SIZES[0]} to {SIZES[-1]}, median of "
        f"{QUICK_SEEDS if quick else SEEDS} seeds; rows of which half lies in 20 directions, "
        f"around {fixed}. "
        f"'–' where fewer than two sizes of at most {SIZES[-1]} were enough.",
        rows,
        figure=curve_figure("table1_size", title, panels, styles=STYLES, x="n or p", y="features"),
    )


def _sizes(growth: Growth, *, quick: bool) -> dict[str, list[tuple[float, float]]]:
    """Return (value, size) of every method, where there is a size that suffices."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in METHODS}
    for value in growth.chosen(quick=quick):
        setting = SIZE_AT | {growth.variable: value}
        X = low_rank_rows(setting["n"], setting["d"]).astype(np.float64)
        for name, method in METHODS.items():
            size = needed_size(method, X, setting["p"], seeds=QUICK_SEEDS if quick else SEEDS)
            if math.isfinite(size):
                found[name].append((value, size))
    return found


def needed_size(method: Method, X: np.ndarray, degree: int, *, seeds: int) -> float:
    """Return the size that suffices, between two that were tried; infinity if none does."""
    K = Polynomial(degree)(X)
    before = None
    for size in SIZES:
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


def _size_row(name: str, sizes: Mapping[str, Mapping[str, list[tuple[float, float]]]]) -> Row:
    claimed = METHODS[name].claimed_size
    cells: dict[str, str | float] = {"method": name}
    for variable, found in sizes.items():
        points = found[name]
        value = f"{exponent(points):.2f}" if len(points) > 1 else "–"
        cells[f"in {variable} (claimed)"] = f"{value} ({claimed[variable]})"
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
        f"eigenvalues of (Z Zᵀ, K) lie in 1 ± {EPSILON:g} (found at d = {SIZE_AT['d']}); '–' where "
        f"no size up to {SIZES[-1]} suffices. The exact kernel is the matrix itself, not features "
        "of the rows: it wins where rows are few.",
        rows,
        figure=curve_figure(
            "table1_crossover", title, panels, styles=STYLES, x="columns", y="seconds"
        ),
    )


def _sizes_at_degree(degree: int, *, quick: bool) -> dict[str, int]:
    X = low_rank_rows(CROSSOVER_ROWS, SIZE_AT["d"]).astype(np.float64)
    sizes = {
        name: needed_size(method, X, degree, seeds=1 if quick else SEEDS)
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
        calls[name] = partial(
            sketch.fit_transform if method.fit_counts else sketch.fit(X).transform, X
        )
    return best_seconds(calls, rounds=1 if quick else 3)


def _crossover_row(degree: int, columns: int, seconds: Mapping[str, float]) -> Row:
    cells: dict[str, str | int | float] = {"degree": degree, "columns": columns}
    for name in [*METHODS, EXACT]:
        cells[name] = f"{1e3 * seconds[name]:.3g}" if name in seconds else "–"
    sketches = {name: value for name, value in seconds.items() if name != EXACT}
    cells["fastest sketch"] = min(sketches, key=sketches.__getitem__) if sketches else "–"
    return Row(cells)


MEASUREMENTS = (time_exponents, size_exponents, crossovers)
