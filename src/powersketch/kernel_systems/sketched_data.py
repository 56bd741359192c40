"""The exact kernel of compressed rows: the approximation of choice for rows much longer than many.

The kernels are functions of inner products and norms. A sketch T keeps the inner products of n rows
if it has a few times n coordinates ([SWYZ21], Lemma 4.4), and the norms are known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Real, Rows, divide_or_zero, is_sparse
from powersketch.execution import interruptible, thread_count
from powersketch.kernel_systems.approximation import Approximation
from powersketch.kernel_systems.centring import shifted, useful_shift
from powersketch.kernels import Kernel
from powersketch.linalg import CholeskyFactor
from powersketch.random_streams import RandomStreams
from powersketch.sketches import OSNAP, SRHT

# So many coordinates for every row keep the condition number of the preconditioned matrix near
# ten, even where the kernel is hardly more than an inner product; for other kernels it is less.
COORDINATES_PER_ROW = 3
_BATCH_BYTES = 32 << 20


def sketched_data(
    X: Rows,
    kernel: Kernel,
    alpha: float,
    size: int | None,
    streams: RandomStreams,
    n_jobs: int | None,
) -> Approximation:
    """Return the inverse of the kernel matrix of compressed rows, plus alpha I.

    A size of None takes three coordinates per row, or the rows as they are if that is not less.
    The factor is float32 where X is, and where that is precise enough.
    """
    size = default_coordinates(X, COORDINATES_PER_ROW) if size is None else size
    compressed, text = X, "the data"
    if size < X.shape[1]:
        shift = useful_shift(kernel, X)
        compressed = compressed_rows(X, size, streams, shift=shift, threads=thread_count(n_jobs))
        text = f"{size} sketched coordinates"
    factor = _single_precision_factor(kernel, compressed, alpha, n_jobs)
    if factor is None:
        matrix = kernel(compressed, dtype=np.float64, n_jobs=n_jobs)
        factor = CholeskyFactor(matrix, alpha=alpha)
    return Approximation(
        factor, min(size, X.shape[1]), factor.nugget, f"exact kernel of {text}: {factor.describe()}"
    )


def _single_precision_factor(
    kernel: Kernel, rows: Rows, alpha: float, n_jobs: int | None
) -> CholeskyFactor | None:
    """Return a factor in float32 if the rows are, and if it is precise enough.

    Inner products in float32 then are so as well: the sketch has changed them by far more.
    """
    if is_sparse(rows) or rows.dtype != np.float32:
        return None

    def inner_products() -> NDArray[np.float32]:
        with np.errstate(over="ignore", invalid="ignore"):
            products: NDArray[np.float32] = rows @ rows.T
        return products

    products = interruptible(inner_products)
    # With the products' own diagonal, that of the kernel matrix is exact for these rows.
    squares = products.diagonal()
    if not np.isfinite(products).all():
        return None
    matrix = kernel.from_inner_products(products, squares, squares, n_jobs=n_jobs)
    try:
        factor = CholeskyFactor(matrix, alpha=alpha, dtype=np.float32)
    except np.linalg.LinAlgError:
        return None
    return factor if factor.precision == "float32" else None


def default_coordinates(X: Rows, per_row: int) -> int:
    """Return so many times the number of rows, but all where the rows have fewer entries."""
    size = per_row * int(X.shape[0])
    return size if size < row_length(X) else int(X.shape[1])


def row_length(X: Rows) -> float:
    """Return the mean number of entries that a row has, stored ones if it is sparse."""
    return float(X.nnz / X.shape[0]) if is_sparse(X) else float(X.shape[1])


def compressed_rows(
    X: Rows, size: int, streams: RandomStreams, *, shift: Real | None = None, threads: int = 1
) -> Real:
    """Return sketches of the rows minus the shift, that have the norms of what was sketched.

    Without the exact norms, the diagonal of the kernel matrix would be that of another kernel than
    the rest, and the matrix could lose its definiteness.
    """
    kind = OSNAP if is_sparse(X) else SRHT
    sketch = kind.draw(streams.child("coordinates"), X.shape[1], size)
    compressed = np.empty((X.shape[0], size), X.dtype)
    step = max(_BATCH_BYTES // (X.shape[1] * X.dtype.itemsize), threads)
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        # Rows of any layout; only the batch is copied.
        batch = X[rows] if is_sparse(X) else np.ascontiguousarray(shifted(X[rows], shift))
        compressed[rows] = sketch.apply(batch, threads=threads)
        _set_norms(compressed[rows], _norms(batch, threads))
    return compressed


def _set_norms(rows: Real, norms: Real) -> None:
    """Scale every row to its norm, in place; a row that vanished stays zero."""
    own = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    factors = divide_or_zero(norms, own)
    rows *= factors[:, np.newaxis].astype(rows.dtype)


def _norms(batch: Rows, threads: int) -> Real:
    squares = routines.squared_norms(batch, threads=threads)
    return np.sqrt(squares)
