"""Kernel systems, solved exactly with the help of sketches, or as sketched systems."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from powersketch.arrays import Float64, Rows, slices
from powersketch.docstrings import documented
from powersketch.engines import engine_of
from powersketch.exceptions import InputTypeError
from powersketch.kernel_systems.approximations import default_coordinates, row_length
from powersketch.kernel_systems.preconditioner import STRATEGIES, exact_preconditioner
from powersketch.kernel_systems.sketched import solve_sketched_data, solve_with_features
from powersketch.kernels import Kernel
from powersketch.linalg import (
    CholeskyFactor,
    KernelOperator,
    SolverResult,
    conjugate_gradients,
    dominant_rows_message,
    preconditioned_gradient,
    warn_if_not_converged,
)
from powersketch.parameters import (
    checked_integer,
    checked_tolerance,
    checked_verbose,
    one_of,
    refuse_unless_default,
)
from powersketch.random_streams import seed_from
from powersketch.validation import checked_columns

_EXACT_PRECONDITIONERS = ("auto", "cholesky", "none", *STRATEGIES)
_SKETCHED_PRECONDITIONERS = ("auto", "sketched-data", "features")
# Multiplications for an exact kernel matrix that takes hours, and when a sketch saves most of them.
_MANY_MULTIPLICATIONS = 1e15
_LEAST_SAVING = 4
_ROWS_OF_DIAGONAL = 4096


@documented
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
    X : {array-like, sparse matrix or array, Dask array or DataFrame} of shape (n, d)
        Finite real numbers, rows are samples. They are left as they are, as all arguments. With a
        Dask collection, products with the exact K are computed block by block on its workers;
        preconditioners are then "nystroem" ("auto"), "features" and "none".
    y : array-like of shape (n,) or (n, t)
        One right-hand side or several, finite real numbers.
    kernel : powersketch.kernels.Kernel or str
        The kernel of the matrix, or its name for :func:`powersketch.kernels.as_kernel`.
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
        "nystroem"; for method="gradient", "sketched-data". For operator="sketched", it says which
        sketch to solve with: "sketched-data" ("auto") or "features".
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
    %(random_state)s
    %(n_jobs)s
    %(verbose)s

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
    engine = engine_of((X, y))
    if engine is not None:
        given = {name: value for name, value in locals().items() if name != "engine"}
        return cast(SolverResult, engine.solve(**given))
    _check_names(operator, preconditioner, method)
    for name, value in (("max_iterations", max_iterations), ("n_components", n_components)):
        if value is not None:
            checked_integer(name, value, 1)
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback={callback!r} is not callable; give a function or None.")
    verbose, tol = checked_verbose(verbose), checked_tolerance(tol)
    seed = seed_from(random_state)
    system = KernelOperator(kernel, X, alpha, memory_budget=memory_budget, n_jobs=n_jobs)
    remedy = ": give an entry or a row of y for every row of X"
    targets = checked_columns("y", y, system.shape[0], remedy)
    if operator == "auto":
        operator = _chosen_operator(system.X, preconditioner)
    options = {
        "tol": tol,
        "max_iterations": max_iterations,
        "callback": callback,
        "verbose": verbose,
    }
    unused = _unused_options(operator, preconditioner, method)
    given = {**options, "n_components": n_components, "memory_budget": memory_budget}
    for name, why in unused.items():
        refuse_unless_default(name, given[name], None, why)
    if operator == "exact":
        result = _solve_exact(system, targets, preconditioner, method, n_components, seed, options)
    elif preconditioner == "features" or method == "gradient":
        result = solve_with_features(system, targets, n_components, method, seed, options)
    else:
        result = solve_sketched_data(system, targets, n_components, tol, seed)
    warn_if_not_converged(result)
    return result


def _solve_exact(
    operator: KernelOperator,
    y: Float64,
    preconditioner: Any,
    method: str,
    n_components: int | None,
    seed: int,
    options: dict[str, Any],
) -> SolverResult:
    """Solve (K + alpha I) x = y by conjugate gradients or gradient steps."""
    if method == "gradient" and preconditioner == "auto":
        preconditioner = "sketched-data"
    inverse = exact_preconditioner(
        operator, preconditioner, n_components=n_components, seed=seed, verbose=options["verbose"]
    )
    if method == "gradient":
        root = inverse.root()
        result = preconditioned_gradient(operator, y, root, random_state=seed, **options)
        result = dataclasses.replace(result, preconditioner=inverse.describe())
    else:
        result = conjugate_gradients(operator, y, preconditioner=inverse, **options)
    return result if result.converged else _with_advice(result, operator, inverse)


def _with_advice(result: SolverResult, operator: KernelOperator, inverse: Any) -> SolverResult:
    """Say so where the system has no accurate solution, and name the rows that are the reason."""
    message, alpha = result.message, operator.alpha
    nugget = getattr(inverse, "nugget", getattr(inverse, "nugget_", alpha))
    factored = isinstance(inverse, CholeskyFactor) or (
        getattr(inverse, "strategy_", None) == "sketched-data"
    )
    if factored and nugget > alpha:
        message += (
            " K + alpha I is singular to working precision, as it is for alpha=0 where rows of X "
            f"are equal: use an alpha well above {nugget:.1e}, which its factor took."
        )
    blocks = slices(operator.shape[0], _ROWS_OF_DIAGONAL)
    rows = (operator.X[block].astype(np.float64, copy=False) for block in blocks)
    cause = dominant_rows_message(np.concatenate([operator.kernel.diagonal(x) for x in rows]))
    if cause is not None:
        message += f" The likely reason: {cause}."
    return dataclasses.replace(result, message=message)


def _check_names(operator: str, preconditioner: Any, method: str) -> None:
    """Refuse names that are unknown, or of no use for what is to be solved."""
    one_of("operator", operator, ("auto", "exact", "sketched"))
    one_of("method", method, ("cg", "gradient"))
    allowed: tuple[str, ...] = _EXACT_PRECONDITIONERS
    if operator == "sketched":
        allowed = ("auto", "features") if method == "gradient" else _SKETCHED_PRECONDITIONERS
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


def _unused_options(operator: str, preconditioner: Any, method: str) -> dict[str, str]:
    """Return the names of options that have no effect, with the reason why."""
    if operator == "exact":
        if isinstance(preconditioner, str) and preconditioner in ("auto", *STRATEGIES):
            return {}
        why = "with this preconditioner, which is no sketch; it is for 'nystroem' and the like"
        return {"n_components": why}
    unused = {"memory_budget": "with operator='sketched', which does not compute K"}
    if method == "cg" and preconditioner != "features":
        why = "with operator='sketched', whose system is factored and not iterated"
        unused |= {"max_iterations": why, "callback": why}
    return unused


def _chosen_operator(X: Rows, preconditioner: Any) -> str:
    """Return "sketched" for systems that would take hours, where a sketch saves most of them."""
    rows, columns = X.shape
    # A row has no more entries than columns.
    if float(rows) ** 2 * columns <= _MANY_MULTIPLICATIONS:
        return "exact"
    many = float(rows) ** 2 * row_length(X) > _MANY_MULTIPLICATIONS
    saving = columns >= _LEAST_SAVING * default_coordinates(X, 1)
    suits = isinstance(preconditioner, str) and preconditioner in _SKETCHED_PRECONDITIONERS
    return "sketched" if many and saving and suits else "exact"
