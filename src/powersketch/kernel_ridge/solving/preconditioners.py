"""Approximate inverses of Gram matrices, for iterations: from landmarks, or from some rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Vector, slices
from powersketch.exceptions import InputError
from powersketch.execution import Progress, blas_thread_count, ordered_map
from powersketch.kernel_ridge.solving.sums import GramSum, mirror_upper_triangle
from powersketch.linalg import LowRankInverse, cholesky_in_place

Inverse: TypeAlias = Callable[[Float64], Float64]
"""From (m, t) vectors to (m, t) vectors."""

# Of the trace: with a smaller alpha, a factor in float32 might be indefinite, and would make much
# of the rounding errors of products.
_SHARE_FOR_FLOAT32 = 3e-7
# A factor for an alpha serves others that are at most this many times larger or smaller.
_SERVES = 4.0
# With this many rows for each feature, the spectrum of rows is near that of all; more of them are
# taken as long as that takes no longer than a few steps.
_ROWS_PER_FEATURE, _MOST_PER_FEATURE, _STEPS_FOR_MORE = 4, 16, 2
MOST_FACTORED = 8192
"""More features are inverted by Woodbury's identity, with that many rows."""

# To factor with ten times as much on the diagonal.
_MOST_TRIES = 9
_TILE = 1024
# What a step takes for every number of the features, beside a product with a row of a sample: to
# read it, and to multiply it by a column.
_WORK_OF_READING, _WORK_OF_COLUMN = 100, 5
_FEWEST_STEPS = 16


def rows_of_sample(rows: int, features: int, columns: int) -> int:
    """Return how many rows are a good sample, for steps with so many columns."""
    if features > MOST_FACTORED:
        return min(MOST_FACTORED, rows)
    cheap = int(_STEPS_FOR_MORE / _steps_per_row(rows, features, columns))
    least, most = (share * features for share in (_ROWS_PER_FEATURE, _MOST_PER_FEATURE))
    return min(max(least, min(cheap, most)), rows)


def steps_with_landmarks(rows: int, features: int, columns: int, patience: float) -> float:
    """Return how many steps to take with landmarks as the sample, before a larger one is made.

    They take as long as that, times the patience: landmarks may do, or take ten times as many
    steps, which is not known before. It is 0 where the sample takes next to no time.
    """
    if features > MOST_FACTORED:
        return math.inf
    sample = rows_of_sample(rows, features, columns)
    steps = math.ceil(patience * sample * _steps_per_row(rows, features, columns))
    return steps if steps >= _FEWEST_STEPS else 0


def _steps_per_row(rows: int, features: int, columns: int) -> float:
    """Return how many steps take as long as a row of a sample.

    Features of a row at landmarks take as many products as their part of the Gram matrix.
    """
    return 2.0 * features / (rows * (_WORK_OF_READING + _WORK_OF_COLUMN * columns))


class Trial(NamedTuple):
    """An approximate inverse, and after how many steps a better one is worth its time."""

    inverse: Inverse
    made_of: str
    steps: float = math.inf

    def of_each(self, blocks: int) -> RepeatedInverse:
        """Return the inverse for vectors of so many blocks that lie one below the other."""
        return RepeatedInverse(self, blocks)


class RepeatedInverse(NamedTuple):
    """An approximate inverse for vectors of several blocks."""

    trial: Trial
    blocks: int

    def __call__(self, V: Float64) -> Float64:
        """Return the inverse times every block."""
        return stacked(self.trial.inverse(side_by_side(V, self.blocks)), V.shape[1])

    def describe(self) -> str:
        """Return in a few words what the inverse is made of."""
        return self.trial.made_of


def side_by_side(V: Float64, count: int) -> Float64:
    """Return `count` blocks of rows that lie one below the other side by side."""
    return np.hstack(np.split(V, count)) if count > 1 else V


def stacked(V: Float64, columns: int) -> Float64:
    """Return blocks of so many columns one below the other."""
    return np.vstack(np.split(V, V.shape[1] // columns, axis=1)) if V.shape[1] > columns else V


class _Factors:
    """Inverses of a matrix plus alpha, of which the last one is kept."""

    def __init__(self) -> None:
        self._last: tuple[float, Inverse] | None = None

    def kept(self, alpha: float, make: Callable[[], Inverse]) -> Inverse:
        """Return the last inverse if it serves this alpha as well, else a new one."""
        if self._last is not None and 1.0 / _SERVES <= alpha / self._last[0] <= _SERVES:
            return self._last[1]
        # The memory of the last one is needed for the next.
        self._last = None
        self._last = alpha, make()
        return self._last[1]


class LandmarkInverses:
    """Inverses of n / m LᵀL + alpha I for the factor L of landmarks [RCR17].

    Landmarks are a sample of the rows, and their features are the rows of L. That is enough where
    alpha leaves far fewer dimensions than there are landmarks; else a larger sample is better.
    """

    def __init__(self, factor: Real, dtype: Any, verbose: int = 0) -> None:
        self._factor, self._dtype, self._verbose = factor, dtype, verbose
        self._factors = _Factors()
        self.mean_square = float(np.einsum("ij,ij->", factor, factor)) / len(factor)

    def inverse(self, alpha: float, weight: float) -> Inverse:
        """Return the inverse for rows of this weight in sum."""
        scale = weight / len(self._factor)

        def make() -> Inverse:
            return _factored(
                lambda shift: self._shifted(shift, scale),
                alpha,
                weight * self.mean_square,
                self._dtype,
                self._progress,
            )

        return self._factors.kept(alpha, make)

    def _progress(self) -> Progress:
        return Progress("preconditioner", len(self._factor), self._verbose)

    def _shifted(self, alpha: float, scale: float) -> Real:
        """Return scale · LᵀL + alpha I, on and below the diagonal, tile by tile."""
        factor, size, dtype = self._factor, len(self._factor), self._dtype
        matrix = np.empty((size, size), dtype)
        parts = list(slices(size, _TILE))

        def write(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            # What is above the diagonal of L is zero.
            left, right = factor[rows.start :, rows], factor[rows.start :, columns]
            product = left.T.astype(dtype) @ right.astype(dtype)
            matrix[rows, columns] = dtype(scale) * product

        tiles = ((rows, columns) for i, rows in enumerate(parts) for columns in parts[: i + 1])
        for _ in ordered_map(write, tiles, blas_thread_count()):
            pass
        matrix[np.diag_indices_from(matrix)] += dtype(alpha)
        return matrix


class SampleInverses:
    """Inverses of ZᵀZ + alpha I for features Z of some rows that stand for all.

    Of not too many features the Gram matrix is factored; of more, that of the rows.
    """

    def __init__(self, blocks: Iterator[Real], rows: int, size: int, dtype: Any) -> None:
        self._factors = _Factors()
        self._dtype, self.rows = dtype, rows
        self._gram: Float64 | None = None
        if size <= MOST_FACTORED:
            with GramSum(size) as sums:
                for block in blocks:
                    sums.add(block)
                self._gram = sums.total()
            mirror_upper_triangle(self._gram)
            self.trace = float(np.trace(self._gram))
            return
        self._transposed = np.empty((size, rows), np.float32)
        start = 0
        for block in blocks:
            self._transposed[:, start : start + len(block)] = block.T
            start += len(block)
        self.trace = float(np.einsum("ij,ij->", self._transposed, self._transposed))

    def inverse(self, alpha: float) -> Inverse:
        """Return the inverse for an alpha."""
        return self._factors.kept(alpha, lambda: self._made(alpha))

    def _made(self, alpha: float) -> Inverse:
        if self._gram is None:
            # Beside a smaller number, rounding errors of float32 would be all there is.
            nugget = max(alpha, _SHARE_FOR_FLOAT32 * (self.trace or 1.0))
            inverse = LowRankInverse(self._transposed, nugget, dtype=np.float32)
            return lambda V: np.asarray(inverse.matmat(V))
        return _factored(self._shifted, alpha, self.trace, self._dtype)

    def _shifted(self, alpha: float) -> Real:
        assert self._gram is not None
        matrix: Real = self._gram.astype(self._dtype)
        matrix[np.diag_indices_from(matrix)] += self._dtype(alpha)
        return matrix


def _factored(
    shifted: Callable[[float], Real],
    alpha: float,
    trace: float,
    dtype: Any,
    progress: Callable[[], Progress | None] = lambda: None,
) -> Inverse:
    """Return an inverse of a matrix of this trace plus alpha, or plus more where that is too small.

    Rounding errors may have made the matrix indefinite. What is added beyond alpha costs iterations
    some steps, and their solution is that for alpha all the same.
    """
    least, rounding = _SHARE_FOR_FLOAT32 * (trace or 1.0), trace * float(np.finfo(np.float64).eps)
    shift = alpha if dtype == np.float64 else max(alpha, least)
    for _ in range(_MOST_TRIES):
        matrix = shifted(shift)
        # Smaller pivots are what rounding errors have left of zero.
        if cholesky_in_place(matrix, progress()) and matrix.diagonal().min() ** 2 > rounding:
            return _solver(matrix)
        shift = least if shift < least else 10.0 * shift
    raise InputError(
        f"the Gram matrix of {len(matrix)} features has no Cholesky factor even with {shift:.3g} "
        "added to its diagonal: use solver='gram', or scale the columns of X."
    )


def _solver(factor: Real) -> Inverse:
    """Return what solves with the lower triangular factor L of a matrix L Lᵀ."""

    def solve(V: Float64) -> Float64:
        # Without scaling, residuals of a converging solver get too small for float32.
        scales = np.abs(V).max(axis=0, initial=0.0)
        scales[scales == 0.0] = 1.0
        right = (V / scales).astype(factor.dtype)
        solved = linalg.cho_solve((factor.T, False), right, check_finite=False)
        return np.asarray(solved.astype(np.float64) * scales)

    return solve


def beside_diagonal(of_map: Inverse, size: int, diagonal: Vector) -> Inverse:
    """Return an inverse for the first numbers, and that of a diagonal for those after them."""
    column = diagonal[:, np.newaxis]
    return lambda V: np.concatenate((of_map(V[:size]), V[size:] / column))
