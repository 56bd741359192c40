"""How many components a feature map needs: measured by growing it, predicted, and by theorems."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.accuracy.certificate import Certificate, certificate_from
from powersketch.accuracy.dimension import statistical_dimension, theorem_size
from powersketch.accuracy.pairs import (
    ExactPairs,
    PairErrors,
    dominance_in_diagonal,
    dominance_in_pairs,
    without_dominant_rows,
)
from powersketch.accuracy.rows import (
    LARGEST_SIZE,
    SAMPLE_ROWS,
    DataRows,
    FittedMap,
    MapFamily,
    RowSample,
    checked_confidence,
    sample_rows,
)
from powersketch.accuracy.spectral import check_alpha_above_rounding, spectral_error
from powersketch.exceptions import OutlierWarning, warn_user
from powersketch.kernels import Kernel
from powersketch.parameters import checked_fraction, checked_positive, refuse_unless_default
from powersketch.random_streams import RandomStreams, seed_from

_FIRST_SIZE = 64
_SEARCH_ROWS = 1000
# With fewer rows to confirm the result on, nothing can be said about rows outside the data set.
_FEWEST_FRESH_ROWS = 100
_CONFIDENCE = 0.99
_LEAST_GROWTH, _MOST_GROWTH = 1.25, 8.0
_BRACKET = 1.12
_ENLARGEMENT = 1.1
# From the large size on, the search ends if not even an error that falls like 1 / size would do.
_LARGE_SIZE, _HOPELESS = 4096, 2.0
# Larger matrices Z with all rows would take gigabytes.
_LARGEST_SPECTRAL, _FAR_TOO_MANY = 2**14, 4.0

Draw = Callable[[int], FittedMap]  # from a number of components to a map that has as many


class OutOfReachError(ValueError):
    """Raised where no allowed size keeps the error."""

    def __init__(self, size: int, error: float, eps: float) -> None:
        self.size, self.error = size, error
        super().__init__(
            f"eps={eps:g} is out of reach: with n_components={size}, the largest number tried, "
            f"the error is {error:.3g}. Choose a larger eps, set n_components yourself, or, if "
            "the map has such parameters, raise internal_components or lower tail_eps."
        )


@dataclass(frozen=True)
class RequiredComponents:
    """Numbers of components for an error, returned by :func:`required_components`.

    Parameters
    ----------
    measured : int or None
        About the smallest number with which the error was kept; None where no allowed one did.
    predicted : int
        What a formula and one measurement suggest.
    paper : int
        The order that the paper's theorem states, with constant one and without logarithms.
    message : str
        How each was found.
    """

    measured: int | None
    predicted: int
    paper: int
    message: str


def required_components(
    sketch: Any,
    X: Any,
    eps: float,
    *,
    alpha: float | None = None,
    confidence: float = _CONFIDENCE,
    random_state: int | np.random.RandomState | None = None,
) -> RequiredComponents:
    """Return how many components a feature map needs on these rows.

    Parameters
    ----------
    sketch : feature map
        Fitted or not; it is cloned, with other values of n_components.
    X : {array, sparse matrix or data frame} of shape (n_samples, n_features)
        The rows, at least two.
    eps : float
        The error to keep, between 0 and 1.
    alpha : float or None, default=None
        None means the relative Frobenius error, both over pairs of different rows and over all
        entries, the diagonal included, as for ``n_components="auto"``. From 400 rows on it is that
        of new rows: up to 3000 rows, at most half of all, are measured, and maps are fitted to the
        others. Fewer rows are all fitted to and all measured, landmarks among them included, on
        which the error is zero.
        A positive number means the spectral error,
        (1 − eps)(K + αI) ⪯ Z Zᵀ + αI ⪯ (1 + eps)(K + αI) on all rows, which are those that maps
        are fitted to, landmarks among them included.
    confidence : float, default=0.99
        Probability with which measured spectral errors are kept, for alpha only.
    random_state : int, RandomState instance or None, default=None
        Seed of the measured maps and of the measurement.

    Returns
    -------
    RequiredComponents
        With the figures and how they were found.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import GaussianSketch
    >>> from powersketch.accuracy import required_components
    >>> X = np.random.RandomState(0).rand(400, 5)
    >>> required = required_components(GaussianSketch(), X, 0.05, random_state=0)
    >>> 20 <= required.measured <= 80 < required.paper
    True
    """
    eps = checked_fraction("eps", eps, remedy="0.1 is a common choice")
    confidence = checked_confidence(confidence)
    if alpha is not None:
        alpha = checked_positive("alpha", alpha, remedy="pass None for the Frobenius error")
    else:
        refuse_unless_default("confidence", confidence, _CONFIDENCE, "without alpha")
    rows, seed = DataRows.of(X, fewest=2), seed_from(random_state)
    streams = RandomStreams(seed, "required_components")
    measured, fitted = rows.divided(streams) if alpha is None else (rows, rows)
    family = MapFamily.of(sketch, fitted, seed)
    first = family.draw(family.first_size)
    paper, formula = theorem_size(first, rows, eps)
    if alpha is None:
        size, predicted, text = _for_frobenius(family, first, measured, eps, streams)
    else:
        check_alpha_above_rounding(alpha, rows.kernel_diagonal(first.kernel_))
        size, predicted, text = _for_spectrum(family, first, eps, streams, alpha, confidence)
    return RequiredComponents(size, predicted, paper, f"{text}; paper: {formula}")


def _for_frobenius(
    family: MapFamily, first: FittedMap, rows: DataRows, eps: float, streams: RandomStreams
) -> tuple[int | None, int, str]:
    """Return the measured size for these rows, the predicted one, and how they were found."""
    trial = rows.take(streams.permutation("trial", rows.count)[:_SEARCH_ROWS])
    exact = ExactPairs.of(first.kernel_, RowSample.of_all(trial))
    error = PairErrors.measure(first, exact).larger(_CONFIDENCE).value
    sizes, size = family.sizes, family.first_size
    predicted = max(math.ceil(size * (error / eps) ** 2), sizes[0])
    formula = f"predicted: {size} (error / eps)² with the error {error:.3g} measured there"
    try:
        if rows is family.rows:
            where = "the rows that maps were fitted to"
            measured, certificate = _grown_for(
                family.draw, first.kernel_, rows, eps, streams, sizes=sizes
            )
        else:
            where = "rows that maps were not fitted to"
            measured, certificate = grown_size(family.draw, rows.given, eps, streams, sizes=sizes)
    except OutOfReachError as failure:
        return None, predicted, f"measured: {failure}; {formula}"
    text = (
        f"measured: relative error over all entries {certificate.whole} and over pairs of "
        f"different rows {certificate.frobenius} on {where}"
    )
    return measured, predicted, f"{text}; {formula}"


def _for_spectrum(
    family: MapFamily,
    first: FittedMap,
    eps: float,
    streams: RandomStreams,
    alpha: float,
    confidence: float,
) -> tuple[int | None, int, str]:
    """Return the measured size for the maps' rows, the predicted one, and how they were found."""
    dimension = statistical_dimension(
        first.kernel_, family.rows.given, alpha, confidence=confidence, random_state=streams.seed
    )
    smallest, largest = family.sizes[0], min(family.sizes[1], _LARGEST_SPECTRAL)
    # Marchenko and Pastur's law for independent features: eps = 2 √(s / m) + s / m.
    predicted = max(math.ceil(dimension.value / (math.sqrt(1.0 + eps) - 1.0) ** 2), smallest)
    formula = (
        f"predicted: m with 2 √(s / m) + s / m = eps for the statistical dimension "
        f"s = {dimension.value:.4g}"
    )

    def bound(size: int) -> float:
        sketch, child = family.draw(size), streams.child(f"spectral/{size}")
        return spectral_error(sketch, family.rows, alpha, child, confidence=confidence).eps.high

    # The law is not that of landmarks, of which as many as rows leave no error.
    if predicted > _FAR_TOO_MANY * largest and not family.has_landmarks:
        return None, predicted, f"measured: nothing, as {predicted} are far too many; {formula}"
    start = math.ceil(dimension.value) if family.has_landmarks else predicted
    try:
        measured = smallest_size(bound, eps, (smallest, largest), first=start)
    except OutOfReachError as failure:
        return None, predicted, f"measured: {failure}; {formula}"
    return measured, predicted, f"measured: spectral error of at most {eps:g}; {formula}"


def grown_size(
    draw: Draw,
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
    rows, sizes = DataRows.of(X, fewest=2), (sizes[0], min(sizes[1], LARGEST_SIZE))
    kernel = draw(sizes[0]).kernel_
    if rows.count - _searched(rows.count) < _FEWEST_FRESH_ROWS:
        return _grown_for(draw, kernel, rows, eps, streams, sizes=sizes, n_jobs=n_jobs)
    everything = rows if given is None else DataRows.of(given)
    reason = dominance_in_diagonal(everything.kernel_diagonal(kernel), rows.count // 2)
    ordinary = without_dominant_rows(rows, rows.kernel_diagonal(kernel)) if reason else rows
    size, certificate, errors = _grown_for_new(draw, kernel, ordinary, eps, streams, sizes, n_jobs)
    if errors.are_negligible(eps):
        return size, certificate
    reason = reason or dominance_in_pairs(errors.exact)
    if not reason:
        return size, certificate
    sizes = size, sizes[1]
    size, certificate = _grown_for(
        draw, kernel, everything, eps, streams, sizes=sizes, reason=reason, n_jobs=n_jobs
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
    draw: Draw,
    kernel: Kernel,
    rows: DataRows,
    eps: float,
    streams: RandomStreams,
    sizes: tuple[int, int],
    n_jobs: int | None,
) -> tuple[int, Certificate, PairErrors]:
    """Return the size for further rows of the same kind, and what it was confirmed by.

    Where a few rows decide the errors, intervals are useless and are not looked at.
    """

    def exact_pairs(chosen: Any) -> ExactPairs:
        sample = RowSample.of_all(rows.take(chosen), for_new_rows=True)
        return ExactPairs.of(kernel, sample, n_jobs)

    order, searched = streams.permutation("rows", rows.count), _searched(rows.count)
    remaining = order[searched:]
    known = exact_pairs(order[:searched])
    dominated = bool(dominance_in_pairs(known))

    def predicted_bound(size: int) -> float:
        error = PairErrors.measure(draw(size), known).larger(_CONFIDENCE)
        if error.value == 0.0 or math.isinf(error.value) or dominated:
            return error.value
        fresh = min(sample_rows(size), len(remaining))
        # Intervals are as wide as the root of the number of rows is small.
        return error.value * math.pow(error.high / error.value, math.sqrt(searched / fresh))

    size = smallest_size(predicted_bound, eps, sizes)
    while True:
        sketch, exact = draw(size), exact_pairs(remaining[: sample_rows(size)])
        errors, fresh = PairErrors.measure(sketch, exact), exact.sample.rows
        certificate = certificate_from(
            errors, sketch, fresh, fresh.kernel_diagonal(kernel), streams, confidence=_CONFIDENCE
        )
        if certificate.bound <= eps or dominance_in_pairs(exact):
            return size, certificate, errors
        size = _next_size(size, sizes, certificate, eps)


def _grown_for(
    draw: Draw,
    kernel: Kernel,
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
    diagonal = rows.kernel_diagonal(kernel)
    known = None
    if rows.count <= SAMPLE_ROWS:
        known = ExactPairs.of(kernel, RowSample.of_all(rows), n_jobs)

    def measured(size: int, name: str) -> tuple[FittedMap, PairErrors]:
        sketch, count = draw(size), sample_rows(size)
        if known is not None and rows.count <= count:
            return sketch, PairErrors.measure(sketch, known)
        sample = RowSample.draw(sketch, rows, diagonal, streams.child(name), count)
        return sketch, PairErrors.measure(sketch, ExactPairs.of(kernel, sample, n_jobs))

    def bound(size: int) -> float:
        return measured(size, "searched")[1].larger(_CONFIDENCE).high

    size = smallest_size(bound, eps, sizes)
    while True:
        sketch, errors = measured(size, "confirmed")
        certificate = certificate_from(
            errors, sketch, rows, diagonal, streams, confidence=_CONFIDENCE, reason=reason
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
