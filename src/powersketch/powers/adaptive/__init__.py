"""Monomials of a power, drawn by ridge leverage scores ([WZ20], [WZ22])."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from powersketch import routines
from powersketch.arrays import Float64, Rows, is_sparse
from powersketch.exceptions import InputError
from powersketch.powers.adaptive.factors import (
    MOST_HALVINGS,
    SketchedInverse,
    SketchedPowers,
    exact_factors,
    sketched_factors,
)
from powersketch.powers.adaptive.laws import Indices, LeverageLaw, MixedLaw, RowLaw, Tuples
from powersketch.powers.monomials import SampledMonomials
from powersketch.powers.scaled_numbers import Scaled
from powersketch.random_streams import RandomStreams

_ROW_SHARE = 0.05  # of the draws by norms alone: no tuple's probability is far too small
_PROBES = 48
_OVERSAMPLING = 4.0  # draws for each dimension and unit of log n
_FEWEST_DRAWS = 64
_MOST_DRAWS = 16  # for each monomial asked for
_TRIALS = 4
_ENOUGH = 0.97  # of the monomials asked for
_HIGHEST_SCORED = 128  # beyond, hardly any two rows share a monomial that counts
_AFFORDABLE = 1e10  # multiplications: a few seconds


@dataclass(frozen=True, eq=False, repr=False)
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

    def features(self, X: Rows) -> Float64:
        """Return w_j Π_k x[i_k] of every row and monomial, in double precision."""
        monomials = SampledMonomials.of(self.tuples, self.squared_weights)
        columns = X[:, monomials.coordinates].astype(np.float64)
        dense = columns.toarray() if is_sparse(columns) else columns
        values, exponents = monomials.values(dense)
        return Scaled(values, exponents[:, None]).to_float()


def adaptive_tuples(X: Rows, degree: int, size: int, streams: RandomStreams) -> AdaptiveTuples:
    """Draw monomials of x^⊗degree by their ridge leverage scores on the given rows.

    The features of Φ = X^⊗degree are drawn with probabilities p_I near τ_I / s_λ,
    τ_I = φ_Iᵀ (K + λI)⁻¹ φ_I [WZ20], one coordinate of I after the other; 5 % of the draws are by
    the norms of Φ's features instead, and make every tuple possible. The ridge λ halves the trace
    of K until the statistical dimension s_λ exceeds size / (4 ln n), or half the number of rows.

    Tuples of the same monomial are merged: their squared weights add up. More tuples than `size`
    are drawn to make up for it, and S of them count, those before the one that brings the
    (size + 1)-st monomial. The sample is still unbiased: E Z Zᵀ = K, also for rows that are not
    among the given ones. There can be fewer monomials than `size`: a few, as the number of draws
    that are likely to suffice is estimated, or many if 16 · size draws bring no more.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        Finite rows.
    degree : int
        At least 1.
    size : int
        The number of monomials, at least 1.
    streams : RandomStreams
        Where the random numbers come from.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.powers.adaptive import adaptive_tuples
    >>> from powersketch.random_streams import RandomStreams
    >>> X = np.random.RandomState(0).rand(20, 30)
    >>> drawn = adaptive_tuples(X, 3, 500, RandomStreams(0))
    >>> drawn.draws, len(drawn.tuples)
    (519, 497)
    >>> Z, K = drawn.features(X), (X @ X.T) ** 3
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.1 * np.linalg.norm(K))
    True
    """
    law = tuple_law(X, degree, size, streams.child("law"))
    return drawn_tuples(law, size, streams.child("draws"))


def tuple_law(
    X: Rows, degree: int, size: int, streams: RandomStreams, draw: str = "auto"
) -> MixedLaw:
    """Return the law by which :func:`adaptive_tuples` draws.

    "exact" forms K and takes O(n²d) for each coordinate of each tuple. "sketched" takes O(nnz(X)):
    it halves λ round by round, and every round's features estimate the scores of the next. "rows"
    takes no scores: p_I is in proportion to ‖φ_I‖². "auto" takes the first that is affordable.
    """
    rows, dimension = _prepared(_double_rows(X), size)
    by_norms = RowLaw.by_norms(rows, degree)
    if draw == "auto":
        draw = affordable_draw(rows, degree, size)
    if draw == "rows":
        return MixedLaw(by_norms, by_norms, 1.0)
    if draw == "exact":
        scores = LeverageLaw.of(rows, exact_factors(rows, degree, dimension))
        return MixedLaw(scores, by_norms, _ROW_SHARE)
    return _halved(rows, size, dimension, by_norms, streams)


def drawn_tuples(law: MixedLaw, size: int, streams: RandomStreams) -> AdaptiveTuples:
    """Draw as many tuples as are likely to bring `size` monomials, by the results of trials.

    The trials are independent of the draws that are kept, whose number must not depend on them but
    by the rule of :func:`merged_tuples`.
    """
    count, limit = size, _MOST_DRAWS * size
    for trial in range(_TRIALS):
        if count >= limit:
            break
        tuples = law.draw(streams.child(f"trial {trial}"), count)
        distinct = len(np.unique(np.sort(tuples, axis=1), axis=0))
        if distinct >= _ENOUGH * size:
            break
        count = min(math.ceil(count * size / distinct), limit)
    return merged_tuples(*law.draw_with_probabilities(streams.child("final"), count), size)


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
    sums = _sums_by_label(probabilities[:draws].inverse(), labels, len(kept))
    weights = sums * Scaled.of(np.array(1.0 / draws))
    return AdaptiveTuples(monomials[kept], weights.normalised(), draws)


def _sums_by_label(numbers: Scaled, labels: Indices, count: int) -> Scaled:
    """Add positive numbers of the same label in their order."""
    largest = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(largest, labels, numbers.exponent)
    distance = np.maximum(numbers.exponent - largest[labels], -2000).astype(np.int32)
    total = np.zeros(count)
    np.add.at(total, labels, np.ldexp(numbers.mantissa, distance))
    return Scaled(total, largest).normalised()


def affordable_draw(X: Rows, degree: int, size: int) -> str:
    """Return the best way to draw `size` tuples that takes a few seconds at most."""
    if degree > _HIGHEST_SCORED:
        return "rows"
    # Two batches of draws, each for as many beginnings of tuples as there can be.
    columns = X.shape[1]
    beginnings = sum(min(size, math.comb(columns + k - 1, k)) for k in range(1, degree))
    work = 2.0 * (beginnings + 1) * _non_zeros(X)
    if work * X.shape[0] + degree * X.shape[0] ** 3 <= _AFFORDABLE:
        return "exact"
    return "sketched" if 1.5 * work * _PROBES <= _AFFORDABLE else "rows"


def _double_rows(X: Rows) -> Rows:
    """Return the rows in double precision, in the order that the routines want."""
    if not is_sparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    rows = sp.csr_array(X, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _prepared(X: Rows, size: int) -> tuple[Rows, float]:
    """Return the rows other than zero, divided by the norm of the longest, and s_λ to reach."""
    squares = routines.squared_norms(X)
    longest = float(np.max(squares, initial=0.0))
    if not math.isfinite(longest):
        raise InputError(
            f"the largest squared norm of a row of X is {longest}; allowed are finite rows whose "
            "squared norms are finite: remove NaN and infinity, or scale the rows."
        )
    if longest == 0.0:
        # Nothing tells the coordinates apart.
        return np.ones((1, X.shape[1])), 0.5
    rows = _in_best_format(X[squares > 0.0] * (1.0 / math.sqrt(longest)))
    count = rows.shape[0]
    return rows, min(size / (_OVERSAMPLING * max(math.log(count), 1.0)), 0.5 * count)


def _in_best_format(X: Rows) -> Rows:
    """Return sparse rows as CSR and others as an array, whatever they came as."""
    if 2 * _non_zeros(X) > X.shape[0] * X.shape[1]:
        return X.toarray() if is_sparse(X) else X
    rows = sp.csr_array(X)
    rows.eliminate_zeros()
    return rows


def _non_zeros(X: Rows) -> int:
    return int(X.count_nonzero() if is_sparse(X) else np.count_nonzero(X))


def _halved(
    X: Rows, size: int, dimension: float, by_norms: RowLaw, streams: RandomStreams
) -> MixedLaw:
    """Halve λ round by round; the features drawn in one stand for K in the next [WZ20].

    A halved ridge at most doubles every score, so that the last scores serve to draw the next
    features, if a few more of them.
    """
    degree = by_norms.degree
    powers = SketchedPowers.of(streams.child("powers"), X, degree)
    squares = routines.squared_norms(X)
    ridge = float(np.cumsum(Scaled.of(squares).power(degree).to_float())[-1])
    law, reached = MixedLaw(by_norms, by_norms, 1.0), 1.0
    for halving in range(MOST_HALVINGS):
        ridge *= 0.5
        wanted = _OVERSAMPLING * reached * max(math.log(X.shape[0]), 1.0)
        count = min(max(math.ceil(wanted), _FEWEST_DRAWS), max(size, _FEWEST_DRAWS))
        branch = streams.child(f"halving {halving}")
        features = merged_tuples(*law.draw_with_probabilities(branch, count), count).features(X)
        inverse = SketchedInverse.of(features, ridge)
        factors = sketched_factors(branch.child("factors"), powers, inverse, _PROBES)
        law = MixedLaw(LeverageLaw.of(X, factors), by_norms, _ROW_SHARE)
        reached = max(inverse.dimension, 1.0)
        if reached >= dimension:
            break
    return law
