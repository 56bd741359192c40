"""One pass over all blocks for the rows that choices are made from."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np

from powersketch.distributed.blocks import RowBlocks, checked_block, in_block
from powersketch.distributed.running import compute, tree
from powersketch.execution import blas_threads
from powersketch.feature_maps import ChoiceRows
from powersketch.validation import checked_rows


def choice_rows(rows: RowBlocks, most: int) -> ChoiceRows:
    """Return a sample of all rows: all of them if they are few.

    Every entry of X is checked on the way, and rows absurdly far from all others are found.
    """
    take = dask.delayed(_taken, pure=True)
    numbered = enumerate(zip(rows.tasks, rows.starts, rows.lengths, strict=True))
    parts = [
        take(block, number, first, rows.count, most, rows.array._meta)
        for number, (block, first, length) in numbered
        if length
    ]
    chosen: ChoiceRows = compute([tree(parts, ChoiceRows.merged)], "the sample of rows")[0]
    return chosen


def _taken(block: Any, number: int, first: int, total: int, most: int, meta: Any) -> ChoiceRows:
    def call() -> ChoiceRows:
        with blas_threads(1):
            rows = checked_rows(checked_block(block, number, meta))
            numbers = first + np.arange(rows.shape[0])
            return ChoiceRows.of(rows, numbers, total, most)

    chosen: ChoiceRows = in_block(number, first, call)
    return chosen
