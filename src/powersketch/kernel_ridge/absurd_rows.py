"""Leaves rows with absurd values out of a fit where they would decide all of it.

A kernel that grows with its rows is so large at a fill value such as 1e20 that all other rows are
lost in rounding errors, and that no score of an alpha is about them. Bounded kernels, such as the
Gaussian, do not mind, and such rows stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from powersketch.feature_maps import DO_NOT_COUNT, absurd_distances, warn_of_far_rows
from powersketch.kernel_ridge.primal import TrainingRows
from powersketch.kernels import Kernel

_LEFT_OUT = (
    "They were left out of the fit: this kernel is so large there that what all other rows say "
    "would be lost."
)
# Relative differences of k(x, x) below this are due to rounding.
_ROUNDING = 1e-5
_MOST_COMPARED = 256


def without_absurd_rows(
    rows: TrainingRows, fitted_map: Callable[[TrainingRows], Any]
) -> TrainingRows:
    """Return the rows without those that are absurdly far from all others, if the kernel grows.

    A warning names them. `fitted_map` returns a map whose kernel is asked; it is given the others.
    """
    absurd, ratios = absurd_distances(rows.X)
    if not absurd.size:
        return rows
    others = rows.without(absurd)
    grows = _grows(getattr(fitted_map(others), "kernel_", None), others.X)
    numbers = absurd if rows.numbers is None else rows.numbers[absurd]
    warn_of_far_rows(numbers, ratios, _LEFT_OUT if grows else DO_NOT_COUNT)
    return others if grows else rows


def _grows(kernel: Any, X: Any) -> bool:
    """Tell whether k(x, x) is smaller for rows of half the length."""
    if not isinstance(kernel, Kernel):
        return False
    some = X[:_MOST_COMPARED]
    whole, half = kernel.diagonal(some), kernel.diagonal(some * some.dtype.type(0.5))
    return bool(np.any(half < (1.0 - _ROUNDING) * whole))
