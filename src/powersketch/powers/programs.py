"""Straight-line programs of pair products: which powers are multiplied to give which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PowerProgram:
    """Products of powers, and the slices of them that become features.

    `steps` and `outputs` are as in :class:`powersketch.routines.ChainSpec`; `degrees` gives the
    degree of every output block.
    """

    steps: NDArray[np.int32]
    outputs: NDArray[np.int32]
    degrees: tuple[int, ...]
    registers: int


@dataclass(frozen=True)
class Slice:
    """Rows start … start + size of S, written at output column `offset`."""

    start: int
    size: int
    offset: int

    @property
    def stop(self) -> int:
        """One past the last row of S that is needed."""
        return self.start + self.size


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


def all_powers(outputs: Mapping[int, Slice], length: int) -> PowerProgram:
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


def _compile(
    products: list[tuple[int, int, int]], outputs: Mapping[int, Slice], length: int
) -> PowerProgram:
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
        size = length if last_use[result] > step else outputs[result].stop
        steps.append((holder[left], holder[right], holder[result], size))
        if result in outputs:
            blocks.append(_block(holder[result], outputs[result], after=step + 1))
            degrees.append(result)
        free += [holder.pop(degree) for degree in {left, right, result} if last_use[degree] <= step]
    return PowerProgram(
        steps=np.array(steps, dtype=np.int32).reshape(-1, 4),
        outputs=np.array(blocks, dtype=np.int32).reshape(-1, 5),
        degrees=tuple(degrees),
        registers=count,
    )


def _block(register: int, cut: Slice, *, after: int) -> tuple[int, int, int, int, int]:
    return register, cut.start, cut.size, cut.offset, after
