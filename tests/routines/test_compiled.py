"""The compiled routines against their specification, on the same arguments and draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.routines import compiled, reference
from powersketch.routines.specs import ScatterSpec
from tests.routines.routine_calls import (
    CALLS,
    STRETCH,
    Call,
    Shape,
    assert_same_bits,
    chain_call,
    chain_spec,
)

LARGE = [
    Shape(9, 300, 5000),
    Shape(1, 5000, 100),
    Shape(17, 5000, 50),
    Shape(3, 20000, 65),
    Shape(2, 70000, 40),
    Shape(2, 150000, 40),
    Shape(2, 4 * STRETCH + 1, 30),
]

routines = pytest.mark.parametrize("routine", CALLS)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
implementations = pytest.mark.parametrize(
    "native", [compiled, reference], ids=["compiled", "reference"]
)


def assert_agrees(call: Call) -> None:
    actual = call.run(compiled, call.rows, 1)
    expected = call.run(reference, call.rows, 1)
    if call.tolerance is None:
        assert_same_bits(actual, expected)
    else:
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=0.0, atol=call.tolerance)


def affordable(routine: str, shape: Shape) -> bool:
    """Some specifications loop over the columns, and an identity leaf is as long as the row."""
    if "csr64" in routine:  # the same code with other loads
        return shape.columns <= 300
    if routine.startswith("tensor_sketch"):  # once for each of 8 factors, and for the direction
        return shape.columns <= 300
    if routine.startswith(("scatter", "product", "chain-identity", "chain-scatter")):
        return shape.columns <= 5000
    return shape.columns <= 150000 or "srht-csr" in routine or routine in ("srht", "chain-srht")


@routines
@dtypes
@settings(max_examples=6)
@given(rows=st.integers(0, 70), columns=st.integers(1, 300), size=st.integers(1, 100))
@example(rows=0, columns=5, size=3)
@example(rows=1, columns=1, size=1)
@example(rows=15, columns=256, size=64)
@example(rows=16, columns=255, size=16)
@example(rows=17, columns=257, size=17)
def test_agrees_on_small_rows(routine: str, dtype: Any, rows: int, columns: int, size: int) -> None:
    assert_agrees(CALLS[routine](Shape(rows, columns, size, dtype)))


@routines
@dtypes
def test_agrees_around_the_widths_of_vectors(routine: str, dtype: Any) -> None:
    for rows in (1, 2, 3, 4, 5, 8, 9, 16, 17, 33):
        assert_agrees(CALLS[routine](Shape(rows, 24, 20, dtype)))


@pytest.mark.parametrize(
    ("routine", "shape"),
    [(routine, shape) for routine in CALLS for shape in LARGE if affordable(routine, shape)],
    ids=str,
)
@dtypes
def test_agrees_on_large_rows(routine: str, shape: Shape, dtype: Any) -> None:
    assert_agrees(CALLS[routine](replace(shape, dtype=dtype)))


@dtypes
@given(
    rows=st.integers(1, 20),
    length=st.sampled_from([1, 2, 16, 64]),
    choices=st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12),
    preserve_norms=st.booleans(),
)
def test_chains_of_any_program_agree(
    dtype: Any,
    rows: int,
    length: int,
    choices: list[tuple[int, int, int]],
    preserve_norms: bool,
) -> None:
    """Products of any registers into any register, each written out as soon as it is there."""
    shape = Shape(rows, length, length, dtype)
    written = [0]
    steps, outputs = [], [(0, 0, length, 0, 0)]
    for left, right, target in choices:
        operands = written[left % len(written)], written[right % len(written)]
        written = sorted({*written, target})
        steps.append((*operands, target, length))
        outputs.append((target, 0, length, length * len(steps), len(steps)))
    spec = replace(
        chain_spec(shape, length, leaf="identity", shift=False, preserve_norms=preserve_norms),
        steps=np.array(steps, dtype=np.int32).reshape(-1, 4),
        outputs=np.array(outputs, dtype=np.int32),
        registers=4,
    )
    assert_agrees(chain_call(shape, spec))


@dtypes
@given(rows=st.integers(0, 20), columns=st.integers(1, 300), density=st.floats(0, 1))
def test_row_moments_of_csr_have_the_bits_of_dense(
    dtype: Any, rows: int, columns: int, density: float
) -> None:
    shape = Shape(rows, columns, 1, dtype)
    X, direction = shape.sparse(density, np.int32), shape.generator.normal(size=columns)
    of_sparse = compiled.row_moments(X, direction)
    of_dense = compiled.row_moments(X.toarray(), direction)
    for sparse_moment, dense_moment in zip(of_sparse, of_dense, strict=True):
        assert_same_bits(sparse_moment, dense_moment)


@dtypes
@pytest.mark.parametrize("size", [3, 64])
def test_repeated_entries_of_csr_rows_add_up(dtype: Any, size: int) -> None:
    columns = np.tile(np.arange(50, dtype=np.int32), 2)
    X = sp.csr_array((np.arange(100, dtype=dtype), columns, np.array([0, 100])), shape=(1, 50))
    shape = Shape(1, 50, size, dtype)
    table = shape.indices(2 * size, 50)[:, None]
    for routine, spec in (("srht", shape.srht()), ("scatter", ScatterSpec(table, size, 1.0))):
        actual, expected = (getattr(native, routine)(X, spec) for native in (compiled, reference))
        np.testing.assert_allclose(actual, expected, rtol=1e-5, err_msg=routine)


@dtypes
@pytest.mark.parametrize("routine", ["sorf-csr32", "fourier-csr32"])
def test_sparse_rows_in_pieces_are_the_same_rows(
    routine: str, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = CALLS[routine](Shape(37, 50, 20, dtype))
    whole = call.run(compiled, call.rows, 1)
    for most in (1, 7 * 50 * dtype().itemsize, 2**20):
        monkeypatch.setattr(compiled, "DENSE_BYTES", most)
        assert_same_bits(call.run(compiled, call.rows, 1), whole)


def spoil(X: Any, row: int) -> None:
    """Put a NaN into a row of X, in place."""
    if sp.issparse(X):
        first, last = X.indptr[row : row + 2]
        assert first < last, "the row needs an entry to spoil"
        X.data[first] = np.nan
    else:
        X[row, 0] = np.nan


@routines
@dtypes
def test_rows_do_not_see_each_other(routine: str, dtype: Any) -> None:
    """A row that is not finite leaves all others as they were, however rows are grouped."""
    call = CALLS[routine](Shape(37, 50, 20, dtype))
    clean = call.run(compiled, call.rows, 1)
    spoil(call.rows[0], row=20)
    spoilt = call.run(compiled, call.rows, 1)
    if routine.startswith(("chain", "tensor_sketch")):  # a last column speaks for all rows
        clean, spoilt = clean[:, :-1], spoilt[:, :-1]
    assert np.isnan(spoilt[20]).any()
    assert_same_bits(np.delete(spoilt, 20, axis=0), np.delete(clean, 20, axis=0))


class TestChainRange:
    """What a chain says about features that leave the dtype's range."""

    @staticmethod
    def apply(
        native: Any, dtype: Any, block_scale: float, *, preserve_norms: bool = True
    ) -> tuple[NDArray[Any], bool]:
        shape = Shape(5, 64, 64, dtype)
        spec = chain_spec(shape, 64, leaf="identity", shift=False, preserve_norms=preserve_norms)
        out = np.empty((5, 118), dtype=dtype)
        ones, nothing = np.ones(5, dtype=dtype), np.empty(0, dtype=dtype)
        chain, scales = native.make_chain(spec, np.dtype(dtype)), np.full((5, 3), block_scale)
        with np.errstate(over="ignore", invalid="ignore"):
            fits = chain.apply(shape.dense(), ones, nothing, scales, out, 1)
        return out, fits

    @implementations
    @dtypes
    @pytest.mark.parametrize("exponent", [-0.9, -0.5, 0.0, 0.5, 0.9])
    def test_norms_are_the_ones_asked_for(self, native: Any, dtype: Any, exponent: float) -> None:
        norm = float(np.finfo(dtype).max) ** exponent
        out, fits = self.apply(native, dtype, norm)
        assert fits
        for block in np.split(out.astype(np.float64) / norm, [32, 96], axis=1):
            norms = np.linalg.norm(block, axis=1)
            np.testing.assert_allclose(norms, 1.0, rtol=10 * np.finfo(dtype).eps)

    @implementations
    @dtypes
    def test_a_norm_of_zero_gives_zeros(self, native: Any, dtype: Any) -> None:
        out, fits = self.apply(native, dtype, 0.0)
        assert fits
        np.testing.assert_array_equal(out, 0.0)

    @implementations
    @pytest.mark.parametrize("preserve_norms", [True, False])
    def test_what_is_said_to_fit_is_finite(self, native: Any, preserve_norms: bool) -> None:
        answers = []
        for block_scale in np.logspace(37, 40, 31):
            out, fits = self.apply(native, np.float32, block_scale, preserve_norms=preserve_norms)
            assert np.isfinite(out).all() or not fits, f"block scale {block_scale:.3g}"
            answers.append(fits)
        assert answers[0]
        assert not answers[-1]
