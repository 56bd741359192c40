"""Kernel ridge regression without any approximation of the kernel."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from powersketch.kernel_ridge.dual_system import DualSystem
from powersketch.kernel_ridge.solutions import DualSolution
from powersketch.linalg import (
    SolverResult,
    conjugate_gradients,
    dominant_rows_message,
    warn_if_not_converged,
)
from powersketch.parameters import checked_tolerance


def exact_solution(
    system: DualSystem, *, fit_intercept: bool, tol: float, verbose: int
) -> tuple[DualSolution, SolverResult]:
    """Return coefficients and intercept, and how the solver fared."""
    tol = checked_tolerance(tol)
    targets = system.rows.targets
    right = targets.reshape(targets.shape[0], -1)
    if fit_intercept:
        right = np.column_stack((right, np.ones(right.shape[0])))
    result = _solve(system, right, tol, verbose)
    warn_if_not_converged(result)
    coef, intercept = result.x, np.zeros(result.x.shape[1])
    if fit_intercept:
        coef, intercept = _with_intercept(result.x)
    dual = DualSolution(
        system.alpha, coef.reshape(targets.shape), intercept.reshape(targets.shape[1:])
    )
    return dual, result


def _solve(
    system: DualSystem, right: NDArray[np.float64], tol: float, verbose: int
) -> SolverResult:
    operator = system.operator()
    inverse = system.inverse(operator, verbose)
    result = conjugate_gradients(operator, right, preconditioner=inverse, tol=tol, verbose=verbose)
    if result.converged:
        return result
    needed = getattr(inverse, "nugget", system.alpha)
    cause = dominant_rows_message(system.kernel.diagonal(system.rows.X), system.rows.numbers)
    message = _failure(result, tol, system.alpha, needed, cause)
    return dataclasses.replace(result, message=message)


def _failure(
    result: SolverResult, tol: float, alpha: float, needed: float, cause: str | None
) -> str:
    """Say what was reached, and what a user of the estimator can change."""
    reached = (
        f"mode='exact' has not converged: a residual of {result.residual:.2g} after "
        f"{result.iterations} iterations is above tol={tol:g}"
    )
    if cause is not None:
        return f"{reached}: {cause}."
    if needed > alpha:
        return (
            f"{reached}. The system is singular to working precision, as it is for alpha=0 where "
            f"rows of X are equal: use an alpha well above {needed:.1e}, which its factor took, or "
            "mode='primal'."
        )
    return f"{reached}: use a larger tol, a larger alpha than {alpha:g}, or mode='primal'."


def _with_intercept(
    solutions: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients and intercepts from the solutions for the targets and for ones.

    The derivative by the intercept vanishes where the coefficients have the sum zero.
    """
    of_targets, of_ones = solutions[:, :-1], solutions[:, -1]
    # The sum is zero only where the solver has failed at once, and all is zero.
    intercept = of_targets.sum(axis=0) / (of_ones.sum() or 1.0)
    return of_targets - np.multiply.outer(of_ones, intercept), intercept
