"""The dense projection of random signs: slow, with the least variance of dense projections."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows
from powersketch.random_streams import RandomStreams
from powersketch.sketches.operators import check_columns, check_sizes


@dataclass(frozen=True, eq=False)
class Rademacher:
    """T with independent entries ±1 / √size [Ach03]; `signs` holds its transpose, unscaled."""

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
        signed = routines.product(X, self.signs[: X.shape[1]].astype(X.dtype), threads=threads)
        signed *= signed.dtype.type(1.0 / math.sqrt(self.size))
        return signed
