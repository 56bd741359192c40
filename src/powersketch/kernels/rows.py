"""Rows as the kernels take them: blocks in float64, norms, inner products, distances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from powersketch.arrays import Float64, Real, Rows, is_sparse, scaled_rows, slices
from powersketch.exceptions import InputError
from powersketch.routines import squared_norms

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix

# Well above the rounding errors of inner products of rows of norm one, however long they are.
_NEAR_ONE = 1e-12
_ENTRIES_IN_CACHE = 2**15


def rounded_sums(
    sums: Float64,
    dtype: np.dtype[Any],
    name: str = "the product of the kernel matrix and V",
    cause: str = "V",
) -> Real:
    """Return sums over columns of a kernel matrix in this dtype, or say that they overflow."""
    rounded = sums.astype(dtype, copy=False)
    if not np.isfinite(rounded).all():
        raise InputError(
            f"{name} overflows {dtype}: an entry is above {np.finfo(dtype).max:.3g}: scale "
            f"{cause} down{or_float64(dtype)}."
        )
    return rounded


def or_float64(dtype: np.dtype[Any]) -> str:
    """Return the other remedy for numbers that are too large, if there is one."""
    return "" if dtype == np.float64 else ", or use float64"


def float64_block(X: Rows, rows: slice) -> Rows:
    """Return some of the rows in float64: contiguous; sparse ones as a copy, in canonical form."""
    if not is_sparse(X):
        return np.require(X[rows], np.float64, ["C", "A"])
    # A slice of sparse rows is a copy already, so that this leaves X as it is.
    block = X[rows]
    block.sum_duplicates()
    return block.astype(np.float64, copy=False)


def with_squared_norms(X: Rows, rows: slice) -> tuple[Rows, Float64]:
    """Return some of the rows in float64, and their squared norms."""
    block = float64_block(X, rows)
    return block, squared_norms(block)


def in_float32(
    prepare: Callable[[Rows, slice], tuple[Rows, Float64]],
) -> Callable[[Rows, slice], tuple[Rows, Float64]]:
    """Return a preparation that rounds dense rows, with the squared norms of the rounded ones."""

    def rounded(X: Rows, rows: slice) -> tuple[Rows, Float64]:
        block, sizes = prepare(X, rows)
        if is_sparse(block):
            return block, sizes
        single = block.astype(np.float32)
        return single, squared_norms(single)

    return rounded


def inner_products(left: Rows, right: Rows) -> Float64:
    """Return the dense matrix of the inner products of all rows of two blocks."""
    return rounded_inner_products(left, right).astype(np.float64, copy=False)


def rounded_inner_products(left: Rows, right: Rows) -> Real:
    """Return the same in the dtype of the rows."""
    products = left @ right.T
    dense: Real = products.toarray() if is_sparse(products) else products
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


def normalised(X: Rows, rows: slice) -> tuple[Rows, Float64]:
    """Return some of the rows scaled to norm one in float64, and their norms; zero stays zero."""
    block = float64_block(X, rows)
    largest = abs(block).max(axis=1)
    if is_sparse(block):
        largest = largest.toarray().reshape(-1)
    # A power of two changes no digit, and near one no square over- or underflows. Powers above
    # 2^1023, which the smallest rows would need, overflow themselves.
    exponents = np.maximum(np.frexp(largest)[1], -1023)
    near_one = scaled_rows(block, np.ldexp(1.0, -exponents))
    norms = np.sqrt(squared_norms(near_one))
    # Dividing rounds once, so that the cosine of parallel rows is as near to one as can be.
    divisors = np.where(norms > 0.0, norms, 1.0)
    return scaled_rows(near_one, divisors, np.divide), np.ldexp(norms, exponents)


def appended(block: Rows, column: Float64) -> Rows:
    """Return the rows with one more entry each."""
    if not is_sparse(block):
        return np.column_stack((block, column))
    return sparse.hstack((block, sparse.csr_array(column[:, np.newaxis])), format="csr")


def _squared_distances(left: Rows, right: Rows) -> Float64:
    if is_sparse(left) != is_sparse(right):
        left, right = _dense(left), _dense(right)
    return squared_norms(left - right)


def _pairs(
    wanted: NDArray[np.bool_], left: Rows, right: Rows
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield rows and columns of wanted pairs, in parts whose rows fit into cache."""
    rows, columns = np.nonzero(wanted)
    # If only one side is dense, the rows of the other are made dense, too.
    length = max(mean_length(left), mean_length(right))
    step = max(_ENTRIES_IN_CACHE // length, 1)
    for pairs in slices(rows.size, step):
        yield rows[pairs], columns[pairs]


def mean_length(X: Rows) -> int:
    """Return how many entries of a row are stored, in the mean and at least one."""
    length: int = X.nnz // max(X.shape[0], 1) if is_sparse(X) else X.shape[1]
    return max(length, 1)


def _dense(block: Rows) -> Float64:
    dense: Float64 = block.toarray() if is_sparse(block) else block
    return dense
