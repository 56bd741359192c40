"""Checks of rows, targets and weights."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length

from powersketch.exceptions import InputError, InputTypeError, OutlierWarning, warn_user
from powersketch.validation import checked_rows, sound_array

# Products of targets, weights and features of this size neither overflow nor underflow.
_SMALLEST, _LARGEST = 1e-100, 1e100
# Targets so many times larger than all others are named, if they are few and rows are not.
_OUTLYING = 1e6
_ROWS_PER_OUTLIER = 100
_FEWEST_ROWS = 10
_NAMED = 3


def _check_kind(name: str, values: Any) -> None:
    """Refuse times and texts, which NumPy would convert to numbers."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "f") in "mMUS":
        raise InputTypeError(
            f"{name} has dtype {dtype}; allowed are real numbers: convert with astype(float)."
        )


def checked_targets(X: Any, y: Any, *, estimator: Any = None) -> tuple[Any, NDArray[np.float64]]:
    """Return rows, and as many finite float64 targets of one or two dimensions."""
    if y is None:
        raise InputError(
            "This estimator requires y to be passed, but the target y is None: give a target for "
            "every row."
        )
    X = checked_rows(X, estimator=estimator)
    _check_kind("y", y)
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
    _check_range("y", targets, "divide y by a constant, and multiply predictions by it")
    return X, targets


def _check_range(name: str, values: NDArray[np.float64], remedy: str) -> None:
    """Refuse numbers whose squares or products over- or underflow."""
    sizes = np.abs(values[values != 0.0])
    if sizes.size and not _SMALLEST <= sizes.max() <= _LARGEST:
        raise InputError(
            f"{name} reaches {sizes.max():.3g}; allowed is a largest value from {_SMALLEST:g} to "
            f"{_LARGEST:g}, as squares of others are out of the range of float64: {remedy}."
        )


def warn_of_outlying_targets(
    targets: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> None:
    """Name the rows whose targets are so far from all others that they drag every prediction."""
    counted = np.arange(targets.shape[0]) if weights is None else np.flatnonzero(weights)
    for column in targets.reshape(targets.shape[0], -1).T:
        sizes = np.abs(column[counted])
        order = np.argsort(sizes, kind="stable")
        few = min(sizes.size // _ROWS_PER_OUTLIER + 1, sizes.size - 1)
        if sizes.size < _FEWEST_ROWS:
            return
        below, above = sizes[order[-few - 1 : -1]], sizes[order[-few:]]
        gaps = np.flatnonzero((above > _OUTLYING * below) & (below > 0.0))
        if gaps.size:
            rows = counted[order[gaps[0] - few :]]
            named = ", ".join(f"{column[row]:.3g} in row {row}" for row in rows[::-1][:_NAMED])
            warn_user(
                f"y has {named}{' and others' if rows.size > _NAMED else ''}, and all other values "
                f"are at most {below[gaps[0]]:.3g} in size: such targets drag every prediction. "
                "Remove the rows, or correct them.",
                OutlierWarning,
            )
            return


def checked_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Return finite float64 weights that are not negative, one for every row; None stays None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    _check_kind("sample_weight", sample_weight)
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
    positive = weights[weights > 0.0]
    if positive.size and not (positive.min() >= _SMALLEST and positive.max() <= _LARGEST):
        raise InputError(
            f"sample_weight reaches from {positive.min():.3g} to {positive.max():.3g}; allowed are "
            f"0 and numbers from {_SMALLEST:g} to {_LARGEST:g}, as products of others are out of "
            "the range of float64: multiply all weights, and alpha, by a constant."
        )
    return weights


def check_some_weight(weights: NDArray[np.float64] | None) -> None:
    """Refuse weights that leave no row."""
    if weights is not None and not weights.any():
        raise InputError(
            "sample_weight is zero for every row; at least one must be above 0: "
            "give weights that leave some rows, or None."
        )
