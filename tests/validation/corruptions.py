"""Sparse matrices that are broken, one way each, and masked arrays; with what the refusal says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

ROWS, COLUMNS = 24, 9


@dataclass(frozen=True)
class Corruption:
    """A format, what is done to a matrix of it, and words of the message that refuses it."""

    name: str
    make: Callable[[Any], Any]
    spoil: Callable[[Any], None]
    message: str

    def matrix(self) -> Any:
        """Return the broken matrix."""
        X = self.make(sound_rows())
        self.spoil(X)
        return X


def sound_rows() -> NDArray[np.float64]:
    """Rows with every column in use; some entries are zero."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, COLUMNS)) / 3.0
    X[generator.random(X.shape) < 0.5] = 0.0
    X[:, 0] = 1.0
    return X


def _assign(attribute: str, place: int, value: int) -> Callable[[Any], None]:
    def spoil(X: Any) -> None:
        getattr(X, attribute)[place] = value

    return spoil


def _replace(attribute: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda X: setattr(X, attribute, change(getattr(X, attribute)))


def _wide(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make(X: Any) -> Any:
        matrix = kind(X)
        matrix.indices, matrix.indptr = (
            array.astype(np.int64) for array in (matrix.indices, matrix.indptr)
        )
        return matrix

    return make


def _blocks(X: NDArray[Any]) -> Any:
    return sparse.bsr_array(X, blocksize=(3, 3))


_COMPRESSED = {
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_array": sparse.csc_array,
    "csc_matrix": sparse.csc_matrix,
    "wide csr": _wide(sparse.csr_array),
    "wide csc": _wide(sparse.csc_array),
    "bsr": _blocks,
}
_OF_COMPRESSED = [
    ("pointer too large", _assign("indptr", 2, 10**6), r"indptr\[3\] is .*, below"),
    ("last pointer too large", _assign("indptr", -1, 10**6), r"is 1000000; allowed is at most"),
    ("pointer falls", _assign("indptr", 3, 0), r"indptr\[3\] is 0, below X.indptr\[2\]"),
    ("negative pointer", _assign("indptr", 1, -4), r"indptr\[1\] is -4, below X.indptr\[0\]"),
    ("first pointer", _assign("indptr", 0, 1), r"indptr\[0\] is 1; it must be 0"),
    ("too few pointers", _replace("indptr", lambda p: p[:-1]), r"indptr has shape \(\d+,\)"),
    ("index too large", _assign("indices", 5, 10**6), r"indices\[5\] is 1000000; allowed are 0 to"),
    ("index just too large", _assign("indices", -1, ROWS), rf"\] is {ROWS}; allowed are 0 to"),
    ("negative index", _assign("indices", 4, -1), r"indices\[4\] is -1; allowed are 0 to"),
    ("least index", _assign("indices", 4, -(2**31)), r"indices\[4\] is -2147483648; allowed"),
    ("too few indices", _replace("indices", lambda i: i[:-3]), r"indices has shape \(\d+,\)"),
    ("too few values", _replace("data", lambda d: d[:-3]), r"indices has shape \(\d+,\)"),
    (
        "real indices",
        _replace("indices", lambda i: i * 1.0),
        r"is a ndarray of dtype float",
    ),
    ("list of pointers", _replace("indptr", list), r"indptr is a list of dtype None"),
    ("values in a table", _replace("data", lambda d: d[None]), r"data is a ndarray of shape \(1,"),
]
_OTHERS = [
    Corruption("coo row", sparse.coo_array, _assign("row", 3, ROWS), r"row\[3\] is 24; allowed"),
    Corruption("coo column", sparse.coo_matrix, _assign("col", 2, -7), r"col\[2\] is -7; allowed"),
    Corruption(
        "coo values", sparse.coo_array, _replace("data", lambda d: d[:-1]), r"row has shape"
    ),
    Corruption("dia offset", sparse.dia_array, _assign("offsets", 0, 10**6), r"allowed are 0 to"),
    Corruption(
        "dia offsets", sparse.dia_array, _replace("offsets", lambda o: o[:-1]), r"offsets has shape"
    ),
    Corruption(
        "lil column", sparse.lil_array, lambda X: X.rows[2].__setitem__(0, 99), r"rows\[2\]\[0\]"
    ),
    Corruption("lil lengths", sparse.lil_array, lambda X: X.data[2].append(1.0), r"data\[2\]"),
    Corruption("lil rows", sparse.lil_array, _replace("rows", lambda r: r[:-1]), r"23 lists of"),
    Corruption(
        "dok key",
        sparse.dok_array,
        lambda X: X._dict.__setitem__((ROWS, 0), 1.0),
        r"rows of the keys of X.* is 24",
    ),
]
CORRUPTIONS = [
    *(
        Corruption(f"{kind}: {what}", make, spoil, message)
        for kind, make in _COMPRESSED.items()
        for what, spoil, message in _OF_COMPRESSED
    ),
    *_OTHERS,
]


def masked_rows() -> Any:
    """Rows two entries of which are masked."""
    X = np.ma.masked_array(sound_rows(), mask=False)
    X[3, 1] = X[5, 0] = np.ma.masked
    return X
