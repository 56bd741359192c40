"""Nyström features by their kernel values: sums over rows first, the triangular solve at the end.

The features of a row are its kernel values at the landmarks times R⁻¹. Sums of products of values
turn into those of features by R⁻¹ from both sides, which takes as much time as the features of a
few thousand rows. Errors of rounding grow by it, so that it is done where R is well conditioned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from powersketch.kernel_ridge.accumulation import mirror_upper_triangle
from powersketch.kernel_ridge.solutions import KernelSum
from powersketch.kernel_ridge.statistics import RidgeStatistics
from powersketch.linalg import TriangularRows
from powersketch.nystroem import LeverageNystroem
from powersketch.random_streams import RandomStreams

# Of the sums, relative to the trace of the features' Gram matrix; as good as sums of features are.
_LARGEST_ROUNDING_ERROR = 1e-10
_PROBES = 16


@dataclass(frozen=True, eq=False)
class PreparedColumns:
    """Kernel values in the place of features, for one pass over the rows."""

    transform: Callable[[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class LandmarkColumns:
    """A fitted Nyström map by its kernel values.

    Parameters
    ----------
    feature_map : LeverageNystroem
        The map.
    solver : TriangularRows
        For its factor.
    summable : bool
        Whether sums of products of values can be turned into those of features.
    """

    feature_map: LeverageNystroem
    solver: TriangularRows
    summable: bool

    @classmethod
    def of(cls, feature_map: Any) -> LandmarkColumns | None:
        """Return them if the map is one of landmarks."""
        if not isinstance(feature_map, LeverageNystroem):
            return None
        solver = TriangularRows.of(feature_map.factor_)
        return cls(feature_map, solver, _well_conditioned(solver))

    def prepared(self) -> PreparedColumns:
        """Return what gives kernel values."""
        return PreparedColumns(self.feature_map.kernel_columns())

    def statistics_of_features(self, columns: RidgeStatistics) -> RidgeStatistics:
        """Turn the statistics of kernel values into those of features."""
        # The matrix is symmetric: its transpose, which lies in memory row by row, is the same.
        gram = columns.gram.T.copy()
        self.solver.solve_both_sides(gram)
        mirror_upper_triangle(gram)
        cross = columns.cross.reshape(columns.cross.shape[0], -1)
        return replace(
            columns,
            feature_mean=self._solved(columns.feature_mean[np.newaxis])[0],
            gram=gram.T,
            cross=self._solved(cross.T).T.reshape(columns.cross.shape),
        )

    def _solved(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.array(rows, order="C")
        self.solver.solve(rows)
        return rows


def sum_at_landmarks(feature_map: Any, coef: NDArray[np.float64]) -> KernelSum | None:
    """Return z(·) @ coefᵀ as a sum of kernel values if the map is one of landmarks."""
    if not isinstance(feature_map, LeverageNystroem):
        return None
    solved = linalg.solve_triangular(
        feature_map.factor_, coef.T, trans=1, lower=True, check_finite=False
    )
    return KernelSum(feature_map.kernel_, feature_map.landmarks_, solved)


def _well_conditioned(solver: TriangularRows) -> bool:
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
