"""What every way to sketch powers offers, and the names by which users choose one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse
from powersketch.powers.programs import Slice
from powersketch.random_streams import RandomStreams

Prepared = TypeVar("Prepared")


class FormatCache(Generic[Prepared]):
    """What a sketch has prepared for each format of rows it met; pickles and copies start empty."""

    def __init__(self) -> None:
        self._prepared: dict[tuple[str, int, bool], Prepared] = {}

    def get(self, X: Rows, prepare: Callable[[Rows], Prepared]) -> Prepared:
        """Return what `prepare` gives for rows of this dtype and length, dense or sparse."""
        key = (X.dtype.char, X.shape[1], is_sparse(X))
        if key not in self._prepared:
            self._prepared[key] = prepare(X)
        return self._prepared[key]

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

    def write(
        self,
        X: Rows,
        row_scale: Vector,
        row_shift: Vector | None,
        block_scales: Float64,
        out: Real,
        threads: int,
    ) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype.

        Powers are taken of u = row_scale · x + row_shift · direction, whose norm is near one. The
        rows may have fewer columns than the sketch, whose further columns are then reached through
        the direction only. Column b of `block_scales` belongs to degree b of `degrees`: it is the
        norm that every row of the block gets if norms are preserved, else the factor of the linear
        sketch.
        """


class PowerMethod(Protocol):
    """A class of such sketches."""

    def draw(
        self,
        streams: RandomStreams,
        columns: int,
        outputs: Mapping[int, Slice],
        *,
        internal: int,
        base_sketch: str,
        preserve_norms: bool,
        direction: Vector | None = None,
    ) -> Powers:
        """Sample a sketch of the powers in `outputs` of vectors of length `columns`.

        `internal` is the length of intermediate powers, a power of two that is not below any
        slice's stop; `base_sketch` names the leaves; rows can be shifted along the `direction`.
        """
