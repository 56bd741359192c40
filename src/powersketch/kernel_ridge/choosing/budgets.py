"""What fits take in bytes and seconds, predicted from their sizes at fixed rates."""

from __future__ import annotations

import math
from dataclasses import dataclass

from powersketch.kernel_ridge.rows.training_rows import BLOCK_BYTES, SMALLEST_BLOCK
from powersketch.kernel_ridge.solving.exact import EXACT_MATRICES

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
# Exact solutions take about three factorisations, each of a third of n³ multiplications, at a rate
# that a processor of two cores has; a fixed one, so that choices do not depend on the machine.
_PRODUCTS_PER_SECOND = 2.5e10
_EXACT_SECONDS, _EXACT_SECONDS_OF_LONG_ROWS = 15.0, 60.0
_MOST_EXACT_ROWS = 15_000
_LONG_ROWS = 4096
_EXACT_BYTES = 4 << 30
# The work of sums, rows times squared features, that is taken without a budget; and most features.
_SUM_PRODUCTS = 1e12
MOST_SUMMED_FEATURES = 4096
# Landmarks that are solved for by iterations, where rows are so many that sums allow few.
_ROWS_TO_ITERATE = 40_000
_MOST_ITERATED = 12_288
_STORED_BYTES = 4 << 30


@dataclass(frozen=True)
class Budget:
    """The size that is asked for, or what it may cost in seconds and bytes; None is no limit."""

    n_components: int | None = None
    seconds: float | None = None
    bytes: float | None = None


def most_iterated_landmarks(rows: int) -> int:
    """Return how many landmarks iterations take whose kernel values are stored."""
    if rows < _ROWS_TO_ITERATE:
        return 0
    return min(_MOST_ITERATED, _STORED_BYTES // (4 * rows), rows // 4)


def exact_fits(rows: int, columns: int, budget: Budget) -> bool:
    """Tell whether the exact kernel of so many rows takes little enough time and memory.

    Rows longer than all features together are worth more time: features would lose much of them.
    """
    usual = _EXACT_SECONDS_OF_LONG_ROWS if columns > _LONG_ROWS else _EXACT_SECONDS
    seconds = usual if budget.seconds is None else budget.seconds
    matrices, bytes = 2, float(_EXACT_BYTES)
    if budget.bytes is not None:
        matrices, bytes = EXACT_MATRICES, budget.bytes - _OVERHEAD
    in_time = rows**3 / _PRODUCTS_PER_SECOND <= seconds
    return rows <= _MOST_EXACT_ROWS and in_time and matrices * _NUMBER * rows**2 <= bytes


def most_summed(rows: int) -> int:
    """Return the number of features whose sums over so many rows take about half a minute."""
    return min(math.isqrt(int(_SUM_PRODUCTS / rows)), MOST_SUMMED_FEATURES)


def most_on_pilot(rows: int, bytes: float) -> int:
    """Return how many features of a pilot fit the memory with all its rows held at once."""
    # The solution of MATRICES m² + 2 COPIES rows m = numbers.
    numbers = max(bytes - _OVERHEAD, 0.0) / _NUMBER
    half = _COPIES * rows / _MATRICES
    return int(math.sqrt(half**2 + numbers / _MATRICES) - half)


def bytes_of_fit(rows: int, features: int, columns: int) -> float:
    """Return the most that is held at a time beside the rows, with blocks as small as they get."""
    block = min(rows, SMALLEST_BLOCK) * features * _NUMBER
    return _bytes_beside_blocks(features, columns) + _COPIES * block


def bytes_of_block(budget: float | None, features: int, columns: int) -> int:
    """Return what the features of a block may take such that a fit keeps to its budget."""
    if budget is None:
        return BLOCK_BYTES
    left = (budget - _bytes_beside_blocks(features, columns)) / _COPIES
    return int(min(max(left, 0.0), BLOCK_BYTES))


def bytes_of_scores(rows: int, features: int) -> float:
    """Return the most that is held while landmarks are drawn by their leverage.

    Kernel values come in blocks, partly there twice; every row has a score and a few numbers more.
    """
    block = min(_SCORES_BLOCK, rows * features * _NUMBER)
    return 1.5 * block + _BYTES_PER_SCORE * rows + _NUMBER * _MATRICES * features**2


def _bytes_beside_blocks(features: int, columns: int) -> float:
    return _NUMBER * features * (_MATRICES * features + columns) + _OVERHEAD
