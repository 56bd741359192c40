"""Rows whose kernel values dwarf those of all others, which rounding errors then swallow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Of k(x, x) relative to the median. Sums of both keep a few digits of the smaller one.
_DWARFING = 1e10
_NAMED = 3


def dwarfing(diagonal: NDArray[np.floating[Any]]) -> tuple[NDArray[np.intp], float]:
    """Return the rows whose k(x, x) dwarfs the median, the largest first, and the median."""
    median = float(np.median(diagonal))
    if median <= 0.0:
        return np.empty(0, dtype=np.intp), median
    found = np.flatnonzero(diagonal > _DWARFING * median)
    return found[np.argsort(-diagonal[found], kind="stable")], median


def dwarfing_rows(
    diagonal: NDArray[np.floating[Any]], numbers: NDArray[Any] | None = None
) -> str | None:
    """Return a sentence that names the rows whose k(x, x) dwarfs the others, or None.

    `numbers` are those that the user knows the rows by, where some were left out.
    """
    found, median = dwarfing(diagonal)
    if not found.size:
        return None
    known = found if numbers is None else numbers[found]
    names = ", ".join(map(str, known[:_NAMED].tolist()))
    more = f" and {found.size - _NAMED} others" if found.size > _NAMED else ""
    have = "row {} has" if found.size == 1 else "the rows {} have"
    return (
        f"{have.format(names + more)} k(x, x) up to {diagonal[found[0]]:.2g}, and the median is "
        f"{median:.2g}: what other rows say is lost in rounding errors. Remove what is wrong "
        "there, scale the columns, or use the Gaussian kernel, which is bounded"
    )
