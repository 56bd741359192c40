"""Index tuples drawn one coordinate after the other, by ridge leverage scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Rows, is_sparse
from powersketch.powers.scaled_numbers import Scaled
from powersketch.powers.stratified_draws import located, stratified_uniforms
from powersketch.random_streams import RandomStreams

Float64: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Tuples: TypeAlias = NDArray[np.int32]

_BLOCK_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class LeverageLaw:
    """Coordinates one after the other, i_k ∝ ‖X[:, i] (h ∘ V_k)‖² with h the product so far.

    V_k stands for the matrix V_k V_kᵀ of all that is left; if this is (K + λI)⁻¹ ∘ G^∘(q − k), then
    tuples are drawn by their ridge leverage scores [WZ20]. Columns of zeros are never drawn. Where
    all weights are zero, coordinates are drawn uniformly: probabilities always add up to one.

    `positions` tells which row of `coordinates`, which is X transposed without its columns of
    zeros, belongs to a column of X; it is −1 for columns of zeros.
    """

    coordinates: Rows
    positions: Indices
    factors: Sequence[Float64]

    @classmethod
    def of(cls, X: Rows, factors: Sequence[Float64]) -> LeverageLaw:
        """Return the law on the columns of X that are not zero."""
        transposed = X.T.tocsr() if is_sparse(X) else np.ascontiguousarray(X.T)
        squares = routines.squared_norms(transposed)
        kept = np.flatnonzero(squares)
        positions = np.full(X.shape[1], -1)
        positions[kept] = np.arange(len(kept))
        return cls(transposed[kept], positions, factors)

    @property
    def degree(self) -> int:
        """The length of the tuples."""
        return len(self.factors)

    def draw(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw the coordinates level by level, stratified among tuples that began alike."""
        tuples = np.empty((count, self.degree), dtype=np.int32)
        for level, labels, blocks in self._levels(tuples):
            uniforms = stratified_uniforms(streams, f"coordinates {level}", labels)
            for block, weights in blocks:
                mine = (labels >= block.start) & (labels < block.stop)
                cumulative = np.cumsum(weights, axis=0)[:, labels[mine] - block.start]
                tuples[mine, level] = located(cumulative, uniforms[mine])
        kept = np.flatnonzero(self.positions >= 0).astype(np.int32)
        return kept[tuples]

    def probability(self, tuples: Tuples) -> Scaled:
        """Return the product of the conditional probabilities."""
        positions = self.positions[tuples].astype(np.int32)
        possible = (positions >= 0).all(axis=1)
        found = self._possible_probability(positions[possible])
        result = Scaled.of(np.zeros(len(tuples)))
        result.mantissa[possible], result.exponent[possible] = found.mantissa, found.exponent
        return result

    def _possible_probability(self, tuples: Tuples) -> Scaled:
        result = Scaled.of(np.ones(len(tuples)))
        for level, labels, blocks in self._levels(tuples):
            conditional = np.empty(len(tuples))
            for block, weights in blocks:
                mine = (labels >= block.start) & (labels < block.stop)
                local = labels[mine] - block.start
                totals = np.cumsum(weights, axis=0)[-1]
                conditional[mine] = weights[tuples[mine, level], local] / totals[local]
            result = (result * Scaled.of(conditional)).normalised()
        return result

    def _levels(
        self, tuples: Tuples
    ) -> Iterator[tuple[int, Indices, Iterator[tuple[slice, Float64]]]]:
        """Yield every level, a label for each beginning of the tuples, and the labels' weights.

        Tuples are of positions here, and may be filled level by level meanwhile. Beginnings with
        the same coordinates in another order have the same product h.
        """
        labels = np.zeros(len(tuples), dtype=np.int64)
        products = np.ones((1, self.coordinates.shape[1]))
        for level, factor in enumerate(self.factors):
            yield level, labels, self._weights(products, factor)
            beginnings = np.sort(tuples[:, : level + 1], axis=1)
            _, first, following = np.unique(
                beginnings, axis=0, return_index=True, return_inverse=True
            )
            chosen = self.coordinates[tuples[first, level]]
            dense = chosen.toarray() if is_sparse(chosen) else chosen
            products = _near_one(products[labels[first]] * dense)
            labels = following.reshape(-1).astype(np.int64)

    def _weights(self, products: Float64, factor: Float64) -> Iterator[tuple[slice, Float64]]:
        """Yield blocks of labels and the weights of all coordinates, one column for each label."""
        columns, width = self.coordinates.shape[0], factor.shape[1]
        step = max(_BLOCK_ENTRIES // (width * max(columns, len(factor))), 1)
        for start in range(0, len(products), step):
            block = slice(start, min(start + step, len(products)))
            spread = products[block].T[:, :, None] * factor[:, None, :]
            values = routines.product(self.coordinates, spread.reshape(len(factor), -1))
            squares = routines.squared_norms(values.reshape(-1, width))
            weights = squares.reshape(columns, -1)
            weights[:, ~weights.any(axis=0)] = 1.0
            yield block, weights


def _near_one(products: Float64) -> Float64:
    """Divide every row by a power of two near its largest entry."""
    _, exponents = np.frexp(np.max(np.abs(products), axis=1))
    scaled: Float64 = np.ldexp(products, -exponents[:, None])
    return scaled
