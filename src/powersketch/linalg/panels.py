"""Products with large matrices in panels of rows, so that no call into BLAS takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

Float64: TypeAlias = NDArray[np.float64]
Real: TypeAlias = NDArray[np.floating[Any]]

# About a tenth of a second: Python hears Ctrl-C between two panels only.
_MULTIPLICATIONS = 2**27
_SOLVED = 2**31  # about as long
# One at a time, so many vectors are quicker than all at once: it is memory that takes the time.
_FEW_VECTORS = 2
# Rows that are converted to float64 for the moment of a product.
_ENTRIES_CONVERTED = 2**21


def panel_product(matrix: Real, V: Real) -> Real:
    """Return `matrix @ V` for V of two dimensions, both of the same dtype."""
    product = np.empty((matrix.shape[0], V.shape[1]), matrix.dtype)
    for rows in panels(matrix.shape[0], _MULTIPLICATIONS // max(matrix.shape[1] * V.shape[1], 1)):
        np.matmul(matrix[rows], V, out=product[rows])
    return product


def symmetric_product(matrix: Real, V: Real) -> Real:
    """Return `matrix @ V` for a symmetric matrix, of which half is read for each of few vectors."""
    if V.shape[1] > _FEW_VECTORS or not matrix.flags.c_contiguous:
        return panel_product(matrix, V)
    multiply = get_blas_funcs("symv", (matrix,))
    return np.column_stack([multiply(1.0, matrix.T, vector) for vector in V.T])


def factor_product(Z: Real, V: Real, *, transposed: bool) -> Real:
    """Return `Z @ V` or `Z.T @ V`; for few vectors by SciPy's BLAS, as `symmetric_product` does.

    NumPy's has threads of its own, and those of the two wait for work at each other's expense.
    """
    if V.shape[1] > _FEW_VECTORS or not Z.flags.c_contiguous:
        return Z.T @ V if transposed else Z @ V
    multiply = get_blas_funcs("gemv", (Z,))
    columns = [multiply(1.0, Z.T, vector, trans=not transposed) for vector in V.T]
    return np.column_stack(columns)


def rounded_product(
    matrix: Real, V: Float64, product: Callable[[Real, Real], Real] = panel_product
) -> Float64:
    """Return `matrix @ V` with the speed, and the rounding errors, of the matrix's precision."""
    if matrix.dtype == V.dtype:
        return product(matrix, V).astype(np.float64, copy=False)
    # A power of two changes no digit, and near one nothing underflows in the narrower dtype.
    exponents = np.frexp(np.abs(V).max(axis=0))[1]
    narrow = np.ldexp(V, -exponents).astype(matrix.dtype)
    return np.ldexp(product(matrix, narrow).astype(np.float64), exponents)


def exact_product(matrix: Real, V: Float64) -> Float64:
    """Return `matrix @ V` in float64, whatever the dtype of the matrix, without a copy of it."""
    if matrix.dtype == V.dtype:
        return rounded_product(matrix, V)
    product = np.empty((matrix.shape[0], V.shape[1]))
    for rows in panels(matrix.shape[0], _ENTRIES_CONVERTED // matrix.shape[1]):
        product[rows] = rounded_product(matrix[rows].astype(np.float64), V)
    return product


def exact_transposed_product(matrix: Real, V: Float64) -> Float64:
    """Return `matrix.T @ V` in float64, whatever the dtype of the matrix, without a copy of it."""
    if matrix.dtype == V.dtype:
        return rounded_product(matrix.T, V)
    product = np.zeros((matrix.shape[1], V.shape[1]))
    for rows in panels(matrix.shape[0], _ENTRIES_CONVERTED // matrix.shape[1]):
        product += rounded_product(matrix[rows].astype(np.float64).T, V[rows])
    return product


def solved_by_panels(solve: Callable[[Real], Real], V: Real) -> Real:
    """Apply a triangular solver to few enough columns at a time that Ctrl-C is heard in between.

    SciPy's solvers keep Python's lock.
    """
    width = max(_SOLVED // V.shape[0] ** 2, 1)
    if V.ndim == 1 or V.shape[1] <= width:
        return solve(V)
    return np.hstack([solve(V[:, columns]) for columns in panels(V.shape[1], width)])


def panels(rows: int, height: int) -> Iterator[slice]:
    """Yield slices of at most so many rows, and of at least one."""
    step = max(height, 1)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
