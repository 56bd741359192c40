"""Text formats read once more, by parsers that share nothing with the library's.

They are slow and simple. What they return is the only right reading of a file; None says that
there is none, or more than one.
"""

from __future__ import annotations

import re

import numpy as np
from scipy import sparse

Matrix = sparse.csr_array

_NUMBER = re.compile(r"[ \t\r\n\v\f]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t\r\n\v\f]*", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)


def number(text: str) -> float | None:
    """Return a finite decimal number."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if np.isfinite(value) else None


def table(content: bytes) -> Matrix | None:
    """Return the numbers of a table that has one reading with commas, semicolons or tabs."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    readings = [reading for sign in ",;\t" if (reading := _table(text, sign)) is not None]
    if not readings or any(reading.shape != readings[0].shape for reading in readings):
        return None
    return readings[0]


def _table(text: str, delimiter: str) -> Matrix | None:
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    while lines and (lines[0].startswith("#") or not lines[0].strip()):
        del lines[0]
    records = _records("".join(lines), delimiter)
    if not records:
        return None
    head = [number(cell) for cell in records[0]]
    header = None in head
    if len(head) == 1 and re.search(r"[,;\t]", records[0][0]):
        return None  # It may be a row by another delimiter.
    rows = [[number(cell) for cell in record] for record in records[header:]]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not rows:
        return None
    (width,) = widths
    shift = width - len(head)
    nameless = header and len(head) > 1 and not records[0][0].strip()
    if shift not in (0, 1) or (shift == 1 and not header):
        return None
    kept = [row[shift or int(nameless) :] for row in rows]
    if any(None in row for row in kept):
        return None
    return sparse.csr_array(np.array(kept, dtype=np.float64).reshape(len(kept), -1))


def _records(text: str, delimiter: str) -> list[list[str]] | None:
    """Return the cells of all records that are not empty, sign by sign."""
    records: list[list[str]] = []
    rest = text.replace("\r\n", "\n").replace("\r", "\n")
    while rest:
        line, _, after = rest.partition("\n")
        if not line.strip(" "):
            rest = after
            continue
        cells: list[str] = []
        while True:
            cell, rest, ok = _cell(rest.lstrip(" "), delimiter)
            cells.append(cell)
            if not ok:
                return None
            if not rest.startswith(delimiter):
                break
            rest = rest[1:]
        records.append(cells)
        rest = rest[1:]
    return records


def _cell(rest: str, delimiter: str) -> tuple[str, str, bool]:
    """Return the first cell, what follows it, and whether its quotes are right."""
    if not rest.startswith('"'):
        ends = [at for sign in (delimiter, "\n") if (at := rest.find(sign)) >= 0]
        end = min(ends, default=len(rest))
        return rest[:end], rest[end:], True
    found = re.match(r'"((?:[^"]|"")*)"', rest)
    if found is None:
        return "", "", False
    after = rest[found.end() :]
    return found.group(1).replace('""', '"'), after, not after or after[0] in (delimiter, "\n")


def svmlight(content: bytes) -> Matrix | None:
    """Return the rows of a file of labels and entries."""
    rows: list[dict[int, float]] = []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    for line in re.split(r"[\r\n]", text):
        words = line.split("#")[0].split()
        if not words:
            continue
        if number(words[0]) is None:
            return None
        if len(words) > 1 and words[1].startswith("qid:"):
            del words[1]
        row: dict[int, float] = {}
        for word in words[1:]:
            index, _, entry = word.partition(":")
            value = number(entry)
            if _DIGITS.fullmatch(index) is None or value is None or int(index) in row:
                return None
            row[int(index)] = value
        if [*row] != sorted(row):
            return None
        rows.append(row)
    indices = [index for row in rows for index in row]
    first = 0 if 0 in indices else 1
    columns = max(indices, default=0) + 1 - first
    entries = {
        (position, index - first): value
        for position, row in enumerate(rows)
        for index, value in row.items()
    }
    return _matrix((len(rows), columns), entries) if rows else None


def _matrix(shape: tuple[int, int], entries: dict[tuple[int, int], float]) -> Matrix:
    places = np.array([*entries], dtype=np.int64).reshape(-1, 2).T
    return sparse.coo_array(([*entries.values()], (places[0], places[1])), shape=shape).tocsr()


def matrix_market(content: bytes) -> Matrix | None:
    """Return a real matrix of coordinates or of an array, with its other half if it has one."""
    try:
        lines = re.split(r"\r\n|\r|\n", content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None
    head = lines[0].lower().split()
    words = [line.split() for line in lines[1:] if line.strip() and not line.startswith("%")]
    if head[:2] != ["%%matrixmarket", "matrix"] or len(head) != 5 or not words:
        return None
    sign = {"general": 0, "symmetric": 1, "skew-symmetric": -1}.get(head[4])
    if sign is None or head[3] not in ("real", "double", "integer", "pattern"):
        return None
    if not all(_DIGITS.fullmatch(word) for word in words[0]):
        return None
    sizes = [int(word) for word in words[0]]
    if head[2] == "coordinate" and len(sizes) == 3:
        return _coordinates(sizes, words[1:], sign, head[3] == "pattern")
    if head[2] == "array" and len(sizes) == 2 and head[3] != "pattern":
        return _listed(sizes, [word for line in words[1:] for word in line], sign)
    return None


def _coordinates(
    sizes: list[int], lines: list[list[str]], sign: int, pattern: bool
) -> Matrix | None:
    rows, columns, count = sizes
    if len(lines) != count or (sign and rows != columns):
        return None
    entries: dict[tuple[int, int], float] = {}
    for words in lines:
        if len(words) != 3 - pattern or not all(map(_DIGITS.fullmatch, words[:2])):
            return None
        row, column = int(words[0]) - 1, int(words[1]) - 1
        value = 1.0 if pattern else number(words[2])
        outside = not (0 <= row < rows and 0 <= column < columns)
        if value is None or outside or (row, column) in entries:
            return None
        entries[row, column] = value
        if sign and row != column:
            entries[column, row] = sign * value
    return _matrix((rows, columns), entries)


def _listed(sizes: list[int], words: list[str], sign: int) -> Matrix | None:
    rows, columns = sizes
    values = [number(word) for word in words]
    if rows * columns > 2 * len(words) + rows or (sign and rows != columns):
        return None
    places = [
        (row, column)
        for column in range(columns)
        for row in range(rows)
        if not sign or row > column or (row == column and sign > 0)
    ]
    if len(places) != len(values) or None in values:
        return None
    entries = {place: value or 0.0 for place, value in zip(places, values, strict=True)}
    if sign:
        entries |= {(c, r): sign * value for (r, c), value in entries.items() if r != c}
    return _matrix((rows, columns), entries)
