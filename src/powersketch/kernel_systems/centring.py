"""Rows relative to a centre, for the kernel that does not see where the origin is."""

from __future__ import annotations

import numpy as np

from powersketch.arrays import Real, Rows, is_sparse
from powersketch.feature_maps import capped, central_row
from powersketch.kernels import Gaussian, Kernel

_ROWS_OF_SAMPLE = 256
# Of the mean squared norm. A smaller part of it costs less accuracy than subtracting it costs time.
_NOTICEABLE = 0.1


def useful_shift(kernel: Kernel, X: Rows) -> Real | None:
    """Return what to subtract from all rows before their inner products are rounded, or None.

    The Gaussian kernel depends on differences only, but sketches of rows and products in float32
    have errors that grow with the norms. Any shift is allowed, so that the mean of a sample does,
    in which outliers count less.
    """
    if is_sparse(X) or not isinstance(kernel, Gaussian):
        return None
    sample = X[:: max(X.shape[0] // _ROWS_OF_SAMPLE, 1)][:_ROWS_OF_SAMPLE]
    mean = central_row(sample)
    with np.errstate(over="ignore"):
        squared_norms = np.einsum("ij,ij->i", sample, sample, dtype=np.float64)
        useful = mean @ mean > _NOTICEABLE * float(
            np.mean(capped(squared_norms, np.sqrt(squared_norms)))
        )
    return mean.astype(X.dtype) if useful else None


def shifted(rows: Real, shift: Real | None) -> Real:
    """Return the rows minus the shift."""
    return rows if shift is None else rows - shift
