"""Rows of any size for kernels that depend on their directions only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from powersketch import routines
from powersketch.arrays import Real, Rows, is_sparse
from powersketch.feature_maps.row_maps import RowMap, Strangeness
from powersketch.powers import times_rows, to_one

# Squared norms in between are computed without loss.
_SMALLEST, _LARGEST = 1e-200, 1e200


def rows_near_one(X: Rows, threads: int = 1) -> Rows:
    """Return the rows, those of extreme size multiplied by powers of two to bring them near one."""
    squares = routines.squared_norms(X, threads=threads)
    extreme = (squares < _SMALLEST) | (squares > _LARGEST)
    if not extreme.any():
        return X
    largest = abs(X).max(axis=1)
    largest = largest.toarray().reshape(-1) if is_sparse(X) else largest
    factors, _ = to_one(largest, X.dtype)
    return times_rows(X, np.where(extreme & (largest > 0), factors, 1.0))


@dataclass(frozen=True, eq=False)
class ScaleFreeMap:
    """A map of directions: where norms leave the range of numbers, they are changed first."""

    inner: RowMap

    @property
    def name(self) -> str:
        """How the inner map came about."""
        return self.inner.name

    @property
    def safe(self) -> RowMap | None:
        """The inner map's, for rows of any size as well."""
        safe = getattr(self.inner, "safe", None)
        return None if safe is None else ScaleFreeMap(safe)

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`."""
        return self.inner.write(rows_near_one(X, threads), out, threads)
