"""Sparse rows in the text format of SVMlight and LIBSVM."""

from __future__ import annotations

import re
from array import array
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.cli.text_lines import (
    finite_numbers,
    problem_of,
    refuse,
    text_lines,
    whole_number,
    whole_numbers,
)
from powersketch.exceptions import InputError

_LINE = re.compile(r"[^\s:]+(?:\s+[^\s:]+:[^\s:]+)*")
_FORM = "label index:value index:value …"


def read_svmlight(path: Path) -> sparse.csr_array:
    """Return the rows without their labels, or refuse the file by its line.

    A line is a label, maybe ``qid:number``, and ``index:value`` with ascending indices; what
    follows # is a comment. Indices begin at 1, or at 0 where a 0 is among them.
    """
    values, indices = array("d"), array("q")
    ends, lines = array("q", [0]), array("q")
    for number, line in enumerate(text_lines(path), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        own_indices, own_values = _entries(path, number, content)
        indices.extend(own_indices)
        values.extend(own_values)
        ends.append(len(values))
        lines.append(number)
    if not lines:
        raise InputError(f"{path.name} has no rows; give lines of the form {_FORM}")
    return _matrix(path, *(np.array(part) for part in (values, indices, ends, lines)))


def _entries(path: Path, number: int, content: str) -> tuple[list[int], list[float]]:
    """Return the indices and values of one line."""
    if _LINE.fullmatch(content) is None:
        refuse(path, number, "it is not of the right form", f"write {_FORM}")
    label, *entries = content.split()
    if finite_numbers([label]) is None:
        refuse(path, number, problem_of(label), "write a number as the label.")
    if entries and entries[0].startswith("qid:"):
        del entries[0]
    parts = ":".join(entries).split(":") if entries else []
    indices = whole_numbers(parts[::2]) if parts else []
    values = finite_numbers(parts[1::2])
    if indices is None:
        shown = next(part for part in parts[::2] if whole_number(part) is None)
        refuse(path, number, f"the index {shown!r} is no whole number", "write digits only.")
    if values is None:
        bad = next(part for part in parts[1::2] if finite_numbers([part]) is None)
        refuse(path, number, problem_of(bad), "remove or replace the entry.")
    return indices, values


def _matrix(
    path: Path,
    values: NDArray[np.float64],
    indices: NDArray[np.int64],
    ends: NDArray[np.int64],
    lines: NDArray[np.int64],
) -> sparse.csr_array:
    rows = np.repeat(np.arange(lines.size), np.diff(ends))
    falling = np.flatnonzero((np.diff(indices) <= 0) & (np.diff(rows) == 0))
    if falling.size:
        line = int(lines[rows[falling[0]]])
        refuse(path, line, "its indices do not ascend", "sort them, each one once.")
    lowest, highest = (int(indices.min()), int(indices.max())) if indices.size else (1, 0)
    first = 0 if lowest == 0 else 1
    shape = (lines.size, highest + 1 - first)
    return sparse.csr_array((values, indices - first, ends), shape=shape)
