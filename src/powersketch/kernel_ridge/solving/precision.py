"""The precision of sums over rows of float32: half the time where the penalty hides the errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.arrays import Float64, Vector
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.features import Features
from powersketch.kernel_ridge.solving.statistics import ALPHA_PER_ROUNDING
from powersketch.random_streams import RandomStreams

# Below, sums in float64 take no time worth saving.
_FEWEST_FEATURES = 256
_FEWEST_ROWS = 8192
# Errors are measured on this many rows and features.
_SAMPLE_ROWS, _SAMPLE_FEATURES = 2048, 512
_POWER_STEPS = 12
# Of the trace: the alpha that a search begins with where nothing is known, and a bit below it.
_SHARE_OF_SEARCH = 1e-7


@dataclass(frozen=True)
class SumErrors:
    """Errors of products in float32, measured on some rows.

    `norm` is that of the errors of the Gram matrix, `trace` the sum of its eigenvalues, both for
    one row in the mean.
    """

    norm: float
    trace: float

    def of_rows(self, count: float) -> float:
        """Return about the norm for this many rows, or more: errors of blocks partly cancel."""
        return self.norm * count

    def are_hidden(
        self, count: float, alpha: float | str, alphas: Vector | None, before: float = 0.0
    ) -> bool:
        """Tell whether no alpha that may be used is so small that the errors can be seen.

        `before` is the norm of errors that there are already.
        """
        if alpha == "gcv" or not np.isfinite(self.norm):
            return False
        least = _SHARE_OF_SEARCH * self.trace * count if alphas is None else float(alphas.min())
        least = least if isinstance(alpha, str) else alpha
        return least > ALPHA_PER_ROUNDING * (before + self.of_rows(count))


def errors_of_float32(features: Features, rows: TrainingRows) -> SumErrors | None:
    """Measure the errors of sums in float32; None where sums are in float64 all the same.

    Sums of kernel values at landmarks need all their digits: they are solved for features.
    """
    single = rows.X.dtype == np.float32 and rows.count >= _FEWEST_ROWS
    if not single or features.landmarks is not None:
        return None
    if features.size(rows.X) < _FEWEST_FEATURES:
        return None
    sample = rows[:: -(-rows.count // _SAMPLE_ROWS)]
    Z = features.transform(sample.X)
    if Z.dtype != np.float32:
        return None
    size = Z.shape[1]
    Z = Z - Z.mean(axis=0)
    if sample.weights is not None:
        Z *= np.sqrt(sample.weights)[:, np.newaxis].astype(np.float32)
    trace = float(np.einsum("ij,ij->", Z, Z, dtype=np.float64))
    some = np.ascontiguousarray(Z[:, :: -(-size // _SAMPLE_FEATURES)])
    precise = some.astype(np.float64)
    # Products that overflow are errors, too.
    with np.errstate(over="ignore", invalid="ignore"):
        errors = precise.T @ precise - some.T @ some
    # Errors are like random numbers, whose matrices have norms as the roots of their sizes.
    norm = _norm(errors) * np.sqrt(size / some.shape[1])
    return SumErrors(float(norm) / sample.count, trace / sample.count)


def _norm(matrix: Float64) -> Any:
    """Return about the largest eigenvalue in size of a symmetric matrix."""
    vector: Vector = RandomStreams(0, "kernel-ridge/errors").normal("start", matrix.shape[0])
    length = np.linalg.norm(vector)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_POWER_STEPS):
            vector = matrix @ (vector / (length or 1.0))
            length = np.linalg.norm(vector)
    return length
