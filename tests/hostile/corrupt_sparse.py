"""Sparse matrices whose arrays contradict each other, as damaged files and buggy code give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

ROWS, COLUMNS = 40, 12


def _csr(kind: Callable[..., Any] = sp.csr_array) -> Any:
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.4)
    return kind(X)


def _changed(array: str, position: int, value: int, kind: Callable[..., Any]) -> Callable[[], Any]:
    def make() -> Any:
        A = _csr(kind)
        getattr(A, array)[position] = value
        return A

    return make


def _shortened(array: str, kind: Callable[..., Any] = sp.csr_array) -> Callable[[], Any]:
    """Leave out the last entries of one of the arrays, so that their lengths differ."""

    def make() -> Any:
        A = _csr(kind)
        setattr(A, array, getattr(A, array)[:-7].copy())
        return A

    return make


_KINDS = {"CSR": sp.csr_array, "CSC": sp.csc_array, "CSR spmatrix": sp.csr_matrix}
_CHANGES = {
    "indptr jumps beyond the arrays": ("indptr", 5, 10**6),
    "indptr falls": ("indptr", 5, 0),
    "indptr is negative": ("indptr", 5, -3),
    "indptr does not start at zero": ("indptr", 0, 2),
    "indptr ends beyond the arrays": ("indptr", -1, 10**7),
    "an index is beyond the end": ("indices", 3, 10**6),
    "an index is a little too large": ("indices", 3, ROWS + COLUMNS),
    "an index is negative": ("indices", 3, -1),
    "an index is very negative": ("indices", 3, -(10**6)),
}

CORRUPT: dict[str, Callable[[], Any]] = {
    f"{name}: {change}": _changed(*values, kind)
    for name, kind in _KINDS.items()
    for change, values in _CHANGES.items()
}
CORRUPT["COO: a row is beyond the end"] = _changed("row", 3, 10**6, sp.coo_array)
CORRUPT["COO: a column is beyond the end"] = _changed("col", 3, 10**6, sp.coo_array)
CORRUPT["COO: a column is negative"] = _changed("col", 3, -5, sp.coo_array)
for _array in ("data", "indices", "indptr"):
    CORRUPT[f"CSR: {_array} is too short"] = _shortened(_array)
    CORRUPT[f"CSC: {_array} is too short"] = _shortened(_array, sp.csc_array)
