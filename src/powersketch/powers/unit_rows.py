"""Affine rows scale · x + shift · direction, brought near one by powers of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, is_sparse

Vector = NDArray[np.float64]

# Both a power of two and its inverse are in the range of the dtype.
_LARGEST_EXPONENT = {np.dtype(np.float32): 120, np.dtype(np.float64): 1000}


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows u · 2^−exponent whose largest coordinates are between ½ and 1.

    To sparse rows, which a shift would fill, it is not added: `shift` says how far they are to be
    moved along the direction.
    """

    values: Rows
    shift: Real | None
    exponent: NDArray[np.int64]


def unit_rows(X: Rows, scale: Vector, shift: Vector | None, direction: Vector | None) -> UnitRows:
    """Return u = scale · x + shift · direction, computed in double precision, in the dtype of X.

    The direction may be longer than the rows.
    """
    if shift is None or direction is None:
        shift, direction = None, None
    if is_sparse(X):
        return _sparse_unit_rows(X, scale, shift, direction)
    rows = X * scale[:, None]
    if shift is not None and direction is not None:
        rows = np.pad(rows, ((0, 0), (0, len(direction) - rows.shape[1])))
        rows += shift[:, None] * direction
    factor, exponent = to_one(np.abs(rows).max(axis=1), np.dtype(np.float64))
    rows *= factor[:, None]
    return UnitRows(rows.astype(X.dtype, copy=False), None, exponent)


def _sparse_unit_rows(
    X: Rows, scale: Vector, shift: Vector | None, direction: Vector | None
) -> UnitRows:
    rows = X.astype(np.float64)
    counts = np.diff(rows.indptr)
    rows.data *= np.repeat(scale, counts)
    largest = abs(rows).max(axis=1).toarray().ravel()
    if shift is not None and direction is not None:
        largest = np.maximum(largest, np.abs(shift) * np.abs(direction).max())
    factor, exponent = to_one(largest, np.dtype(np.float64))
    rows.data *= np.repeat(factor, counts)
    moved = None if shift is None else (shift * factor).astype(X.dtype)
    return UnitRows(rows.astype(X.dtype), moved, exponent)


def to_one(largest: Real, dtype: np.dtype[Any]) -> tuple[Vector, NDArray[np.int64]]:
    """Return powers of two that bring numbers into [½, 1), and the exponents they take away."""
    limit = _LARGEST_EXPONENT[dtype]
    exponent = np.clip(np.frexp(largest)[1], -limit, limit)
    return np.ldexp(1.0, -exponent), exponent.astype(np.int64)
