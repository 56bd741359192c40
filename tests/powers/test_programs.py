"""Programs of pair products, run on degrees in place of vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from powersketch.powers import Slice, algorithm_1
from powersketch.powers.repeated_squaring import PowerProgram, all_powers, single_power

LENGTH = 1024
MOST_REGISTERS = 64  # of a compiled chain
MOST_DEGREES = 24  # that a feature map asks for at once

degrees = st.integers(1, 1024)
degree_sets = st.sets(degrees, min_size=1, max_size=MOST_DEGREES)


def slices_of(wanted: set[int]) -> dict[int, Slice]:
    """Rows of S next to each other, output columns in the opposite order."""
    size = LENGTH // len(wanted)
    return {
        degree: Slice(start=size * i, size=size, offset=size * (len(wanted) - 1 - i))
        for i, degree in enumerate(sorted(wanted))
    }


def products_of(program: PowerProgram) -> list[tuple[int, int]]:
    """Run the steps and return the degrees of their operands."""
    return run(program)[0]


def run(program: PowerProgram) -> tuple[list[tuple[int, int]], dict[int, Slice]]:
    """Run a program on degrees; return the operands of every step and the slice of every output.

    A register holds a degree and how many of its coordinates are computed: a product reads all.
    """
    registers = {0: (1, LENGTH)}
    products, blocks = [], {}
    for done in range(len(program.steps) + 1):
        if done:
            left, right, target, size = program.steps[done - 1].tolist()
            assert registers[left][1] == registers[right][1] == LENGTH
            products.append((registers[left][0], registers[right][0]))
            registers[target] = (sum(products[-1]), size)
        for block in np.flatnonzero(program.outputs[:, 4] == done):
            source, start, size, offset, _ = program.outputs[block].tolist()
            degree, computed = registers[source]
            assert degree == program.degrees[block]
            assert start + size <= computed
            assert degree not in blocks
            blocks[degree] = Slice(start, size, offset)
    assert len(blocks) == len(program.outputs) == len(program.degrees)
    assert set(registers) == set(range(program.registers))
    return products, blocks


def assert_computes(program: PowerProgram, outputs: Mapping[int, Slice]) -> None:
    _, blocks = run(program)
    assert blocks == dict(outputs)
    assert program.steps.dtype == program.outputs.dtype == np.int32
    assert np.all(np.diff(program.outputs[:, 4]) >= 0), "blocks come in the order of the steps"


class Degrees:
    """Stands for T and S: applying it adds degrees and records the operands."""

    def __init__(self) -> None:
        self.products: list[tuple[int, int]] = []

    def apply(self, first: int, second: int | None = None) -> int:
        if second is None:
            return first
        self.products.append((first, second))
        return first + second


class TestSinglePower:
    @given(degree=degrees)
    @example(degree=1)
    @example(degree=2)
    @example(degree=1023)
    @example(degree=1024)
    def test_computes_the_degree(self, degree: int) -> None:
        output = Slice(3, 40, 7)
        assert_computes(single_power(degree, output, LENGTH), {degree: output})

    @given(degree=degrees)
    def test_takes_the_products_of_algorithm_1(self, degree: int) -> None:
        operators: Any = Degrees()
        start: Any = 1
        assert algorithm_1(start, degree, operators, operators) == degree
        program = single_power(degree, Slice(0, LENGTH, 0), LENGTH)
        assert products_of(program) == operators.products

    @given(degree=degrees)
    def test_squares_and_multiplies(self, degree: int) -> None:
        """⌊log₂ p⌋ squarings and a product for every further set bit, in three registers."""
        program = single_power(degree, Slice(0, LENGTH, 0), LENGTH)
        assert len(program.steps) == degree.bit_length() - 1 + degree.bit_count() - 1
        assert program.registers <= 3

    @given(exponent=st.integers(1, 10))
    def test_squarings_alternate_between_two_registers(self, exponent: int) -> None:
        assert single_power(2**exponent, Slice(0, LENGTH, 0), LENGTH).registers == 2

    @given(degree=st.integers(2, 1024), stop=st.integers(1, LENGTH))
    def test_last_step_computes_no_more_than_is_taken(self, degree: int, stop: int) -> None:
        program = single_power(degree, Slice(stop - 1, 1, 0), LENGTH)
        assert program.steps[-1, 3] == stop
        np.testing.assert_array_equal(program.steps[:-1, 3], LENGTH)


class TestAllPowers:
    @given(wanted=degree_sets)
    @example(wanted={1})
    @example(wanted={1, 2})
    @example(wanted=set(range(1, 25)))
    @example(wanted=set(range(1001, 1025)))
    def test_computes_every_degree(self, wanted: set[int]) -> None:
        outputs = slices_of(wanted)
        assert_computes(all_powers(outputs, LENGTH), outputs)

    @given(wanted=degree_sets)
    def test_one_product_for_every_needed_degree(self, wanted: set[int]) -> None:
        """Degrees are needed that are wanted, and halves of needed ones, rounded either way."""
        needed: set[int] = set()
        for degree in range(1024, 1, -1):
            if degree in wanted or needed & {2 * degree - 1, 2 * degree, 2 * degree + 1}:
                needed.add(degree)
        products = products_of(all_powers(slices_of(wanted), LENGTH))
        assert sorted(sum(product) for product in products) == sorted(needed)

    @given(wanted=degree_sets)
    def test_depth_is_logarithmic(self, wanted: set[int]) -> None:
        depth = {1: 0}
        for left, right in products_of(all_powers(slices_of(wanted), LENGTH)):
            depth[left + right] = 1 + max(depth[left], depth[right])
        assert all(depth[degree] == math.ceil(math.log2(degree)) for degree in depth)

    @pytest.mark.parametrize("first", [1, 2, 100, 500, 1001])
    @pytest.mark.parametrize("stride", [1, 2, 3])
    def test_registers_suffice_for_what_feature_maps_ask(self, first: int, stride: int) -> None:
        wanted = set(range(first, first + stride * MOST_DEGREES, stride))
        assert all_powers(slices_of(wanted), LENGTH).registers <= MOST_REGISTERS

    @given(wanted=degree_sets)
    def test_registers_suffice_for_any_degrees(self, wanted: set[int]) -> None:
        assert all_powers(slices_of(wanted), LENGTH).registers <= MOST_REGISTERS

    @given(wanted=degree_sets)
    def test_output_columns_stay_disjoint(self, wanted: set[int]) -> None:
        outputs = all_powers(slices_of(wanted), LENGTH).outputs
        columns = np.concatenate([np.arange(b[3], b[3] + b[2]) for b in outputs])
        rows = np.concatenate([np.arange(b[1], b[1] + b[2]) for b in outputs])
        for positions in (columns, rows):
            assert len(np.unique(positions)) == len(positions)
