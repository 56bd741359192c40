"""Drawn tuples of coordinates, those of the same monomial merged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Rows, is_sparse
from powersketch.powers.sampled_monomials import SampledMonomials
from powersketch.powers.scaled_numbers import Scaled

Float64: TypeAlias = NDArray[np.float64]
Tuples: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class AdaptiveTuples:
    """Distinct monomials, and the weights with which they stand for all of them.

    Attributes
    ----------
    tuples : ndarray of int32 of shape (size, degree)
        The coordinates of each monomial, ascending.
    squared_weights : Scaled
        Σ 1 / (S p_I) over the draws I of each monomial: E Σ_j w_j² φ_j φ_jᵀ = K.
    draws : int
        S, how many tuples were drawn.
    """

    tuples: Tuples
    squared_weights: Scaled
    draws: int

    @property
    def log_probabilities(self) -> Float64:
        """The logarithms of 1 / (S w²): of p_I itself where a monomial was drawn once."""
        logarithms: Float64 = -(
            np.log(self.squared_weights.mantissa)
            + math.log(2.0) * self.squared_weights.exponent
            + math.log(self.draws)
        )
        return logarithms

    def features(self, X: Rows) -> Float64:
        """Return w_j Π_k x[i_k] of every row, in double precision.

        Parameters
        ----------
        X : ndarray or CSR of shape (n, d)
            Any rows.

        Returns
        -------
        ndarray of shape (n, size)
        """
        monomials = SampledMonomials.of(self.tuples, self.squared_weights)
        columns = X[:, monomials.coordinates].astype(np.float64)
        dense = columns.toarray() if is_sparse(columns) else columns
        values, exponents = monomials.values(dense)
        features: Float64 = Scaled(values, exponents[:, None]).to_float()
        return features


def merged_tuples(tuples: Tuples, probabilities: Scaled, size: int) -> AdaptiveTuples:
    """Merge the draws before the one that brings the (size + 1)-st monomial.

    A monomial drawn again gets the sum of the squared weights 1 / (S p_I). Which S it is treats the
    S draws alike: given S, each of exchangeable draws is as likely to be at any place before the
    end, so that their mean has the expectation of the first draw's 1 / p_I, which is unbiased.
    """
    ordered = np.sort(tuples, axis=1)
    monomials, first, labels = np.unique(ordered, axis=0, return_index=True, return_inverse=True)
    arrival = np.sort(first)
    draws = len(tuples) if len(arrival) <= size else int(arrival[size])
    kept = np.flatnonzero(first < draws)
    position = np.full(len(monomials), -1)
    position[kept] = np.arange(len(kept))
    labels = position[labels.reshape(-1)[:draws]]
    inverse = Scaled(probabilities.mantissa[:draws], probabilities.exponent[:draws]).inverse()
    weights = _sums_by_label(inverse, labels, len(kept)) * Scaled.of(np.array(1.0 / draws))
    return AdaptiveTuples(monomials[kept], weights.normalised(), draws)


def _sums_by_label(numbers: Scaled, labels: NDArray[np.int64], count: int) -> Scaled:
    """Add positive numbers of the same label in their order."""
    largest = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(largest, labels, numbers.exponent)
    distance = np.maximum(numbers.exponent - largest[labels], -2000).astype(np.int32)
    total = np.zeros(count)
    np.add.at(total, labels, np.ldexp(numbers.mantissa, distance))
    return Scaled(total, largest).normalised()
