"""Monomials of a power, drawn by ridge leverage scores ([WZ20], [WZ22])."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from powersketch import routines
from powersketch.arrays import Rows, is_sparse
from powersketch.exceptions import InputError
from powersketch.parameters import checked_integer, checked_positive, one_of
from powersketch.powers.leverage_factors import (
    MOST_HALVINGS,
    Goal,
    SketchedInverse,
    SketchedPowers,
    exact_factors,
    sketched_factors,
)
from powersketch.powers.leverage_law import LeverageLaw
from powersketch.powers.merged_tuples import AdaptiveTuples, merged_tuples
from powersketch.powers.row_law import RowLaw
from powersketch.powers.scaled_numbers import Scaled
from powersketch.powers.tuple_laws import MixedLaw
from powersketch.random_streams import RandomStreams

DRAWS = ("auto", "exact", "sketched", "rows")
_ROW_SHARE = 0.05  # of the draws by norms alone: no tuple's probability is far too small
_PROBES = 48
_OVERSAMPLING = 4.0  # draws for each dimension and unit of log n
_FEWEST_DRAWS = 64
_MOST_DRAWS = 16  # for each monomial asked for
_TRIALS = 4
_ENOUGH = 0.97  # of the monomials asked for
_HIGHEST_SCORED = 128  # beyond, hardly any two rows share a monomial that counts
_AFFORDABLE = 1e10  # multiplications: a few seconds


def adaptive_tuples(
    X: Rows,
    degree: int,
    size: int,
    streams: RandomStreams,
    *,
    ridge: float | None = None,
    draw: str = "auto",
    most_draws: int | None = None,
) -> AdaptiveTuples:
    """Draw monomials of x^⊗degree by their ridge leverage scores on the given rows.

    The features of Φ = X^⊗degree are drawn with probabilities p_I near τ_I / s_λ,
    τ_I = φ_Iᵀ (K + λI)⁻¹ φ_I [WZ20], one coordinate of I after the other; 5 % of the draws are by
    the norms of Φ's features instead, and make every tuple possible. Tuples of the same monomial
    are merged: their squared weights add up. More tuples than `size` are drawn to make up for it,
    and S of them count, those before the one that brings the (size + 1)-st monomial. The sample
    is unbiased for all that: E Z Zᵀ = K, for rows that are not among the given ones, too.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
        Finite rows.
    degree : int
        At least 1.
    size : int
        The number of monomials, at least 1. There can be a few less, as the number of draws that
        are likely to bring as many is estimated, or many less if `most_draws` brought no more.
    streams : RandomStreams
        Where the random numbers come from.
    ridge : float or None, default=None
        λ > 0, absolute. None halves the trace of K until the statistical dimension s_λ exceeds
        size / (4 ln n), or half the number of rows.
    draw : {"auto", "exact", "sketched", "rows"}, default="auto"
        "exact" forms K and takes O(n²d) for each coordinate of each tuple. "sketched" takes
        O(nnz(X)): it halves λ round by round, and every round's features estimate the scores of the
        next. "rows" takes no scores: p_I is in proportion to ‖φ_I‖². "auto" takes the first that
        is affordable.
    most_draws : int or None, default=None
        At most so many tuples are drawn; None is 16 · size. With `most_draws` = size, the number of
        draws is fixed.

    Returns
    -------
    AdaptiveTuples

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.powers import adaptive_tuples
    >>> from powersketch.random_streams import RandomStreams
    >>> X = np.random.RandomState(0).rand(20, 30)
    >>> drawn = adaptive_tuples(X, 3, 500, RandomStreams(0))
    >>> drawn.draws, len(drawn.tuples)
    (519, 497)
    >>> Z, K = drawn.features(X), (X @ X.T) ** 3
    >>> bool(np.linalg.norm(Z @ Z.T - K) < 0.1 * np.linalg.norm(K))
    True
    """
    degree, size = checked_integer("degree", degree, 1), checked_integer("size", size, 1)
    one_of("draw", draw, DRAWS)
    if ridge is not None:
        ridge = checked_positive("ridge", ridge, remedy="None lets the rows tell")
    limit = _MOST_DRAWS * size
    if most_draws is not None:
        limit = checked_integer("most_draws", most_draws, size, remedy="None is 16 times size")
    law = tuple_law(X, degree, size, streams.child("law"), ridge=ridge, draw=draw)
    return drawn_tuples(law, size, limit, streams.child("draws"))


def tuple_law(
    X: Rows,
    degree: int,
    size: int,
    streams: RandomStreams,
    *,
    ridge: float | None = None,
    draw: str = "auto",
) -> MixedLaw:
    """Return the law by which :func:`adaptive_tuples` draws, of the same parameters."""
    rows, goal = _prepared(_checked_rows(X), degree, size, ridge)
    by_norms = RowLaw.by_norms(rows, degree)
    if draw == "auto":
        draw = affordable_draw(rows, degree, size)
    if draw == "rows":
        return MixedLaw(by_norms, by_norms, 1.0)
    if draw == "exact":
        scores = LeverageLaw.of(rows, exact_factors(rows, degree, goal))
        return MixedLaw(scores, by_norms, _ROW_SHARE)
    return _halved(rows, size, goal, by_norms, streams)


def drawn_tuples(law: MixedLaw, size: int, limit: int, streams: RandomStreams) -> AdaptiveTuples:
    """Draw as many tuples as bring `size` monomials, as trials of their own tell.

    The trials are independent of the draws that are kept: their number must not depend on them but
    by the rule of :func:`merged_tuples`.
    """
    count = size
    for trial in range(_TRIALS):
        if count >= limit:
            break
        tuples = law.draw_only(streams.child(f"trial {trial}"), count)
        distinct = len(np.unique(np.sort(tuples, axis=1), axis=0))
        if distinct >= _ENOUGH * size:
            break
        count = min(math.ceil(count * size / distinct), limit)
    return merged_tuples(*law.draw(streams.child("final"), count), size)


def affordable_draw(X: Rows, degree: int, size: int) -> str:
    """Return the best way to draw so many tuples that takes a few seconds at most."""
    if degree > _HIGHEST_SCORED:
        return "rows"
    # Two batches of draws, each for as many beginnings of tuples as there can be.
    columns = X.shape[1]
    beginnings = sum(min(size, math.comb(columns + k - 1, k)) for k in range(1, degree))
    work = 2.0 * (beginnings + 1) * _non_zeros(X)
    if work * X.shape[0] + degree * X.shape[0] ** 3 <= _AFFORDABLE:
        return "exact"
    return "sketched" if 1.5 * work * _PROBES <= _AFFORDABLE else "rows"


def _checked_rows(X: Rows) -> Rows:
    """Return the rows in double precision, in the order that the kernels want."""
    if X.ndim != 2 or X.shape[1] < 1:
        raise InputError(
            f"X has the shape {X.shape}; it must have two dimensions and at least one column: "
            "reshape it."
        )
    if not is_sparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    rows = sp.csr_array(X, dtype=np.float64)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _prepared(X: Rows, degree: int, size: int, ridge: float | None) -> tuple[Rows, Goal]:
    """Return the rows other than zero, divided by the norm of the longest, and λ in their units."""
    squares = routines.squared_norms(X)
    longest = float(np.max(squares, initial=0.0))
    if not math.isfinite(longest):
        raise InputError(
            f"the largest squared norm of a row of X is {longest}; allowed are finite rows whose "
            "squared norms are finite: remove NaN and infinity, or scale the rows."
        )
    if longest == 0.0:
        # Nothing tells the coordinates apart.
        return np.ones((1, X.shape[1])), Goal(None, 0.5)
    rows = _in_best_format(X[squares > 0.0] * (1.0 / math.sqrt(longest)))
    count = rows.shape[0]
    dimension = min(size / (_OVERSAMPLING * max(math.log(count), 1.0)), 0.5 * count)
    if ridge is None:
        return rows, Goal(None, dimension)
    unit = Scaled.of(np.array(longest)).power(degree)
    scaled = (Scaled.of(np.array(ridge)) * unit.inverse()).to_float()
    return rows, Goal(float(np.clip(scaled, 1e-300, 1e300)), dimension)


def _in_best_format(X: Rows) -> Rows:
    """Return sparse rows as CSR and others as an array, whatever they came as."""
    if 2 * _non_zeros(X) > X.shape[0] * X.shape[1]:
        return X.toarray() if is_sparse(X) else X
    rows = sp.csr_array(X)
    rows.eliminate_zeros()
    return rows


def _non_zeros(X: Rows) -> int:
    return int(X.count_nonzero() if is_sparse(X) else np.count_nonzero(X))


def _halved(X: Rows, size: int, goal: Goal, by_norms: RowLaw, streams: RandomStreams) -> MixedLaw:
    """Halve λ round by round; the features drawn in one stand for K in the next [WZ20].

    A halved ridge at most doubles every score, so that the last scores serve to draw the next
    features, if a few more of them.
    """
    degree = by_norms.degree
    powers = SketchedPowers.of(streams.child("powers"), X, degree)
    squares = routines.squared_norms(X)
    trace = float(np.cumsum(Scaled.of(squares).power(degree).to_float())[-1])
    law, ridge = MixedLaw(by_norms, by_norms, 1.0), trace
    dimension = 1.0
    for halving in range(MOST_HALVINGS):
        ridge = max(0.5 * ridge, goal.ridge or 0.0)
        wanted = _OVERSAMPLING * dimension * max(math.log(X.shape[0]), 1.0)
        count = min(max(math.ceil(wanted), _FEWEST_DRAWS), max(size, _FEWEST_DRAWS))
        own = streams.child(f"halving {halving}")
        features = merged_tuples(*law.draw(own, count), count).features(X)
        inverse = SketchedInverse.of(features, ridge)
        factors = sketched_factors(own.child("factors"), powers, inverse, _PROBES)
        law = MixedLaw(LeverageLaw.of(X, factors), by_norms, _ROW_SHARE)
        dimension = max(inverse.dimension, 1.0)
        reached = dimension >= goal.dimension if goal.ridge is None else ridge == goal.ridge
        if reached:
            break
    return law
