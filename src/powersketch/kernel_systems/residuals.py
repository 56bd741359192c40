"""True residuals of solutions, from all equations or from a sample of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powersketch.kernel_systems.problem import KernelProblem
from powersketch.kernel_systems.sampled_rows import rounded_products, sampled_products

_FEWEST_ROWS = 128
_MOST_ROWS = 1024
_LARGEST_ENTRIES = 24
# A sample is large enough when the interval reaches no further than this from the estimate.
_WIDTH = 0.2
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

    values: NDArray[np.float64]
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


def exact_residuals(problem: KernelProblem, x: NDArray[np.float64]) -> TrueResiduals:
    """Return the residuals of all equations: one product with the exact kernel matrix."""
    products = problem.kernel.product(problem.X, x, n_jobs=problem.n_jobs)
    errors = (products + problem.alpha * x - problem.y).reshape(problem.rows, -1)
    return TrueResiduals(_relative(problem, np.sum(errors**2, axis=0)), None)


def estimated_residuals(problem: KernelProblem, x: NDArray[np.float64]) -> TrueResiduals:
    """Return residuals that are estimated from some of the equations.

    The equations of the largest entries of x are all among them, because they can have the largest
    errors; others are drawn with equal probabilities. There are as many as it takes for an interval
    of less than a fifth to both sides, from 128 to 1024, or all if there are no more than that.
    """
    if problem.rows <= _FEWEST_ROWS:
        return exact_residuals(problem, x)
    order = _equations(problem, x)
    squares = _squared_errors(problem, x, order[:_FEWEST_ROWS])
    while True:
        sums, errors = _totals(squares, problem.rows)
        values = _relative(problem, sums)
        worst = int(values.argmax())
        # The residual is a square root, which halves relative errors.
        width = _NORMAL_QUANTILE * errors[worst] / (2.0 * sums[worst]) if sums[worst] else 0.0
        drawn = squares.shape[0]
        if width <= _WIDTH or drawn >= min(_MOST_ROWS, problem.rows):
            low, high = (float(values[worst]) * math.exp(sign * width) for sign in (-1, 1))
            return TrueResiduals(values, (low, high))
        more = _squared_errors(problem, x, order[drawn : 2 * drawn])
        squares = np.concatenate((squares, more))


def _equations(problem: KernelProblem, x: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return all equations, those of the largest entries of x first, then the others at random."""
    columns = np.abs(x.reshape(problem.rows, -1))
    sizes = (columns / np.maximum(columns.max(axis=0), np.finfo(np.float64).tiny)).max(axis=1)
    first = np.argsort(-sizes, kind="stable")[:_LARGEST_ENTRIES]
    order = problem.streams.permutation("equations", problem.rows)
    return np.concatenate((first, order[~np.isin(order, first)]))


def _squared_errors(
    problem: KernelProblem, x: NDArray[np.float64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the squared error of these equations, a column for every right-hand side."""
    parts = problem.kernel, problem.X, x, rows, problem.n_jobs
    rounded = rounded_products(*parts)
    if rounded is not None:
        squares = _squares(problem, x, rows, rounded[0])
        noise = rounded[1].reshape(squares.shape)
        if (np.sum(noise**2, axis=0) <= _NOISE**2 * np.sum(squares, axis=0)).all():
            return squares
    return _squares(problem, x, rows, sampled_products(*parts))


def _squares(
    problem: KernelProblem,
    x: NDArray[np.float64],
    rows: NDArray[np.int64],
    products: NDArray[np.float64],
) -> NDArray[np.float64]:
    errors = products + problem.alpha * x[rows] - problem.y[rows]
    return np.asarray(errors**2).reshape(rows.size, -1)


def _totals(
    squares: NDArray[np.float64], population: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return estimated sums over all equations, and the standard errors of these."""
    others = squares[_LARGEST_ENTRIES:]
    remaining, drawn = population - _LARGEST_ENTRIES, len(others)
    sums = squares[:_LARGEST_ENTRIES].sum(axis=0) + remaining * others.mean(axis=0)
    unseen = 1.0 - drawn / remaining
    return sums, remaining * others.std(axis=0, ddof=1) * math.sqrt(unseen / drawn)


def _relative(problem: KernelProblem, squares: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(problem.y.reshape(problem.rows, -1), axis=0)
    relative: NDArray[np.float64] = np.zeros_like(norms)
    np.divide(np.sqrt(squares), norms, out=relative, where=norms > 0.0)
    return relative
