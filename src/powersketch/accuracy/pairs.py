"""Errors of Z Zᵀ over pairs of rows and over the diagonal: all, estimated, or a few to look at."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from powersketch.accuracy.rows import DataRows, FittedMap, RowSample
from powersketch.arrays import Float64, Vector, divide_or_zero, slices
from powersketch.execution import interruptible
from powersketch.kernels import Kernel
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

# For what the first order leaves out: in hundreds of trials 99 % were held with it, not without.
_SAFETY = 1.15
_INDEPENDENT_PAIRS = 4096
# The kernel gives matrices only, of which the diagonals are wanted: larger ones are a waste, and
# smaller ones take as long, for every call costs something too.
_BLOCK_PAIRS = 256
# This few rows of a sample cannot stand for all that are like them.
_FEW = 2.0
# Errors below this share of eps, relative to the norms of both rows, are those of an exact map.
_EXACT = 1e-6


@storable
@dataclass(frozen=True)
class Interval:
    """A measured value and the bounds within which the true one lies.

    Parameters
    ----------
    value : float
        What was measured.
    low, high : float
        The bounds; equal to the value where it is exact.

    Examples
    --------
    >>> from powersketch.accuracy import Interval
    >>> interval = Interval(0.05, 0.045, 0.056)
    >>> print(interval)
    0.05 [0.045, 0.056]
    >>> 0.05 in interval, interval.exact, float(interval)
    (True, False, 0.05)
    """

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the value is the true one, up to rounding errors."""
        return self.low == self.high

    def scaled(self, factor: float) -> Interval:
        """Return the interval times a positive factor."""
        return Interval(factor * self.value, factor * self.low, factor * self.high)

    def to_dict(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return asdict(self)

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        bounds = "exact" if self.exact else f"{self.low:.3g}, {self.high:.3g}"
        return f"{self.value:.3g} [{bounds}]"


@dataclass(frozen=True, eq=False)
class ExactPairs:
    """K for a sample of rows: pairs of different rows, and the diagonal.

    Both are divided by a scale of their own, so that squares neither over- nor underflow: pairs can
    be smaller than the diagonal by any factor.

    Parameters
    ----------
    sample : RowSample
        The rows.
    matrix : ndarray of shape (n, n)
        K divided by `scale`, with zeros on the diagonal.
    scale : float
        The largest |k(x, y)| of two different rows.
    diagonal : ndarray of shape (n,)
        All k(x, x), divided by `diagonal_scale`.
    diagonal_scale : float
        The largest k(x, x).
    """

    sample: RowSample
    matrix: Float64
    scale: float
    diagonal: Vector
    diagonal_scale: float

    @classmethod
    def of(cls, kernel: Kernel, sample: RowSample, n_jobs: int | None = None) -> ExactPairs:
        """Compute all entries of the sample."""
        K = sample.rows.kernel_matrix(kernel, n_jobs)
        diagonal = K.diagonal().copy()
        np.fill_diagonal(K, 0.0)
        scale, diagonal_scale = _scale(K), _scale(diagonal)
        K /= scale
        return cls(sample, K, scale, diagonal / diagonal_scale, diagonal_scale)

    @cached_property
    def sums(self) -> Vector:
        """The sum of k(x, y)² over all y, for every row x of the sample."""
        return self.matrix**2 @ (1.0 / self.sample.probabilities)


@dataclass(frozen=True, eq=False)
class PairErrors:
    """Z Zᵀ − K for a sample of rows, divided by the scales of K.

    Parameters
    ----------
    exact : ExactPairs
        K, and the sample.
    errors : ndarray of shape (n, n)
        Of pairs of different rows, with zeros on the diagonal.
    diagonal_errors : ndarray of shape (n,)
        All ‖z(x)‖² − k(x, x).
    """

    exact: ExactPairs
    errors: Float64
    diagonal_errors: Vector

    @classmethod
    def measure(cls, sketch: FittedMap, exact: ExactPairs) -> PairErrors:
        """Compute all errors of the sample."""
        Z = exact.sample.rows.features(sketch)
        # Where even the scaled numbers overflow, errors are infinite, and are reported so.
        with np.errstate(over="ignore", invalid="ignore"):
            errors = interruptible(lambda: _gram(Z, exact.scale))
            errors -= exact.matrix
            np.fill_diagonal(errors, 0.0)
            scaled = Z / math.sqrt(exact.diagonal_scale)
            diagonal_errors = np.einsum("ij,ij->i", scaled, scaled) - exact.diagonal
        return cls(exact, errors, diagonal_errors)

    def frobenius(self, confidence: float) -> Interval:
        """Return ‖Z Zᵀ − K‖ / ‖K‖ over pairs of different rows."""
        return self._root_of_ratio(confidence, pairs=(self._sums, self.exact.sums))

    def of_diagonal(self, confidence: float) -> Interval:
        """Return ‖Z Zᵀ − K‖ / ‖K‖ over the diagonals of the two matrices."""
        singles = self.diagonal_errors**2, self.exact.diagonal**2
        return self._root_of_ratio(confidence, singles=singles)

    def whole(self, confidence: float) -> Interval:
        """Return ‖Z Zᵀ − K‖ / ‖K‖ over all entries."""
        # The squares of both parts are brought to one scale.
        exact = self.exact
        largest = max(exact.scale, exact.diagonal_scale)
        pair, single = (exact.scale / largest) ** 2, (exact.diagonal_scale / largest) ** 2
        error = self._root_of_ratio(
            confidence,
            pairs=(pair * self._sums, pair * exact.sums),
            singles=(single * self.diagonal_errors**2, single * exact.diagonal**2),
        )
        # The whole is a mean of its parts, and never above the larger of them.
        parts = max(self.frobenius(confidence).high, self.of_diagonal(confidence).high)
        return Interval(error.value, error.low, max(min(error.high, parts), error.value))

    def larger(self, confidence: float) -> Interval:
        """Return the larger one of the errors over pairs of different rows and over all entries.

        A small error of the whole says little where the diagonal is most of the matrix, and a small
        one of the pairs says nothing about the diagonal.
        """
        pairs, whole = self.frobenius(confidence), self.whole(confidence)
        return whole if whole.high > pairs.high else pairs

    def root_mean_square(self, confidence: float) -> Interval:
        """Return the root mean square of the errors of pairs of different rows."""
        weights = 1.0 / self.exact.sample.probabilities
        relative = self._root_of_ratio(confidence, pairs=(self._sums, weights.sum() - weights))
        return relative.scaled(self.exact.scale)

    def largest(self) -> float:
        """Return the largest error of two different rows."""
        return self.exact.scale * float(np.max(np.abs(self.errors)))

    def are_negligible(self, eps: float) -> bool:
        """Tell whether all errors are far below eps relative to the norms of their two rows."""
        inverse = divide_or_zero(1.0, np.sqrt(self.exact.diagonal))
        relative = np.abs(self.errors) * inverse[:, np.newaxis] * inverse
        limit = _EXACT * eps * self.exact.diagonal_scale / self.exact.scale
        return bool(relative.max() <= limit)

    @cached_property
    def _sums(self) -> Vector:
        """The sum of all squared errors of its pairs, for every row of the sample."""
        with np.errstate(over="ignore"):
            return self.errors**2 @ (1.0 / self.exact.sample.probabilities)

    def _root_of_ratio(
        self,
        confidence: float,
        *,
        pairs: tuple[Vector, Vector] | None = None,
        singles: tuple[Vector, Vector] | None = None,
    ) -> Interval:
        """Return the root of a ratio of two sums over pairs of different rows, over rows, or both.

        Given are numerators and denominators: for every row the sums over its pairs, and what the
        row adds by itself.
        """
        sample = self.exact.sample
        nothing = np.zeros(sample.rows.count)
        (above, below), (single_above, single_below) = (
            (nothing, nothing) if part is None else part for part in (pairs, singles)
        )
        weights = 1.0 / sample.probabilities
        numerator = float(weights @ (above + single_above))
        denominator = float(weights @ (below + single_below))
        if numerator == 0.0 or denominator == 0.0 or not math.isfinite(numerator):
            value = 0.0 if numerator == 0.0 else math.inf
            return Interval(value, value if sample.complete else 0.0, value)
        ratio = numerator / denominator
        # The ratio's relative error is, to first order, the sum of these over the rows:
        # every row belongs to its pairs on both sides.
        rows = 2.0 * (above - ratio * below) + (single_above - ratio * single_below)
        shares = weights * rows / numerator
        if not sample.for_new_rows:
            shares *= np.sqrt(1.0 - sample.probabilities)
        half_width = 0.5 * _student_half_width(shares, confidence)
        value = math.sqrt(ratio)
        # Beyond first order, where few rows contribute most: not the exponential, but its tangent.
        factor = math.exp(half_width) if half_width <= 1.0 else math.e * half_width
        return Interval(value, value / factor, value * factor)


@dataclass(frozen=True, eq=False)
class IndependentPairs:
    """The kernel and its approximation for pairs of different rows, drawn independently."""

    exact: Vector
    approximate: Vector

    @classmethod
    def measure(cls, sketch: FittedMap, rows: DataRows, streams: RandomStreams) -> IndependentPairs:
        """Draw pairs of these rows and compute both values for each."""
        left, right = _any_pairs(rows.count, streams)
        exact, approximate = np.empty(len(left)), np.empty(len(left))
        for part in slices(len(left), _BLOCK_PAIRS):
            both = rows.take(np.concatenate((left[part], right[part])))
            middle = both.count // 2
            K = sketch.kernel_(both.matrix[:middle], both.matrix[middle:], dtype=np.float64)
            exact[part] = K.diagonal()
            Z = both.features(sketch)
            approximate[part] = np.einsum("ij,ij->i", Z[:middle], Z[middle:])
        return cls(exact, approximate)

    @classmethod
    def among(cls, errors: PairErrors, streams: RandomStreams) -> IndependentPairs:
        """Draw pairs of rows of which all pairs are known.

        Where the rows are a random sample themselves, only pairs without common rows are
        independent.
        """
        known, sample = errors.exact, errors.exact.sample
        choose = _disjoint_pairs if sample.for_new_rows else _any_pairs
        left, right = choose(sample.rows.count, streams)
        exact = known.scale * known.matrix[left, right]
        return cls(exact, exact + known.scale * errors.errors[left, right])

    def largest_error(self) -> float:
        """Return the largest error of these pairs."""
        return float(np.max(np.abs(self.approximate - self.exact)))

    def exceeding_share(self, confidence: float) -> float:
        """Return the share of all pairs that may have a larger error than these.

        If a share q of all pairs had, N independent pairs would all miss them with probability
        (1 − q)^N.
        """
        return float(-np.expm1(np.log1p(-confidence) / len(self.exact)))


def dominance_in_diagonal(diagonal: Vector, measured: int) -> str:
    """Say why nothing can be promised for further rows, if k(x, x) shows it; else nothing.

    An error relative to the kernel's norm is a ratio of two sums over pairs of rows. Where a
    handful of rows makes up half of such a sum, the ratio is that of just these rows. Further rows
    have other extremes, or none, and an error that may be larger by any factor. The squares of a
    row's pairs grow like its k(x, x). What counts is how many of the rows that make up half of the
    sum are to be expected in a sample of `measured` rows.
    """
    heaviest = _rows_of_half(diagonal)
    if heaviest * measured > _FEW * len(diagonal):
        return ""
    return _dominance(heaviest, len(diagonal), "the sum of k(x, x)")


def dominance_in_pairs(exact: ExactPairs) -> str:
    """Say why nothing can be promised for further rows, if pairs show it; else nothing.

    Where a few rows have most of the errors only, and not of the kernel, intervals show it.
    """
    heaviest = _rows_of_half(exact.sums)
    if heaviest > _FEW:
        return ""
    return _dominance(heaviest, len(exact.sums), "the kernel's squares")


def without_dominant_rows(rows: DataRows, diagonal: Vector) -> DataRows:
    """Drop the rows with the largest k(x, x), as long as a few make up half of the sum of all."""
    order = np.argsort(diagonal, kind="stable")
    left = rows.count
    while left > rows.count // 2 and dominance_in_diagonal(diagonal[order[:left]], left // 2):
        left -= _rows_of_half(diagonal[order[:left]])
    return rows.take(np.sort(order[:left]))


def _student_half_width(shares: Vector, confidence: float) -> float:
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


def _rows_of_half(sums: Vector) -> int:
    """Return how many of the rows make up half of the sum, the largest first."""
    largest = float(sums.max())
    if largest == 0.0 or not np.isfinite(largest):
        return len(sums)
    shares = np.cumsum(np.sort(sums / largest)[::-1])
    return int(np.searchsorted(shares, 0.5 * shares[-1])) + 1


def _dominance(heaviest: int, count: int, what: str) -> str:
    rows = "one row makes" if heaviest == 1 else f"{heaviest} rows make"
    return f"{rows} up half of {what} over {count} rows"


def _any_pairs(count: int, streams: RandomStreams) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows on the left and on the right, which differ from each other."""
    left = streams.integers("left", _INDEPENDENT_PAIRS, count)
    right = streams.integers("right", _INDEPENDENT_PAIRS, count - 1)
    return left, right + (right >= left)


def _disjoint_pairs(
    count: int, streams: RandomStreams
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows on the left and on the right, each row once only."""
    order = streams.permutation("pairs", count)[: 2 * min(_INDEPENDENT_PAIRS, count // 2)]
    return order[0::2], order[1::2]


def _gram(Z: Float64, scale: float) -> Float64:
    """Return Z Zᵀ / scale."""
    # Said again, because another thread has settings of its own.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = Z / math.sqrt(scale)
        return scaled @ scaled.T


def _scale(entries: Float64) -> float:
    return max(float(entries.max()), -float(entries.min())) or 1.0
