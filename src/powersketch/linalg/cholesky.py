"""Cholesky factorisations in place, with a jitter where rounding has made a matrix indefinite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import cholesky_in_place
from powersketch.linalg.dwarfing_rows import dwarfing

# With this much of the mean diagonal added, the factor would no longer resemble the matrix.
_LARGEST_JITTER = 0.1
_WIDTH = 512
# Of the pivots. Beyond it, rounding errors of float32 are as large as the smallest eigenvalues.
_LARGEST_SPREAD_OF_FLOAT32 = 1e6


def check_square(matrix: NDArray[Any]) -> None:
    """Refuse what is not a finite square matrix of real numbers."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InputError(
            f"the matrix has shape {matrix.shape}; allowed is (n, n) with n of at least 1."
        )
    if matrix.dtype not in (np.float64, np.float32):
        raise InputTypeError(
            f"the matrix has dtype {matrix.dtype}; allowed are float64 and float32: "
            "convert with matrix.astype(float)."
        )
    if not np.isfinite(matrix).all():
        raise InputError("the matrix contains NaN or infinity; allowed are finite numbers.")


def float32_factor(
    matrix: NDArray[Any], diagonal: NDArray[np.float64], jitter: float
) -> NDArray[Any] | None:
    """Return the lower factor, or None, and then the matrix is still as it was."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = matrix if matrix.dtype == np.float32 else matrix.astype(np.float32)
        shifted = (diagonal + jitter * diagonal.mean()).astype(np.float32)
        factor = lower_factor(rounded, shifted)
    if factor is not None and spread(factor) ** 2 > _LARGEST_SPREAD_OF_FLOAT32:
        _restore(factor, shifted)
        return None
    return factor


def float64_factor(
    matrix: NDArray[Any], diagonal: NDArray[np.float64], jitter: float
) -> tuple[NDArray[Any], float]:
    """Return the lower factor and the jitter that was necessary."""
    rounding = matrix.shape[0] * float(np.finfo(matrix.dtype).eps)
    largest = max(_LARGEST_JITTER, 10.0 * jitter)
    matrix = matrix.astype(np.float64, copy=False)
    mean = float(diagonal.mean())
    while jitter <= largest and mean > 0.0:
        shifted = diagonal + jitter * mean
        factor = lower_factor(matrix, shifted)
        if factor is not None and _has_digits(factor, shifted, rounding):
            return factor, jitter
        if factor is not None:
            _restore(factor, diagonal)
        jitter = max(10.0 * jitter, rounding)
    raise np.linalg.LinAlgError(
        f"the matrix is not positive definite: its diagonal is {mean:.3g} in the mean, and adding "
        f"up to {largest:.1g} of that does not suffice: {_remedy(diagonal)}."
    )


def _remedy(diagonal: NDArray[np.float64]) -> str:
    found, median = dwarfing(diagonal)
    if not found.size:
        return "use a larger alpha"
    return (
        f"row {found[0]} has {diagonal[found[0]]:.3g} there, and the median is "
        f"{median:.3g}; remove or rescale such rows"
    )


def lower_factor(matrix: NDArray[Any], diagonal: NDArray[np.floating[Any]]) -> NDArray[Any] | None:
    """Return the factor of the matrix with that diagonal, or None if there is no factor.

    It is written below the diagonal of the matrix if that can be. What is above it stays there,
    and None restores the rest from it.
    """
    matrix = matrix if _is_writeable_rows(matrix) else matrix.copy(order="C")
    np.fill_diagonal(matrix, diagonal)
    if cholesky_in_place(matrix):
        return matrix
    _restore(matrix, diagonal)
    return None


def _has_digits(factor: NDArray[Any], diagonal: NDArray[np.float64], rounding: float) -> bool:
    """Return whether every pivot is more than what rounding leaves of a diagonal entry."""
    return bool((factor.diagonal() ** 2 > 0.1 * rounding * diagonal).all())


def spread(factor: NDArray[Any]) -> float:
    """Return the quotient of the extreme diagonal entries: no more than the condition number."""
    diagonal = np.abs(factor.diagonal())
    return float(diagonal.max() / diagonal.min()) if diagonal.min() > 0.0 else np.inf


def _restore(matrix: NDArray[Any], diagonal: NDArray[np.floating[Any]]) -> None:
    """Copy what is right of the diagonal, which no factorisation touches, to what is below it."""
    for part in _parts(matrix.shape[0]):
        square = matrix[part, part]
        np.copyto(square, np.triu(square) + np.triu(square, 1).T)
        matrix[part.stop :, part] = matrix[part, part.stop :].T
    np.fill_diagonal(matrix, diagonal)


def _is_writeable_rows(matrix: NDArray[Any]) -> bool:
    return bool(matrix.flags.c_contiguous and matrix.flags.writeable)


def _parts(size: int) -> Iterator[slice]:
    for start in range(0, size, _WIDTH):
        yield slice(start, min(start + _WIDTH, size))
