"""What an expansion is: a kernel written as a sum of powers of inner products of affine rows.

k(x, y) = Σ_i f_i(x) f_i(y) + Σ_l s_l(x) s_l(y) ⟨û(x), û(y)⟩^l + …, with û the direction of a row
u(x) = scale(x) · x + shift(x) · direction. The factors f are features by themselves, the powers are
taken exactly or sketched. A second kind of rows, with a direction of its own, may carry further
powers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from powersketch.arrays import Float64, Rows, Vector
from powersketch.feature_maps.rows import AffineRows
from powersketch.powers import Scaled

Degrees: TypeAlias = Sequence[Sequence[int]]
"""Degrees of every part of an expansion."""


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
    shares : tuple of ndarrays of shape (degrees, rows)
        The amplitudes s_l of the degrees of every part.
    missing : ndarray of shape (rows,) or None
        The share of k(x, x) that no degree has, where a finite series stands for an infinite one.
    """

    norms: Vector
    constants: Float64
    rows: tuple[AffineRows, ...]
    shares: tuple[Float64, ...]
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
    def measure(self, X: Rows, threads: int, degrees: Degrees | None = None) -> Measured:
        """Measure the rows, and refuse those whose features cannot be represented.

        `degrees` are some of every part, ascending; None is all of them.
        """


def scaled_column(numbers: Sequence[Scaled]) -> Scaled:
    """Return single numbers as a column."""
    mantissas = np.array([number.mantissa for number in numbers]).reshape(-1, 1)
    exponents = np.array([number.exponent for number in numbers], dtype=np.int64).reshape(-1, 1)
    return Scaled(mantissas, exponents)
