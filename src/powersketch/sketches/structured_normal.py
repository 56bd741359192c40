"""Projections onto nearly independent normal vectors, in blocks of orthogonal ones."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from powersketch import routines
from powersketch.arrays import Real, Rows, Vector, padded_length
from powersketch.random_streams import RandomStreams
from powersketch.routines import SorfSpec, orthogonal_scale
from powersketch.sketches.operators import check_columns, check_sizes

# Shorter blocks would have too few signs for their rows to look normal.
_SHORTEST_BLOCK = 64


@dataclass(frozen=True, eq=False)
class StructuredNormal:
    """W x with rows of W that are normal in length and, nearly, in direction [YSCHK16].

    A block of W is H D₃ H D₂ H D₁, orthogonal, times lengths drawn as those of normal vectors.
    Orthogonal rows have less variance in sums over them than independent ones.
    """

    columns: int
    size: int
    spec: SorfSpec

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int, factor: float = 1.0) -> Self:
        """Sample signs and lengths; all entries are multiplied by the factor."""
        # Lengths are drawn for every row, and signs for every coordinate of every block.
        drawn = 16 * size + 3 * max(columns, size)
        check_sizes("a structured normal projection", columns, size, drawn=drawn)
        padded = max(padded_length(columns), _SHORTEST_BLOCK)
        blocks = -(-size // padded)
        signs = streams.signs("signs", 3 * blocks * padded).reshape(blocks, 3, padded)
        last = size - (blocks - 1) * padded
        chosen = np.sort(streams.sample("rows", padded, last)) + (blocks - 1) * padded
        indices = np.concatenate([np.arange((blocks - 1) * padded), chosen])
        lengths = _normal_lengths(streams, padded, size)
        scales = factor * orthogonal_scale(padded) * lengths
        return cls(columns, size, SorfSpec(signs, indices.astype(np.int32), scales))

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return W x for every row x."""
        check_columns("a structured normal projection", X.shape[1], self.columns)
        return routines.sorf(X, self.spec, threads=threads)

    def fourier(self, X: Rows, scale: float, *, threads: int = 1) -> Real:
        """Return scale · cos(2π W x), then scale · sin(2π W x), for every row x."""
        check_columns("a structured normal projection", X.shape[1], self.columns)
        return routines.fourier(X, self.spec, scale, threads=threads)


def _normal_lengths(streams: RandomStreams, dimension: int, count: int) -> Vector:
    """Return lengths of normal vectors: the cube root of the square is nearly normal [WH31]."""
    spread = 2.0 / (9.0 * dimension)
    root = 1.0 - spread + math.sqrt(spread) * streams.normal("lengths", count)
    return math.sqrt(dimension) * np.sqrt(root * root * root)
