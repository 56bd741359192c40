"""How work is run: threads, interruption, progress."""

from powersketch.execution.interrupts import interruptible
from powersketch.execution.progress import Progress
from powersketch.execution.threads import ordered_map, thread_count

__all__ = ["Progress", "interruptible", "ordered_map", "thread_count"]
