"""Sums over blocks of rows, added to one array in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dgemm, dsyrk

BLOCK_BYTES = 128 << 20
SMALLEST_BLOCK = 64  # rows
# So many multiplications take a fraction of a second, after which an interrupt is heard.
_BLOCK_PRODUCTS = 4e10
_MIRRORED = 512
_CACHED = 2**16  # numbers that stay in cache


def row_blocks(rows: int, features: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of the rows such that their features take so many bytes in float64 at most.

    But no block is shorter than 64 rows, and the sums of long blocks take less time.
    """
    return _slices(rows, max(block_bytes // (8 * features), SMALLEST_BLOCK))


def _slices(rows: int, step: int) -> Iterator[slice]:
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


@dataclass(eq=False)
class StatisticsSum:
    """First and second moments of features and targets about fixed shifts.

    The moments about the means follow at the end. Shifts near the means keep their digits.
    """

    shift: NDArray[np.float64]
    target_shift: NDArray[np.float64]

    def __post_init__(self) -> None:
        features = self.shift.size
        self._count, self._weight = 0, 0.0
        self._gram = np.zeros((features, features), order="F")
        self._sums = np.zeros(features)
        self._deviations = np.empty((0, features))
        self._target_sums = np.zeros_like(self.target_shift)
        self._cross = np.zeros((features, *self.target_shift.shape))
        self._target_squares = np.zeros_like(self.target_shift)

    @classmethod
    def about_means(cls, Z: Any, y: NDArray[np.float64]) -> Self:
        """Return empty sums about the means of these rows."""
        shift = np.asarray(Z.mean(axis=0, dtype=np.float64)).reshape(-1)
        return cls(shift, np.asarray(y.mean(axis=0)))

    def add(self, Z: Any, y: NDArray[np.float64], weights: NDArray[np.float64] | None) -> None:
        """Add the rows of a block; weights of None are ones."""
        Z = Z.toarray() if sparse.issparse(Z) else Z
        deviations = self._deviations_of(Z)
        roots = np.ones(Z.shape[0]) if weights is None else np.sqrt(weights)
        if weights is not None:
            deviations *= roots[:, np.newaxis]
        targets = (y - self.target_shift) * roots.reshape(-1, *(1,) * (y.ndim - 1))
        self._add_to_gram(deviations)
        # By the same library as the Gram matrix: the threads of two would get in each other's way.
        sums = dgemm(1.0, deviations.T, np.column_stack((roots, targets)))
        self._sums += sums[:, 0]
        self._cross += sums[:, 1:].reshape(self._cross.shape)
        self._target_sums += roots @ targets
        self._target_squares += np.einsum("i...,i...->...", targets, targets)
        self._weight += float(roots @ roots)
        self._count += int(np.count_nonzero(roots))

    def _deviations_of(self, Z: NDArray[Any]) -> NDArray[np.float64]:
        """Return Z without the shift, in memory that is the same for all blocks of a length."""
        if Z.shape[0] > self._deviations.shape[0]:
            self._deviations = np.empty((Z.shape[0], self.shift.size))
        deviations = self._deviations[: Z.shape[0]]
        # Rows stay in cache between the two steps, which are faster than one of mixed dtypes.
        for part in _slices(Z.shape[0], max(_CACHED // self.shift.size, 1)):
            deviations[part] = Z[part]
            deviations[part] -= self.shift
        return deviations

    def _add_to_gram(self, deviations: NDArray[np.float64]) -> None:
        """Add to one triangle, in place: half of the work of a product, and no second matrix."""
        step = max(int(_BLOCK_PRODUCTS / deviations.shape[1] ** 2), SMALLEST_BLOCK)
        for part in _slices(deviations.shape[0], step):
            self._gram = dsyrk(1.0, deviations[part].T, beta=1.0, c=self._gram, overwrite_c=True)

    def centred(self) -> dict[str, Any]:
        """Return the fields of `RidgeStatistics`; nothing can be added afterwards."""
        scale = 1.0 / self._weight if self._weight else 0.0
        drift, target_drift = scale * self._sums, scale * self._target_sums
        gram = dsyrk(-self._weight, drift[:, np.newaxis], beta=1.0, c=self._gram, overwrite_c=True)
        mirror_upper_triangle(gram)
        return {
            "count": self._count,
            "weight": self._weight,
            "feature_mean": self.shift + drift,
            "target_mean": np.asarray(self.target_shift + target_drift),
            "gram": gram,
            "cross": self._cross - self._weight * np.multiply.outer(drift, target_drift),
            "target_squares": np.asarray(self._target_squares - self._weight * target_drift**2),
        }


def mirror_upper_triangle(matrix: NDArray[np.float64]) -> None:
    """Copy what is above the diagonal to what is below it."""
    for start in range(0, matrix.shape[0], _MIRRORED):
        stop = start + _MIRRORED
        corner = matrix[start:stop, start:stop]
        np.copyto(corner, np.triu(corner) + np.triu(corner, 1).T)
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T
