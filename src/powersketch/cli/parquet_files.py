"""Columns of numbers in Parquet files, which pyarrow reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from powersketch.arrays import Rows
from powersketch.cli.columns import shortened, target_column
from powersketch.comparison import bytes_text
from powersketch.exceptions import InputError
from powersketch.execution import available_memory

_BYTES_OF_NUMBER = 8


def read_parquet(path: Path, target: str | None) -> Rows:
    """Return the columns of numbers without the target's; others are refused."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            f"{path.name} needs pyarrow, which is not installed: pip install pyarrow, or convert "
            "the file to .npy or .csv."
        ) from error
    # Given by name, a file would get further columns from names of folders such as year=2020.
    with path.open("rb") as stream:
        file = parquet.ParquetFile(stream)
        names = list(file.schema_arrow.names)
        _check_room(file.metadata.num_rows, len(names))
        left_out = target_column(names, len(names), target)
        table = file.read()
    columns = {
        number: _numbers(table.column(number)) for number in range(len(names)) if number != left_out
    }
    refused = [names[number] for number, column in columns.items() if column is None]
    if refused:
        raise InputError(
            f"{path.name} has columns that are not numbers: {shortened(refused)}; allowed are "
            "numbers: encode or remove them, or leave one of them out with --target."
        )
    if any(len(column) != file.metadata.num_rows for column in columns.values()):
        raise ValueError("its columns are not as long as it says.")
    return np.column_stack([*columns.values()]) if columns else np.empty((0, 0))


def _numbers(column: Any) -> Any:
    """Return a column as an array, with NaN for what is missing, or None if it has no numbers."""
    values = np.asarray(column.to_numpy())
    return values if values.dtype.kind in "biuf" else None


def _check_room(rows: int, columns: int) -> None:
    needed = _BYTES_OF_NUMBER * rows * columns
    if not 0 <= needed <= available_memory():
        raise ValueError(
            f"it announces {rows} rows, which need {bytes_text(needed)}, and "
            f"{bytes_text(available_memory())} are available: it is damaged, or too large."
        )
