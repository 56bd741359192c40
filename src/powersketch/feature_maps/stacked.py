"""Expansion around the mean: the part of the kernel along one direction is taken exactly.

With x̃ = a·u + x⊥ and ỹ likewise, ⟨x̃, ỹ⟩^p = Σ_l C(p, l) (a b)^(p−l) ⟨x⊥, y⊥⟩^l. Data that is not
centred has most of its weight in the low degrees l, which need few features or are exact.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch import native
from powersketch.feature_maps.augmented_rows import AugmentedRows, power_of_two_shift
from powersketch.feature_maps.row_maps import overflow_error
from powersketch.feature_maps.split_sizes import SplitSizes, choose_sizes
from powersketch.native import Real, Rows, is_sparse
from powersketch.powers import (
    BoundPowerSketch,
    Monomials,
    PowerSketch,
    RowFormat,
    Scaled,
    Slice,
    ascending_powers,
)
from powersketch.random_streams import RandomStreams
from powersketch.sketches import CountSketch

_NOTHING = 1e-150


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
        squares, dots = native.row_moments(X, self.direction, threads=threads)
        squared_norms = rows.gamma * squares + rows.coef0
        along = rows.root_gamma * dots + rows.root_coef0 * self.constant
        across = np.maximum(squared_norms - along * along, 0.0)
        shift = along
        if rows.extra_columns:
            shift = (along + rows.root_coef0) / (1.0 + self.constant)
        return Geometry(squared_norms, along, across, shift)


def amplitudes(
    geometry: Geometry, degree: int, levels: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """Return √C(p, l) cos^(p−l) sin^l of every row for every level l, with the sign of the cosine.

    Their squares over all levels add up to one: they say how a row of norm ‖x̃‖^p is shared.
    """
    norms = np.sqrt(np.where(geometry.squared_norms > 0, geometry.squared_norms, 1.0))
    cosine = Scaled.of(geometry.along / norms)
    sine = Scaled.of(np.sqrt(geometry.squared_across) / norms)
    along = ascending_powers(cosine, (degree - levels[::-1]).tolist())[::-1]
    across = ascending_powers(sine, levels.tolist())
    roots = [_binomial_root(degree, level) for level in levels.tolist()]
    factors = zip(roots, along, across, strict=True)
    return [(root * a * b).to_float() for root, a, b in factors]


@functools.cache
def _binomial_root(degree: int, level: int) -> Scaled:
    return Scaled.of_integer(math.comb(degree, level)).sqrt()


@dataclass(frozen=True, eq=False)
class SplitMap:
    """Features block by block: degree 0, degree 1, exact degrees, sketched degrees."""

    centre: MeanDirection
    sizes: SplitSizes
    monomials: tuple[Monomials, ...]
    chains: tuple[PowerSketch, ...]
    preserve_norms: bool

    name: ClassVar[str] = "mean"

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        centre: MeanDirection,
        pilot: Rows,
        size: int,
        *,
        internal: int,
        base_sketch: str,
        preserve_norms: bool,
    ) -> SplitMap:
        """Choose the sizes from the pilot rows and sample every block's sketch."""
        streams, columns = streams.child("split"), pilot.shape[1]
        sizes = choose_sizes(*_pilot_weights(centre, pilot), columns, size)
        chains = []
        if sizes.linear:
            output = Slice(0, sizes.linear, sizes.offset(1))
            base = CountSketch.keeping(
                streams.child("linear"), columns, sizes.coordinates, sizes.shared
            )
            chains.append(PowerSketch.linear(base, output, preserve_norms=preserve_norms))
        if sizes.sketched:
            sketch = PowerSketch.draw(
                streams.child("powers"),
                columns,
                sizes.slices(),
                internal=internal,
                base_sketch=base_sketch,
                preserve_norms=preserve_norms,
            )
            chains.append(sketch)
        monomials = tuple(Monomials.of(columns, degree) for degree in sizes.exact)
        return cls(centre, sizes, monomials, tuple(chains), preserve_norms)

    def bind(self, rows: RowFormat) -> BoundSplitMap:
        """Make every block ready for rows of one format."""
        bound = tuple(chain.bind(rows, self.centre.direction) for chain in self.chains)
        return BoundSplitMap(self, bound)

    def block_scales(
        self, geometry: Geometry, shift: NDArray[np.int64]
    ) -> dict[int, NDArray[np.float64]]:
        """Return the factor of every degree's block for every row."""
        degree, kept = self.centre.rows.degree, self.sizes.degrees
        shares = amplitudes(geometry, degree, kept)
        root = Scaled.of(np.sqrt(geometry.squared_norms)).power(degree).to_float()
        if not self.preserve_norms:
            factors = self._literal_factors(geometry, shift)
            return {
                level: root * share * factors.get(level, 1.0)
                for level, share in zip(kept.tolist(), shares, strict=True)
            }
        present = np.sqrt(np.add.reduce([share * share for share in shares], axis=0))
        lost = present <= _NOTHING  # all weight lies in degrees that have no features
        shares[-1] = np.where(lost, 1.0, shares[-1])
        root /= np.where(lost, 1.0, present)
        return {level: root * share for level, share in zip(kept.tolist(), shares, strict=True)}

    def _literal_factors(
        self, geometry: Geometry, shift: NDArray[np.int64]
    ) -> dict[int, NDArray[np.float64]]:
        """Return what turns a sketched block's exact norm into the factor of its literal sketch."""
        across = np.sqrt(geometry.squared_across)
        inverse = np.divide(1.0, across, out=np.zeros_like(across), where=across > 0)
        undo = Scaled.of(inverse).times_power_of_two(shift)
        return {
            level: undo.power(level).to_float() * chain.literal_factor(level)
            for chain in self.chains
            for level in chain.program.degrees
        }


@dataclass(frozen=True, eq=False)
class BoundSplitMap:
    """A split map for one format of rows."""

    map: SplitMap
    chains: tuple[BoundPowerSketch, ...]

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        centre = self.map.centre
        geometry = centre.geometry(X, threads)
        centre.rows.check_representable(X, geometry.squared_norms)
        shift = power_of_two_shift(geometry.squared_across)
        unit = np.ldexp(1.0, -shift.astype(np.int32))
        row_scale, row_shift = centre.rows.root_gamma * unit, -geometry.shift * unit
        scales = self.map.block_scales(geometry, shift)
        out[:, 0] = scales[0]
        out[:, self.map.sizes.stop :] = 0
        if self.map.monomials:
            self._write_monomials(X, row_scale, row_shift, scales, out, threads)
        for chain, bound in zip(self.map.chains, self.chains, strict=True):
            columns = np.stack([scales[degree] for degree in chain.program.degrees], axis=1)
            if not bound.apply(X, row_scale, row_shift, columns, out, threads):
                raise overflow_error(out.dtype)

    def _write_monomials(
        self,
        X: Rows,
        row_scale: NDArray[np.float64],
        row_shift: NDArray[np.float64],
        scales: dict[int, NDArray[np.float64]],
        out: Real,
        threads: int,
    ) -> None:
        sizes = self.map.sizes
        dense = X.toarray() if is_sparse(X) else X
        across = dense * row_scale[:, None] + row_shift[:, None] * self.map.centre.direction
        squares, _ = native.row_moments(across, np.zeros(across.shape[1]), threads=threads)
        norms = np.sqrt(squares)
        across *= np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)[:, None]
        for degree, monomials in zip(sizes.exact, self.map.monomials, strict=True):
            start = sizes.offset(degree)
            block = out[:, start : start + monomials.size]
            block[:] = monomials.apply(across) * scales[degree][:, None]


def _pilot_weights(
    centre: MeanDirection, pilot: Rows
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean share of every degree, and how degree 1 is spread over the coordinates."""
    degree = centre.rows.degree
    geometry = centre.geometry(pilot, threads=1)
    largest = max(float(np.max(geometry.squared_norms)), np.finfo(np.float64).tiny)
    importance = Scaled.of(geometry.squared_norms / largest).power(degree).to_float()
    shares = [share * share for share in amplitudes(geometry, degree, np.arange(degree + 1))]
    weights = np.array([math.fsum(importance * share) for share in shares])
    across = np.where(geometry.squared_across > 0, geometry.squared_across, 1.0)
    linear = importance * shares[1] / across
    root = centre.rows.root_gamma
    direction, shift = centre.direction, geometry.shift
    energies = (
        root * root * column_sums(pilot, linear, squared=True)
        - 2 * root * direction * column_sums(pilot, linear * shift)
        + direction * direction * math.fsum(linear * shift * shift)
    )
    return weights / len(importance), np.maximum(energies, 0.0)


def column_sums(
    X: Rows, weights: NDArray[np.float64], *, squared: bool = False
) -> NDArray[np.float64]:
    """Return Σ_i weights[i] · x_i (or x_i²) in double precision, rows added in their order.

    Dense and sparse rows give the same bits, and so does every machine: no BLAS.
    """
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], 64):
        block, factor = X[start : start + 64], weights[start : start + 64]
        block = block.astype(np.float64)
        if squared:
            block = block.multiply(block).tocsr() if is_sparse(X) else block * block
        if is_sparse(X):
            total += block.T @ factor
        else:
            # A reduction may add pairwise where it runs along memory; an accumulation may not.
            total += np.add.accumulate(block * factor[:, None], axis=0)[-1]
    return total
