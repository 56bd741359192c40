"""Test error against time of ridge regression, with our maps and with scikit-learn's."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from benchmarks.figures import curve_figure
from benchmarks.peers.ridge import RidgeOnFeatures, SubsampledKernelRidge
from benchmarks.report import Bar, Row, Table
from benchmarks.ridge.problems import PROBLEMS, Problem
from benchmarks.timing import timed
from powersketch import (
    ArcCosineSketch,
    GaussianSketch,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
)
from powersketch.kernels import Gaussian

SIZES, QUICK_SIZES, QUICK_ROWS = (256, 1024, 4096), (128,), 1000
# RBFSampler's frequencies of 73,686 terms do not fit into memory otherwise.
MOST_COMPONENTS = {"20 Newsgroups": 1024}
# The maps that 'auto' could have chosen, and those of other kernels, are there to be seen only.
MOST_COMPONENTS_OF_SINGLE_MAPS = 1024
PENALTIES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Alpha relative to the number of rows."""

Model = Any
Outcome = tuple[float, float]
"""Seconds and test error."""


def _automatic(problem: Problem, size: int) -> Model:
    kernel = Gaussian(problem.gamma)
    return _ours(problem, kernel=kernel, features="auto", n_components=size)


def _with_map(make: Callable[[Problem], Any], problem: Problem, size: int) -> Model:
    return _ours(problem, features=make(problem), n_components=size)


def _ours(problem: Problem, **options: Any) -> Model:
    estimator = SketchedKernelRidge
    if problem.is_classification:
        estimator = SketchedKernelRidgeClassifier
    alphas = [penalty * len(problem.y) for penalty in PENALTIES]
    return estimator(alpha="loo", alphas=alphas, random_state=0, n_jobs=-1, **options)


def _polynomial(problem: Problem) -> PolynomialSketch:
    return PolynomialSketch(4, gamma=1 / problem.mean_squared_norm, coef0=1.0)


def _nystroem(problem: Problem, size: int) -> Model:
    return RidgeOnFeatures(
        Nystroem(gamma=problem.gamma, n_components=size, random_state=0), PENALTIES
    )


def _fourier(problem: Problem, size: int) -> Model:
    return RidgeOnFeatures(
        RBFSampler(gamma=problem.gamma, n_components=size, random_state=0), PENALTIES
    )


def _kernel_ridge(problem: Problem, size: int) -> Model:
    return SubsampledKernelRidge(problem.gamma, 2 * size, PENALTIES)


AUTOMATIC = "features='auto'"
NYSTROEM, FOURIER = "Nystroem + ridge", "RBFSampler + ridge"
OURS: dict[str, Callable[[Problem, int], Model]] = {
    AUTOMATIC: _automatic,
    "LeverageNystroem": partial(_with_map, lambda p: LeverageNystroem(Gaussian(p.gamma))),
    "GaussianSketch": partial(_with_map, lambda p: GaussianSketch(p.gamma)),
    "PolynomialSketch": partial(_with_map, _polynomial),
    "ArcCosineSketch": partial(_with_map, lambda p: ArcCosineSketch(1)),
    "NeuralTangentSketch": partial(_with_map, lambda p: NeuralTangentSketch(2)),
}
PEERS: dict[str, Callable[[Problem, int], Model]] = {
    NYSTROEM: _nystroem,
    FOURIER: _fourier,
    "KernelRidge, 2 × size rows": _kernel_ridge,
}
HELD_TO_BARS = ("Fashion-MNIST", "taxi")
STYLES = {
    AUTOMATIC: {"color": "#0b6e99", "marker": "o", "linewidth": 2.6, "zorder": 4},
    "LeverageNystroem": {"color": "#4aa3c7", "marker": "o", "zorder": 3},
    "GaussianSketch": {"color": "#4aa3c7", "marker": "s", "linestyle": "--", "zorder": 3},
    "PolynomialSketch": {"color": "#7b6fb0", "marker": "^", "linestyle": "--"},
    "ArcCosineSketch": {"color": "#7b6fb0", "marker": "v", "linestyle": ":"},
    "NeuralTangentSketch": {"color": "#7b6fb0", "marker": "D", "linestyle": ":"},
    NYSTROEM: {"color": "#d9730d", "marker": "o"},
    FOURIER: {"color": "#6a994e", "marker": "s"},
    "KernelRidge, 2 × size rows": {"color": "#777777", "marker": "x"},
}


def error_against_time(*, quick: bool) -> Table:
    sizes = QUICK_SIZES if quick else SIZES
    outcomes = {name: _outcomes(name, sizes, quick=quick) for name in PROBLEMS}
    panels = {
        name: {method: list(by_size.values()) for method, by_size in methods.items()}
        for name, methods in outcomes.items()
    }
    title = "Ridge regression: test error against time"
    return Table(
        title,
        "Seconds of fit and predict with all processors, float32, by number of components. Error: "
        "share of wrong classes, or squared error relative to the variance. The Gaussian kernel "
        "has the same gamma for all. The penalty is the best of 6: for our estimators by "
        "leave-one-out, for the others on a held-out tenth of the training rows, from normal "
        "equations that are summed up once: far cheaper than scikit-learn's own search. At the "
        "largest size, features='auto' is held to 1.02 × the error of the better of Nystroem and "
        "RBFSampler.",
        [row for name, methods in outcomes.items() for row in _rows(name, methods, sizes)],
        figure=curve_figure(
            "ridge_prediction", title, panels, styles=STYLES, x="seconds", y="test error"
        ),
    )


def _outcomes(name: str, sizes: tuple[int, ...], *, quick: bool) -> dict[str, dict[int, Outcome]]:
    problem = PROBLEMS[name]()
    if quick:
        problem = problem.first(QUICK_ROWS)
    return {
        method: {
            size: _outcome(build(problem, size), problem, ours=method in OURS)
            for size in sizes
            if size <= _most_components(name, method)
        }
        for method, build in (OURS | PEERS).items()
    }


def _most_components(name: str, method: str) -> int:
    single = method in OURS and method != AUTOMATIC
    return MOST_COMPONENTS_OF_SINGLE_MAPS if single else MOST_COMPONENTS.get(name, max(SIZES))


def _outcome(model: Model, problem: Problem, *, ours: bool) -> Outcome:
    targets = problem.y if ours else problem.targets

    def predictions() -> Any:
        return model.fit(problem.X, targets).predict(problem.X_test)

    with warnings.catch_warnings():
        # Of ill-conditioned systems, and of a best penalty at the end of the grid.
        warnings.simplefilter("ignore")
        predicted, seconds = timed(predictions)
    return seconds, problem.error(predicted)


def _rows(
    name: str, methods: Mapping[str, Mapping[int, Outcome]], sizes: tuple[int, ...]
) -> list[Row]:
    rows = []
    for method, outcomes in methods.items():
        cells: dict[str, Any] = {"data": name, "method": method}
        for size in sizes:
            seconds, error = outcomes.get(size, ("–", "–"))
            cells |= {f"error, {size}": error, f"s, {size}": seconds}
        barred = method == AUTOMATIC and name in HELD_TO_BARS
        rows.append(Row(cells, _bars(methods, max(outcomes)) if barred else []))
    return rows


def _bars(methods: Mapping[str, Mapping[int, Outcome]], size: int) -> list[Bar]:
    their_error = min(methods[peer][size][1] for peer in (NYSTROEM, FOURIER))
    error = methods[AUTOMATIC][size][1]
    return [Bar(f"error ≤ 1.02 × {their_error:.3g}", error <= 1.02 * their_error)]


GIVEN_PENALTY = 1e-6
"""Relative to the number of rows."""


def given_penalty(*, quick: bool) -> Table:
    size = max(QUICK_SIZES if quick else SIZES)
    return Table(
        "Ridge regression with a given penalty: features='auto' against scikit-learn's pipelines",
        f"Seconds of fit and predict with all processors, float32, {size} components, penalty "
        f"{GIVEN_PENALTY:g} × rows, the shorter of two runs. features='auto' chooses between "
        "landmarks and a sketch on the way; it is held to 1.02 × the error and 0.5 × the "
        "time of the more accurate pipeline.",
        [row for name in HELD_TO_BARS for row in _pipeline_rows(name, size, quick=quick)],
    )


def _pipeline_rows(name: str, size: int, *, quick: bool) -> list[Row]:
    problem = PROBLEMS[name]()
    if quick:
        problem = problem.first(QUICK_ROWS)
    alpha = GIVEN_PENALTY * len(problem.y)
    options = {"gamma": problem.gamma, "n_components": size, "random_state": 0}
    makers: dict[str, Callable[[], Model]] = {
        AUTOMATIC: lambda: _automatic(problem, size).set_params(alpha=alpha, alphas=None),
        "Nystroem + Ridge": lambda: make_pipeline(Nystroem(n_jobs=-1, **options), Ridge(alpha)),
        "RBFSampler + Ridge": lambda: make_pipeline(RBFSampler(**options), Ridge(alpha)),
    }
    outcomes = {
        method: min(_outcome(make(), problem, ours=method == AUTOMATIC) for _ in range(2))
        for method, make in makers.items()
    }
    their_seconds, their_error = min(list(outcomes.values())[1:], key=lambda outcome: outcome[1])
    rows = []
    for method, (seconds, error) in outcomes.items():
        bars = [
            Bar(f"error ≤ 1.02 × {their_error:.3g}", error <= 1.02 * their_error),
            Bar(f"time ≤ 0.5 × {their_seconds:.3g} s", seconds <= 0.5 * their_seconds),
        ]
        cells = {"data": name, "method": method, "error": error, "seconds": seconds}
        rows.append(Row(cells, bars if method == AUTOMATIC else ()))
    return rows


MEASUREMENTS = (error_against_time, given_penalty)
