"""Solutions of sketched systems, and how far they are from those of the exact ones.

A :class:`KernelOperator` says which system is meant; its matrix is not computed.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from powersketch.arrays import Float64
from powersketch.exceptions import InputError
from powersketch.kernel_systems.approximations import (
    default_coordinates,
    feature_approximation,
    sketched_data,
)
from powersketch.kernel_systems.residuals import (
    TrueResiduals,
    estimated_residuals,
    exact_residuals,
)
from powersketch.linalg import (
    FactorOperator,
    KernelOperator,
    SolverResult,
    conjugate_gradients,
    preconditioned_gradient,
)
from powersketch.random_streams import RandomStreams

# More coordinates per row pay as a preconditioner, but not for a solution this inexact: a second
# one lowers the residual by a third and takes a third more time.
_COORDINATES_PER_ROW = 1
# Up to here, a product with the exact matrix takes less time than gradient steps do.
_FEW_ROWS = 4000
_SOLVED = "solved the sketched system, not the exact one"
_STOPPED = "stopped in the sketched system, not the exact one"


def solve_sketched_data(
    system: KernelOperator, y: Float64, size: int | None, tol: float, seed: int
) -> SolverResult:
    """Solve for the exact kernel of compressed rows, by its factor."""
    streams = _streams(seed)
    size = size or default_coordinates(system.X, _COORDINATES_PER_ROW)
    how, solved = f"{_SOLVED} (by its Cholesky factor)", f"{size} sketched coordinates"
    if size >= system.X.shape[1]:
        how = "factored the exact kernel matrix, as a sketch would be no shorter than rows of X"
        solved = "the data"
    approximation = sketched_data(system, size, streams)
    x = approximation.inverse @ y
    residuals = estimated_residuals(system, x, y, streams)
    return SolverResult(
        x=x,
        converged=residuals.worst <= tol,
        iterations=1,
        residual=residuals.worst,
        residuals=residuals.values,
        history=np.array([1.0, residuals.worst]),
        message=_message(how, residuals, tol),
        operator=f"exact kernel of {solved}",
        preconditioner=f"sketched-data, {approximation.text}",
        residual_interval=residuals.interval,
    )


def solve_with_features(
    system: KernelOperator,
    y: Float64,
    size: int | None,
    method: str,
    seed: int,
    options: dict[str, Any],
) -> SolverResult:
    """Solve for Z Zᵀ + alpha I; with method="gradient" this is [SWYZ21], Algorithm 2.

    The options are those of iterative solvers.
    """
    _check_full_rank(size, len(y), system.alpha, method)
    streams, tol = _streams(seed), options["tol"]
    Z, approximation = feature_approximation(system, size, streams, options["verbose"])
    product, inverse = FactorOperator(Z, system.alpha), approximation.inverse
    if method == "gradient":
        root = inverse.root()
        result = preconditioned_gradient(product, y, root, random_state=seed, **options)
    else:
        result = conjugate_gradients(product, y, preconditioner=inverse, **options)
    if len(y) <= _FEW_ROWS:
        residuals = exact_residuals(system, result.x, y)
    else:
        residuals = estimated_residuals(system, result.x, y, streams)
    how = f"{_SOLVED if result.converged else _STOPPED} ({result.message.rstrip('.')})"
    return dataclasses.replace(
        result,
        converged=residuals.worst <= tol,
        residual=residuals.worst,
        residuals=residuals.values,
        residual_interval=residuals.interval,
        message=_message(how, residuals, tol),
        preconditioner=approximation.text,
    )


def _streams(seed: int) -> RandomStreams:
    return RandomStreams(seed, "solve_kernel_system")


def _message(how: str, residuals: TrueResiduals, tol: float) -> str:
    reached = residuals.worst <= tol
    advice = "" if reached else f", above tol={tol:g}: use operator='exact' for a smaller one"
    return f"{how}; the true residual is {residuals.describe()}{advice}."


def _check_full_rank(size: int | None, rows: int, alpha: float, method: str) -> None:
    if size is None or size >= rows or (alpha > 0.0 and method == "cg"):
        return
    remedy = "choose at least that many" + ("" if method == "gradient" else ", or an alpha above 0")
    raise InputError(
        f"n_components={size} features are fewer than the {rows} rows of X, and the "
        f"sketched system has no triangular factor: {remedy}."
    )
