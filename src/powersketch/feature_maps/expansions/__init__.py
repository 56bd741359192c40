"""What an expansion is: a kernel written as a sum of powers of inner products of affine rows.

k(x, y) = Σ_i f_i(x) f_i(y) + Σ_l s_l(x) s_l(y) ⟨û(x), û(y)⟩^l + …, with û the direction of a row
u(x) = scale(x) · x + shift(x) · direction. The factors f are features by themselves, the powers are
taken exactly or sketched. A second kind of rows, with a direction of its own, may carry further
powers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Rows, Vector
from powersketch.feature_maps.rows import near_one_factors
from powersketch.powers import Scaled, ShiftedRows


@dataclass(frozen=True, eq=False, repr=False)
class AffineRows:
    """u = scale · x + shift · direction for every row of a batch; no shift means no direction."""

    scale: Vector
    shift: Vector | None
    squared_norms: Vector

    def near_one(self, X: Rows) -> tuple[ShiftedRows, NDArray[np.int64]]:
        """Return the rows u times 2^−e, their norms near one, and the exponents e."""
        unit, exponents = near_one_factors(self.squared_norms)
        shift = None if self.shift is None else self.shift * unit
        return ShiftedRows(X, self.scale * unit, shift), exponents


@dataclass(frozen=True, eq=False, repr=False)
class Terms:
    """Powers of one kind of affine rows: their ascending degrees and the rows' direction.

    `columns` counts the coordinates of u, which may be more than those of x.
    """

    degrees: tuple[int, ...]
    direction: Vector | None
    columns: int


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """What an expansion knows of the rows of a batch.

    Amplitudes are relative to the row's norm √k(x, x); their signs count.

    Attributes
    ----------
    norms : ndarray of shape (rows,)
        √k(x, x).
    constants : ndarray of shape (constants, rows)
        The amplitudes of the features of degree 0.
    rows : tuple of AffineRows
        Those of every part of the expansion.
    amplitudes : callable
        Returns s_l for a part and some of its degrees, ascending; an array of shape
        (degrees, rows).
    missing : ndarray of shape (rows,) or None
        The share of k(x, x) that no degree has, where a finite series stands for an infinite one.
    """

    norms: Vector
    constants: Float64
    rows: tuple[AffineRows, ...]
    amplitudes: Callable[[int, Sequence[int]], Float64]
    missing: Vector | None = None


class Expansion(ABC):
    """A kernel's expansion; the powers of the second part, if any, are always sketched."""

    name: ClassVar[str]  # how users call it

    @property
    @abstractmethod
    def parts(self) -> tuple[Terms, ...]:
        """The kinds of affine rows, one or two, and their powers."""

    @property
    @abstractmethod
    def constants(self) -> int:
        """The number of features of degree 0."""

    @abstractmethod
    def measure(self, X: Rows, threads: int) -> Measured:
        """Measure the rows, and refuse those whose features cannot be represented."""


def scaled_column(numbers: Sequence[Scaled]) -> Scaled:
    """Return single numbers as a column."""
    mantissas = np.array([number.mantissa for number in numbers]).reshape(-1, 1)
    exponents = np.array([number.exponent for number in numbers], dtype=np.int64).reshape(-1, 1)
    return Scaled(mantissas, exponents)
