"""Dense projections, slow: of normal entries, the yardstick of the others, and of random signs."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows
from powersketch.random_streams import RandomStreams
from powersketch.sketches.operators import check_columns, check_sizes


@dataclass(frozen=True, eq=False)
class GaussianProjection:
    """T with independent normal entries of variance 1 / size; `matrix` holds its transpose."""

    columns: int
    size: int
    matrix: Float64

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample the matrix."""
        check_sizes("gaussian", columns, size, drawn=16 * columns * size)
        entries = streams.normal("entries", columns * size).reshape(columns, size)
        return cls(columns, size, entries / math.sqrt(size))

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x."""
        check_columns("gaussian", X.shape[1], self.columns)
        matrix = self.matrix[: X.shape[1]].astype(X.dtype, copy=False)
        return routines.product(X, matrix, threads=threads)


@dataclass(frozen=True, eq=False)
class Rademacher:
    """T with independent entries ±1 / √size [Ach03]; `signs` holds its transpose, unscaled.

    Of all dense projections with independent entries, it has the least variance.
    """

    columns: int
    size: int
    signs: NDArray[np.int8]

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample the signs."""
        check_sizes("rademacher", columns, size, drawn=columns * size)
        return cls(columns, size, streams.signs("signs", columns * size).reshape(columns, size))

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x."""
        check_columns("rademacher", X.shape[1], self.columns)
        sums = routines.product(X, self.signs[: X.shape[1]].astype(X.dtype), threads=threads)
        sums *= sums.dtype.type(1.0 / math.sqrt(self.size))
        return sums
