"""Kernel ridge regression without any approximation of the kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersketch.kernel_ridge.dual_system import DualSystem
from powersketch.kernel_ridge.solutions import DualSolution
from powersketch.kernel_systems import solve_kernel_system
from powersketch.solvers import SolverResult, conjugate_gradients, warn_if_not_converged


def exact_solution(
    system: DualSystem, *, fit_intercept: bool, tol: float, verbose: int
) -> tuple[DualSolution, SolverResult]:
    """Return coefficients and intercept, and how the solver fared."""
    targets = system.rows.targets
    right = targets.reshape(targets.shape[0], -1)
    if fit_intercept:
        right = np.column_stack((right, np.ones(right.shape[0])))
    result = _solve(system, right, tol, verbose)
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
    if system.rows.weights is None:
        return solve_kernel_system(
            system.rows.X,
            right,
            system.kernel,
            alpha=system.alpha,
            tol=tol,
            operator="exact",
            memory_budget=system.memory_budget,
            random_state=system.seed,
            n_jobs=system.n_jobs,
            verbose=verbose,
        )
    result = conjugate_gradients(
        system.operator(), right, preconditioner=system.preconditioner(), tol=tol, verbose=verbose
    )
    warn_if_not_converged(result)
    return result


def _with_intercept(
    solutions: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return coefficients and intercepts from the solutions for the targets and for ones.

    The derivative by the intercept vanishes where the coefficients have the sum zero.
    """
    of_targets, of_ones = solutions[:, :-1], solutions[:, -1]
    intercept = of_targets.sum(axis=0) / of_ones.sum()
    return of_targets - np.multiply.outer(of_ones, intercept), intercept
