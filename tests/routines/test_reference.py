"""The specification itself: against matrices written out, and the Hadamard matrix's identities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import hadamard

from powersketch.routines import compiled, hashed_table, reference
from powersketch.routines.specs import (
    PairSpec,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    orthogonal_scale,
)
from powersketch.sketches import padded_length
from tests.routines.routine_calls import KEY, LEAVES, Shape, chain_spec

implementations = pytest.mark.parametrize(
    "native", [compiled, reference], ids=["compiled", "reference"]
)
lengths = st.sampled_from([1, 2, 4, 32, 256, 8192])
ROUNDING = 1e-12


def assert_close(actual: NDArray[Any], expected: NDArray[Any]) -> None:
    np.testing.assert_allclose(actual, expected, rtol=ROUNDING, atol=ROUNDING)


def padded(X: NDArray[Any], length: int) -> NDArray[Any]:
    return np.pad(X, ((0, 0), (0, length - X.shape[1])))


def signed_hadamard(signs: NDArray[np.int8]) -> NDArray[np.float64]:
    """H D."""
    product: NDArray[np.float64] = hadamard(len(signs)) * signs.astype(np.float64)
    return product


class TestHadamard:
    @implementations
    @pytest.mark.parametrize(("columns", "length"), [(1, 1), (1, 2), (3, 4), (5, 32), (64, 64)])
    def test_is_the_product_with_the_matrix(self, native: Any, columns: int, length: int) -> None:
        X = Shape(9, columns, 1).dense()
        assert_close(native.fwht(X, length), padded(X, length) @ hadamard(length))

    @implementations
    @given(length=lengths, rows=st.integers(1, 20))
    def test_twice_is_length_times_once(self, native: Any, length: int, rows: int) -> None:
        X = Shape(rows, length, 1).dense()
        assert_close(native.fwht(native.fwht(X, length), length), length * X)

    @implementations
    @given(length=lengths, rows=st.integers(1, 20))
    def test_keeps_inner_products(self, native: Any, length: int, rows: int) -> None:
        X = Shape(rows, length, 1).dense()
        H = native.fwht(X, length) / np.sqrt(length)
        assert_close(H @ H.T, X @ X.T)

    @implementations
    @given(length=lengths, factor=st.floats(-4, 4))
    def test_is_linear(self, native: Any, length: int, factor: float) -> None:
        shape = Shape(5, length, 1)
        X, Y = shape.dense(), shape.dense()
        combined = native.fwht(X + factor * Y, length)
        assert_close(combined, native.fwht(X, length) + factor * native.fwht(Y, length))

    @implementations
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_exact_on_integers(self, native: Any, dtype: Any) -> None:
        X = Shape(20, 1024, 1).generator.integers(-50, 50, (20, 1024))
        expected = X @ hadamard(1024)
        np.testing.assert_array_equal(native.fwht(X.astype(dtype), 1024), expected)


@implementations
@given(columns=st.integers(1, 70), size=st.integers(1, 90))
def test_srht_is_its_matrix(native: Any, columns: int, size: int) -> None:
    """P H D · scale, on whole rows and on rows that stop early."""
    shape = Shape(6, columns, size)
    X, spec = shape.dense(), shape.srht()
    signs = np.pad(spec.signs, (0, spec.padded - columns))
    matrix = spec.scale * signed_hadamard(signs)[spec.indices]
    assert_close(native.srht(X, spec), padded(X, spec.padded) @ matrix.T)
    shorter = np.ascontiguousarray(X[:, : (columns + 1) // 2])
    assert_close(native.srht(shorter, spec), padded(shorter, spec.padded) @ matrix.T)
    assert_close(native.srht(sp.csr_array(X), spec), native.srht(X, spec))


def block_matrix(signs: NDArray[np.int8]) -> NDArray[np.float64]:
    """H D₃ H D₂ H D₁ over its length^(3/2), an orthogonal matrix."""
    first, second, third = (signed_hadamard(diagonal) for diagonal in signs)
    matrix: NDArray[np.float64] = third @ second @ first / len(first) ** 1.5
    return matrix


@implementations
@given(columns=st.integers(1, 70), size=st.integers(1, 90), blocks=st.integers(1, 4))
def test_sorf_is_its_matrix(native: Any, columns: int, size: int, blocks: int) -> None:
    """On whole rows, on rows that stop early and on sparse ones."""
    shape = Shape(6, columns, size)
    X, spec = shape.dense(), shape.sorf(blocks)
    stacked = np.concatenate([block_matrix(signs) for signs in spec.signs])
    scales = spec.scales / orthogonal_scale(spec.padded)
    matrix = scales[:, None] * stacked[spec.indices]
    assert_close(native.sorf(X, spec), padded(X, spec.padded) @ matrix.T)
    shorter = np.ascontiguousarray(X[:, : (columns + 1) // 2])
    assert_close(native.sorf(shorter, spec), padded(shorter, spec.padded) @ matrix.T)
    assert_close(native.sorf(sp.csr_array(X), spec), native.sorf(X, spec))


@implementations
@given(length=lengths, rows=st.integers(1, 20))
def test_sorf_keeps_inner_products(native: Any, length: int, rows: int) -> None:
    """Every block is orthogonal with the scale that is said to make it so."""
    shape = Shape(rows, length, 2 * length)
    X, signs = shape.dense(), shape.signs(6 * length).reshape(2, 3, length)
    scales = np.full(2 * length, orthogonal_scale(length))
    projected = native.sorf(X, SorfSpec(signs, np.arange(2 * length, dtype=np.int32), scales))
    for block in np.split(projected, 2, axis=1):
        assert_close(block @ block.T, X @ X.T)


@implementations
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sorf_stays_in_range(native: Any, dtype: Any) -> None:
    """No power of the length piles up on the way: rows near the ends of the range survive."""
    shape, info = Shape(9, 4096, 50, dtype), np.finfo(dtype)
    X, spec = shape.dense(), shape.sorf()
    expected = native.sorf(X, spec)
    for exponent in (info.maxexp - 16, info.minexp + 64):
        factor = dtype(2.0) ** exponent
        np.testing.assert_array_equal(native.sorf(X * factor, spec), expected * factor)


def features_of_turns(native: Any, turns: NDArray[Any], scale: float) -> NDArray[Any]:
    """Cosines and sines of given turns, through a projection that is the number one."""
    one = SorfSpec(np.ones((1, 3, 1), np.int8), np.zeros(1, np.int32), np.ones(1))
    features: NDArray[Any] = native.fourier(turns[:, None], one, scale)
    return features


class TestFourier:
    @implementations
    @given(columns=st.integers(1, 70), size=st.integers(1, 90))
    def test_is_cosines_then_sines_of_sorf(self, native: Any, columns: int, size: int) -> None:
        shape = Shape(6, columns, size)
        X, spec = shape.dense(), shape.sorf()
        angles = 2 * np.pi * native.sorf(X, spec)
        expected = 0.5 * np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        assert_close(native.fourier(X, spec, 0.5), expected)

    @implementations
    @pytest.mark.parametrize(("dtype", "error"), [(np.float64, 4e-16), (np.float32, 2e-7)])
    def test_is_accurate_all_around(self, native: Any, dtype: Any, error: float) -> None:
        """The sines of small angles even relative to themselves."""
        small = np.logspace(-30, -1, 1000)
        turns = np.concatenate([np.linspace(-2, 2, 40001), small, -small]).astype(dtype)
        precise = np.longdouble(turns) - np.round(turns)
        angles = 2 * precise * np.longdouble("3.14159265358979323846")
        found = features_of_turns(native, turns, 1.0)
        cosine_error, sine_error = np.abs(found.T - [np.cos(angles), np.sin(angles)])
        assert cosine_error.max() < error
        assert np.all(sine_error <= error * np.minimum(1, 8 * np.abs(precise)))

    @implementations
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_exact_at_quarter_turns(self, native: Any, dtype: Any) -> None:
        quarters = np.arange(-20, 21)
        circle = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
        found = features_of_turns(native, (quarters / 4).astype(dtype), 3.0)
        np.testing.assert_array_equal(found, 3 * circle[quarters % 4])

    @implementations
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_stays_on_the_circle_for_any_number_of_turns(self, native: Any, dtype: Any) -> None:
        """Turns too large to have a fraction are meaningless; their features must not be huge."""
        info = np.finfo(dtype)
        sizes = np.geomspace(0.1 / info.eps, info.max / 4, 2000)
        turns = np.concatenate([sizes, -sizes]).astype(dtype)
        found = features_of_turns(native, turns, 1.0)
        assert np.abs((found**2).sum(axis=1) - 1).max() < 4 * info.eps


@implementations
@given(columns=st.integers(1, 12), size=st.integers(1, 40))
def test_tensor_srht_is_its_matrix(native: Any, columns: int, size: int) -> None:
    """P (H D₁ ⊗ H D₂) / √size on a ⊗ b."""
    shape = Shape(5, columns, size)
    A, B, length = shape.dense(), shape.dense(), shape.padded
    spec = shape.pair(length, size)
    both = np.kron(signed_hadamard(spec.signs_first), signed_hadamard(spec.signs_second))
    matrix = both[spec.first * length + spec.second] / np.sqrt(size)
    tensors = np.einsum("ri,rj->rij", padded(A, length), padded(B, length)).reshape(5, -1)
    assert_close(native.tensor_srht(A, B, spec), tensors @ matrix.T)


@implementations
@given(columns=st.integers(1, 40), size=st.integers(1, 30), copies=st.integers(1, 5))
def test_scatter_is_its_matrix(native: Any, columns: int, size: int, copies: int) -> None:
    shape = Shape(6, columns, size)
    X, table = shape.dense(), shape.indices(2 * size, columns * copies).reshape(-1, copies)
    matrix = np.zeros((size, columns))
    for column, targets in enumerate(table):
        for target in targets:
            matrix[target // 2, column] += 0.5 * (-1) ** target
    assert_close(native.scatter(X, ScatterSpec(table, size, 0.5)), X @ matrix.T)


@implementations
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@given(columns=st.integers(1, 300), size=st.integers(1, 50), copies=st.integers(1, 5))
def test_scatter_by_hash_is_scatter_by_table(
    native: Any, index_dtype: Any, columns: int, size: int, copies: int
) -> None:
    X = Shape(4, columns, size).sparse(0.5, index_dtype)
    table = hashed_table(KEY, columns, size, min(copies, size))
    by_hash = native.scatter(X, ScatterSpec(table, size, 0.5, KEY))
    np.testing.assert_array_equal(by_hash, native.scatter(X, ScatterSpec(table, size, 0.5)))


@implementations
@given(columns=st.integers(1, 100), size=st.integers(1, 20))
def test_moments_and_products_are_those_of_numpy(native: Any, columns: int, size: int) -> None:
    shape = Shape(7, columns, size)
    X, matrix = shape.dense(), shape.generator.normal(size=(columns, size))
    squares, dots = native.row_moments(X, matrix[:, 0].copy())
    assert_close(squares, (X**2).sum(axis=1))
    assert_close(dots, X @ matrix[:, 0])
    assert_close(native.product(X, matrix), X @ matrix)


def exponentials(native: Any, exponents: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    """exp(-t) as the Gaussian routine of rows at the squared distances t."""
    products = np.zeros((1, len(exponents)))
    values = native.gaussian_values(products, np.zeros(1), exponents, 1.0, np.dtype(dtype))
    assert values.dtype == dtype
    row: NDArray[Any] = values[0]
    return row


class TestGaussianValues:
    @implementations
    @given(rows=st.integers(0, 6), columns=st.integers(0, 70), gamma=st.floats(1e-3, 10.0))
    def test_is_its_formula(self, native: Any, rows: int, columns: int, gamma: float) -> None:
        generator = np.random.default_rng([rows, columns])
        products = generator.normal(size=(rows, columns))
        left, right = generator.uniform(0.0, 3.0, rows), generator.uniform(0.0, 3.0, columns)
        distances = np.maximum(left[:, None] + right - 2.0 * products, 0.0)
        values = native.gaussian_values(products, left, right, gamma, np.dtype(np.float64))
        np.testing.assert_allclose(values, np.exp(-gamma * distances), rtol=1e-13)

    @implementations
    def test_is_accurate_over_the_whole_range(self, native: Any) -> None:
        """Within a unit of the last place, among subnormal numbers within one of their units."""
        exponents = np.concatenate([np.linspace(0.0, 746.0, 100001), np.geomspace(1e-320, 1, 5000)])
        exact = np.exp(-exponents.astype(np.longdouble))
        errors = np.abs(exponentials(native, exponents, np.float64) - exact)
        normal = exact >= np.finfo(np.float64).tiny
        assert np.all(errors[normal] <= 2e-16 * exact[normal])
        assert np.all(errors[~normal] <= np.finfo(np.float64).smallest_subnormal)
        assert np.count_nonzero(~normal) > 1000

    @implementations
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_is_exact_at_the_ends(self, native: Any, dtype: Any) -> None:
        ones = exponentials(native, np.array([0.0, -0.0, -1e-9, -1e300, -np.inf, 5e-324]), dtype)
        np.testing.assert_array_equal(ones, 1.0)
        zeros = exponentials(native, np.array([746.0, 747.0, 1e5, 1e300, np.inf]), dtype)
        np.testing.assert_array_equal(zeros, 0.0)
        assert not np.signbit(zeros).any()
        last = exponentials(native, np.array([745.13, 745.14]), np.float64)
        np.testing.assert_array_equal(last, [5e-324, 0.0])

    @implementations
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_what_is_not_a_number_stays_that(self, native: Any, dtype: Any) -> None:
        products = np.array([[0.0, np.inf, np.nan, 1.0]])
        arguments = np.array([np.inf]), np.array([0.0, 0.0, 0.0, -np.inf]), 1.0, np.dtype(dtype)
        values = native.gaussian_values(products, *arguments)
        np.testing.assert_array_equal(values, [[0.0, np.nan, np.nan, np.nan]])

    @implementations
    def test_single_precision_is_double_precision_rounded(self, native: Any) -> None:
        exponents = np.linspace(0.0, 120.0, 20001)
        single = exponentials(native, exponents, np.float32)
        rounded = exponentials(native, exponents, np.float64).astype(np.float32)
        np.testing.assert_array_equal(single, rounded)
        assert np.count_nonzero((single > 0.0) & (single < np.finfo(np.float32).tiny)) > 1000

    @implementations
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_values_in_place_of_products_are_the_same(self, native: Any, dtype: Any) -> None:
        generator = np.random.default_rng(0)
        products = generator.normal(size=(7, 45)).astype(dtype)
        left, right = generator.uniform(0.0, 3.0, 7), generator.uniform(0.0, 3.0, 45)
        expected = native.gaussian_values(
            products.astype(np.float64), left, right, 0.5, np.dtype(dtype)
        )
        native.gaussian_in_place(products, left, right, 0.5)
        np.testing.assert_array_equal(products, expected)

    @implementations
    def test_leaves_its_arguments_alone(self, native: Any) -> None:
        arguments = np.ones((3, 5)), np.arange(3.0), np.arange(5.0)
        copies = [argument.copy() for argument in arguments]
        native.gaussian_values(*arguments, 0.5, np.dtype(np.float64))
        for argument, copy in zip(arguments, copies, strict=True):
            np.testing.assert_array_equal(argument, copy)


@implementations
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("preserve_norms", [True, False])
def test_chain_is_its_program(native: Any, leaf: str, shift: bool, preserve_norms: bool) -> None:
    """Each block is S(w ⊗ v) of plain vectors, rescaled to its norm or times its scale."""
    shape, length = Shape(11, 13, 16), 32
    spec = chain_spec(shape, length, leaf=leaf, shift=shift, preserve_norms=preserve_norms)
    X, scales = shape.dense(), shape.generator.uniform(1, 2, (11, 3))
    row_scale, row_shift = shape.generator.uniform(1, 2, (2, 11))
    w = row_scale[:, None] * X
    if leaf != "identity":
        w = getattr(native, leaf)(w, spec.leaf)
    w = padded(w, spec.leaf_length)
    if shift:
        w = w + row_shift[:, None] * spec.leaf_shift
    w2 = padded_pair(native, w, w, spec.pair)
    w3 = padded_pair(native, w2, w, spec.pair)
    w6 = padded_pair(native, w3, w3, spec.pair)
    blocks = [w[:, -(-spec.leaf_length // 2) :], w2, w6[:, : -(-length // 3)]]
    for block, scale in zip(blocks, scales.T, strict=True):
        norms = np.linalg.norm(block, axis=1) if preserve_norms else 1.0
        block *= (scale / norms)[:, None]
    out = np.empty((11, sum(block.shape[1] for block in blocks)))
    given_shift = row_shift if shift else row_shift[:0]
    native.make_chain(spec, out.dtype).apply(X, row_scale, given_shift, scales, out, 1)
    assert_close(out, np.concatenate(blocks, axis=1))


def padded_pair(native: Any, A: NDArray[Any], B: NDArray[Any], pair: PairSpec) -> NDArray[Any]:
    result: NDArray[Any] = native.tensor_srht(padded(A, pair.length), padded(B, pair.length), pair)
    return result


@given(columns=st.integers(0, 10**6))
def test_padded_length_is_the_next_power_of_two(columns: int) -> None:
    length = padded_length(columns)
    assert length & (length - 1) == 0
    assert columns <= length
    assert length == 1 or length < 2 * columns


def test_srht_spec_of_one_coordinate() -> None:
    spec = SrhtSpec(np.array([-1], np.int8), np.zeros(3, np.int32), 1, 2.0)
    for native in (compiled, reference):
        np.testing.assert_array_equal(native.srht(np.array([[5.0]]), spec), [[-10.0] * 3])
