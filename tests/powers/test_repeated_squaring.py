"""Algorithm 1: against matrices written out, the fused chain against it, its error, its programs.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.powers import PowerSketch, Slice, algorithm_1
from powersketch.powers.repeated_squaring import PowerProgram, all_powers, single_power
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, SRHT, BaseSketch, TensorSRHT
from tests.powers.sketching import (
    COLUMNS,
    INTERNAL,
    assert_rows_close,
    base_sketches,
    draw,
    dtypes,
    features,
    points,
    unscaled,
)

DEGREES = [*range(1, 21), 31, 32, 33, 64, 100]


@dataclass(frozen=True)
class Padding:
    """The T that only appends zeros, for rows that fit the internal length as they are."""

    columns: int
    size: int

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Padding:
        del streams
        return cls(columns, size)

    def apply(self, X: Any, *, threads: int = 1) -> Any:
        del threads
        return np.pad(X, ((0, 0), (0, self.size - X.shape[1])))


def single(degree: int, size: int = INTERNAL, **options: Any) -> PowerSketch:
    sketch: PowerSketch = draw("power", {degree: Slice(0, size, 0)}, **options)
    return sketch


def base_of(sketch: PowerSketch) -> BaseSketch:
    return sketch.base or Padding(sketch.columns, sketch.pair.length)


def kronecker_power(matrix: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    return reduce(np.kron, [matrix] * exponent)


class TestAlgorithm1:
    """Matrices of the paper for tiny sizes."""

    @staticmethod
    def matrices(T: BaseSketch, S: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        m = T.size
        left, right = np.repeat(np.eye(m), m, axis=0), np.tile(np.eye(m), (m, 1))
        return T.apply(np.eye(T.columns)).T, S.apply(left, right).T

    @staticmethod
    def pi(T: NDArray[np.float64], S: NDArray[np.float64], q: int) -> NDArray[np.float64]:
        """Π^q = S¹ S² S⁴ … S^(q/2) T^q, upper indices being Kronecker powers (Definition 4.1)."""
        product = kronecker_power(T, q)
        level = q // 2
        while level:
            product = kronecker_power(S, level) @ product
            level //= 2
        return product

    @classmethod
    def power_matrix(
        cls, T: NDArray[np.float64], S: NDArray[np.float64], degree: int
    ) -> NDArray[np.float64]:
        """Π over the set bits of the degree, joined by S from the lowest bit upwards (Case 2)."""
        bits = [1 << bit for bit in range(degree.bit_length()) if degree >> bit & 1]
        blocks = [cls.pi(T, S, q) for q in bits]
        return reduce(lambda lower, block: S @ np.kron(lower, block), blocks)

    @base_sketches
    @pytest.mark.parametrize("degree", range(1, 7))
    @pytest.mark.parametrize(("columns", "size"), [(3, 4), (3, 2)])
    def test_is_the_matrix_of_its_definition(
        self, base_sketch: str, degree: int, columns: int, size: int
    ) -> None:
        for seed in range(3):
            streams = RandomStreams(seed)
            T = BASE_SKETCHES[base_sketch].draw(streams.child("T"), columns, size)
            S = TensorSRHT.draw(streams.child("S"), size, size)
            X = points(4, columns)
            tensors = np.array([kronecker_power(x[None, :], degree)[0] for x in X])
            expected = tensors @ self.power_matrix(*self.matrices(T, S), degree).T
            np.testing.assert_allclose(algorithm_1(X, degree, T, S), expected, atol=1e-12)

    def test_eight_is_three_squarings(self) -> None:
        T, S = SRHT.draw(RandomStreams(1), 2, 2), TensorSRHT.draw(RandomStreams(2), 2, 2)
        X = points(4, 2)
        tensors = np.array([kronecker_power(x[None, :], 8)[0] for x in X])
        expected = tensors @ self.pi(*self.matrices(T, S), 8).T
        np.testing.assert_allclose(algorithm_1(X, 8, T, S), expected, atol=1e-12)


class TestLiteralChain:
    """Without norm preservation the chain is Algorithm 1."""

    @base_sketches
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("degree", [1, 2, 13, 100])
    def test_is_algorithm_1(self, base_sketch: str, sparse: bool, degree: int) -> None:
        sketch = single(degree, base_sketch=base_sketch)
        assert isinstance(sketch.base, BASE_SKETCHES[base_sketch])
        X = points(9, COLUMNS)
        Z = features(sketch, sp.csr_array(X) if sparse else X)
        assert_rows_close(Z, algorithm_1(X, degree, sketch.base, sketch.pair))

    @pytest.mark.parametrize("degree", DEGREES)
    @pytest.mark.parametrize("columns", [1, 17, 32])
    def test_short_rows_need_no_base_sketch(self, degree: int, columns: int) -> None:
        sketch = single(degree, columns=columns)
        assert sketch.base is None
        X = points(9, columns)
        expected = algorithm_1(X, degree, base_of(sketch), sketch.pair)
        assert_rows_close(features(sketch, X), expected)
        assert_rows_close(features(sketch, sp.csr_array(X)), expected)

    def test_is_algorithm_1_at_degree_1024(self) -> None:
        sketch = single(1024, 256, columns=300, internal=256)
        assert sketch.base is not None
        X = points(9, 300)
        expected = algorithm_1(X, 1024, sketch.base, sketch.pair)
        assert_rows_close(features(sketch, X), expected, tolerance=1e-11)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    def test_several_degrees_share_t_and_s(self, columns: int) -> None:
        """Degree l is S applied to the degrees ⌊l/2⌋ and ⌈l/2⌉, cut to its slice."""
        wanted = {1: Slice(0, 4, 20), 2: Slice(4, 6, 0), 5: Slice(10, 8, 6), 7: Slice(18, 6, 14)}
        sketch = draw("power", wanted, columns=columns)
        X = points(9, columns)
        powers = {1: base_of(sketch).apply(X)}
        for degree in range(2, 8):
            left, right = powers[degree // 2], powers[degree - degree // 2]
            powers[degree] = sketch.pair.apply(left, right)
        Z = features(sketch, X)
        for degree, cut in wanted.items():
            block = Z[:, cut.offset : cut.offset + cut.size]
            assert_rows_close(block, powers[degree][:, cut.start : cut.start + cut.size])

    def test_is_homogeneous(self) -> None:
        sketch, X = single(6), points(9, COLUMNS)
        scales = np.linspace(0.5, 2, 9)
        expected = scales[:, None] ** 6 * features(sketch, X)
        assert_rows_close(features(sketch, X * scales[:, None]), expected)
        assert_rows_close(features(sketch, X, scale=scales), expected)
        assert_rows_close(features(sketch, X, block_scales=scales[:, None] ** 6), expected)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    @pytest.mark.parametrize("base_sketch", BASE_SKETCHES)
    def test_a_shift_is_added_to_the_rows(self, columns: int, base_sketch: str) -> None:
        sketch = single(3, columns=columns, base_sketch=base_sketch)
        X, direction, shift = points(9, columns), points(1, columns)[0], np.linspace(-1, 1, 9)
        expected = features(sketch, X + shift[:, None] * direction)
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows, direction=direction, shift=shift)
            assert_rows_close(Z, expected, tolerance=1e-11)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_further_columns_are_reached_by_the_shift(self, sparse: bool) -> None:
        """Rows one column shorter than the sketch, and a shift along the column they lack."""
        sketch, X = single(3), points(9, COLUMNS)
        last = np.eye(COLUMNS)[-1]
        shorter = X[:, :-1].copy()
        rows = sp.csr_array(shorter) if sparse else shorter
        Z = features(sketch, rows, direction=last, shift=X[:, -1].copy())
        assert_rows_close(Z, features(sketch, X))

    @pytest.mark.parametrize(("dtype", "internal"), [(np.float64, 2), (np.float32, 8)])
    def test_degree_1024_is_finite_or_refused(self, dtype: Any, internal: int) -> None:
        """Small sketches of high degree explode; the chain then says so."""
        X, ones = points(9, COLUMNS, dtype), np.ones((9, 1))
        answers = []
        for seed in range(20):
            sketch = single(1024, internal, internal=internal, seed=seed)
            out = np.empty((9, internal), dtype=dtype)
            answers.append(sketch.write(unscaled(X), ones, out, 1))
            assert np.isfinite(out).all() or not answers[-1]
        assert any(answers)
        assert not all(answers)


def unit(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    return result


def normalised_powers(
    X: NDArray[np.float64], degree: int, T: BaseSketch, S: TensorSRHT
) -> NDArray[np.float64]:
    """Algorithm 1 with every vector rescaled to norm one as soon as it is there."""
    w = unit(T.apply(X))
    z = None
    for bit in range(degree.bit_length()):
        if bit:
            w = unit(S.apply(w, w))
        if degree >> bit & 1:
            z = w if z is None else unit(S.apply(z, w))
    assert z is not None
    return z


class TestNormPreservingChain:
    @base_sketches
    @pytest.mark.parametrize("degree", [1, 2, 13, 100, 1024])
    def test_is_algorithm_1_normalised_step_by_step(self, base_sketch: str, degree: int) -> None:
        sketch = single(degree, base_sketch=base_sketch, preserve_norms=True)
        X = points(9, COLUMNS)
        norms = np.linspace(0.5, 3, 9)[:, None]
        expected = norms * normalised_powers(X, degree, base_of(sketch), sketch.pair)
        Z = features(sketch, X, block_scales=norms)
        assert_rows_close(Z, expected, tolerance=1e-12 * max(1, degree / 50))

    @dtypes
    @base_sketches
    @pytest.mark.parametrize(("degree", "size"), [(1, 5), (2, 32), (7, 1), (1024, 5)])
    def test_rows_have_the_norms_asked_for(
        self, dtype: Any, base_sketch: str, degree: int, size: int
    ) -> None:
        sketch = single(degree, size, base_sketch=base_sketch, preserve_norms=True)
        norms = np.logspace(-10, 10, 9)
        Z = features(sketch, points(9, COLUMNS, dtype), block_scales=norms[:, None])
        actual = np.linalg.norm(Z.astype(np.float64), axis=1)
        np.testing.assert_allclose(actual, norms, rtol=8 * np.finfo(dtype).eps)

    def test_every_block_has_its_own_norm(self) -> None:
        wanted = {1: Slice(0, 5, 0), 3: Slice(5, 10, 5), 4: Slice(15, 17, 15)}
        sketch = draw("power", wanted, preserve_norms=True)
        norms = np.random.default_rng(0).uniform(1, 2, (9, 3))
        Z = features(sketch, points(9, COLUMNS), block_scales=norms)
        actual = np.stack([np.linalg.norm(part, axis=1) for part in np.split(Z, [5, 15], 1)], 1)
        np.testing.assert_allclose(actual, norms, rtol=1e-14)

    @pytest.mark.parametrize("preserve_norms", [True, False])
    @pytest.mark.parametrize("columns", [5, COLUMNS])
    def test_zero_rows_give_zeros(self, preserve_norms: bool, columns: int) -> None:
        sketch = single(5, 20, columns=columns, preserve_norms=preserve_norms)
        X = points(9, columns)
        X[[0, 4]] = 0.0
        Z = features(sketch, X)
        np.testing.assert_array_equal(Z[[0, 4]], 0.0)
        assert np.all(np.linalg.norm(np.delete(Z, [0, 4], axis=0), axis=1) > 0)

    @base_sketches
    @dtypes
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize(
        ("exponent", "preserve_norms"), [(-120, True), (-80, False), (120, False)]
    )
    def test_rows_far_from_norm_one_are_scaled_first(
        self, base_sketch: str, dtype: Any, sparse: bool, exponent: int, preserve_norms: bool
    ) -> None:
        """Powers of two change no bits, though float32 has no squares or products of such rows.

        Entries are multiples of 2⁻⁶, which times 2⁻¹²⁰ is the smallest normal float32.
        """
        sketch = single(9, 20, base_sketch=base_sketch, preserve_norms=preserve_norms)
        X = (np.round(64 * points(9, COLUMNS)) / 64).astype(dtype)
        far = np.ldexp(X, exponent).astype(dtype)
        scale = np.full(9, 2.0**-exponent)
        if sparse:
            X, far = sp.csr_array(X), sp.csr_array(far)
        np.testing.assert_array_equal(features(sketch, far, scale=scale), features(sketch, X))

    @base_sketches
    def test_threads_do_not_matter(self, base_sketch: str) -> None:
        sketch = single(9, 20, base_sketch=base_sketch, preserve_norms=True)
        X = points(70, COLUMNS)
        np.testing.assert_array_equal(features(sketch, X, threads=3), features(sketch, X))


class TestLinear:
    """T alone as a chain without products."""

    @base_sketches
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("size", [8, 11])
    def test_is_the_base_sketch(self, base_sketch: str, sparse: bool, size: int) -> None:
        T = BASE_SKETCHES[base_sketch].draw(RandomStreams(3), COLUMNS, size)
        X = points(9, COLUMNS)
        sketch = PowerSketch.linear(T, Slice(0, size, 0), preserve_norms=False)
        Z = features(sketch, sp.csr_array(X) if sparse else X)
        assert_rows_close(Z, T.apply(X))
        preserving = PowerSketch.linear(T, Slice(0, size, 0), preserve_norms=True)
        assert_rows_close(features(preserving, X), unit(T.apply(X)))


class TestError:
    @staticmethod
    def error(internal: int, degree: int, seed: int, *, preserve_norms: bool) -> float:
        """Relative Frobenius error of Z Zᵀ on 12 unit vectors of 1500 coordinates."""
        X = points(12, 1500)
        sketch = single(
            degree,
            internal,
            columns=1500,
            internal=internal,
            preserve_norms=preserve_norms,
            seed=seed,
        )
        Z, K = features(sketch, X), (X @ X.T) ** degree
        return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))

    @pytest.mark.parametrize("preserve_norms", [True, False])
    def test_falls_with_the_root_of_the_size(self, preserve_norms: bool) -> None:
        """The slope of log error over log size lies in [−0.65, −0.4] at degree 3.

        Geometric means of 100 seeds: the standard error of the slope is 0.01 with norms preserved
        and 0.02 without, where higher powers of the norm's error make it −0.56. Failure
        probability 1e-5.
        """
        sizes = [64, 128, 256, 512, 1024]
        logarithms = [
            np.mean(
                [np.log(self.error(size, 3, s, preserve_norms=preserve_norms)) for s in range(100)]
            )
            for size in sizes
        ]
        assert -0.65 < np.polyfit(np.log(sizes), logarithms, 1)[0] < -0.4

    def test_norm_preservation_pays_at_high_degrees(self) -> None:
        """At degree 32 the error falls from more than one to less than one."""
        literal, preserving = (
            np.median([self.error(256, 32, seed, preserve_norms=norms) for seed in range(15)])
            for norms in (False, True)
        )
        assert literal > 10
        assert preserving < 0.3


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
