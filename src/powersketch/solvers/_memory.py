"""How much memory there is, and what fits into it."""

from __future__ import annotations

import os

from powersketch.parameters import checked_integer

_MEMORY_FILE = "/proc/meminfo"


def checked_budget(memory_budget: int | None) -> int:
    """Return the budget in bytes; None stands for half of the memory that is available now."""
    if memory_budget is None:
        return available_memory() // 2
    return checked_integer(
        "memory_budget", memory_budget, 0, remedy="give bytes, or None for half of what is free"
    )


def available_memory() -> int:
    """Return the bytes that can be had without swapping, as far as the system tells."""
    try:
        with open(_MEMORY_FILE, encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # Only Linux has the file.
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
