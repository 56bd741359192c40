"""Products with the features of all rows, block by block: all that iterations need to know of rows.

Features are stored in float32 where they fit, and computed anew for every product where not: both
give the same bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Rows, Vector, slices
from powersketch.exceptions import InputError
from powersketch.execution import blas_thread_count, ordered_map
from powersketch.kernel_ridge.features import Features
from powersketch.kernel_ridge.preconditioners import (
    Inverse,
    LandmarkInverses,
    SampleInverses,
    beside_diagonal,
)
from powersketch.kernel_ridge.training_rows import TrainingRows
from powersketch.random_streams import RandomStreams
from powersketch.routines import normal_product

# Rows of a block: enough for their sums to take no time worth saving.
_BLOCK_ROWS, _BLOCK_BYTES = 2048, 32 << 20
_SMALLEST_BLOCK = 64
_LEAST_WEIGHT = 1e-300
_JITTER_FOR_FLOAT32 = 1e-7


class RowProducts(Protocol):
    """What iterations ask of rows, wherever these are: sums over blocks of Zᵀ W Z v."""

    least_residual: float
    size: int
    sides: int

    def leave_out(self, *held: Any) -> None:
        """Weigh the rows once for each of so many sides, without some rows each."""

    def normal_product(self, V: Float64) -> Float64:
        """Return ΦᵀWΦ V for the features Φ about their means, and as many columns of each side."""

    def right_side(self) -> Float64:
        """Return ΦᵀW times the targets about their means, of shape (m, t) for every side."""

    def inverse(self, alpha: float) -> Inverse:
        """Return an approximate inverse of ΦᵀWΦ + alpha I."""

    def trace(self) -> float:
        """Return about the trace of ΦᵀWΦ."""

    def intercept(self, coef: Float64) -> Vector:
        """Return the constant term of every target, side by side."""


@dataclass(frozen=True, eq=False)
class SideMeans:
    """Means of features, of shape (m, sides), and of targets, (sides, t): zero without intercept.

    Vectors have as many columns for every side.
    """

    of_features: Float64
    of_targets: Float64

    def product(self, V: Float64) -> Vector:
        """Return the means of features times coefficients."""
        return np.asarray(np.einsum("ij,ij->j", self._spread(V.shape[1]), V))

    def intercept(self, coef: Float64) -> Vector:
        """Return the constant term of every target, side by side."""
        return self.of_targets.ravel() - self.product(coef)

    def about(self, sums: Float64, totals: Vector) -> Float64:
        """Return ΦᵀU for features about their means, from ZᵀU and the sums of U's columns."""
        return sums - self._spread(sums.shape[1]) * totals

    def _spread(self, columns: int) -> Float64:
        return np.repeat(self.of_features, columns // self.of_features.shape[1], axis=1)


class BlockProducts(ABC):
    """Features Z of rows on this machine, with weights W, as iterations want them.

    A block of rows has values B, of which its features are B times a matrix that is the same for
    all rows: `to_values` multiplies by it, `to_features` by its transpose.
    """

    # The least relative residual that the precision of products allows, and that precision.
    least_residual: float = 1e-4
    dtype: Any = np.float32

    def __init__(self, rows: TrainingRows, size: int, *, fit_intercept: bool) -> None:
        self.rows, self.size, self._fit_intercept = rows, size, fit_intercept
        self.targets = rows.targets.reshape(rows.count, -1)
        self.all_weights = np.ones(rows.count) if rows.weights is None else rows.weights
        self._threads = blas_thread_count()
        height = min(_BLOCK_ROWS, _BLOCK_BYTES // (4 * size))
        self._parts = list(slices(rows.count, max(height, _SMALLEST_BLOCK)))

    @abstractmethod
    def block(self, rows: Any) -> Any:
        """Return the values of some rows."""

    @abstractmethod
    def inverse(self, alpha: float) -> Inverse:
        """Return an approximate inverse of ΦᵀWΦ + alpha I."""

    @abstractmethod
    def trace(self) -> float:
        """Return about the trace of ΦᵀWΦ."""

    def to_values(self, V: Float64) -> Float64:
        """Return coefficients of values from those of features."""
        return V

    def to_features(self, V: Float64) -> Float64:
        """Return transposed features times numbers, from transposed values times them."""
        return V

    def leave_out(self, *held: Any) -> None:
        """Weigh the rows once for every set of them, which get weight zero: they are not there.

        These are the sides of the system. Nothing is computed again.
        """
        sides, targets = len(held), self.targets
        weights = np.repeat(self.all_weights[:, np.newaxis], sides, axis=1)
        for side, rows in enumerate(held):
            weights[rows, side] = 0.0
        totals = np.maximum(weights.sum(axis=0), _LEAST_WEIGHT)
        target_means = np.zeros((sides, targets.shape[1]))
        if self._fit_intercept:
            target_means = weights.T @ targets / totals[:, np.newaxis]
        centred = weights[:, :, np.newaxis] * (targets[:, np.newaxis] - target_means)
        centred = centred.reshape(len(targets), -1)
        sums = self._transposed_product(np.column_stack((weights / totals, centred)))
        self._check_range(sums)
        self.sides, self.weights = sides, weights
        self._means = SideMeans(sums[:, :sides] * float(self._fit_intercept), target_means)
        self._right = self._means.about(sums[:, sides:], centred.sum(axis=0))

    def right_side(self) -> Float64:
        """Return ΦᵀW times the targets about their means, of shape (m, t) for every side."""
        return self._right

    def intercept(self, coef: Float64) -> Vector:
        """Return the constant term of every target, side by side."""
        return self._means.intercept(coef)

    def product(self, V: Float64, rows: Any) -> Float64:
        """Return the features of some rows times coefficients."""
        values = self.to_values(V).astype(self.dtype)
        parts = [self.block(rows[part]) @ values for part in slices(len(rows), _BLOCK_ROWS)]
        return np.concatenate(parts).astype(np.float64)

    def normal_product(self, V: Float64) -> Float64:
        """Return ΦᵀWΦ V; every block is read once."""
        values, offsets = self.to_values(V).astype(self.dtype, "C"), self._means.product(V)
        total = self._sum(
            lambda part, block: self._block_product(block, values, offsets, self.weights[part])
        )
        return self._means.about(self.to_features(total[:-1]), total[-1])

    def _block_product(self, block: Any, V: Real, offsets: Vector, weights: Float64) -> Float64:
        return normal_product(block, V, offsets, weights)

    def _check_range(self, sums: Any) -> None:
        """Refuse sums that are infinite or NaN, which no penalty repairs."""
        if not np.isfinite(sums).all():
            raise InputError(
                "sums of products of features are infinite or NaN: features are so large that "
                f"their squares are beyond the range of {np.dtype(self.dtype)}, in which "
                "iterations have them. Scale the columns of X, use the Gaussian kernel, which is "
                "bounded, or solver='gram'."
            )

    def _transposed_product(self, right: Float64) -> Float64:
        """Return the transposed features times numbers for every row."""
        rounded = right.astype(self.dtype)

        def product(part: slice, block: Any) -> Real:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray(block.T @ rounded[part])

        return self.to_features(self._sum(product))

    def _sum(self, product: Callable[[slice, Any], Real]) -> Float64:
        """Add up products of blocks in float64, and in their order whichever thread is faster."""
        tasks = ordered_map(lambda task: product(*task()), self._tasks(), self._threads)
        total: Any = 0.0
        with closing(tasks):
            for summand in tasks:
                total = total + summand.astype(np.float64)
        return np.asarray(total)

    def _tasks(self) -> Iterator[Callable[[], tuple[slice, Any]]]:
        return (self._task(part) for part in self._parts)

    def _task(self, part: slice) -> Callable[[], tuple[slice, Any]]:
        """Return what gives some rows and their values in the thread that multiplies by them."""
        return lambda: (part, self.block(part))


class DenseFeatures(BlockProducts):
    """Features of any map, and columns beside them."""

    def __init__(
        self,
        features: Features,
        rows: TrainingRows,
        *,
        fit_intercept: bool,
        stored: bool,
        seed: int,
    ) -> None:
        self._features, self._seed = features, seed
        self._stored: Real | None = None
        size = features.size(rows.X)
        if stored:
            self._stored = np.empty((rows.count, size), np.float32)
            for part in slices(rows.count, max(_BLOCK_BYTES // size, _BLOCK_ROWS)):
                self._stored[part] = _in_float32(features.transform(rows.X[part]))
        super().__init__(rows, size, fit_intercept=fit_intercept)
        self._inverses: SampleInverses | None = None

    def block(self, rows: Any) -> Real:
        """Return the features of some rows."""
        if self._stored is not None:
            stored: Real = self._stored[rows]
            return stored
        return _in_float32(self._features.transform(self.rows.X[rows]))

    def _task(self, part: slice) -> Callable[[], tuple[slice, Any]]:
        # Maps of users, and warnings, belong to the thread that called.
        block = self.block(part)
        return lambda: (part, block)

    def inverse(self, alpha: float) -> Inverse:
        """Return the inverse for some rows that stand for all."""
        return self._sampled().inverse(alpha)

    def trace(self) -> float:
        """Return about the trace of the Gram matrix, from some rows."""
        return self._sampled().trace

    def _sampled(self) -> SampleInverses:
        if self._inverses is None:
            count = min(SampleInverses.rows_for(self.size), self.rows.count)
            streams = RandomStreams(self._seed, "kernel-ridge/preconditioner")
            chosen = np.sort(streams.sample("rows", self.rows.count, count))
            # They stand for all rows, whichever are held out.
            weights = self.all_weights[chosen]
            weights = weights * (float(self.all_weights.sum()) / float(weights.sum()))
            mean = self._means.of_features[:, 0].astype(np.float32)
            blocks = (
                (self.block(chosen[part]) - mean)
                * np.sqrt(weights[part, np.newaxis]).astype(np.float32)
                for part in slices(count, _BLOCK_ROWS)
            )
            inverses = SampleInverses(blocks, count, self.size)
            self._check_range(inverses.trace)
            self._inverses = inverses
        return self._inverses


def _in_float32(features: Real) -> Real:
    """Return features in float32; what is beyond its range is refused when it is summed."""
    with np.errstate(over="ignore"):
        return features.astype(np.float32, copy=False)


class LandmarkValues(BlockProducts):
    """Kernel values at landmarks, of which features are L⁻¹ times, and columns beside them."""

    def __init__(
        self,
        features: Features,
        rows: TrainingRows,
        *,
        fit_intercept: bool,
        stored: bool,
        verbose: int = 0,
    ) -> None:
        assert features.landmarks is not None
        self.factor = features.landmarks.factor_
        if features.landmarks.jitter_ < _JITTER_FOR_FLOAT32:
            # Of nearly dependent landmarks, rounding errors of values would be seen in features.
            self.dtype, self.least_residual = np.float64, 1e-12
        self._values = features.values_in(self.dtype)
        self._stored: Real | None = None
        size = features.size(rows.X)
        if stored:
            self._stored = self._computed(rows.X, size)
        self._inverses = LandmarkInverses(self.factor, verbose)
        super().__init__(rows, size, fit_intercept=fit_intercept)

    def _computed(self, X: Rows, size: int) -> Real:
        """Return the values of all rows, computed by several threads."""
        stored = np.empty((X.shape[0], size), self.dtype)

        def write(part: slice) -> None:
            stored[part] = self._values(X[part])

        parts = slices(X.shape[0], _BLOCK_ROWS)
        with closing(ordered_map(write, parts, blas_thread_count())) as written:
            for _ in written:
                pass
        return stored

    def block(self, rows: Any) -> Real:
        """Return the kernel values of some rows."""
        return self._values(self.rows.X[rows]) if self._stored is None else self._stored[rows]

    def to_values(self, V: Float64) -> Float64:
        """Return L⁻ᵀ V; columns are their own features."""
        return self._solved(V, trans=1)

    def to_features(self, V: Float64) -> Float64:
        """Return L⁻¹ V."""
        return self._solved(V, trans=0)

    def trace(self) -> float:
        """Return about the trace of the Gram matrix: that of all rows like the landmarks."""
        return float(self.all_weights.sum()) * self._inverses.mean_square

    def inverse(self, alpha: float) -> Inverse:
        """Return the inverse with landmarks as a sample of the rows, and the columns' diagonal."""
        of_map = self._inverses.inverse(alpha, float(self.all_weights.sum()))
        beside = self.size - len(self.factor)
        if not beside:
            return of_map
        squares = np.zeros(beside)
        for part in self._parts:
            columns = self.block(part)[:, -beside:].astype(np.float64)
            squares += self.all_weights[part] @ columns**2
        return beside_diagonal(of_map, len(self.factor), squares + alpha)

    def _solved(self, V: Float64, *, trans: int) -> Float64:
        size = len(self.factor)
        solved = linalg.solve_triangular(
            self.factor, V[:size], lower=True, trans=trans, check_finite=False
        )
        return np.concatenate((solved, V[size:])) if len(V) > size else np.asarray(solved)


class SparseColumns(BlockProducts):
    """Features of a map, if there is one, and sparse columns side by side."""

    def __init__(self, features: Features, rows: TrainingRows, *, fit_intercept: bool) -> None:
        plain = Features(features.feature_map)
        self._plain = plain if features.feature_map is not None else None
        self._of_map = 0 if self._plain is None else plain.size(rows.X)
        if self._plain is None:
            self.dtype, self.least_residual = np.float64, 1e-12
        self._Z = np.empty((rows.count, self._of_map), np.float32)
        if self._plain is not None:
            for part in slices(rows.count, _BLOCK_ROWS):
                self._Z[part] = plain.transform(rows.X[part])
        self._factor = math.sqrt(features.weight)
        super().__init__(rows, self._of_map + rows.X.shape[1], fit_intercept=fit_intercept)
        # Slicing sparse rows takes longer than a product with them.
        self._parts = [slice(0, rows.count)]

    def block(self, rows: Any) -> Any:
        """Return features and columns side by side."""
        return _SideBySide(self._Z[rows], self.rows.X[rows], self._factor)

    def _block_product(self, block: Any, V: Real, offsets: Vector, weights: Float64) -> Float64:
        spread = np.repeat(weights, V.shape[1] // self.sides, axis=1)
        weighted = spread * ((block @ V).astype(np.float64) - offsets)
        return np.vstack((block.T @ weighted.astype(self.dtype), weighted.sum(axis=0)))

    def _gram_of_map(self) -> Float64:
        weighted = self._Z * self.all_weights.astype(np.float32)[:, np.newaxis]
        return np.asarray(self._Z.T @ weighted, dtype=np.float64)

    def _squares(self) -> Vector:
        X = self.rows.X
        return np.asarray(self._factor**2 * (X.multiply(X).T @ self.all_weights))

    def trace(self) -> float:
        """Return the trace of the Gram matrix."""
        return float(self._squares().sum() + np.trace(self._gram_of_map()))

    def inverse(self, alpha: float) -> Inverse:
        """Return the inverse of the features' Gram matrix, and of the diagonal of the columns'."""
        factor = linalg.cho_factor(self._gram_of_map() + alpha * np.eye(self._of_map))
        solve: Inverse = lambda V: np.asarray(linalg.cho_solve(factor, V))  # noqa: E731
        of_map = solve if self._of_map else np.copy
        return beside_diagonal(of_map, self._of_map, self._squares() + alpha)


class _SideBySide(NamedTuple):
    """A dense and a scaled sparse matrix as one."""

    Z: Real
    X: Rows
    factor: float

    def __matmul__(self, V: Real) -> Real:
        size = self.Z.shape[1]
        return np.asarray(self.Z @ V[:size] + self.X @ (self.factor * V[size:]))

    @property
    def T(self) -> _Transposed:  # noqa: N802
        """The transpose."""
        return _Transposed(self)


class _Transposed(NamedTuple):
    matrix: _SideBySide

    def __matmul__(self, values: Real) -> Real:
        Z, X, factor = self.matrix
        return np.concatenate((Z.T @ values, factor * (X.T @ values)))
