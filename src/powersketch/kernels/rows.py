"""Rows as the kernels take them: checks, blocks in float64, norms, inner products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from powersketch.exceptions import InputError, InputTypeError
from powersketch.validation import REAL_ROWS, sound_array

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix
# A dense 2-D array or CSR, which have no common type.
Rows: TypeAlias = Any
Float64: TypeAlias = NDArray[np.float64]

# Well above the rounding errors of inner products of rows of norm one, however long they are.
_NEAR_ONE = 1e-12
_ENTRIES_IN_CACHE = 2**15


def checked_matrix(name: str, matrix: Any) -> Rows:
    """Return finite float32 or float64 rows, dense or CSR, or say what is wrong with them."""
    matrix = sound_array(name, matrix)
    if not sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    _check_real_dtype(name, matrix.dtype)
    return check_array(matrix, **REAL_ROWS, input_name=name)


def check_same_features(X: Rows, Y: Rows) -> None:
    """Refuse rows of different lengths."""
    if X.shape[1] != Y.shape[1]:
        raise InputError(
            f"X has {X.shape[1]} features and Y has {Y.shape[1]}; "
            "the numbers must be equal: give both the same columns."
        )


def checked_vectors(V: Any, length: int) -> NDArray[np.floating[Any]]:
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


def float64_block(X: Rows, rows: slice) -> Rows:
    """Return some of the rows in float64; sparse ones as a copy, in canonical form."""
    if not sparse.issparse(X):
        return X[rows].astype(np.float64, copy=False)
    # A slice of sparse rows is a copy already, so that this leaves X as it is.
    block = X[rows]
    block.sum_duplicates()
    return block.astype(np.float64, copy=False)


def inner_products(left: Rows, right: Rows) -> Float64:
    """Return the dense matrix of the inner products of all rows of two blocks."""
    products = left @ right.T
    dense: Float64 = products.toarray() if sparse.issparse(products) else products
    return dense


def cosines(left: Rows, right: Rows) -> Float64:
    """Return the inner products of rows of norm one, exactly ±1 where rows are equal up to sign.

    Where the functions of a cosine have square-root singularities, at ±1, differences of rows
    replace the inner products, whose rounding errors would lose half of the digits.
    """
    products = inner_products(left, right)
    for rows, columns, signs, distances in pairs_near_one(products, left, right):
        products[rows, columns] = signs * (1.0 - 0.5 * distances)
    return products


def pairs_near_one(
    products: Float64, left: Rows, right: Rows
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Float64, Float64]]:
    """Yield rows, columns, signs and ‖x − sign · y‖² of rows of norm one with products near ±1."""
    for rows, columns in _pairs(np.abs(products) > 1.0 - _NEAR_ONE, left, right):
        signs = np.sign(products[rows, columns])
        distances = _squared_distances(left[rows], scaled_rows(right[columns], signs))
        yield rows, columns, signs, distances


def squared_distances_of_pairs(
    left: Rows, right: Rows, wanted: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Float64]]:
    """Yield rows, columns and squared distances of the wanted pairs, from differences.

    Unlike those from norms and inner products, they lose no digits where rows are long.
    """
    for rows, columns in _pairs(wanted, left, right):
        yield rows, columns, _squared_distances(left[rows], right[columns])


def squared_norms(block: Rows) -> Float64:
    """Return the squared norm of every row of a float64 block."""
    if sparse.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).reshape(-1)
    squares: Float64 = np.einsum("ij,ij->i", block, block)
    return squares


def unit_rows(block: Rows) -> tuple[Rows, Float64]:
    """Return the rows of a float64 block scaled to norm one, and their norms; zero stays zero."""
    largest = abs(block).max(axis=1)
    if sparse.issparse(block):
        largest = largest.toarray().reshape(-1)
    # A power of two changes no digit, and near one no square over- or underflows. For the
    # smallest rows 2^1023 has to do, as larger powers overflow.
    exponents = np.maximum(np.frexp(largest)[1], -1023)
    near_one = scaled_rows(block, np.ldexp(1.0, -exponents))
    norms = np.sqrt(squared_norms(near_one))
    # Dividing rounds once, so that the cosine of parallel rows is as near to one as can be.
    divisors = np.where(norms > 0.0, norms, 1.0)
    return scaled_rows(near_one, divisors, np.divide), np.ldexp(norms, exponents)


def scaled_rows(block: Rows, factors: Float64, operation: np.ufunc = np.multiply) -> Rows:
    """Return the rows, each multiplied by its factor, or divided by it."""
    if not sparse.issparse(block):
        return operation(block, factors[:, np.newaxis])
    scaled = block.copy()
    operation(block.data, np.repeat(factors, np.diff(block.indptr)), out=scaled.data)
    return scaled


def appended(block: Rows, column: Float64) -> Rows:
    """Return the rows with one more entry each."""
    if not sparse.issparse(block):
        return np.column_stack((block, column))
    return sparse.hstack((block, sparse.csr_array(column[:, np.newaxis])), format="csr")


def _squared_distances(left: Rows, right: Rows) -> Float64:
    if sparse.issparse(left) != sparse.issparse(right):
        left, right = _dense(left), _dense(right)
    return squared_norms(left - right)


def _pairs(
    wanted: NDArray[np.bool_], left: Rows, right: Rows
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows and columns of wanted pairs, so few that their rows fit into cache."""
    rows, columns = np.nonzero(wanted)
    # Where one of the two is dense, a row of the other one becomes as long.
    length = max(_mean_length(left), _mean_length(right))
    step = max(_ENTRIES_IN_CACHE // length, 1)
    for start in range(0, rows.size, step):
        yield rows[start : start + step], columns[start : start + step]


def _mean_length(block: Rows) -> int:
    length: int = block.nnz // block.shape[0] if sparse.issparse(block) else block.shape[1]
    return max(length, 1)


def _dense(block: Rows) -> Float64:
    dense: Float64 = block.toarray() if sparse.issparse(block) else block
    return dense


def _check_real_dtype(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise InputTypeError(
            f"{name} has dtype {dtype}; allowed are bool, integer and real floating "
            f"types: convert with {name}.astype(float)."
        )
