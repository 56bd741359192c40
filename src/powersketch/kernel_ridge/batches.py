"""Batches of rows that come one after the other: arrays, tables of pandas, batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from powersketch.arrays import is_sparse
from powersketch.exceptions import InputError, InputTypeError


class Batch(NamedTuple):
    """Rows, targets or labels, and weights or None."""

    X: Any
    y: Any
    weights: Any = None


def gathered(
    batches: Iterable[Any], target: Any, rows: int
) -> tuple[Batch, Iterator[Batch] | None]:
    """Return the first batches as one, of at least so many rows, and the others; None if none."""
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes | dict):
        raise InputTypeError(
            f"batches is a {type(batches).__name__}; allowed is an iterable of batches: give a "
            "list or a generator of pairs (X, y)."
        )
    every = (_batch(given, target, number) for number, given in enumerate(batches))
    first: list[Batch] = []
    while sum(len(batch.y) for batch in first) < rows:
        batch = next(every, None)
        if batch is None:
            break
        first.append(batch)
    if not first:
        raise InputError("there are no batches; at least 1 is necessary: give pairs (X, y).")
    following = next(every, None)
    return _joined(first), None if following is None else chain((following,), every)


def _batch(given: Any, target: Any, number: int) -> Batch:
    """Return what a batch consists of: a pair, a triple, or a table with the target in it."""
    if isinstance(given, tuple) and len(given) in (2, 3):
        return Batch(*given)
    if target is None:
        raise InputTypeError(
            f"batch {number} is a {type(given).__name__}; allowed are pairs (X, y), triples "
            "(X, y, sample_weight), and with target= a table: give the name of a column."
        )
    table = given.to_pandas() if hasattr(given, "to_pandas") else given
    if not hasattr(table, "drop") or not hasattr(table, "columns"):
        raise InputTypeError(
            f"batch {number} is a {type(given).__name__}; allowed with target={target!r} are "
            "tables of pandas and batches of Arrow: give one of them, or pairs (X, y)."
        )
    if target not in table.columns:
        raise InputError(
            f"batch {number} has no column {target!r}; there are "
            f"{', '.join(map(repr, table.columns))}: name one of them as target."
        )
    return Batch(table.drop(columns=[target]), table[target])


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    rows = [batch.X for batch in batches]
    if any(is_sparse(X) for X in rows):
        X: Any = sparse.vstack(rows, format="csr")
    elif hasattr(rows[0], "columns"):
        import pandas

        X = pandas.concat(rows)
    else:
        X = np.concatenate(rows)
    weights = None
    if any(batch.weights is not None for batch in batches):
        weights = np.concatenate(
            [np.ones(len(b.y)) if b.weights is None else np.asarray(b.weights) for b in batches]
        )
    return Batch(X, np.concatenate([np.asarray(batch.y) for batch in batches]), weights)
