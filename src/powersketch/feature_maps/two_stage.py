"""A large sketch compressed to fewer features, along the main directions of its features."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, is_sparse, slices
from powersketch.execution import Progress, interruptible
from powersketch.feature_maps.batches import batch_rows, transform_rows
from powersketch.feature_maps.outliers import fair_shares
from powersketch.feature_maps.row_maps import ORDINARY, RowMap, Strangeness
from powersketch.powers import FormatCache
from powersketch.random_streams import RandomStreams

# As many directions as features can only be found in more rows than that.
_ROWS_PER_DIRECTION = 2
_FEWEST_ROWS = 512
# Directions with less than this part of the strongest one's energy are rounding errors.
_NOTHING = 1e-12
_PANEL_COLUMNS = 256  # sums of so many columns stay in the first level of the cache


def principal_pilot(X: Rows, size: int, streams: RandomStreams) -> Rows:
    """Return a random sample of the rows, enough of them to find `size` directions."""
    wanted = max(_ROWS_PER_DIRECTION * size, _FEWEST_ROWS)
    if X.shape[0] <= wanted:
        return X if is_sparse(X) else np.ascontiguousarray(X)
    sample = X[np.sort(streams.sample("pilot", X.shape[0], wanted))]
    return sample if is_sparse(X) else np.ascontiguousarray(sample)


@dataclass(frozen=True, eq=False)
class TwoStageMap:
    """z(x) = Vᵀ w(x), w a larger map, V the main directions of its features on a pilot.

    Of all projections onto so many directions, this one keeps most of w on the pilot; where the
    kernel's eigenvalues fall fast that is nearly all. The rows keep the norms of their projections:
    to set them to the exact ones would give the part that is lost the directions of the part that
    is kept, and was measured to be several times worse.

    Attributes
    ----------
    inner : RowMap
        w, with as many features as V has rows.
    directions : ndarray of shape (inner size, number of directions)
        V, columns in the order of falling energy.
    """

    inner: RowMap
    directions: NDArray[np.float64]
    _panels: FormatCache[list[Real]] = field(default_factory=FormatCache, init=False, repr=False)

    @classmethod
    def principal(
        cls, inner: RowMap, inner_components: int, pilot: Rows, size: int, threads: int
    ) -> TwoStageMap:
        """Find the main directions, at most `size`, of the inner features of the pilot rows.

        A few long rows do not take all the energy.
        """
        silent = Progress("", pilot.shape[0], 0)
        features, _ = transform_rows(
            inner, pilot, inner_components, threads=threads, progress=silent
        )
        squares = routines.squared_norms(features)
        _, factors = fair_shares(np.sqrt(squares), pilot)
        return cls(inner, principal_directions(features * factors[:, None], size))

    @property
    def name(self) -> str:
        """How the inner map came about."""
        return self.inner.name

    def _panels_for(self, X: Rows) -> list[Real]:
        """Return the directions in the dtype of the rows, a few contiguous columns at a time."""
        directions = self.directions.astype(X.dtype)
        panels = slices(directions.shape[1], _PANEL_COLUMNS)
        return [np.ascontiguousarray(directions[:, panel]) for panel in panels]

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`."""
        inner_size, panels = len(self.directions), self._panels.get(X, self._panels_for)
        strangeness = np.full(X.shape[0], ORDINARY, dtype=np.int8)
        for part in slices(X.shape[0], batch_rows(X, inner_size, threads)):
            features = np.empty((part.stop - part.start, inner_size), dtype=out.dtype)
            strange = self.inner.write(X[part], features, threads)
            if strange is not None:
                strangeness[part] = strange
            _project(features, panels, out[part], threads)
        return strangeness


def _project(features: Real, panels: list[Real], out: Real, threads: int) -> None:
    """Write the products with the directions, not by BLAS: its bits depend on the batch."""
    column = 0
    for panel in panels:
        stop = column + panel.shape[1]
        out[:, column:stop] = routines.product(features, panel, threads=threads)
        column = stop
    out[:, column:] = 0


def principal_directions(features: Real, size: int) -> NDArray[np.float64]:
    """Return up to `size` orthonormal directions that hold most of the rows' energy.

    They are eigenvectors of FᵀF, or come from those of F Fᵀ where that is smaller.
    """
    F = features.astype(np.float64)
    largest = float(np.abs(F).max())
    if largest == 0:
        return np.empty((F.shape[1], 0))
    F /= largest
    tall = F.shape[0] > F.shape[1]
    energies, vectors = interruptible(lambda: np.linalg.eigh(F.T @ F if tall else F @ F.T))
    energies, vectors = energies[::-1][:size], vectors[:, ::-1][:, :size]
    present = energies > _NOTHING * energies[0]
    energies, vectors = energies[present], vectors[:, present]
    if not tall:
        vectors = F.T @ vectors / np.sqrt(energies)
    return np.ascontiguousarray(vectors)
