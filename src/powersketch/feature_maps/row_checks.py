"""Refusals of rows whose kernel value cannot be represented: finite, and within the dtype.

The norms tell both, so that no pass over the data is needed for it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from powersketch.arrays import Rows
from powersketch.exceptions import InputError
from powersketch.powers import Scaled


def check_power(X: Rows, squared_norms: NDArray[np.float64], degree: int) -> None:
    """Refuse rows for which (gamma ‖x‖² + coef0)^degree overflows the dtype of X."""
    largest = float(np.max(squared_norms, initial=0.0))
    if math.isfinite(largest):
        value = Scaled.of(np.array(largest)).power(degree).to_float()
        if value <= np.finfo(X.dtype).max:
            return
    assert_all_finite(X, input_name="X")
    raise InputError(
        f"the kernel value overflows {X.dtype}: the largest gamma * ||x||^2 + coef0 is "
        f"{largest:.6g}, and its power {degree} exceeds {np.finfo(X.dtype).max:.3g}. "
        f"Scale the rows of X (for instance to unit norm) or lower gamma{_wider(X)}."
    )


def check_norms(X: Rows, squared_norms: NDArray[np.float64]) -> None:
    """Refuse rows whose squared norms are not finite."""
    largest = float(np.max(squared_norms, initial=0.0))
    if math.isfinite(largest):
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        "the squared norm of a row exceeds the largest float64, "
        f"{np.finfo(np.float64).max:.3g}: scale the rows of X."
    )


def check_values(X: Rows, values: NDArray[np.float64]) -> None:
    """Refuse rows whose value of the kernel with themselves overflows the dtype of X."""
    largest = float(np.max(values, initial=0.0))
    if largest <= float(np.finfo(X.dtype).max):
        return
    assert_all_finite(X, input_name="X")
    raise InputError(
        f"the kernel value overflows {X.dtype}: the largest k(x, x) is {largest:.6g}, above "
        f"{np.finfo(X.dtype).max:.3g}. Scale the rows of X{_wider(X)}."
    )


def _wider(X: Rows) -> str:
    return "" if X.dtype == np.float64 else ", or pass X as float64"
