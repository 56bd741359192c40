"""Ridge regression by conjugate gradients on stored rows: many landmarks, or many sparse columns.

A Gram matrix of m features costs n m² operations, a step of the iteration 4 n m for every target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from powersketch.arrays import Float64, Real, Vector, slices
from powersketch.exceptions import InputError
from powersketch.execution import interruptible
from powersketch.kernel_ridge.features import Features, feature_blocks, row_parts
from powersketch.kernel_ridge.path import LeftOut, descend
from powersketch.kernel_ridge.statistics import RidgeSolution
from powersketch.kernel_ridge.training_rows import TrainingRows
from powersketch.linalg import (
    SymmetricOperator,
    cholesky_in_place,
    conjugate_gradients,
    warn_if_not_converged,
)
from powersketch.random_streams import RandomStreams

MOST_DENSE_COLUMNS = 4096
"""Sparse rows of more columns are not made dense for a linear part."""

STORED_BYTES = 4 << 30
"""Features or kernel values are stored in float32, in at most this many bytes."""

JITTER_OF_STORED = 1e-5
"""The jitter of landmarks that keeps rounding errors of values in float32 small in features."""

# One row in ten is held out where alpha is chosen: rows cannot be left out one at a time.
_HELD_OUT = 10
_MOST_HELD_OUT = 8192
_SMALLEST_SHARE, _USUAL_SHARE = 1e-10, 1e-6  # of the trace, for the least alpha and the first
_TOLERANCE_OF_TRIES = 3e-3
# Of what is stored in float32: the residual to aim at, and one that is good enough where the
# precision does not allow that.
_LEAST_RESIDUAL, _GOOD_RESIDUAL = 1e-4, 1e-2
_MOST_STEPS = 2000
_LEAST_WEIGHT = 1e-300
# Of the trace: with a smaller alpha, a preconditioner in float32 might be indefinite.
_SHARE_FOR_FLOAT32 = 3e-7
_RATIOS = (10.0**0.5,)
_FURTHER = 0.1
_TRANSPOSED_ROWS = 4096  # at a time, in products with the transpose


class StoredRows(ABC):
    """Rows Φ of features about their means, with the weights of the rows.

    `product` and `transposed_product` are those of the rows before the means are subtracted.
    """

    weights: Vector
    mean: Vector
    # The least relative residual that the precision of what is stored allows.
    least_residual: float = 1e-12

    @abstractmethod
    def product(self, coef: Float64) -> Float64:
        """Return the features of all rows times coefficients, a column for every target."""

    @abstractmethod
    def transposed_product(self, values: Float64) -> Float64:
        """Return the transposed features times values of all rows."""

    @abstractmethod
    def inverse(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return an approximate inverse of ΦᵀWΦ + alpha I."""

    @abstractmethod
    def trace(self) -> float:
        """Return about the trace of ΦᵀWΦ."""

    def weigh(self, weights: Vector, *, fit_intercept: bool) -> None:
        """Take these weights of rows, and means by them, which are zero without an intercept."""
        self.weights = weights
        shares = (weights / weights.sum())[:, np.newaxis]
        mean = self.transposed_product(shares)[:, 0]
        self.mean = mean if fit_intercept else np.zeros_like(mean)

    def normal_product(self, coef: Float64) -> Float64:
        """Return ΦᵀWΦ times coefficients."""
        return self.centred_transposed_product(self.product(coef) - self.mean @ coef)

    def centred_transposed_product(self, values: Float64) -> Float64:
        """Return ΦᵀW times values of all rows."""
        weighted = self.weights[:, np.newaxis] * values
        total = self.transposed_product(weighted)
        return np.asarray(total - np.multiply.outer(self.mean, weighted.sum(axis=0)))


class SparseRows(StoredRows):
    """Features of a map, if there is one, and sparse columns side by side."""

    def __init__(self, features: Features, rows: TrainingRows) -> None:
        parts: list[Any] = [np.empty((rows.count, 0), np.float32)]
        if features.feature_map is not None:
            plain = Features(features.feature_map)
            parts = [Z.astype(np.float32) for Z, _, _ in feature_blocks(plain, rows)]
        self.Z: Real = np.concatenate(parts)
        self.least_residual = _LEAST_RESIDUAL if self.Z.size else 1e-12
        self.X, self.factor = rows.X, math.sqrt(features.weight)

    def product(self, coef: Float64) -> Float64:
        """Return the features and columns of all rows times coefficients."""
        size = self.Z.shape[1]
        of_map = self.Z @ coef[:size].astype(np.float32)
        return np.asarray(of_map + self.X @ (self.factor * coef[size:]))

    def transposed_product(self, values: Float64) -> Float64:
        """Return the transposed features and columns times values of all rows."""
        of_map = self.Z.T @ values.astype(np.float32)
        return np.concatenate((of_map, self.factor * (self.X.T @ values)))

    def _squares(self) -> Vector:
        """Return the sums of squares of the columns."""
        return np.asarray(self.factor**2 * (self.X.multiply(self.X).T @ self.weights))

    def _gram(self) -> Float64:
        """Return the Gram matrix of the features."""
        weighted = self.Z * self.weights.astype(np.float32)[:, np.newaxis]
        return np.asarray(self.Z.T @ weighted, dtype=np.float64)

    def trace(self) -> float:
        """Return the trace of the Gram matrix."""
        return float(self._squares().sum() + np.trace(self._gram()))

    def inverse(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return the inverse of the features' Gram matrix, and of the diagonal of the columns'."""
        size, diagonal = self.Z.shape[1], (self._squares() + alpha)[:, np.newaxis]
        factor = linalg.cho_factor(self._gram() + alpha * np.eye(size)) if size else None

        def apply(V: Float64) -> Float64:
            of_map = V[:size] if factor is None else linalg.cho_solve(factor, V[:size])
            return np.concatenate((of_map, V[size:] / diagonal))

        return apply


class LandmarkRows(StoredRows):
    """Kernel values at landmarks, of which features are L⁻¹ times; and columns beside them.

    The preconditioner takes landmarks for a sample of the rows [RCR17]: their features are the
    factor L itself, so that ΦᵀΦ is about n / m LᵀL.
    """

    def __init__(self, features: Features, rows: TrainingRows) -> None:
        assert features.landmarks is not None
        self.least_residual = _LEAST_RESIDUAL
        self.factor = features.landmarks.factor_
        size = features.size(rows.X)
        self._values = np.empty((rows.count, size), np.float32)
        values = features.values()
        for part in row_parts(features, rows.X):
            self._values[part] = values(rows.X[part])

    def product(self, coef: Float64) -> Float64:
        """Return the features of all rows times coefficients."""
        at_landmarks = self._solved(coef, trans=1)
        products: Real = self._values @ at_landmarks.astype(np.float32)
        return products.astype(np.float64)

    def transposed_product(self, values: Float64) -> Float64:
        """Return the transposed features times values of all rows."""
        total = np.zeros((self._values.shape[1], values.shape[1]))
        # Sums of blocks in float64 keep the digits that sums of all rows in float32 would lose.
        for part in slices(len(self._values), _TRANSPOSED_ROWS):
            total += self._values[part].T @ values[part].astype(np.float32)
        return self._solved(total, trans=0)

    def trace(self) -> float:
        """Return about the trace of the Gram matrix: that of all rows like the landmarks."""
        return float(self.weights.sum()) * float(np.mean(np.sum(self.factor**2, axis=1)))

    def inverse(self, alpha: float) -> Callable[[Float64], Float64]:
        """Return the inverse of n / m LᵀL + alpha I, and of the diagonal of the columns' part."""
        size = len(self.factor)
        fits_float32 = alpha > _SHARE_FOR_FLOAT32 * self.trace()
        matrix = self._shifted(alpha, np.float32 if fits_float32 else np.float64)
        if not cholesky_in_place(matrix):
            matrix = self._shifted(alpha, np.float64)
            if not cholesky_in_place(matrix):
                raise InputError(
                    f"alpha={alpha:.3g} is too small for {size} landmarks, some of which are equal "
                    "to working precision: give a larger alpha, or fewer landmarks."
                )
        squares = np.einsum("ij,ij->j", self._values[:, size:], self._values[:, size:])
        beside = (squares.astype(np.float64) + alpha)[:, np.newaxis]

        def apply(V: Float64) -> Float64:
            right = V[:size].astype(matrix.dtype)
            of_map = linalg.cho_solve((matrix.T, False), right, check_finite=False)
            return np.concatenate((of_map, V[size:] / beside))

        return apply

    def _shifted(self, alpha: float, dtype: Any) -> Real:
        """Return n / m LᵀL + alpha I, row by row in memory."""
        scale = float(self.weights.sum()) / len(self.factor)
        matrix: Real = (self._squared_factor * scale).astype(dtype)
        matrix[np.diag_indices_from(matrix)] += alpha
        return matrix

    @cached_property
    def _squared_factor(self) -> Real:
        """LᵀL, on and below the diagonal."""

        def product() -> Real:
            upper, _ = linalg.lapack.dlauum(self.factor.T, lower=0)
            return np.asarray(upper)

        # Of U Uᵀ for U = Lᵀ, the routine writes the upper triangle, which is the lower one of
        # the transpose.
        return np.ascontiguousarray(interruptible(product).T)

    def _solved(self, V: Float64, *, trans: int) -> Float64:
        size = len(self.factor)
        solved = linalg.solve_triangular(
            self.factor, V[:size], lower=True, trans=trans, check_finite=False
        )
        return np.concatenate((solved, V[size:]))


class _NormalMatrix(SymmetricOperator):
    """ΦᵀWΦ + alpha I for stored rows."""

    def __init__(self, rows: StoredRows, alpha: float) -> None:
        super().__init__(rows.mean.size)
        self._rows, self._alpha = rows, alpha
        self.rounding = float(np.finfo(np.float32).eps)

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"normal equations of {self.shape[0]} features"

    def _matmat(self, V: Any) -> Any:
        return self._rows.normal_product(V) + self._alpha * V


class _Tried(NamedTuple):
    """What an alpha got at the rows held out: squared error, share of wrong classes."""

    error: float
    wrong: float
    coef: Float64
    predictions: Float64


@dataclass(frozen=True, eq=False)
class IterativeRidge:
    """Ridge regression on features by iterations; `stored` makes the rows to iterate on."""

    features: Features
    stored: Callable[[Features, TrainingRows], StoredRows]
    fit_intercept: bool
    tol: float
    seed: int
    classifies: bool = False

    def solve(
        self, rows: TrainingRows, alpha: float | str, alphas: Vector | None, start: float | None
    ) -> tuple[RidgeSolution, LeftOut]:
        """Return the solution, with the alpha that is best at rows held out if it is chosen.

        What these rows are predicted to be without them is returned as well.
        """
        count = min(max(rows.count // _HELD_OUT, 1), _MOST_HELD_OUT, rows.count - 1)
        streams = RandomStreams(self.seed, "kernel-ridge/held-out")
        held = np.sort(streams.sample("rows", rows.count, count))
        weights = np.ones(rows.count) if rows.weights is None else rows.weights
        stored, targets = self.stored(self.features, rows), rows.targets.reshape(rows.count, -1)
        # Rows without weight are not there: kernel values need not be computed again without them.
        stored.weigh(_without(weights, held), fit_intercept=self.fit_intercept)
        tried: dict[float, _Tried] = {}

        def score(value: float) -> float:
            first = min(tried.values(), key=lambda one: one.error).coef if tried else None
            coef, intercept = self._solved(stored, targets, value, _TOLERANCE_OF_TRIES, first)
            predictions = stored.product(coef)[held] + intercept
            squares = np.mean((targets[held] - predictions) ** 2, axis=1)
            error = float(weights[held] @ squares / max(weights[held].sum(), _LEAST_WEIGHT))
            wrong = _wrong_share(predictions, targets[held]) if self.classifies else 0.0
            tried[value] = _Tried(error, wrong, coef, predictions)
            return error

        if not isinstance(alpha, str):
            score(alpha)
        elif alphas is not None:
            for value in alphas[::-1].tolist():
                score(value)
        else:
            trace = stored.trace() or 1.0
            least = _SMALLEST_SHARE * trace
            descend(score, max(start or _USUAL_SHARE * trace, least), least, _RATIOS)
        best = min(tried, key=lambda value: tried[value].error)
        if self.classifies and isinstance(alpha, str):
            if alphas is None and min(tried) == best:
                score(best * _FURTHER)
            # Classes may be told apart best where squared errors begin to rise again.
            best = min(tried, key=lambda value: (tried[value].wrong, tried[value].error))
        predictions = tried[best].predictions
        left_out = LeftOut(predictions, targets[held], np.ones(count), weights[held])
        stored.weigh(weights, fit_intercept=self.fit_intercept)
        coef, intercept = self._solved(stored, targets, best, self.tol, tried[best].coef)
        shape, values = rows.targets.shape[1:], sorted(tried)
        path: dict[str, Any] = {}
        if isinstance(alpha, str):
            path = {
                "alphas": np.array(values),
                "scores": np.array([tried[v].error for v in values]),
            }
        solution = RidgeSolution(
            np.ascontiguousarray(coef.T.reshape((*shape, -1))),
            intercept.reshape(shape),
            best,
            self.fit_intercept,
            **path,
        )
        return solution, left_out

    def _solved(
        self,
        stored: StoredRows,
        targets: Float64,
        alpha: float,
        tol: float,
        first: Float64 | None,
    ) -> tuple[Float64, Vector]:
        """Return coefficients of shape (m, t) and intercepts."""
        mean = np.zeros(targets.shape[1])
        if self.fit_intercept:
            mean = np.average(targets, axis=0, weights=stored.weights)
        result = conjugate_gradients(
            _NormalMatrix(stored, alpha),
            stored.centred_transposed_product(targets - mean),
            preconditioner=stored.inverse(alpha),
            tol=max(tol, stored.least_residual),
            max_iterations=_MOST_STEPS,
            x0=first,
        )
        # Tries are judged by the rows held out.
        precise = stored.least_residual < _LEAST_RESIDUAL
        if tol <= self.tol and (precise or result.residual > _GOOD_RESIDUAL):
            warn_if_not_converged(result)
        return result.x, np.asarray(mean - stored.mean @ result.x)


def _wrong_share(predictions: Float64, targets: Float64) -> float:
    """Return how many rows have another class than the largest prediction, as a share."""
    if targets.shape[1] == 1:
        return float(np.mean((predictions > 0.0) != (targets > 0.0)))
    return float(np.mean(predictions.argmax(axis=1) != targets.argmax(axis=1)))


def _without(weights: Vector, rows: Any) -> Vector:
    """Return the weights, with zeros for some rows."""
    others = weights.copy()
    others[rows] = 0.0
    return others
