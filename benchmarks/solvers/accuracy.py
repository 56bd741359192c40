"""Iterations and true residuals of solve_kernel_system on ill-conditioned systems."""

import sys

from benchmarks.report import Row, Table, at_most
from benchmarks.solvers.problems import KERNELS, KernelSystem, clustered_rows
from benchmarks.timing import timed

# Distances within a cluster that give condition numbers of about 1e4, 1e6 and 1e8.
DISTANCES = {
    "Gaussian": (0.14, 0.014, 0.0014),
    "polynomial, degree 4": (0.032, 0.0032, 3.2e-4),
    "polynomial, degree 16": (0.012, 0.0012, 1.2e-4),
    "polynomial, degree 64": (0.006, 6e-4, 6e-5),
    "neural tangent": (0.16, 0.0016, 1.6e-5),
}
SMALL_ALPHA = 1e-5
MOST_ITERATIONS = 40


def exact_systems(*, quick: bool) -> Table:
    rows, columns = (300, 1200) if quick else (2000, 10_000)
    cases = [(name, distance, 0.0) for name in KERNELS for distance in DISTANCES[name]]
    cases += [(name, 0.0, SMALL_ALPHA) for name in KERNELS]
    return Table(
        "Kernel systems: iterations and true residual",
        f"{rows} rows in clusters, {columns} columns, float64, a random right-hand side, the "
        "exact operator and the default preconditioner; beside it, iterations with that of "
        "sketched rows. Distance is that of rows in a cluster; at "
        "0 every row is repeated. The residual is recomputed with NumPy and may be 1e-8, or 100 × "
        "condition × machine epsilon where that is more.",
        [_system_row(*case, rows, columns) for case in cases],
    )


def _system_row(name: str, distance: float, alpha: float, rows: int, columns: int) -> Row:
    system = KernelSystem.of(KERNELS[name], clustered_rows(rows, columns, distance), alpha)
    condition = system.condition()
    limit = max(1e-8, 100 * condition * sys.float_info.epsilon)
    result, seconds = timed(lambda: system.solved(operator="exact", tol=limit))
    residual = system.residual(result.x)
    sketched = system.solved(operator="exact", preconditioner="sketched-data", tol=limit)
    cells = {
        "kernel": name,
        "distance": f"{distance:g}",
        "alpha": f"{alpha:g}",
        "condition": condition,
        "iterations": result.iterations,
        "true residual": residual,
        "reported": result.residual,
        "seconds": seconds,
        "iterations, sketched data": sketched.iterations,
    }
    bars = [at_most(result.iterations, MOST_ITERATIONS), at_most(residual, limit)]
    return Row(cells, bars)


MEASUREMENTS = (exact_systems,)
