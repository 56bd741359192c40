"""Nyström features: the kernel's values at landmarks, times the inverse of a Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from powersketch.arrays import Real, Rows, is_sparse, slices
from powersketch.exceptions import InputError
from powersketch.execution import Progress, blas_threads, ordered_map
from powersketch.feature_maps import outlying
from powersketch.kernels import Kernel
from powersketch.linalg import TriangularRows, jittered_cholesky
from powersketch.storable import storable

_DEFAULT_JITTERS = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
# Features are solved for in float32 if that changes their inner products by no more than this,
# relative to the largest, at some of the landmarks. Where landmarks are nearly dependent it would.
_SINGLE_PRECISION_ERROR = 1e-5
_PROBES = 64
_ABSURD = 1e4
# Bits of a row's features must not depend on the rows around it. OpenBLAS rounds a row of a
# float64 product the same, wherever in a block it stands, if one thread computes it, the number of
# the block's rows is a multiple of 48 (of what every processor takes at a time), and the product
# has more than 32 columns. With fewer, blocks must be of one height too.
_UNIT = 48
_FEWEST_COLUMNS = 33
_FEWEST_ROWS, _MOST_ROWS = 480, 960
_BLOCK_BYTES = 4 << 20


@storable
@dataclass(frozen=True, eq=False)
class NystroemFeatures:
    """The map x ↦ k(x, L) R⁻¹, where RᵀR = k(L, L) + jitter · mean · I [WS01].

    Parameters
    ----------
    kernel_ : Kernel
        One of powersketch.kernels.
    landmarks : ndarray or CSR of shape (m, d)
        The rows L.
    solver : TriangularRows
        For Rᵀ.
    jitter : float
        Relative to the mean of the diagonal of k(L, L).
    probes : ndarray of shape (p, m)
        Some rows of k(L, L), none of absurd size.
    """

    kernel_: Kernel
    landmarks: Rows
    solver: TriangularRows
    jitter: float
    probes: Real

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        landmarks: Rows,
        jitter: float | None,
        threads: int,
        verbose: int = 0,
    ) -> Self:
        """Return the map for these landmarks; no jitter means one that suits their dtype."""
        square = kernel(landmarks, dtype=np.float64, n_jobs=threads)
        start = _DEFAULT_JITTERS[landmarks.dtype] if jitter is None else jitter
        # Beside a landmark of absurd size, the errors of others would not be seen.
        usual = np.delete(np.arange(len(square)), outlying(square.diagonal(), _ABSURD))
        probes = square[usual[:: -(-usual.size // _PROBES)]]
        factor, used = jittered_cholesky(square, start, threads=threads, verbose=verbose)
        return cls(kernel, landmarks, TriangularRows.of(factor), used, probes)

    def transform(self, X: Rows, threads: int = 1, progress: Progress | None = None) -> Real:
        """Return the features of every row, of the dtype of the rows."""
        dtype, values = self._precision(X), self._values
        solver = self.solver.in_float32 if dtype == np.float32 else self.solver

        def features(rows: Rows) -> Real:
            block = values(rows, dtype)
            solver.solve(block)
            return block

        Z = np.empty((X.shape[0], self.landmarks.shape[0]), X.dtype)
        return _collected(features, X, Z, threads, progress)

    def columns(self, threads: int) -> Callable[[Rows], Real]:
        """Return the function from rows to k(x, L), as precise as features are solved for."""
        values = self._values

        def computed(X: Rows) -> Real:
            dtype = self._precision(X)
            out = np.empty((X.shape[0], self.landmarks.shape[0]), dtype)
            return _collected(lambda rows: values(rows, dtype), X, out, threads)

        return computed

    @cached_property
    def _values(self) -> Callable[[Rows, np.dtype[Any]], Real]:
        """The function from rows and a dtype to k(x, L), the landmarks prepared once for all."""
        return self.kernel_.columns(self.landmarks)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_values"}

    def _precision(self, X: Rows) -> np.dtype[Any]:
        """Return the dtype in which features of these rows are solved for."""
        single = X.dtype == np.float32 and self._single_suffices
        return np.dtype(np.float32 if single else np.float64)

    @cached_property
    def _single_suffices(self) -> bool:
        """Whether float32 is good enough to solve for features of float32 rows."""
        exact = self.probes.copy()
        self.solver.solve(exact)
        # Where numbers are too large for float32 the error is NaN, and not small.
        with np.errstate(over="ignore", invalid="ignore"):
            single = self.probes.astype(np.float32)
            self.solver.in_float32.solve(single)
            rounded = single.astype(np.float64)
            error = np.abs(rounded @ rounded.T - exact @ exact.T).max()
        largest = np.einsum("ij,ij->i", exact, exact).max()
        return bool(error <= _SINGLE_PRECISION_ERROR * largest)


def _collected(
    compute: Callable[[Rows], Real],
    X: Rows,
    out: Real,
    threads: int,
    progress: Progress | None = None,
) -> Real:
    """Fill `out` with what is computed for one block of rows after another."""
    rows, columns = out.shape
    # The same blocks for any number of threads.
    fitting = _BLOCK_BYTES // (8 * columns)
    height = min(max(fitting, _FEWEST_ROWS), _MOST_ROWS) // _UNIT * _UNIT
    unit = _UNIT if columns >= _FEWEST_COLUMNS else height
    parts, count = slices(rows, height), min(threads, -(-rows // height))
    limit = float(np.finfo(out.dtype).max)

    def write(part: slice) -> slice:
        block = compute(_padded(X[part], unit))[: part.stop - part.start]
        largest = max(float(block.max()), -float(block.min()))
        if largest > limit:
            raise InputError(
                f"features overflow {out.dtype}: the largest is {largest:.3g}, above "
                f"{limit:.3g}: scale the rows of X, or pass X as float64."
            )
        out[part] = block
        return part

    with blas_threads(1):
        for part in ordered_map(write, parts, count):
            if progress is not None:
                progress.update(part.stop)
    return out


def _padded(rows: Rows, unit: int) -> Rows:
    """Return the rows in C order, followed by rows of zeros up to a multiple of the unit."""
    count = rows.shape[0] + -rows.shape[0] % unit
    if is_sparse(rows):
        ends = np.full(count + 1, rows.indptr[-1], rows.indptr.dtype)
        ends[: rows.indptr.size] = rows.indptr
        return type(rows)((rows.data, rows.indices, ends), shape=(count, rows.shape[1]))
    if count == rows.shape[0]:
        return np.ascontiguousarray(rows)
    padded = np.zeros((count, rows.shape[1]), rows.dtype)
    padded[: rows.shape[0]] = rows
    return padded
