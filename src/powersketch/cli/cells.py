"""Lines, numbers and columns of files, read strictly: what is unclear is refused by its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NoReturn

from powersketch.exceptions import InputError

_MOST_LETTERS = 40
_MOST_NAMES = 10


def text_lines(path: Path, skipped: int = 0) -> Iterator[str]:
    """Yield the lines of a file after the skipped ones, with their ends as they are.

    A byte order mark at the beginning is not part of the first line.
    """
    # Bytes that are not UTF-8 become surrogates, so that their line can be named.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        for number, line in enumerate(islice(lines, skipped, None), skipped + 1):
            if not line.isascii() and any("\ud800" <= sign <= "\udfff" for sign in line):
                refuse(path, number, "it is not a text in UTF-8", "convert the file.")
            yield line


def refuse(path: Path, line: int, what: str, remedy: str, *, column: str = "") -> NoReturn:
    """Refuse a file for what one of its lines, counted from 1, has or is."""
    place = f"{path.name}, line {line}{', ' * bool(column)}{column}"
    raise InputError(f"{place}: {what}; {remedy}")


def finite_numbers(texts: Sequence[str]) -> list[float] | None:
    """Return what the texts are as numbers, or None if one is no finite number.

    Python also reads 1_000 and digits of other scripts; other programs do not, so that such a
    text is probably a slip.
    """
    joined = "".join(texts)
    if not joined.isascii() or "_" in joined:
        return None
    try:
        numbers = [*map(float, texts)]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def is_number(text: str) -> bool:
    """Tell whether a text is a number; NaN and infinity are."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text


def whole_number(text: str) -> int | None:
    """Return what decimal digits stand for, and None for any other text or more than 18 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def whole_numbers(texts: Sequence[str]) -> list[int] | None:
    """Return what the texts are as whole numbers, or None if one is none."""
    joined = "".join(texts)
    if not (joined.isascii() and joined.isdecimal() and all(texts) and max(map(len, texts)) <= 18):
        return None
    return [*map(int, texts)]


def problem_of(text: str) -> str:
    """Return what is wrong with a text that stands where a finite number is needed."""
    if not text.strip():
        return "the entry is empty"
    shown = repr(text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…")
    return f"{shown} is {'not finite' if is_number(text) else 'no number'}"


def target_column(names: Sequence[str] | None, count: int, target: str | None) -> int | None:
    """Return the number of the target's column, which is given by its name or by its number.

    A name comes first: a column that is called 3 is meant, not column number 3.
    """
    if target is None:
        return None
    if names is not None and target in names:
        _check_unique(names, target)
        return list(names).index(target)
    if _is_column_number(target, count):
        return int(target) % count
    known = shortened(names) if names is not None else "without names"
    raise InputError(
        f"there is no column {target!r}; the columns are {known}: name one of them, or give a "
        f"number from 0 to {count - 1}."
    )


def column_label(names: Sequence[str] | None, column: int) -> str:
    """Return what a column is called in messages."""
    numbered = f"column number {column} (the first is 0)"
    return numbered if names is None or not names[column] else f"column {names[column]!r}"


def shortened(names: Sequence[str]) -> str:
    """Return the names in one line, only the first few of many."""
    shown = ", ".join(names[:_MOST_NAMES])
    return shown if len(names) <= _MOST_NAMES else f"{shown}, … ({len(names)} in all)"


def _check_unique(names: Sequence[str], target: str) -> None:
    same = [number for number, name in enumerate(names) if name == target]
    if len(same) > 1:
        raise InputError(
            f"{len(same)} columns are called {target!r}, numbers {', '.join(map(str, same))}: give "
            "the number of one of them."
        )


def _is_column_number(text: str, count: int) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and len(digits) <= 18 and -count <= int(text) < count
