"""Probability laws of index tuples, from which monomials of a power are drawn.

A law draws tuples I = (i₁, …, i_q) of coordinates and tells the probability of any tuple. Weights
1 / p_I, with the probability that was really used, make every sample unbiased, however poor the
law is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Rows, Vector, is_sparse, slices
from powersketch.powers.scaled_numbers import Scaled
from powersketch.random_streams import RandomStreams

Indices: TypeAlias = NDArray[np.int64]
Tuples: TypeAlias = NDArray[np.int32]

_BLOCK_ENTRIES = 1 << 20
_PLAIN_FACTORS = (
    16  # the product of so many of the smallest conditional probabilities is no underflow
)
_FLOOR = 1e-3  # share of the law that makes every coordinate possible, in that of every row


class TupleLaw(Protocol):
    """A probability law on all tuples of one length."""

    def draw(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw tuples, each by the law; stratified, so not independent of each other."""

    def probability(self, tuples: Tuples) -> Scaled:
        """Return the probability of every tuple."""


@dataclass(frozen=True, eq=False, repr=False)
class MixedLaw:
    """A fixed share of the draws by one law, the rest by another."""

    first: TupleLaw
    second: TupleLaw
    share: float  # of the second

    def draw_with_probabilities(self, streams: RandomStreams, count: int) -> tuple[Tuples, Scaled]:
        """Draw tuples in random order, and return the probabilities they were drawn with.

        These are those of the mixture with the shares that the draws really have. Then the draws'
        inverse probabilities are unbiased in sum, and the order makes them exchangeable.
        """
        tuples = self.draw(streams, count)
        return tuples, self.probability(tuples, self._second_count(count) / count)

    def draw(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw the tuples alone."""
        second_count = self._second_count(count)
        parts = [
            law.draw(streams.child(name), part)
            for law, name, part in (
                (self.first, "first", count - second_count),
                (self.second, "second", second_count),
            )
            if part
        ]
        return np.concatenate(parts)[streams.permutation("order", count)]

    def _second_count(self, count: int) -> int:
        return math.ceil(self.share * count)

    def probability(self, tuples: Tuples, share: float | None = None) -> Scaled:
        """Return the probability of every tuple if that share of the draws is by the second."""
        share = self.share if share is None else share
        parts = [
            (Scaled.of(np.array(part)) * law.probability(tuples))[None]
            for law, part in ((self.first, 1.0 - share), (self.second, share))
            if part > 0.0
        ]
        return Scaled.concatenate(parts).sum()


@dataclass(frozen=True, eq=False, repr=False)
class LeverageLaw:
    """Coordinates one after the other, i_k ∝ ‖X[:, i] (h ∘ V_k)‖² with h the product so far.

    V_k stands for the matrix V_k V_kᵀ of all that is left; if this is (K + λI)⁻¹ ∘ G^∘(q − k), then
    tuples are drawn by their ridge leverage scores [WZ20]. Columns of zeros are never drawn. Where
    all weights are zero, coordinates are drawn uniformly: probabilities always add up to one.

    `coordinates` is X transposed without its columns of zeros, and `positions` tells which of its
    rows belongs to a column of X: −1 for columns of zeros.
    """

    coordinates: Rows
    positions: Indices
    factors: Sequence[Float64]

    @classmethod
    def of(cls, X: Rows, factors: Sequence[Float64]) -> LeverageLaw:
        """Return the law on the columns of X that are not zero."""
        transposed = X.T.tocsr() if is_sparse(X) else np.ascontiguousarray(X.T)
        kept = np.flatnonzero(routines.squared_norms(transposed))
        positions = np.full(X.shape[1], -1)
        positions[kept] = np.arange(len(kept))
        return cls(transposed[kept], positions, factors)

    def draw(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw the coordinates level by level, stratified among tuples that began alike."""
        tuples = np.empty((count, len(self.factors)), dtype=np.int32)
        for level, labels, blocks in self._levels(tuples):
            uniforms = stratified_uniforms(streams, f"coordinates {level}", labels)
            for block, weights in blocks:
                members = (labels >= block.start) & (labels < block.stop)
                cumulative = np.cumsum(weights, axis=0)[:, labels[members] - block.start]
                tuples[members, level] = located(cumulative, uniforms[members])
        kept = np.flatnonzero(self.positions >= 0).astype(np.int32)
        return kept[tuples]

    def probability(self, tuples: Tuples) -> Scaled:
        """Return the product of the conditional probabilities."""
        positions = self.positions[tuples].astype(np.int32)
        possible = (positions >= 0).all(axis=1)
        probabilities = self._possible_probability(positions[possible])
        mantissa, exponent = np.zeros(len(tuples)), np.zeros(len(tuples), dtype=np.int64)
        mantissa[possible] = probabilities.mantissa
        exponent[possible] = probabilities.exponent
        return Scaled(mantissa, exponent)

    def _possible_probability(self, tuples: Tuples) -> Scaled:
        result = Scaled.of(np.ones(len(tuples)))
        for level, labels, blocks in self._levels(tuples):
            conditional = np.empty(len(tuples))
            for block, weights in blocks:
                members = (labels >= block.start) & (labels < block.stop)
                columns = labels[members] - block.start
                totals = np.cumsum(weights, axis=0)[-1]
                conditional[members] = weights[tuples[members, level], columns] / totals[columns]
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
            last = self.coordinates[tuples[first, level]]
            dense = last.toarray() if is_sparse(last) else last
            products = _near_one(products[labels[first]] * dense)
            labels = following.reshape(-1).astype(np.int64)

    def _weights(self, products: Float64, factor: Float64) -> Iterator[tuple[slice, Float64]]:
        """Yield blocks of labels and the weights of all coordinates, one column for each label."""
        columns, width = self.coordinates.shape[0], factor.shape[1]
        step = max(_BLOCK_ENTRIES // (width * max(columns, len(factor))), 1)
        for block in slices(len(products), step):
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


@dataclass(frozen=True, eq=False, repr=False)
class RowLaw:
    """A row a of the data by `shares`, then each coordinate of the tuple by its square in row a.

    With shares in proportion to ‖x_a‖^2q this is p_I ∝ Σ_a φ_I(a)², the features' squared
    norms. A small part of every draw is by `floor`, so that no tuple is impossible.
    """

    squares: Rows  # of the entries, every row divided by its sum
    shares: Vector
    floor: Vector
    degree: int

    @classmethod
    def by_norms(cls, X: Rows, degree: int) -> RowLaw:
        """Return the law of the squared norms, of rows other than zero and of norms up to one."""
        squares = X.multiply(X).tocsr() if is_sparse(X) else X * X
        sums = routines.squared_norms(X)
        if is_sparse(X):
            squares.data /= np.repeat(sums, np.diff(squares.indptr))
        else:
            squares /= sums[:, None]
        shares = Scaled.of(sums).power(degree).to_float()
        uniform = np.full(X.shape[1], 1.0 / X.shape[1])
        equal = np.full((X.shape[0], 1), 1.0 / X.shape[0])
        transposed = squares.T.tocsr() if is_sparse(X) else np.ascontiguousarray(squares.T)
        energies = routines.product(transposed, equal)[:, 0]
        return cls(squares, shares / np.cumsum(shares)[-1], 0.5 * (energies + uniform), degree)

    def draw(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw the rows systematically, and the coordinates stratified within each row."""
        same_label = np.zeros(count, dtype=np.int64)
        rows = located(np.cumsum(self.shares), stratified_uniforms(streams, "rows", same_label))
        tuples = np.empty((count, self.degree), dtype=np.int32)
        uniforms = np.empty((count, self.degree))
        for level in range(self.degree):
            uniforms[:, level] = stratified_uniforms(streams, f"coordinates {level}", rows)
        by_floor = uniforms >= 1.0 - _FLOOR
        for row in np.unique(rows):
            of_row = rows == row
            tuples[of_row] = self._located_in_row(int(row), uniforms[of_row] / (1.0 - _FLOOR))
        rest = (uniforms[by_floor] - (1.0 - _FLOOR)) / _FLOOR
        tuples[by_floor] = located(np.cumsum(self.floor), rest)
        return tuples

    def _located_in_row(self, row: int, uniforms: Float64) -> Indices:
        """Return coordinates drawn by their squares in the row."""
        if not is_sparse(self.squares):
            return located(np.cumsum(self.squares[row]), uniforms)
        entries = slice(*self.squares.indptr[row : row + 2])
        coordinates: Indices = self.squares.indices[entries]
        return coordinates[located(np.cumsum(self.squares.data[entries]), uniforms)]

    def probability(self, tuples: Tuples) -> Scaled:
        """Return Σ_a shares[a] Π_k law_a(i_k), summed over the rows in their order."""
        coordinates, places = np.unique(tuples, return_inverse=True)
        places = places.reshape(tuples.shape)
        squares = self.squares[:, coordinates]
        dense = squares.toarray() if is_sparse(squares) else squares
        laws = (1.0 - _FLOOR) * dense + _FLOOR * self.floor[coordinates]
        parts = slices(len(tuples), max(_BLOCK_ENTRIES // len(self.shares), 1))
        return Scaled.concatenate([self._part_probability(laws, places[part]) for part in parts])

    def _part_probability(self, laws: Float64, places: Indices) -> Scaled:
        mantissa = np.repeat(self.shares[:, None], len(places), axis=1)
        exponent = np.zeros(mantissa.shape, dtype=np.int64)
        for level in range(self.degree):
            mantissa *= laws[:, places[:, level]]
            if level % _PLAIN_FACTORS == _PLAIN_FACTORS - 1:
                mantissa, shift = np.frexp(mantissa)
                exponent += shift
        return Scaled(mantissa, exponent).sum()


def stratified_uniforms(streams: RandomStreams, name: str, labels: Indices) -> Vector:
    """Return numbers uniform on [0, 1), spread evenly among those of the same label.

    Of c numbers with one label, each lies in another c-th of the interval, at the same place. Which
    one lies where is random, so that each number by itself is uniform.
    """
    ranks = streams.words(f"{name} ranks", len(labels))
    order = np.lexsort((ranks, labels))
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    places = np.empty(len(labels))
    places[order] = np.arange(len(labels)) - starts[labels[order]]
    offsets = streams.uniforms(f"{name} offsets", len(counts))
    return (places + offsets[labels]) / counts[labels]


def located(cumulative: Float64, uniforms: Float64) -> Indices:
    """Return the first position whose cumulative weight exceeds the uniform part of the total.

    The cumulative weights lie along the first axis, one column for all uniforms or one for each.
    """
    total = cumulative[-1]
    if cumulative.ndim == 1:
        last = np.searchsorted(cumulative, total, side="left")
        position = np.searchsorted(cumulative, uniforms * total, side="right")
    else:
        last = np.sum(cumulative < total, axis=0)
        position = np.sum(cumulative <= uniforms * total, axis=0)
    # A uniform number next to one may be rounded up to the total.
    positions: Indices = np.minimum(position, last)
    return positions
