"""What the specifications share: sums and sines in NumPy whose order of operations is fixed."""

import numpy as np

from powersketch.arrays import Real, Rows, is_sparse
from powersketch.routines.specs import ScatterSpec

# P(b) = b · Σ c_k b^(2k) ≈ sin(2πb) for |b| ≤ ¼, by interpolation of sin(2π√u)/√u in the Chebyshev
# nodes of [0, 1/16]: off by 2e-7 in float32 and by 4e-16 in float64, rounding included.
_SINE_SINGLE = (6.28318548, -41.3416824, 81.602478, -76.5811691, 39.7598267)
_SINE_DOUBLE = (
    6.283185307179586,
    -41.341702240399755,
    81.60524927607362,
    -76.70585975282492,
    42.058693925428685,
    -15.0946416761179,
    3.8199280942271643,
    -0.7177337921413454,
    0.10089695501646812,
)


def dense_rows(X: Rows) -> Real:
    """Return the rows as one dense array."""
    dense: Real = X.toarray() if is_sparse(X) else X
    return dense


def scatter(X: Rows, spec: ScatterSpec, *, threads: int = 1) -> Real:
    """Return scale · (signed sums of the coordinates of every row)."""
    del threads
    dense = dense_rows(X)
    out = np.zeros((dense.shape[0], spec.size), dtype=dense.dtype)
    for column, targets in zip(dense.T, spec.table, strict=False):
        for target in targets:
            out[:, target // 2] += -column if target % 2 else column
    scaled: Real = out * dense.dtype.type(spec.scale)
    return scaled


def sum_by_eights(values: Real) -> Real:
    """Sum rows by eight partial sums, position modulo eight, then a tree of additions."""
    length = -(-values.shape[1] // 8) * 8
    parts = np.zeros((len(values), 8), dtype=values.dtype)
    for start in range(0, length, 8):
        chunk = values[:, start : start + 8]
        parts[:, : chunk.shape[1]] += chunk
    even = (parts[:, 0] + parts[:, 4]) + (parts[:, 2] + parts[:, 6])
    odd = (parts[:, 1] + parts[:, 5]) + (parts[:, 3] + parts[:, 7])
    total: Real = even + odd
    return total


def sine(quarters: Real) -> Real:
    """Return sin(2πb) for |b| ≤ ¼, by Horner's rule."""
    coefficients = _SINE_SINGLE if quarters.dtype == np.float32 else _SINE_DOUBLE
    squares = quarters * quarters
    result: Real = np.full_like(squares, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * squares + squares.dtype.type(coefficient)
    return result * quarters
