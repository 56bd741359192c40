"""Dask collections as blocks of rows: what they have to look like, and what a block may hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed

from powersketch.arrays import is_sparse
from powersketch.distributed.running import compute
from powersketch.engines import is_elsewhere
from powersketch.exceptions import InputError, InputTypeError


@dataclass(frozen=True, eq=False)
class RowBlocks:
    """An array divided by rows only; `columns` are the names of a DataFrame's columns, or None.

    If it `shares` blocks with another array, as targets do that are computed from X, they are
    computed once for both; otherwise Dask may join the steps that lead to a block.
    """

    name: str
    array: da.Array
    columns: Any = None
    shares: bool = False

    @classmethod
    def of(cls, name: str, X: Any) -> Self:
        """Take a Dask array, DataFrame or Series; refuse anything else, and divided columns."""
        columns = None
        if not isinstance(X, da.Array | Delayed) and hasattr(X, "to_dask_array"):
            _check_numbers(name, X._meta)
            columns, X = getattr(X, "columns", None), X.to_dask_array()
        if not isinstance(X, da.Array):
            raise InputTypeError(
                f"{name} is a {type(X).__module__}.{type(X).__name__}; allowed are Dask arrays, "
                "DataFrames and Series: convert it to one of them."
            )
        _check_chunks(name, X)
        return cls(name, X, columns)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Numbers of rows of the blocks, which have to be known."""
        assert self.are_counted
        return tuple(map(int, self.array.chunks[0]))

    @property
    def are_counted(self) -> bool:
        """Whether the numbers of rows are known."""
        return not any(math.isnan(size) for size in self.array.chunks[0])

    @property
    def count(self) -> int:
        """Number of all rows."""
        return sum(self.lengths)

    @property
    def starts(self) -> list[int]:
        """The number of the first row of every block."""
        return [0, *itertools.accumulate(self.lengths)][:-1]

    @cached_property
    def tasks(self) -> list[Delayed]:
        """One task for every block, which gives its rows."""
        delayed = self.array.to_delayed(optimize_graph=not self.shares)
        blocks: list[Delayed] = delayed.ravel().tolist()
        return blocks

    def counted(self) -> RowBlocks:
        """Return the same with known numbers of rows, for which blocks are computed if need be."""
        array = self.array
        if not self.are_counted:
            count = dask.delayed(_length, pure=True)
            lengths = compute([count(block) for block in self.tasks], "the lengths of blocks")
            array = array.copy()
            array._chunks = (tuple(lengths), *array.chunks[1:])
        if not array.shape[0]:
            raise InputError(f"{self.name} has no rows; at least 1 is necessary: give some.")
        return replace(self, array=array)

    def zeros(self, rows: int) -> Any:
        """Return rows of zeros of the type that blocks have."""
        meta, shape = self.array._meta, (rows, *self.array.shape[1:])
        zeros = type(meta)(shape, dtype=meta.dtype) if is_sparse(meta) else None
        return self.named(np.zeros(shape, meta.dtype) if zeros is None else zeros)

    def named(self, rows: Any) -> Any:
        """Return rows with the names of their columns, if these have names."""
        return with_names(rows, self.columns)


def with_names(rows: Any, columns: Any) -> Any:
    """Return rows as a table if their columns have names."""
    if columns is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=columns)


def aligned(name: str, values: Any, rows: RowBlocks) -> RowBlocks | None:
    """Return targets or weights in blocks like those of X, whose lengths are known; or None."""
    if values is None:
        return None
    if not is_elsewhere(values):
        array = np.asarray(values)
        values = da.from_array(array, chunks=array.shape)
    blocks = RowBlocks.of(name, values.rechunk({1: -1}) if values.ndim == 2 else values)
    if blocks.are_counted and blocks.count != rows.count:
        raise InputError(f"{name} has {blocks.count} rows and X has {rows.count}: give as many.")
    if blocks.are_counted:
        return replace(blocks, array=blocks.array.rechunk({0: rows.lengths}))
    if blocks.array.numblocks[0] != rows.array.numblocks[0]:
        raise InputError(
            f"{name} has {blocks.array.numblocks[0]} blocks of unknown lengths and X has "
            f"{rows.array.numblocks[0]}: divide both in the same way, or call "
            f"{name}.compute_chunk_sizes() first."
        )
    return blocks


def sharing(parts: Sequence[RowBlocks | None]) -> list[Any]:
    """Return arrays that are computed together; each knows whether it shares blocks.

    Dask would join the steps of each array by itself, and do those that they share once for each.
    """
    layers = [frozenset() if part is None else frozenset(part.array.dask.layers) for part in parts]
    counts = Counter(itertools.chain(*layers))
    return [
        part and replace(part, shares=any(counts[layer] > 1 for layer in own))
        for part, own in zip(parts, layers, strict=True)
    ]


def checked_block(block: Any, number: int, meta: Any, name: str = "X") -> Any:
    """Return a block that is of the type it was declared to be, or say which one is not."""
    if is_sparse(block) != is_sparse(meta):
        raise InputTypeError(
            f"block {number} of {name} is a {type(block).__name__}, where {name} was declared to "
            f"have blocks of type {type(meta).__name__}: convert all blocks to one type, and say "
            f"which one it is, for instance by {name}.map_blocks(scipy.sparse.csr_array, "
            "meta=scipy.sparse.csr_array((0, 0)))."
        )
    return aligned_in_memory(block)


def aligned_in_memory(values: Any) -> Any:
    """Return an array as NumPy itself would have placed it in memory.

    One that came from another worker may begin at any byte, and NumPy adds up numbers in another
    order there: bits would depend on who computed what.
    """
    return np.require(values, requirements=["C", "A"]) if type(values) is np.ndarray else values


def in_block(number: int, first: int | None, call: Callable[[], Any]) -> Any:
    """Call; an error about what was given says in which block it was found."""
    try:
        return call()
    except (InputError, InputTypeError, ValueError, TypeError) as error:
        kind = InputTypeError if isinstance(error, TypeError) else InputError
        begins = "" if first is None else f", which begins at row {first}"
        raise kind(f"in block {number} of X{begins}: {error}") from error


def _length(block: Any) -> int:
    return int(block.shape[0])


def _check_chunks(name: str, X: da.Array) -> None:
    if X.ndim not in (1, 2):
        raise InputError(f"{name} has {X.ndim} dimensions; allowed are 1 and 2: reshape it.")
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        raise InputError(
            f"the {X.shape[1]} columns of {name} are divided into {len(X.chunks[1])} chunks; "
            f"allowed are blocks of whole rows: use {name}.rechunk({{1: -1}})."
        )
    if X.dtype.kind not in "biufOUS":
        raise InputTypeError(
            f"{name} has dtype {X.dtype}; allowed are real numbers: convert with "
            f"{name}.astype(float)."
        )


def _check_numbers(name: str, meta: Any) -> None:
    """Refuse tables with columns that are no numbers; targets may be anything."""
    if not hasattr(meta, "columns"):
        return
    kinds = {str(column): getattr(kind, "kind", "O") for column, kind in meta.dtypes.items()}
    others = [column for column, kind in kinds.items() if kind not in "biuf"]
    if others:
        raise InputTypeError(
            f"{name} has columns that are no numbers: {', '.join(others[:3])}"
            f"{' and others' if len(others) > 3 else ''}. Allowed are numbers: turn the table into "
            "rows of numbers by TablePreparation first."
        )
