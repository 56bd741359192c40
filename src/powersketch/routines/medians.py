"""A centre of some rows that no outlier among them can move far."""

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, is_sparse

_MOST_ROWS = 64


def median_row(X: Rows) -> NDArray[np.float64]:
    """Return the median of every column over up to 64 rows, evenly spaced.

    Of an even number of entries it is the lower of the two in the middle: their mean might
    overflow. Columns of sparse rows of which most entries are not stored have the median zero.
    """
    count = X.shape[0]
    sample = X[np.linspace(0, count - 1, min(count, _MOST_ROWS)).astype(np.int64)]
    medians = np.zeros(X.shape[1])
    if is_sparse(X):
        stored = np.bincount(sample.indices, minlength=X.shape[1])
        columns = np.flatnonzero(2 * stored >= sample.shape[0])
        medians[columns] = _lower_medians(sample[:, columns].toarray())
    else:
        medians[:] = _lower_medians(sample)
    return medians


def _lower_medians(rows: Real) -> Real:
    middle = (len(rows) - 1) // 2
    medians: Real = np.partition(rows, middle, axis=0)[middle]
    return medians
