"""Subsampled randomised Hadamard transforms: SRHT of vectors, TensorSRHT of pairs of them."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, padded_length
from powersketch.random_streams import RandomStreams
from powersketch.routines import PairSpec, SrhtSpec
from powersketch.sketches.operators import check_columns, check_sizes


@dataclass(frozen=True, eq=False)
class SRHT:
    """T = P H D / √size (Definition 2.7 of [SWYZ21]), x padded to a power of two."""

    columns: int
    size: int
    spec: SrhtSpec

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample signs and coordinates."""
        # A permutation, and what it is sorted from.
        check_sizes("srht", columns, size, drawn=16 * max(padded_length(columns), size))
        padded, signs = padded_length(columns), streams.signs("signs", columns)
        indices = _coordinates(streams, "rows", padded, size)
        return cls(columns, size, SrhtSpec(signs, indices, padded, 1.0 / math.sqrt(size)))

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x."""
        check_columns("srht", X.shape[1], self.columns)
        return routines.srht(X, self.spec, threads=threads)


@dataclass(frozen=True, eq=False)
class TensorSRHT:
    """S = P (H D₁ × H D₂) / √size (Definition 2.9 of [SWYZ21]) on vectors of up to `length`.

    It is a linear map of a ⊗ b with E⟨S(a⊗b), S(c⊗d)⟩ = ⟨a,c⟩⟨b,d⟩. P samples pairs of coordinates;
    signs and coordinates of the two factors are independent.
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
        spec = PairSpec(
            signs_first=streams.signs("signs_first", padded),
            signs_second=streams.signs("signs_second", padded),
            first=_coordinates(streams, "first", padded, size),
            second=_coordinates(streams, "second", padded, size),
        )
        return cls(length, size, spec)

    def apply(self, A: Real, B: Real, *, threads: int = 1) -> Real:
        """Return S(a ⊗ b) for every pair of rows; missing trailing columns count as zeros."""
        columns = max(A.shape[1], B.shape[1])
        check_columns("tensor_srht", columns, self.length)
        A, B = _widened(A, columns), _widened(B, columns)
        return routines.tensor_srht(A, B, self.spec, threads=threads)


def _coordinates(streams: RandomStreams, name: str, padded: int, size: int) -> NDArray[np.int32]:
    """Sample coordinates, without replacement as far as that goes.

    A sample longer than the padded row is made of whole permutations and a part of one, so that how
    often coordinates occur differs by at most one.
    """
    rounds = range(-(-size // padded))
    samples = [streams.permutation(f"{name}/{i}", padded) for i in rounds]
    return np.concatenate(samples)[:size].astype(np.int32)


def _widened(X: Real, columns: int) -> Real:
    return X if X.shape[1] == columns else np.pad(X, ((0, 0), (0, columns - X.shape[1])))
