"""How work is run: threads, interruption, progress, LAPACK without Python's lock."""

from powersketch.execution.factorisation import cholesky_in_place
from powersketch.execution.interrupts import interruptible
from powersketch.execution.memory import available_memory, check_fits_memory
from powersketch.execution.progress import Progress
from powersketch.execution.threads import (
    blas_thread_count,
    blas_threads,
    ordered_map,
    thread_count,
)

__all__ = [
    "Progress",
    "available_memory",
    "blas_thread_count",
    "blas_threads",
    "check_fits_memory",
    "cholesky_in_place",
    "interruptible",
    "ordered_map",
    "thread_count",
]
