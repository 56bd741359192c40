"""How work is run: threads, interrupts, progress, memory."""

from powersketch.execution.memory import available_memory, check_fits_memory
from powersketch.execution.progress import Progress
from powersketch.execution.threads import (
    blas_thread_count,
    blas_threads,
    interruptible,
    ordered_map,
    thread_count,
)

__all__ = [
    "Progress",
    "available_memory",
    "blas_thread_count",
    "blas_threads",
    "check_fits_memory",
    "interruptible",
    "ordered_map",
    "thread_count",
]
