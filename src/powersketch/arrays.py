"""Arrays as all layers see them: their types, and the few questions that everybody asks."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Real: TypeAlias = NDArray[Any]
"""A float32 or float64 array; functions return the dtype they are given."""

Vector: TypeAlias = NDArray[np.float64]
"""Numbers in double precision, one for every row, column or feature."""

Float64: TypeAlias = NDArray[np.float64]
"""A matrix in double precision."""

Rows: TypeAlias = Any
"""Samples in rows: a C-contiguous float array, or a CSR matrix or array of floats."""

LARGEST_LENGTH = 1 << 30
"""Of features and of powers between them: places in them, and their ends, are int32."""

is_sparse: Callable[[Rows], bool] = sp.issparse
"""Tells whether rows are a SciPy sparse matrix or array."""


def divide_or_zero(numerator: float | Real, denominator: Vector) -> Vector:
    """Return numerator / denominator, and zero where the denominator is not above zero."""
    return np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def slices(count: int, step: int) -> Iterator[slice]:
    """Return slices of `step` numbers that cover 0 … count − 1; the last one may be shorter.

    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return map(slice, range(0, count, step), chain(range(step, count, step), (count,)))


def scaled_rows(X: Rows, factors: Vector, operation: np.ufunc = np.multiply) -> Rows:
    """Return the rows in their dtype, each multiplied by its factor, or divided by it."""
    factors = factors.astype(X.dtype, copy=False)
    if not is_sparse(X):
        return operation(X, factors[:, None])
    scaled = X.copy()
    operation(X.data, np.repeat(factors, np.diff(X.indptr)), out=scaled.data)
    return scaled
