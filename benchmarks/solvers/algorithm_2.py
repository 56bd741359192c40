"""The paper's Algorithm 2: steps against the condition number, and the printed step."""

import math
import sys

import numpy as np

from benchmarks.figures import curve_figure
from benchmarks.report import Bar, Row, Table, at_most
from benchmarks.solvers.problems import KERNELS, KernelSystem, clustered_rows
from powersketch import GaussianSketch
from powersketch.feature_maps import map_for
from powersketch.linalg import FactorOperator, TriangularFactor, preconditioned_gradient
from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT

TOL = 1e-6
COLUMNS, DISTANCES, LARGEST_CONDITION = 1000, tuple(np.logspace(-0.5, -5, 10)), 1e8
FEATURES_PER_ROW = 4
MOST_STEPS_PER_LOGARITHM = 20
COLOURS = ("#0b6e99", "#d9730d", "#c4532d", "#8c2f39", "#6a994e")
MARKERS = "osD^v"


def steps_against_condition(*, quick: bool) -> Table:
    rows = 200 if quick else 800
    measured = {name: _measured_rows(name, rows, quick=quick) for name in KERNELS}
    title = "Algorithm 2: steps against the condition number"
    return Table(
        title,
        f"{rows} rows in clusters, {COLUMNS} columns, a random right-hand side, alpha = 0; the "
        "closer rows of a cluster are, the larger is the condition number. Gradient steps on the "
        f"sketched system of {FEATURES_PER_ROW} features per row until its residual is ε = "
        f"{TOL:g}, or 100 × κ × machine epsilon where that is more. The true residual is that of "
        "the exact system, which the result's message must state. Steps are held to "
        f"{MOST_STEPS_PER_LOGARITHM} ln(κ / ε).",
        [row for found in measured.values() for row in found],
        figure=_figure(title, measured),
    )


def _measured_rows(name: str, rows: int, *, quick: bool) -> list[Row]:
    """Return rows for ever smaller distances in the clusters, up to the largest condition."""
    found = []
    for distance in DISTANCES[:: 3 if quick else 1]:
        system = KernelSystem.of(KERNELS[name], clustered_rows(rows, COLUMNS, distance), 0.0)
        condition = system.condition()
        if condition > LARGEST_CONDITION:
            break
        found.append(_measured_row(name, system, condition))
    return found


def _sketched_condition(system: KernelSystem) -> float:
    """Return the condition number of Z Zᵀ for features like those of the solver."""
    size = FEATURES_PER_ROW * len(system.X)
    Z = map_for(system.kernel, size, random_state=0, n_jobs=-1).fit_transform(system.X)
    eigenvalues = np.linalg.eigvalsh(Z @ Z.T)
    return float(eigenvalues[-1] / eigenvalues[0])


def _measured_row(name: str, system: KernelSystem, condition: float) -> Row:
    options = {"operator": "sketched", "preconditioner": "features", "method": "gradient"}
    result = system.solved(tol=TOL, **options)
    sketched = _sketched_condition(system)
    limit = max(TOL, 100 * sketched * sys.float_info.epsilon)
    steps_per_logarithm = result.iterations / math.log(sketched / TOL)
    true = system.residual(result.x)
    cells = {
        "kernel": name,
        "condition of K": condition,
        "κ of the sketched K": sketched,
        "steps": result.iterations,
        "steps / ln(κ / ε)": steps_per_logarithm,
        "sketched residual": float(result.history[-1]),
        "true residual": true,
    }
    bars = [
        at_most(steps_per_logarithm, MOST_STEPS_PER_LOGARITHM),
        Bar(f"residual ≤ {limit:.1g}", bool(result.history[-1] <= limit)),
        Bar("stated", f"{true:.2g}" in result.message),
    ]
    return Row(cells, bars)


def _figure(title: str, measured: dict[str, list[Row]]) -> str:
    styles = {
        name: {"color": colour, "marker": marker}
        for name, colour, marker in zip(KERNELS, COLOURS, MARKERS, strict=True)
    }
    curves = {
        name: [(row.cells["κ of the sketched K"], row.cells["steps"]) for row in found]
        for name, found in measured.items()
    }
    panels = {f"until the residual is {TOL:g}": curves}
    return curve_figure(
        "algorithm_2",
        title,
        panels,
        styles=styles,
        x="condition number κ of the sketched system",
        y="steps",
        y_scale="linear",
    )


def printed_step(*, quick: bool) -> Table:
    rows = 100 if quick else 400
    X, alpha = clustered_rows(rows, COLUMNS, 0.001), 0.001
    Z = GaussianSketch(1.0, n_components=64 * rows, random_state=0).fit_transform(X)
    y = np.random.default_rng(1).standard_normal(rows)
    return Table(
        "Algorithm 2: the printed step against the one that converges",
        f"{rows} rows, Gaussian kernel, {64 * rows} features, alpha = {alpha:g}. S keeps so many "
        "coordinates of a feature vector; residuals are those of the sketched system after the "
        "number of steps. The printed step of 1 needs a largest eigenvalue of B below √2.",
        [_step_row(Z, alpha, y, kept) for kept in (4, 8, 32)],
    )


def _step_row(Z: np.ndarray, alpha: float, y: np.ndarray, kept_per_row: int) -> Row:
    rows, features = Z.shape
    S = SRHT.draw(RandomStreams(0, "benchmark"), features, kept_per_row * rows)
    R = TriangularFactor.of_rows(S.apply(Z).T, alpha)
    operator = FactorOperator(Z, alpha)
    B = R.rmatmat(operator @ R.matmat(np.eye(rows)))
    options = {"tol": TOL, "max_iterations": 1000, "random_state": 0}
    printed = preconditioned_gradient(operator, y, R, step="paper", **options)
    ours = preconditioned_gradient(operator, y, R, **options)
    cells = {
        "rows of S": f"{kept_per_row} × rows",
        "λ_max(B)": float(np.linalg.eigvalsh(B)[-1]),
        "steps, printed": printed.iterations,
        "residual, printed": printed.residual,
        "converged, printed": str(printed.converged),
        "steps, ours": ours.iterations,
        "residual, ours": ours.residual,
    }
    return Row(cells, [at_most(ours.residual, TOL)])


MEASUREMENTS = (steps_against_condition, printed_step)
