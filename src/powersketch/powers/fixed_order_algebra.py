"""Small dense linear algebra in a fixed order of operations: the same bits on every machine.

LAPACK's bits depend on the machine and its number of threads. These factorisations are for matrices
of a few hundred rows, from which coordinates are drawn: other bits would mean other draws.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch import routines

Float64: TypeAlias = NDArray[np.float64]


def gram(A: Float64) -> Float64:
    """Return A Aᵀ, symmetric to the bit."""
    return routines.product(np.ascontiguousarray(A), np.ascontiguousarray(A.T))


def cholesky(A: Float64) -> Float64:
    """Return a lower triangular L with L Lᵀ = A, for a positive semidefinite A.

    A direction without anything left but rounding errors gets a column of zeros.
    """
    rest, factor = A.copy(), np.zeros_like(A)
    smallest = A.shape[0] * np.finfo(np.float64).eps * A.diagonal()
    for j in range(A.shape[0]):
        pivot = rest[j, j]
        if pivot <= smallest[j]:
            continue
        column = rest[j:, j] / np.sqrt(pivot)
        factor[j:, j] = column
        rest[j + 1 :, j + 1 :] -= column[1:, None] * column[1:]
    return factor


def inverse_of_triangular(L: Float64) -> Float64:
    """Return L⁻¹ for a lower triangular L without zeros on its diagonal."""
    inverse = np.eye(L.shape[0])
    for j in range(L.shape[0]):
        inverse[j, : j + 1] /= L[j, j]
        inverse[j + 1 :, : j + 1] -= L[j + 1 :, j, None] * inverse[j, : j + 1]
    return inverse


def shifted(A: Float64, ridge: float) -> Float64:
    """Return A + ridge · I."""
    result = A.copy()
    np.fill_diagonal(result, result.diagonal() + ridge)
    return result
