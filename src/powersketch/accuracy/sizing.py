"""How many components are required: measured, predicted, and by the paper's theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.accuracy.data_rows import DataRows, FittedMap, kernel_diagonal
from powersketch.accuracy.dimension import statistical_dimension
from powersketch.accuracy.growth import (
    OutOfReachError,
    grown_for,
    grown_size,
    smallest_size,
)
from powersketch.accuracy.intervals import checked_confidence
from powersketch.accuracy.paper_sizes import paper_size
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample
from powersketch.accuracy.spectral import check_alpha_is_felt, spectral_error
from powersketch.accuracy.trial_maps import TrialMaps, check_is_map, divided
from powersketch.parameters import checked_fraction, checked_positive, refuse_unless_default
from powersketch.random_streams import RandomStreams, seed_from

# Larger matrices Z with all rows would take gigabytes.
_LARGEST_SPECTRAL = 2**14
_TRIAL_ROWS = 1000
_CONFIDENCE = 0.99
_PRODUCTS = 32
_HOPELESS = 4.0


@dataclass(frozen=True)
class RequiredComponents:
    """Numbers of components for an error, made by :func:`required_components`.

    Parameters
    ----------
    measured : int or None
        About the smallest number with which the error was kept; None where no allowed one did.
    predicted : int
        What a formula and one measurement make expect.
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
    check_is_map(sketch)
    eps = checked_fraction("eps", eps, remedy="0.1 is a common choice")
    confidence = checked_confidence(confidence)
    if alpha is not None:
        alpha = checked_positive("alpha", alpha, remedy="pass None for the Frobenius error")
    else:
        refuse_unless_default("confidence", confidence, _CONFIDENCE, "without alpha")
    rows = DataRows.of(X, fewest=2)
    seed = seed_from(random_state)
    streams = RandomStreams(seed, "required_components")
    measured, fitted = divided(rows, streams) if alpha is None else (rows, rows)
    maps = TrialMaps(sketch, fitted, seed)
    first = maps.draw(maps.first_size)
    if alpha is not None:
        check_alpha_is_felt(alpha, kernel_diagonal(first.kernel_, rows))
    paper, formula = paper_size(first, rows, eps)
    if alpha is None:
        size, predicted, text = _for_frobenius(maps, first, measured, eps, streams)
    else:
        size, predicted, text = _for_spectrum(maps, first, eps, streams, alpha, confidence)
    return RequiredComponents(size, predicted, paper, f"{text}; paper: {formula}")


def _for_frobenius(
    maps: TrialMaps, first: FittedMap, rows: DataRows, eps: float, streams: RandomStreams
) -> tuple[int | None, int, str]:
    """Return the measured size for these rows, the predicted one, and how they were found."""
    chosen = streams.permutation("trial", rows.count)[:_TRIAL_ROWS]
    sample = RowSample(rows.take(chosen), np.ones(len(chosen)))
    error = PairErrors.measure(first, sample).covering(_CONFIDENCE).value
    sizes, size = maps.sizes, maps.first_size
    predicted = max(math.ceil(size * (error / eps) ** 2), sizes[0])
    formula = f"predicted: {size} (error / eps)² with the error {error:.3g} measured there"
    try:
        if rows is maps.rows:
            where = "the rows that maps were fitted to"
            measured, certificate = grown_for(maps.draw, rows, eps, streams, sizes=sizes)
        else:
            where = "rows that maps were not fitted to"
            measured, certificate = grown_size(maps.draw, rows.given, eps, streams, sizes=sizes)
    except OutOfReachError as failure:
        return None, predicted, f"measured: {failure}; {formula}"
    text = (
        f"measured: relative error over all entries {certificate.whole} and over pairs of "
        f"different rows {certificate.frobenius} on {where}"
    )
    return measured, predicted, f"{text}; {formula}"


def _for_spectrum(
    maps: TrialMaps,
    first: FittedMap,
    eps: float,
    streams: RandomStreams,
    alpha: float,
    confidence: float,
) -> tuple[int | None, int, str]:
    """Return the measured size for the maps' rows, the predicted one, and how they were found."""
    dimension = statistical_dimension(
        first.kernel_, maps.rows.given, alpha, confidence=confidence, random_state=streams.seed
    )
    smallest, largest = maps.sizes[0], min(maps.sizes[1], _LARGEST_SPECTRAL)
    # Marchenko and Pastur's law for independent features: eps = 2 √(s / m) + s / m.
    predicted = max(math.ceil(dimension.value / (math.sqrt(1.0 + eps) - 1.0) ** 2), smallest)
    formula = (
        f"predicted: m with 2 √(s / m) + s / m = eps for the statistical dimension "
        f"s = {dimension.value:.4g}"
    )

    def bound(size: int) -> float:
        found = spectral_error(
            maps.draw(size),
            maps.rows,
            alpha,
            streams.child(f"spectral/{size}"),
            confidence=confidence,
            products=_PRODUCTS,
            n_jobs=None,
        )
        return found.eps.high

    # The law is not that of landmarks, of which as many as rows leave no error.
    if predicted > _HOPELESS * largest and not maps.has_landmarks:
        return None, predicted, f"measured: nothing, as {predicted} are far too many; {formula}"
    start = math.ceil(dimension.value) if maps.has_landmarks else predicted
    try:
        measured = smallest_size(bound, eps, (smallest, largest), first=start)
    except OutOfReachError as failure:
        return None, predicted, f"measured: {failure}; {formula}"
    return measured, predicted, f"measured: spectral error of at most {eps:g}; {formula}"
