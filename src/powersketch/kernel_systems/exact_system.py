"""Solutions of the exact system."""

from __future__ import annotations

import dataclasses
from typing import Any

from powersketch.exceptions import InputError
from powersketch.kernel_systems.preconditioner import STRATEGIES
from powersketch.kernel_systems.problem import KernelProblem
from powersketch.linalg import (
    CholeskyFactor,
    KernelOperator,
    SolverResult,
    conjugate_gradients,
    dwarfing_rows,
    preconditioned_gradient,
)

EXACT_PRECONDITIONERS = ("auto", "cholesky", "none", *STRATEGIES)
# Up to here, factoring the matrix takes less time than the steps that it saves.
_FEW_ROWS = 8000


def solve_exact(problem: KernelProblem, preconditioner: Any, method: str) -> SolverResult:
    """Solve (K + alpha I) x = y by conjugate gradients or gradient steps."""
    operator = KernelOperator(
        problem.kernel,
        problem.X,
        problem.alpha,
        memory_budget=problem.memory_budget,
        n_jobs=problem.n_jobs,
    )
    if method == "gradient":
        inverse = _gradient_preconditioner(problem, operator, preconditioner)
        result = preconditioned_gradient(
            operator,
            problem.y,
            inverse.root(),
            random_state=problem.seed,
            **problem.solver_options,
        )
        result = dataclasses.replace(result, preconditioner=inverse.describe())
    else:
        inverse = exact_preconditioner(problem, operator, preconditioner)
        result = conjugate_gradients(
            operator, problem.y, preconditioner=inverse, **problem.solver_options
        )
    return _with_cause(_with_advice(result, problem.alpha, inverse), operator)


def is_factored(operator: KernelOperator) -> bool:
    """Return whether the matrix is stored, and so small that it is factored."""
    return operator.matrix is not None and operator.shape[0] <= _FEW_ROWS


def exact_preconditioner(
    problem: KernelProblem, operator: KernelOperator, preconditioner: Any
) -> Any:
    """Return the given preconditioner, or the one of a name: "auto" factors what is_factored.

    But a number of components asks for a sketch that has so many.
    """
    if not isinstance(preconditioner, str):
        return preconditioner
    if preconditioner == "auto":
        factored = is_factored(operator) and problem.n_components is None
        preconditioner = "cholesky" if factored else "nystroem"
    if preconditioner == "none":
        return None
    if preconditioner == "cholesky":
        return _cholesky(problem, operator)
    return problem.sketched(preconditioner, operator.matrix)


def _gradient_preconditioner(
    problem: KernelProblem, operator: KernelOperator, preconditioner: str
) -> Any:
    if preconditioner == "cholesky":
        return _cholesky(problem, operator)
    return problem.sketched("sketched-data" if preconditioner == "auto" else preconditioner)


def _cholesky(problem: KernelProblem, operator: KernelOperator) -> CholeskyFactor:
    """Return the factor of the stored matrix, of which it takes a copy."""
    if operator.matrix is None:
        raise InputError(
            f"preconditioner='cholesky' needs the kernel matrix, and its {problem.rows}² entries "
            "do not fit memory_budget: use a larger one, or preconditioner='sketched-data'."
        )
    return CholeskyFactor(operator.matrix, alpha=problem.alpha, dtype=problem.X.dtype)


def _with_cause(result: SolverResult, operator: KernelOperator) -> SolverResult:
    """Name the rows that are the reason of a failure, where there are such."""
    cause = None if result.converged else dwarfing_rows(operator.diagonal() - operator.alpha)
    if cause is None:
        return result
    return dataclasses.replace(result, message=f"{result.message} The likely reason: {cause}.")


def _with_advice(result: SolverResult, alpha: float, inverse: Any) -> SolverResult:
    """Say so where the system has no accurate solution at all."""
    nugget = getattr(inverse, "nugget", getattr(inverse, "nugget_", alpha))
    factored = isinstance(inverse, CholeskyFactor) or (
        getattr(inverse, "strategy_", None) == "sketched-data"
    )
    if result.converged or not factored or nugget <= alpha:
        return result
    advice = (
        f" K + alpha I is singular to working precision, as it is for alpha=0 where rows of X are "
        f"equal: use an alpha well above {nugget:.1e}, which its factor took."
    )
    return dataclasses.replace(result, message=result.message + advice)
