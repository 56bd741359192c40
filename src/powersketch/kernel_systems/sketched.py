"""Solutions of sketched systems, and their true residuals in the exact ones.

A :class:`KernelOperator` says which system is meant; its matrix is not computed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, Vector, divide_or_zero, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.execution import thread_count
from powersketch.kernel_systems.approximations import (
    default_coordinates,
    feature_approximation,
    shifted,
    sketched_data,
    useful_shift,
)
from powersketch.kernels import Kernel
from powersketch.linalg import (
    FactorOperator,
    KernelOperator,
    SolverResult,
    conjugate_gradients,
    preconditioned_gradient,
)
from powersketch.random_streams import RandomStreams

# More coordinates per row pay as a preconditioner, but not for a solution this inexact: a second
# one lowers the residual by a third and takes a third more time.
_COORDINATES_PER_ROW = 1
# Up to here, a product with the exact matrix takes less time than gradient steps do.
_FEW_ROWS = 4000
_SOLVED = "solved the sketched system, not the exact one"
_STOPPED = "stopped in the sketched system, not the exact one"
_FEWEST_ROWS = 128
_MOST_ROWS = 1024
_LARGEST_ENTRIES = 24
# Fewer drawn equations than this say nothing about their standard error.
_FEWEST_DRAWN = 16
# A sample is large enough when the interval reaches no further than this from the estimate.
_WIDTH = 0.2
# Where a few equations have nearly all of the error, the normal law holds no better than this.
_LEAST_WIDTH = 0.05
# Rounding errors of float32 may be this part of the errors; else float64 is used.
_NOISE = 0.05
_NORMAL_QUANTILE = 2.5758  # for 99 % between both ends
# Large, as the sample is rearranged for every product.
_BATCH_BYTES = 256 << 20
# How far inner products in float32 may be off, in units of its epsilon and of both norms.
_ROUNDINGS = 8.0


def solve_sketched_data(
    system: KernelOperator, y: Float64, size: int | None, tol: float, seed: int
) -> SolverResult:
    """Solve for the exact kernel of compressed rows, by its factor."""
    streams = _streams(seed)
    size = size or default_coordinates(system.X, _COORDINATES_PER_ROW)
    how, solved = f"{_SOLVED} (by its Cholesky factor)", f"{size} sketched coordinates"
    if size >= system.X.shape[1]:
        how = "factored the exact kernel matrix, as a sketch would be no shorter than rows of X"
        solved = "the data"
    approximation = sketched_data(system, size, streams)
    x = approximation.inverse @ y
    residuals = estimated_residuals(system, x, y, streams)
    return SolverResult(
        x=x,
        converged=residuals.worst <= tol,
        iterations=1,
        residual=residuals.worst,
        residuals=residuals.values,
        history=np.array([1.0, residuals.worst]),
        message=_message(how, residuals, tol),
        operator=f"exact kernel of {solved}",
        preconditioner=f"sketched-data, {approximation.text}",
        residual_interval=residuals.interval,
    )


def solve_with_features(
    system: KernelOperator,
    y: Float64,
    size: int | None,
    method: str,
    seed: int,
    options: dict[str, Any],
) -> SolverResult:
    """Solve for Z Zᵀ + alpha I; with method="gradient" this is [SWYZ21], Algorithm 2.

    The options are those of iterative solvers.
    """
    _check_full_rank(size, len(y), system.alpha, method)
    streams, tol = _streams(seed), options["tol"]
    Z, approximation = feature_approximation(system, size, streams, options["verbose"])
    product, inverse = FactorOperator(Z, system.alpha), approximation.inverse
    if method == "gradient":
        root = inverse.root()
        result = preconditioned_gradient(product, y, root, random_state=seed, **options)
    else:
        result = conjugate_gradients(product, y, preconditioner=inverse, **options)
    if len(y) <= _FEW_ROWS:
        residuals = exact_residuals(system, result.x, y)
    else:
        residuals = estimated_residuals(system, result.x, y, streams)
    how = f"{_SOLVED if result.converged else _STOPPED} ({result.message.rstrip('.')})"
    return dataclasses.replace(
        result,
        converged=residuals.worst <= tol,
        residual=residuals.worst,
        residuals=residuals.values,
        residual_interval=residuals.interval,
        message=_message(how, residuals, tol),
        preconditioner=approximation.text,
    )


def _streams(seed: int) -> RandomStreams:
    return RandomStreams(seed, "solve_kernel_system")


def _message(how: str, residuals: TrueResiduals, tol: float) -> str:
    reached = residuals.worst <= tol
    advice = "" if reached else f", above tol={tol:g}: use operator='exact' for a smaller one"
    return f"{how}; the true residual is {residuals.describe()}{advice}."


def _check_full_rank(size: int | None, rows: int, alpha: float, method: str) -> None:
    if size is None or size >= rows or (alpha > 0.0 and method == "cg"):
        return
    remedy = "choose at least that many" + ("" if method == "gradient" else ", or an alpha above 0")
    raise InputError(
        f"n_components={size} features are fewer than the {rows} rows of X, and the "
        f"sketched system has no triangular factor: {remedy}."
    )


@dataclass(frozen=True, eq=False)
class TrueResiduals:
    """‖y − (K + alpha I) x‖ / ‖y‖ of every column.

    Parameters
    ----------
    values : ndarray of shape (t,)
        The residuals or, if there is an interval, estimates of them.
    interval : tuple of two floats or None
        Where the largest value is an estimate, 99 % limits of it.
    """

    values: Vector
    interval: tuple[float, float] | None

    @property
    def worst(self) -> float:
        """The largest of them."""
        return float(self.values.max())

    def describe(self) -> str:
        """Return the largest one in words."""
        if self.interval is None:
            return f"{self.worst:.2g}"
        low, high = self.interval
        return f"about {self.worst:.2g}, with 99 % confidence between {low:.2g} and {high:.2g}"


def exact_residuals(system: KernelOperator, x: Float64, y: Float64) -> TrueResiduals:
    """Return the residuals of all equations: one product with the exact kernel matrix."""
    products = system.kernel.product(system.X, x, n_jobs=system.n_jobs)
    errors = (products + system.alpha * x - y).reshape(len(y), -1)
    return TrueResiduals(_relative(y, np.sum(errors**2, axis=0)), None)


def estimated_residuals(
    system: KernelOperator, x: Float64, y: Float64, streams: RandomStreams
) -> TrueResiduals:
    """Return residuals that are estimated from some of the equations.

    The equations of the largest entries of x are all among them, because they can have the largest
    errors; others are drawn, preferably where the diagonal of K is large. There are as many as it
    takes for an interval of less than a fifth to both sides, from 128 to 1024, or all if there are
    no more than that: then the residuals are exact.
    """
    if len(y) <= _FEWEST_ROWS:
        return exact_residuals(system, x, y)
    sample = _Sample.of(system, x, streams)
    squares = _squared_errors(system, x, y, sample, slice(0, _FEWEST_ROWS))
    while True:
        drawn = squares.shape[0]
        sums, errors = sample.totals(squares)
        values = _relative(y, sums)
        if drawn == len(y):
            return TrueResiduals(values, None)
        worst = int(values.argmax())
        # The residual is a square root, which halves relative errors.
        width = _NORMAL_QUANTILE * errors[worst] / (2.0 * sums[worst]) if errors[worst] else 0.0
        if width <= _WIDTH or (drawn >= _MOST_ROWS and math.isfinite(width)):
            width = max(width, _LEAST_WIDTH)
            low, high = (float(values[worst]) * math.exp(sign * width) for sign in (-1, 1))
            return TrueResiduals(values, (low, high))
        more = _squared_errors(system, x, y, sample, slice(drawn, 2 * drawn))
        squares = np.concatenate((squares, more))


@dataclass(frozen=True, eq=False)
class _Sample:
    """The equations in the order in which they are evaluated.

    The largest entries of x come first. The others are a priority sample of any length (Duffield,
    Lund and Thorup, Journal of the ACM 54, 2007): with uniform u, the smallest u / weight come
    first. If the first that is left out has the threshold t = u / weight, then the others were
    drawn with probabilities weight * t, or for certain where that is 1 or more. With equal weights
    it is a simple random sample.
    """

    order: NDArray[np.int64]
    weights: Vector
    priorities: Vector

    @classmethod
    def of(cls, system: KernelOperator, x: Float64, streams: RandomStreams) -> _Sample:
        """Return the order for a solution."""
        count = len(x)
        columns = np.abs(x.reshape(count, -1))
        sizes = (columns / np.maximum(columns.max(axis=0), np.finfo(np.float64).tiny)).max(axis=1)
        first = np.argsort(-sizes, kind="stable")[:_LARGEST_ENTRIES]
        others = streams.permutation("equations", count)
        weights = _weights(system)
        priorities = (np.arange(count) + 0.5) / count / weights[others]
        by_priority = np.argsort(priorities, kind="stable")
        by_priority = by_priority[~np.isin(others[by_priority], first)]
        order = np.concatenate((first, others[by_priority]))
        return cls(order, weights[order], priorities[by_priority])

    def totals(self, squares: Float64) -> tuple[Vector, Vector]:
        """Return estimated sums over all equations from the first ones, and standard errors."""
        seen = squares.shape[0]
        if seen == self.order.size:
            return squares.sum(axis=0), np.zeros(squares.shape[1])
        threshold = self.priorities[seen - _LARGEST_ENTRIES]
        by_chance = self.weights * threshold < 1.0
        by_chance[:_LARGEST_ENTRIES] = False
        sums = squares[~by_chance[:seen]].sum(axis=0)
        weights = self.weights[:seen][by_chance[:seen]]
        if weights.size < _FEWEST_DRAWN:
            return sums, np.full(sums.shape, np.inf)
        # As a ratio to the weights, whose sum is known: their own share of the error vanishes.
        ratios = squares[by_chance[:seen]] / weights[:, np.newaxis]
        total = self.weights[by_chance].sum()
        unseen = np.maximum(1.0 - weights.size * weights / total, 0.0)
        variances = unseen @ (ratios - ratios.mean(axis=0)) ** 2 / (weights.size - 1)
        return sums + total * ratios.mean(axis=0), total * np.sqrt(variances / weights.size)


def _weights(system: KernelOperator) -> Vector:
    """Return weights from 1 on: what sketches miss of a row of K has a norm like √k(x, x).

    But half of the sample is drawn with equal probabilities, as errors may have other reasons.
    """
    diagonal = diagonal_entries(system.kernel, system.X, system.n_jobs)
    mean = float(diagonal.mean())
    return 1.0 + (diagonal / mean if mean > 0.0 else diagonal)


def _squared_errors(
    system: KernelOperator, x: Float64, y: Float64, sample: _Sample, part: slice
) -> Float64:
    """Return the squared errors of a part of the sample, a column for every right-hand side."""
    chosen, weights = sample.order[part], sample.weights[part]

    def squares(products: Float64) -> Float64:
        errors = products + system.alpha * x[chosen] - y[chosen]
        return np.asarray(errors**2).reshape(chosen.size, -1)

    rounded = rounded_products(system.kernel, system.X, x, chosen, system.n_jobs)
    if rounded is not None:
        quick = squares(rounded[0])
        noise = rounded[1].reshape(quick.shape)
        # Weighted as in the estimate, where a few large errors must not hide the noise of others.
        if (noise.T**2 @ (1.0 / weights) <= _NOISE**2 * (quick.T @ (1.0 / weights))).all():
            return quick
    X = system.X
    products = system.kernel.product(X[chosen], x, X, n_jobs=system.n_jobs)
    return squares(products.astype(np.float64, copy=False))


def _relative(y: Float64, squares: Vector) -> Vector:
    norms = np.linalg.norm(y.reshape(len(y), -1), axis=0)
    return divide_or_zero(np.sqrt(squares), norms)


def diagonal_entries(kernel: Kernel, X: Rows, n_jobs: int | None) -> Vector:
    """Return the diagonal of the kernel matrix in float64, from one pass over X.

    On the diagonal, a kernel of this package depends on the norms only: rows of a single entry
    with the same norms have the same diagonal.
    """
    squares, threads = np.empty(X.shape[0]), thread_count(n_jobs)
    for part in _batches(X, threads):
        batch = X[part] if is_sparse(X) else np.ascontiguousarray(X[part])
        squares[part] = routines.squared_norms(batch, threads=threads)
    return kernel.diagonal(np.sqrt(squares)[:, np.newaxis]).astype(np.float64, copy=False)


def rounded_products(
    kernel: Kernel, X: Rows, V: Float64, chosen: NDArray[np.int64], n_jobs: int | None
) -> tuple[Float64, Float64] | None:
    """Return k(X[chosen], X) @ V from inner products in float32, and about how far off it is.

    None where that would save no time: for rows that are sparse, short, or float64.
    """
    if is_sparse(X) or X.dtype != np.float32 or X.shape[1] <= 4 * chosen.size:
        return None
    products, squares = _inner_products(X, chosen, useful_shift(kernel, X), thread_count(n_jobs))
    roundings = _ROUNDINGS * float(np.finfo(np.float32).eps)
    changed = products - roundings * np.sqrt(np.outer(squares[chosen], squares))
    K, other = (
        kernel.from_inner_products(entries, squares[chosen], squares, n_jobs=n_jobs)
        for entries in (products, changed)
    )
    return K @ V, np.sqrt((K - other) ** 2 @ V**2)


def _inner_products(
    X: Real, chosen: NDArray[np.int64], shift: Real | None, threads: int
) -> tuple[Float64, Vector]:
    """Return inner products of the chosen rows with all, and all squared norms."""
    products, squares = np.empty((chosen.size, X.shape[0])), np.empty(X.shape[0])
    sample = shifted(X[chosen], shift)
    for part in _batches(X, threads):
        batch = np.ascontiguousarray(shifted(X[part], shift))
        products[:, part] = sample @ batch.T
        squares[part] = routines.squared_norms(batch, threads=threads)
    return products, squares


def _batches(X: Rows, threads: int) -> Iterator[slice]:
    return slices(X.shape[0], max(_BATCH_BYTES // (X.shape[1] * X.dtype.itemsize), threads))
