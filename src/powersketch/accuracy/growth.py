"""How many components a feature map needs: grown until measured errors are small enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from powersketch.accuracy.certificates import Certificate, certificate_from
from powersketch.accuracy.data_rows import DataRows, FittedMap, kernel_diagonal
from powersketch.accuracy.heavy_rows import heavy_diagonal, heavy_pairs, is_exact, light_rows
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample, row_sample, sample_rows
from powersketch.exceptions import OutlierWarning, warn_user
from powersketch.random_streams import RandomStreams

LARGEST_SIZE = 2**16
_FIRST_SIZE = 64
_SEARCH_ROWS = 1000
# With fewer rows to confirm the result on, nothing can be said about rows of no data set.
_FEWEST_FRESH_ROWS = 100
_CONFIDENCE = 0.99
_LEAST_GROWTH, _MOST_GROWTH = 1.25, 8.0
_BRACKET = 1.12
_ENLARGEMENT = 1.1
# From the large size on, the search ends if not even an error that falls like 1 / size would do.
_LARGE_SIZE, _HOPELESS = 4096, 2.0


class OutOfReachError(ValueError):
    """Raised where no allowed size keeps the error."""

    def __init__(self, size: int, error: float, eps: float) -> None:
        self.size, self.error = size, error
        super().__init__(
            f"eps={eps:g} is out of reach: with n_components={size}, the largest number tried, "
            f"the error is {error:.3g}. Choose a larger eps, set n_components yourself, or, if "
            "the map has such parameters, raise internal_components or lower tail_eps."
        )


def grown_size(
    draw: Callable[[int], FittedMap],
    X: Any,
    eps: float,
    streams: RandomStreams,
    *,
    sizes: tuple[int, int] = (1, LARGEST_SIZE),
    given: Any = None,
    n_jobs: int | None = None,
) -> tuple[int, Certificate]:
    """Return a number of components with relative Frobenius errors of at most eps.

    Both the error over pairs of different rows and that over all entries are meant. The number is
    close to the smallest one of the allowed sizes. The search measures all pairs of some rows; the
    certificate comes from other rows, and its bound, which is for new rows of the same kind, is at
    most eps. Of few rows all are measured, and the certificate is about these only. So it is where
    a few rows decide the error, with a warning: then it is about the rows given, which are X unless
    X was taken from more of them.
    """
    rows = DataRows.of(X, fewest=2)
    if rows.count - _searched(rows.count) < _FEWEST_FRESH_ROWS:
        return grown_for(draw, rows, eps, streams, sizes=sizes, n_jobs=n_jobs)
    everything = rows if given is None else DataRows.of(given)
    kernel = draw(sizes[0]).kernel_
    reason = heavy_diagonal(kernel_diagonal(kernel, everything), rows.count // 2)
    light = light_rows(kernel, rows) if reason else rows
    size, certificate, errors = _grown_for_new(draw, light, eps, streams, sizes, n_jobs)
    reason = "" if is_exact(errors, eps) else reason or heavy_pairs(errors)
    if not reason:
        return size, certificate
    size, certificate = grown_for(
        draw, everything, eps, streams, sizes=(size, sizes[1]), reason=reason, n_jobs=n_jobs
    )
    warn_user(
        f"n_components={size} keeps eps={eps:g} on the {everything.count} rows of X only, and "
        f"nothing can be promised for further rows: {reason}. If these are wrong, leave them out; "
        "if they are right, scale the rows to equal norms, or measure further rows with "
        "powersketch.accuracy.certify.",
        OutlierWarning,
    )
    return size, certificate


def _searched(count: int) -> int:
    """Return how many of the rows the search measures; the others confirm its result."""
    return min(_SEARCH_ROWS, count // 2)


def _grown_for_new(
    draw: Callable[[int], FittedMap],
    rows: DataRows,
    eps: float,
    streams: RandomStreams,
    sizes: tuple[int, int],
    n_jobs: int | None,
) -> tuple[int, Certificate, PairErrors]:
    """Return the size for further rows of the same kind, and what it was confirmed by.

    Where a few rows decide the errors, intervals are useless and are not looked at.
    """
    searched = _searched(rows.count)
    order = streams.permutation("rows", rows.count)
    remaining = order[searched:]
    sample = RowSample(rows.take(order[:searched]), np.ones(searched), for_new_rows=True)

    def predicted_bound(size: int) -> float:
        errors = PairErrors.measure(draw(size), sample, n_jobs)
        found = errors.covering(_CONFIDENCE)
        if found.value == 0.0 or math.isinf(found.value) or heavy_pairs(errors):
            return found.value
        fresh = min(sample_rows(size), len(remaining))
        # Intervals are as wide as the root of the number of rows is small.
        return found.value * math.pow(found.high / found.value, math.sqrt(searched / fresh))

    size = smallest_size(predicted_bound, eps, sizes)
    while True:
        sketch, fresh = draw(size), rows.take(remaining[: sample_rows(size)])
        part = RowSample(fresh, np.ones(fresh.count), for_new_rows=True)
        errors = PairErrors.measure(sketch, part, n_jobs)
        certificate = certificate_from(errors, sketch, fresh, streams, confidence=_CONFIDENCE)
        if certificate.bound <= eps or heavy_pairs(errors):
            return size, certificate, errors
        size = _next_size(size, sizes, certificate, eps)


def grown_for(
    draw: Callable[[int], FittedMap],
    rows: DataRows,
    eps: float,
    streams: RandomStreams,
    *,
    sizes: tuple[int, int],
    reason: str = "",
    n_jobs: int | None = None,
) -> tuple[int, Certificate]:
    """Return the size for these rows and no others; many of them are sampled.

    The reason is why further rows are not covered, where they were asked for.
    """

    def measured(size: int, name: str) -> tuple[FittedMap, PairErrors]:
        sketch = draw(size)
        sample = row_sample(sketch, rows, streams.child(name), sample_rows(size))
        return sketch, PairErrors.measure(sketch, sample, n_jobs)

    def bound(size: int) -> float:
        return measured(size, "searched")[1].covering(_CONFIDENCE).high

    size = smallest_size(bound, eps, sizes)
    while True:
        sketch, errors = measured(size, "confirmed")
        certificate = certificate_from(
            errors, sketch, rows, streams, confidence=_CONFIDENCE, reason=reason
        )
        if certificate.bound <= eps:
            return size, certificate
        size = _next_size(size, sizes, certificate, eps)


def _next_size(size: int, sizes: tuple[int, int], certificate: Certificate, eps: float) -> int:
    """Return a somewhat larger size than one that was not confirmed."""
    if size == sizes[1]:
        raise OutOfReachError(size, certificate.bound, eps)
    return min(math.ceil(_ENLARGEMENT * size), sizes[1])


def smallest_size(
    measure: Callable[[int], float], eps: float, sizes: tuple[int, int], first: int = _FIRST_SIZE
) -> int:
    """Return about the smallest size whose measured error is at most eps.

    An error is expected to fall like size^(−1/2), which is only used to choose what to try next.
    """
    smallest, largest = sizes
    size = min(max(first, smallest), largest)
    too_small, error = smallest - 1, measure(size)
    while error > eps:
        hopeless = size >= _LARGE_SIZE and error * size > _HOPELESS * eps * largest
        if size == largest or hopeless:
            raise OutOfReachError(size, error, eps)
        too_small = size
        growth = min(max((error / eps) ** 2, _LEAST_GROWTH), _MOST_GROWTH)
        size = min(math.ceil(growth * size), largest)
        error = measure(size)
    enough = size
    while enough > math.ceil(_BRACKET * too_small) and enough - too_small > 1:
        middle = math.isqrt(too_small * enough) if too_small > 0 else enough // 2
        middle = min(max(middle, too_small + 1), enough - 1)
        if measure(middle) <= eps:
            enough = middle
        else:
            too_small = middle
    return enough
