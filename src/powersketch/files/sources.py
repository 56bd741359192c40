"""Rows of numbers from files, a block at a time: no format but a few small ones is read whole."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from powersketch.arrays import Real, Rows, slices
from powersketch.exceptions import InputError
from powersketch.execution import available_memory
from powersketch.files.array_files import NpyHeader, read_archive, read_array, read_npy_header
from powersketch.files.sparse_text import read_matrix_market, svmlight_lines, svmlight_rows
from powersketch.files.text_tables import TextRows, target_column
from powersketch.files.unbuffered import UnbufferedFile
from powersketch.pages import bytes_text


class RowSource(ABC):
    """A file of rows, read by blocks.

    Attributes
    ----------
    path : Path
        The file.
    shape : tuple
        The number of rows, None if only reading them all would tell, and of columns.
    dtype : dtype
        The type of the numbers in the file.
    is_sparse : bool
        Whether blocks are CSR arrays.
    column_names : list of str or None
        The names of the columns, if the file has any.
    """

    shape: tuple[int | None, int]
    dtype: np.dtype[Any] = np.dtype(np.float64)
    is_sparse: bool = False
    column_names: list[str] | None = None

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def blocks(self, rows: int, start: int = 0) -> Iterator[Rows]:
        """Yield so many rows at a time, from row `start` on, a multiple of it."""

    def first(self, rows: int) -> Rows:
        """Return the first rows, as many as there are up to this number, and at least one."""
        block = next(self.blocks(rows), None)
        if block is None or 0 in block.shape:
            raise InputError(
                f"{self.path.name} has no rows or no columns; at least one of each is needed: give "
                "another file."
            )
        return block

    def read(self) -> Rows:
        """Return all rows; those of .npy files stay on the disk until they are needed."""
        parts = [*self.blocks(1 << 16)]
        if self.is_sparse:
            return sparse.vstack(parts, format="csr")
        return np.concatenate(parts) if parts else np.empty((0, self.shape[1]))


class MatrixSource(RowSource):
    """A matrix without names of columns; one of its columns may be left out, by its number."""

    def __init__(self, path: Path, target: str | None) -> None:
        super().__init__(path)
        self._open()
        self._left_out = target_column(None, self.shape[1], target)
        if self._left_out is not None:
            self.shape = (self.shape[0], self.shape[1] - 1)

    @abstractmethod
    def _open(self) -> None:
        """Find shape and type."""

    @abstractmethod
    def _blocks(self, rows: int, start: int) -> Iterator[Rows]:
        """Yield blocks of all columns."""

    def blocks(self, rows: int, start: int = 0) -> Iterator[Rows]:
        """Yield so many rows at a time, from row `start` on."""
        for block in self._blocks(rows, start):
            yield block if self._left_out is None else without_column(block, self._left_out)


class NpySource(MatrixSource):
    """A .npy file, of which one block at a time is in memory."""

    _header: NpyHeader

    def _open(self) -> None:
        self._header = read_npy_header(self.path)
        self.shape, self.dtype = two_dimensions(self._header.shape), self._header.kind

    def _blocks(self, rows: int, start: int) -> Iterator[Real]:
        head, count = self._header, self._header.shape[0]
        file = UnbufferedFile(self.path, os.O_RDONLY)
        try:
            for part in slices(count - start, rows):
                first, height = start + part.start, part.stop - part.start
                read = _columns_first if head.fortran else _rows_first
                yield read(file, head, first, height)
        finally:
            file.close()

    def read(self) -> Rows:
        """Return the rows, which stay on the disk until they are needed."""
        rows = read_array(self.path, self._header)
        return rows if self._left_out is None else without_column(rows, self._left_out)


def _rows_first(file: UnbufferedFile, header: NpyHeader, first: int, rows: int) -> Real:
    """Return rows of an array in C order."""
    row_bytes = header.shape[1] * header.kind.itemsize
    content, before = file.read(header.offset + first * row_bytes, rows * row_bytes)
    return np.ndarray((rows, header.shape[1]), header.kind, content.data, before)


def _columns_first(file: UnbufferedFile, header: NpyHeader, first: int, rows: int) -> Real:
    """Return rows of an array in Fortran order, column by column."""
    columns = np.empty((header.shape[1], rows), header.kind)
    for number, column in enumerate(columns):
        start = header.offset + (number * header.shape[0] + first) * header.kind.itemsize
        content, before = file.read(start, column.nbytes)
        column[:] = np.ndarray(column.shape, column.dtype, content.data, before)
    return columns.T


class WholeSource(MatrixSource):
    """A file whose format has to be read whole: .npz archives and Matrix Market."""

    _rows: Rows

    def _open(self) -> None:
        read = read_archive if self.path.suffix.lower() == ".npz" else read_matrix_market
        self._rows = read(self.path)
        self.shape = two_dimensions(self._rows.shape)
        self.dtype, self.is_sparse = self._rows.dtype, sparse.issparse(self._rows)

    def _blocks(self, rows: int, start: int) -> Iterator[Rows]:
        for part in slices(self._rows.shape[0] - start, rows):
            yield self._rows[start + part.start : start + part.stop]

    def read(self) -> Rows:
        """Return all rows as they are."""
        return self._rows if self._left_out is None else without_column(self._rows, self._left_out)


class SvmlightSource(MatrixSource):
    """SVMlight or LIBSVM: read twice, first for the number of columns and where they begin."""

    is_sparse = True

    def _open(self) -> None:
        count, lowest, highest = 0, 1, 0
        for _, indices, _ in svmlight_lines(self.path):
            count += 1
            if indices:
                lowest, highest = min(lowest, indices[0]), max(highest, indices[-1])
        self._first = 0 if lowest == 0 else 1
        self.shape = (count, highest + 1 - self._first)

    def _blocks(self, rows: int, start: int) -> Iterator[Rows]:
        lines = islice(svmlight_lines(self.path), start, None)
        while block := [*islice(lines, rows)]:
            yield svmlight_rows(block, self._first, self.shape[1] + (self._left_out is not None))


class TextSource(RowSource):
    """A table of numbers in text; how many rows there are is not known before the end."""

    def __init__(self, path: Path, target: str | None, header: bool | None) -> None:
        super().__init__(path)
        self._table = TextRows(path, target, header)
        self.column_names = self._table.names
        self.shape = (None, self._table.width)

    def blocks(self, rows: int, start: int = 0) -> Iterator[Rows]:
        """Yield so many rows at a time, from row `start` on."""
        return islice(self._table.blocks(rows), start // rows, None)

    def read(self) -> Rows:
        """Return all rows."""
        return next(self._table.blocks(None))


def without_column(rows: Any, column: int) -> Rows:
    """Return rows, dense or sparse, without one of their columns."""
    if not sparse.issparse(rows):
        return np.delete(rows, column, axis=1)
    # A list of the columns that stay would be longer than all entries of a wide matrix.
    entries = rows.tocoo()
    kept = entries.col != column
    columns = entries.col[kept] - (entries.col[kept] > column)
    shape = (rows.shape[0], rows.shape[1] - 1)
    return sparse.csr_array((entries.data[kept], (entries.row[kept], columns)), shape=shape)


def check_announced(rows: int, columns: int, kind: np.dtype[Any]) -> None:
    """Refuse to read at once what a file announces, but may not hold, beyond the memory left."""
    needed = rows * columns * kind.itemsize
    if needed > available_memory():
        raise ValueError(
            f"it announces {rows} rows, which need {bytes_text(needed)}, and "
            f"{bytes_text(available_memory())} are available: it is damaged, or too large."
        )


def two_dimensions(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the numbers of rows and columns, or refuse what is no matrix."""
    if len(shape) != 2:
        raise ValueError(
            f"it holds an array with {len(shape)} dimensions; allowed are 2, rows and columns: "
            "reshape it."
        )
    return shape[0], shape[1]
