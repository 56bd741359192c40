"""The outcome of a solver in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.linalg.refinement import IterationLog, Refined
from powersketch.linalg.results import SolverResult
from powersketch.linalg.systems import LinearSystem, described

_PRECISION = float(np.finfo(np.float64).eps)


def solver_result(
    system: LinearSystem,
    refined: Refined,
    log: IterationLog,
    tol: float,
    preconditioner: str,
    failure: str,
) -> SolverResult:
    """Return the result; `failure` says what it means that the method itself failed."""
    residual = float(log.relative.max())
    x = system.unscaled(refined.x)
    within_range = bool(np.isfinite(x).all())
    converged = residual <= tol and within_range
    reached = f"a residual of {residual:.2g} after {_counted(log.iterations)}"
    if converged:
        message = f"converged to {reached}."
    elif not within_range:
        message = (
            f"the solution, with {reached}, is beyond the range of float64: solve for a smaller "
            "multiple of b."
        )
    else:
        message = _reason(system, refined, reached, f"above tol={tol:g}", failure)
    return SolverResult(
        x=x,
        converged=converged,
        iterations=log.iterations,
        residual=residual,
        residuals=log.relative.copy(),
        history=np.array(log.history),
        message=message,
        operator=described(system.operator),
        preconditioner=preconditioner,
    )


def larger_alpha(operator: Any) -> str:
    """Return the advice to regularise more, with what there is now."""
    now = getattr(operator, "alpha", None)
    return "a larger alpha" if now is None else f"a larger alpha than {now:g}"


def _reason(system: LinearSystem, refined: Refined, reached: str, missed: str, failure: str) -> str:
    more = larger_alpha(system.operator)
    if refined.failed:
        return f"stopped at {reached}, {missed}: {failure}."
    if refined.stalled:
        return (
            f"stagnated at {reached}, {missed}: the precision allows about {_PRECISION:.1e} times "
            "the condition number, and of a singular matrix that is infinite: use a larger tol or "
            f"{more}."
        )
    return (
        f"not converged: {reached}, the most allowed, is {missed}: allow more iterations, or use "
        f"a better preconditioner or {more}."
    )


def _counted(iterations: int) -> str:
    return "1 iteration" if iterations == 1 else f"{iterations} iterations"
