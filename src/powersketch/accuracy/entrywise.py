"""Errors of single entries of Z Zᵀ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.accuracy.data_rows import Float64
from powersketch.accuracy.independent_pairs import IndependentPairs
from powersketch.accuracy.intervals import Interval
from powersketch.accuracy.sampled_pairs import PairErrors


@dataclass(frozen=True)
class EntrywiseError:
    """Errors |⟨z(x), z(y)⟩ − k(x, y)| of pairs of different rows.

    Parameters
    ----------
    root_mean_square : Interval
        Of all pairs, relative to `unit`.
    largest : float
        The largest error of the pairs looked at, relative to `unit`.
    exceeding_share : float
        At most this share of all pairs has a larger error; 0 where all pairs were looked at. No
        sample can bound the largest error of all pairs.
    unit : float
        The root mean square of k(x, x).
    """

    root_mean_square: Interval
    largest: float
    exceeding_share: float
    unit: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "root_mean_square": self.root_mean_square.to_dict(),
            "largest": self.largest,
            "exceeding_share": self.exceeding_share,
            "unit": self.unit,
        }


def entrywise_error(
    errors: PairErrors, pairs: IndependentPairs, diagonal: Float64, confidence: float
) -> EntrywiseError:
    """Return the errors of single entries: of all pairs, or what a sample tells about them."""
    scale = float(diagonal.max()) or 1.0
    unit = scale * math.sqrt(float(np.mean((diagonal / scale) ** 2))) or 1.0
    error = errors.root_mean_square(confidence)
    relative = Interval(error.value / unit, error.low / unit, error.high / unit)
    if errors.sample.complete:
        largest = errors.scale * float(np.max(np.abs(errors.errors)))
        return EntrywiseError(relative, largest / unit, 0.0, unit)
    share = pairs.exceeding_share(confidence)
    return EntrywiseError(relative, pairs.largest_error() / unit, share, unit)
