"""Sums of products of features, tile by tile on several threads, while the next block is computed.

Every tile of a block is the product of one thread, and is added in float64 in the order of the
blocks: bits depend neither on the number of threads nor on who is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Self

import numpy as np

from powersketch.arrays import Float64, Real, slices
from powersketch.execution import blas_thread_count, blas_threads

# A tile in float64 takes 2 MiB, and fewer features have smaller ones, so that no thread is idle.
_WIDTH, _WIDTH_OF_FEW, _FEW = 512, 256, 1024
# Sums of blocks with less work than this take less time than to start threads for them.
_FEWEST_PRODUCTS = 2e8
_MIRRORED = 512


class GramSum:
    """Σ ZᵀZ over blocks Z of rows, whose products are computed while the caller goes on.

    With blocks in float32, their products are float32 and the sums of blocks float64.
    """

    def __init__(self, features: int) -> None:
        # On and above the diagonal.
        self._matrix = np.zeros((features, features))
        self._parts = list(slices(features, _WIDTH if features > _FEW else _WIDTH_OF_FEW))
        self._open = ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        for future in self._waiting:
            future.cancel()
        self._open.close()

    def add(self, Z: Real) -> None:
        """Add the products of a block, which must stay as it is until the next one is added."""
        self.wait()
        products = float(Z.shape[0]) * float(Z.shape[1]) ** 2
        if self._pool is None and products >= _FEWEST_PRODUCTS and blas_thread_count() > 1:
            self._start(blas_thread_count())
        if self._pool is None:
            for tile in self._tiles():
                self._add_tile(Z, *tile)
        else:
            self._waiting = [self._pool.submit(self._add_tile, Z, *tile) for tile in self._tiles()]

    def wait(self) -> None:
        """Return when everything that was given has been added."""
        while self._waiting:
            self._waiting.pop().result()

    def total(self) -> Float64:
        """Return the sum of everything; what is below its diagonal is undefined."""
        self.wait()
        return self._matrix

    def _start(self, threads: int) -> None:
        self._open.enter_context(blas_threads(1))
        self._pool = self._open.enter_context(ThreadPoolExecutor(threads))

    def _tiles(self) -> Iterator[tuple[slice, slice]]:
        """Yield rows and columns of the tiles on and above the diagonal, the largest first."""
        diagonal = [(part, part) for part in self._parts]
        for number, columns in enumerate(self._parts):
            yield from ((rows, columns) for rows in self._parts[:number])
        yield from diagonal

    def _add_tile(self, Z: Real, rows: slice, columns: slice) -> None:
        # NumPy computes one triangle only where a matrix meets its own transpose.
        with np.errstate(over="ignore", invalid="ignore"):
            self._matrix[rows, columns] += Z[:, rows].T @ Z[:, columns]


def mirror_upper_triangle(matrix: Float64) -> None:
    """Copy what is above the diagonal to what is below it."""
    for part in slices(matrix.shape[0], _MIRRORED):
        corner = matrix[part, part]
        np.copyto(corner, np.triu(corner) + np.triu(corner, 1).T)
        matrix[part.stop :, part] = matrix[part, part.stop :].T
