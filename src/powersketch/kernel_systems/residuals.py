"""True residuals of solutions, from all equations or from a sample of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.kernel_systems.problem import KernelProblem
from powersketch.kernel_systems.sampled_rows import (
    diagonal_entries,
    rounded_products,
    sampled_products,
)

Float64: TypeAlias = NDArray[np.float64]

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

    values: Float64
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


def exact_residuals(problem: KernelProblem, x: Float64) -> TrueResiduals:
    """Return the residuals of all equations: one product with the exact kernel matrix."""
    products = problem.kernel.product(problem.X, x, n_jobs=problem.n_jobs)
    errors = (products + problem.alpha * x - problem.y).reshape(problem.rows, -1)
    return TrueResiduals(_relative(problem, np.sum(errors**2, axis=0)), None)


def estimated_residuals(problem: KernelProblem, x: Float64) -> TrueResiduals:
    """Return residuals that are estimated from some of the equations.

    The equations of the largest entries of x are all among them, because they can have the largest
    errors; others are drawn, and rather those where the diagonal of K is large. There are as many
    as it takes for an interval of less than a fifth to both sides, from 128 to 1024, or all if
    there are no more than that: then the residuals are exact.
    """
    if problem.rows <= _FEWEST_ROWS:
        return exact_residuals(problem, x)
    sample = _Sample.of(problem, x)
    squares = _squared_errors(problem, x, sample, slice(0, _FEWEST_ROWS))
    while True:
        drawn = squares.shape[0]
        sums, errors = sample.totals(squares)
        values = _relative(problem, sums)
        if drawn == problem.rows:
            return TrueResiduals(values, None)
        worst = int(values.argmax())
        # The residual is a square root, which halves relative errors.
        width = _NORMAL_QUANTILE * errors[worst] / (2.0 * sums[worst]) if errors[worst] else 0.0
        if width <= _WIDTH or (drawn >= _MOST_ROWS and math.isfinite(width)):
            width = max(width, _LEAST_WIDTH)
            low, high = (float(values[worst]) * math.exp(sign * width) for sign in (-1, 1))
            return TrueResiduals(values, (low, high))
        more = _squared_errors(problem, x, sample, slice(drawn, 2 * drawn))
        squares = np.concatenate((squares, more))


@dataclass(frozen=True, eq=False)
class _Sample:
    """The equations in the order in which they are looked at.

    The largest entries of x come first. The others are a priority sample of any length (Duffield,
    Lund and Thorup, Journal of the ACM 54, 2007): with uniform u, the smallest u / weight come
    first. If the first that is left out has the threshold t = u / weight, then the others were
    drawn with probabilities weight * t, or for certain where that is 1 or more. With equal weights
    it is a simple random sample.
    """

    order: NDArray[np.int64]
    weights: Float64
    priorities: Float64

    @classmethod
    def of(cls, problem: KernelProblem, x: Float64) -> _Sample:
        """Return the order for a solution."""
        columns = np.abs(x.reshape(problem.rows, -1))
        sizes = (columns / np.maximum(columns.max(axis=0), np.finfo(np.float64).tiny)).max(axis=1)
        first = np.argsort(-sizes, kind="stable")[:_LARGEST_ENTRIES]
        others = problem.streams.permutation("equations", problem.rows)
        weights = _weights(problem)
        priorities = (np.arange(problem.rows) + 0.5) / problem.rows / weights[others]
        by_priority = np.argsort(priorities, kind="stable")
        by_priority = by_priority[~np.isin(others[by_priority], first)]
        order = np.concatenate((first, others[by_priority]))
        return cls(order, weights[order], priorities[by_priority])

    def totals(self, squares: Float64) -> tuple[Float64, Float64]:
        """Return estimated sums over all equations of those seen, and their standard errors."""
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


def _weights(problem: KernelProblem) -> Float64:
    """Return weights from 1 on: what sketches miss of a row of K has a norm like √k(x, x).

    But half of the sample is drawn with equal probabilities, as errors may have other reasons.
    """
    diagonal = diagonal_entries(problem.kernel, problem.X, problem.n_jobs)
    mean = float(diagonal.mean())
    return 1.0 + (diagonal / mean if mean > 0.0 else diagonal)


def _squared_errors(problem: KernelProblem, x: Float64, sample: _Sample, part: slice) -> Float64:
    """Return the squared errors of a part of the sample, a column for every right-hand side."""
    rows, weights = sample.order[part], sample.weights[part]
    parts = problem.kernel, problem.X, x, rows, problem.n_jobs
    rounded = rounded_products(*parts)
    if rounded is not None:
        squares = _squares(problem, x, rows, rounded[0])
        noise = rounded[1].reshape(squares.shape)
        # Weighted as in the estimate, where a few large errors must not hide the noise of others.
        if (noise.T**2 @ (1.0 / weights) <= _NOISE**2 * (squares.T @ (1.0 / weights))).all():
            return squares
    return _squares(problem, x, rows, sampled_products(*parts))


def _squares(
    problem: KernelProblem, x: Float64, rows: NDArray[np.int64], products: Float64
) -> Float64:
    errors = products + problem.alpha * x[rows] - problem.y[rows]
    return np.asarray(errors**2).reshape(rows.size, -1)


def _relative(problem: KernelProblem, squares: Float64) -> Float64:
    norms = np.linalg.norm(problem.y.reshape(problem.rows, -1), axis=0)
    relative: Float64 = np.zeros_like(norms)
    np.divide(np.sqrt(squares), norms, out=relative, where=norms > 0.0)
    return relative
