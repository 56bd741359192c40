"""Lines and numbers of text files, read strictly: what is not understood is refused by its line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NoReturn

from powersketch.exceptions import InputError

_MOST_SHOWN = 40


def text_lines(path: Path, skipped: int = 0) -> Iterator[str]:
    """Yield the lines of a file after the skipped ones, with their ends as they are.

    A mark of the byte order at the beginning is no part of the first line.
    """
    # Bytes that are no UTF-8 become surrogates, which tells the line that they are in.
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
    text is rather a slip.
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
    shown = repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…")
    return f"{shown} is {'not finite' if is_number(text) else 'no number'}"
