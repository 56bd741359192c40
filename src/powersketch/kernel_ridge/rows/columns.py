"""Columns as the kernel sees them: clipped to plausible values, scaled, turned by a metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.execution import check_fits_memory
from powersketch.parameters import checked_positive
from powersketch.random_streams import RandomStreams
from powersketch.storable import storable

# A value is taken for an error of the data, and not for the end of a long tail, if it is this many
# times as far from the median as the next one on its side, and few rows have such values.
_GAP = 2.0
_ROWS_PER_ERROR = 100
_FEWEST_ROWS = 10  # in fewer, nothing tells an error from the others
# Beyond the range of plausible values, as a share of it: new rows may go a little further.
_MARGIN = 0.1
# Whole numbers of this many kinds may as well be names of categories.
_FEWEST_KINDS, _MOST_KINDS = 3, 32
_MOST_INDICATORS = 512
# The third and the fourth moment of a standardised column beyond which it is skewed, or has long
# tails: those of a normal one are 0 and 3.
_SKEWED, _LONG_TAILED = 1.0, 6.0
_MOST_SKEWED_COLUMNS = 512
_KNOTS, _ROWS_FOR_KNOTS = 256, 1 << 14
_BLOCK_ENTRIES = 1 << 21
_SAMPLE = 400
# Columns that vary less are constant; inverses and squares of less are out of range.
_LEAST_SPREAD = {"float32": 1e-35, "float64": 1e-150}

SCALINGS = ("scaled", "as-is", "indicators", "ranks")
"""Columns of equal spread; as they are; those of few whole numbers as a column for each; and skewed
ones by rank."""


@storable
@dataclass(frozen=True, eq=False)
class Indicators:
    """A column of few different values, and what becomes of it: a column for every value."""

    column: int
    values: Vector
    means: Vector
    factor: float

    def of(self, entries: Real) -> Real:
        """Return the indicators about their means, all of them together of variance one."""
        equal = entries[:, np.newaxis] == self.values.astype(entries.dtype)
        columns: Real = equal - self.means.astype(entries.dtype)
        columns *= entries.dtype.type(self.factor)
        return columns


@storable
@dataclass(frozen=True, eq=False)
class Ranks:
    """A skewed column, and what becomes of it: the normal scores of its ranks, in its own unit.

    `knots` are values in ascending order, and `scores` what they become; between, both are
    interpolated.
    """

    column: int
    knots: Vector
    scores: Vector

    @classmethod
    def of(cls, column: int, entries: Vector, centre: float, spread: float) -> Ranks:
        """Rank some entries; the scores have about the given centre and spread."""
        values, counts = np.unique(entries, return_counts=True)
        below = (np.cumsum(counts) - 0.5 * counts) / entries.size
        even = np.linspace(below[0], below[-1], _KNOTS)
        chosen = np.unique(np.minimum(np.searchsorted(below, even), values.size - 1))
        return cls(column, values[chosen], centre + spread * ndtri(below[chosen]))

    def replace_in(self, rows: Real) -> None:
        """Put the scores of rows in the place of the column."""
        rows[:, self.column] = np.interp(rows[:, self.column], self.knots, self.scores)


@storable
@dataclass(frozen=True, eq=False)
class Columns:
    """What is done to the columns of rows before a kernel sees them; learned from rows.

    Parameters
    ----------
    lower, upper : ndarray of shape (d,) or float
        The limits that entries are clipped to first; of stored entries, if rows are sparse.
    centre : ndarray of shape (d,) or None
        What is subtracted afterwards; None for sparse rows, which would not stay sparse.
    factors : ndarray of shape (d,)
        What columns are multiplied by then; 0 for constant ones.
    indicators : tuple of Indicators
        Columns that are replaced by indicators of their values.
    constant : float
        If above 0, a column of this value is added at the end.
    metric : ndarray of shape (d', r) or None
        What the columns are multiplied by after all that: a root of the metric; of shape (d',)
        if it is diagonal.
    scaling : str
        How `factors`, `indicators` and `ranks` came about; one of `SCALINGS`.
    errors_are_medians : bool
        Whether entries that are twice as far from the centre as the limit count as the centre:
        they say nothing, where those a little beyond the limit are still large.
    ranks : tuple of Ranks
        Columns that are replaced by scores of their ranks once they are clipped.
    """

    lower: Any
    upper: Any
    centre: Vector | None
    factors: Vector
    indicators: tuple[Indicators, ...] = ()
    constant: float = 0.0
    metric: Float64 | None = None
    scaling: str = "as-is"
    errors_are_medians: bool = False
    ranks: tuple[Ranks, ...] = ()

    def transform(self, X: Rows) -> Rows:
        """Return the rows as the kernel sees them, in their dtype."""
        if is_sparse(X):
            return self._of_sparse(X)
        parts = slices(X.shape[0], max(_BLOCK_ENTRIES // max(X.shape[1], 1), 1))
        blocks = [self._of_dense(X[part]) for part in parts]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def _of_dense(self, X: Real) -> Real:
        dtype = X.dtype
        lower, upper = (np.asarray(limit).astype(dtype) for limit in (self.lower, self.upper))
        centre = np.zeros(X.shape[1]) if self.centre is None else self.centre
        rows = np.clip(X, lower, upper)
        if self.errors_are_medians:
            with np.errstate(over="ignore", invalid="ignore"):
                far = (X - centre > _GAP * (upper - centre)) | (
                    X - centre < _GAP * (lower - centre)
                )
            np.copyto(rows, centre.astype(dtype), where=far)
        for part in self.ranks:
            part.replace_in(rows)
        rows -= centre.astype(dtype)
        rows *= self.factors.astype(dtype)
        if self.indicators:
            replaced = [part.column for part in self.indicators]
            others = np.delete(rows, replaced, axis=1)
            columns = [part.of(X[:, part.column]) for part in self.indicators]
            rows = np.concatenate([others, *columns], axis=1)
        if self.metric is not None:
            metric = self.metric.astype(dtype)
            rows = rows * metric if metric.ndim == 1 else rows @ metric
        if self.constant:
            rows = np.concatenate([rows, np.full((len(rows), 1), self.constant, dtype)], axis=1)
        return np.ascontiguousarray(rows)

    def _of_sparse(self, X: Rows) -> Rows:
        rows = X.copy()
        np.clip(rows.data, self.lower, self.upper, out=rows.data)
        if self.metric is not None and self.metric.ndim == 2:
            scaled = self.metric * self.factors[:, np.newaxis]
            return np.ascontiguousarray(rows @ scaled.astype(X.dtype))
        factors = self.factors if self.metric is None else self.factors * self.metric
        rows.data *= factors.astype(X.dtype)[rows.indices]
        return rows

    def metric_matrix(self) -> Float64:
        """Return M of distances (x − y)ᵀM(x − y) between prepared columns, of trace one."""
        root = self.metric
        if root is None:
            raise AttributeError(
                "metric_ and feature_importances_ are those of a learned metric, and this fit has "
                "none: use metric='diagonal' or 'full'."
            )
        check_fits_memory(
            f"the metric of {root.shape[0]} columns",
            8 * root.shape[0] ** 2,
            "feature_importances_ are its diagonal",
        )
        matrix = np.diag(root**2) if root.ndim == 1 else root @ root.T
        return np.asarray(matrix / (np.trace(matrix) or 1.0))

    def importances(self) -> Vector:
        """Return the diagonal of the metric, added up for every given column, of sum one."""
        if self.metric is None:
            self.metric_matrix()
        squares = np.asarray(self.metric) ** 2
        diagonal = squares if squares.ndim == 1 else squares.sum(axis=1)
        given = self.factors.size
        replaced = [part.column for part in self.indicators]
        origins = [np.delete(np.arange(given), replaced)]
        origins += [np.full(part.values.size, part.column) for part in self.indicators]
        sums = np.bincount(np.concatenate(origins), diagonal, minlength=given)
        return np.asarray(sums / (sums.sum() or 1.0))

    def with_constant(self) -> Columns:
        """Return the same columns and a constant one, for kernels that know directions only."""
        return replace(self, constant=1.0)

    def times(self, factor: float) -> Columns:
        """Return the same columns, multiplied by a number; but for a constant one."""
        if self.metric is not None:
            return replace(self, metric=factor * self.metric)
        parts = tuple(replace(part, factor=factor * part.factor) for part in self.indicators)
        return replace(self, factors=factor * self.factors, indicators=parts)


@dataclass(frozen=True, eq=False)
class Summary:
    """Where the entries of every column lie: the median, plausible limits, the spread between."""

    centre: Vector
    lower: Vector
    upper: Vector
    spread: Vector
    clip: Any

    @classmethod
    def of(cls, X: Real, clip: Any) -> Summary:
        """Look at all entries of dense rows.

        `clip` is "auto" for limits where the values of a column end, apart from errors far beyond;
        a number for that many standard deviations from the median; None for no limits.
        """
        lower, upper, spread = (np.empty(X.shape[1]) for _ in range(3))
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.median(X, axis=0).astype(np.float64)
            for column in range(X.shape[1]):
                entries = X[:, column].astype(np.float64) - centre[column]
                low, high = _limits(entries, clip)
                spread[column] = _spread(np.clip(entries, low, high))
                lower[column], upper[column] = centre[column] + low, centre[column] + high
        _check_spread(spread, X.dtype)
        spread[spread < _LEAST_SPREAD[X.dtype.name]] = 0.0
        if clip is not None and clip != "auto":
            lower, upper = centre - clip * spread, centre + clip * spread
        return cls(centre, lower, upper, spread, clip)


def prepared_columns(X: Rows, summary: Summary | None, scaling: str, clip: Any) -> Columns | None:
    """Return what to do to the columns of rows; None where a scaling has nothing to do.

    Sparse rows have no summary, and are only clipped and multiplied by one number.
    """
    if summary is None:
        return _sparse_columns(X, clip) if scaling == "as-is" else None
    kinds = _few_kinds(X) if scaling == "indicators" else ()
    ranks = _ranks(X, summary) if scaling == "ranks" else ()
    if (scaling == "indicators" and not kinds) or (scaling == "ranks" and not ranks):
        return None
    spread = summary.spread
    factors = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0.0)
    if scaling == "as-is":
        factors = (factors > 0.0) / (float(np.sqrt(np.mean(spread**2))) or 1.0)
    return Columns(
        summary.lower,
        summary.upper,
        summary.centre,
        factors,
        tuple(_indicators(X, column) for column in kinds),
        scaling=scaling,
        errors_are_medians=summary.clip == "auto",
        ranks=ranks,
    )


def _spread(entries: Vector) -> float:
    """Return the standard deviation; squares of the largest entries are in range."""
    size = float(np.abs(entries).max(initial=0.0))
    return size * float(np.std(entries / size)) if size else 0.0


def _check_spread(spread: Vector, dtype: np.dtype[Any]) -> None:
    """Refuse rows whose deviations or their squares and inverses are out of range."""
    least = _LEAST_SPREAD[dtype.name]
    largest = float(np.nan_to_num(spread, nan=np.inf).max(initial=0.0))
    if largest == 0.0 or least <= largest <= 1.0 / least:
        return
    raise InputError(
        f"the columns of X vary by {largest:.3g}; allowed are standard deviations from {least:g} "
        f"to {1.0 / least:g}, as others are out of the range of {dtype}: multiply X by a constant."
    )


def summary_of(X: Rows, clip: Any) -> Summary | None:
    """Return the summary of dense rows."""
    return None if is_sparse(X) else Summary.of(X, clip)


def given_columns(X: Rows, scaling: str | None, clip: Any) -> Columns | None:
    """Return what to do to the columns of rows whose kernel was given; None if nothing.

    Nothing is done without being asked for: the kernel's parameters refer to the columns.
    """
    if scaling in (None, "auto"):
        limits = prepared_columns(X, summary_of(X, clip), "as-is", clip)
        assert limits is not None
        return replace(limits, centre=None, factors=np.ones(X.shape[1]))
    summary = summary_of(X, clip)
    columns = prepared_columns(X, summary, str(scaling), clip)
    if columns is None and summary is not None:
        columns = prepared_columns(X, summary, "scaled", clip)
    return plain_columns(X) if columns is None else columns


def plain_columns(X: Rows) -> Columns:
    """Return columns to which nothing is done."""
    return Columns(-np.inf, np.inf, None, np.ones(X.shape[1]))


def normalised(columns: Columns, X: Rows, streams: RandomStreams) -> Columns:
    """Return the columns scaled such that the median squared distance of rows is one."""
    some = X
    if X.shape[0] > _SAMPLE:
        some = X[np.sort(streams.sample("distances", X.shape[0], _SAMPLE))]
    rows = columns.transform(some)
    distance = median_squared_distance(rows)
    return columns.times(1.0 / np.sqrt(distance))


def median_squared_distance(rows: Rows) -> float:
    """Return the median squared distance of different rows; 1 if there are none."""
    products = rows @ rows.T
    products = products.toarray() if is_sparse(products) else products
    products = products.astype(np.float64)
    norms = products.diagonal()
    distances = (np.add.outer(norms, norms) - 2.0 * products)[np.triu_indices(rows.shape[0], 1)]
    apart = distances[distances > 1e-12 * max(float(norms.max(initial=0.0)), 1e-300)]
    return float(np.median(apart)) if apart.size else 1.0


def checked_clip(clip: Any) -> Any:
    """Return "auto", None or a positive number; refuse everything else."""
    if clip is None or (isinstance(clip, str) and clip == "auto"):
        return clip
    if isinstance(clip, str):
        raise InputError(f"clip={clip!r} is unknown; use 'auto', a number above 0, or None.")
    return checked_positive("clip", clip, remedy="or 'auto' or None")


def _limits(entries: Vector, clip: Any) -> tuple[float, float]:
    """Return the least and the largest plausible deviation of a column from its median."""
    if clip is None:
        return -np.inf, np.inf
    low = -_end(-entries[entries < 0.0], entries.size)
    high = _end(entries[entries > 0.0], entries.size)
    margin = _MARGIN * (high - low)
    # A column of two values has nothing beyond them.
    return (low - margin if low else 0.0), (high + margin if high else 0.0)


def _end(distances: Vector, rows: int) -> float:
    """Return where the distances end; errors that are far beyond all others do not count."""
    if distances.size < 2 or rows < _FEWEST_ROWS:
        return float(distances.max(initial=0.0))
    few = min(rows // _ROWS_PER_ERROR + 1, distances.size - 1)
    tail = np.sort(np.partition(distances, distances.size - few - 1)[-few - 1 :])
    gaps = np.flatnonzero(tail[1:] > _GAP * tail[:-1])
    return float(tail[gaps[0]] if gaps.size else tail[-1])


def _few_kinds(X: Real) -> Sequence[int]:
    """Return the columns of whole numbers of which there are few different ones."""
    found, total = [], 0
    for column in range(X.shape[1]):
        first = np.unique(X[:_SAMPLE, column])
        if not _FEWEST_KINDS - 1 <= first.size <= _MOST_KINDS or (first != np.rint(first)).any():
            continue
        values = np.unique(X[:, column])
        whole = (values == np.rint(values)).all()
        if whole and _FEWEST_KINDS <= values.size <= _MOST_KINDS:
            found.append(column)
            total += values.size
    return found if total <= _MOST_INDICATORS else ()


def _indicators(X: Real, column: int) -> Indicators:
    values, counts = np.unique(X[:, column], return_counts=True)
    means = counts / X.shape[0]
    variance = float(np.sum(means * (1.0 - means)))
    return Indicators(column, values.astype(np.float64), means, 1.0 / np.sqrt(variance))


def _ranks(X: Real, summary: Summary) -> tuple[Ranks, ...]:
    """Return the skewed columns of many values, ranked on some rows; none if they are very many."""
    some = X[:: -(-X.shape[0] // _ROWS_FOR_KNOTS)]
    found = []
    for column in np.flatnonzero(summary.spread > 0.0):
        entries = some[:, column].astype(np.float64)
        entries = np.clip(entries, summary.lower[column], summary.upper[column])
        if _is_skewed(entries) and np.unique(entries).size > _MOST_KINDS:
            centre, spread = float(summary.centre[column]), float(summary.spread[column])
            found.append(Ranks.of(int(column), entries, centre, spread))
        if len(found) > _MOST_SKEWED_COLUMNS:
            return ()
    return tuple(found)


def _is_skewed(entries: Vector) -> bool:
    """Tell whether the entries of a column are skewed, or have long tails."""
    deviations = entries - entries.mean()
    deviations /= _spread(deviations) or 1.0
    skewness, tails = float(np.mean(deviations**3)), float(np.mean(deviations**4))
    return abs(skewness) > _SKEWED or tails > _LONG_TAILED


def _sparse_columns(X: Rows, clip: Any) -> Columns:
    """Return the limits of stored entries, all of one size: sparse columns have a common unit."""
    stored = np.abs(X.data[X.data != 0.0].astype(np.float64))
    limit = np.inf
    if clip == "auto" and stored.size:
        limit = (1.0 + _MARGIN) * _end(stored, stored.size)
    elif clip is not None and stored.size:
        limit = clip * float(np.sqrt(np.mean(np.minimum(stored, _end(stored, stored.size)) ** 2)))
    size = float(np.sqrt(np.mean(np.minimum(stored, limit) ** 2))) if stored.size else 1.0
    return Columns(-limit, limit, None, np.full(X.shape[1], 1.0 / (size or 1.0)))
