"""How many components a feature map needs: grown until measured errors are small enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from powersketch.accuracy.certificates import Certificate, sampled_certificate
from powersketch.accuracy.data_rows import DataRows, FittedMap
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample, sample_rows
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
    n_jobs: int | None = None,
) -> tuple[int, Certificate]:
    """Return a number of components with a relative Frobenius error of at most eps.

    It is close to the smallest one of the allowed sizes. The search measures all pairs of some
    rows; the certificate comes from other rows, and the upper end of its interval, which is for
    new rows of the same kind, is at most eps. Of few rows all are measured, and the certificate is
    about these only.
    """
    rows = DataRows.of(X, fewest=2)
    order = streams.permutation("rows", rows.count)
    searched = min(_SEARCH_ROWS, rows.count // 2)
    if rows.count - searched < _FEWEST_FRESH_ROWS:
        return exactly_grown(draw, rows, eps, streams, sizes=sizes, n_jobs=n_jobs)
    sample = RowSample(rows.take(order[:searched]), np.ones(searched), for_new_rows=True)
    remaining = order[searched:]

    def predicted_bound(size: int) -> float:
        found = PairErrors.measure(draw(size), sample, n_jobs).frobenius(_CONFIDENCE)
        fresh = min(sample_rows(size), len(remaining))
        # Intervals are as wide as the root of the number of rows is small.
        widening = (found.high / found.value) if found.value > 0.0 else 1.0
        return found.value * math.pow(widening, math.sqrt(searched / fresh))

    size = smallest_size(predicted_bound, eps, sizes)
    while True:
        fresh = rows.take(remaining[: sample_rows(size)])
        certificate = sampled_certificate(
            draw(size),
            fresh,
            RowSample(fresh, np.ones(fresh.count), for_new_rows=True),
            streams,
            confidence=_CONFIDENCE,
            n_jobs=n_jobs,
        )
        if certificate.frobenius.high <= eps:
            return size, certificate
        if size == sizes[1]:
            raise OutOfReachError(size, certificate.frobenius.high, eps)
        size = min(math.ceil(_ENLARGEMENT * size), sizes[1])


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


def exactly_grown(
    draw: Callable[[int], FittedMap],
    rows: DataRows,
    eps: float,
    streams: RandomStreams,
    *,
    sizes: tuple[int, int],
    n_jobs: int | None = None,
) -> tuple[int, Certificate]:
    """Return the size for these rows and no others."""
    sample = RowSample(rows, np.ones(rows.count))

    def error(size: int) -> float:
        return PairErrors.measure(draw(size), sample, n_jobs).frobenius(_CONFIDENCE).value

    size = smallest_size(error, eps, sizes)
    certificate = sampled_certificate(
        draw(size), rows, sample, streams, confidence=_CONFIDENCE, n_jobs=n_jobs
    )
    return size, certificate
