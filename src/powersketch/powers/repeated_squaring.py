"""Algorithm 1 of the paper: x^⊗p sketched with one T and one S, by repeated squaring."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, Vector, is_sparse
from powersketch.powers.methods import (
    CompiledPowers,
    FormatCache,
    Outputs,
    PowerOptions,
    Slice,
)
from powersketch.random_streams import RandomStreams
from powersketch.routines import Chain, ChainSpec, ScatterSpec, SrhtSpec, make_chain
from powersketch.sketches import BASE_SKETCHES, OSNAP, SRHT, BaseSketch, TensorSRHT, padded_length
from powersketch.storable import remembered, storable


def algorithm_1(X: Real, degree: int, T: BaseSketch, S: TensorSRHT) -> Real:
    """Return Z(S, T, X) of Definition 4.2 of [SWYZ21], line by line, for any T and S.

    This is the specification; :class:`PowerSketch` computes the same in a fused chain.
    """
    w = T.apply(X)  # line 3
    z = None
    for bit in range(degree.bit_length()):
        if bit:
            w = S.apply(w, w)  # line 5
        if degree >> bit & 1:
            z = w if z is None else S.apply(z, w)  # lines 8 and 10
    assert z is not None, "a degree of at least 1 has a set bit"
    return z


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PowerSketch(CompiledPowers):
    """Sketches of some powers of the rows of a matrix, sharing T, S and intermediate powers.

    Attributes
    ----------
    base : BaseSketch or None
        T; None if the rows fit the internal length as they are (T then loses nothing).
    leaf_length : int
        The length of T x, or of the padded x, and no less than what features of it take.
    pair : TensorSRHT
        S, with as many rows as columns: the internal length, a power of two.
    program : PowerProgram
        The products, and the slices of S that become features.
    preserve_norms : bool
        Whether every power is rescaled to its exact norm.
    direction : ndarray or None
        What rows can be shifted along.
    """

    columns: int
    base: BaseSketch | None
    leaf_length: int
    pair: TensorSRHT
    program: PowerProgram
    preserve_norms: bool
    direction: Vector | None = None
    # In the order of the program's blocks.
    degrees: tuple[int, ...] = field(init=False)
    _compiled: FormatCache[Chain] = field(default_factory=FormatCache, init=False)

    @classmethod
    @remembered
    def draw(
        cls, streams: RandomStreams, columns: int, outputs: Outputs, options: PowerOptions
    ) -> PowerSketch:
        """Sample T and S for the degrees and slices in `outputs`."""
        base, internal, leaf_length = None, options.internal, options.internal
        if columns > internal:
            T = BASE_SKETCHES[options.base_sketch]
            base = T.draw(streams.child("T"), columns, internal)
        branch = streams.child("S")
        if base is None:
            of_leaf = outputs[1].start + outputs[1].size if 1 in outputs else 0
            leaf_length = padded_length(max(columns, of_leaf))
        pair = TensorSRHT.draw(branch, internal, internal)
        if len(outputs) == 1:
            ((degree, output),) = outputs.items()
            program = single_power(degree, output, internal)
        else:
            program = all_powers(outputs, internal)
        preserve_norms, direction = options.preserve_norms, options.direction
        return cls(columns, base, leaf_length, pair, program, preserve_norms, direction)

    @classmethod
    @remembered
    def linear(
        cls,
        base: BaseSketch,
        output: Slice,
        *,
        preserve_norms: bool,
        direction: Vector | None = None,
    ) -> PowerSketch:
        """Return T alone, as a chain without products."""
        length = padded_length(base.size)
        # No product is taken: S only tells how long the register is.
        unused = TensorSRHT.untouched(length)
        program = all_powers({1: output}, length)
        return cls(base.columns, base, length, unused, program, preserve_norms, direction)

    def __post_init__(self) -> None:
        object.__setattr__(self, "degrees", self.program.degrees)

    def literal_factor(self, degree: int) -> float:
        """Return √(rows of S / rows used) of a degree: S itself is scaled for all of its rows."""
        used = self.program.outputs[self.program.degrees.index(degree), 2]
        return math.sqrt(self.pair.length / int(used)) if degree > 1 else 1.0

    def _leaf_shift(self) -> Vector:
        """Return T applied to the direction."""
        if self.direction is None:
            return np.empty(0)
        row = np.ascontiguousarray(self.direction[None, :], dtype=np.float64)
        leaf = row if self.base is None else self.base.apply(row)
        return np.pad(leaf[0], (0, self.leaf_length - leaf.shape[1]))

    def _fused_leaf(self) -> SrhtSpec | ScatterSpec | None:
        """Return what the chain can do of T itself; the rest is done before rows enter it."""
        if isinstance(self.base, OSNAP):
            return self.base.spec
        if isinstance(self.base, SRHT) and self.base.size == self.leaf_length:
            return self.base.spec
        return None

    def _prepare(self, X: Rows) -> Chain:
        """Return the chain, after a T that is not part of it, if any."""
        fused = None if is_sparse(X) else self._fused_leaf()
        outside = self.base if fused is None else None
        spec = ChainSpec(
            columns=X.shape[1] if outside is None else outside.size,
            leaf=fused,
            leaf_length=self.leaf_length,
            leaf_shift=self._leaf_shift(),
            pair=self.pair.spec,
            steps=self.program.steps,
            outputs=self.program.outputs,
            registers=self.program.registers,
            preserve_norms=self.preserve_norms,
        )
        chain = make_chain(spec, X.dtype)
        return chain if outside is None and not is_sparse(X) else _ChainAfter(outside, chain)


@dataclass(frozen=True, eq=False, repr=False)
class _ChainAfter:
    """A chain whose rows are dense, and what makes them so: a T outside of it, or nothing else."""

    outside: BaseSketch | None
    chain: Chain

    def apply(self, X: Rows, *rest: Any, **named: Any) -> bool:
        """Write the blocks of every row; the last argument is the number of threads."""
        dense = X.toarray() if self.outside is None else self.outside.apply(X, threads=rest[-1])
        return self.chain.apply(dense, *rest, **named)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class PowerProgram:
    """Products of powers, and the slices of them that become features.

    `steps` and `outputs` are as in :class:`powersketch.routines.ChainSpec`; `degrees` gives the
    degree of every output block.
    """

    steps: NDArray[np.int32]
    outputs: NDArray[np.int32]
    degrees: tuple[int, ...]
    registers: int


def single_power(degree: int, output: Slice, length: int) -> PowerProgram:
    """Return Algorithm 1 of [SWYZ21]: repeated squaring, then the product over the set bits.

    A product is taken as soon as its square is there (lines 5 and 10 interleaved), so that two
    registers suffice: the current square w_l and the product z of the lower bits.
    """
    products: list[tuple[int, int, int]] = []  # degrees (left, right, result)
    square, product = 1, 0
    while True:
        if degree & square:
            if product:
                products.append((product, square, product + square))
            product += square
        if 2 * square > degree:
            break
        products.append((square, square, 2 * square))
        square *= 2
    return _compile(products, {degree: output}, length)


def all_powers(outputs: Outputs, length: int) -> PowerProgram:
    """Return a program for several degrees that shares every intermediate power.

    Degree l is the product of the degrees ⌊l/2⌋ and ⌈l/2⌉: one application of S for each degree
    beyond those that are needed anyway, and a depth of log₂ l.
    """
    needed: set[int] = set()
    pending = [degree for degree in outputs if degree > 1]
    while pending:
        degree = pending.pop()
        if degree > 1 and degree not in needed:
            needed.add(degree)
            pending += [degree // 2, degree - degree // 2]
    products = [(degree // 2, degree - degree // 2, degree) for degree in sorted(needed)]
    return _compile(products, outputs, length)


def _compile(products: list[tuple[int, int, int]], outputs: Outputs, length: int) -> PowerProgram:
    """Give every power a register, used again once its power is needed no more."""
    last_use = {1: -1}
    for step, (left, right, result) in enumerate(products):
        last_use[left] = last_use[right] = step
        last_use.setdefault(result, step)
    holder, free, count = {1: 0}, list[int](), 1
    steps, blocks, degrees = [], [], []
    if 1 in outputs:
        blocks.append(_block(0, outputs[1], after=0))
        degrees.append(1)
    for step, (left, right, result) in enumerate(products):
        if not free:
            free.append(count)
            count += 1
        holder[result] = free.pop()
        output = outputs.get(result)
        needed = length if output is None or last_use[result] > step else output.start + output.size
        steps.append((holder[left], holder[right], holder[result], needed))
        if output is not None:
            blocks.append(_block(holder[result], output, after=step + 1))
            degrees.append(result)
        free += [holder.pop(degree) for degree in {left, right, result} if last_use[degree] <= step]
    return PowerProgram(
        steps=np.array(steps, dtype=np.int32).reshape(-1, 4),
        outputs=np.array(blocks, dtype=np.int32).reshape(-1, 5),
        degrees=tuple(degrees),
        registers=count,
    )


def _block(register: int, output: Slice, *, after: int) -> tuple[int, int, int, int, int]:
    return register, output.start, output.size, output.offset, after
