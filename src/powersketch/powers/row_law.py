"""Index tuples drawn by the squared norms of the features that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Rows, is_sparse
from powersketch.powers.scaled_numbers import Scaled
from powersketch.powers.stratified_draws import (
    concatenated,
    located,
    stratified_uniforms,
    sum_of_scaled,
)
from powersketch.random_streams import RandomStreams

Float64: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Tuples: TypeAlias = NDArray[np.int32]

_BLOCK_ENTRIES = 1 << 20
_PLAIN_FACTORS = 16  # so many of the smallest conditional probabilities are no underflow
_FLOOR = 1e-3  # share of the coordinates' own law in that of every row


@dataclass(frozen=True, eq=False)
class RowLaw:
    """A row a of the data by `shares`, then each coordinate of the tuple by its square in row a.

    With shares in proportion to ‖x_a‖^2q this is p_I ∝ Σ_a φ_I(a)², the features' squared
    norms. A small part of every draw is by `floor`, so that no tuple is impossible.
    """

    squares: Rows  # of the entries, every row divided by its sum
    shares: Float64
    floor: Float64
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
        cumulative = np.cumsum(self.shares)
        same = np.zeros(count, dtype=np.int64)
        rows = located(cumulative, stratified_uniforms(streams, "rows", same))
        tuples = np.empty((count, self.degree), dtype=np.int32)
        uniforms = np.empty((count, self.degree))
        for level in range(self.degree):
            uniforms[:, level] = stratified_uniforms(streams, f"coordinates {level}", rows)
        by_floor = uniforms >= 1.0 - _FLOOR
        for row in np.unique(rows):
            mine = rows == row
            tuples[mine] = self._of_row(int(row), uniforms[mine] / (1.0 - _FLOOR))
        rest = (uniforms[by_floor] - (1.0 - _FLOOR)) / _FLOOR
        tuples[by_floor] = located(np.cumsum(self.floor), rest)
        return tuples

    def _of_row(self, row: int, uniforms: Float64) -> Indices:
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
        step = max(_BLOCK_ENTRIES // len(self.shares), 1)
        blocks = [
            self._block_probability(laws, places[start : start + step])
            for start in range(0, len(tuples), step)
        ]
        return concatenated(blocks)

    def _block_probability(self, laws: Float64, places: Indices) -> Scaled:
        mantissa = np.repeat(self.shares[:, None], len(places), axis=1)
        exponent = np.zeros(mantissa.shape, dtype=np.int64)
        for level in range(self.degree):
            mantissa *= laws[:, places[:, level]]
            if level % _PLAIN_FACTORS == _PLAIN_FACTORS - 1:
                mantissa, shift = np.frexp(mantissa)
                exponent += shift
        return sum_of_scaled(Scaled(mantissa, exponent))
