"""Lanczos's method: Ritz values, bounds of extreme eigenvalues, bounds of resolvents."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from powersketch.arrays import Float64, Vector

# A remainder this small, relative to the largest coefficient so far, is rounding error.
_NEGLIGIBLE = 1e-13

Product = Callable[[Float64], Float64]
"""From a vector, or the columns of a matrix, to their products with a symmetric matrix."""


@dataclass(frozen=True)
class ExtremeEigenvalues:
    """Ritz values of a symmetric matrix, and bounds of its eigenvalues beyond them.

    The smallest eigenvalue is in [`low`, `smallest`] and the largest in [`largest`, `high`].
    """

    low: float
    smallest: float
    largest: float
    high: float

    def inverse(self) -> ExtremeEigenvalues:
        """Return the same for the inverse of a positive definite matrix."""
        low, smallest, largest, high = self.low, self.smallest, self.largest, self.high
        return ExtremeEigenvalues(1.0 / high, 1.0 / largest, 1.0 / smallest, 1.0 / low)


def ritz_values(product: Product, start: Vector, steps: int) -> Vector:
    """Return the Ritz values of the Krylov space of the start, ascending.

    Where the space is exhausted earlier there are fewer of them, and they are eigenvalues.
    """
    diagonal, beside = [], []
    most = min(steps, len(start))
    for entry, next_beside in _tridiagonal_entries(product, start, basis_size=most):
        diagonal.append(float(entry))
        beside.append(float(next_beside))
        if len(diagonal) == most or next_beside == 0.0:
            break
    values: Vector = eigvalsh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))
    return values


def extreme_eigenvalues(
    product: Product, start: Vector, steps: int, *, confidence: float, floor: float
) -> ExtremeEigenvalues:
    """Return bounds of the extreme eigenvalues of a symmetric matrix from a normal start.

    No eigenvalue is below `floor`. By [KW92], for a uniformly random direction, n ≥ 8
    and any shift that makes the matrix A positive semidefinite,
    P(θ_max < (1 − ε) λ_max) ≤ 1.648 √n exp(−√ε (2k − 1)). With A − λ_min I and λ_max I − A it
    bounds each end by the other:

        λ_max − λ_min ≤ (θ_max − λ_min) / (1 − ε),   λ_max − λ_min ≤ (λ_max − θ_min) / (1 − ε),

    which holds for both at once with the stated confidence. Solving the two gives the result.
    """
    values = ritz_values(product, start, steps)
    smallest, largest = float(values[0]), float(values[-1])
    if len(values) < min(steps, len(start)) or len(values) == len(start):
        return ExtremeEigenvalues(smallest, smallest, largest, largest)
    share = missing_share(len(start), len(values), 0.5 * (1.0 - confidence))
    low, high = floor, math.inf
    if share < 0.5:
        low = max(low, ((1.0 - share) * smallest - share * largest) / (1.0 - 2.0 * share))
    if share < 1.0:
        # Decreasing in the smallest eigenvalue, of which `low` is a bound from below.
        high = (largest - share * low) / (1.0 - share)
    return ExtremeEigenvalues(min(low, smallest), smallest, largest, max(high, largest))


def missing_share(count: int, steps: int, risk: float) -> float:
    """Return the ε of [KW92]: except with probability `risk`, θ_max is at least (1 − ε) λ_max."""
    root = math.log(1.648 * math.sqrt(count) / risk) / (2 * steps - 1)
    return root * root


class ResolventBounds:
    """Bounds of vᵀ A (A + αI)⁻¹ v for several vectors, by Gauss and Gauss–Radau rules [GM10].

    A is positive semidefinite. The even derivatives of 1 / (x + α) are positive and the odd ones
    negative, so that a Gauss rule is a lower bound of vᵀ (A + αI)⁻¹ v for every vector, and a
    Gauss–Radau rule with a node below all eigenvalues is an upper one.
    """

    def __init__(self, product: Product, vectors: Float64, alpha: float) -> None:
        self._alpha = alpha
        self._squared_norms = np.linalg.norm(vectors, axis=0) ** 2
        self._entries = _tridiagonal_entries(product, vectors)
        self._diagonal: list[Vector] = []
        self._beside: list[Vector] = []

    def step(self) -> None:
        """Multiply by A once."""
        diagonal, beside = next(self._entries)
        self._diagonal.append(diagonal)
        self._beside.append(beside)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return bounds of vᵀ A (A + αI)⁻¹ v = ‖v‖² − α vᵀ (A + αI)⁻¹ v for every vector."""
        lower = self._continued_fraction(self._diagonal[-1] + self._alpha)
        node = self._node()
        # The last entry that makes `node` an eigenvalue of the matrix with one row more.
        pivot = self._diagonal[0] - node
        for diagonal, beside in zip(self._diagonal[1:], self._beside[:-1], strict=True):
            pivot = diagonal - node - beside**2 / pivot
        last = node + self._alpha + self._beside[-1] ** 2 / pivot
        below = self._diagonal[-1] + self._alpha - self._beside[-1] ** 2 / last
        upper = self._continued_fraction(below)
        squares = self._squared_norms
        return squares * (1.0 - self._alpha * upper), squares * (1.0 - self._alpha * lower)

    def _continued_fraction(self, last: Vector) -> Vector:
        """Return the first entry of the inverse of the tridiagonal matrix with that last pivot."""
        pivot = last
        inner = zip(reversed(self._diagonal[:-1]), reversed(self._beside[:-1]), strict=True)
        for diagonal, beside in inner:
            pivot = diagonal + self._alpha - beside**2 / pivot
        return 1.0 / pivot

    def _node(self) -> float:
        """Return a number just below all eigenvalues, which rounding errors can make negative."""
        rounding = 8.0 * float(np.finfo(np.float64).eps) * float(np.max(self._diagonal))
        return -min(1e-9 * self._alpha + rounding, 0.5 * self._alpha)


def _tridiagonal_entries(
    product: Product, starts: Float64, *, basis_size: int = 0
) -> Iterator[tuple[Vector, Vector]]:
    """Yield the next entry on the diagonal and the one beside it, after each product.

    For one start vector, or for each column of several. An entry beside the diagonal is zero where
    the Krylov space is exhausted. With a basis, which only a single start may have, each new vector
    is made orthogonal to all earlier ones, for as many steps as the basis has room.
    """
    current: Float64 = starts / np.linalg.norm(starts, axis=0)
    previous, beside = np.zeros_like(current), np.zeros(starts.shape[1:])
    basis = np.empty((basis_size, len(starts)))
    scale = 0.0
    for step in count():
        remainder = product(current) - beside * previous
        diagonal = np.einsum("i...,i...->...", current, remainder)
        remainder = remainder - diagonal * current
        if basis_size:
            basis[step] = current
            # Twice is enough: the second pass removes what the first one's rounding errors left.
            for _ in range(2):
                remainder -= basis[: step + 1].T @ (basis[: step + 1] @ remainder)
        beside = np.linalg.norm(remainder, axis=0)
        scale = max(scale, float(np.max(np.abs(diagonal))), float(np.max(beside)))
        beside = np.where(beside > _NEGLIGIBLE * scale, beside, 0.0)
        yield diagonal, beside
        previous, current = current, remainder / np.where(beside > 0.0, beside, np.inf)
