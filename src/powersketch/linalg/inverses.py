"""What the approximate inverses share."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.sparse.linalg import LinearOperator

from powersketch.exceptions import InputError
from powersketch.linalg.cholesky import float64_factor
from powersketch.random_streams import RandomStreams
from powersketch.validation import sound_array

_INVERSE_ITERATIONS = 8


class SymmetricInverse(LinearOperator):
    """A symmetric operator in float64 that is applied to many vectors at once."""

    def __init__(self, size: int) -> None:
        super().__init__(np.dtype(np.float64), (size, size))

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        raise NotImplementedError

    def _matvec(self, vector: Any) -> Any:
        return self._matmat(np.reshape(vector, (-1, 1)))

    def _matmat(self, V: Any) -> Any:
        raise NotImplementedError

    def _adjoint(self) -> Self:
        return self

    def _transpose(self) -> Self:
        return self


def check_regular(diagonal: NDArray[np.float64]) -> None:
    """Refuse the diagonal of a triangular matrix that is singular to working precision."""
    smallest, largest = diagonal.min(), diagonal.max()
    if smallest <= diagonal.size * np.finfo(np.float64).eps * largest:
        raise np.linalg.LinAlgError(
            f"the triangular factor is singular: its diagonal reaches from {smallest:.1e} to "
            f"{largest:.1e}: use a larger alpha, or more features than rows."
        )


def checked_factor(name: str, factor: ArrayLike) -> NDArray[np.float64]:
    """Return a finite matrix in float64, or say what is wrong with it."""
    array = np.asarray(sound_array(name, factor), dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise InputError(f"{name} has shape {array.shape}; allowed is (n, m), both at least 1.")
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity; allowed are finite numbers.")
    return array


def smallest_eigenvalue(gram: NDArray[np.float64]) -> float:
    """Return the smallest eigenvalue of a Gram matrix, or a little more, by inverse iteration.

    Where it is lost in rounding errors, these are returned: a positive number, unless the matrix
    is zero.
    """
    if not gram.any():
        return 0.0
    factor, _ = float64_factor(gram.copy(), gram.diagonal().copy(), 0.0)
    vector = RandomStreams(0, "smallest eigenvalue").normal("start", gram.shape[0])
    length = float(np.linalg.norm(vector))
    for _ in range(_INVERSE_ITERATIONS):
        vector = linalg.cho_solve((factor.T, False), vector / length, check_finite=False)
        length = float(np.linalg.norm(vector))
    return 1.0 / length
