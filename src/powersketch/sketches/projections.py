"""Projections onto nearly independent normal vectors, and complex ones for products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, Vector
from powersketch.random_streams import RandomStreams
from powersketch.routines import SorfSpec, SrhtSpec, orthogonal_scale
from powersketch.sketches.base_sketches import (
    OSNAP,
    BaseSketch,
    CountSketch,
    check_columns,
    check_sizes,
    padded_length,
)
from powersketch.storable import remembered, storable

# Shorter blocks would have too few signs for their rows to look normal.
_SHORTEST_BLOCK = 64
# Shorter rows have many small blocks: a product with a matrix is faster.
_SHORTEST_HADAMARD = 64
_SCATTER: dict[str, type[OSNAP]] = {"countsketch": CountSketch, "osnap": OSNAP}


@storable
@dataclass(frozen=True, eq=False, repr=False)
class StructuredNormal:
    """W x with rows of W that are normal in length and, nearly, in direction [YSCHK16].

    A block of W is H D₃ H D₂ H D₁, orthogonal, times lengths drawn as those of normal vectors.
    Orthogonal rows have less variance in sums over them than independent ones.
    """

    columns: int
    size: int
    spec: SorfSpec

    @classmethod
    @remembered
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


class ComplexProjection(Protocol):
    """A sampled complex matrix W of `size` rows and `columns` columns."""

    @property
    def columns(self) -> int:
        """The length of the longest row."""

    @property
    def size(self) -> int:
        """The number of complex outputs."""

    def apply(self, X: Rows, *, threads: int = 1) -> tuple[Real, Real]:
        """Return the real and the imaginary parts of W x for every row x.

        Missing trailing columns of X count as zeros.
        """


def complex_projection(
    base_sketch: str, streams: RandomStreams, columns: int, size: int, internal: int
) -> ComplexProjection:
    """Sample a projection in the manner of a base sketch.

    CountSketch and OSNAP are sums of coordinates, which a complex SRHT mixes afterwards; rows that
    fit the internal length need no such sums.
    """
    if base_sketch == "gaussian":
        return ComplexMatrix.normal(streams, columns, size)
    if base_sketch == "rademacher":
        return ComplexMatrix.roots(streams, columns, size)
    if base_sketch in _SCATTER and padded_length(columns) > internal:
        scatter = _SCATTER[base_sketch].draw(streams.child("T"), columns, internal)
        return Composed(scatter, _structured(streams, internal, size))
    return _structured(streams, columns, size)


def _structured(streams: RandomStreams, columns: int, size: int) -> ComplexProjection:
    transform = ComplexSRHT.draw(streams, columns, size)
    if padded_length(columns) < _SHORTEST_HADAMARD:
        return ComplexMatrix.of(transform)
    return transform


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ComplexSRHT:
    """Blocks of rows P H D, x padded to a power of two [WOF23].

    Every block has its own diagonal D of independent fourth roots of unity, and takes rows of H
    without replacement. It takes two transforms: of the coordinates with a real root and of those
    with an imaginary one.

    Attributes
    ----------
    real, imaginary : ndarray of int8, shape (number of blocks, columns)
        The parts of the roots.
    indices : ndarray of int32, shape (size,)
        Which rows of H are taken, block after block.
    """

    columns: int
    size: int
    real: NDArray[np.int8]
    imaginary: NDArray[np.int8]
    indices: NDArray[np.int32]

    @classmethod
    @remembered
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample roots and rows of every block."""
        check_sizes("a complex srht", columns, size, drawn=16 * max(columns, size))
        padded = padded_length(columns)
        blocks = -(-size // padded)
        real, imaginary = (
            part.reshape(blocks, columns) for part in fourth_roots(streams, blocks * columns)
        )
        words = streams.words("rows", blocks * padded).reshape(blocks, padded)
        rows = np.argsort(words, axis=1, kind="stable").reshape(-1)[:size]
        return cls(columns, size, real, imaginary, rows.astype(np.int32))

    @property
    def padded(self) -> int:
        """The number of rows of a whole block."""
        return padded_length(self.columns)

    def apply(self, X: Rows, *, threads: int = 1) -> tuple[Real, Real]:
        """Return the real and the imaginary parts of W x for every row x."""
        check_columns("a complex srht", X.shape[1], self.columns)
        return self._part(X, self.real, threads), self._part(X, self.imaginary, threads)

    def _part(self, X: Rows, roots: NDArray[np.int8], threads: int) -> Real:
        parts = []
        for block, diagonal in enumerate(roots):
            rows = self.indices[block * self.padded : (block + 1) * self.padded]
            spec = SrhtSpec(diagonal, rows, self.padded, 1.0)
            parts.append(routines.srht(X, spec, threads=threads))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ComplexMatrix:
    """W written out; `matrix` holds the transposes of its real and its imaginary part."""

    columns: int
    size: int
    matrix: Float64 | NDArray[np.int8]

    @classmethod
    @remembered
    def normal(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample independent complex normal entries of variance one."""
        check_sizes("a complex gaussian", columns, size, drawn=32 * columns * size)
        entries = streams.normal("entries", 2 * columns * size).reshape(columns, 2 * size)
        return cls(columns, size, entries * math.sqrt(0.5))

    @classmethod
    @remembered
    def roots(cls, streams: RandomStreams, columns: int, size: int) -> Self:
        """Sample independent entries from the fourth roots of unity."""
        check_sizes("a complex rademacher", columns, size, drawn=2 * columns * size)
        parts = fourth_roots(streams.child("roots"), columns * size)
        shaped = [part.reshape(columns, size) for part in parts]
        return cls(columns, size, np.concatenate(shaped, axis=1))

    @classmethod
    @remembered
    def of(cls, transform: ComplexSRHT) -> Self:
        """Write out an SRHT, whose entries are fourth roots of unity."""
        hadamard = routines.fwht(np.eye(transform.padded), transform.padded).astype(np.int8)
        rows = hadamard[transform.indices, : transform.columns]
        block = np.arange(transform.size) // transform.padded
        parts = [rows * roots[block] for roots in (transform.real, transform.imaginary)]
        matrix = np.ascontiguousarray(np.concatenate(parts).T)
        return cls(transform.columns, transform.size, matrix)

    def apply(self, X: Rows, *, threads: int = 1) -> tuple[Real, Real]:
        """Return the real and the imaginary parts of W x for every row x."""
        check_columns("a complex matrix", X.shape[1], self.columns)
        matrix = self.matrix[: X.shape[1]].astype(X.dtype, copy=False)
        parts = routines.product(X, matrix, threads=threads)
        return parts[:, : self.size], parts[:, self.size :]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class Composed:
    """W T of a base sketch T and a projection W of its outputs."""

    base: BaseSketch
    projection: ComplexProjection

    @property
    def columns(self) -> int:
        """The length of the longest row."""
        return self.base.columns

    @property
    def size(self) -> int:
        """The number of complex outputs."""
        return self.projection.size

    def apply(self, X: Rows, *, threads: int = 1) -> tuple[Real, Real]:
        """Return the real and the imaginary parts of W T x for every row x."""
        return self.projection.apply(self.base.apply(X, threads=threads), threads=threads)


def fourth_roots(streams: RandomStreams, count: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return the real and the imaginary parts of independent draws from {1, i, −1, −i}."""
    first, second = streams.signs("first", count), streams.signs("second", count)
    return (first + second) // 2, (first - second) // 2
