"""What the operators share: a symmetric matrix and a multiple of the identity."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from powersketch.exceptions import InputError, InputTypeError
from powersketch.linalg.panels import Float64
from powersketch.validation import sound_array


class SymmetricOperator(LinearOperator):
    """A matrix A plus alpha I in float64; subclasses multiply by A."""

    def __init__(self, size: int, alpha: float, precision: Any) -> None:
        super().__init__(np.dtype(np.float64), (size, size))
        self.alpha = alpha
        # Of the products; a solver that needs less than this calls `exact_product` now and then.
        self.rounding = float(np.finfo(precision).eps)

    def exact_product(self, V: ArrayLike) -> Float64:
        """Return the product with one vector or several at float64 accuracy.

        Parameters
        ----------
        V : array-like of shape (n,) or (n, t)
            Finite real numbers.

        Returns
        -------
        ndarray of the shape of V and dtype float64
        """
        vectors = float64_vectors(V, self.shape[0])
        return self._shifted(self._exact(_as_columns(vectors)), vectors)

    def _matmat(self, V: Any) -> Float64:
        vectors = float64_vectors(V, self.shape[0])
        return self._shifted(self._rounded(vectors), vectors)

    def _matvec(self, vector: Any) -> Float64:
        return self._matmat(np.reshape(vector, (-1, 1)))

    def _adjoint(self) -> Self:
        return self

    def _transpose(self) -> Self:
        return self

    def _shifted(self, products: Float64, vectors: Float64) -> Float64:
        products = products.reshape(vectors.shape)
        if self.alpha:
            products += self.alpha * vectors
        return products

    def _rounded(self, V: Float64) -> Float64:
        """Return A V in new memory, as fast as can be."""
        raise NotImplementedError

    def _exact(self, V: Float64) -> Float64:
        """Return A V in new memory, at float64 accuracy."""
        raise NotImplementedError


def float64_vectors(V: Any, length: int) -> Float64:
    """Return vectors of a given length in double precision, or refuse what is none."""
    V = sound_array("the array of vectors", V)
    if sparse.issparse(V) or np.asarray(V).dtype.kind not in "biuf":
        raise InputTypeError(
            f"the vectors are a {type(V).__name__}; allowed are dense arrays of real numbers: use "
            "toarray() of a sparse matrix and the real part of complex numbers."
        )
    vectors = np.asarray(V, dtype=np.float64)
    if vectors.ndim not in (1, 2) or vectors.shape[0] != length:
        raise InputError(
            f"the vectors have shape {vectors.shape}; allowed are ({length},) and ({length}, t)."
        )
    return vectors


def _as_columns(vectors: Float64) -> Float64:
    return vectors if vectors.ndim == 2 else vectors[:, np.newaxis]
