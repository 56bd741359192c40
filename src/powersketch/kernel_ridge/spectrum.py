"""The eigendecomposition of a Gram matrix, from which every amount of regularisation follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from powersketch.execution import interruptible


@dataclass(frozen=True, eq=False)
class GramSpectrum:
    """G = V diag(values) Vᵀ for a symmetric matrix without negative eigenvalues."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]

    @classmethod
    def of(cls, gram: NDArray[np.float64]) -> Self:
        """Decompose the matrix, which is left as it is."""
        values, vectors = interruptible(lambda: np.linalg.eigh(gram))
        # Rounding errors can make the smallest ones negative.
        return cls(np.maximum(values, 0.0), vectors)

    def inverses(self, alpha: float | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return 1 / (values + alpha), and 0 where that is below rounding errors.

        With alpha = 0, zeros instead of huge numbers give the least-squares solution of least norm.
        """
        shifted = np.add.outer(self.values, alpha)
        rounding = self.values.size * float(np.finfo(np.float64).eps) * self.values.max()
        regular = shifted > rounding
        return np.divide(1.0, shifted, out=np.zeros_like(shifted), where=regular)

    def solve(self, right: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """Return (G + alpha I)⁻¹ right, of least norm where that is not unique."""
        inverses = self.inverses(alpha)
        solution: NDArray[np.float64] = self.vectors @ (
            (self.vectors.T @ right) * _along_rows(inverses, right)
        )
        return solution

    def effective_dimension(self, alpha: float | NDArray[np.float64]) -> Any:
        """Return tr(G (G + alpha I)⁻¹), the degrees of freedom that the regularisation leaves."""
        return self.values @ self.inverses(alpha)


def _along_rows(factors: NDArray[np.float64], array: NDArray[np.float64]) -> NDArray[np.float64]:
    return factors.reshape(-1, *(1,) * (array.ndim - 1))
