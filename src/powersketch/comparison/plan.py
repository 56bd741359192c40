"""The parameters of a comparison, checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from powersketch.comparison.pilot import FEWEST_ROWS
from powersketch.exceptions import InputError, InputTypeError
from powersketch.parameters import checked_integer, checked_positive

_MOST_SEEDS = 10**6


@dataclass(frozen=True)
class Plan:
    """What a comparison is to do."""

    components: tuple[int, ...]
    seeds: int
    pilot_rows: int
    alpha: float | None
    time_budget: float | None
    memory_budget: int | None

    @classmethod
    def of(
        cls,
        components: Any,
        seeds: Any,
        pilot_rows: Any,
        alpha: Any,
        time_budget: Any,
        memory_budget: Any,
    ) -> Plan:
        """Return the parameters, or say what is wrong with one of them."""
        return cls(
            _checked_sizes(components),
            checked_integer(
                "seeds", seeds, 1, _MOST_SEEDS, remedy="it is how many draws are measured"
            ),
            checked_integer("pilot_rows", pilot_rows, FEWEST_ROWS),
            None if alpha is None else checked_positive("alpha", alpha),
            None if time_budget is None else checked_positive("time_budget", time_budget),
            None if memory_budget is None else checked_integer("memory_budget", memory_budget, 1),
        )


def _checked_sizes(components: Any) -> tuple[int, ...]:
    if isinstance(components, str) or not isinstance(components, Iterable):
        raise InputTypeError(
            f"components={components!r} is a {type(components).__name__}; allowed is a list of "
            "integers of at least 1: pass for instance [128, 512]."
        )
    sizes = {checked_integer("components", size, 1) for size in components}
    if not sizes:
        raise InputError("components is empty; give at least one number of features.")
    return tuple(sorted(sizes))
