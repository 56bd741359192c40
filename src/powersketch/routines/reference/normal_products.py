"""The specification of products with rows and with their transpose, in plain NumPy."""

import numpy as np

from powersketch.arrays import Float64, Real, Vector, slices

_LINE_BYTES = 64
_ROWS_OF_TILE = 32


def normal_product(Z: Real, V: Real, offsets: Vector, weights: Float64) -> Float64:
    """Return Zᵀ U for U = W (Z V − offsets), and below it the sums of the columns of U.

    `weights` has one column or several: each is the diagonal W for as many columns of V. U is
    rounded to the dtype of Z, in which sums are taken; those of the columns of U are float64.
    """
    fitted = _sums_by_lines(Z, V)
    spread = np.repeat(weights, V.shape[1] // weights.shape[1], axis=1)
    weighted = spread * (fitted - offsets)
    out = np.zeros((Z.shape[1] + 1, V.shape[1]))
    sums, values = np.zeros((Z.shape[1], V.shape[1]), Z.dtype), weighted.astype(Z.dtype)
    for rows in slices(Z.shape[0], _ROWS_OF_TILE):
        of_tile = np.zeros_like(sums)
        for row, value in zip(Z[rows], values[rows], strict=True):
            of_tile += row[:, None] * value
        sums += of_tile
    out[:-1] = sums
    for row in weighted:
        out[-1] += row
    return out


def _sums_by_lines(Z: Real, V: Real) -> Float64:
    """Return Z V: a sum for every place in 64 bytes, added as a tree in double precision."""
    places = _LINE_BYTES // Z.itemsize
    sums = np.zeros((Z.shape[0], V.shape[1], places), Z.dtype)
    for columns in slices(Z.shape[1], places):
        count = columns.stop - columns.start
        sums[:, :, :count] += Z[:, None, columns] * V[columns].T
    totals = sums.astype(np.float64)
    while places > 1:
        places //= 2
        totals = totals[:, :, :places] + totals[:, :, places:]
    return totals[:, :, 0]
