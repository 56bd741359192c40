"""Base sketches T: SRHT, CountSketch, OSNAP, dense projections; and the pair sketch TensorSRHT."""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import LARGEST_LENGTH, Float64, Real, Rows
from powersketch.exceptions import InputError
from powersketch.execution import check_fits_memory
from powersketch.random_streams import RandomStreams
from powersketch.routines import PairSpec, ScatterSpec, SrhtSpec, hashed_table
from powersketch.storable import remembered, storable

_FEWER_COMPONENTS = "choose a smaller n_components or internal_components"


class BaseSketch(Protocol):
    """A sampled linear map T: R^columns → R^size with E‖Tx‖² = ‖x‖²."""

    @property
    def columns(self) -> int:
        """The length of the longest row."""

    @property
    def size(self) -> int:
        """The number of outputs."""

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample an operator."""

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x; missing trailing columns of X count as zeros."""


def padded_length(columns: int) -> int:
    """Return the length that rows are padded to for a Hadamard transform, a power of two.

    >>> padded_length(5), padded_length(8)
    (8, 8)
    """
    return 1 << max(columns - 1, 0).bit_length()


def check_sizes(kind: str, inputs: int, size: int, drawn: int = 0) -> None:
    """Refuse operators without input or output, and those too large for an index or for memory.

    Drawing takes at least `drawn` bytes.
    """
    if inputs < 1 or size < 1:
        raise InputError(
            f"{kind} maps {inputs} coordinates to {size}: both must be at least 1; "
            "give data with at least one feature and ask for at least one component."
        )
    if size > LARGEST_LENGTH:
        raise InputError(
            f"{kind} would have {size} outputs; allowed are at most {LARGEST_LENGTH}: "
            f"{_FEWER_COMPONENTS}."
        )
    check_fits_memory(f"{kind} from {inputs} coordinates to {size}", drawn, _FEWER_COMPONENTS)


def check_columns(kind: str, given: int, columns: int) -> None:
    """Refuse rows longer than the operator's domain."""
    if given > columns:
        raise InputError(
            f"{kind} was drawn for rows of up to {columns} coordinates, got {given}: "
            "draw it with more columns."
        )


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SRHT:
    """T = P H D / √size (Definition 2.7 of [SWYZ21]), x padded to a power of two."""

    columns: int
    size: int
    spec: SrhtSpec

    @classmethod
    @remembered
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample signs and coordinates."""
        padded = padded_length(columns)
        # A permutation, and what it is sorted from.
        check_sizes("srht", columns, size, drawn=16 * max(padded, size))
        signs, indices = streams.signs("signs", columns), streams.coordinates("rows", padded, size)
        return cls(columns, size, SrhtSpec(signs, indices, padded, 1.0 / math.sqrt(size)))

    def apply(self, X: Rows, *, threads: int = 1) -> Real:
        """Return T x for every row x."""
        check_columns("srht", X.shape[1], self.columns)
        return routines.srht(X, self.spec, threads=threads)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TensorSRHT:
    """S = P (H D₁ × H D₂) / √size (Definition 2.9 of [SWYZ21]) on vectors of up to `length`.

    It is a linear map of a ⊗ b with E⟨S(a⊗b), S(c⊗d)⟩ = ⟨a,c⟩⟨b,d⟩. P samples pairs of coordinates;
    signs and coordinates of the two factors are independent.
    """

    length: int
    size: int
    spec: PairSpec

    @classmethod
    @remembered
    def draw(cls, streams: RandomStreams, length: int, size: int) -> Self:
        """Sample signs and pairs of coordinates."""
        padded = padded_length(length)
        # Two permutations, and what the second one is sorted from.
        check_sizes("tensor_srht", length, size, drawn=24 * max(padded, size))
        spec = PairSpec(
            signs_first=streams.signs("signs_first", padded),
            signs_second=streams.signs("signs_second", padded),
            first=streams.coordinates("first", padded, size),
            second=streams.coordinates("second", padded, size),
        )
        return cls(length, size, spec)

    @classmethod
    def untouched(cls, length: int) -> Self:
        """Return the pair sketch that takes the product of equal coordinates, without signs."""
        check_sizes("a pair sketch", length, length, drawn=10 * length)
        ones, positions = np.ones(length, dtype=np.int8), np.arange(length, dtype=np.int32)
        return cls(length, length, PairSpec(ones, ones, positions, positions))

    def apply(self, A: Real, B: Real, *, threads: int = 1) -> Real:
        """Return S(a ⊗ b) for every pair of rows; missing trailing columns count as zeros."""
        columns = max(A.shape[1], B.shape[1])
        check_columns("tensor_srht", columns, self.length)
        A, B = _widened(A, columns), _widened(B, columns)
        return routines.tensor_srht(A, B, self.spec, threads=threads)


def _widened(X: Real, columns: int) -> Real:
    return X if X.shape[1] == columns else np.pad(X, ((0, 0), (0, columns - X.shape[1])))


@storable
@dataclass(frozen=True, eq=False, repr=False)
class OSNAP:
    """Every coordinate goes, with random signs, to one bucket in each of a few bands [NN13]."""

    columns: int
    size: int
    spec: ScatterSpec

    copies: ClassVar[int] = 4

    @classmethod
    @remembered
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


@storable
class CountSketch(OSNAP):
    """Every coordinate goes to one bucket with a random sign [CCF02]: OSNAP with one copy."""

    copies: ClassVar[int] = 1

    @classmethod
    @remembered
    def keeping(
        cls, streams: RandomStreams, columns: int, kept: NDArray[np.int64], shared: int
    ) -> Self:
        """Give each coordinate in `kept` its own bucket, in order; the rest share others.

        The first len(kept) outputs are then those coordinates themselves.
        """
        size = len(kept) + shared
        check_sizes("a scatter sketch", columns, size, drawn=16 * columns)
        table = np.zeros((columns, 1), dtype=np.int32)
        rest = np.setdiff1d(np.arange(columns), kept)
        if len(rest):
            check_sizes("the shared part of a scatter sketch", len(rest), shared)
            hashed = hashed_table(streams.key("hash"), columns, shared, 1)
            table[rest] = hashed[rest] + 2 * len(kept)
        table[kept, 0] = 2 * np.arange(len(kept))
        return cls(columns, size, ScatterSpec(table, size, 1.0))


@storable
@dataclass(frozen=True, eq=False, repr=False)
class GaussianProjection:
    """T with independent normal entries of variance 1 / size; `matrix` holds its transpose."""

    columns: int
    size: int
    matrix: Float64

    @classmethod
    @remembered
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


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Rademacher:
    """T with independent entries ±1 / √size [Ach03]; `signs` holds its transpose, unscaled.

    Of all dense projections with independent entries, it has the least variance.
    """

    columns: int
    size: int
    signs: NDArray[np.int8]

    @classmethod
    @remembered
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
