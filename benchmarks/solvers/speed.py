"""Time of solve_kernel_system against Cholesky, plain CG and GPyTorch."""

from functools import partial

import numpy as np
from scipy.linalg.blas import sgemm

from benchmarks.data import fashion_mnist, low_rank_rows
from benchmarks.peers.solvers import cholesky, peer_solvers
from benchmarks.report import Bar, Row, Table, at_least
from benchmarks.solvers.problems import KernelSystem, solved
from benchmarks.timing import shortest, timed
from powersketch.kernels import Gaussian, Polynomial

LONG_ROWS_ALPHA = 0.1
LONG_ROWS_DEGREE = 4
GAMMA, RELATIVE_ALPHA, TOL = 0.01, 1e-6, 1e-6
OURS = "powersketch"


def sketched_system_of_long_rows(*, quick: bool) -> Table:
    rows, columns = (1000, 20_000) if quick else (4000, 100_000)
    rounds = 1 if quick else 3
    X = low_rank_rows(rows, columns)
    y = np.random.default_rng(1).standard_normal(rows).astype(np.float32)
    options = {"alpha": LONG_ROWS_ALPHA, "operator": "sketched"}
    sketched = partial(solved, X, y, Polynomial(LONG_ROWS_DEGREE), **options)
    result, seconds = shortest(sketched, rounds=rounds)
    grams = {"X Xᵀ by symmetric products": _symmetric_gram, "X Xᵀ by sgemm": _general_gram}
    table = Table(
        "Sketched system of long rows against Gram matrix and Cholesky",
        f"{rows} rows, {columns} columns, float32, kernel ⟨x, y⟩^{LONG_ROWS_DEGREE}, alpha = "
        f"{LONG_ROWS_ALPHA:g}, all processors. Ours is operator='sketched', which never forms K; "
        "the residual is that of the exact system, estimated by the solver and recomputed.",
    )
    for name, gram in grams.items():
        (matrix, _), peer_seconds = shortest(partial(_direct_solution, gram, X, y), rounds=rounds)
        table.rows.append(_long_rows_row(name, seconds, peer_seconds, result, matrix, y))
    return table


def _symmetric_gram(X: np.ndarray) -> np.ndarray:
    return X @ X.T


def _general_gram(X: np.ndarray) -> np.ndarray:
    return sgemm(1.0, X.T, X.T, trans_a=True)


def _direct_solution(gram, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return K + alpha I and the solution, all in float32."""
    matrix = gram(X) ** LONG_ROWS_DEGREE
    matrix[np.diag_indices(len(X))] += np.float32(LONG_ROWS_ALPHA)
    return matrix, cholesky(matrix, LONG_ROWS_ALPHA, y, TOL)


def _long_rows_row(
    name: str, seconds: float, peer_seconds: float, result, matrix: np.ndarray, y: np.ndarray
) -> Row:
    true = np.linalg.norm(matrix.astype(np.float64) @ result.x - y) / np.linalg.norm(y)
    ratio = result.residual / float(true)
    cells = {
        "against": name,
        "its s": peer_seconds,
        "ours s": seconds,
        "speed-up": peer_seconds / seconds,
        "true residual": float(true),
        "estimated residual": result.residual,
        "estimate / true": ratio,
    }
    within = Bar("estimate within 20 %", 0.8 <= ratio <= 1.2)
    return Row(cells, [at_least(peer_seconds / seconds, 4), within])


def fashion_mnist_system(*, quick: bool) -> Table:
    rows = 1500 if quick else 12_000
    X = fashion_mnist("train")[0][:rows]
    alpha = RELATIVE_ALPHA * rows
    # The system hands out memory more quickly the second time, to everyone.
    rounds = 1 if quick else 3
    system, forming = shortest(lambda: KernelSystem.of(Gaussian(GAMMA), X, alpha), rounds=rounds)
    ours, seconds = shortest(partial(system.solved, operator="exact", tol=TOL), rounds=rounds)
    table = Table(
        "Gaussian kernel system of Fashion-MNIST",
        f"{rows} rows, gamma = {GAMMA:g}, alpha = {RELATIVE_ALPHA:g} × rows, a random right-hand "
        f"side, tolerance {TOL:g}, all processors, best of {rounds}. Everyone's time "
        f"includes the kernel matrix, which took {forming:.2g} s for the peers. Residuals are "
        "recomputed.",
        [_system_row(OURS, seconds, seconds, system.residual(ours.x))],
    )
    for name, solve in peer_solvers().items():
        x, solving = timed(partial(solve, system.matrix, alpha, system.y, TOL))
        table.rows.append(_system_row(name, forming + solving, seconds, system.residual(x)))
    return table


def _system_row(name: str, seconds: float, ours: float, residual: float) -> Row:
    limits = {"plain CG (SciPy)": 5.0, "Cholesky (SciPy)": 1.0}
    cells = {
        "solver": name,
        "seconds": seconds,
        "time / ours": seconds / ours,
        "true residual": residual,
    }
    return Row(cells, [at_least(seconds / ours, limits[name])] if name in limits else [])


MEASUREMENTS = (sketched_system_of_long_rows, fashion_mnist_system)
