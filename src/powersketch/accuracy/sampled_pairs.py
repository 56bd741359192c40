"""Errors over all pairs of rows and over the diagonal, from a random sample of rows.

Rows enter the sample independently, each with its own probability, so that a pair enters with the
product of two of them, and sums over all pairs are estimated by sums over the sample's pairs,
each divided by its probability. Rows with large k(x, x) are taken first, because |k(x, y)|² is at
most k(x, x) k(y, y), and so are rows with large errors: no pair left out shall count for much more
than the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from powersketch.accuracy.data_rows import (
    DataRows,
    FittedMap,
    Float64,
    kernel_diagonal,
    kernel_matrix,
)
from powersketch.accuracy.intervals import Interval
from powersketch.execution import interruptible
from powersketch.random_streams import RandomStreams

# All pairs of so many rows are a matrix of 32 MB.
SAMPLE_ROWS = 2000
_FEWEST_ROWS = 256
_FEATURES_OF_SAMPLE = 2**26
# For what the first order leaves out: in hundreds of trials 99 % were held with it, not without.
_SAFETY = 1.15
# Up to so many rows, all are measured against a few before the sample is drawn.
_ROWS_LOOKED_AT = 2**15
_REFERENCES = 64
_BLOCK_ROWS = 1024
_FEATURES_OF_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows, and the probabilities with which they came into the sample."""

    rows: DataRows
    chances: Float64
    # Whether the rows stand for others of their kind too, and not only for the data set.
    for_new_rows: bool = False

    @property
    def complete(self) -> bool:
        """Whether there are no other rows that the sample stands for."""
        return not self.for_new_rows and bool(np.all(self.chances == 1.0))


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Z Zᵀ − K and K for a sample of rows: pairs of different rows, and the diagonal.

    Both are divided by a scale of their own, so that squares neither over- nor underflow: pairs can
    be smaller than the diagonal by any factor.

    Parameters
    ----------
    sample : RowSample
        The rows.
    exact, errors : ndarray of shape (n, n)
        K and Z Zᵀ − K divided by `scale`, with zeros on the diagonal.
    scale : float
        The largest |k(x, y)| of two different rows.
    diagonal, diagonal_errors : ndarray of shape (n,)
        All k(x, x) and ‖z(x)‖² − k(x, x), divided by `diagonal_scale`.
    diagonal_scale : float
        The largest k(x, x).
    """

    sample: RowSample
    exact: Float64
    errors: Float64
    scale: float
    diagonal: Float64
    diagonal_errors: Float64
    diagonal_scale: float

    @classmethod
    def measure(cls, sketch: FittedMap, sample: RowSample, n_jobs: int | None = None) -> PairErrors:
        """Compute all entries of the sample."""
        exact = kernel_matrix(sketch.kernel_, sample.rows, n_jobs)
        diagonal = exact.diagonal().copy()
        np.fill_diagonal(exact, 0.0)
        Z = sample.rows.features(sketch)
        # Where even the scaled numbers overflow, errors are infinite, and are reported so.
        with np.errstate(over="ignore", invalid="ignore"):
            scale = _scale(exact)
            exact /= scale
            errors = interruptible(lambda: _gram(Z, scale))
            errors -= exact
            np.fill_diagonal(errors, 0.0)
            diagonal_scale = _scale(diagonal)
            diagonal /= diagonal_scale
            scaled = Z / math.sqrt(diagonal_scale)
            own_errors = np.einsum("ij,ij->i", scaled, scaled) - diagonal
        return cls(sample, exact, errors, scale, diagonal, own_errors, diagonal_scale)

    def frobenius(self, confidence: float) -> Interval:
        """Return ‖Z Zᵀ − K‖ / ‖K‖ over pairs of different rows."""
        return self._root_of_ratio(confidence, pairs=(self.error_sums, self.exact_sums))

    def of_diagonal(self, confidence: float) -> Interval:
        """Return ‖Z Zᵀ − K‖ / ‖K‖ over the diagonals of the two matrices."""
        own = self.diagonal_errors**2, self.diagonal**2
        return self._root_of_ratio(confidence, own=own)

    def whole(self, confidence: float) -> Interval:
        """Return ‖Z Zᵀ − K‖ / ‖K‖ over all entries."""
        # The squares of both parts are brought to one scale.
        largest = max(self.scale, self.diagonal_scale)
        pair, single = (self.scale / largest) ** 2, (self.diagonal_scale / largest) ** 2
        found = self._root_of_ratio(
            confidence,
            pairs=(pair * self.error_sums, pair * self.exact_sums),
            own=(single * self.diagonal_errors**2, single * self.diagonal**2),
        )
        # The whole is a mean of its parts, and never above the larger of them.
        parts = max(self.frobenius(confidence).high, self.of_diagonal(confidence).high)
        return Interval(found.value, found.low, max(min(found.high, parts), found.value))

    def covering(self, confidence: float) -> Interval:
        """Return the larger one of the errors over pairs of different rows and over all entries.

        A small error of the whole says little where the diagonal is most of the matrix, and a small
        one of the pairs says nothing about the diagonal.
        """
        pairs, whole = self.frobenius(confidence), self.whole(confidence)
        return whole if whole.high > pairs.high else pairs

    def root_mean_square(self, confidence: float) -> Interval:
        """Return the root mean square of the errors of pairs of different rows."""
        weights = 1.0 / self.sample.chances
        relative = self._root_of_ratio(confidence, pairs=(self.error_sums, weights.sum() - weights))
        return Interval(*(self.scale * figure for figure in relative.to_dict().values()))

    @cached_property
    def exact_sums(self) -> Float64:
        """The sum of k(x, y)² over all y, for every row x of the sample."""
        return self.exact**2 @ (1.0 / self.sample.chances)

    @cached_property
    def error_sums(self) -> Float64:
        """The sum of all squared errors of its pairs, for every row of the sample."""
        with np.errstate(over="ignore"):
            return self.errors**2 @ (1.0 / self.sample.chances)

    def _root_of_ratio(
        self,
        confidence: float,
        *,
        pairs: tuple[Float64, Float64] | None = None,
        own: tuple[Float64, Float64] | None = None,
    ) -> Interval:
        """Return the root of a ratio of two sums over pairs of different rows, over rows, or both.

        Given are numerators and denominators: for every row the sums over its pairs, and its own.
        """
        nothing = np.zeros(len(self.diagonal))
        (above, below), (own_above, own_below) = (
            (nothing, nothing) if part is None else part for part in (pairs, own)
        )
        weights = 1.0 / self.sample.chances
        numerator = float(weights @ (above + own_above))
        denominator = float(weights @ (below + own_below))
        if numerator == 0.0 or denominator == 0.0 or not math.isfinite(numerator):
            return self._degenerate(numerator)
        ratio = numerator / denominator
        # The ratio's relative error is, to first order, the sum of these over the rows:
        # every row belongs to its pairs on both sides.
        rows = 2.0 * (above - ratio * below) + (own_above - ratio * own_below)
        shares = weights * rows / numerator
        if not self.sample.for_new_rows:
            shares *= np.sqrt(1.0 - self.sample.chances)
        half_width = 0.5 * _student_half_width(shares, confidence)
        value = math.sqrt(ratio)
        # Beyond first order, where few rows contribute most: not the exponential, but its tangent.
        factor = math.exp(half_width) if half_width <= 1.0 else math.e * half_width
        return Interval(value, value / factor, value * factor)

    def _degenerate(self, numerator: float) -> Interval:
        value = 0.0 if numerator == 0.0 else math.inf
        return Interval(value, value if self.sample.complete else 0.0, value)


def row_sample(
    sketch: FittedMap, rows: DataRows, streams: RandomStreams, size: int = SAMPLE_ROWS
) -> RowSample:
    """Draw about `size` of the rows; all of them if there are no more."""
    if rows.count <= size:
        return RowSample(rows, np.ones(rows.count))
    sizes = [np.ones(rows.count), kernel_diagonal(sketch.kernel_, rows)]
    if rows.count <= _ROWS_LOOKED_AT:
        sizes.append(_first_look(sketch, rows, streams))
    chances = row_chances(sizes, size)
    uniform = (streams.words("rows", rows.count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    chosen = np.flatnonzero(uniform < chances)
    return RowSample(rows.take(chosen), chances[chosen])


def row_chances(sizes: Sequence[Float64], count: int) -> Float64:
    """Return probabilities that add up to `count`, equal parts of it by each kind of size."""
    scaled = [size / (float(size.max()) or 1.0) for size in sizes]
    shares: Float64 = np.mean([size / (size.sum() or 1.0) for size in scaled], axis=0)
    certain: NDArray[np.bool_] = np.zeros(len(shares), dtype=bool)
    while True:
        factor = (count - np.count_nonzero(certain)) / shares[~certain].sum()
        above = ~certain & (factor * shares >= 1.0)
        if not above.any():
            return np.where(certain, 1.0, factor * shares)
        certain |= above


def _first_look(sketch: FittedMap, rows: DataRows, streams: RandomStreams) -> Float64:
    """Return the sum of squared errors of every row with a few random ones.

    A row whose errors are far above those of others must not be left to chance.
    """
    references = rows.take(streams.sample("references", rows.count, _REFERENCES))
    scale = float(np.max(sketch.kernel_.diagonal(references.matrix))) or 1.0
    Z = references.features(sketch) / math.sqrt(scale)
    sums = np.empty(rows.count)
    step = min(_BLOCK_ROWS, max(_FEATURES_OF_BLOCK // Z.shape[1], 1))
    for start in range(0, rows.count, step):
        chosen = np.arange(start, min(start + step, rows.count))
        block = rows.take(chosen)
        errors = block.features(sketch) / math.sqrt(scale) @ Z.T
        errors -= sketch.kernel_(block.matrix, references.matrix, dtype=np.float64) / scale
        sums[chosen] = np.einsum("ij,ij->i", errors, errors)
    return sums


def sample_rows(components: int) -> int:
    """Return how many rows to sample, so that their features do not take too much memory."""
    return min(SAMPLE_ROWS, max(_FEATURES_OF_SAMPLE // max(components, 1), _FEWEST_ROWS))


def _gram(Z: Float64, scale: float) -> Float64:
    """Return Z Zᵀ / scale."""
    # Said again, because another thread has settings of its own.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = Z / math.sqrt(scale)
        return scaled @ scaled.T


def _scale(entries: Float64) -> float:
    return max(float(entries.max()), -float(entries.min())) or 1.0


def _student_half_width(shares: Float64, confidence: float) -> float:
    """Return how far a sum of independent contributions may be from its mean, per unit of it.

    Where few rows contribute most, the sum is far from normal: they count as degrees of freedom.
    """
    squares = shares * shares
    variance = float(squares.sum())
    if variance == 0.0:
        return 0.0
    relative = squares / variance
    freedom = max(1.0 / float(relative @ relative) - 1.0, 1.0)
    quantile = float(stdtrit(freedom, 0.5 + 0.5 * confidence))
    return _SAFETY * quantile * math.sqrt(variance)
