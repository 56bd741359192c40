"""TensorSRHT, the pair sketch of the paper's running time."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from powersketch import routines
from powersketch.arrays import Real, padded_length
from powersketch.random_streams import RandomStreams
from powersketch.routines import PairSpec
from powersketch.sketches.operators import check_columns, check_sizes


@dataclass(frozen=True, eq=False)
class TensorSRHT:
    """S = P (H D₁ × H D₂) / √size (Definition 2.9 of [SWYZ21]) on vectors of up to `length`.

    P samples pairs of coordinates; signs and coordinates of the two factors are independent, and
    each factor's coordinates are sampled without replacement as far as that goes.
    """

    length: int
    size: int
    spec: PairSpec

    @classmethod
    def draw(cls, streams: RandomStreams, length: int, size: int) -> Self:
        """Sample signs and pairs of coordinates."""
        padded = padded_length(length)
        # Two permutations, and what the second one is sorted from.
        check_sizes("tensor_srht", length, size, drawn=24 * max(padded, size))
        rounds = range(-(-size // padded))
        sides = [
            np.concatenate([streams.permutation(f"{side}/{i}", padded) for i in rounds])
            for side in ("first", "second")
        ]
        spec = PairSpec(
            signs_first=streams.signs("signs_first", padded),
            signs_second=streams.signs("signs_second", padded),
            first=sides[0][:size].astype(np.int32),
            second=sides[1][:size].astype(np.int32),
        )
        return cls(length, size, spec)

    def apply(self, A: Real, B: Real, *, threads: int = 1) -> Real:
        """Return S(a ⊗ b) for every pair of rows."""
        columns = max(A.shape[1], B.shape[1])
        check_columns("tensor_srht", columns, self.length)
        A, B = _widened(A, columns), _widened(B, columns)
        return routines.tensor_srht(A, B, self.spec, threads=threads)


def _widened(X: Real, columns: int) -> Real:
    return X if X.shape[1] == columns else np.pad(X, ((0, 0), (0, columns - X.shape[1])))
