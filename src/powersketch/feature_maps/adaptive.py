"""Monomials of the augmented rows, drawn by their ridge leverage scores on the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, is_sparse
from powersketch.execution import ordered_map
from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.row_checks import check_power
from powersketch.feature_maps.row_maps import overflow_error
from powersketch.feature_maps.vanished import restore_vanished
from powersketch.powers import (
    SampledMonomials,
    Scaled,
    adaptive_tuples,
    affordable_draw,
)
from powersketch.random_streams import RandomStreams

_CACHED_ENTRIES = 1 << 17  # of all features of a few rows: they stay in cache meanwhile
_MOST_ROWS = 256
_ORDINARY_EXPONENT = 1000
# Scores are estimated on the first of these numbers of rows that is affordable.
_SCORED_ROWS = (256, 128)


@dataclass(frozen=True, eq=False)
class AdaptiveMap:
    """z(x) are monomials of x̃ with weights, and zeros where fewer were drawn than asked for.

    With norms preserved, every row is set to the norm ‖x̃‖^degree.
    """

    rows: AugmentedRows
    columns: int
    monomials: SampledMonomials
    preserve_norms: bool

    name: ClassVar[str] = "none"

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        rows: AugmentedRows,
        degree: int,
        pilot: Rows,
        size: int,
        *,
        preserve_norms: bool,
    ) -> AdaptiveMap:
        """Draw the monomials by the scores that they have on the pilot rows."""
        streams = streams.child("adaptive")
        squared_norms = rows.squared_norms(pilot, 1)
        check_power(pilot, squared_norms, degree)
        longest = _shift(squared_norms.max(keepdims=True))
        augmented = _augmented(rows, pilot, np.ldexp(1.0, -longest))
        scored = _scored_rows(augmented, degree, size, streams)
        drawn = adaptive_tuples(scored, degree, size, streams)
        monomials = SampledMonomials.of(drawn.tuples, drawn.squared_weights)
        return cls(rows, pilot.shape[1], monomials, preserve_norms)

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        squared_norms = self.rows.squared_norms(X, threads)
        check_power(X, squared_norms, self.monomials.degree)
        own = self.monomials.coordinates
        columns = X[:, own[own < self.columns]]
        step = min(max(_CACHED_ENTRIES // self.monomials.size, 8), _MOST_ROWS)
        parts = [slice(start, start + step) for start in range(0, X.shape[0], step)]

        def write(part: slice) -> bool:
            return self._write_part(columns[part], squared_norms[part], out[part])

        if not all(list(ordered_map(write, parts, threads))):
            raise overflow_error(out.dtype)
        if self.preserve_norms:
            norms = Scaled.of(np.sqrt(squared_norms)).power(self.monomials.degree).to_float()
            restore_vanished(X, out[:, : self.monomials.size], norms, 0)

    def _write_part(self, columns: Rows, squared_norms: NDArray[np.float64], out: Real) -> bool:
        """Write the features of rows, given in the coordinates needed; False if one overflows."""
        shift = _shift(squared_norms)
        unit = np.ldexp(1.0, -shift)
        near_one = self._needed(columns, unit)
        values, exponents = self.monomials.values(near_one)
        degree = self.monomials.degree
        if self.preserve_norms:
            squares = routines.squared_norms(values)
            norms = Scaled.of(np.sqrt(squared_norms)).power(degree)
            found = Scaled.of(np.sqrt(np.where(squares > 0.0, squares, 1.0)))
            scale = norms * found.inverse()
        else:
            ones = Scaled.of(np.ones(len(values)))
            scale = ones.times_power_of_two(exponents + degree * shift)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            _multiply(values, scale)
            out[:, : self.monomials.size] = values
        out[:, self.monomials.size :] = 0
        return self.preserve_norms or bool(np.isfinite(out).all())

    def _needed(self, columns: Rows, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coordinates of x̃ that monomials need, of rows near norm one."""
        dense = columns.toarray() if is_sparse(columns) else columns
        needed = np.empty((len(unit), len(self.monomials.coordinates)))
        needed[:, : dense.shape[1]] = dense
        needed[:, : dense.shape[1]] *= (self.rows.root_gamma * unit)[:, None]
        if dense.shape[1] < needed.shape[1]:
            needed[:, -1] = self.rows.root_coef0 * unit
        return needed


def _scored_rows(X: Rows, degree: int, size: int, streams: RandomStreams) -> Rows:
    """Return as many rows as leverage scores are affordable on, or all if they are on none."""
    order = streams.permutation("scored", X.shape[0])
    for count in _SCORED_ROWS:
        fewer = X[np.sort(order[:count])]
        if affordable_draw(fewer, degree, size) != "rows":
            return fewer
    return X


def _shift(squared_norms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return e such that norms times 2^−e lie near one; in double precision every e will do."""
    _, exponent = np.frexp(squared_norms)
    shift: NDArray[np.int64] = exponent.astype(np.int64) // 2
    return shift


def _augmented(rows: AugmentedRows, X: Rows, factor: NDArray[np.float64]) -> Rows:
    """Return factor · x̃ of every row, in double precision."""
    scaled = X.astype(np.float64) * float(rows.root_gamma * factor[0])
    if not rows.extra_columns:
        return scaled
    constant = np.full((X.shape[0], 1), rows.root_coef0 * factor[0])
    if is_sparse(X):
        return sp.hstack([scaled, sp.csr_array(constant)], format="csr")
    return np.hstack([scaled, constant])


def _multiply(values: NDArray[np.float64], factors: Scaled) -> None:
    """Multiply every row by its factor, which may be no ordinary number although the result is."""
    extreme = np.abs(factors.exponent) > _ORDINARY_EXPONENT
    first = np.where(extreme, factors.exponent // 2, factors.exponent)
    values *= Scaled(factors.mantissa, first).to_float()[:, None]
    if extreme.any():
        rest = Scaled(np.ones(len(values)), factors.exponent - first)
        values *= rest.to_float()[:, None]
