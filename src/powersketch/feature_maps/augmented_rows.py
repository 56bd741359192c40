"""Rows x̃ = (√gamma · x, √coef0), whose inner products are gamma ⟨x, y⟩ + coef0."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Rows

# Rows are brought near norm one by a power of two, exactly; float32 limits how far that can go.
_LARGEST_SHIFT = 120


@dataclass(frozen=True, eq=False)
class AugmentedRows:
    """The factor and the constant in the form that sketches need."""

    gamma: float
    coef0: float

    @property
    def extra_columns(self) -> int:
        """How many coordinates x̃ has beyond those of x."""
        return int(self.coef0 > 0)

    @property
    def root_gamma(self) -> float:
        """The factor of x in x̃."""
        return math.sqrt(self.gamma)

    @property
    def root_coef0(self) -> float:
        """The last coordinate of x̃."""
        return math.sqrt(self.coef0)

    def squared_norms(self, X: Rows, threads: int) -> NDArray[np.float64]:
        """Return ‖x̃‖² of every row."""
        squares = routines.squared_norms(X, threads=threads)
        return self.gamma * squares + self.coef0


def power_of_two_shift(squared_norms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return e such that norms times 2^−e lie near one."""
    _, exponent = np.frexp(squared_norms)
    return np.clip(exponent.astype(np.int64) // 2, -_LARGEST_SHIFT, _LARGEST_SHIFT)
