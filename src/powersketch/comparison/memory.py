"""How much memory a map and its transforms take."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most that Python and NumPy held at a time on top of what they held before.

    Scratch memory of compiled code, a few MiB for each thread, is not seen.
    """
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return max(peak - before, 0)


def stored_bytes(holder: Any) -> int:
    """Return what all arrays take that an object holds, each counted once."""
    return _stored_bytes(holder, set())


def _stored_bytes(holder: Any, seen: set[int]) -> int:
    if isinstance(holder, np.ndarray) and isinstance(holder.base, np.ndarray):
        holder = holder.base  # A view keeps all of the memory that it looks at.
    if id(holder) in seen or isinstance(holder, type | ModuleType):
        return 0
    seen.add(id(holder))
    if isinstance(holder, np.ndarray):
        return holder.nbytes
    parts = [*getattr(holder, "__dict__", {}).values()]
    if isinstance(holder, Mapping):
        parts += holder.values()
    elif isinstance(holder, list | tuple | set | frozenset):
        parts += holder
    return sum(_stored_bytes(part, seen) for part in parts)
