"""What a fit on features holds in memory at a time, and blocks of rows that keep to a budget."""

from __future__ import annotations

import math

from powersketch.kernel_ridge.accumulation import BLOCK_BYTES, SMALLEST_BLOCK

_NUMBER = 8  # bytes
# Matrices of features × features: the Gram matrix, what LAPACK needs to decompose a copy of it, and
# of landmarks their kernel matrix, its factor and the inverse of that.
_MATRICES = 8
# Arrays of the size of a block of features: the features, their deviations from the mean, and,
# where rows are left out, the deviations in the basis of eigenvectors and their squares.
_COPIES = 4
# The sample of rows on which a map makes its choices, and batches of its transform.
_OVERHEAD = 8 << 20
_SCORES_BLOCK = 16 << 20
_BYTES_PER_SCORE = 20


def bytes_of_fit(rows: int, features: int, columns: int) -> float:
    """Return the most that is held at a time beside the rows, with blocks as small as they get."""
    block = min(rows, SMALLEST_BLOCK) * features * _NUMBER
    return _bytes_beside_blocks(features, columns) + _COPIES * block


def bytes_of_scores(rows: int, features: int) -> float:
    """Return the most that is held while landmarks are drawn by their leverage.

    Kernel values are looked at in blocks, a part of which is there twice, and every row has a score
    and a few other numbers.
    """
    block = min(_SCORES_BLOCK, rows * features * _NUMBER)
    return 1.5 * block + _BYTES_PER_SCORE * rows + _NUMBER * _MATRICES * features**2


def bytes_of_block(budget: float | None, features: int, columns: int) -> int:
    """Return what the features of a block may take such that a fit keeps to its budget."""
    if budget is None:
        return BLOCK_BYTES
    left = (budget - _bytes_beside_blocks(features, columns)) / _COPIES
    return int(min(max(left, 0.0), BLOCK_BYTES))


def pilot_size(budget: float | None, rows: int) -> int | None:
    """Return how many features a pilot may have, all of whose rows are held at once."""
    if budget is None:
        return None
    # The solution of _MATRICES m² + 2 _COPIES rows m = numbers.
    numbers = max(budget - _OVERHEAD, 0.0) / _NUMBER
    half = _COPIES * rows / _MATRICES
    return int(math.sqrt(half**2 + numbers / _MATRICES) - half)


def _bytes_beside_blocks(features: int, columns: int) -> float:
    return _NUMBER * features * (_MATRICES * features + columns) + _OVERHEAD
