"""Products with rows and their transpose: the specification, the compiled routine, exact sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch import _native
from powersketch.routines import compiled, reference
from tests.routines.routine_calls import assert_same_bits

dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


class Arguments(NamedTuple):
    Z: NDArray[Any]
    V: NDArray[Any]
    offsets: NDArray[np.float64]
    weights: NDArray[np.float64]


def arguments(rows: int, columns: int, size: int, sides: int, dtype: Any) -> Arguments:
    generator = np.random.default_rng(rows + columns)
    weights = generator.uniform(size=(rows, sides)) * (generator.uniform(size=(rows, sides)) > 0.2)
    return Arguments(
        generator.normal(size=(rows, columns)).astype(dtype),
        generator.normal(size=(columns, size * sides)).astype(dtype),
        generator.normal(size=size * sides),
        weights,
    )


@dtypes
@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(0, 70),
    columns=st.integers(1, 200),
    size=st.integers(1, 12),
    sides=st.integers(1, 3),
)
@example(rows=0, columns=3, size=2, sides=1)
@example(rows=33, columns=16 * 17 + 1, size=5, sides=1)
@example(rows=64, columns=16 * 20, size=10, sides=2)
def test_agrees_with_the_specification(
    dtype: Any, rows: int, columns: int, size: int, sides: int
) -> None:
    given = arguments(rows, columns, size, sides, dtype)
    assert_same_bits(compiled.normal_product(*given), reference.normal_product(*given))


@pytest.mark.parametrize("native", [compiled, reference], ids=["compiled", "reference"])
@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_is_the_product_of_both(native: Any, dtype: Any, error: float) -> None:
    Z, V, offsets, weights = arguments(500, 301, 4, 2, dtype)
    found = native.normal_product(Z, V, offsets, weights)
    exact = Z.astype(np.float64)
    weighted = np.repeat(weights, 4, axis=1) * (exact @ V.astype(np.float64) - offsets)
    expected = np.vstack((exact.T @ weighted, weighted.sum(axis=0)))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=0, atol=error * np.abs(expected).max())


def test_rows_of_weight_zero_are_not_there() -> None:
    Z, V, offsets, weights = arguments(90, 40, 3, 1, np.float32)
    weights[50:] = 0.0
    # Tiles begin at the same rows with and without them.
    some = compiled.normal_product(Z[:50], V, offsets, weights[:50])
    np.testing.assert_array_equal(compiled.normal_product(Z, V, offsets, weights), some)


GOOD = arguments(6, 5, 2, 2, np.float64)._asdict() | {"out": np.zeros((6, 4))}


@pytest.mark.parametrize(
    "changes",
    [
        {"V": np.ones((4, 4))},
        {"V": np.ones((5, 5)), "offsets": np.ones(5), "out": np.zeros((6, 5))},
        {"offsets": np.ones(3)},
        {"weights": np.ones((5, 2))},
        {"weights": np.ones((6, 0))},
        {"out": np.zeros((5, 4))},
        {"out": np.zeros((6, 3))},
    ],
)
def test_wrong_shapes_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="normal_product: wrong shapes"):
        _native.normal_product(**{**GOOD, **changes})


@pytest.mark.parametrize("name", ["Z", "V", "offsets", "weights"])
def test_out_shares_no_memory_with_what_is_read(name: str) -> None:
    read, out = GOOD[name], GOOD["out"]
    memory = np.ones(read.size + out.size)
    inside = {
        name: memory[: read.size].reshape(read.shape),
        "out": memory[read.size - 1 :][: out.size].reshape(out.shape),
    }
    with pytest.raises(ValueError, match="out shares memory with an array that is read"):
        _native.normal_product(**{**GOOD, **inside})


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _native.normal_product(**{**GOOD, "Z": GOOD["Z"].astype(np.float32)})
