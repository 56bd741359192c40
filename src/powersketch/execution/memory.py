"""How much memory there is, and what fits into it."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from powersketch.exceptions import InputError

# Where the two versions of control groups are mounted, the names of their files, and of the entry
# of memory.stat that counts the cache of files: it is part of the usage, but is given back.
_GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}

# Bytes. For less, reading what the system says is not worth the time.
_ALWAYS_AVAILABLE = 1 << 20


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes that can be had without swapping and without being killed.

    This is the least of what the machine has left, what is left of the limits of all control
    groups (containers) that the process is in, and of the limit of its address space. `root` is
    where the files of the system are.
    """
    left = [_left_on_machine(root), *_left_in_groups(root), *_left_in_address_space(root)]
    return max(min(left), 0)


def check_fits_memory(what: str, needed: int, remedy: str) -> None:
    """Refuse, before the work begins, what takes more memory than is available."""
    if needed <= _ALWAYS_AVAILABLE:
        return
    available = available_memory()
    if needed > available:
        raise InputError(
            f"{what} takes at least {needed / 2**30:.1f} GiB of memory, and "
            f"{available / 2**30:.1f} GiB are available: {remedy}."
        )


def _left_on_machine(root: Path) -> int:
    free = _entries(root / "proc/meminfo").get("MemAvailable:")
    # Only Linux has the file.
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return pages if free is None else free * 1024


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what is left of every limit, from the process's own group up to the root."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in _GROUPS:
                mount, *names = _GROUPS[controller]
                group = PurePosixPath(path.lstrip("/"))
                for folder in (group, *group.parents):
                    yield from _left_in_group(root / mount / folder, *names)


def _left_in_group(folder: Path, limit: str, usage: str, cache: str) -> Iterator[int]:
    """Yield what is left of the group's limit, if it has one that can be seen from here."""
    most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
    if most.isdigit() and used.isdigit():
        yield int(most) - int(used) + _entries(folder / "memory.stat").get(cache, 0)


def _left_in_address_space(root: Path) -> Iterator[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        pages = (_text(root / "proc/self/statm") or "0").split()[0]
        yield limit - int(pages) * resource.getpagesize()


def _entries(path: Path) -> dict[str, int]:
    """Return the lines "name number ..." of a file."""
    lines = (line.split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _text(path: Path) -> str:
    """Return what the file says; nothing where the system has no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
