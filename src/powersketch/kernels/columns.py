"""One kernel, one set of columns, many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels.rows import Rows, float64_block
from powersketch.validation import sound_array

if TYPE_CHECKING:
    from powersketch.kernels.kernel import Kernel


class KernelColumns:
    """Returns k(X, Y) for one Y, which is prepared once, and for few rows X at a time.

    Parameters
    ----------
    kernel : Kernel
        Any of the exact kernels.
    Y : ndarray or CSR of shape (m, d)
        Checked rows. A copy of them in float64 is held.
    """

    def __init__(self, kernel: Kernel, Y: Rows) -> None:
        self._kernel, self._Y = kernel, Y
        self._prepare = kernel._preparation(Y, Y)
        with np.errstate(over="ignore", invalid="ignore"):
            self._right = self._prepare(float64_block(Y, slice(None)))

    def __call__(self, X: Rows, dtype: np.dtype[Any]) -> NDArray[np.floating[Any]]:
        """Return the matrix for real rows X; the whole of it is one tile."""
        X = sound_array("X", X)
        if sparse.issparse(X) != sparse.issparse(self._Y):
            return self._kernel(X, self._Y, dtype=dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            left = self._prepare(float64_block(X, slice(None)))
            return self._kernel._tile(left, self._right, dtype)
