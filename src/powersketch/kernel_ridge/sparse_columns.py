"""Ridge regression on features and very many sparse columns, which are never made dense."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Rows, Vector
from powersketch.kernel_ridge.features import Features, feature_blocks
from powersketch.kernel_ridge.path import LeftOut, descend
from powersketch.kernel_ridge.statistics import RidgeSolution
from powersketch.kernel_ridge.training_rows import TrainingRows
from powersketch.linalg import SymmetricOperator, conjugate_gradients, warn_if_not_converged
from powersketch.random_streams import RandomStreams

MOST_DENSE_COLUMNS = 4096
"""Sparse rows of more columns are not made dense for a linear part."""

# Features of the map beside the columns are stored in float32, in at most this many bytes.
STORED_BYTES = 2 << 30
# One row in ten is held out where alpha is chosen: rows cannot be left out one at a time.
_HELD_OUT = 10
_MOST_HELD_OUT = 10_000
_SMALLEST_SHARE, _USUAL_SHARE = 1e-9, 1e-4  # of the trace, for the least alpha and the first
_TOLERANCE_OF_TRIES = 1e-3


@dataclass(frozen=True, eq=False)
class WideRows:
    """Rows of features Z and of sparse columns side by side, about their means."""

    Z: Real
    X: Rows
    factor: float
    weights: Vector
    mean: Vector

    @classmethod
    def of(cls, features: Features, rows: TrainingRows, *, fit_intercept: bool) -> WideRows:
        """Compute the features of all rows."""
        weights = np.ones(rows.count) if rows.weights is None else rows.weights
        parts: list[Any] = [np.empty((rows.count, 0), np.float32)]
        if features.feature_map is not None:
            plain = Features(features.feature_map)
            parts = [Z.astype(np.float32) for Z, _, _ in feature_blocks(plain, rows)]
        Z, factor = np.concatenate(parts), math.sqrt(features.weight)
        mean = np.zeros(Z.shape[1] + rows.X.shape[1])
        if fit_intercept:
            shares = weights / weights.sum()
            mean = np.concatenate((shares @ Z, factor * (rows.X.T @ shares)))
        return cls(Z, rows.X, factor, weights, mean)

    @property
    def features(self) -> int:
        """Number of features beside the columns."""
        return int(self.Z.shape[1])

    def product(self, coef: Float64) -> Float64:
        """Return the centred rows times coefficients."""
        of_map = self.Z @ coef[: self.features].astype(np.float32)
        of_columns = self.X @ (self.factor * coef[self.features :])
        return np.asarray(of_map + of_columns - self.mean @ coef)

    def transposed_product(self, values: Float64) -> Float64:
        """Return the transposed centred rows times values, by the weights of the rows."""
        weighted = self.weights[:, np.newaxis] * values
        of_map = self.Z.T @ weighted.astype(np.float32)
        of_columns = self.factor * (self.X.T @ weighted)
        total = np.concatenate((of_map, of_columns))
        return np.asarray(total - np.multiply.outer(self.mean, weighted.sum(axis=0)))

    def squares(self) -> Vector:
        """Return the sums of squares of the columns, without the features."""
        return np.asarray(self.factor**2 * (self.X.multiply(self.X).T @ self.weights))

    def gram(self) -> Float64:
        """Return the Gram matrix of the features, without the columns."""
        roots = np.sqrt(self.weights).astype(np.float32)
        centred = (self.Z - self.mean[: self.features].astype(np.float32)) * roots[:, np.newaxis]
        return np.asarray(centred.T @ centred, dtype=np.float64)


class _NormalMatrix(SymmetricOperator):
    """ΦᵀWΦ + alpha I for centred rows Φ."""

    def __init__(self, rows: WideRows, alpha: float) -> None:
        super().__init__(rows.mean.size)
        self._rows, self._alpha = rows, alpha
        self.rounding = float(np.finfo(np.float32 if rows.features else np.float64).eps)

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"normal equations of {self.shape[0]} features and columns"

    def _matmat(self, V: Any) -> Any:
        return self._rows.transposed_product(self._rows.product(V)) + self._alpha * V


def sparse_solution(
    features: Features,
    rows: TrainingRows,
    alpha: float | str,
    alphas: Vector | None,
    *,
    fit_intercept: bool,
    tol: float,
    seed: int,
) -> tuple[RidgeSolution, LeftOut]:
    """Solve by conjugate gradients, with the alpha that is best at rows held out, if it is chosen.

    What these rows were predicted to be without them is returned as well.
    """
    held = min(max(rows.count // _HELD_OUT, 1), _MOST_HELD_OUT)
    order = RandomStreams(seed, "kernel-ridge/held-out").permutation("rows", rows.count)
    others, some = rows[np.sort(order[held:])], rows[np.sort(order[:held])]
    wide = WideRows.of(features, others, fit_intercept=fit_intercept)
    tried: dict[float, tuple[float, Float64]] = {}
    targets = some.targets.reshape(held, -1)
    weights = np.ones(held) if some.weights is None else some.weights

    def score(value: float) -> float:
        start = min(tried.values(), key=lambda one: one[0])[1] if tried else None
        coef, intercept = _solved(wide, others, value, _TOLERANCE_OF_TRIES, start)
        errors = targets - features.product(some.X, coef.T) - intercept
        tried[value] = float(weights @ np.mean(errors**2, axis=1) / weights.sum()), coef
        return tried[value][0]

    if not isinstance(alpha, str):
        score(alpha)
    elif alphas is not None:
        for value in alphas[::-1].tolist():
            score(value)
    else:
        trace = float(wide.squares().sum() + np.trace(wide.gram())) or 1.0
        descend(score, _USUAL_SHARE * trace, _SMALLEST_SHARE * trace)
    best = min(tried, key=lambda value: tried[value][0])
    coef, intercept = _solved(wide, others, best, _TOLERANCE_OF_TRIES, tried[best][1])
    left_out = LeftOut(
        features.product(some.X, coef.T) + intercept, targets, np.ones(held), weights
    )
    whole = WideRows.of(features, rows, fit_intercept=fit_intercept)
    coef, intercept = _solved(whole, rows, best, tol, coef)
    shape = rows.targets.shape[1:]
    path: dict[str, Any] = {}
    if isinstance(alpha, str):
        values = sorted(tried)
        path = {"alphas": np.array(values), "scores": np.array([tried[v][0] for v in values])}
    solution = RidgeSolution(
        np.ascontiguousarray(coef.T.reshape((*shape, -1))),
        intercept.reshape(shape),
        best,
        fit_intercept,
        **path,
    )
    return solution, left_out


def _solved(
    wide: WideRows, rows: TrainingRows, alpha: float, tol: float, start: Float64 | None
) -> tuple[Float64, Vector]:
    """Return coefficients of shape (m + d, t) and intercepts.

    The preconditioner is the inverse of the features' Gram matrix and of the diagonal of the
    columns' one.
    """
    targets = rows.targets.reshape(rows.count, -1)
    centred = targets
    mean = np.zeros(targets.shape[1])
    if wide.mean.any():
        mean = np.average(targets, axis=0, weights=wide.weights)
        centred = targets - mean
    diagonal = (wide.squares() + alpha)[:, np.newaxis]
    size = wide.features
    factor = linalg.cho_factor(wide.gram() + alpha * np.eye(size)) if size else None

    def inverse(V: Float64) -> Float64:
        of_map = V[:size] if factor is None else linalg.cho_solve(factor, V[:size])
        return np.concatenate((of_map, V[size:] / diagonal))

    result = conjugate_gradients(
        _NormalMatrix(wide, alpha),
        wide.transposed_product(centred),
        preconditioner=inverse,
        tol=tol,
        x0=start,
    )
    warn_if_not_converged(result)
    return result.x, np.asarray(mean - wide.mean @ result.x)
