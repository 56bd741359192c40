"""What an expansion is: a kernel written as a sum of powers of inner products of affine rows.

k(x, y) = Σ_i f_i(x) f_i(y) + Σ_l s_l(x) s_l(y) ⟨û(x), û(y)⟩^l + …, with û the direction of a row
u(x) = scale(x) · x + shift(x) · direction. The factors f are features by themselves, the powers are
taken exactly or sketched. A second kind of rows, with a direction of its own, may carry further
powers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows


@dataclass(frozen=True, eq=False)
class AffineRows:
    """u = scale · x + shift · direction for every row of a batch; no shift means no direction."""

    scale: NDArray[np.float64]
    shift: NDArray[np.float64] | None
    squared_norms: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Terms:
    """Powers of one kind of affine rows: their ascending degrees and the rows' direction.

    `columns` counts the coordinates of u, which may be more than those of x.
    """

    degrees: tuple[int, ...]
    direction: NDArray[np.float64] | None
    columns: int


class Measured(Protocol):
    """What the expansion knows of the rows of a batch.

    Every amplitude is relative to the row's norm √k(x, x); its sign counts.
    """

    @property
    def norms(self) -> NDArray[np.float64]:
        """Return √k(x, x) of every row."""

    def constants(self) -> list[NDArray[np.float64]]:
        """Return the features of degree 0."""

    def rows(self, part: int) -> AffineRows:
        """Return the affine rows of a part."""

    def amplitudes(self, part: int, degrees: list[int]) -> list[NDArray[np.float64]]:
        """Return s_l of every row for some degrees of a part, ascending."""


@runtime_checkable
class FromSeries(Measured, Protocol):
    """Rows of which the expansion may lack a part, as it stands for an infinite series."""

    @property
    def missing(self) -> NDArray[np.float64]:
        """Return the share of k(x, x) that no degree has."""


class Expansion(Protocol):
    """A kernel's expansion; the powers of the second part, if any, are always sketched."""

    @property
    def name(self) -> str:
        """How users call it."""

    @property
    def parts(self) -> tuple[Terms, ...]:
        """The kinds of affine rows, one or two, and their powers."""

    @property
    def constants(self) -> int:
        """The number of features of degree 0."""

    def measure(self, X: Rows, threads: int) -> Measured:
        """Look at the rows, and refuse those whose features cannot be represented."""
