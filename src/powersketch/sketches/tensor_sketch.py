"""Degree-two TensorSketch: the circular convolution of two CountSketches."""

from dataclasses import dataclass
from typing import Self

from powersketch import routines
from powersketch.arrays import Real
from powersketch.random_streams import RandomStreams
from powersketch.sketches.operators import check_columns
from powersketch.sketches.scatter import CountSketch


@dataclass(frozen=True, eq=False)
class TensorSketch:
    """S(a ⊗ b) = C₁a ∗ C₂b [PP13]: the CountSketch of a ⊗ b under the sum of the two hashes."""

    length: int
    size: int
    first: CountSketch
    second: CountSketch

    @classmethod
    def draw(cls, streams: RandomStreams, length: int, size: int) -> Self:
        """Sample two independent CountSketches."""
        first = CountSketch.draw(streams.child("first"), length, size)
        second = CountSketch.draw(streams.child("second"), length, size)
        return cls(length, size, first, second)

    def apply(self, A: Real, B: Real, *, threads: int = 1) -> Real:
        """Return S(a ⊗ b) for every pair of rows."""
        check_columns("tensor_sketch", A.shape[1], self.length)
        first, second = self.first.apply(A, threads=threads), self.second.apply(B, threads=threads)
        return routines.convolve(first, second, threads=threads)
