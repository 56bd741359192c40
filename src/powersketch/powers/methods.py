"""What all ways to sketch powers share: interface, options, rows, and a cache of preparations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse, scaled_rows
from powersketch.random_streams import RandomStreams
from powersketch.routines import Chain
from powersketch.storable import storable

Prepared = TypeVar("Prepared")

_ORDINARY_EXPONENT = 60  # scales of such exponents leave the range of no dtype
# Both a power of two and its inverse are in the range of the dtype.
_LARGEST_EXPONENT = {np.dtype(np.float32): 120, np.dtype(np.float64): 1000}


@storable
@dataclass(frozen=True)
class Slice:
    """Rows start … start + size of S, written at output column `offset`."""

    start: int
    size: int
    offset: int

    @property
    def columns(self) -> slice:
        """The output columns."""
        return slice(self.offset, self.offset + self.size)


Outputs: TypeAlias = Mapping[int, Slice]
"""The features of every degree."""


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PowerOptions:
    """How a sketch of powers is drawn.

    Attributes
    ----------
    internal : int
        The length of intermediate powers, a power of two that is not below any slice's stop.
    base_sketch : str
        The name of the leaves T.
    preserve_norms : bool
        Whether every power is rescaled to its exact norm.
    direction : ndarray or None
        What rows can be shifted along.
    method : str
        The name of the method.
    """

    internal: int
    base_sketch: str
    preserve_norms: bool
    direction: Vector | None = None
    method: str = "power"


@dataclass(frozen=True, eq=False, repr=False)
class ShiftedRows:
    """The vectors u = scale · x + shift · direction, whose norms are near one, for all rows x.

    The direction belongs to the sketch. X may have fewer columns than it: the further columns are
    then reached through the direction only.
    """

    X: Rows
    scale: Vector
    shift: Vector | None = None

    def __getitem__(self, part: slice) -> ShiftedRows:
        shift = None if self.shift is None else self.shift[part]
        return ShiftedRows(self.X[part], self.scale[part], shift)

    def within_range(self) -> ShiftedRows:
        """Return the same vectors, extreme scales moved into X."""
        power = extreme_power(self.scale, self.X.dtype)
        if power is None:
            return self
        return ShiftedRows(scaled_rows(self.X, power), self.scale / power, self.shift)


def extreme_power(scale: Vector, dtype: np.dtype[Any]) -> Vector | None:
    """Return powers of two near scales that, or unscaled sums before them, might leave the dtype.

    Other rows get one; None says that all do. Multiplying by powers of two is exact: the bits of a
    row do not depend on whether it was done.
    """
    _, exponent = np.frexp(scale)
    size = np.abs(exponent)
    if size.max(initial=0) <= _ORDINARY_EXPONENT:
        return None
    limit = _LARGEST_EXPONENT[dtype]
    return np.ldexp(1.0, np.where(size > _ORDINARY_EXPONENT, np.clip(exponent, -limit, limit), 0))


def to_one(largest: Real, dtype: np.dtype[Any]) -> tuple[Vector, NDArray[np.int64]]:
    """Return powers of two that bring numbers into [½, 1), and the exponents they take away."""
    limit = _LARGEST_EXPONENT[dtype]
    exponent = np.clip(np.frexp(largest)[1], -limit, limit)
    return np.ldexp(1.0, -exponent), exponent.astype(np.int64)


class FormatCache(dict[tuple[str, int, bool], Prepared]):
    """What a sketch has prepared for each format of rows it met; pickles and copies start empty."""

    def of(self, X: Rows, prepare: Callable[[Rows], Prepared]) -> Prepared:
        """Return what `prepare` gives for rows of this dtype and length, dense or sparse."""
        key = (X.dtype.char, X.shape[1], is_sparse(X))
        if key not in self:
            self[key] = prepare(X)
        return self[key]

    def __reduce__(self) -> tuple[type[FormatCache[Prepared]], tuple[()]]:
        return type(self), ()


class Powers(Protocol):
    """A drawn sketch of some powers u^⊗l, each in a slice of the output's columns."""

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in the order of the columns of the block scales."""

    @property
    def preserve_norms(self) -> bool:
        """Whether every power is rescaled to its exact norm."""

    def literal_factor(self, degree: int) -> float:
        """Return the factor with which a degree's block, its norms not preserved, is unbiased."""

    def write(self, rows: ShiftedRows, block_scales: Float64, out: Real, threads: int) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype.

        Column b of `block_scales` belongs to degree b of `degrees`: it is the norm that every row
        of the block gets if norms are preserved, else the factor of the linear sketch.
        """


class CompiledPowers(ABC):
    """Powers that a compiled routine writes, prepared once for each format of rows."""

    _compiled: FormatCache[Chain]

    @abstractmethod
    def _prepare(self, X: Rows) -> Chain:
        """Return what writes the features of rows of this format."""

    def write(self, rows: ShiftedRows, block_scales: Float64, out: Real, threads: int) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype."""
        rows = rows.within_range()
        scale = np.ascontiguousarray(rows.scale, out.dtype)
        # No shift is an empty array.
        shift = np.ascontiguousarray([] if rows.shift is None else rows.shift, out.dtype)
        compiled = self._compiled.of(rows.X, self._prepare)
        return compiled.apply(
            rows.X, scale, shift, np.ascontiguousarray(block_scales), out, threads
        )


class PowerMethod(Protocol):
    """A class of such sketches."""

    def draw(
        self, streams: RandomStreams, columns: int, outputs: Outputs, options: PowerOptions
    ) -> Powers:
        """Sample a sketch of the powers in `outputs` of vectors of length `columns`."""
