"""Tables of Dask: their preparation is learned from a sample of rows, and applied lazily."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import dask
import numpy as np
from dask.dataframe import DataFrame

from powersketch.distributed.blocks import in_block
from powersketch.distributed.running import compute
from powersketch.exceptions import InputError, InputTypeError
from powersketch.feature_maps import MOST_CHOICE_ROWS, spread_numbers
from powersketch.tables import TablePreparation


def fit_table(preparation: TablePreparation, X: Any) -> TablePreparation:
    """Fit rows spread over the whole table, all of them if they are few."""
    return preparation.fit(sampled_table(X))


def sampled_table(X: Any) -> Any:
    """Return rows spread over the whole table, in memory."""
    import pandas

    parts = _checked(X).to_delayed()
    count, take = dask.delayed(len, pure=True), dask.delayed(_taken, pure=True)
    lengths = compute([count(part) for part in parts], "the lengths of partitions")
    if not sum(lengths):
        raise InputError("X has no rows; at least 1 is necessary: give some.")
    starts = [0, *accumulate(lengths)]
    wanted = spread_numbers(starts[-1], MOST_CHOICE_ROWS)
    places = np.split(wanted, np.searchsorted(wanted, starts[1:-1]))
    taken = [
        take(part, own - first)
        for part, own, first in zip(parts, places, starts[:-1], strict=True)
        if own.size
    ]
    return pandas.concat(compute(taken, "the sample of rows"), ignore_index=True)


def transformed_table(preparation: TablePreparation, X: Any) -> Any:
    """Return a lazy array of the table's numbers, of a block for every partition."""
    shape = (0, len(preparation.get_feature_names_out()))
    # As it is: Dask cannot join tasks of tables with one that all of them share.
    return _checked(X).map_partitions(
        _prepared, preparation, meta=np.empty(shape, preparation._dtype)
    )


def _taken(part: Any, places: Any) -> Any:
    return part.iloc[places]


def _prepared(part: Any, preparation: TablePreparation, partition_info: Any = None) -> Any:
    number = 0 if partition_info is None else partition_info["number"]
    if not len(part):
        return np.empty((0, len(preparation.get_feature_names_out())), preparation._dtype)
    return in_block(number, None, lambda: preparation.transform(part))


def _checked(X: Any) -> DataFrame:
    if not isinstance(X, DataFrame):
        raise InputTypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}; allowed are Dask DataFrames: convert "
            "it with dask.dataframe.from_dask_array, or leave the preparation out if all columns "
            "are numbers."
        )
    return X
