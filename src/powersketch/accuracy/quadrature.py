"""Bounds of vᵀ (A + αI)⁻¹ v for random vectors v, by Gauss and Gauss–Radau rules [GM10]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from powersketch.accuracy.data_rows import Float64

_NEGLIGIBLE = 1e-13


class ResolventBounds:
    """Lanczos steps for several vectors at once, and what they say about the resolvent of A.

    A is positive semidefinite. The even derivatives of 1 / (x + α) are positive and the odd ones
    negative, so that a Gauss rule is a lower bound of the integral for every vector, and a
    Gauss–Radau rule with a node below all eigenvalues is an upper one.
    """

    def __init__(
        self, product: Callable[[Float64], Float64], vectors: Float64, alpha: float
    ) -> None:
        self._product, self._alpha = product, alpha
        self._norms = np.linalg.norm(vectors, axis=0)
        self._current = vectors / self._norms
        self._previous = np.zeros_like(self._current)
        self._diagonal: list[Float64] = []
        self._beside: list[Float64] = [np.zeros(vectors.shape[1])]

    def step(self) -> None:
        """Multiply by A once."""
        remainder = self._product(self._current) - self._beside[-1] * self._previous
        diagonal = np.einsum("ij,ij->j", self._current, remainder)
        remainder = remainder - diagonal * self._current
        beside = np.linalg.norm(remainder, axis=0)
        self._diagonal.append(diagonal)
        beside = np.where(beside > _NEGLIGIBLE * self._scale(), beside, 0.0)
        self._previous, self._current = (
            self._current,
            remainder / np.where(beside > 0.0, beside, np.inf),
        )
        self._beside.append(beside)

    def bounds(self) -> tuple[Float64, Float64]:
        """Return bounds of vᵀ A (A + αI)⁻¹ v = ‖v‖² − α vᵀ (A + αI)⁻¹ v for every vector."""
        lower = self._continued_fraction(self._diagonal[-1] + self._alpha)
        node = self._node()
        # The last entry that makes `node` an eigenvalue of the matrix with one row more.
        pivot = self._diagonal[0] - node
        for diagonal, beside in zip(self._diagonal[1:], self._beside[1:], strict=False):
            pivot = diagonal - node - beside**2 / pivot
        last = node + self._alpha + self._beside[-1] ** 2 / pivot
        below = self._diagonal[-1] + self._alpha - self._beside[-1] ** 2 / last
        upper = self._continued_fraction(below)
        squares = self._norms**2
        return squares * (1.0 - self._alpha * upper), squares * (1.0 - self._alpha * lower)

    def _continued_fraction(self, last: Float64) -> Float64:
        """Return the first entry of the inverse of the tridiagonal matrix with that last pivot."""
        pivot = last
        inner = zip(reversed(self._diagonal[:-1]), reversed(self._beside[1:-1]), strict=True)
        for diagonal, beside in inner:
            pivot = diagonal + self._alpha - beside**2 / pivot
        return 1.0 / pivot

    def _node(self) -> float:
        """Return a number just below all eigenvalues, which rounding errors can make negative."""
        epsilon = float(np.finfo(np.float64).eps)
        return -min(1e-9 * self._alpha + 8.0 * epsilon * self._scale(), 0.5 * self._alpha)

    def _scale(self) -> float:
        return float(np.max(self._diagonal))
