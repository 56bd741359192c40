"""What a kernel is asked to do, in terms that both implementations understand."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real

LARGEST_LENGTH = 1 << 30
"""Of features and of powers between them: places in them, and their ends, are int32."""


class RowStructure(NamedTuple):
    """What the indices of compressed sparse rows look like."""

    outside: int
    """The first position whose index lies outside the allowed ones; −1 if all are within."""
    ascending: bool
    """Whether the indices of every row ascend."""
    distinct: bool
    """Whether they ascend and no two of a row are equal."""


def _shrinkage(padded: int) -> float:
    """Return the largest power of two that is not above 1/√padded: multiplying by it is exact."""
    return 0.5 ** (padded.bit_length() // 2)


def orthogonal_scale(padded: int) -> float:
    """Return the scale with which the blocks of a `SorfSpec` are orthogonal matrices.

    >>> orthogonal_scale(1024), orthogonal_scale(512) == 8**0.5
    (1.0, True)
    """
    return math.sqrt((padded * _shrinkage(padded) ** 2) ** -3)


@dataclass(frozen=True, eq=False)
class SrhtSpec:
    """scale · (H D x)[indices], x padded with zeros to `padded` (Definition 2.7 of [SWYZ21])."""

    signs: NDArray[np.int8]
    indices: NDArray[np.int32]
    padded: int
    scale: float


@dataclass(frozen=True, eq=False)
class PairSpec:
    """(H D₁ a)[first] · (H D₂ b)[second] over √length (Definition 2.9 of [SWYZ21])."""

    signs_first: NDArray[np.int8]
    signs_second: NDArray[np.int8]
    first: NDArray[np.int32]
    second: NDArray[np.int32]

    @property
    def length(self) -> int:
        """The length of an operand, a power of two."""
        return len(self.signs_first)


@dataclass(frozen=True, eq=False)
class ScatterSpec:
    """Signed sums of coordinates: copy b of coordinate j goes to bucket table[j, b] // 2.

    The sign is negative where table[j, b] is odd. `key` is set where the table is that of the
    counter hash, so that sparse rows need no look-up.
    """

    table: NDArray[np.int32]
    size: int
    scale: float
    key: int | None = None

    @property
    def sparsity(self) -> int:
        """The number of buckets that a coordinate goes to."""
        return int(self.table.shape[1])


@dataclass(frozen=True, eq=False)
class SorfSpec:
    """scales · (F D₃ F D₂ F D₁ x)[indices], several blocks of F D₃ F D₂ F D₁ one below the other.

    F is the Hadamard matrix H times the power of two next to 1/√padded from below, which keeps
    numbers in range and costs no rounding. F is orthogonal where `padded` is a power of four, else
    1/√2 times an orthogonal matrix; `orthogonal_scale` makes up for all three of them.

    Attributes
    ----------
    signs : array of int8, shape (n_blocks, 3, padded)
        D₁, D₂ and D₃ of every block; x is padded with zeros to `padded`, a power of two.
    indices : array of int32, shape (count,)
        Which rows of the blocks are kept, all counted through: index // padded is the block. They
        are in the order of their blocks, in any order inside a block, and may repeat.
    scales : array of float64, shape (count,)
        The factor of every kept row.
    """

    signs: NDArray[np.int8]
    indices: NDArray[np.int32]
    scales: NDArray[np.float64]

    @property
    def padded(self) -> int:
        """The length that rows are padded to."""
        return int(self.signs.shape[2])

    def diagonals(self, dtype: np.dtype[Any]) -> Real:
        """Return the signs together with F's power of two."""
        diagonals: Real = self.signs.astype(dtype, order="C")
        diagonals *= dtype.type(_shrinkage(self.padded))
        return diagonals


@dataclass(frozen=True, eq=False)
class ChainSpec:
    """A leaf followed by a straight-line program of pair products (Algorithm 1 of [SWYZ21]).

    Attributes
    ----------
    columns : int
        Columns of the input.
    leaf : SrhtSpec, ScatterSpec or None
        T; None where the input itself, padded with zeros, is the leaf.
    leaf_length : int
        Length of the leaf's register, a power of two.
    leaf_shift : array of float64
        T applied to a fixed direction, or empty.
    pair : PairSpec
        S.
    steps : array of int32, shape (n_steps, 4)
        Rows (left, right, target, size): registers[target] = S(registers[left] ⊗ registers[right]),
        of which the first `size` coordinates are computed.
    outputs : array of int32, shape (n_blocks, 5)
        Rows (source, start, size, offset, after): coordinates start … start + size of a register
        become output columns offset …, once `after` steps are done.
    registers : int
        Number of registers; register 0 receives the leaf.
    preserve_norms : bool
        Whether a block is rescaled to the norm asked for, or keeps the norm that S gave it.
    """

    columns: int
    leaf: SrhtSpec | ScatterSpec | None
    leaf_length: int
    leaf_shift: NDArray[np.float64]
    pair: PairSpec
    steps: NDArray[np.int32]
    outputs: NDArray[np.int32]
    registers: int
    preserve_norms: bool = field(default=True)


@dataclass(frozen=True, eq=False)
class TensorSketchSpec:
    """C₁u ∗ C₂u ∗ …, circular convolutions of CountSketches of u [PP13], block by block.

    Attributes
    ----------
    columns : int
        Columns of the input.
    blocks : array of int32, shape (n_blocks, 3)
        Rows (degree, size, offset): a block is the convolution of `degree` CountSketches of length
        `size`, and becomes the output columns from `offset` on.
    keys : array of uint64
        The key of every CountSketch's hash, block after block: the upper half of the hash of a
        coordinate chooses the bucket, its last bit the sign.
    direction : array of float64
        What rows are shifted along, or empty; it may have more coordinates than rows have columns.
    preserve_norms : bool
        Whether a block is rescaled to the norm asked for, or is the linear sketch of the power.
    sparse : bool
        Whether rows will be sparse, so that hashes of all columns need not be kept.
    """

    columns: int
    blocks: NDArray[np.int32]
    keys: NDArray[np.uint64]
    direction: NDArray[np.float64]
    preserve_norms: bool
    sparse: bool
