"""Cycles of a solver, between which the residual is computed anew from the solution.

A solver's own residual, be it by recursion or from rounded products, drifts away from the true
one. Iterating once more on the true one is iterative refinement: it gives float64 accuracy even
where all products but one in a cycle are rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch.execution import Progress
from powersketch.linalg.panels import Float64
from powersketch.linalg.systems import BlockFunction, LinearSystem, column_norms

Callback: TypeAlias = Callable[[int, float], object]
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.intp]

# In the norm of A every step of conjugate gradients lowers the error, so that residuals are never
# above the root of the condition number times the first one: with more than this, the matrix is
# singular to working precision, and what is iterated is rounding errors.
LARGEST_GROWTH = float(np.finfo(np.float64).eps) ** -0.5


class IterationLog:
    """The relative residuals so far, and who is told of them."""

    def __init__(
        self, what: str, max_iterations: int, callback: Callback | None, verbose: int
    ) -> None:
        self._what, self._limit, self._verbose = what, max_iterations, verbose
        self._callback = callback
        self._progress = Progress(what, max_iterations, verbose, unit="iterations")
        self.relative: Float64 = np.zeros(0)
        self.history: list[float] = []

    @property
    def iterations(self) -> int:
        """How many steps were taken."""
        return len(self.history) - 1

    @property
    def remaining(self) -> int:
        """How many steps may follow."""
        return self._limit - self.iterations

    def begin(self, relative: Float64) -> None:
        """Note the residuals at the start."""
        self.relative = relative.copy()
        self.history.append(float(relative.max()))

    def record(self, columns: Numbers, relative: Float64) -> None:
        """Note the residuals of some columns after a step."""
        self.relative[columns] = relative
        self.history.append(float(self.relative.max()))
        self._progress.update(self.iterations, self._remark())
        if self._callback is not None:
            self._callback(self.iterations, self.history[-1])

    def correct(self, columns: Numbers, relative: Float64) -> None:
        """Replace the residuals of some columns by the true ones."""
        self.relative[columns] = relative
        self.history[-1] = float(self.relative.max())

    def end(self) -> None:
        """Finish the line of progress, if the last step has not."""
        if 0 < self.iterations < self._limit:
            last = Progress(self._what, self.iterations, self._verbose, unit="iterations")
            last.update(self.iterations, self._remark())

    def _remark(self) -> str:
        return f", residual {self.history[-1]:.1e}"


class Cycle(Protocol):
    """A solver that starts at zero."""

    def __call__(
        self,
        product: BlockFunction,
        rounding: float,
        right: Float64,
        goal: float,
        columns: Numbers,
        log: IterationLog,
    ) -> tuple[Float64, Mask]:
        """Return approximate solutions for `right`, and for which of them the method failed.

        It iterates until every residual is below the goal or lost in rounding errors, or no
        steps remain in the log, where the right-hand sides have the given numbers.
        """


@dataclass(frozen=True, eq=False)
class Refined:
    """A solution for scaled right-hand sides; why it is no better, if it misses the tolerance."""

    x: Float64
    stalled: bool
    failed: bool


def refine(system: LinearSystem, cycle: Cycle, tol: float, log: IterationLog) -> Refined:
    """Run cycles until the true residuals meet the tolerance or do not get smaller by half."""
    x, residuals = _start(system)
    log.begin(column_norms(residuals))
    products = system.products()
    columns = np.flatnonzero(log.relative > tol)
    stalled = failed = False
    goal = tol
    while columns.size and log.remaining:
        before = log.relative[columns]
        correction, broken = cycle(*products[0], residuals[:, columns], goal, columns, log)
        candidates = x[:, columns] + correction
        fresh = system.right[:, columns] - system.exact_product(candidates)
        after = column_norms(fresh)
        # Before its last step a method may be above where it began, and yet nearer to the goal;
        # but a start other than zero is the best that is known, and is not to be lost.
        nearer = ~x[:, columns].any(axis=0) & (after <= LARGEST_GROWTH * before)
        better = (after < before) | (nearer & (log.remaining == 0))
        x[:, columns[better]] = candidates[:, better]
        residuals[:, columns[better]] = fresh[:, better]
        log.correct(columns, np.where(better, after, before))
        unfinished = ~(after <= tol)
        stuck = unfinished & ~(after <= before / 2.0) & (log.remaining > 0)
        if stuck.any() and len(products) > 1:
            # Products of the lower precision have given what they can.
            del products[0]
            stuck[:] = False
        stalled, failed = stalled or bool(stuck.any()), failed or bool((stuck & broken).any())
        columns = columns[unfinished & ~stuck]
        # A little below the tolerance, as the next true residual will be a little higher.
        goal = tol / 2.0
    log.end()
    return Refined(x, stalled, failed)


def _start(system: LinearSystem) -> tuple[Float64, Float64]:
    """Return where to start and the residuals there."""
    x, residuals = system.start.copy(), system.right.copy()
    if x.any():
        with np.errstate(over="ignore", invalid="ignore"):
            residuals -= system.exact_product(x)
            useless = ~np.isfinite(column_norms(residuals))
        # So large next to b that zero is nearer to the solution.
        x[:, useless], residuals[:, useless] = 0.0, system.right[:, useless]
    return x, residuals
