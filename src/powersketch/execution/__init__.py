"""How work is run: threads, interruption, progress, LAPACK without Python's lock."""

from powersketch.execution.factorisation import cholesky_in_place
from powersketch.execution.interrupts import interruptible
from powersketch.execution.memory import check_fits_machine
from powersketch.execution.progress import Progress
from powersketch.execution.threads import (
    blas_thread_count,
    blas_threads,
    ordered_map,
    thread_count,
)

__all__ = [
    "Progress",
    "blas_thread_count",
    "blas_threads",
    "check_fits_machine",
    "cholesky_in_place",
    "interruptible",
    "ordered_map",
    "thread_count",
]
