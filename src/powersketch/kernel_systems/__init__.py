"""Kernel systems solved with the help of sketches."""

from powersketch.kernel_systems.exact_system import exact_preconditioner, is_factored
from powersketch.kernel_systems.inputs import check_representable
from powersketch.kernel_systems.maps import kernel_parameters, map_for
from powersketch.kernel_systems.nystroem import default_rank
from powersketch.kernel_systems.preconditioner import SketchPreconditioner
from powersketch.kernel_systems.problem import KernelProblem
from powersketch.kernel_systems.solve import solve_kernel_system

__all__ = [
    "KernelProblem",
    "SketchPreconditioner",
    "check_representable",
    "default_rank",
    "exact_preconditioner",
    "is_factored",
    "kernel_parameters",
    "map_for",
    "solve_kernel_system",
]
