"""Whether a few rows decide a measured error: then it says nothing about further rows.

An error relative to the kernel's norm is a ratio of two sums over pairs of rows. Where a handful of
rows makes up half of such a sum, the ratio is the one of just these rows. Further rows have other
extremes, or none, and an error that may be larger by any factor.
"""

from __future__ import annotations

import numpy as np

from powersketch.accuracy.data_rows import DataRows, Float64, kernel_diagonal
from powersketch.accuracy.sampled_pairs import PairErrors
from powersketch.arrays import divide_or_zero
from powersketch.kernels import Kernel

# So few rows of a sample are too few to stand for all that are like them.
_FEW = 2.0
# Errors of so small a share of eps, relative to the norms of both rows, are those of an exact map.
_EXACT = 1e-6


def heavy_diagonal(diagonal: Float64, measured: int) -> str:
    """Say why nothing can be promised for further rows, if all k(x, x) tell: else say nothing.

    The squares of a row's pairs grow like its k(x, x). Asked is how many of the rows that make up
    half of the sum are to be expected in a sample of so many.
    """
    heaviest = _rows_of_half(diagonal)
    if heaviest * measured > _FEW * len(diagonal):
        return ""
    return _sentence(heaviest, len(diagonal), "the sum of k(x, x)")


def heavy_pairs(errors: PairErrors) -> str:
    """Say why nothing can be promised for further rows, if the sample's pairs tell: else nothing.

    Where a few rows have most of the errors only, and not of the kernel, intervals show it.
    """
    heaviest = _rows_of_half(errors.exact_sums)
    if heaviest > _FEW:
        return ""
    return _sentence(heaviest, len(errors.exact_sums), "the kernel's squares")


def light_rows(kernel: Kernel, rows: DataRows) -> DataRows:
    """Return the rows without the heaviest, as long as a few make up half of the sum of k(x, x)."""
    diagonal = kernel_diagonal(kernel, rows)
    order = np.argsort(diagonal, kind="stable")
    left = rows.count
    while left > rows.count // 2 and heavy_diagonal(diagonal[order[:left]], left // 2):
        left -= _rows_of_half(diagonal[order[:left]])
    return rows.take(np.sort(order[:left]))


def is_exact(errors: PairErrors, eps: float) -> bool:
    """Tell whether all errors are far below eps relative to the norms of their two rows."""
    inverse = divide_or_zero(1.0, np.sqrt(errors.diagonal))
    relative = np.abs(errors.errors) * inverse[:, np.newaxis] * inverse
    limit = _EXACT * eps * errors.diagonal_scale / errors.scale
    return bool(relative.max() <= limit)


def _rows_of_half(sums: Float64) -> int:
    """Return how many of the rows make up half of the sum, the largest first."""
    largest = float(sums.max())
    if largest == 0.0 or not np.isfinite(largest):
        return len(sums)
    shares = np.cumsum(np.sort(sums / largest)[::-1])
    return int(np.searchsorted(shares, 0.5 * shares[-1])) + 1


def _sentence(heaviest: int, count: int, what: str) -> str:
    rows = "one row makes" if heaviest == 1 else f"{heaviest} rows make"
    return f"{rows} up half of {what} over {count} rows"
