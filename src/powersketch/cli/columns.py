"""Which columns of a table are used."""

from __future__ import annotations

from collections.abc import Sequence

from powersketch.exceptions import InputError

_MOST_NAMES = 10


def kept_columns(names: Sequence[str] | None, count: int, target: str | None) -> list[int]:
    """Return the numbers of all columns but the target's, which has a name or a number."""
    columns = list(range(count))
    if target is None:
        return columns
    if names is not None and target in names:
        del columns[list(names).index(target)]
    elif _is_column_number(target, count):
        del columns[int(target)]
    else:
        known = shortened(names) if names is not None else "without names"
        raise InputError(
            f"there is no column {target!r}; the columns are {known}: name one of them, or give a "
            f"number from 0 to {count - 1}."
        )
    return columns


def refuse_texts(file: str, names: Sequence[str]) -> None:
    """Refuse columns that hold no numbers, if there are any."""
    if names:
        raise InputError(
            f"{file} has columns that are not numbers: {shortened(names)}; allowed are numbers: "
            "encode or remove them, or leave one of them out with --target."
        )


def shortened(names: Sequence[str]) -> str:
    """Return the names in one line, the first few if they are many."""
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown}, … ({len(names)} in all)"


def _is_column_number(text: str, count: int) -> bool:
    return text.removeprefix("-").isdecimal() and -count <= int(text) < count
