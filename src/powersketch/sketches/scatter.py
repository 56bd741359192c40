"""CountSketch and OSNAP: signed sums in time proportional to the non-zero entries."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows
from powersketch.random_streams import RandomStreams
from powersketch.routines import ScatterSpec, hashed_table
from powersketch.sketches.operators import check_columns, check_sizes


@dataclass(frozen=True, eq=False)
class OSNAP:
    """Every coordinate goes, with random signs, to one bucket in each of a few bands [NN13]."""

    columns: int
    size: int
    spec: ScatterSpec

    copies: ClassVar[int] = 4

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample the key of the hash; if there are fewer outputs than copies, as many as fit."""
        drawn = 8 * columns * min(cls.copies, size)
        check_sizes("a scatter sketch", columns, size, drawn=drawn)
        key, sparsity = streams.key("hash"), min(cls.copies, size)
        table = hashed_table(key, columns, size, sparsity)
        return cls(columns, size, ScatterSpec(table, size, 1.0 / math.sqrt(sparsity), key))

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x."""
        check_columns("a scatter sketch", X.shape[1], self.columns)
        return routines.scatter(X, self.spec, threads=threads)


class CountSketch(OSNAP):
    """Every coordinate goes to one bucket with a random sign [CCF02]: OSNAP with one copy."""

    copies: ClassVar[int] = 1

    @classmethod
    def keeping(
        cls, streams: RandomStreams, columns: int, kept: NDArray[np.int64], shared: int
    ) -> Self:
        """Give each coordinate in `kept` its own bucket, in order; the rest share others.

        The first len(kept) outputs are then those coordinates themselves.
        """
        size = len(kept) + shared
        check_sizes("a scatter sketch", columns, size)
        table = np.zeros((columns, 1), dtype=np.int32)
        rest = np.setdiff1d(np.arange(columns), kept)
        if len(rest):
            check_sizes("the shared part of a scatter sketch", len(rest), shared)
            hashed = hashed_table(streams.key("hash"), columns, shared, 1)
            table[rest] = hashed[rest] + 2 * len(kept)
        table[kept, 0] = 2 * np.arange(len(kept))
        return cls(columns, size, ScatterSpec(table, size, 1.0))
