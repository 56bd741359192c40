"""Solutions of the system in which a sketch stands for the kernel matrix, and what they miss."""

from __future__ import annotations

import dataclasses

import numpy as np

from powersketch.exceptions import InputError
from powersketch.kernel_systems.feature_factor import feature_approximation, fitted_map
from powersketch.kernel_systems.problem import KernelProblem
from powersketch.kernel_systems.residuals import (
    TrueResiduals,
    estimated_residuals,
    exact_residuals,
)
from powersketch.kernel_systems.sketched_data import default_coordinates, sketched_data
from powersketch.linalg import (
    FactorOperator,
    SolverResult,
    conjugate_gradients,
    preconditioned_gradient,
)

SKETCHED_PRECONDITIONERS = ("auto", "sketched-data", "features")
# More coordinates per row pay as a preconditioner, but not for a solution this inexact: a second
# one lowers the residual by a third and takes a third more time.
_COORDINATES_PER_ROW = 1
# Up to here, a product with the exact matrix takes less time than gradient steps do.
_FEW_ROWS = 4000
_SOLVED = "solved the sketched system, not the exact one"
_STOPPED = "stopped in the sketched system, not the exact one"


def solve_sketched(problem: KernelProblem, preconditioner: str, method: str) -> SolverResult:
    """Solve the sketched system and say how far the solution is from that of the exact one."""
    if preconditioner == "features" or method == "gradient":
        return _solve_with_features(problem, method)
    return _solve_sketched_data(problem)


def _solve_sketched_data(problem: KernelProblem) -> SolverResult:
    """Solve for the exact kernel of compressed rows, by its factor."""
    size = problem.n_components or default_coordinates(problem.X, _COORDINATES_PER_ROW)
    outcome = f"{_SOLVED} (by its Cholesky factor)"
    operator = f"exact kernel of {size} sketched coordinates"
    if size >= problem.X.shape[1]:
        outcome = "factored the exact kernel matrix, as a sketch would be no shorter than rows of X"
        operator = "exact kernel of the data"
    built = sketched_data(
        problem.X, problem.kernel, problem.alpha, size, problem.streams, problem.n_jobs
    )
    x = built.inverse @ problem.y
    residuals = estimated_residuals(problem, x)
    return SolverResult(
        x=x,
        converged=residuals.worst <= problem.tol,
        iterations=1,
        residual=residuals.worst,
        residuals=residuals.values,
        history=np.array([1.0, residuals.worst]),
        message=_message(outcome, residuals, problem.tol),
        operator=operator,
        preconditioner=f"sketched-data, {built.text}",
        residual_interval=residuals.interval,
    )


def _solve_with_features(problem: KernelProblem, method: str) -> SolverResult:
    """Solve for Z Zᵀ + alpha I; with method="gradient" this is [SWYZ21], Algorithm 2."""
    _check_full_rank(problem, method)
    sketch = fitted_map(
        problem.X,
        problem.kernel,
        problem.n_components,
        None,
        problem.streams,
        problem.n_jobs,
        problem.verbose,
    )
    Z = sketch.transform(problem.X)
    diagonal = problem.kernel.diagonal(problem.X).astype(np.float64)
    built = feature_approximation(Z, diagonal, problem.alpha, problem.streams, problem.n_jobs)
    operator = FactorOperator(Z, problem.alpha)
    if method == "gradient":
        result = preconditioned_gradient(
            operator,
            problem.y,
            built.inverse.root(),
            random_state=problem.seed,
            **problem.solver_options,
        )
    else:
        result = conjugate_gradients(
            operator, problem.y, preconditioner=built.inverse, **problem.solver_options
        )
    known = problem.rows <= _FEW_ROWS
    residuals = (exact_residuals if known else estimated_residuals)(problem, result.x)
    outcome = f"{_SOLVED if result.converged else _STOPPED} ({result.message.rstrip('.')})"
    return dataclasses.replace(
        result,
        converged=residuals.worst <= problem.tol,
        residual=residuals.worst,
        residuals=residuals.values,
        residual_interval=residuals.interval,
        message=_message(outcome, residuals, problem.tol),
        preconditioner=built.text,
    )


def _message(outcome: str, residuals: TrueResiduals, tol: float) -> str:
    reached = residuals.worst <= tol
    advice = "" if reached else f", above tol={tol:g}: use operator='exact' for a smaller one"
    return f"{outcome}; the true residual is {residuals.describe()}{advice}."


def _check_full_rank(problem: KernelProblem, method: str) -> None:
    size = problem.n_components
    if size is None or size >= problem.rows or (problem.alpha > 0.0 and method == "cg"):
        return
    remedy = "choose at least that many" + ("" if method == "gradient" else ", or an alpha above 0")
    raise InputError(
        f"n_components={size} features are fewer than the {problem.rows} rows of X, and the "
        f"sketched system has no triangular factor: {remedy}."
    )
