"""Tables in files as Dask reads them: block by block, where they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np

from powersketch.exceptions import ClusterError, InputError

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_SECONDS_TO_CONNECT = 30


@contextmanager
def connected(where: str) -> Iterator[Any]:
    """Let Dask compute on processes of this machine ("local"), or at a scheduler's address."""
    from distributed import Client, LocalCluster

    if where == "local":
        with (
            LocalCluster(threads_per_worker=1, dashboard_address=None) as own,
            Client(own) as client,
        ):
            yield client
        return
    if "://" not in where:
        raise InputError(
            f"Dask at {where!r} is unknown; allowed are local, and the address of a scheduler such "
            "as tcp://192.168.0.7:8786."
        )
    try:
        client = Client(where, timeout=_SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"no scheduler of Dask answers at {where} ({error}): start it with dask scheduler, and "
            "give the address that it shows."
        ) from error
    with client:
        yield client


def lazy_table(
    path: Path,
    *,
    header: bool | None = None,
    encoding: str | None = None,
    columns: list[Any] | None = None,
) -> Any:
    """Return the table of a file, or of a folder of Parquet files, that all workers can read."""
    # Workers have working directories of their own.
    path, suffix = path.resolve(), path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path} is not there; give the path of a table.")
    if suffix == ".parquet":
        return _row_groups(path, columns)
    if suffix not in _SEPARATORS:
        raise InputError(
            f"{path.name} is no table that Dask reads; allowed are .csv, .tsv and .parquet: "
            "convert it, or leave Dask out."
        )
    names: dict[str, Any] = {"header": None} if header is False else {}
    table = dd.read_csv(path, sep=_SEPARATORS[suffix], encoding=encoding, **names)
    table = table.rename(columns=dict(zip(table.columns, map(str, table.columns), strict=True)))
    return table if columns is None else table[columns]


def _row_groups(path: Path, columns: list[Any] | None) -> Any:
    """Return a table with a partition for every row group.

    Dask's own reader joins partitions of few columns: targets would be divided otherwise than X.
    """
    from pyarrow.parquet import ParquetFile

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    groups = [(file, n) for file in files for n in range(ParquetFile(file).num_row_groups)]
    if not groups:
        raise InputError(f"{path} holds no rows; give a Parquet file, or a folder of them.")
    first = ParquetFile(files[0]).schema_arrow.empty_table()
    meta = (first if columns is None else first.select(columns)).to_pandas()
    return dd.from_map(_row_group, groups, wanted=columns, meta=meta)


def _row_group(group: tuple[Path, int], wanted: list[Any] | None) -> Any:
    from pyarrow.parquet import ParquetFile

    file, number = group
    return ParquetFile(file).read_row_group(number, columns=wanted).to_pandas()


def target_blocks(table: Any, names: list[Any]) -> Any:
    """Return columns as targets: numbers, or one column of classes, which are texts."""
    if len(names) > 1:
        return table[names].to_dask_array()
    column = table[names[0]]
    if column.dtype.kind in "iufb":
        return column.to_dask_array()
    return column.map_partitions(_texts, meta=np.empty(0, "U1"))


def _texts(column: Any) -> Any:
    return np.array([str(each) for each in column], dtype=np.str_)
