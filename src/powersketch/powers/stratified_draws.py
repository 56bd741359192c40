"""Draws with given weights, stratified, and sums of numbers of any size, in a fixed order."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.powers.scaled_numbers import Scaled
from powersketch.random_streams import RandomStreams

Float64: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


def stratified_uniforms(streams: RandomStreams, name: str, labels: Indices) -> Float64:
    """Return numbers uniform on [0, 1), spread evenly among those of the same label.

    Of c numbers with one label, each lies in another c-th of the interval, at the same place. Which
    one in which is random, so that each number by itself is uniform.
    """
    ranks = streams.words(f"{name} ranks", len(labels))
    order = np.lexsort((ranks, labels))
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    places = np.empty(len(labels))
    places[order] = np.arange(len(labels)) - starts[labels[order]]
    steps = (streams.words(f"{name} offsets", len(counts)) >> np.uint64(11)).astype(np.float64)
    offsets: Float64 = steps * 2.0**-53
    return (places + offsets[labels]) / counts[labels]


def located(cumulative: Float64, uniforms: Float64) -> Indices:
    """Return the first position whose cumulative weight exceeds the uniform part of the total.

    The cumulative weights lie along the first axis, one column for all uniforms or one for each.
    """
    total = cumulative[-1]
    if cumulative.ndim == 1:
        last = np.searchsorted(cumulative, total, side="left")
        found = np.searchsorted(cumulative, uniforms * total, side="right")
    else:
        last = np.sum(cumulative < total, axis=0)
        found = np.sum(cumulative <= uniforms * total, axis=0)
    # A uniform number next to one may be rounded up to the total.
    positions: Indices = np.minimum(found, last)
    return positions


def sum_of_scaled(numbers: Scaled) -> Scaled:
    """Add numbers that are not negative along the first axis, in their order."""
    exponents = np.where(numbers.mantissa > 0.0, numbers.exponent, np.iinfo(np.int32).min)
    largest = exponents.max(axis=0)
    distance = np.maximum(exponents - largest, -2000).astype(np.int32)
    total = np.cumsum(np.ldexp(numbers.mantissa, distance), axis=0)[-1]
    return Scaled(total, np.where(total > 0.0, largest, 0)).normalised()


def concatenated(blocks: list[Scaled]) -> Scaled:
    """Return one number after the other."""
    return Scaled(
        np.concatenate([block.mantissa for block in blocks]),
        np.concatenate([block.exponent for block in blocks]),
    )
