"""Rows so far beyond all others that they would spoil what is chosen for the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersketch.exceptions import OutlierWarning, warn_user
from powersketch.native import Rows, is_sparse

# A row is far outside if an entry is beyond so many times the usual largest entry of a row.
_FAR = 300.0
# More than this share of the rows are no outliers, but rows of a kind.
_LARGEST_SHARE = 0.01
_NAMED = 5


def outlying(sizes: NDArray[np.float64], factor: float) -> NDArray[np.int64]:
    """Return which sizes are above so many times the median of the positive ones, if few are."""
    positive = sizes[sizes > 0.0]
    if positive.size == 0:
        return np.empty(0, dtype=np.int64)
    # The median of an even number of sizes would be a mean, which an outlier drags away.
    median = float(np.partition(positive, (positive.size - 1) // 2)[(positive.size - 1) // 2])
    with np.errstate(over="ignore"):
        found = np.flatnonzero(sizes / median > factor)
    few = found.size <= max(_LARGEST_SHARE * sizes.size, 1.0)
    return found if few else np.empty(0, dtype=np.int64)


def far_rows(X: Rows) -> NDArray[np.int64]:
    """Return which rows have entries far beyond those of all others."""
    if is_sparse(X):
        # A copy, because SciPy sums duplicate entries where they are.
        largest = abs(X.copy()).max(axis=1).toarray().reshape(-1)
    else:
        largest = np.maximum(X.max(axis=1), -X.min(axis=1))
    return outlying(largest.astype(np.float64), _FAR)


def warn_of_outliers(found: NDArray[np.int64], what: str) -> None:
    """Name the rows, if there are any."""
    if found.size == 0:
        return
    names = ", ".join(str(row) for row in found[:_NAMED])
    more = f" and {found.size - _NAMED} others" if found.size > _NAMED else ""
    rows = "the row" if found.size == 1 else "the rows"
    warn_user(
        f"{what} of {rows} {names}{more} of X is far beyond that of all others: nothing was chosen "
        "by it. If it is wrong, for instance a fill value, leave it out.",
        OutlierWarning,
    )
