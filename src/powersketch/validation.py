"""The checks that every array of a user passes first: what could crash or mislead is refused.

SciPy follows the indices of sparse matrices in C++ without checking them: with wrong ones, an
innocent slice or conversion ends the whole process. And NumPy forgets the masks of masked arrays.
So nothing else may touch an array before it has passed `sound_array`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows
from powersketch.ecosystem import is_of_array_library, shared_with_numpy
from powersketch.engines import refuse_elsewhere
from powersketch.exceptions import InputError, InputTypeError

REAL_ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}

_INDEX_TYPES = (np.dtype(np.int32), np.dtype(np.int64))
_REMEDY = (
    "build the matrix anew from its entries, for instance as "
    "scipy.sparse.coo_array((values, (rows, columns)), shape=shape)"
)


def checked_rows(X: Any, name: str = "X", *, estimator: Any = None) -> Rows:
    """Return finite float32 or float64 rows, dense or CSR with every entry stored once."""
    X = check_array(sound_array(name, X), **REAL_ROWS, estimator=estimator, input_name=name)
    return without_duplicates(X)


def without_duplicates(X: Rows) -> Rows:
    """Return sparse rows whose every entry is stored once: norms are sums over the entries."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def checked_matrix(name: str, matrix: Any) -> Rows:
    """Return finite float32 or float64 rows, dense or CSR, or say what is wrong with them."""
    matrix = sound_array(name, matrix)
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    _check_real_dtype(name, matrix.dtype)
    return check_array(matrix, **REAL_ROWS, input_name=name)


def checked_pair(X: Any, Y: Any) -> tuple[Rows, Rows]:
    """Return the rows of X and of Y, which is X itself for None; refuse different lengths."""
    X = checked_matrix("X", X)
    if Y is None:
        return X, X
    Y = checked_matrix("Y", Y)
    if X.shape[1] != Y.shape[1]:
        raise InputError(
            f"X has {X.shape[1]} features and Y has {Y.shape[1]}; "
            "the numbers must be equal: give both the same columns."
        )
    return X, Y


def checked_vectors(V: Any, length: int) -> Real:
    """Return one vector or the columns of a matrix, of the given length and finite."""
    if sparse.issparse(V):
        raise InputTypeError(
            f"V is a {type(V).__name__}; allowed is a dense array: use V.toarray()."
        )
    vectors: NDArray[Any] = np.asarray(sound_array("V", V))
    _check_real_dtype("V", vectors.dtype)
    if vectors.ndim not in (1, 2) or vectors.shape[0] != length:
        raise InputError(
            f"V has shape {vectors.shape}; allowed are ({length},) and ({length}, t), an entry or "
            "a row of V for every column of the kernel matrix: give V that length."
        )
    if not np.isfinite(vectors).all():
        raise InputError("V contains NaN or infinity; allowed are finite numbers: remove them.")
    return vectors if vectors.dtype == np.float32 else vectors.astype(np.float64, copy=False)


def checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return float32 or float64, or refuse what is neither."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise InputError(f"dtype={dtype!r} is not possible; allowed are float32 and float64.")
    return kind


def checked_columns(name: str, values: Any, rows: int, remedy: str) -> Float64:
    """Return finite float64 numbers of shape (rows,) or (rows, t), or say what is wrong.

    `remedy` ends the sentence that says which shapes are allowed.
    """
    if sparse.issparse(values):
        raise InputTypeError(f"{name} is sparse; allowed is a dense array: use {name}.toarray().")
    array = np.asarray(sound_array(name, values))
    _check_real_dtype(name, array.dtype)
    if array.ndim not in (1, 2) or array.shape[0] != rows or not array.size:
        raise InputError(
            f"{name} has shape {array.shape}; allowed are ({rows},) and ({rows}, t) with t of at "
            f"least 1{remedy}."
        )
    if not np.isfinite(array).all():
        raise InputError(
            f"{name} contains NaN or infinity; allowed are finite numbers: remove the others."
        )
    return array.astype(np.float64, copy=False)


def sound_array(name: str, X: Any) -> Any:
    """Return the array if it can be read without harm, or say what is wrong with it.

    Sparse matrices must point at entries that exist, and masked arrays may have no masked entry.
    Rows that are elsewhere, such as those of Dask, would be loaded by the next function that takes
    them for an array, and are refused. Arrays of other libraries become NumPy arrays of the same
    memory. Anything else is left to later checks.
    """
    if type(X) is np.ndarray:
        return X
    refuse_elsewhere(name, X)
    if sparse.issparse(X):
        return _sound_sparse(name, X)
    if isinstance(X, np.ma.MaskedArray):
        _refuse_masked(name, X)
        return np.ma.getdata(X)
    if isinstance(X, list | tuple):
        for i, row in enumerate(X):
            if isinstance(row, np.ma.MaskedArray):
                _refuse_masked(f"{name}[{i}]", row)
    return shared_with_numpy(name, X) if is_of_array_library(X) else X


def _check_real_dtype(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise InputTypeError(
            f"{name} has dtype {dtype}; allowed are bool, integer and real floating "
            f"types: convert with {name}.astype(float)."
        )


def _refuse_masked(name: str, X: np.ma.MaskedArray[Any, Any]) -> None:
    masked = int(np.count_nonzero(np.ma.getmask(X)))
    if masked:
        raise InputError(
            f"{name} is a masked array, and {masked} of its {X.size} entries are masked: they have "
            f"no value to compute with. Fill them in, for instance with {name}.filled(0.0), or by "
            f"an imputer of sklearn.impute on {name}.filled(numpy.nan), or leave such rows out."
        )


def _sound_sparse(name: str, X: Any) -> Any:
    if len(X.shape) != 2:
        raise InputError(
            f"{name} is sparse with shape {X.shape}; allowed are two dimensions: reshape it."
        )
    check: Callable[[str, Any], Any] = _CHECKS[X.format]
    return check(name, X)


def _sound_compressed(name: str, X: Any) -> Any:
    """Check CSR, CSC and BSR, which list entries row after row, or column after column."""
    block = _block_shape(name, X)
    major, minor = (X.shape[1], X.shape[0]) if X.format == "csc" else X.shape
    _check_vector(f"{name}.indptr", X.indptr, length=major // block[0] + 1)
    _check_vector(f"{name}.indices", X.indices, length=len(X.data))
    end = _checked_end(name, X.indptr, len(X.indices))
    if end < len(X.indices):
        # Entries behind the last row belong to none; some of SciPy's functions read them.
        X = X.copy()
        X.prune()
    structure = _structure(X.indptr, X.indices, minor // block[1])
    _refuse_outside(f"{name}.indices", X.indices, structure, minor // block[1])
    # SciPy remembers these from an earlier check, and the indices may have changed since.
    X.has_sorted_indices = structure.ascending
    X.has_canonical_format = structure.distinct
    return X


def _block_shape(name: str, X: Any) -> tuple[int, int]:
    dimensions = 3 if X.format == "bsr" else 1
    _check_data(name, X, dimensions)
    if dimensions == 1:
        return 1, 1
    block: tuple[int, int] = X.data.shape[1:]
    if not all(block) or X.shape[0] % block[0] or X.shape[1] % block[1]:
        raise InputError(
            f"{name} has shape {X.shape} and blocks of shape {block}; allowed are blocks that "
            f"divide it: {_REMEDY}."
        )
    return block


def _checked_end(name: str, indptr: NDArray[Any], stored: int) -> int:
    """Return how many entries the pointers cover, or say which of them is wrong."""
    if indptr[0] != 0:
        raise InputError(f"{name}.indptr[0] is {indptr[0]}; it must be 0: {_REMEDY}.")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        at = int(falls[0]) + 1
        raise InputError(
            f"{name}.indptr[{at}] is {indptr[at]}, below {name}.indptr[{at - 1}], which is "
            f"{indptr[at - 1]}; they may never decrease: {_REMEDY}."
        )
    if indptr[-1] > stored:
        at = int(np.argmax(indptr > stored))
        raise InputError(
            f"{name}.indptr[{at}] is {indptr[at]}; allowed is at most {stored}, the number of "
            f"entries that {name} stores: {_REMEDY}."
        )
    return int(indptr[-1])


def _sound_coordinates(name: str, X: Any) -> Any:
    _check_data(name, X, 1)
    for attribute, bound in zip(("row", "col"), X.shape, strict=True):
        indices = getattr(X, attribute)
        _check_vector(f"{name}.{attribute}", indices, length=len(X.data))
        _check_indices(f"{name}.{attribute}", indices, bound)
    return X


def _sound_diagonals(name: str, X: Any) -> Any:
    _check_data(name, X, 2)
    _check_vector(f"{name}.offsets", X.offsets, length=len(X.data))
    _check_indices(f"{name}.offsets + {X.shape[0]}", X.offsets + X.shape[0], sum(X.shape) + 1)
    return X


def _sound_lists(name: str, X: Any) -> Any:
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise InputError(
            f"{name} has {len(X.rows)} lists of columns, {len(X.data)} of values and shape "
            f"{X.shape}; there must be one of each for every row: {_REMEDY}."
        )
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if len(columns) != len(values):
            raise InputError(
                f"{name}.rows[{i}] has {len(columns)} columns and {name}.data[{i}] {len(values)} "
                f"values; there must be as many: {_REMEDY}."
            )
        which = f"{name}.rows[{i}]"
        _check_indices(which, _whole_numbers(which, columns), X.shape[1])
    return X


def _sound_keys(name: str, X: Any) -> Any:
    places = _whole_numbers(f"the keys of {name}", list(X.keys())).reshape(-1, 2)
    for axis, what in enumerate(("row", "column")):
        indices = np.ascontiguousarray(places[:, axis])
        _check_indices(f"the {what}s of the keys of {name}, the list", indices, X.shape[axis])
    return X


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "csr": _sound_compressed,
    "csc": _sound_compressed,
    "bsr": _sound_compressed,
    "coo": _sound_coordinates,
    "dia": _sound_diagonals,
    "lil": _sound_lists,
    "dok": _sound_keys,
}


def _check_data(name: str, X: Any, dimensions: int) -> None:
    if not isinstance(X.data, np.ndarray) or X.data.ndim != dimensions:
        raise InputError(
            f"{name}.data is a {type(X.data).__name__} of shape {np.shape(X.data)}; allowed in "
            f"the format {X.format} is an array of {dimensions} dimensions: {_REMEDY}."
        )
    if isinstance(X.data, np.ma.MaskedArray):
        _refuse_masked(f"{name}.data", X.data)


def _check_vector(name: str, vector: Any, *, length: int) -> None:
    """Refuse what is not an array of `length` indices."""
    if not isinstance(vector, np.ndarray) or vector.dtype not in _INDEX_TYPES:
        raise InputError(
            f"{name} is a {type(vector).__name__} of dtype {getattr(vector, 'dtype', None)}; "
            f"allowed are arrays of int32 or int64: {_REMEDY}."
        )
    if vector.shape != (length,):
        raise InputError(
            f"{name} has shape {vector.shape}; it must be ({length},) to fit the matrix's shape "
            f"and the number of its values: {_REMEDY}."
        )


def _whole_numbers(name: str, values: Any) -> NDArray[np.int64]:
    numbers = np.asarray(values)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {numbers.dtype}; allowed are integers: {_REMEDY}.")
    return numbers.astype(np.int64)


def _check_indices(name: str, indices: NDArray[Any], bound: int) -> None:
    ends = np.array([0, len(indices)], dtype=np.int64)
    _refuse_outside(name, indices, _structure(ends, indices, bound), bound)


def _structure(indptr: NDArray[Any], indices: NDArray[Any], bound: int) -> routines.RowStructure:
    return routines.row_structure(
        np.ascontiguousarray(indptr, dtype=np.int64), np.require(indices, None, ["C", "A"]), bound
    )


def _refuse_outside(
    name: str, indices: NDArray[Any], structure: routines.RowStructure, bound: int
) -> None:
    at = structure.outside
    if at >= 0:
        raise InputError(f"{name}[{at}] is {indices[at]}; allowed are 0 to {bound - 1}: {_REMEDY}.")
