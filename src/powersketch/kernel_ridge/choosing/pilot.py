"""A pilot: some of the rows and landmarks among them, on which models are tried cheaply.

Rows that come more than once count as one of a larger weight: a copy that stays behind would tell
the target of a row that is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.execution import ordered_map
from powersketch.kernel_ridge.rows.columns import Columns
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.features import dense
from powersketch.kernel_ridge.solving.path import RegularisationPath
from powersketch.kernel_ridge.solving.statistics import statistics_of_blocks
from powersketch.kernels import ArcCosine, Gaussian, Kernel, Linear, NeuralTangent, Polynomial
from powersketch.linalg import TriangularRows
from powersketch.random_streams import RandomStreams
from powersketch.routines import squared_norms

# Rows and landmarks of a pilot: few of few rows, for which a second is long.
_FEW_ROWS = 512
_FEW_LANDMARKS = 192
_ROWS, _LANDMARKS = 3000, 400
_MANY_ROWS = 50_000
_ROWS_OF_MANY, _LANDMARKS_OF_MANY = 8000, 768
_LANDMARKS_FOR_ALPHA = 1024
_ALPHAS = 25

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_BLOCK_ENTRIES = 1 << 21
GAMMAS = (1 / 16, 1 / 4, 1.0, 4.0)
"""Gammas to try first, in units of one over the median squared distance of two rows."""

_ROUNDING = 1e-14  # of constant targets about their mean
_JITTERS = (1e-10, 1e-8, 1e-6, 1e-4)


Words: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Trial:
    """A model of landmarks on the pilot: what it is made of, and what it got.

    `error` is the leave-one-out error relative to the variance of the targets, and `squares` has
    the squared errors of single rows, in the same unit. `values` are the coefficients of the
    kernel at landmarks, `slopes` those of the columns.
    """

    columns: Columns | None
    kernel: Kernel
    linear: float
    error: float
    alpha: float
    squares: Vector = field(repr=False)
    values: Float64 = field(repr=False)
    slopes: Float64 = field(repr=False)
    intercept: Vector = field(repr=False)
    landmarks: Rows = field(repr=False)

    def describe(self) -> str:
        """Return the model in a few words."""
        kernel = describe_kernel(self.kernel)
        beside = self.linear and not isinstance(self.kernel, Linear)
        return f"{kernel} with a linear part" if beside else kernel

    def predict(self, P: Rows) -> Float64:
        """Return predictions at prepared rows."""
        predictions = P @ self.slopes + self.intercept
        if not isinstance(self.kernel, Linear):
            predictions = predictions + self.kernel.product(P, self.values, self.landmarks)
        return np.asarray(predictions, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class View:
    """The rows of a pilot with columns prepared in one way, and what all kernels need of them."""

    columns: Columns | None
    P: Rows
    landmarks: Rows
    products: Float64
    norms: Vector
    landmark_norms: Vector

    @property
    def has_few_columns(self) -> bool:
        """Whether there are no more columns than landmarks."""
        return bool(self.P.shape[1] <= self.landmarks.shape[0])


@dataclass(frozen=True, eq=False)
class Pilot:
    """Some of the rows, some of which are landmarks."""

    rows: TrainingRows
    landmarks: Any
    fit_intercept: bool
    threads: int = 1

    @classmethod
    def of(
        cls, rows: TrainingRows, *, fit_intercept: bool, streams: RandomStreams, threads: int
    ) -> Pilot:
        """Draw a pilot whose size suits the number of rows."""
        most, landmarks = _ROWS, _LANDMARKS
        if rows.count <= _FEW_ROWS:
            landmarks = _FEW_LANDMARKS
        elif rows.count >= _MANY_ROWS:
            most, landmarks = _ROWS_OF_MANY, _LANDMARKS_OF_MANY
        sample = rows.sample(most, streams.child("pilot"))
        pilot = cls.with_landmarks(sample, landmarks, streams, fit_intercept=fit_intercept)
        return replace(pilot, threads=threads)

    @classmethod
    def with_landmarks(
        cls, rows: TrainingRows, most: int, streams: RandomStreams, *, fit_intercept: bool
    ) -> Pilot:
        """Return all rows, with some of them for landmarks."""
        count = min(most, rows.count)
        chosen = np.sort(streams.child("landmarks").sample("rows", rows.count, count))
        return cls(rows, chosen, fit_intercept)

    def part(self, chosen: Any, streams: RandomStreams) -> Pilot:
        """Return the pilot of some of its rows."""
        most = max(len(self.landmarks) * len(chosen) // self.rows.count, 1)
        part = self.with_landmarks(
            self.rows[chosen], most, streams, fit_intercept=self.fit_intercept
        )
        return replace(part, threads=self.threads)

    def view(self, columns: Columns | None) -> View:
        """Prepare columns; None leaves them as they are."""
        P = self.rows.X if columns is None else columns.transform(self.rows.X)
        P = P.astype(np.float64)
        L = P[self.landmarks]
        products = P @ L.T
        norms = squared_norms(P)
        return View(columns, P, L, dense(products), norms, norms[self.landmarks])

    def trial(self, view: View, kernel: Kernel, linear: float = 0.0) -> Trial:
        """Fit ridge regression on landmarks, with the alpha of the least leave-one-out error.

        A linear part is made of the columns themselves, or of inner products with landmarks where
        these are fewer.
        """
        linear = 1.0 if isinstance(kernel, Linear) else linear
        at_landmarks = _values(view, kernel, linear)
        Z, factor = _features(at_landmarks, self.landmarks)
        beside = linear > 0.0 and view.has_few_columns
        if beside:
            Z = np.concatenate([Z, math.sqrt(linear) * dense(view.P)], axis=1)
        block = (Z, self.rows.targets, self.rows.weights)
        statistics = statistics_of_blocks([block])
        path = RegularisationPath.of(statistics, fit_intercept=self.fit_intercept)
        alphas = path.default_alphas(_ALPHAS)
        squares = path.left_out_squares(alphas, *block)
        errors = self.weights @ squares
        best = int(np.argmin(errors))
        solution = path.solve(float(alphas[best]))
        coef = np.atleast_2d(solution.coef).T
        values = linalg.solve_triangular(
            factor, coef[: len(factor)], lower=True, trans=1, check_finite=False
        )
        if beside:
            slopes = math.sqrt(linear) * coef[len(factor) :]
        else:
            slopes = linear * (view.landmarks.T @ values)
        return Trial(
            columns=view.columns,
            kernel=kernel,
            linear=linear,
            error=float(errors[best]) / self.variance,
            alpha=float(alphas[best]),
            squares=squares[:, best] / self.variance,
            values=values,
            slopes=slopes,
            intercept=np.atleast_1d(solution.intercept),
            landmarks=view.landmarks,
        )

    def trials(self, view: View, kernels: Iterable[Kernel], linear: float = 0.0) -> list[Trial]:
        """Return the trials of several kernels, some of them at a time."""
        return list(
            ordered_map(lambda kernel: self.trial(view, kernel, linear), kernels, self.threads)
        )

    def again(self, trial: Trial) -> Trial:
        """Fit another pilot's trial on these rows."""
        return self.trial(self.view(trial.columns), trial.kernel, trial.linear)

    def squares_at(self, trial: Trial, rows: TrainingRows) -> Vector:
        """Return the squared errors of a trial at other rows, in the unit of this pilot."""
        P = rows.X if trial.columns is None else trial.columns.transform(rows.X)
        targets = rows.targets.reshape(rows.count, -1)
        errors = targets - trial.predict(P.astype(np.float64))
        return np.asarray(np.mean(errors**2, axis=1) / self.variance)

    @property
    def weights(self) -> Vector:
        """The weights of the rows, of sum one."""
        weights = self.rows.weights
        weights = np.ones(self.rows.count) if weights is None else weights
        return np.asarray(weights / weights.sum())

    @property
    def variance(self) -> float:
        """The mean variance of the targets; one if they are constant."""
        targets = self.rows.targets.reshape(self.rows.count, -1)
        mean = self.weights @ targets
        variance = float(np.mean(self.weights @ (targets - mean) ** 2))
        return variance if variance > (_ROUNDING * float(np.abs(targets).max())) ** 2 else 1.0


def standard_error(left: Vector, right: Vector) -> float:
    """Return the standard error of the mean difference of two errors of the same rows."""
    return float(np.std(left - right) / math.sqrt(max(left.size - 1, 1)))


def least_error(trials: Iterable[Trial]) -> Trial:
    """Return the trial of the least leave-one-out error, the first of equal ones."""
    return min(trials, key=lambda trial: trial.error)


def describe_kernel(kernel: Kernel) -> str:
    """Return a kernel in a few words."""
    if isinstance(kernel, Linear):
        return "linear model"
    if isinstance(kernel, Gaussian):
        return f"Gaussian kernel of gamma {kernel.gamma:.3g}"
    if isinstance(kernel, Polynomial):
        return f"polynomial kernel of degree {kernel.degree}"
    if isinstance(kernel, ArcCosine):
        return f"arc-cosine kernel of order {kernel.order}"
    if isinstance(kernel, NeuralTangent):
        return f"neural tangent kernel of depth {kernel.depth}"
    return f"{kernel}"


def _values(view: View, kernel: Kernel, linear: float) -> Float64:
    """Return the kernel's values at landmarks, with those of a linear part of many columns."""
    if isinstance(kernel, Linear):
        return view.products[:, :0] if view.has_few_columns else view.products
    values = kernel.from_inner_products(view.products, view.norms, view.landmark_norms)
    return values if view.has_few_columns or not linear else values + linear * view.products


def _features(values: Float64, landmarks: Any) -> tuple[Float64, Float64]:
    """Return features whose inner products are those of landmarks, and the factor they come from.

    The kernel matrix of the landmarks gets as little jitter as its factor takes.
    """
    if not values.shape[1]:
        return values, np.empty((0, 0))
    matrix = values[landmarks]
    matrix = 0.5 * (matrix + matrix.T)
    scale = float(np.mean(matrix.diagonal())) or 1.0
    for jitter in _JITTERS:
        try:
            factor = np.linalg.cholesky(matrix + jitter * scale * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
        features = values.copy()
        TriangularRows.of(factor).solve(features)
        return features, factor
    raise InputError(
        "the kernel is not positive definite at some of the rows: use a positive definite one."
    )


def alpha_on_landmarks(
    rows: TrainingRows, kernel: Kernel, streams: RandomStreams, *, fit_intercept: bool
) -> float:
    """Return the alpha that is best on landmarks, to begin with: that of the same penalty."""
    pilot = Pilot.with_landmarks(rows, _LANDMARKS_FOR_ALPHA, streams, fit_intercept=fit_intercept)
    return pilot.trial(pilot.view(None), kernel).alpha


def without_copies(rows: TrainingRows) -> TrainingRows:
    """Return every row once, with the weights of its copies added to its own.

    Rows are copies if their targets are equal, too, and no equal row has another target: else they
    are observations of the same point, each of which says something of its own.
    """
    first = _first_equal(rows)
    copied = np.flatnonzero(first != np.arange(rows.count))
    if not copied.size:
        return rows
    weights = np.bincount(first, rows.weights, minlength=rows.count).astype(np.float64)
    return TrainingRows(rows.X, rows.targets, weights, rows.numbers).without(copied)


def _first_equal(rows: TrainingRows) -> NDArray[np.intp]:
    """Return for every row the first one that it is a copy of, which may be itself."""
    hashes = _hashes(rows.X)
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
    groups = np.repeat(np.arange(starts.size), np.diff(starts, append=order.size))
    heads = order[starts[groups]]
    others = np.flatnonzero(order != heads)
    left, right = order[others], heads[others]
    targets = rows.targets.reshape(rows.count, -1)
    equal = _equal(rows.X, left, right) & (targets[left] == targets[right]).all(axis=1)
    mixed = np.isin(groups[others], groups[others][~equal])
    first = np.arange(rows.count)
    first[left[~mixed]] = right[~mixed]
    return first


def _equal(X: Rows, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.bool_]:
    if is_sparse(X):
        differences = abs(X[left] - X[right])
        return np.asarray(np.ravel(differences.sum(axis=1)) == 0.0)
    return np.asarray((X[left] == X[right]).all(axis=1))


def _hashes(X: Rows) -> Words:
    """Return a word for every row; those of equal rows are equal, and hardly any others."""
    factors = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if is_sparse(X):
        words = _words(X.data) * factors[X.indices]
        ones = np.ones(X.shape[1], dtype=np.uint64)
        return np.asarray(sparse.csr_array((words, X.indices, X.indptr), shape=X.shape) @ ones)
    parts = slices(X.shape[0], max(_BLOCK_ENTRIES // max(X.shape[1], 1), 1))
    return np.concatenate([_words(X[part]) @ factors for part in parts])


def _words(entries: Real) -> Words:
    """Return the bits of numbers, mixed; zero for both zeros."""
    bits = np.ascontiguousarray(entries + entries.dtype.type(0.0)).view(
        np.uint64 if entries.dtype.itemsize == 8 else np.uint32
    )
    return _mixed(bits.astype(np.uint64))


def _mixed(words: Words) -> Words:
    words = words * _ODD
    return words ^ (words >> _SHIFT)
