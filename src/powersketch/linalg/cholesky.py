"""Cholesky factorisations in place, with a jitter where rounding has made a matrix indefinite."""

from __future__ import annotations

import ctypes
import importlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from powersketch.arrays import Float64, Real, Vector, slices
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import (
    Progress,
    blas_thread_count,
    blas_threads,
    interruptible,
    ordered_map,
)
from powersketch.storable import storable

_ROUTINES = {np.dtype(np.float64): "dpotrf", np.dtype(np.float32): "spotrf"}
_INTEGER = ctypes.POINTER(ctypes.c_int)
# Of triangle, size, matrix, leading dimension and status; a call releases Python's lock.
_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INTEGER, ctypes.c_void_p, _INTEGER, _INTEGER)

# Wide enough for products to run at full speed, narrow enough to invert without losing digits.
_WIDTH = 512
# With this much of the mean diagonal added, the factor would no longer resemble the matrix.
_LARGEST_JITTER = 0.1
_LARGEST_JITTER_OF_LANDMARKS = 1e-2
# One call of LAPACK factors this many rows; of more, blocks of rows.
_MOST_ROWS_AT_ONCE, _BLOCK = 6144, 384
# Of one call of SciPy's triangular solver. It takes about a tenth of a second.
_MULTIPLICATIONS = 2**31
# Of the pivots. Beyond it, rounding errors of float32 are as large as the smallest eigenvalues.
_LARGEST_SPREAD_OF_FLOAT32 = 1e6

# Of k(x, x) relative to the median. Sums of both keep a few digits of the smaller one.
_DOMINANT = 1e10
_NAMED = 3


def cholesky_in_place(
    matrix: Real, progress: Progress | None = None, threads: int | None = None
) -> bool:
    """Write the factor L, with L Lᵀ = matrix, to the lower triangle; the upper one stays as it is.

    Large matrices are factored block by block on all threads of BLAS, so that Ctrl-C works at any
    time and progress can be seen.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        float64 or float32, writeable, row by row in memory. After an interrupt, a thread writes to
        it for a moment.
    progress : Progress, default=None
        Is told how many rows are done.
    threads : int, default=None
        That share blocks; None is as many as BLAS is set to use. No bit depends on it.

    Returns
    -------
    bool
        Whether the matrix is positive definite; if not, the lower triangle is spoilt.
    """
    size = matrix.shape[0]
    if size <= _MOST_ROWS_AT_ONCE:
        return _factor_at_once(matrix)
    threads = blas_thread_count() if threads is None else threads
    parts = list(slices(size, _BLOCK))
    # Threads of BLAS would wait by spinning, at the expense of those that share blocks.
    with blas_threads(1):
        inverse = _factor_diagonal(matrix, parts[0])
        for part, after in pairwise(parts):
            if inverse is None:
                return False
            below = (rows for rows in parts if rows.start >= part.stop)
            write = partial(_write_panel, matrix, part, inverse)
            with closing(ordered_map(write, below, threads)) as written:
                next(written)
                # Of the next block all is known that is to its left; the threads go on meanwhile.
                inverse = _factor_diagonal(matrix, after)
                deque(written, maxlen=0)
            if progress is not None:
                progress.update(part.stop)
    if progress is not None:
        progress.update(size)
    return inverse is not None


def _factor_diagonal(matrix: Real, part: slice) -> Real | None:
    """Write the factor of a block on the diagonal; return its inverse, or None if there is none."""
    block = np.ascontiguousarray(_updated(matrix, part, part))
    if not _factor_at_once(block):
        return None
    _copy_lower(block, matrix[part, part])
    identity = np.eye(len(block), dtype=block.dtype)
    return np.asarray(linalg.solve_triangular(block.T, identity))


def _updated(matrix: Real, rows: slice, columns: slice) -> Real:
    """Return a block without what the columns of the factor before it explain."""
    known = slice(0, columns.start)
    block: Real = matrix[rows, columns] - matrix[rows, known] @ matrix[columns, known].T
    return block


def _write_panel(matrix: Real, columns: slice, inverse: Real, rows: slice) -> None:
    matrix[rows, columns] = _updated(matrix, rows, columns) @ inverse


def _copy_lower(block: Real, to: Real) -> None:
    for row in range(len(block)):
        to[row, : row + 1] = block[row, : row + 1]


def _factor_at_once(matrix: Real) -> bool:
    """Factor a matrix by one call.

    SciPy's own wrapper keeps Python's global lock to the end, which blocks even Ctrl-C, and NumPy's
    copies the matrix twice. So LAPACK's routine is called here, at the address that SciPy publishes
    for Cython.
    """
    routine = _lapack_routine(_ROUTINES[matrix.dtype])
    size, status = ctypes.c_int(matrix.shape[0]), ctypes.c_int(0)
    # LAPACK counts by columns: what it takes for the upper triangle is the lower one here.
    interruptible(lambda: routine(b"U", size, matrix.ctypes.data, size, status))
    return status.value == 0 and bool(np.isfinite(matrix.diagonal()).all())


@cache
def _lapack_routine(name: str) -> Callable[..., None]:
    """Return a routine of the LAPACK that SciPy is linked with."""
    capsule = importlib.import_module("scipy.linalg.cython_lapack").__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    routine: Callable[..., None] = _PROTOTYPE(address_of(capsule, name_of(capsule)))
    return routine


def check_square(matrix: Real) -> None:
    """Refuse what is not a finite square matrix of real numbers."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InputError(
            f"the matrix has shape {matrix.shape}; allowed is (n, n) with n of at least 1."
        )
    if matrix.dtype not in (np.float64, np.float32):
        raise InputTypeError(
            f"the matrix has dtype {matrix.dtype}; allowed are float64 and float32: "
            "convert with matrix.astype(float)."
        )
    if not np.isfinite(matrix).all():
        raise InputError("the matrix contains NaN or infinity; allowed are finite numbers.")


def float32_factor(matrix: Real, diagonal: Vector) -> Real | None:
    """Return the lower factor, or None, and then the matrix is still as it was."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = matrix if matrix.dtype == np.float32 else matrix.astype(np.float32)
        narrow = diagonal.astype(np.float32)
        factor = lower_factor(rounded, narrow)
    if factor is not None and spread(factor) ** 2 > _LARGEST_SPREAD_OF_FLOAT32:
        _restore(factor, narrow)
        return None
    return factor


def float64_factor(matrix: Real, diagonal: Vector) -> tuple[Real, float]:
    """Return the lower factor and the jitter that was necessary, a part of the mean diagonal."""
    rounding = matrix.shape[0] * float(np.finfo(matrix.dtype).eps)
    matrix = matrix.astype(np.float64, copy=False)
    mean, jitter = float(diagonal.mean()), 0.0
    while jitter <= _LARGEST_JITTER and mean > 0.0:
        shifted = diagonal + jitter * mean
        factor = lower_factor(matrix, shifted)
        # Every pivot has to be more than what rounding leaves of a diagonal entry.
        if factor is not None and (factor.diagonal() ** 2 > 0.1 * rounding * shifted).all():
            return factor, jitter
        if factor is not None:
            _restore(factor, diagonal)
        jitter = max(10.0 * jitter, rounding)
    raise np.linalg.LinAlgError(
        f"the matrix is not positive definite: its diagonal is {mean:.3g} in the mean, and adding "
        f"up to {_LARGEST_JITTER:.1g} of that does not suffice: {_remedy(diagonal)}."
    )


def cholesky_solution(matrix: Real, right: Float64, alpha: float) -> Float64:
    """Return (matrix + alpha I)⁻¹ right; the symmetric matrix may be overwritten."""
    check_square(matrix)
    factor, _ = float64_factor(matrix, matrix.diagonal().astype(np.float64) + alpha)
    return solved_in_panels(partial(linalg.cho_solve, (factor.T, False), check_finite=False), right)


def solved_in_panels(solve: Callable[[Real], Real], V: Real) -> Real:
    """Apply a triangular solver of SciPy to few enough columns at a time for Ctrl-C to work.

    These solvers keep Python's lock, so that signals wait until they return.
    """
    width = max(_MULTIPLICATIONS // V.shape[0] ** 2, 1)
    if V.ndim == 1 or V.shape[1] <= width:
        return solve(V)
    return np.hstack([solve(V[:, columns]) for columns in slices(V.shape[1], width)])


def _remedy(diagonal: Vector) -> str:
    rows, median = _dominant_rows(diagonal)
    if not rows.size:
        return "use a larger alpha"
    return (
        f"row {rows[0]} has {diagonal[rows[0]]:.3g} there, and the median is "
        f"{median:.3g}; remove or rescale such rows"
    )


def jittered_cholesky(
    matrix: Real, jitter: float, *, threads: int | None = None, verbose: int = 0
) -> tuple[Real, float]:
    """Return L with L Lᵀ = matrix + jitter · mean · I, and the jitter that was necessary.

    Parameters
    ----------
    matrix : ndarray of shape (m, m)
        Symmetric and, up to rounding errors, positive semi-definite. It is overwritten by the
        factor if it is writeable and row by row in memory.
    jitter : float
        Relative to the mean of the diagonal, or to each of its entries where a few are so large
        that the jitter would drown the others. Where it does not suffice, it grows by factors of
        10.
    threads, verbose : int
        As many threads share a large matrix, None being those of BLAS; whether to show progress.

    Returns
    -------
    factor : ndarray of shape (m, m)
        L, lower triangular.
    jitter : float
        The one in use.
    """
    diagonal = matrix.diagonal().astype(np.float64)
    # If the mean is zero the whole matrix is, and any positive number will do.
    unit = float(diagonal.mean()) or 1.0
    while True:
        shifted = diagonal + jitter * _jitter_units(diagonal, unit, jitter)
        factor = lower_factor(matrix, shifted, threads=threads, verbose=verbose)
        if factor is not None:
            for row in range(diagonal.size):
                factor[row, row + 1 :] = 0.0
            return factor, jitter
        jitter = max(10.0 * jitter, diagonal.size * float(np.finfo(np.float64).eps))
        if jitter > _LARGEST_JITTER_OF_LANDMARKS:
            raise InputError(
                "the kernel matrix of the landmarks is not positive semi-definite: it has a "
                f"negative eigenvalue beyond {_LARGEST_JITTER_OF_LANDMARKS} times the mean of its "
                f"diagonal, {unit:.3g}; allowed are rounding errors: use a positive definite "
                "kernel."
            )


def _jitter_units(diagonal: Real, mean: float, jitter: float) -> Real:
    """Return what the jitter of every row is relative to."""
    positive = diagonal[diagonal > 0.0]
    largest = _LARGEST_JITTER_OF_LANDMARKS
    if positive.size == 0 or jitter * mean <= largest * float(np.median(positive)):
        return np.full_like(diagonal, mean)
    return np.where(diagonal > 0.0, diagonal, positive.min())


def lower_factor(
    matrix: Real, diagonal: Real, *, threads: int | None = None, verbose: int = 0
) -> Real | None:
    """Return the factor of the matrix with that diagonal, or None if there is no factor.

    It is written below the diagonal of the matrix where that is writeable, row by row in memory;
    else to a copy. What is above the diagonal stays there, and None restores the rest from it.
    """
    in_place = matrix.flags.c_contiguous and matrix.flags.writeable
    matrix = matrix if in_place else matrix.copy(order="C")
    np.fill_diagonal(matrix, diagonal)
    if cholesky_in_place(matrix, Progress("factorisation", len(matrix), verbose), threads):
        return matrix
    _restore(matrix, diagonal)
    return None


def spread(factor: Real) -> float:
    """Return the quotient of the extreme diagonal entries: no more than the condition number."""
    diagonal = np.abs(factor.diagonal())
    return float(diagonal.max() / diagonal.min()) if diagonal.min() > 0.0 else np.inf


def _restore(matrix: Real, diagonal: Real) -> None:
    """Copy what is right of the diagonal, which no factorisation touches, to what is below it."""
    for part in slices(matrix.shape[0], _WIDTH):
        square = matrix[part, part]
        np.copyto(square, np.triu(square) + np.triu(square, 1).T)
        matrix[part.stop :, part] = matrix[part, part.stop :].T
    np.fill_diagonal(matrix, diagonal)


def dominant_rows_message(diagonal: Real, numbers: NDArray[Any] | None = None) -> str | None:
    """Return a sentence that names the rows whose k(x, x) dwarfs that of all others, or None.

    What other rows contribute is then lost in rounding errors. `numbers` are those by which the
    user knows the rows, where some were left out.
    """
    rows, median = _dominant_rows(diagonal)
    if not rows.size:
        return None
    known = rows if numbers is None else numbers[rows]
    names = ", ".join(map(str, known[:_NAMED].tolist()))
    more = f" and {rows.size - _NAMED} others" if rows.size > _NAMED else ""
    have = "row {} has" if rows.size == 1 else "the rows {} have"
    return (
        f"{have.format(names + more)} k(x, x) up to {diagonal[rows[0]]:.2g}, and the median is "
        f"{median:.2g}: what other rows say is lost in rounding errors. Remove what is wrong "
        "there, scale the columns, or use the Gaussian kernel, which is bounded"
    )


def _dominant_rows(diagonal: Real) -> tuple[NDArray[np.intp], float]:
    """Return the rows whose k(x, x) dwarfs the median, the largest first, and the median."""
    median = float(np.median(diagonal))
    if median <= 0.0:
        return np.empty(0, dtype=np.intp), median
    rows = np.flatnonzero(diagonal > _DOMINANT * median)
    return rows[np.argsort(-diagonal[rows], kind="stable")], median


@storable
@dataclass(frozen=True, eq=False)
class TriangularRows:
    """A lower triangular L, ready to solve z Lᵀ = c for many rows c at a time.

    SciPy's triangular solver keeps Python's global lock, which blocks other threads and Ctrl-C.
    NumPy's products do not, and they are faster than the solver.

    Parameters
    ----------
    factor : ndarray of shape (m, m)
        L; what lies above the diagonal does not matter.
    inverses : tuple of ndarray
        The inverses of the transposed blocks on the diagonal of L.
    """

    factor: Real
    inverses: tuple[Real, ...]

    @classmethod
    def of(cls, factor: Real) -> Self:
        """Return the solver for a lower triangular matrix without zeros on its diagonal."""
        inverses = []
        for part in _parts(factor.shape[0]):
            identity = np.eye(part.stop - part.start, dtype=factor.dtype)
            block = factor[part, part]
            inverses.append(linalg.solve_triangular(block.T, identity, check_finite=False))
        return cls(factor, tuple(inverses))

    @cached_property
    def in_float32(self) -> TriangularRows:
        """The solver for rows of float32."""
        inverses = tuple(inverse.astype(np.float32) for inverse in self.inverses)
        return TriangularRows(self.factor.astype(np.float32), inverses)

    def solve(self, rows: Real) -> None:
        """Replace every row c by the z with z Lᵀ = c."""
        for part, inverse in zip(_parts(self.factor.shape[0]), self.inverses, strict=True):
            known = slice(0, part.start)
            remainder = rows[:, part] - rows[:, known] @ self.factor[part, known].T
            np.matmul(remainder, inverse, out=rows[:, part])

    def solve_both_sides(self, matrix: Real) -> None:
        """Replace a symmetric matrix by the one between L⁻¹ and L⁻ᵀ, on and above the diagonal."""
        self.solve(matrix)
        for part, inverse in zip(_parts(self.factor.shape[0]), self.inverses, strict=True):
            known, wanted = slice(0, part.start), slice(part.start, None)
            remainder = matrix[part, wanted] - self.factor[part, known] @ matrix[known, wanted]
            np.matmul(inverse.T, remainder, out=matrix[part, wanted])


def _parts(size: int) -> Iterator[slice]:
    """Yield parts of nearly equal width: BLAS rounds products with very few columns differently."""
    count = -(-size // _WIDTH)
    for part in range(count):
        yield slice(part * size // count, (part + 1) * size // count)
