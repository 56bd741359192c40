"""What every way to sketch powers offers, and the names by which users choose one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows
from powersketch.powers.programs import Slice
from powersketch.random_streams import RandomStreams


@dataclass(frozen=True, eq=False)
class RowFormat:
    """What the rows to come look like."""

    dtype: np.dtype[Any]
    columns: int
    sparse: bool


class BoundPowers(Protocol):
    """A sketch of powers made ready for rows of one format."""

    def apply(
        self,
        X: Rows,
        row_scale: NDArray[np.float64],
        row_shift: NDArray[np.float64] | None,
        block_scales: NDArray[np.float64],
        out: Real,
        threads: int,
    ) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype.

        Powers are taken of u = row_scale · x + row_shift · direction, whose norm is near one.
        Column b of `block_scales` belongs to degree b of `degrees`: it is the norm that every row
        of the block gets if norms are preserved, else the factor of the linear sketch.
        """


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

    def bind(self, rows: RowFormat, direction: NDArray[np.float64] | None) -> BoundPowers:
        """Make the sketch ready for rows of one format and, maybe, a shift along a direction.

        The rows may have fewer columns than the sketch, whose further columns are then reached
        through the direction only.
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
    ) -> Powers:
        """Sample a sketch of the powers in `outputs` of vectors of length `columns`.

        `internal` is the length of intermediate powers, a power of two that is not below any
        slice's stop; `base_sketch` names the leaves.
        """
