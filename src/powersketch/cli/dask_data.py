"""Data of a command that computes on Dask: a sample of the rows here, and all of them lazily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from powersketch.cli.data import Data
from powersketch.cli.option_groups import DataOptions
from powersketch.exceptions import InputError


@contextmanager
def opened_data(
    file: Path, dask: str | None, options: DataOptions, targets: Sequence[str], weight: str | None
) -> Iterator[tuple[Data, Data]]:
    """Give rows in memory, and all rows: the same ones unless a cluster of Dask is named."""
    if dask is None:
        data = options.load(file, targets, weight)
        yield data, data
        return
    try:
        from powersketch.distributed import connected, lazy_table, sampled_table, target_blocks
    except ImportError as error:
        raise InputError(
            f"--dask needs a package that is missing ({error}): pip install 'powersketch[dask]'."
        ) from error
    with connected(dask):
        lazily = partial(lazy_table, file, header=options.header, encoding=options.encoding)
        table = lazily()
        few = options.load(file, targets, weight, sampled_table(table))
        named = [name for name in table.columns if str(name) in few.targets]
        beside = [*named, *([weight] if weight else [])]
        table = lazily(columns=[*few.X.columns, *beside])
        table = table.dropna(subset=beside)
        weights = table[weight].astype(float).to_dask_array() if weight else None
        y = target_blocks(table, named)
        yield few, replace(few, X=table[[*few.X.columns]], y=y, weights=weights)


def reported(dask: str | None, report: Any) -> Any:
    """Let passes over blocks tell how far they are, while the context is open."""
    if dask is None:
        return nullcontext()
    from powersketch.distributed import telling

    return telling(report)
