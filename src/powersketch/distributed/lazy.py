"""Methods that give a row of numbers for every row: the same for Dask collections, lazily."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import sklearn
from dask.base import tokenize
from dask.delayed import Delayed

from powersketch.distributed.blocks import RowBlocks, checked_block, in_block, with_names
from powersketch.exceptions import InputError, held_back
from powersketch.execution import blas_threads


def rowwise(method: str, estimator: Any, X: Any, named: dict[str, Any]) -> Any:
    """Return what the method gives as a lazy array, divided as X is; as a tuple of them if it is.

    The graph holds the fitted estimator once. Its result for a row of zeros tells the columns and
    the dtype.
    """
    _refuse_containers(method, estimator)
    rows = RowBlocks.of("X", X)
    with held_back(UserWarning):
        given = getattr(estimator, method)(rows.zeros(1), **named)
    template = _as_array(given)[:0]
    columns = template.shape[1:]
    values = rows.array.map_blocks(
        _apply,
        method,
        shared_task(estimator),
        named,
        rows.array._meta,
        rows.columns,
        template,
        name=f"{method}-{tokenize(estimator, rows.array.name, method, named)}",
        chunks=(rows.array.chunks[0], *((size,) for size in columns)),
        drop_axis=[] if columns else [1],
        new_axis=[2] if len(columns) > 1 else None,
        meta=template,
    )
    if not isinstance(given, tuple):
        return values
    return tuple(values[..., place] for place in range(len(given)))


def shared_task(value: Any) -> Delayed:
    """Return an object as one task: it is sent to a worker once, not with every block."""
    return dask.delayed(value, name=f"{type(value).__name__}-{tokenize(value)}", traverse=False)


def _apply(
    block: Any,
    method: str,
    estimator: Any,
    named: dict[str, Any],
    meta: Any,
    columns: Any,
    template: Any,
    block_id: tuple[int, ...],
) -> Any:
    """Return what the method gives for one block."""

    def call() -> Any:
        rows = with_names(checked_block(block, block_id[0], meta), columns)
        with blas_threads(1):
            return _as_array(getattr(estimator, method)(rows, **named))

    # Of no rows, estimators rightly complain.
    return in_block(block_id[0], None, call) if block.shape[0] else template


def _as_array(values: Any) -> Any:
    return np.stack(values, axis=-1) if isinstance(values, tuple) else values


def _refuse_containers(method: str, estimator: Any) -> None:
    """Refuse outputs as data frames, which would be loaded to be made."""
    config = getattr(estimator, "_sklearn_output_config", {})
    container = config.get(method) or sklearn.get_config()["transform_output"]
    if method == "transform" and container != "default":
        raise InputError(
            f"set_output(transform={container!r}) cannot be used with Dask collections, which "
            "would be loaded for it: use set_output(transform='default')."
        )
