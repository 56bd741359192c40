"""The precision of sums over rows of float32: half the time where nobody can tell the difference.

Errors of a Gram matrix G cannot be seen where the penalty is much larger than they are, or where
they are much smaller than G + alpha I in every direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from powersketch.arrays import Float64, Real, Vector
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.factored_path import LEAST_SHARE
from powersketch.kernel_ridge.solving.features import Features
from powersketch.kernel_ridge.solving.statistics import ALPHA_PER_ROUNDING
from powersketch.linalg import cholesky_in_place
from powersketch.random_streams import RandomStreams

# Below, sums in float64 take no time worth saving.
_FEWEST_FEATURES = 256
_FEWEST_ROWS = 8192
# Errors are measured on this many rows and features.
_SAMPLE_ROWS, _SAMPLE_FEATURES = 2048, 512
_EVERY = 4  # of these rows for errors of all features, which take longer
_POWER_STEPS = 12
# Of the trace: the alpha that a search begins with where nothing is known, and a bit below it.
_SHARE_OF_SEARCH = 1e-7


@dataclass(frozen=True, eq=False)
class SumErrors:
    """Errors of products in float32, measured on some rows.

    `gram` and `errors` are the Gram matrix of some features of `count` rows, and its errors; `Z`
    all features of a few of these rows. `norm` is that of the errors of the Gram matrix of all
    features, `trace` the sum of its eigenvalues, both for one row in the mean.
    """

    count: int
    gram: Float64
    errors: Float64
    Z: Real
    norm: float
    trace: float

    @classmethod
    def of(cls, Z: Real) -> SumErrors:
        """Measure the errors of features about their means, times the roots of weights."""
        count, size = Z.shape
        some = np.ascontiguousarray(Z[:, :: -(-size // _SAMPLE_FEATURES)])
        gram, errors = _errors(some)
        # Errors are like random numbers, whose matrices have norms as the roots of their sizes.
        norm = _norm(lambda vector: errors @ vector, len(errors)) * np.sqrt(size / len(errors))
        trace = float(np.einsum("ij,ij->", Z, Z, dtype=np.float64))
        few = np.ascontiguousarray(Z[::_EVERY])
        return cls(count, gram, errors, few, norm / count, trace / count)

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
        least = self._least(count, alpha, alphas, _SHARE_OF_SEARCH)
        return least > ALPHA_PER_ROUNDING * (before + self.of_rows(count))

    def may_be_small(self, count: float, alpha: float | str, alphas: Vector | None) -> bool:
        """Tell whether they are small beside the Gram matrix of some features: worth a try."""
        if alpha == "gcv" or not np.isfinite(self.norm):
            return False
        least = self._least(count, alpha, alphas, LEAST_SHARE) * self.count / count
        return _relative_norm(self.errors, self.gram, least) <= 1.0 / ALPHA_PER_ROUNDING

    def are_small(
        self, gram: Float64, count: float, alpha: float | str, alphas: Vector | None
    ) -> bool:
        """Tell whether they are small beside the Gram matrix of all features and so many rows."""
        errors = _errors(self.Z)[1] * (count / len(self.Z))
        least = self._least(count, alpha, alphas, LEAST_SHARE)
        return _relative_norm(errors, gram, least) <= 1.0 / ALPHA_PER_ROUNDING

    def _least(
        self, count: float, alpha: float | str, alphas: Vector | None, share: float
    ) -> float:
        """Return the least alpha that may be used: where it is searched, a share of the trace."""
        if not isinstance(alpha, str):
            return alpha
        return share * self.trace * count if alphas is None else float(alphas.min())


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
    Z = Z - Z.mean(axis=0)
    if sample.weights is not None:
        Z *= np.sqrt(sample.weights)[:, np.newaxis].astype(np.float32)
    return SumErrors.of(Z)


def _errors(Z: Real) -> tuple[Float64, Float64]:
    """Return the Gram matrix of features, and the errors of the one in float32."""
    precise = Z.astype(np.float64)
    gram = precise.T @ precise
    # Products that overflow are errors, too.
    with np.errstate(over="ignore", invalid="ignore"):
        return gram, gram - Z.T @ Z


def _relative_norm(errors: Float64, gram: Float64, alpha: float) -> float:
    """Return the largest error relative to gram + alpha I; infinity where that is not definite."""
    # The matrix is symmetric: its transpose, which lies in memory row by row, is the same.
    factor = np.array(gram.T, order="C")
    factor[np.diag_indices_from(factor)] += alpha
    if not cholesky_in_place(factor):
        return np.inf

    def relative(vector: Vector) -> Vector:
        inner = solve_triangular(factor, vector, lower=True, trans=1, check_finite=False)
        return np.asarray(solve_triangular(factor, errors @ inner, lower=True, check_finite=False))

    return _norm(relative, len(factor))


def _norm(multiply: Callable[[Vector], Vector], size: int) -> float:
    """Return about the largest eigenvalue in size of a symmetric matrix, from its products."""
    vector: Vector = RandomStreams(0, "kernel-ridge/errors").normal("start", size)
    length = float(np.linalg.norm(vector))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(_POWER_STEPS):
            vector = multiply(vector / (length or 1.0))
            length = float(np.linalg.norm(vector))
    return length
