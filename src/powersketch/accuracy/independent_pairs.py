"""Independent random pairs of rows: what they say about the largest error, and what they show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch.accuracy.data_rows import DataRows, FittedMap, Float64
from powersketch.accuracy.sampled_pairs import PairErrors
from powersketch.random_streams import RandomStreams

_PAIRS = 4096
# The kernel gives matrices only, of which the diagonals are wanted: larger ones are a waste, and
# smaller ones take as long, for every call costs something too.
_BLOCK_PAIRS = 256


@dataclass(frozen=True, eq=False)
class IndependentPairs:
    """The kernel and its approximation for pairs of different rows, drawn independently."""

    exact: Float64
    approximate: Float64

    @classmethod
    def measure(cls, sketch: FittedMap, rows: DataRows, streams: RandomStreams) -> IndependentPairs:
        """Draw pairs of these rows and compute both values for each."""
        left, right = _drawn(rows.count, streams)
        exact, approximate = np.empty(len(left)), np.empty(len(left))
        for start in range(0, len(left), _BLOCK_PAIRS):
            part = slice(start, start + _BLOCK_PAIRS)
            one, other = rows.take(left[part]), rows.take(right[part])
            exact[part] = sketch.kernel_(one.matrix, other.matrix, dtype=np.float64).diagonal()
            features, others = one.features(sketch), other.features(sketch)
            approximate[part] = np.einsum("ij,ij->i", features, others)
        return cls(exact, approximate)

    @classmethod
    def among(cls, errors: PairErrors, streams: RandomStreams) -> IndependentPairs:
        """Draw pairs of rows of which all pairs are known.

        Where the rows are a random sample themselves, only pairs without common rows are
        independent.
        """
        sample = errors.sample
        left, right = (_disjoint if sample.for_new_rows else _drawn)(sample.rows.count, streams)
        exact = errors.scale * errors.exact[left, right]
        return cls(exact, exact + errors.scale * errors.errors[left, right])

    def largest_error(self) -> float:
        """Return the largest error of these pairs."""
        return float(np.max(np.abs(self.approximate - self.exact)))

    def exceeding_share(self, confidence: float) -> float:
        """Return the share of all pairs that may have a larger error than these.

        If a share q of all pairs had, N independent pairs would all miss them with probability
        (1 − q)^N.
        """
        return float(-np.expm1(np.log1p(-confidence) / len(self.exact)))


def _drawn(count: int, streams: RandomStreams) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows on the left and on the right, which differ from each other."""
    left = streams.integers("left", _PAIRS, count)
    right = streams.integers("right", _PAIRS, count - 1)
    return left, right + (right >= left)


def _disjoint(count: int, streams: RandomStreams) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = streams.permutation("pairs", count)[: 2 * min(_PAIRS, count // 2)]
    return order[0::2], order[1::2]
