"""Solves linear systems with kernel matrices, given an operator and a preconditioner."""

from powersketch.linalg.conjugate_gradients import conjugate_gradients
from powersketch.linalg.dwarfing_rows import dwarfing_rows
from powersketch.linalg.factors import (
    CholeskyFactor,
    LowRankInverse,
    SpectralInverse,
    SquaredFactor,
    TriangularFactor,
)
from powersketch.linalg.gradient import preconditioned_gradient
from powersketch.linalg.operators import FactorOperator, KernelOperator
from powersketch.linalg.results import SolverResult, warn_if_not_converged
from powersketch.linalg.triangular_rows import TriangularRows, jittered_cholesky

__all__ = [
    "CholeskyFactor",
    "FactorOperator",
    "KernelOperator",
    "LowRankInverse",
    "SolverResult",
    "SpectralInverse",
    "SquaredFactor",
    "TriangularFactor",
    "TriangularRows",
    "conjugate_gradients",
    "dwarfing_rows",
    "jittered_cholesky",
    "preconditioned_gradient",
    "warn_if_not_converged",
]
