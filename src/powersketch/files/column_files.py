"""Columns in Apache Arrow's formats, Parquet and Feather, as rows of numbers or as tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from powersketch.arrays import Real, Rows
from powersketch.exceptions import InputError
from powersketch.files.sources import RowSource, check_announced
from powersketch.files.text_tables import shortened, target_column

FEATHER = (".feather", ".arrow")
"""The endings of Feather files; other files of columns are Parquet."""


class ColumnFile:
    """A Parquet or Feather file: the names of its columns, and its rows as Arrow's batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as file:
            self.schema = file.schema if self._is_feather else file.schema_arrow
            self.count = _feather_rows(file) if self._is_feather else file.metadata.num_rows
        self.names = list(self.schema.names)
        if not 0 <= self.count < 1 << 48:
            raise ValueError(f"it announces {self.count} rows: it is damaged.")

    @property
    def _is_feather(self) -> bool:
        return self.path.suffix.lower() in FEATHER

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        pyarrow = _pyarrow(self.path)
        # Given the path, pyarrow would add columns for folders such as year=2020.
        with self.path.open("rb") as stream:
            if self._is_feather:
                yield pyarrow.ipc.open_file(stream)
            else:
                from pyarrow import parquet

                yield parquet.ParquetFile(stream)

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[Any]:
        """Yield tables of so many rows, the last one may be shorter."""
        pyarrow = _pyarrow(self.path)
        waiting: list[Any] = []
        count = 0
        with self._opened() as file:
            for batch in self._stored_batches(file, rows, columns):
                waiting.append(batch)
                count += batch.num_rows
                while count >= rows:
                    table = pyarrow.Table.from_batches(waiting)
                    yield table.slice(0, rows)
                    waiting = table.slice(rows).to_batches()
                    count -= rows
        if count:
            yield pyarrow.Table.from_batches(waiting)

    def _stored_batches(self, file: Any, rows: int, columns: list[str] | None) -> Iterator[Any]:
        if not self._is_feather:
            yield from file.iter_batches(min(rows, 1 << 16), columns=columns)
            return
        for number in range(file.num_record_batches):
            batch = _feather_batch(file, number)
            yield batch if columns is None else batch.select(columns)


def _feather_rows(file: Any) -> int:
    return sum(_feather_batch(file, number).num_rows for number in range(file.num_record_batches))


def _feather_batch(file: Any, number: int) -> Any:
    try:
        return file.get_batch(number)
    except MemoryError:
        # Columns that are packed announce their size, and memory is asked for before they are read.
        raise ValueError("it announces more than there is memory for: it is damaged.") from None


class ColumnSource(RowSource):
    """Columns of numbers; others are refused, but for the target's."""

    def __init__(self, path: Path, target: str | None) -> None:
        super().__init__(path)
        self._file = ColumnFile(path)
        names = self._file.names
        left_out = target_column(names, len(names), target)
        self._kept = [number for number in range(len(names)) if number != left_out]
        self.column_names = [names[number] for number in self._kept]
        refused = [names[number] for number in self._kept if not self._is_number(number)]
        if refused:
            raise InputError(
                f"{path.name} has columns that are not numbers: {shortened(refused)}; allowed are "
                "numbers: encode or remove them, or leave one of them out with --target."
            )
        self.shape = (self._file.count, len(self.column_names))

    def _is_number(self, number: int) -> bool:
        from pyarrow import types

        kind = self._file.schema.field(number).type
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def blocks(self, rows: int, start: int = 0) -> Iterator[Rows]:
        """Yield so many rows at a time, from row `start` on."""
        # All are read, as names may occur twice, and only one column can be left out.
        for table in islice(self._file.batches(rows), start // rows, None):
            columns = [np.asarray(table.column(n).to_numpy(), np.float64) for n in self._kept]
            yield np.column_stack(columns) if columns else np.empty((table.num_rows, 0))

    def read(self) -> Real:
        """Return all rows; refuse more than there is memory for."""
        rows, columns = self._file.count, self.shape[1]
        check_announced(rows, columns, np.dtype(np.float64))
        parts = [*self.blocks(1 << 16)]
        read = np.concatenate(parts) if parts else np.empty((0, columns))
        if len(read) != rows:
            raise ValueError("its columns are not as long as it says.")
        return read


def _pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise InputError(
            f"{path.name} needs pyarrow, which is not installed: pip install pyarrow, or convert "
            "the file to .npy or .csv."
        ) from error
    return pyarrow
