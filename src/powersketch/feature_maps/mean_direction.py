"""The direction of the data's mean, and every row's parts along and across it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Rows
from powersketch.feature_maps.augmented_rows import AugmentedRows


@dataclass(frozen=True, eq=False)
class Geometry:
    """The parts of a batch of augmented rows along and across the direction."""

    squared_norms: NDArray[np.float64]
    along: NDArray[np.float64]
    squared_across: NDArray[np.float64]
    shift: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanDirection:
    """A unit vector u in augmented space; x⊥ is described by `columns` coordinates.

    With a constant coordinate, the reflection that maps u to it turns x⊥ into the vector
    √gamma · x − shift · u of as many coordinates as x. Without one, x⊥ itself serves, shift = a.
    """

    rows: AugmentedRows
    direction: NDArray[np.float64]
    constant: float

    @classmethod
    def of_mean(cls, rows: AugmentedRows, mean: NDArray[np.float64]) -> MeanDirection | None:
        """Return the direction of the mean row's augmented row, or None if that is zero."""
        scaled = rows.root_gamma * mean
        norm = math.sqrt(math.fsum(scaled * scaled) + rows.coef0)
        if norm == 0 or not math.isfinite(norm):
            return None
        return cls(rows, scaled / norm, rows.root_coef0 / norm)

    def geometry(self, X: Rows, threads: int) -> Geometry:
        """Measure every row."""
        rows = self.rows
        squares, dots = routines.row_moments(X, self.direction, threads=threads)
        squared_norms = rows.gamma * squares + rows.coef0
        along = rows.root_gamma * dots + rows.root_coef0 * self.constant
        shift = along
        if rows.extra_columns:
            shift = (along + rows.root_coef0) / (1.0 + self.constant)
        # ‖√gamma · x − shift · u‖², which does not cancel where the constant is most of the row.
        own = math.fsum(self.direction * self.direction)
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are refused later on
            across = rows.gamma * squares + shift * (shift * own - 2.0 * rows.root_gamma * dots)
        return Geometry(squared_norms, along, np.maximum(across, 0.0), shift)
