"""Kernel systems, solved exactly with the help of sketches, or as sketched systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Rows
from powersketch.exceptions import InputTypeError
from powersketch.execution import thread_count
from powersketch.kernel_systems.exact_system import EXACT_PRECONDITIONERS, solve_exact
from powersketch.kernel_systems.inputs import (
    checked_alpha,
    checked_rows,
    checked_targets,
)
from powersketch.kernel_systems.preconditioner import STRATEGIES
from powersketch.kernel_systems.problem import KernelProblem
from powersketch.kernel_systems.sketched_data import default_coordinates, row_length
from powersketch.kernel_systems.sketched_system import SKETCHED_PRECONDITIONERS, solve_sketched
from powersketch.kernels import Kernel, as_kernel
from powersketch.linalg import SolverResult, warn_if_not_converged
from powersketch.parameters import (
    checked_integer,
    checked_tolerance,
    checked_verbose,
    one_of,
    refuse_unless_default,
)
from powersketch.random_streams import seed_from

__all__ = ["solve_kernel_system"]

# Multiplications for an exact kernel matrix that takes hours, and when a sketch saves most of them.
_MANY_MULTIPLICATIONS = 1e15
_LEAST_SAVING = 4


def solve_kernel_system(
    X: Any,
    y: ArrayLike,
    kernel: Kernel | str,
    *,
    alpha: float = 0.0,
    tol: float = 1e-6,
    operator: str = "auto",
    preconditioner: Any = "auto",
    method: str = "cg",
    max_iterations: int | None = None,
    n_components: int | None = None,
    memory_budget: int | None = None,
    callback: Callable[[int, float], object] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SolverResult:
    r"""Solve :math:`(K + \alpha I)\, x = y` for the kernel matrix K of the rows of X.

    Parameters
    ----------
    X : {array-like, sparse matrix or array} of shape (n, d)
        Finite real numbers, rows are samples. They are left as they are, as all arguments.
    y : array-like of shape (n,) or (n, t)
        One right-hand side or several, finite real numbers.
    kernel : powersketch.kernels.Kernel or str
        The kernel of the matrix, or its name (:func:`powersketch.kernels.as_kernel`).
    alpha : float, default=0.0
        Added to the diagonal of K; not negative.
    tol : float, default=1e-6
        The relative residual ‖y − (K + alpha I) x‖ / ‖y‖ to reach in every column.
    operator : {"auto", "exact", "sketched"}, default="auto"
        "exact" solves the system as it is. "sketched" solves one in which a sketch stands for K: a
        fast answer for long rows, but a rough one, as a sketch that is close to K can have a very
        different inverse. How far off it is comes from rows of K: 128 to 1024 of them, or all up
        to 128; with "features", all up to 4000. Where a sketch would not be shorter than the rows
        of X, "sketched-data" factors K itself. "auto" is "exact", unless K would take more than
        1e15 multiplications and a sketch saves three quarters of them.
    preconditioner : str, LinearOperator, array or callable, default="auto"
        An approximate inverse of K + alpha I, or how to make one: "cholesky" factors the stored
        matrix; "sketched-data", "features" and "nystroem" are strategies of
        :class:`SketchPreconditioner`, the last with uniform landmarks; "none" takes none. "auto"
        is "cholesky" up to 8000 rows if K fits into memory and `n_components` is None, else
        "nystroem"; for
        method="gradient", "sketched-data". For operator="sketched", it says which sketch to solve
        with: "sketched-data" ("auto") or "features".
    method : {"cg", "gradient"}, default="cg"
        Conjugate gradients, or the gradient steps of [SWYZ21], Algorithm 2, with a step that
        converges. That algorithm is operator="sketched", preconditioner="features" (then "auto").
    max_iterations : int, default=None
        At least 1, and only where there are iterations: operator="sketched" factors
        "sketched-data", without any. None allows 10 n steps of conjugate gradients, but no more
        than 10,000, or 10,000 gradient steps.
    n_components : int, default=None
        The size of the sketch, as for :class:`SketchPreconditioner`; operator="sketched" takes n
        coordinates where that has 3 n. Only where there is a sketch.
    memory_budget : int, default=None
        Bytes that the exact K may take; if it does not fit, it is computed anew in every step.
        None is half of the memory that is available now. A factor of K takes as much again. Only
        for operator="exact".
    callback : callable, default=None
        Called after every step with its number and the worst relative residual; only where there
        are iterations.
    random_state : int, RandomState or None, default=None
        Seed of all sketches and samples.
    n_jobs : int, default=None
        Number of threads, with scikit-learn's meaning.
    verbose : int, default=0
        Whether to report progress on standard error.

    Returns
    -------
    SolverResult
        Its residual is that of the exact system, whatever was solved; for operator="sketched" it
        may be an estimate, and then `residual_interval` holds with 99 % confidence. The history
        is that of the system that was solved.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        Where the residual is above the tolerance, with what was reached and what to try.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch import solve_kernel_system
    >>> from powersketch.kernels import Gaussian
    >>> X = np.random.default_rng(0).standard_normal((300, 2))
    >>> y = np.sin(X[:, 0])
    >>> result = solve_kernel_system(X, y, Gaussian(gamma=1.0), alpha=1e-3, tol=1e-10)
    >>> result.converged
    True
    >>> K = Gaussian(gamma=1.0)(X) + 1e-3 * np.eye(300)
    >>> bool(np.linalg.norm(K @ result.x - y) <= 1e-10 * np.linalg.norm(y))
    True
    """
    one_of("operator", operator, ("auto", "exact", "sketched"))
    one_of("method", method, ("cg", "gradient"))
    kernel = as_kernel(kernel)
    for name, value, least in (
        ("max_iterations", max_iterations, 1),
        ("n_components", n_components, 1),
        ("memory_budget", memory_budget, 0),
    ):
        if value is not None:
            checked_integer(name, value, least)
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback={callback!r} is not callable; give a function or None.")
    thread_count(n_jobs)
    checked_verbose(verbose)
    alpha, tol = checked_alpha(alpha), checked_tolerance(tol)
    _check_preconditioner(preconditioner, operator, method)
    X = checked_rows(X)
    targets = checked_targets(y, X.shape[0])
    if operator == "auto":
        operator = _chosen_operator(X, preconditioner)
    if operator == "sketched":
        _refuse_unused_by_sketch(preconditioner, method, memory_budget, max_iterations, callback)
    elif not _has_size(preconditioner):
        why = "with this preconditioner, which is no sketch; it is for 'nystroem' and the like"
        refuse_unless_default("n_components", n_components, None, why)
    problem = KernelProblem(
        X,
        targets,
        kernel.resolve(X),
        alpha,
        tol,
        max_iterations,
        n_components,
        memory_budget,
        callback,
        seed_from(random_state),
        n_jobs,
        verbose,
    )
    solve = solve_sketched if operator == "sketched" else solve_exact
    result = solve(problem, preconditioner, method)
    warn_if_not_converged(result)
    return result


def _check_preconditioner(preconditioner: Any, operator: str, method: str) -> None:
    """Refuse names that are unknown, or of no use for what is to be solved."""
    allowed: tuple[str, ...] = EXACT_PRECONDITIONERS
    if operator == "sketched":
        allowed = ("auto", "features") if method == "gradient" else SKETCHED_PRECONDITIONERS
    elif method == "gradient":
        allowed = ("auto", "cholesky", "features", "sketched-data")
    if isinstance(preconditioner, str):
        one_of(
            f"for operator={operator!r} and method={method!r}, preconditioner",
            preconditioner,
            allowed,
        )
    elif operator == "sketched" or method == "gradient":
        raise InputTypeError(
            f"preconditioner={preconditioner!r} is a {type(preconditioner).__name__}; allowed for "
            f"operator={operator!r} and method={method!r} are the names {', '.join(allowed)}."
        )


def _refuse_unused_by_sketch(
    preconditioner: Any,
    method: str,
    memory_budget: int | None,
    max_iterations: int | None,
    callback: Callable[[int, float], object] | None,
) -> None:
    """Refuse what belongs to the exact system, or to iterations where there are none."""
    why = "with operator='sketched', which does not compute K"
    refuse_unless_default("memory_budget", memory_budget, None, why)
    if method == "cg" and preconditioner != "features":
        why = "with operator='sketched', whose system is factored and not iterated"
        refuse_unless_default("max_iterations", max_iterations, None, why)
        refuse_unless_default("callback", callback, None, why)


def _has_size(preconditioner: Any) -> bool:
    """Tell whether the preconditioner is one that is made of so many components."""
    return isinstance(preconditioner, str) and preconditioner in ("auto", *STRATEGIES)


def _chosen_operator(X: Rows, preconditioner: Any) -> str:
    multiplications = float(X.shape[0]) ** 2 * row_length(X)
    saving = X.shape[1] >= _LEAST_SAVING * default_coordinates(X, 1)
    fitting = isinstance(preconditioner, str) and preconditioner in SKETCHED_PRECONDITIONERS
    return "sketched" if multiplications > _MANY_MULTIPLICATIONS and saving and fitting else "exact"
