"""One result, whatever the instruction set, the threads, the batches and the memory it lies in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import _native
from powersketch.routines import compiled
from tests.routines.routine_calls import CALLS, STRETCH, Call, Shape, assert_same_bits

# One shape for every path: short rows, whole tiles, the lanes' limit of 4096, rows of their own,
# a chain too long for lanes, stretches.
SHAPES = [
    Shape(1, 1, 1),
    Shape(13, 3, 5),
    Shape(70, 100, 33),
    Shape(41, 256, 64),
    Shape(21, 3000, 70),
    Shape(5, 4097, 30),
    Shape(9, 20, 5000),
    Shape(3, STRETCH + 5, 20),
]

# Indices of 64 bits only make other loads, which test_compiled covers.
ROUTINES = [name for name in CALLS if "csr64" not in name]

routines = pytest.mark.parametrize("routine", ROUTINES)
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s.rows}x{s.columns}-{s.size}")
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def call_of(routine: str, shape: Shape, dtype: Any) -> Call:
    return CALLS[routine](replace(shape, dtype=dtype))


def run(call: Call, *, threads: int = 1, rows: Any = None) -> NDArray[Any]:
    return call.run(compiled, call.rows if rows is None else rows, threads)


def part(call: Call, rows: slice) -> tuple[Any, ...]:
    return tuple(argument[rows] for argument in call.rows)


@pytest.mark.usefixtures("restored_instruction_set")
@routines
@shapes
@dtypes
def test_every_instruction_set(routine: str, shape: Shape, dtype: Any) -> None:
    call = call_of(routine, shape, dtype)
    results = {}
    for name in _native.instruction_sets():
        _native.select_instruction_set(name)
        assert _native.instruction_set() == name
        results[name] = run(call)
    for result in results.values():
        assert_same_bits(result, results["baseline"])


@routines
@shapes
@dtypes
def test_every_number_of_threads_and_every_split_of_the_rows(
    routine: str, shape: Shape, dtype: Any
) -> None:
    call = call_of(routine, shape, dtype)
    expected = run(call)
    for threads in (2, 3, 5):
        assert_same_bits(run(call, threads=threads), expected)
    for size in (1, 3, 16):
        starts = range(0, shape.rows, size)
        parts = [run(call, rows=part(call, slice(start, start + size))) for start in starts]
        assert_same_bits(np.concatenate(parts), expected)


def shifted(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy that starts one element past an aligned address."""
    memory = np.empty(array.size + 1, dtype=array.dtype)
    copy = memory[1:].reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    return copy


@routines
@dtypes
def test_unaligned_read_only_rows(routine: str, dtype: Any) -> None:
    call = call_of(routine, Shape(21, 300, 40), dtype)
    moved = []
    for argument in call.rows:
        if sp.issparse(argument):
            arrays = shifted(argument.data), shifted(argument.indices), argument.indptr
            moved.append(sp.csr_array(arrays, shape=argument.shape))
        else:
            moved.append(shifted(argument))
    assert_same_bits(run(call, rows=tuple(moved)), run(call))


def test_python_threads_at_the_same_time() -> None:
    calls = [
        call_of(routine, shape, dtype)
        for routine in (
            "srht",
            "fourier",
            "tensor_srht",
            "scatter",
            "chain-srht-norms",
            "srht-csr32-filled",
        )
        for shape in (Shape(70, 100, 33), Shape(21, 3000, 70))
        for dtype in (np.float32, np.float64)
    ]
    expected = [run(call) for call in calls]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda call: run(call, threads=2), 5 * calls))
    for result, alone in zip(results, 5 * expected, strict=True):
        assert_same_bits(result, alone)
