"""How many components are required: measured, predicted, and by the paper's theorems."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from powersketch.accuracy.data_rows import DataRows, FittedMap, kernel_diagonal
from powersketch.accuracy.dimension import statistical_dimension
from powersketch.accuracy.growth import (
    LARGEST_SIZE,
    OutOfReachError,
    grown_size,
    smallest_size,
)
from powersketch.accuracy.intervals import checked_confidence
from powersketch.accuracy.paper_sizes import paper_size
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample
from powersketch.accuracy.spectral import check_alpha_is_felt, spectral_error
from powersketch.parameters import checked_fraction, checked_positive
from powersketch.random_streams import RandomStreams, seed_from

# Larger matrices Z with all rows would take gigabytes.
_LARGEST_SPECTRAL = 2**14
_TRIAL_SIZE, _TRIAL_ROWS = 256, 1000
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
    confidence: float = 0.99,
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
        None means the relative Frobenius error over pairs of different rows, as for
        ``n_components="auto"``. A positive number means the spectral error,
        (1 − eps)(K + αI) ⪯ Z Zᵀ + αI ⪯ (1 + eps)(K + αI) on all rows.
    confidence : float, default=0.99
        Probability with which measured spectral errors are kept.
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
    _check_is_map(sketch)
    eps = checked_fraction("eps", eps, remedy="0.1 is a common choice")
    confidence = checked_confidence(confidence)
    if alpha is not None:
        alpha = checked_positive("alpha", alpha, remedy="pass None for the Frobenius error")
    rows = DataRows.of(X, fewest=2)
    seed = seed_from(random_state)
    draw, largest = _drawer(sketch, X, seed), _largest_size(sketch)
    trial = draw(min(_TRIAL_SIZE, largest))
    if alpha is not None:
        check_alpha_is_felt(alpha, kernel_diagonal(trial.kernel_, rows))
    streams = RandomStreams(seed, "required_components")
    paper, formula = paper_size(trial, rows, eps)
    if alpha is None:
        measured, predicted, text = _for_frobenius(draw, trial, rows, eps, streams, largest)
    else:
        measured, predicted, text = _for_spectrum(
            draw, trial, rows, eps, streams, min(largest, _LARGEST_SPECTRAL), alpha, confidence
        )
    return RequiredComponents(measured, predicted, paper, f"{text}; paper: {formula}")


def _check_is_map(sketch: Any) -> None:
    if not (hasattr(sketch, "get_params") and "n_components" in sketch.get_params()):
        raise TypeError(
            f"sketch is a {type(sketch).__name__}; allowed is a feature map with the parameter "
            "n_components: pass for instance GaussianSketch()."
        )


def _largest_size(sketch: Any) -> int:
    internal = sketch.get_params().get("internal_components")
    return LARGEST_SIZE if internal is None else min(LARGEST_SIZE, internal)


def _drawer(sketch: Any, X: Any, seed: int) -> Callable[[int], FittedMap]:
    """Return a function that fits the map with a given number of components."""

    def draw(size: int) -> FittedMap:
        trial = clone(sketch).set_params(n_components=size, random_state=seed)
        if "eps" in trial.get_params():
            trial.set_params(eps=None)
        fitted: FittedMap = trial.fit(X)
        return fitted

    return draw


def _for_frobenius(
    draw: Callable[[int], FittedMap],
    trial: FittedMap,
    rows: DataRows,
    eps: float,
    streams: RandomStreams,
    largest: int,
) -> tuple[int | None, int, str]:
    chosen = streams.permutation("trial", rows.count)[:_TRIAL_ROWS]
    sample = RowSample(rows.take(chosen), np.ones(len(chosen)))
    error = PairErrors.measure(trial, sample).frobenius(0.99).value
    size = min(_TRIAL_SIZE, largest)
    predicted = max(math.ceil(size * (error / eps) ** 2), 1)
    formula = f"predicted: {size} (error / eps)² with the error {error:.3g} measured there"
    try:
        measured, certificate = grown_size(draw, rows.given, eps, streams, sizes=(1, largest))
    except OutOfReachError as failure:
        return None, predicted, f"measured: {failure}; {formula}"
    return measured, predicted, f"measured: relative error {certificate.frobenius}; {formula}"


def _for_spectrum(
    draw: Callable[[int], FittedMap],
    trial: FittedMap,
    rows: DataRows,
    eps: float,
    streams: RandomStreams,
    largest: int,
    alpha: float,
    confidence: float,
) -> tuple[int | None, int, str]:
    dimension = statistical_dimension(
        trial.kernel_, rows.given, alpha, confidence=confidence, random_state=streams.seed
    )
    # Marchenko and Pastur's law for independent features: eps = 2 √(s / m) + s / m.
    predicted = max(math.ceil(dimension.value / (math.sqrt(1.0 + eps) - 1.0) ** 2), 1)
    formula = (
        f"predicted: m with 2 √(s / m) + s / m = eps for the statistical dimension "
        f"s = {dimension.value:.4g}"
    )

    def bound(size: int) -> float:
        found = spectral_error(
            draw(size),
            rows,
            alpha,
            streams.child(f"spectral/{size}"),
            confidence=confidence,
            products=_PRODUCTS,
            n_jobs=None,
        )
        return found.eps.high

    if predicted > _HOPELESS * largest:
        return None, predicted, f"measured: nothing, as {predicted} are far too many; {formula}"
    try:
        measured = smallest_size(bound, eps, (1, largest), first=predicted)
    except OutOfReachError as failure:
        return None, predicted, f"measured: {failure}; {formula}"
    return measured, predicted, f"measured: spectral error of at most {eps:g}; {formula}"
