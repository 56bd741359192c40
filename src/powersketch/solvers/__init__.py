"""Solves linear systems with kernel matrices, given an operator and a preconditioner."""

from powersketch.solvers.conjugate_gradients import conjugate_gradients
from powersketch.solvers.factors import (
    CholeskyFactor,
    LowRankInverse,
    SpectralInverse,
    SquaredFactor,
    TriangularFactor,
)
from powersketch.solvers.gradient import preconditioned_gradient
from powersketch.solvers.operators import FactorOperator, KernelOperator
from powersketch.solvers.results import SolverResult, warn_if_not_converged

__all__ = [
    "CholeskyFactor",
    "FactorOperator",
    "KernelOperator",
    "LowRankInverse",
    "SolverResult",
    "SpectralInverse",
    "SquaredFactor",
    "TriangularFactor",
    "conjugate_gradients",
    "preconditioned_gradient",
    "warn_if_not_converged",
]
