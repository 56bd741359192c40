"""How much memory the machine has."""

from __future__ import annotations

import os

from powersketch.exceptions import InputError


def machine_memory() -> int:
    """Return the bytes of memory that the machine has, in use or not."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_fits_machine(what: str, needed: int, remedy: str) -> None:
    """Refuse, before the work begins, what takes more memory than there is."""
    total = machine_memory()
    if needed > total:
        raise InputError(
            f"{what} takes at least {needed / 2**30:.1f} GiB of memory, and this machine has "
            f"{total / 2**30:.1f} GiB: {remedy}."
        )
