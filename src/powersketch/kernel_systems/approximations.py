"""Approximate inverses of K + alpha I: from sketched rows, their features, or columns of K.

A :class:`KernelOperator` says which system is meant; its matrix is not computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, divide_or_zero, is_sparse, slices
from powersketch.exceptions import warn_user
from powersketch.execution import (
    check_fits_memory,
    interruptible,
    ordered_map,
    thread_count,
    thread_count_of_blocks,
)
from powersketch.feature_maps import FeatureMap, capped, central_row, map_for
from powersketch.kernels import Gaussian, Kernel
from powersketch.linalg import (
    CholeskyFactor,
    KernelOperator,
    LowRankInverse,
    SquaredFactor,
    TriangularFactor,
    TriangularRows,
    jittered_cholesky,
)
from powersketch.nystroem import LANDMARKS as ROW_LANDMARKS
from powersketch.nystroem import draw_landmarks
from powersketch.random_streams import RandomStreams
from powersketch.sketches import OSNAP, SRHT

# Three coordinates for every row keep the condition number of the preconditioned matrix near
# ten, even where the kernel is hardly more than an inner product; for other kernels it is less.
_COORDINATES_PER_ROW = 3
_BATCH_BYTES = 32 << 20

_FEATURES_PER_ROW = 4
# Of the m features, S keeps this part, and at least 2 n: with 4 n features, the condition number
# of B of Algorithm 2 is 4 then; with half of the features it is 14.
_KEPT = 0.75
_LEAST_KEPT_PER_ROW = 2

_ROWS_OF_SAMPLE = 256
# Of the mean squared norm. A smaller part of it costs less accuracy than subtracting it costs time.
_NOTICEABLE = 0.1
LANDMARKS = (*ROW_LANDMARKS, "range-finder")
"""What the columns can be: those of landmarks, drawn in several ways, or mixtures of all."""

# Beyond it, the preconditioner costs more than the steps that it saves; but those of very many
# rows cost so much that more columns pay.
_LARGEST_RANK = 2000
_MANY_ROWS, _ROWS_PER_RANK_OF_MANY, _LARGEST_RANK_OF_MANY = 30_000, 10, 8192
_SMALLEST_RANK = 100
_ROWS_PER_RANK = 12
# The landmarks' kernel matrix, its factor, and the squares of the columns with their factor.
_BYTES_OF_SQUARES = 3 * 8
# Columns are there three times in float64; of many rows once, in float32.
_BYTES_PER_ENTRY, _BYTES_PER_ENTRY_OF_MANY = 3 * 8, 4
_BLOCK_BYTES = 32 << 20
_ROWS_OF_BLOCK = 512


@dataclass(frozen=True, eq=False)
class Approximation:
    """An approximate inverse, and what it is made of.

    Parameters
    ----------
    inverse : CholeskyFactor, SquaredFactor or LowRankInverse
        Applies it.
    n_components : int
        Coordinates, features or landmarks that the approximation has.
    nugget : float
        What it has on the diagonal beside the sketch: alpha and what was added to that.
    text : str
        What was approximated, in a few words.
    """

    inverse: CholeskyFactor | SquaredFactor | LowRankInverse
    n_components: int
    nugget: float
    text: str


def sketched_data(
    system: KernelOperator, size: int | None, streams: RandomStreams
) -> Approximation:
    """Return the inverse of the exact kernel matrix of compressed rows, plus alpha I.

    The kernels are functions of inner products and norms. A sketch keeps the inner products of n
    rows if it has a few times n coordinates ([SWYZ21], Lemma 4.5), and the norms are known. It is
    the best approximation for rows whose length is much larger than their number.

    A size of None takes three coordinates per row, or the rows as they are if that is not less.
    The factor is float32 where X is, and where that is precise enough.
    """
    X, kernel, n_jobs = system.X, system.kernel, system.n_jobs
    size = default_coordinates(X, _COORDINATES_PER_ROW) if size is None else size
    compressed, text = X, "the data"
    if size < X.shape[1]:
        shift = useful_shift(kernel, X)
        compressed = compressed_rows(X, size, streams, shift=shift, threads=thread_count(n_jobs))
        text = f"{size} sketched coordinates"
    factor = _float32_factor(kernel, compressed, system.alpha, n_jobs)
    if factor is None:
        matrix = kernel(compressed, dtype=np.float64, n_jobs=n_jobs)
        factor = CholeskyFactor(matrix, alpha=system.alpha)
    return Approximation(
        factor, min(size, X.shape[1]), factor.nugget, f"exact kernel of {text}: {factor.describe()}"
    )


def _float32_factor(
    kernel: Kernel, rows: Rows, alpha: float, n_jobs: int | None
) -> CholeskyFactor | None:
    """Return a factor in float32 if the rows are, and if it is precise enough.

    Then inner products in float32 are precise enough as well: the sketch has changed them by far
    more.
    """
    if is_sparse(rows) or rows.dtype != np.float32:
        return None

    def inner_products() -> NDArray[np.float32]:
        with np.errstate(over="ignore", invalid="ignore"):
            products: NDArray[np.float32] = rows @ rows.T
        return products

    products = interruptible(inner_products)
    if not np.isfinite(products).all():
        return None
    # With the products' own diagonal, that of the kernel matrix is exact for these rows.
    squares = products.diagonal()
    matrix = kernel.from_inner_products(products, squares, squares, n_jobs=n_jobs)
    try:
        factor = CholeskyFactor(matrix, alpha=alpha, dtype=np.float32)
    except np.linalg.LinAlgError:
        return None
    return factor if factor.precision == "float32" else None


def default_coordinates(X: Rows, per_row: int) -> int:
    """Return `per_row` times the number of rows, or all where the rows have fewer entries."""
    size = per_row * int(X.shape[0])
    return size if size < row_length(X) else int(X.shape[1])


def row_length(X: Rows) -> float:
    """Return the mean number of entries that a row has, stored ones if it is sparse."""
    return float(X.nnz / X.shape[0]) if is_sparse(X) else float(X.shape[1])


def compressed_rows(
    X: Rows, size: int, streams: RandomStreams, *, shift: Real | None = None, threads: int = 1
) -> Real:
    """Return sketches of the rows minus the shift, scaled to the norms of what was sketched.

    Without the exact norms, the diagonal of the kernel matrix would be that of another kernel than
    the rest, and the matrix could lose its definiteness.
    """
    kind = OSNAP if is_sparse(X) else SRHT
    sketch = kind.draw(streams.child("coordinates"), X.shape[1], size)
    compressed = np.empty((X.shape[0], size), X.dtype)
    step = max(_BATCH_BYTES // (X.shape[1] * X.dtype.itemsize), threads)
    for part in slices(X.shape[0], step):
        # Rows of any layout; only the batch is copied.
        batch = X[part] if is_sparse(X) else np.ascontiguousarray(shifted(X[part], shift))
        sketched = sketch.apply(batch, threads=threads)
        norms = np.sqrt(routines.squared_norms(batch, threads=threads))
        sketched_norms = np.sqrt(np.einsum("ij,ij->i", sketched, sketched, dtype=np.float64))
        # A row that vanished in the sketch stays zero.
        factors = divide_or_zero(norms, sketched_norms).astype(X.dtype)
        np.multiply(sketched, factors[:, np.newaxis], out=compressed[part])
    return compressed


def useful_shift(kernel: Kernel, X: Rows) -> Real | None:
    """Return what to subtract from all rows before their inner products are rounded, or None.

    The Gaussian kernel depends on differences only, but sketches of rows and products in float32
    have errors that grow with the norms. Any shift is allowed, so the mean of a sample will do, in
    which outliers count less.
    """
    if is_sparse(X) or not isinstance(kernel, Gaussian):
        return None
    sample = X[:: max(X.shape[0] // _ROWS_OF_SAMPLE, 1)][:_ROWS_OF_SAMPLE]
    mean = central_row(sample)
    with np.errstate(over="ignore"):
        squared_norms = np.einsum("ij,ij->i", sample, sample, dtype=np.float64)
        useful = mean @ mean > _NOTICEABLE * float(
            np.mean(capped(squared_norms, np.sqrt(squared_norms)))
        )
    return mean.astype(X.dtype) if useful else None


def shifted(rows: Real, shift: Real | None) -> Real:
    """Return the rows minus the shift."""
    return rows if shift is None else rows - shift


def feature_approximation(
    system: KernelOperator,
    size: int | None,
    streams: RandomStreams,
    verbose: int,
    given: FeatureMap | None = None,
) -> tuple[Real, Approximation]:
    """Return features Z and the inverse of Z Zᵀ + alpha I.

    With fewer features than rows, a nugget stands for alpha and for what the features leave of the
    diagonal of the kernel matrix, or for their smallest eigenvalue if that is more.
    """
    X, alpha = system.X, system.alpha
    Z = _fitted_map(system, size, streams, verbose, given).transform(X)
    text = f"{Z.shape[1]} features"
    if Z.shape[1] >= Z.shape[0]:
        factor = _triangular_factor(Z, alpha, streams, system.n_jobs)
        return Z, Approximation(SquaredFactor(factor), Z.shape[1], alpha, text)
    diagonal = system.kernel.diagonal(X).astype(np.float64)
    squares = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    tail = max(float(np.mean(diagonal - squares)), 0.0)
    inverse = LowRankInverse.with_tail(Z, alpha, tail=tail)
    text = f"{text}: {inverse.describe()}"
    return Z, Approximation(inverse, Z.shape[1], inverse.nugget, text)


def _fitted_map(
    system: KernelOperator,
    size: int | None,
    streams: RandomStreams,
    verbose: int,
    given: FeatureMap | None,
) -> FeatureMap:
    """Return a map that is fitted to X: a copy of the given one, or that of the kernel.

    A size of None is the given map's own, or four features per row. The seed is the given map's
    own as well, if it has one.
    """
    seed = int(streams.integers("map", 1, 2**32)[0])
    if given is not None:
        sketch: FeatureMap = clone(given)
        if sketch.random_state is None:
            sketch.set_params(random_state=seed)
        if size is not None:
            sketch.set_params(n_components=size)
    else:
        size = _FEATURES_PER_ROW * system.shape[0] if size is None else size
        sketch = map_for(
            system.kernel, size, random_state=seed, n_jobs=system.n_jobs, verbose=verbose
        )
    return sketch.fit(system.X)


def _triangular_factor(
    Z: Real, alpha: float, streams: RandomStreams, n_jobs: int | None
) -> TriangularFactor:
    """Return R of [SWYZ21], Algorithm 2, lines 5 and 6, with the rows of √alpha I below S W."""
    rows, features = Z.shape
    kept = min(max(int(_KEPT * features), _LEAST_KEPT_PER_ROW * rows), features)
    sketched = Z
    if kept < features:
        S = SRHT.draw(streams.child("features"), features, kept)
        sketched = S.apply(np.ascontiguousarray(Z), threads=thread_count(n_jobs))
    return TriangularFactor.of_rows(sketched.T, alpha)


def default_rank(rows: int, memory: float = math.inf, *, in_float64: bool = False) -> int:
    """Return a twelfth of the rows, from 100 to 2000; of very many a tenth, up to 8192.

    In little memory it is what fits, in float64 also where there are many rows; but at least 100.
    """
    if rows >= _MANY_ROWS:
        usual = min(rows // _ROWS_PER_RANK_OF_MANY, _LARGEST_RANK_OF_MANY)
    else:
        usual = min(max(rows // _ROWS_PER_RANK, _SMALLEST_RANK), _LARGEST_RANK, rows)
    if math.isinf(memory):
        return usual
    # The solution of ENTRY rows r + SQUARE r² = memory.
    half = 0.5 * rows * (_BYTES_PER_ENTRY if in_float64 else _bytes_per_entry(rows))
    fits = int((math.sqrt(half**2 + _BYTES_OF_SQUARES * memory) - half) / _BYTES_OF_SQUARES)
    return min(max(fits, _SMALLEST_RANK), usual)


def bytes_of_nystroem(rows: int, rank: int) -> int:
    """Return the most that a Nyström approximation of so many rows takes while it is made."""
    return _bytes_per_entry(rows) * rows * rank + _BYTES_OF_SQUARES * rank**2


def _bytes_per_entry(rows: int) -> int:
    return _BYTES_PER_ENTRY_OF_MANY if rows >= _MANY_ROWS else _BYTES_PER_ENTRY


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
        if X.shape[0] >= _MANY_ROWS:
            rounded = _whitened_in_float32(X, kernel, chosen, thread_count_of_blocks(n_jobs))
            inverse = LowRankInverse.with_tail(rounded, alpha, dtype=np.float32)
            return Approximation(inverse, rank, inverse.nugget, _described(landmarks, inverse))
        columns = _columns(X, kernel, chosen, n_jobs, matrix)
        core = columns[chosen]
    factor = _whitened(columns, core)
    inverse = LowRankInverse.with_tail(factor, alpha)
    return Approximation(inverse, rank, inverse.nugget, _described(landmarks, inverse))


def _described(landmarks: str, inverse: LowRankInverse) -> str:
    return f"Nyström, {landmarks}: {inverse.describe()}"


def _whitened_in_float32(
    X: Rows, kernel: Kernel, chosen: NDArray[np.int64], threads: int
) -> NDArray[np.float32]:
    """Return B with B Bᵀ about C W⁻¹ Cᵀ, computed in float64 block by block and rounded."""
    check_fits_memory(
        f"the preconditioner of {X.shape[0]} rows with {len(chosen)} components",
        bytes_of_nystroem(X.shape[0], len(chosen)),
        "give fewer rows, or solve on features of them",
    )
    points = X[chosen]
    square = kernel(points, dtype=np.float64, n_jobs=threads)
    lower, _ = jittered_cholesky(square, len(chosen) * float(np.finfo(np.float64).eps))
    solver, values = TriangularRows.of(lower), kernel.columns(points)
    whitened = np.empty((X.shape[0], len(chosen)), np.float32)

    def write(part: slice) -> None:
        block = values(X[part], np.dtype(np.float64))
        solver.solve(block)
        whitened[part] = block

    for _ in ordered_map(write, slices(X.shape[0], _ROWS_OF_BLOCK), threads):
        pass
    return whitened


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
    lower, _ = jittered_cholesky(core, core.shape[0] * float(np.finfo(np.float64).eps))
    solver = TriangularRows.of(lower)
    for part in slices(columns.shape[0], max(_BLOCK_BYTES // (8 * columns.shape[1]), 1)):
        solver.solve(columns[part])
    return columns
