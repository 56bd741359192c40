"""Extreme eigenvalues from products with a random vector, and how far they can be off."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigvalsh_tridiagonal

from powersketch.accuracy.data_rows import Float64

# A remainder so small, relative to the largest coefficient so far, is rounding errors only.
_NEGLIGIBLE = 1e-13


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


def ritz_values(product: Callable[[Float64], Float64], start: Float64, steps: int) -> Float64:
    """Return the Ritz values of the Krylov space of the start, with full reorthogonalisation.

    Where the space is exhausted earlier there are fewer of them, and they are eigenvalues.
    """
    basis = np.empty((min(steps, len(start)), len(start)))
    diagonal, beside = np.empty(len(basis)), np.empty(len(basis))
    basis[0] = start / np.linalg.norm(start)
    for step in range(len(basis)):
        remainder = product(basis[step])
        diagonal[step] = basis[step] @ remainder
        # Twice is enough: the second pass removes what the first one's rounding errors left.
        for _ in range(2):
            remainder = remainder - basis[: step + 1].T @ (basis[: step + 1] @ remainder)
        beside[step] = np.linalg.norm(remainder)
        scale = max(np.abs(diagonal[: step + 1]).max(), beside[: step + 1].max())
        if step + 1 == len(basis) or beside[step] <= _NEGLIGIBLE * scale:
            break
        basis[step + 1] = remainder / beside[step]
    values: Float64 = eigvalsh_tridiagonal(diagonal[: step + 1], beside[:step])
    return values


def extreme_eigenvalues(
    product: Callable[[Float64], Float64],
    start: Float64,
    steps: int,
    *,
    confidence: float,
    floor: float,
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
    """Return the ε of [KW92]: but for the risk, θ_max is at least (1 − ε) λ_max."""
    root = math.log(1.648 * math.sqrt(count) / risk) / (2 * steps - 1)
    return root * root
