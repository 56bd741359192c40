"""Which columns of a table are used."""

from __future__ import annotations

from collections.abc import Sequence

from powersketch.exceptions import InputError

_MOST_NAMES = 10


def target_column(names: Sequence[str] | None, count: int, target: str | None) -> int | None:
    """Return the number of the target's column, which is given by its name or by its number.

    A name comes first: a column that is called 3 is meant, not column number 3.
    """
    if target is None:
        return None
    if names is not None and target in names:
        _check_single(names, target)
        return list(names).index(target)
    if _is_column_number(target, count):
        return int(target) % count
    known = shortened(names) if names is not None else "without names"
    raise InputError(
        f"there is no column {target!r}; the columns are {known}: name one of them, or give a "
        f"number from 0 to {count - 1}."
    )


def label(names: Sequence[str] | None, column: int) -> str:
    """Return what a column is called in messages."""
    numbered = f"column number {column} (the first is 0)"
    return numbered if names is None or not names[column] else f"column {names[column]!r}"


def shortened(names: Sequence[str]) -> str:
    """Return the names in one line, the first few if they are many."""
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown}, … ({len(names)} in all)"


def _check_single(names: Sequence[str], target: str) -> None:
    same = [number for number, name in enumerate(names) if name == target]
    if len(same) > 1:
        raise InputError(
            f"{len(same)} columns are called {target!r}, numbers {', '.join(map(str, same))}: give "
            "the number of one of them."
        )


def _is_column_number(text: str, count: int) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) <= 18 and -count <= int(text) < count
