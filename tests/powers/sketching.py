"""What the tests of all power methods share: rows, draws and features."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.powers import POWER_METHODS, PowerOptions, ShiftedRows, Slice
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES

COLUMNS, INTERNAL = 50, 32

base_sketches = pytest.mark.parametrize("base_sketch", BASE_SKETCHES)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
Vector = NDArray[np.float64]


def points(rows: int, columns: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Unit vectors with a common direction, a third of their coordinates zero."""
    generator = np.random.default_rng([rows, columns])
    X = generator.normal(size=(rows, columns)) + 0.5
    X[generator.random(X.shape) < 1 / 3] = 0.0
    X[:, 0] = 1.0
    unit: NDArray[Any] = X / np.linalg.norm(X, axis=1, keepdims=True)
    return unit.astype(dtype)


def draw(
    method: str,
    outputs: Mapping[int, Slice],
    *,
    columns: int = COLUMNS,
    internal: int = INTERNAL,
    base_sketch: str = "srht",
    preserve_norms: bool = False,
    seed: int = 1,
    streams: Any = None,
) -> Any:
    """A sketch of a power method by its name."""
    streams = RandomStreams(seed) if streams is None else streams
    options = PowerOptions(internal, base_sketch, preserve_norms)
    return POWER_METHODS[method].draw(streams, columns, outputs, options)


def features(
    sketch: Any,
    X: Rows,
    *,
    direction: Vector | None = None,
    scale: Vector | None = None,
    shift: Vector | None = None,
    block_scales: NDArray[np.float64] | None = None,
    threads: int = 1,
) -> NDArray[Any]:
    """All features of the rows, which have to fit their dtype; by default every scale is one."""
    sketch = dataclasses.replace(sketch, direction=direction)
    count = X.shape[0]
    out = np.full((count, width(sketch)), np.nan, dtype=X.dtype)
    rows = ShiftedRows(X, np.ones(count) if scale is None else scale, shift)
    block_scales = np.ones((count, len(sketch.degrees))) if block_scales is None else block_scales
    assert sketch.write(rows, block_scales, out, threads)
    return out


def width(sketch: Any) -> int:
    """The number of output columns, of any method."""
    if hasattr(sketch, "program"):
        outputs = sketch.program.outputs
        return int((outputs[:, 2] + outputs[:, 3]).max())
    if hasattr(sketch, "blocks"):
        return max(block.output.columns.stop for block in sketch.blocks)
    return max(output.columns.stop for output in sketch.outputs.values())


def unscaled(X: Rows) -> ShiftedRows:
    """Rows as they are."""
    return ShiftedRows(X, np.ones(X.shape[0]))


def assert_rows_close(
    actual: NDArray[Any], expected: NDArray[Any], tolerance: float = 1e-12
) -> None:
    """Compare rows relative to their norms."""
    errors = np.linalg.norm(actual.astype(np.float64) - expected, axis=1)
    assert np.all(errors <= tolerance * np.linalg.norm(expected, axis=1))
