"""Checks of what kernel systems are made of: rows, kernel, right-hand sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch import validation
from powersketch.arrays import Rows, is_sparse
from powersketch.exceptions import InputError, InputTypeError
from powersketch.parameters import checked_non_negative

_LARGEST_ALPHA = 1e300


def checked_rows(X: Any) -> Rows:
    """Return finite float32 or float64 rows, dense or CSR with every entry stored once."""
    X = validation.checked_rows(X)
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def checked_alpha(alpha: object) -> float:
    """Return what is added to the diagonal, or say why it may not be negative."""
    value = checked_non_negative(
        "alpha", alpha, reason="because K + alpha I has to be positive definite"
    )
    check_representable(value)
    return value


def check_representable(alpha: float) -> None:
    """Refuse an alpha whose sum over the rows overflows."""
    if alpha > _LARGEST_ALPHA:
        raise InputError(
            f"alpha={alpha:g} is out of range; choose at most {_LARGEST_ALPHA:g}, as sums of it "
            "overflow: the solution is zero for far smaller ones."
        )


def checked_targets(y: Any, rows: int) -> NDArray[np.float64]:
    """Return right-hand sides of shape (n,) or (n, t) in float64, or say what is wrong."""
    if sparse.issparse(y):
        raise InputTypeError("y is sparse; allowed is a dense array: use y.toarray().")
    targets = np.asarray(validation.sound_array("y", y))
    if targets.dtype.kind not in "biuf":
        raise InputTypeError(
            f"y has dtype {targets.dtype}; allowed are real numbers: convert with y.astype(float)."
        )
    if targets.ndim not in (1, 2) or targets.shape[0] != rows or not targets.size:
        raise InputError(
            f"y has shape {targets.shape}; allowed are ({rows},) and ({rows}, t) with t of at "
            "least 1: give an entry or a row of y for every row of X."
        )
    if not np.isfinite(targets).all():
        raise InputError("y contains NaN or infinity; allowed are finite numbers: remove them.")
    return targets.astype(np.float64, copy=False)
