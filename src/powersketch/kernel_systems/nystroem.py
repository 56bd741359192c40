"""Inverses of low rank from some columns of the kernel matrix, or from random mixtures of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Rows, slices
from powersketch.exceptions import warn_user
from powersketch.execution import interruptible, thread_count
from powersketch.kernel_systems.approximations import Approximation
from powersketch.kernels import Kernel
from powersketch.linalg import LowRankInverse
from powersketch.nystroem import LANDMARKS as ROW_LANDMARKS
from powersketch.nystroem import draw_landmarks, whitening
from powersketch.random_streams import RandomStreams

LANDMARKS = (*ROW_LANDMARKS, "range-finder")
"""What the columns can be: those of landmarks, drawn in several ways, or mixtures of all."""

# Beyond it, the preconditioner costs more than the steps that it saves.
_LARGEST_RANK = 2000
_SMALLEST_RANK = 100
_ROWS_PER_RANK = 12
_BLOCK_BYTES = 32 << 20


def default_rank(rows: int) -> int:
    """Return a twelfth of the rows, from 100 to 2000."""
    return min(max(rows // _ROWS_PER_RANK, _SMALLEST_RANK), _LARGEST_RANK, rows)


def nystroem(
    X: Rows,
    kernel: Kernel,
    alpha: float,
    rank: int | None,
    landmarks: str,
    streams: RandomStreams,
    n_jobs: int | None,
    matrix: NDArray[Any] | None = None,
) -> Approximation:
    """Return the inverse of a Nyström approximation of K, plus a nugget [FTU23].

    The approximation lies below K, so that what is missing is positive. The nugget counts it as the
    smallest eigenvalue that was found.
    """
    rank = default_rank(X.shape[0]) if rank is None else _possible_rank(rank, int(X.shape[0]))
    columns: Float64
    if landmarks == "range-finder":
        columns, core = _mixed_columns(X, kernel, rank, streams, n_jobs, matrix)
    else:
        chosen, _ = draw_landmarks(
            kernel,
            X,
            rank,
            streams.child("landmarks"),
            landmarks=landmarks,
            threads=thread_count(n_jobs),
        )
        columns = _columns(X, kernel, chosen, n_jobs, matrix)
        core = columns[chosen]
    factor = _whitened(columns, core)
    inverse = LowRankInverse.with_tail(factor, alpha)
    text = f"Nyström, {landmarks}: {inverse.describe()}"
    return Approximation(inverse, rank, inverse.nugget, text)


def _possible_rank(rank: int, rows: int) -> int:
    """Return the rank, or the number of rows and a warning if that is less."""
    if rank > rows:
        warn_user(
            f"n_components={rank} exceeds the {rows} rows that landmarks can be: there are {rows} "
            "components. Leave n_components at None, or give fewer."
        )
    return min(rank, rows)


def _columns(
    X: Rows,
    kernel: Kernel,
    chosen: NDArray[np.int64],
    n_jobs: int | None,
    matrix: NDArray[Any] | None,
) -> Float64:
    """Return some columns of K, in memory of their own."""
    if matrix is None:
        return np.asarray(kernel(X, X[chosen], dtype=np.float64, n_jobs=n_jobs))
    # K is symmetric, and rows are next to each other in memory.
    return np.ascontiguousarray(matrix[chosen].T, dtype=np.float64)


def _mixed_columns(
    X: Rows,
    kernel: Kernel,
    rank: int,
    streams: RandomStreams,
    n_jobs: int | None,
    matrix: NDArray[Any] | None,
) -> tuple[Float64, Float64]:
    """Return K Ω and Ωᵀ K Ω for a matrix Ω of random signs."""
    rows = X.shape[0]
    signs = streams.signs("mixtures", rows * rank).reshape(rows, rank)
    mixtures = signs / np.sqrt(float(rows))
    if matrix is None:
        columns = kernel.product(X, mixtures, n_jobs=n_jobs).astype(np.float64, copy=False)
    else:
        columns = interruptible(lambda: matrix @ mixtures)
    core = interruptible(lambda: mixtures.T @ columns)
    return columns, 0.5 * (core + core.T)


def _whitened(columns: Float64, core: Float64) -> Float64:
    """Return B with B Bᵀ = C W⁻¹ Cᵀ for the columns C, which it overwrites, and the core W."""
    solver, _ = whitening(core, core.shape[0] * float(np.finfo(np.float64).eps))
    for part in slices(columns.shape[0], max(_BLOCK_BYTES // (8 * columns.shape[1]), 1)):
        solver.solve(columns[part])
    return columns
