"""Rows x̃ = (√gamma · x, √coef0), whose inner products are what the polynomial kernel powers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from powersketch import native
from powersketch.kernels import Polynomial
from powersketch.native import Rows
from powersketch.powers import Scaled

# Rows are brought near norm one by a power of two, exactly; float32 limits how far that can go.
_LARGEST_SHIFT = 120


@dataclass(frozen=True, eq=False)
class AugmentedRows:
    """The kernel's parameters in the form that sketches need."""

    degree: int
    gamma: float
    coef0: float

    @classmethod
    def of(cls, kernel: Polynomial) -> AugmentedRows:
        """Take the parameters of an exact kernel."""
        return cls(kernel.degree, kernel.gamma, kernel.coef0)

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
        squares, _ = native.row_moments(X, np.zeros(X.shape[1]), threads=threads)
        return self.gamma * squares + self.coef0

    def check_representable(self, X: Rows, squared_norms: NDArray[np.float64]) -> None:
        """Refuse rows that are not finite, or whose kernel value the dtype of X cannot hold.

        The norms tell both, so that no pass over the data is needed for it.
        """
        dtype = X.dtype
        largest = float(np.max(squared_norms, initial=0.0))
        if math.isfinite(largest):
            value = Scaled.of(np.array(largest)).power(self.degree).to_float()
            if value <= np.finfo(dtype).max:
                return
        assert_all_finite(X, estimator_name="PolynomialSketch", input_name="X")
        remedy = "" if dtype == np.float64 else ", or pass X as float64"
        raise ValueError(
            f"the kernel value overflows {dtype}: the largest gamma * ||x||^2 + coef0 is "
            f"{largest:.6g}, and its power {self.degree} exceeds {np.finfo(dtype).max:.3g}. "
            f"Scale the rows of X (for instance to unit norm) or lower gamma{remedy}."
        )


def power_of_two_shift(squared_norms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return e such that norms times 2^−e lie near one."""
    _, exponent = np.frexp(squared_norms)
    return np.clip(exponent.astype(np.int64) // 2, -_LARGEST_SHIFT, _LARGEST_SHIFT)
