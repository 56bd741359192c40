"""The features of a fit: the map that was asked for, its features in blocks, and sums over them.

The features of a row by landmarks are its kernel values there times R⁻¹. Sums of products of values
turn into those of features by R⁻¹ from both sides, which takes as much time as the features of a
few thousand rows. Errors of rounding grow by it, so that it is done where R is well conditioned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from powersketch.arrays import Float64, Real, Rows, is_sparse
from powersketch.execution import Progress
from powersketch.feature_maps import SKETCHED_KERNELS, FeatureMap, map_for
from powersketch.kernel_ridge.rows.training_rows import BLOCK_BYTES, TrainingRows, row_blocks
from powersketch.kernel_ridge.solving.statistics import (
    Blocks,
    RidgeStatistics,
    statistics_of_blocks,
)
from powersketch.kernel_ridge.solving.sums import mirror_upper_triangle
from powersketch.kernels import EntryMoments, Kernel
from powersketch.linalg import TriangularRows
from powersketch.nystroem import LeverageNystroem
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

# Of the sums, relative to the trace of the features' Gram matrix; as good as sums of features are.
_LARGEST_ROUNDING_ERROR = 1e-10
_PROBES = 16
_JITTER_FOR_FLOAT32 = 1e-7
# How landmarks may be drawn, in the words of LeverageNystroem; the cheaper way first.
LANDMARKS = ("uniform", "leverage")


def has_sketch(kernel: Kernel) -> bool:
    """Tell whether there is a feature map for the kernel that needs no landmarks."""
    return isinstance(kernel, SKETCHED_KERNELS)


def map_of_kernel(name: str, kernel: Kernel, size: int, *, seed: int, n_jobs: int | None) -> Any:
    """Return an unfitted map: a "sketch", or landmarks drawn as "uniform" or by "leverage"."""
    if name == "sketch":
        return map_for(kernel, size, random_state=seed, n_jobs=n_jobs)
    return LeverageNystroem(
        kernel, n_components=size, landmarks=name, random_state=seed, n_jobs=n_jobs
    )


def fitted_map(feature_map: Any, rows: TrainingRows, moments: EntryMoments | None = None) -> Any:
    """Fit a map; rows are repeated by weight, but not for landmarks: it would waste features.

    The moments are those of all rows that these stand for, if there are more.
    """
    repeats = not isinstance(feature_map, LeverageNystroem)
    X = rows.repeated_by_weight() if repeats else rows.X
    if moments is not None and isinstance(feature_map, FeatureMap | LeverageNystroem):
        return feature_map._fit(X, moments)
    return feature_map.fit(X, None)


@storable
@dataclass(frozen=True, eq=False)
class Features:
    """What the regression is done on: features of a fitted map, and the columns beside them."""

    feature_map: Any
    weight: float = 0.0

    def transform(self, X: Rows) -> Real:
        """Return the features of rows as a dense array, whatever the map returns."""
        parts = [] if self.feature_map is None else [dense(self.feature_map.transform(X))]
        if self.weight:
            parts.append(self._columns(X))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def product(self, X: Rows, coef: Float64) -> Float64:
        """Return the features of rows times coefficients of shape (t, m); columns stay sparse."""
        if not (self.weight and is_sparse(X)):
            return np.asarray(self.transform(X).astype(np.float64, copy=False) @ coef.T)
        columns = X @ (math.sqrt(self.weight) * coef.T[-X.shape[1] :])
        if self.feature_map is None:
            return np.asarray(columns)
        of_map = dense(self.feature_map.transform(X)).astype(np.float64, copy=False)
        return np.asarray(columns + of_map @ coef.T[: of_map.shape[1]])

    def size(self, X: Rows) -> int:
        """Return the number of features of rows like these."""
        beside = int(X.shape[1]) if self.weight else 0
        if self.feature_map is None:
            return beside
        if isinstance(self.feature_map, FeatureMap | LeverageNystroem):
            return int(self.feature_map.n_components_) + beside
        # Others tell by the features of one row, of which those of this package might warn.
        return int(dense(self.feature_map.transform(X[:1])).shape[1]) + beside

    @property
    def landmarks(self) -> LeverageNystroem | None:
        """The map if it is one of landmarks."""
        return self.feature_map if isinstance(self.feature_map, LeverageNystroem) else None

    def values(self) -> Callable[[Rows], Real]:
        """Return the function from rows to kernel values at landmarks, and columns beside them."""
        assert self.landmarks is not None
        at_landmarks = self.landmarks.kernel_columns()
        if not self.weight:
            return at_landmarks
        return lambda X: np.concatenate([at_landmarks(X), self._columns(X)], axis=1)

    def values_in(self, dtype: Any) -> Callable[[Rows], Real]:
        """Return the same function with values, and the products they come from, in this dtype."""
        assert self.landmarks is not None
        kind = np.dtype(dtype)
        at_landmarks = self.landmarks.kernel_.columns(self.landmarks.landmarks_, precision=kind)
        if not self.weight:
            return lambda X: at_landmarks(X, kind)
        return lambda X: np.concatenate(
            [at_landmarks(X, kind), self._columns(X).astype(kind, copy=False)], axis=1
        )

    def _columns(self, X: Rows) -> Real:
        columns: Real = dense(X) * X.dtype.type(math.sqrt(self.weight))
        return columns


def needs_float64(jitter: float) -> bool:
    """Tell whether iterations need kernel values at landmarks in float64.

    Of nearly dependent landmarks, rounding errors of values would be seen in features.
    """
    return jitter < _JITTER_FOR_FLOAT32


def row_parts(features: Features, X: Rows, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of the rows such that the features of each stay small."""
    return row_blocks(X.shape[0], features.size(X), block_bytes)


def feature_blocks(
    features: Features,
    rows: TrainingRows,
    block_bytes: int = BLOCK_BYTES,
    *,
    progress: Progress | None = None,
    values: Callable[[Rows], Real] | None = None,
) -> Blocks:
    """Yield features, or other values, with targets and weights of one block after the other."""
    for part in row_parts(features, rows.X, block_bytes):
        block = rows[part]
        yield (values or features.transform)(block.X), block.targets, block.weights
        if progress is not None:
            progress.update(part.stop)


@dataclass(frozen=True, eq=False)
class FeatureSums:
    """How sums over features are computed: of kernel values at landmarks first, if possible."""

    features: Features
    solver: TriangularRows | None

    @classmethod
    def of(cls, features: Features) -> FeatureSums:
        """Decide by the condition of the landmarks' kernel matrix."""
        if features.landmarks is None:
            return cls(features, None)
        solver = TriangularRows.of(features.landmarks.factor_)
        return cls(features, solver if well_conditioned(solver) else None)

    def of_rows(
        self,
        rows: TrainingRows,
        block_bytes: int,
        progress: Progress | None = None,
        rounding: float | None = None,
    ) -> RidgeStatistics:
        """Return sums that can be merged; :meth:`finished` turns them into those of features.

        With `rounding`, products are computed in float32, and this is the norm of their errors.
        """
        values = None if self.solver is None else self.features.values()
        blocks = feature_blocks(self.features, rows, block_bytes, progress=progress, values=values)
        if rounding is None or values is not None:
            return statistics_of_blocks(blocks)
        return statistics_of_blocks(blocks, np.float32, rounding)

    def finished(self, sums: RidgeStatistics) -> RidgeStatistics:
        """Return the statistics of features from the sums of all rows."""
        if self.solver is None:
            return sums
        solver, beside = self.solver, sums.feature_mean.size - len(self.solver.factor)
        if beside:
            solver = TriangularRows.of(block_diag(solver.factor, np.eye(beside)))
        return solved_statistics(sums, solver)


def solved_statistics(values: RidgeStatistics, solver: TriangularRows) -> RidgeStatistics:
    """Turn the statistics of kernel values at landmarks into those of features."""

    def solved(rows: Float64) -> Float64:
        rows = np.array(rows, order="C")
        solver.solve(rows)
        return rows

    # The matrix is symmetric: its transpose, which lies in memory row by row, is the same.
    gram = values.gram.T.copy()
    solver.solve_both_sides(gram)
    mirror_upper_triangle(gram)
    cross = values.cross.reshape(values.cross.shape[0], -1)
    return replace(
        values,
        feature_mean=solved(values.feature_mean[np.newaxis])[0],
        gram=gram.T,
        cross=solved(cross.T).T.reshape(values.cross.shape),
    )


def well_conditioned(solver: TriangularRows) -> bool:
    """Tell whether R⁻¹ from both sides leaves rounding errors small.

    An error of relative size ε in every entry of a Gram matrix with diagonal g becomes one of size
    up to ε g tr(K⁻¹) in that of the features, whose trace is that of K. The trace of the inverse is
    estimated from its products with normal vectors.
    """
    size = solver.factor.shape[0]
    normal = RandomStreams(0, "kernel-ridge/conditioning").normal("probes", _PROBES * size)
    rows = normal.reshape(_PROBES, size)
    solver.solve(rows)
    trace_of_inverse = float(np.mean(np.einsum("ij,ij->i", rows, rows)))
    diagonal = np.einsum("ij,ij->i", solver.factor, solver.factor)
    rounding = float(np.finfo(np.float64).eps) * float(diagonal.max()) * trace_of_inverse
    return bool(rounding <= _LARGEST_ROUNDING_ERROR)


def dense(rows: Rows) -> Real:
    """Return rows as a dense array."""
    array: Real = rows.toarray() if is_sparse(rows) else rows
    return array
