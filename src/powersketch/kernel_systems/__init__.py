"""Kernel systems solved with the help of sketches."""

from powersketch.kernel_systems.approximations import default_rank
from powersketch.kernel_systems.preconditioner import (
    SketchPreconditioner,
    bytes_of_matrix,
    exact_preconditioner,
    is_factored,
)
from powersketch.kernel_systems.solve import solve_kernel_system

__all__ = [
    "SketchPreconditioner",
    "bytes_of_matrix",
    "default_rank",
    "exact_preconditioner",
    "is_factored",
    "solve_kernel_system",
]
