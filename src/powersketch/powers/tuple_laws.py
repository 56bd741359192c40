"""Probability laws of index tuples, from which monomials of a power are drawn.

A law draws tuples I = (i₁, …, i_q) of coordinates and tells the probability of any tuple. With the
probability that was really used, 1 / p_I makes every sample unbiased, however good the law is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.powers.scaled_numbers import Scaled
from powersketch.powers.stratified_draws import sum_of_scaled
from powersketch.random_streams import RandomStreams

Tuples: TypeAlias = NDArray[np.int32]


class TupleLaw(Protocol):
    """A probability law on all tuples of one length."""

    def draw(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw tuples, each by the law; stratified, so not independent of each other."""

    def probability(self, tuples: Tuples) -> Scaled:
        """Return the probability of every tuple."""


@dataclass(frozen=True, eq=False)
class MixedLaw:
    """A fixed share of the draws by one law, the rest by another."""

    first: TupleLaw
    second: TupleLaw
    share: float  # of the second

    def draw(self, streams: RandomStreams, count: int) -> tuple[Tuples, Scaled]:
        """Draw tuples in random order, and tell by which probabilities.

        These are those of the mixture with the shares that the draws really have. Then the draws'
        inverse probabilities are unbiased in sum, and the order makes them exchangeable.
        """
        tuples = self.draw_only(streams, count)
        return tuples, self.probability(tuples, self._of_second(count) / count)

    def draw_only(self, streams: RandomStreams, count: int) -> Tuples:
        """Draw the same tuples."""
        of_second = self._of_second(count)
        parts = [
            law.draw(streams.child(name), part)
            for law, name, part in (
                (self.first, "first", count - of_second),
                (self.second, "second", of_second),
            )
            if part
        ]
        return np.concatenate(parts)[streams.permutation("order", count)]

    def _of_second(self, count: int) -> int:
        return math.ceil(self.share * count)

    def probability(self, tuples: Tuples, share: float | None = None) -> Scaled:
        """Return the probability of every tuple if that share of the draws is by the second."""
        share = self.share if share is None else share
        parts = [
            Scaled.of(np.array(part)) * law.probability(tuples)
            for law, part in ((self.first, 1.0 - share), (self.second, share))
            if part > 0.0
        ]
        return sum_of_scaled(
            Scaled(
                np.stack([part.mantissa for part in parts]),
                np.stack([part.exponent for part in parts]),
            )
        )
