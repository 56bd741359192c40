"""Checks of rows, targets and weights."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length

from powersketch.exceptions import InputError
from powersketch.given_arrays import checked_rows, sound_array


def checked_targets(X: Any, y: Any, *, estimator: Any = None) -> tuple[Any, NDArray[np.float64]]:
    """Return rows, and as many finite float64 targets of one or two dimensions."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: give a target for "
            "every row."
        )
    X = checked_rows(X, estimator=estimator)
    targets = check_array(
        sound_array("y", y),
        ensure_2d=False,
        allow_nd=True,
        dtype=np.float64,
        input_name="y",
        estimator=estimator,
    )
    if targets.ndim == 0 or targets.ndim > 2 or targets.size == 0:
        raise InputError(
            f"y has shape {targets.shape}; allowed are (n,) and (n, t), a target or a row of "
            "targets for every row of X."
        )
    check_consistent_length(X, targets)
    return X, targets


def checked_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Return finite float64 weights that are not negative, one for every row; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    weights: NDArray[np.float64] = check_array(
        sound_array("sample_weight", sample_weight),
        ensure_2d=False,
        allow_nd=True,
        dtype=np.float64,
        input_name="sample_weight",
    )
    if weights.shape != (X.shape[0],):
        raise InputError(
            f"sample_weight has shape {weights.shape}; allowed is ({X.shape[0]},), "
            "a weight for every row."
        )
    if (weights < 0.0).any():
        raise InputError(
            f"sample_weight reaches down to {weights.min():.3g}; negative values in data passed to "
            "sample_weight are not allowed: use weights of at least 0."
        )
    return weights


def check_some_weight(weights: NDArray[np.float64] | None) -> None:
    """Refuse weights that leave no row."""
    if weights is not None and not weights.any():
        raise InputError(
            "sample_weight is zero for every row; at least one must be above 0: "
            "give weights that leave some rows, or None."
        )
