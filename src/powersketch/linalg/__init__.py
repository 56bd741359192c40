"""Linear systems: operators, factors and approximate inverses, iterative solvers."""

from powersketch.linalg.cholesky import (
    TriangularRows,
    cholesky_in_place,
    cholesky_solution,
    dominant_rows_message,
    jittered_cholesky,
)
from powersketch.linalg.inverses import (
    CholeskyFactor,
    LowRankInverse,
    SquaredFactor,
    TriangularFactor,
)
from powersketch.linalg.iterations import conjugate_gradients, preconditioned_gradient
from powersketch.linalg.lanczos import (
    ExtremeEigenvalues,
    ResolventBounds,
    extreme_eigenvalues,
    ritz_values,
)
from powersketch.linalg.operators import FactorOperator, KernelOperator, SymmetricOperator
from powersketch.linalg.refinement import SolverResult, warn_if_not_converged

__all__ = [
    "CholeskyFactor",
    "ExtremeEigenvalues",
    "FactorOperator",
    "KernelOperator",
    "LowRankInverse",
    "ResolventBounds",
    "SolverResult",
    "SquaredFactor",
    "SymmetricOperator",
    "TriangularFactor",
    "TriangularRows",
    "cholesky_in_place",
    "cholesky_solution",
    "conjugate_gradients",
    "dominant_rows_message",
    "extreme_eigenvalues",
    "jittered_cholesky",
    "preconditioned_gradient",
    "ritz_values",
    "warn_if_not_converged",
]
