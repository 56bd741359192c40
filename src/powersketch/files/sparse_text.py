"""Matrices in text formats that can be sparse: Matrix Market, and SVMlight or LIBSVM."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import ge
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from powersketch.arrays import Float64, Rows, Vector
from powersketch.exceptions import InputError
from powersketch.files.text_tables import (
    finite_numbers,
    problem_of,
    refuse,
    text_lines,
    whole_number,
    whole_numbers,
)

_MARKET_START = "%%matrixmarket"
_MARKET_FORM = "%%MatrixMarket matrix coordinate real general"
_FIELDS = ("real", "double", "integer", "pattern")
_SYMMETRIES = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}
_READ_AT_ONCE = 4096
_SVMLIGHT_FORM = "label index:value index:value …"
_SVMLIGHT_LINE = re.compile(r"[^\s:]+(?:\s+[^\s:]+:[^\s:]+)*")
_FIX_ENTRY = "remove or replace the entry."
Line = tuple[int, list[str]]


@dataclass(frozen=True)
class _Head:
    """What the first lines say.

    `line` is the number of the line with the sizes, `mirrored` the sign of the half that is not
    written.
    """

    line: int
    coordinate: bool
    pattern: bool
    mirrored: float
    rows: int
    columns: int
    entries: int


def read_matrix_market(path: Path) -> Rows:
    """Return the matrix, sparse if it is written as coordinates, or refuse the file by its line.

    Every entry is a finite real number and is there once, and there are as many as the file says.
    """
    lines = _lines(path)
    head = _head(path, lines)
    _check_sizes(path, head)
    return _sparse(path, head, lines) if head.coordinate else _dense(path, head, lines)


def _lines(path: Path) -> Iterator[Line]:
    """Yield number and words of every line that is neither empty nor a comment below the first."""
    for number, line in enumerate(text_lines(path), 1):
        words = line.split()
        if words and (number == 1 or not line.startswith("%")):
            yield number, words


def _head(path: Path, lines: Iterator[Line]) -> _Head:
    number, words = next(lines, (1, []))
    words = [word.lower() for word in words]
    if number != 1 or len(words) != 5 or words[:2] != [_MARKET_START, "matrix"]:
        refuse(path, 1, "it is not the first line of Matrix Market", f"write {_MARKET_FORM}")
    kind, field, symmetry = words[2:]
    known = kind in ("coordinate", "array") and field in _FIELDS and symmetry in _SYMMETRIES
    if not known or (kind == "array" and field == "pattern"):
        allowed = f"allowed are real numbers, such as {_MARKET_FORM}"
        refuse(path, 1, f"{kind} {field} {symmetry} cannot be read", allowed)
    coordinate = kind == "coordinate"
    number, sizes = next(lines, (2, []))
    counts = [whole_number(word) for word in sizes]
    if len(counts) != 2 + coordinate or None in counts:
        names = "rows, columns and entries" if coordinate else "rows and columns"
        refuse(path, number, f"it is not the numbers of {names}", "write them in digits.")
    rows, columns, *entries = (int(count or 0) for count in counts)
    sign = _SYMMETRIES[symmetry]
    return _Head(number, coordinate, field == "pattern", sign, rows, columns, sum(entries))


def _check_sizes(path: Path, head: _Head) -> None:
    """Refuse sizes that the file has no room for, before memory is taken for them."""
    if head.mirrored and head.rows != head.columns:
        refuse(path, head.line, "a symmetric matrix is not square", "check the sizes.")
    size = path.stat().st_size
    needed = head.entries if head.coordinate else head.rows * head.columns // 2
    if max(needed, head.rows) > size:
        what = f"{head.rows} × {head.columns} does not fit into a file of {size} bytes"
        refuse(path, head.line, what, "check the sizes.")


def _sparse(path: Path, head: _Head, lines: Iterator[Line]) -> sparse.csr_array:
    places, values, numbers = array("q"), array("d"), array("q")
    while chunk := [*islice(lines, _READ_AT_ONCE)]:
        entries = _entries(head, [words for _, words in chunk])
        if entries is None:
            # One of the lines is wrong: they are checked one by one.
            for number, words in chunk:
                _check_line(path, number, words, head)
        else:
            places.extend(entries[0])
            values.extend(entries[1])
        numbers.extend(number for number, _ in chunk)
    _check_count(path, head, head.entries, len(values))
    rows, columns = np.array(places).reshape(-1, 2).T - 1
    _check_distinct(path, rows, columns, np.array(numbers))
    return _mirrored(head, rows, columns, np.array(values))


def _entries(head: _Head, lines: list[list[str]]) -> tuple[list[int], list[float]] | None:
    """Return rows and columns in turns, and the values, or None if one of the lines is wrong."""
    if any(len(words) != 3 - head.pattern for words in lines):
        return None
    places = whole_numbers([word for words in lines for word in words[:2]])
    values = [1.0] * len(lines)
    if not head.pattern:
        values = finite_numbers([words[2] for words in lines]) or []
    if places is None or not values:
        return None
    rows, columns = np.array(places).reshape(-1, 2).T
    inside = rows.min() > 0 < columns.min() and rows.max() <= head.rows
    if not inside or columns.max() > head.columns or (head.mirrored and (columns > rows).any()):
        return None
    return places, values


def _check_line(path: Path, number: int, words: list[str], head: _Head) -> None:
    """Refuse a line for what is wrong with it."""
    if len(words) != 3 - head.pattern:
        refuse(path, number, f"it has {len(words)} words", "write row, column and entry.")
    _check_place(path, number, words, head)
    if not head.pattern:
        _value(path, number, words[2])


def _check_place(path: Path, number: int, words: list[str], head: _Head) -> None:
    row, column = (whole_number(word) or 0 for word in words[:2])
    if not (1 <= row <= head.rows and 1 <= column <= head.columns):
        allowed = f"allowed are 1 to {head.rows} and 1 to {head.columns}."
        refuse(path, number, f"there is no entry {words[0]} {words[1]}", allowed)
    if column > row and head.mirrored:
        refuse(path, number, "it is above the diagonal", "write the lower half of it only.")


def _value(path: Path, number: int, word: str) -> float:
    values = finite_numbers([word])
    if values is None:
        refuse(path, number, problem_of(word), _FIX_ENTRY)
    return values[0]


def _check_count(path: Path, head: _Head, announced: int, count: int) -> None:
    if announced != count:
        what = f"it announces {announced} entries, and there are {count}"
        refuse(path, head.line, what, "the file is cut off, or its sizes are wrong.")


def _check_distinct(
    path: Path, rows: NDArray[np.int64], columns: NDArray[np.int64], lines: NDArray[np.int64]
) -> None:
    order = np.lexsort((columns, rows))
    again = np.flatnonzero((np.diff(rows[order]) == 0) & (np.diff(columns[order]) == 0))
    if again.size:
        line = int(lines[order[again + 1]].min())
        refuse(path, line, "its entry is there already", "write every entry once.")


def _mirrored(
    head: _Head,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: Vector,
) -> sparse.csr_array:
    shape = (head.rows, head.columns)
    written = sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    if not head.mirrored:
        return written
    off = rows != columns
    half = (head.mirrored * values[off], (columns[off], rows[off]))
    return (written + sparse.coo_array(half, shape=shape)).tocsr()


def _dense(path: Path, head: _Head, lines: Iterator[Line]) -> Float64:
    """Return a matrix whose entries are written one after the other, column by column."""
    values = array("d")
    for number, words in lines:
        values.extend(_value(path, number, word) for word in words)
    places = np.ones((head.columns, head.rows), dtype=bool)
    if head.mirrored:
        places = np.triu(places, k=1 if head.mirrored < 0.0 else 0)
    _check_count(path, head, int(np.count_nonzero(places)), len(values))
    transposed = np.zeros((head.columns, head.rows))
    transposed[places] = values
    return (
        transposed.T + head.mirrored * np.triu(transposed, k=1) if head.mirrored else transposed.T
    )


def svmlight_lines(path: Path) -> Iterator[tuple[int, list[int], list[float]]]:
    """Yield number, indices and values of every line, or refuse the file by its line.

    A line is a label, maybe ``qid:number``, and ``index:value`` with ascending indices; what
    follows # is a comment. The label is left out.
    """
    empty = True
    for number, line in enumerate(text_lines(path), 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        empty = False
        indices, values = _line_entries(path, number, content)
        if any(map(ge, indices, indices[1:])):
            refuse(path, number, "its indices do not ascend", "sort them, each one once.")
        yield number, indices, values
    if empty:
        raise InputError(f"{path.name} has no rows; give lines of the form {_SVMLIGHT_FORM}")


def svmlight_rows(
    lines: Sequence[tuple[int, list[int], list[float]]], first: int, columns: int
) -> sparse.csr_array:
    """Return lines as rows; indices begin at `first`, which is 0 or 1."""
    ends = np.cumsum([0, *(len(indices) for _, indices, _ in lines)])
    indices = np.array([index for _, line, _ in lines for index in line], dtype=np.int64)
    values = np.array([value for _, _, line in lines for value in line], dtype=np.float64)
    return sparse.csr_array((values, indices - first, ends), shape=(len(lines), columns))


def _line_entries(path: Path, number: int, content: str) -> tuple[list[int], list[float]]:
    """Return the indices and values of one line."""
    if _SVMLIGHT_LINE.fullmatch(content) is None:
        refuse(path, number, "it is not of the right form", f"write {_SVMLIGHT_FORM}")
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
        refuse(path, number, problem_of(bad), _FIX_ENTRY)
    return indices, values
