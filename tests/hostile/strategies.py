"""Hypothesis strategies: any kind of hostile rows in any shape, and any finite numbers at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.hostile.matrices import GOOD, Matrix


@st.composite
def kinds_of_rows(draw: st.DrawFn) -> Matrix:
    """Return a kind of rows, in a shape of its own."""
    kind = GOOD[draw(st.sampled_from(list(GOOD)))]
    rows, columns = draw(st.integers(1, 30)), draw(st.integers(1, 20))
    # Two rows may be equal or opposite by chance: no shape is ordinary enough to be never refused.
    return replace(
        kind,
        name=f"{kind.name} {rows}x{columns}",
        refusal="allowed",
        make=lambda random, *_: kind.make(random, rows, columns),
    )


@st.composite
def any_numbers(draw: st.DrawFn) -> Matrix:
    """Return rows of any finite numbers, which Hypothesis likes to be extreme."""
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 6)))
    width = 8 * np.dtype(dtype).itemsize
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=width)
    X: Any = draw(arrays(dtype, shape, elements=numbers))
    name = f"{X.dtype} {X.tolist()}"
    return Matrix(name, "any finite numbers", "allowed", lambda *_: X.copy())


hostile_rows = st.one_of(kinds_of_rows(), any_numbers())
