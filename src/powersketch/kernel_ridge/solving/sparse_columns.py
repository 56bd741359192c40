"""Products with sparse rows that are too long to be made dense, as iterations want them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Rows, Vector, slices
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.features import Features
from powersketch.kernel_ridge.solving.preconditioners import Inverse, Trial, beside_diagonal
from powersketch.kernel_ridge.solving.row_products import BLOCK_ROWS, BlockProducts


class SparseColumns(BlockProducts):
    """Features of a map, if there is one, and sparse columns side by side."""

    def __init__(
        self, features: Features, rows: TrainingRows, *, fit_intercept: bool, seed: int = 0
    ) -> None:
        plain = Features(features.feature_map)
        self._plain = plain if features.feature_map is not None else None
        self._of_map = 0 if self._plain is None else plain.size(rows.X)
        if self._plain is None:
            self.dtype, self.least_residual = np.float64, 1e-12
        self._Z = np.empty((rows.count, self._of_map), np.float32)
        if self._plain is not None:
            for part in slices(rows.count, BLOCK_ROWS):
                self._Z[part] = plain.transform(rows.X[part])
        self._factor = math.sqrt(features.weight)
        size = self._of_map + int(rows.X.shape[1])
        super().__init__(rows, size, fit_intercept=fit_intercept, seed=seed)
        # Slicing sparse rows takes longer than a product with them.
        self._parts = [slice(0, rows.count)]

    def _computed(self, rows: Any) -> _SideBySide:
        return _SideBySide(self._Z[rows], self.rows.X[rows], self._factor)

    def _block_product(self, block: Any, V: Real, offsets: Vector, weights: Float64) -> Float64:
        spread = np.repeat(weights, V.shape[1] // self.sides, axis=1)
        weighted = spread * ((block @ V).astype(np.float64) - offsets)
        return np.vstack((block.T @ weighted.astype(self.dtype), weighted.sum(axis=0)))

    @property
    def _dense_size(self) -> int:
        return self._of_map

    def _kernel(self, rows: Any) -> Float64:
        Z, X = self._Z[rows].astype(np.float64), self.rows.X[rows]
        return np.asarray(Z @ Z.T + self._factor**2 * (X @ X.T).toarray())

    def _gram_of_map(self) -> Float64:
        weighted = self._Z * self.all_weights.astype(np.float32)[:, np.newaxis]
        return np.asarray(self._Z.T @ weighted, dtype=np.float64)

    def _squares(self) -> Vector:
        X = self.rows.X
        return np.asarray(self._factor**2 * (X.multiply(X).T @ self.all_weights))

    def trace(self) -> float:
        """Return the trace of the Gram matrix."""
        return float(self._squares().sum() + np.trace(self._gram_of_map()))

    def inverses(self, alpha: float, patience: float) -> Iterator[Trial]:
        """Return the inverse of the features' Gram matrix, and of the diagonal of the columns'."""
        factor = linalg.cho_factor(self._gram_of_map() + alpha * np.eye(self._of_map))
        solve: Inverse = lambda V: np.asarray(linalg.cho_solve(factor, V))  # noqa: E731
        of_map = solve if self._of_map else np.copy
        inverse = beside_diagonal(of_map, self._of_map, self._squares() + alpha)
        yield Trial(inverse, "the squares of columns")


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
