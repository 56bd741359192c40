"""Rows scaled to norm one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize

from powersketch.exceptions import InputError


def unit_rows(path: Path, X: Any) -> Any:
    """Return the rows of a file at norm one; rows of zeros stay what they are.

    Rows whose squares are too large or too small for their type of numbers would become zero, or
    keep their norm: they are refused.
    """
    scaled = normalize(X)
    squares = _row_sums(scaled * scaled)
    failed = np.flatnonzero((np.abs(squares - 1.0) > 0.01) & (_row_sums(abs(X) > 0) > 0))
    if failed.size:
        raise InputError(
            f"{path.name}, row {failed[0] + 1}: its norm is too large or too small to be computed; "
            "bring the entries near 1, for instance by other units, or do without --normalize."
        )
    return scaled


def _row_sums(X: Any) -> Any:
    sums = X.sum(axis=1)
    return np.asarray(sums.ravel() if sparse.issparse(X) else sums, dtype=np.float64)
