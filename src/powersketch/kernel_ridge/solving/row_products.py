"""Products with the features of all rows, block by block: all that iterations need to know of rows.

Features of as many rows as fit the memory are stored, and those of the others computed anew for
every product: blocks of rows have the same bits either way.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Vector, slices
from powersketch.exceptions import InputError, RangeWarning, held_back, warn_of_blocks
from powersketch.execution import blas_thread_count, blas_threads, ordered_map
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.exact import alpha_for_few
from powersketch.kernel_ridge.solving.features import Features, needs_float64
from powersketch.kernel_ridge.solving.preconditioners import (
    Inverse,
    LandmarkInverses,
    SampleInverses,
    Trial,
    beside_diagonal,
    rows_of_sample,
    steps_with_landmarks,
)
from powersketch.linalg import TriangularRows
from powersketch.random_streams import RandomStreams
from powersketch.routines import normal_product

BLOCK_ROWS = 2048
"""Rows of a block: enough for their sums to take no time worth saving."""

# Of a block: what is larger would be new pages of memory for every one.
_BLOCK_BYTES = 24 << 20
# Sums of fewer rows take as long as their products.
_FEWEST_ROWS = 256
# Else the last block keeps one thread busy while the others wait.
_FEWEST_BLOCKS = 8
_SMALLEST_BLOCK = 64
_LEAST_WEIGHT = 1e-300
_ROWS_FOR_ALPHA, _NUMBERS_FOR_ALPHA = 512, 1 << 25


def bytes_of_block(features: int) -> int:
    """Return the most that a block of rows takes in float32."""
    return max(_BLOCK_BYTES, 4 * _FEWEST_ROWS * features)


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

    def inverses(self, alpha: float, patience: float) -> Iterator[Trial]:
        """Return approximate inverses of ΦᵀWΦ + alpha I, each better than the one before.

        Before the next, steps are taken for as long as that takes to make, times the patience.
        """

    def trace(self) -> float:
        """Return about the trace of ΦᵀWΦ."""

    def likely_alpha(self) -> float:
        """Return an alpha that is best for a few rows, in proportion to all."""

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
    all rows: `to_values` multiplies by it, `to_features` by its transpose. The values of the first
    `stored` rows, in whole blocks, are computed once for all.
    """

    # The least relative residual that the precision of products allows, and that precision.
    least_residual: float = 1e-4
    dtype: Any = np.float32

    def __init__(
        self,
        rows: TrainingRows,
        size: int,
        *,
        fit_intercept: bool,
        stored: int = 0,
        seed: int = 0,
        precise: bool = False,
    ) -> None:
        self.rows, self.size, self._fit_intercept = rows, size, fit_intercept
        # Of inverses: where products are in float64, smaller alphas can be told apart.
        self._inverse_dtype: Any = np.float64 if precise else self.dtype
        self.targets = rows.targets.reshape(rows.count, -1)
        self.all_weights = np.ones(rows.count) if rows.weights is None else rows.weights
        self._threads = blas_thread_count()
        height = min(BLOCK_ROWS, bytes_of_block(size) // (4 * size), rows.count // _FEWEST_BLOCKS)
        self._height = max(height, _SMALLEST_BLOCK)
        self._parts = list(slices(rows.count, self._height))
        self._seed = seed
        self._stored: Real = np.empty((0, size), self.dtype)
        self._stored = self._computed_once([part for part in self._parts if part.stop <= stored])

    @abstractmethod
    def _computed(self, rows: Any) -> Any:
        """Compute the values of some rows."""

    @abstractmethod
    def inverses(self, alpha: float, patience: float) -> Iterator[Trial]:
        """Return approximate inverses of ΦᵀWΦ + alpha I, each better than the one before.

        Before the next, steps are taken for as long as that takes to make, times the patience.
        """

    @abstractmethod
    def trace(self) -> float:
        """Return about the trace of ΦᵀWΦ."""

    @property
    def _columns(self) -> int:
        """Columns of a product for one alpha."""
        return int(self.sides * self.targets.shape[1])

    @property
    def _dense_size(self) -> int:
        """How many numbers of a row are stored one by one, zeros too."""
        return self.size

    def likely_alpha(self) -> float:
        """Return an alpha that is best for a few rows, in proportion to all."""
        most = max(_NUMBERS_FOR_ALPHA // max(self._dense_size, 1), 2)
        count = min(most, _ROWS_FOR_ALPHA, self.rows.count)
        streams = RandomStreams(self._seed, "kernel-ridge/likely-alpha")
        chosen = np.sort(streams.sample("rows", self.rows.count, count))
        few = TrainingRows(self.rows.X[chosen], self.targets[chosen], self.all_weights[chosen])
        with blas_threads(1):
            alpha = alpha_for_few(self._kernel(chosen), few, fit_intercept=self._fit_intercept)
        # The best alpha grows with more rows, but more slowly than their number. Its last digits
        # are rounding errors, which differ between machines.
        return float(f"{alpha * math.sqrt(self.rows.count / count):.2g}")

    def _kernel(self, rows: Any) -> Float64:
        """Return the inner products of the features of some rows, given in ascending order."""
        Z = self._features(rows).astype(np.float64)
        return Z @ Z.T

    def block(self, rows: Any) -> Any:
        """Return the values of some rows: a block of them, or their numbers in ascending order."""
        known = len(self._stored)
        if isinstance(rows, slice):
            return self._stored[rows] if rows.stop <= known else self._computed(rows)
        stored, others = np.split(rows, [np.searchsorted(rows, known)])
        if not len(stored):
            return self._computed(rows)
        values = self._stored[stored]
        return np.concatenate((values, self._computed(others))) if len(others) else values

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
        tasks = (self._task(rows[part]) for part in slices(len(rows), self._height))
        parts = ordered_map(lambda task: task()[1] @ values, tasks, self._threads)
        return np.concatenate(list(parts)).astype(np.float64)

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
        with closing(tasks):
            total = next(tasks).astype(np.float64, copy=False)
            for summand in tasks:
                total += summand
        return np.asarray(total)

    def _computed_once(self, parts: Sequence[slice]) -> Real:
        """Return the values of the rows from the first on."""
        values = np.empty((parts[-1].stop if parts else 0, self.size), self.dtype)

        def write(task: Callable[[], tuple[slice, Any]]) -> None:
            part, block = task()
            values[part] = block

        with closing(ordered_map(write, map(self._task, parts), self._threads)) as written:
            deque(written, maxlen=0)
        return values

    def _features(self, rows: Any) -> Real:
        """Return the features of some rows, by their numbers in ascending order."""
        return np.asarray(self.block(rows))

    def _trial_of_sample(self, alpha: float) -> Trial:
        return Trial(self._sampled.inverse(alpha), f"a sample of {self._sampled.rows} rows")

    @cached_property
    def _sampled(self) -> SampleInverses:
        """Inverses for some rows that stand for all, whichever are held out."""
        count = rows_of_sample(self.rows.count, self.size, self._columns)
        streams = RandomStreams(self._seed, "kernel-ridge/preconditioner")
        chosen = np.sort(streams.sample("rows", self.rows.count, count))
        weights = self.all_weights[chosen]
        weights = weights * (float(self.all_weights.sum()) / float(weights.sum()))
        roots = np.sqrt(weights[:, np.newaxis]).astype(self.dtype)
        mean = self._means.of_features[:, 0].astype(self.dtype)
        parts = slices(count, self._height)
        blocks = ((self._features(chosen[part]) - mean) * roots[part] for part in parts)
        inverses = SampleInverses(blocks, count, self.size, self._inverse_dtype)
        self._check_range(inverses.trace)
        return inverses

    def _tasks(self) -> Iterator[Callable[[], tuple[slice, Any]]]:
        return (self._task(part) for part in self._parts)

    def _task(self, part: Any) -> Callable[[], tuple[Any, Any]]:
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
        **options: Any,
    ) -> None:
        self._transform = features.transform
        # What maps have to say of rows is heard when these are first computed, and not again.
        self._heard: list[str] | None = []
        super().__init__(rows, features.size(rows.X), fit_intercept=fit_intercept, **options)

    def _computed(self, rows: Any) -> Real:
        with held_back(RangeWarning, wanted=self._heard is not None) as messages:
            features = _in_float32(self._transform(self.rows.X[rows]))
        if self._heard is not None:
            self._heard += messages
        return features

    def leave_out(self, *held: Any) -> None:
        """Weigh the rows once for every set of them; the first time, pass on what maps said."""
        super().leave_out(*held)
        warn_of_blocks(self._heard or [], RangeWarning)
        self._heard = None

    def _task(self, part: Any) -> Callable[[], tuple[Any, Any]]:
        # Maps of users, and warnings, belong to the thread that called; BLAS has one thread then,
        # so that what is stored has the bits of what is computed again.
        block = self.block(part)
        return lambda: (part, block)

    def inverses(self, alpha: float, patience: float) -> Iterator[Trial]:
        """Return the inverse for some rows that stand for all."""
        yield self._trial_of_sample(alpha)

    def trace(self) -> float:
        """Return about the trace of the Gram matrix, from some rows."""
        return self._sampled.trace


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
        verbose: int = 0,
        **options: Any,
    ) -> None:
        assert features.landmarks is not None
        self.factor = features.landmarks.factor_
        if needs_float64(features.landmarks.jitter_):
            self.dtype, self.least_residual = np.float64, 1e-12
        self._values = features.values_in(self.dtype)
        super().__init__(rows, features.size(rows.X), fit_intercept=fit_intercept, **options)
        self._inverses = LandmarkInverses(self.factor, self._inverse_dtype, verbose)

    def _computed(self, rows: Any) -> Real:
        return self._values(self.rows.X[rows])

    def _features(self, rows: Any) -> Real:
        Z = np.array(self.block(rows), self.dtype, order="C")
        self._triangular.solve(Z[:, : len(self.factor)])
        return Z

    @cached_property
    def _triangular(self) -> TriangularRows:
        solver = TriangularRows.of(self.factor)
        return solver.in_float32 if self.dtype == np.float32 else solver

    def to_values(self, V: Float64) -> Float64:
        """Return L⁻ᵀ V; columns are their own features."""
        return self._solved(V, trans=1)

    def to_features(self, V: Float64) -> Float64:
        """Return L⁻¹ V."""
        return self._solved(V, trans=0)

    def trace(self) -> float:
        """Return about the trace of the Gram matrix: that of all rows like the landmarks."""
        return float(self.all_weights.sum()) * self._inverses.mean_square

    def inverses(self, alpha: float, patience: float) -> Iterator[Trial]:
        """Return the inverse with landmarks as a sample of the rows, then that of a larger one."""
        steps = steps_with_landmarks(self.rows.count, self.size, self._columns, patience)
        if steps and "_sampled" not in vars(self):
            of_map = self._inverses.inverse(alpha, float(self.all_weights.sum()))
            yield Trial(self._beside_columns(of_map, alpha), "landmarks", steps)
            if steps == math.inf:
                return
        yield self._trial_of_sample(alpha)

    def _beside_columns(self, of_map: Inverse, alpha: float) -> Inverse:
        """Return an inverse for features of the map, and the diagonal's for the columns."""
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
