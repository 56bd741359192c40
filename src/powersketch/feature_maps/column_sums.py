"""Weighted sums of rows, the same bits on every machine and for dense and sparse rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows, is_sparse


def column_sums(
    X: Rows, weights: NDArray[np.float64], *, squared: bool = False
) -> NDArray[np.float64]:
    """Return Σ_i weights[i] · x_i (or x_i²) in double precision, rows added in their order.

    Dense and sparse rows give the same bits, and so does every machine: no BLAS.
    """
    total = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], 64):
        block, factor = X[start : start + 64], weights[start : start + 64]
        block = block.astype(np.float64)
        if squared:
            block = block.multiply(block).tocsr() if is_sparse(X) else block * block
        if is_sparse(X):
            total += block.T @ factor
        else:
            # A reduction may add pairwise where it runs along memory; an accumulation may not.
            total += np.add.accumulate(block * factor[:, None], axis=0)[-1]
    return total
