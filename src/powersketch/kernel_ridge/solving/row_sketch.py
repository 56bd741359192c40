"""Kernel ridge regression on a sketch of the rows, sized by the statistical dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from powersketch import routines
from powersketch.accuracy import statistical_dimension
from powersketch.arrays import Float64, Real, Vector
from powersketch.exceptions import InputError, warn_user
from powersketch.execution import Progress, interruptible, thread_count
from powersketch.kernel_ridge.solving.dual import DualSystem
from powersketch.kernel_ridge.solving.features import Features, feature_blocks
from powersketch.kernel_ridge.solving.statistics import RidgeSolution
from powersketch.linalg import CholeskyFactor, conjugate_gradients, dominant_rows_message
from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT
from powersketch.storable import storable

# Measured on five data sets with s from 3 to 65: at least 99 of 100 sketches keep to 1 + eps.
_MARGIN, _SPREAD = 1.25, 4.0
# Steps of the solver per look at the lower bound, and looks.
_STEPS, _LOOKS = 5, 8


class CoarseSketchWarning(UserWarning):
    """The features are too coarse for this alpha: the solution is further from the best one."""


@storable
@dataclass(frozen=True, eq=False)
class RowSketchReport:
    """What is known of a solution by a row sketch.

    Attributes
    ----------
    rows : int
        Number of rows of the sketch; all rows of the data mean that none was necessary.
    statistical_dimension : float
        The upper estimate of that of the features, which sized it.
    objective_ratio : float
        The objective with the exact kernel, at most so many times its minimum.
    """

    rows: int
    statistical_dimension: float
    objective_ratio: float


def row_sketch_solution(
    system: DualSystem, features: Features, *, fit_intercept: bool, eps: float, verbose: int
) -> tuple[RidgeSolution, RowSketchReport]:
    """Return coefficients and intercept, and how near to the best ones they are."""
    rows = system.rows
    _refuse_dominant_rows(system)
    targets = rows.targets
    intercept = np.zeros(targets.shape[1:])
    if fit_intercept:
        intercept = np.asarray(np.average(targets, axis=0, weights=rows.weights))
    right = (targets - intercept).reshape(rows.count, -1)
    # With rows scaled by the roots of their weights, the problem is one without weights.
    roots = np.ones(rows.count) if rows.weights is None else np.sqrt(rows.weights)
    columns = _feature_columns(features, system, roots, verbose)
    dimension = statistical_dimension(columns.T, alpha=system.alpha, random_state=system.seed).high
    count = min(sketched_rows(dimension, eps), rows.count)
    scaled = np.ascontiguousarray((right * roots[:, np.newaxis]).T)
    coef = roots[:, np.newaxis] * _sketched_solution(system, columns, scaled, count)
    ratio = _objective_ratio(system, coef, right, eps)
    if ratio > 1.0 + eps:
        _warn_of_coarse_features(system, ratio, eps)
    solution = RidgeSolution(coef.reshape(targets.shape), intercept, system.alpha, fit_intercept)
    return solution, RowSketchReport(count, dimension, ratio)


def _refuse_dominant_rows(system: DualSystem) -> None:
    """Name the rows beside which alpha is nothing, where the sketch could only name alpha."""
    cause = dominant_rows_message(system.kernel.diagonal(system.rows.X), system.rows.numbers)
    if cause is not None:
        raise InputError(f"features='row-sketch' cannot be used: {cause}.")


def sketched_rows(dimension: float, eps: float) -> int:
    """Return the number of rows of S for an objective within 1 + eps of the least one.

    Lemma E.3 of [SWYZ21] asks for Ω((s + log 1/ε) log(s/ε) / ε), s the statistical dimension. Where
    s directions count fully and the others not at all, m rows give 1 + s / (m − s) in the mean:
    the least m with a margin of a quarter. The summand covers the spread of small sketches.
    """
    return math.ceil((1.0 + _MARGIN / eps) * (dimension + _SPREAD - min(math.log(eps), 0.0)))


def _sketched_solution(system: DualSystem, columns: Real, right: Float64, count: int) -> Float64:
    """Return the x that minimises ‖S(Z Zᵀ x − y)‖² + alpha ‖Zᵀ x‖², for Zᵀ and yᵀ."""
    if count == columns.shape[1]:
        return _small_system(columns, right, system.alpha)
    threads = thread_count(system.n_jobs)
    sketch = SRHT.draw(RandomStreams(system.seed, "row-sketch"), columns.shape[1], count)
    solution = _small_system(
        sketch.apply(columns, threads=threads), sketch.apply(right, threads=threads), system.alpha
    )
    # With β = (SZ)ᵀ u = Zᵀ(Sᵀ u), the dual vector is Sᵀ u: no system Zᵀ x = β has to be solved.
    return _transposed_product(sketch, solution, threads)


def _feature_columns(features: Features, system: DualSystem, roots: Vector, verbose: int) -> Real:
    """Return Zᵀ, a row for every feature, as S works along the rows of an array."""
    rows = system.rows
    progress = Progress("row sketch", rows.count, verbose)
    columns, start = np.empty((0, rows.count)), 0
    for Z, _, _ in feature_blocks(features, rows, progress=progress):
        if not start:
            columns = np.empty((Z.shape[1], rows.count), Z.dtype)
        part = slice(start, start + Z.shape[0])
        columns[:, part] = Z.T * roots[part]
        start = part.stop
    return columns


def _small_system(columns: Real, right: Real, alpha: float) -> Float64:
    """Return (A Aᵀ + alpha I)⁻¹ b for Aᵀ and bᵀ."""
    A = columns.astype(np.float64, copy=False)
    factor = CholeskyFactor(interruptible(lambda: A.T @ A), alpha=alpha)
    solution: Float64 = factor @ right.T.astype(np.float64)
    return solution


def _transposed_product(sketch: SRHT, vectors: Float64, threads: int) -> Float64:
    """Return Sᵀ V: H and D are symmetric, and P puts samples back where they came from."""
    spec = sketch.spec
    # Fewer samples than rows are all distinct.
    sampled = np.zeros((vectors.shape[1], spec.padded))
    sampled[:, spec.indices] = spec.scale * vectors.T
    mixed = routines.fwht(sampled, spec.padded, threads=threads)[:, : sketch.columns]
    return np.ascontiguousarray((mixed * spec.signs).T)


def _objective_ratio(system: DualSystem, coef: Float64, right: Float64, eps: float) -> float:
    """Return an upper bound of the objective of the coefficients relative to its minimum.

    The minimum is alpha yᵀA⁻¹y with A = K + alpha W⁻¹, which is at least
    alpha (2⟨u, y⟩ − ⟨u, A u⟩) for every u. A few steps towards A⁻¹y make that a tight bound; they
    end as soon as it shows the ratio to be good.
    """
    operator = system.operator()
    weights = np.ones(len(right)) if system.rows.weights is None else system.rows.weights
    shifted = operator.exact_product(coef)
    penalties = system.alpha * coef / weights[:, np.newaxis]
    predictions = shifted - penalties
    objective = float(
        np.sum(weights[:, np.newaxis] * (predictions - right) ** 2)
        + system.alpha * np.sum(coef * predictions)
    )
    if not right.any():
        return 1.0
    best = _dual_bound(system.alpha, coef, shifted, right)
    preconditioner = None
    for _ in range(_LOOKS):
        if 0.0 < objective <= (1.0 + eps) * best:
            break
        preconditioner = preconditioner or system.preconditioner()
        coef = conjugate_gradients(
            operator, right, preconditioner=preconditioner, x0=coef, max_iterations=_STEPS
        ).x
        best = max(best, _dual_bound(system.alpha, coef, operator.exact_product(coef), right))
    return objective / best if best > 0.0 else math.inf


def _dual_bound(
    alpha: float,
    vectors: Float64,
    products: Float64,
    right: Float64,
) -> float:
    return alpha * float(2.0 * np.sum(vectors * right) - np.sum(vectors * products))


def _warn_of_coarse_features(system: DualSystem, ratio: float, eps: float) -> None:
    warn_user(
        f"the objective is up to {ratio:.3g} times its minimum, more than 1 + eps = "
        f"{1.0 + eps:.3g}: the features are too coarse for alpha={system.alpha:.3g} (or, rarely, "
        "the sketch of the rows was unlucky). Use more components, a larger alpha or "
        "features='exact'.",
        CoarseSketchWarning,
    )
