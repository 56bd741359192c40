"""The subsampled randomised Hadamard transform, the leaf of choice for dense rows."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from powersketch import routines
from powersketch.arrays import Real, Rows, padded_length
from powersketch.random_streams import RandomStreams
from powersketch.routines import SrhtSpec
from powersketch.sketches.operators import check_columns, check_sizes


@dataclass(frozen=True, eq=False)
class SRHT:
    """T = P H D / √size (Definition 2.7 of [SWYZ21]), x padded to a power of two.

    Coordinates are sampled without replacement as far as that goes: a sample longer than the
    padded row is made of whole permutations and a rest, which keeps every coordinate's share equal.
    """

    columns: int
    size: int
    spec: SrhtSpec

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample signs and coordinates."""
        padded = padded_length(columns)
        # A permutation, and what it is sorted from.
        check_sizes("srht", columns, size, drawn=16 * max(padded, size))
        rounds = -(-size // padded)
        samples = [streams.permutation(f"rows/{i}", padded) for i in range(rounds)]
        spec = SrhtSpec(
            signs=streams.signs("signs", columns),
            indices=np.concatenate(samples)[:size].astype(np.int32),
            padded=padded,
            scale=1.0 / math.sqrt(size),
        )
        return cls(columns, size, spec)

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x."""
        check_columns("srht", X.shape[1], self.columns)
        return routines.srht(X, self.spec, threads=threads)
