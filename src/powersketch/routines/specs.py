"""What a routine is asked to do, in terms that both implementations understand."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Vector
from powersketch.storable import storable


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


class _Spec:
    """Keeps arrays in the dtypes that rows had so far, for calls with a few rows; never pickled."""

    def _cast(self, name: str, dtype: np.dtype[Any]) -> Real:
        casts: dict[tuple[str, str], Real] = self.__dict__.setdefault("_casts", {})
        key = name, dtype.char
        if key not in casts:
            casts[key] = getattr(self, name).astype(dtype, order="C")
        return casts[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_casts"}


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SrhtSpec(_Spec):
    """scale · (H D x)[indices], x padded with zeros to `padded` (Definition 2.7 of [SWYZ21])."""

    signs: NDArray[np.int8]
    indices: NDArray[np.int32]
    padded: int
    scale: float

    def signs_as(self, dtype: np.dtype[Any]) -> Real:
        """Return the signs as numbers of a dtype."""
        return self._cast("signs", dtype)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PairSpec(_Spec):
    """(H D₁ a)[first] · (H D₂ b)[second] over √m (Definition 2.9 of [SWYZ21]).

    m is the number of index pairs. A chain, which may compute only the first few of its m products,
    needs as many as operands are long.
    """

    signs_first: NDArray[np.int8]
    signs_second: NDArray[np.int8]
    first: NDArray[np.int32]
    second: NDArray[np.int32]

    @property
    def length(self) -> int:
        """The length of an operand, a power of two."""
        return len(self.signs_first)

    def signs_as(self, dtype: np.dtype[Any]) -> tuple[Real, Real]:
        """Return the signs of D₁ and of D₂ as numbers of a dtype."""
        return self._cast("signs_first", dtype), self._cast("signs_second", dtype)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ScatterSpec:
    """Signed sums of coordinates: copy b of coordinate j goes to bucket table[j, b] // 2.

    The sign is negative where table[j, b] is odd. `key` is set where the table is that of the
    counter hash, so that sparse rows need no look-up.
    """

    table: NDArray[np.int32]
    size: int
    scale: float
    key: int | None = None


def counter_hash(key: int, counters: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash counters to 64 bits: random access to a stream that is never stored.

    It is word `counter` of the generator splitmix64 [SLF14] whose state starts at `key`.

    >>> [hex(word) for word in counter_hash(0, np.arange(2, dtype=np.uint64))]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    # In place on an array, because NumPy warns of wrap-around on scalars.
    mixed = np.array(counters)
    mixed += np.uint64(1)
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(key)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hashed_table(key: int, columns: int, size: int, sparsity: int) -> NDArray[np.int32]:
    """Return 2 · bucket + negative for every copy of every coordinate, one copy in each band.

    Band b is the outputs ⌊b · size / sparsity⌋ up to the next band's first; copy b of coordinate j
    takes the hash of j · sparsity + b: its upper half chooses the bucket, its last bit the sign.
    """
    hashes = counter_hash(key, np.arange(columns * sparsity, dtype=np.uint64))
    edges = np.arange(sparsity + 1, dtype=np.uint64) * np.uint64(size) // np.uint64(sparsity)
    low, width = np.tile(edges[:-1], columns), np.tile(np.diff(edges), columns)
    buckets = low + ((hashes >> np.uint64(32)) * width >> np.uint64(32))
    targets = np.uint64(2) * buckets + (hashes & np.uint64(1))
    table: NDArray[np.int32] = targets.astype(np.int32).reshape(columns, sparsity)
    return table


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SorfSpec(_Spec):
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
    scales: Vector

    @property
    def padded(self) -> int:
        """The length that rows are padded to."""
        return int(self.signs.shape[2])

    @property
    def diagonals(self) -> Vector:
        """The signs together with F's power of two."""
        return self.signs.astype(np.float64) * _shrinkage(self.padded)

    def arrays_as(self, dtype: np.dtype[Any]) -> tuple[Real, Real]:
        """Return the diagonals and the scales as numbers of a dtype."""
        return self._cast("diagonals", dtype), self._cast("scales", dtype)


@dataclass(frozen=True, eq=False, repr=False)
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
    leaf_shift: Vector
    pair: PairSpec
    steps: NDArray[np.int32]
    outputs: NDArray[np.int32]
    registers: int
    preserve_norms: bool = field(default=True)


@dataclass(frozen=True, eq=False, repr=False)
class TensorSketchSpec:
    """C₁u ∗ C₂u ∗ …, circular convolutions of CountSketches of u [PP13], block by block.

    Attributes
    ----------
    columns : int
        Columns of the input.
    blocks : array of int32, shape (n_blocks, 3)
        Rows (degree, size, offset): a block is the convolution of `degree` CountSketches of length
        `size`, and becomes the output columns from `offset` on. Sizes have no prime factor above 5
        unless the degree is 1.
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
    direction: Vector
    preserve_norms: bool
    sparse: bool
