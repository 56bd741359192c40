"""Tables of numbers in text files."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np

from powersketch.cli.columns import kept_columns, refuse_texts
from powersketch.exceptions import InputError
from powersketch.native import Rows

# With it, a mark of the byte order at the beginning is no part of the first entry.
_ENCODING = "utf-8-sig"


def read_text(path: Path, target: str | None) -> Rows:
    """Return the numbers of all lines; the first line holds names if it is unlike the second."""
    first, second = _first_lines(path)
    delimiter = _delimiter(path, first)
    heads, entries = (next(csv.reader([line], delimiter=delimiter), []) for line in (first, second))
    with_names = _are_names(heads, entries)
    names = [head.strip() if with_names else str(column) for column, head in enumerate(heads)]
    kept = kept_columns(names, len(names), target)
    sample = dict(enumerate(entries if with_names else heads))
    # Lines that are too short are refused where all are read.
    texts = [names[column] for column in kept if not _is_number(sample.get(column, "0"))]
    refuse_texts(path.name, texts)
    return _numbers(path, delimiter, int(with_names), kept)


def _first_lines(path: Path) -> tuple[str, str]:
    try:
        with path.open(encoding=_ENCODING, newline="") as lines:
            return next(lines, ""), next(lines, "")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path.name} is not a text in UTF-8; allowed are lines of numbers: convert it."
        ) from error


def _delimiter(path: Path, line: str) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    return ";" if ";" in line and "," not in line else ","


def _are_names(heads: list[str], entries: list[str]) -> bool:
    """Tell whether a line holds names: no number at all, or none where the next line has one."""
    if not any(_is_number(head) for head in heads):
        return True
    pairs = zip(heads, entries, strict=False)
    return any(_is_number(entry) and not _is_number(head) for head, entry in pairs)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: Path, delimiter: str, skipped: int, columns: list[int]) -> Rows:
    try:
        with warnings.catch_warnings():
            # A file without rows is refused by those who need rows.
            warnings.simplefilter("ignore", UserWarning)
            return np.loadtxt(
                path,
                delimiter=delimiter,
                skiprows=skipped,
                usecols=columns,
                ndmin=2,
                quotechar='"',
                comments=None,
                encoding=_ENCODING,
            )
    except ValueError as error:
        reason = " ".join(str(error).split()).rstrip(".;")
        raise InputError(
            f"{path.name} is not a table of numbers: {reason}. Remove or encode what is none."
        ) from error
