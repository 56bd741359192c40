"""Kernel systems: products with the exact kernel matrix tile by tile, a sketch as preconditioner.

A product takes a task for every pair of blocks, so that no worker holds more than two of them. The
low-rank preconditioner is Woodbury's identity: its features are computed where the blocks are, and
only its small matrix is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed

from powersketch.arrays import Float64, slices
from powersketch.distributed.blocks import RowBlocks, checked_block, in_block
from powersketch.distributed.lazy import shared_task
from powersketch.distributed.maps import choice_rows, fit_map
from powersketch.distributed.running import compute, tree
from powersketch.exceptions import InputError
from powersketch.execution import blas_threads
from powersketch.feature_maps import MOST_CHOICE_ROWS, map_for
from powersketch.kernel_systems import default_rank
from powersketch.kernels import Kernel, as_kernel, asks_for_scale, at_scale
from powersketch.linalg import (
    CholeskyFactor,
    SolverResult,
    SymmetricOperator,
    conjugate_gradients,
    warn_if_not_converged,
)
from powersketch.nystroem import LeverageNystroem
from powersketch.parameters import checked_alpha, checked_tolerance, one_of
from powersketch.random_streams import seed_from
from powersketch.validation import checked_columns, checked_rows

_PRECONDITIONERS = ("auto", "nystroem", "features", "none")
_ONLY_IN_MEMORY = {"method": "cg", "memory_budget": None}
_ROWS_OF_TILE = 1024


def solve_blocks(
    X: Any,
    y: Any,
    kernel: Kernel | str,
    *,
    alpha: float,
    tol: float,
    operator: str,
    preconditioner: Any,
    max_iterations: int | None,
    n_components: int | None,
    callback: Any,
    random_state: Any,
    verbose: int,
    **others: Any,
) -> SolverResult:
    """Solve (K + alpha I) x = y for rows in blocks, by conjugate gradients."""
    for name, value in _ONLY_IN_MEMORY.items():
        if others[name] != value:
            raise InputError(
                f"{name}={others[name]!r} is for rows in memory; with Dask allowed is {value!r}."
            )
    one_of("with Dask collections, operator", operator, ("auto", "exact"))
    one_of("with Dask collections, preconditioner", preconditioner, _PRECONDITIONERS)
    alpha, tol, seed = checked_alpha(alpha), checked_tolerance(tol), seed_from(random_state)
    rows = RowBlocks.of("X", X).counted()
    values = compute([dask.delayed(np.asarray)(y)], "y")[0]
    targets = checked_columns("y", values, rows.count, ": give an entry for every row of X")
    system = BlockKernel(rows, _resolved(as_kernel(kernel), rows), alpha)
    inverse: Any = None
    if preconditioner != "none":
        inverse = BlockInverse.of(system, preconditioner, n_components, seed)
    result = conjugate_gradients(
        system,
        targets,
        preconditioner=inverse,
        tol=tol,
        max_iterations=max_iterations,
        callback=callback,
        verbose=verbose,
    )
    warn_if_not_converged(result)
    return result


def _resolved(kernel: Kernel, rows: RowBlocks) -> Kernel:
    """Return the kernel with numbers for what depends on the data: on a sample of it."""
    if not isinstance(getattr(kernel, "gamma", None), str):
        return kernel
    chosen = choice_rows(rows, MOST_CHOICE_ROWS, measure=asks_for_scale(kernel))
    resolved: Kernel = at_scale(kernel, chosen.moments).resolve(chosen.rows)
    return resolved


class BlockKernel(SymmetricOperator):
    """The exact kernel matrix of rows in blocks, plus alpha I; never stored."""

    def __init__(self, rows: RowBlocks, kernel: Kernel, alpha: float) -> None:
        super().__init__(rows.count)
        self.rows, self.kernel, self.alpha = rows, kernel, alpha
        self.parts = [
            slice(first, first + length)
            for first, length in zip(rows.starts, rows.lengths, strict=True)
        ]

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"exact kernel of {self.shape[0]} rows in {len(self.parts)} blocks"

    def checked(self) -> list[Delayed]:
        """Return tasks that give the checked rows of every block."""
        check = dask.delayed(_checked, pure=True)
        meta = self.rows.array._meta
        return [check(block, number, meta) for number, block in enumerate(self.rows.tasks)]

    def each(
        self, function: Callable[..., Any], *given: Any, by_block: Any = None
    ) -> list[Delayed]:
        """Return a task for every block: the function of its rows, of a slice and what is given."""
        call, shared = dask.delayed(function, pure=True), [shared_task(value) for value in given]
        blocks = zip(self.checked(), self.parts, strict=True)
        if by_block is None:
            return [call(X, *shared) for X, _ in blocks]
        return [call(X, by_block[part], *shared) for X, part in blocks]

    def _matmat(self, V: Any) -> Any:
        multiply, kernel = dask.delayed(_tile_product, pure=True), shared_task(self.kernel)
        blocks = self.checked()
        vectors = [shared_task(np.ascontiguousarray(V[part])) for part in self.parts]
        rows = [
            tree([multiply(kernel, X, Y, v) for Y, v in zip(blocks, vectors, strict=True)], _added)
            for X in blocks
        ]
        products = np.concatenate(compute(rows, "products with the kernel matrix"))
        return products + self.alpha * V


class BlockInverse(SymmetricOperator):
    """(Z Zᵀ + nugget I)⁻¹ for features Z of rows in blocks, by Woodbury's identity."""

    def __init__(self, system: BlockKernel, feature_map: Any) -> None:
        super().__init__(system.shape[0])
        self._system, self._map = system, feature_map
        gram = compute([tree(system.each(_gram, feature_map), _added)], "a preconditioner")[0]
        smallest = max(float(np.linalg.eigvalsh(gram)[0]), 0.0)
        self.nugget = system.alpha + smallest or float(np.finfo(np.float64).eps * np.trace(gram))
        self._inner = CholeskyFactor(gram, alpha=self.nugget)

    @classmethod
    def of(cls, system: BlockKernel, name: str, size: int | None, seed: int) -> BlockInverse:
        """Fit the landmarks, or the sketch, that stand for K."""
        size = size or default_rank(system.shape[0])
        if name == "features":
            feature_map: Any = map_for(system.kernel, size, random_state=seed)
        else:
            feature_map = LeverageNystroem(
                system.kernel, n_components=size, landmarks="uniform", random_state=seed
            )
        return cls(system, fit_map(feature_map, system.rows.array))

    def describe(self) -> str:
        """Return in a few words what the operator is."""
        return f"{type(self._map).__name__} of {self._map.n_components_} features, in blocks"

    def _matmat(self, V: Any) -> Any:
        each = self._system.each
        right = compute(
            [tree(each(_transposed, self._map, by_block=V), _added)], "a preconditioner"
        )[0]
        inner = self._inner.matmat(right)
        parts = compute(each(_product, self._map, inner), "a preconditioner")
        return (V - np.concatenate(parts)) / self.nugget


def _checked(block: Any, number: int, meta: Any) -> Any:
    return in_block(number, None, lambda: checked_rows(checked_block(block, number, meta)))


def _tile_product(kernel: Kernel, X: Any, Y: Any, V: Float64) -> Float64:
    with blas_threads(1):
        parts = slices(X.shape[0], _ROWS_OF_TILE)
        return np.concatenate([kernel(X[part], Y, dtype=np.float64) @ V for part in parts])


def _features(X: Any, feature_map: Any) -> Float64:
    Z: Float64 = feature_map.transform(X).astype(np.float64, copy=False)
    return Z


def _gram(X: Any, feature_map: Any) -> Float64:
    with blas_threads(1):
        Z = _features(X, feature_map)
        return Z.T @ Z


def _transposed(X: Any, V: Float64, feature_map: Any) -> Float64:
    with blas_threads(1):
        return _features(X, feature_map).T @ V


def _product(X: Any, feature_map: Any, V: Float64) -> Float64:
    with blas_threads(1):
        return _features(X, feature_map) @ V


def _added(parts: list[Float64]) -> Float64:
    return sum(parts[1:], parts[0])
