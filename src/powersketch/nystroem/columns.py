"""Some columns of a kernel matrix, computed block by block and never held as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows
from powersketch.execution import ordered_map
from powersketch.kernels import Kernel

_BLOCK_BYTES = 16 << 20
_MOST_ROWS = 4096


@dataclass(frozen=True, eq=False)
class KernelColumns:
    """The columns k(·, x_i) of a sample of rows x_i, each times its weight.

    Parameters
    ----------
    kernel : Kernel
        One of powersketch.kernels.
    X : ndarray or CSR of shape (n, d)
        Checked rows.
    sample : ndarray of shape (m,)
        Positions of the rows that the columns belong to.
    weights : ndarray of shape (m,)
        Of the columns.
    threads : int
        How many work at a time.
    """

    kernel: Kernel
    X: Rows
    sample: NDArray[np.int64]
    weights: NDArray[np.float64]
    threads: int

    def square(self) -> Real:
        """Return the columns at the rows of the sample, weighted from both sides."""
        square = self.kernel(self.X[self.sample], dtype=np.float64, n_jobs=self.threads)
        square *= np.outer(self.weights, self.weights)
        return square

    def map(
        self, function: Callable[[Real], NDArray[np.float64]], rows: NDArray[np.int64]
    ) -> Iterator[NDArray[np.float64]]:
        """Yield what the function makes of the columns at one block of rows after the other.

        The function may write to its block.
        """
        values = self.kernel.columns(self.X[self.sample])

        def computed(part: slice) -> NDArray[np.float64]:
            block = values(self.X[rows[part]], np.dtype(np.float64))
            block *= self.weights
            return function(block)

        parts = row_blocks(rows.size, self.sample.size)
        return ordered_map(computed, parts, self.threads)


def precise_diagonal(kernel: Kernel, X: Rows) -> NDArray[np.float64]:
    """Return all k(x_i, x_i) in float64, even where the rows are float32."""
    blocks = row_blocks(X.shape[0], X.shape[1])
    parts = [kernel.diagonal(X[part].astype(np.float64, copy=False)) for part in blocks]
    diagonal: NDArray[np.float64] = np.concatenate(parts)
    return diagonal


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of so many rows that a block takes a few MiB.

    Kernels are computed in float64, whatever the dtype of the result.
    """
    height = min(max(_BLOCK_BYTES // (8 * columns), 1), _MOST_ROWS)
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))
