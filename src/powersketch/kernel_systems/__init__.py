"""Kernel systems solved with the help of sketches."""

from powersketch.kernel_systems.maps import map_for
from powersketch.kernel_systems.preconditioner import SketchPreconditioner
from powersketch.kernel_systems.solve import solve_kernel_system

__all__ = ["SketchPreconditioner", "map_for", "solve_kernel_system"]
