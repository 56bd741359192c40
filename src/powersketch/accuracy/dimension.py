"""The statistical dimension Tr K (K + αI)⁻¹, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from powersketch.accuracy.data_rows import (
    DataRows,
    Float64,
    checked_map,
    kernel_diagonal,
    kernel_matrix,
)
from powersketch.accuracy.intervals import checked_confidence
from powersketch.accuracy.pencils import kernel_product, kernel_work
from powersketch.accuracy.spectral import check_alpha_is_felt
from powersketch.accuracy.traces import MOST_PRODUCTS, ridge_trace, student_error
from powersketch.exceptions import InputError
from powersketch.execution import interruptible, thread_count
from powersketch.kernels import Kernel, as_kernel
from powersketch.parameters import checked_positive
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.validation import sound_array

_EXACT_ROWS = 2000
_EXACT_COLUMNS = 4096
_WORK = 1e13
_SUBSETS = 4
# From here on, Z has too few columns to show the kernel's own statistical dimension.
_FULL = 0.25


@dataclass(frozen=True)
class StatisticalDimension:
    """A statistical dimension and its bounds; `float` gives the value.

    Parameters
    ----------
    value : float
        The estimate.
    low, high : float
        Bounds that hold with the confidence asked for; equal where the value is exact.
    method : {"eigenvalues", "quadrature", "subsets"}
        How it was found.
    message : str
        What it is the dimension of, and what to beware of.
    """

    value: float
    low: float
    high: float
    method: str
    message: str

    def __float__(self) -> float:
        return self.value


def statistical_dimension(
    source: Any,
    X: Any = None,
    alpha: float = 1.0,
    *,
    confidence: float = 0.99,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> StatisticalDimension:
    """Return Tr K (K + αI)⁻¹, the number of directions that a ridge of α leaves to K.

    Parameters
    ----------
    source : kernel, name of one, fitted feature map or array of shape (n_samples, n_components)
        What K is: the kernel's matrix on X, Z Zᵀ for the map's features of X, or Z Zᵀ itself.
    X : {array, sparse matrix or data frame} of shape (n_samples, n_features), default=None
        The rows; None for an array.
    alpha : float, default=1.0
        Positive.
    confidence : float, default=0.99
        Probability with which the bounds hold.
    random_state : int, RandomState instance or None, default=None
        An int gives the same random vectors every time.
    n_jobs : int or None, default=None
        Number of threads for the exact kernel, with scikit-learn's meaning.

    Returns
    -------
    StatisticalDimension
        From all eigenvalues for up to 2000 rows, or for Z with up to 4096 rows or columns. Else
        from random vectors and Lanczos steps [UCS17]; where products with the kernel matrix would
        take too long, from subsets of the rows, with bounds that are far apart.

    Examples
    --------
    >>> import numpy as np
    >>> from powersketch.accuracy import statistical_dimension
    >>> from powersketch.kernels import Gaussian
    >>> float(statistical_dimension(np.diag([1.0, 2.0]), alpha=1.0))
    1.3
    >>> X = np.random.RandomState(0).rand(300, 3)
    >>> round(float(statistical_dimension(Gaussian(1.0), X, alpha=0.1)), 2)
    18.49
    """
    alpha = checked_positive("alpha", alpha, remedy="the statistical dimension of 0 is the rank")
    confidence = checked_confidence(confidence)
    thread_count(n_jobs)
    streams = RandomStreams(seed_from(random_state), "statistical_dimension")
    if isinstance(source, Kernel | str):
        rows, kernel = _checked_rows(X), as_kernel(source)
        return _of_kernel(kernel.resolve(rows.matrix), rows, alpha, confidence, streams, n_jobs)
    if hasattr(source, "transform"):
        Z = _checked_rows(X).features(checked_map(source))
    else:
        Z = _checked_features(source, X)
    return _of_features(Z, alpha, confidence, streams)


def _checked_rows(X: Any) -> DataRows:
    if X is None:
        raise InputError(
            "X=None goes with an array of features only; a kernel or a feature map needs rows: "
            "pass X."
        )
    return DataRows.of(X)


def _checked_features(source: Any, X: Any) -> Float64:
    if X is not None:
        raise InputError(
            f"X is given and source is a {type(source).__name__}; rows go with a kernel or a "
            "fitted feature map: leave X out, or pass one of these."
        )
    source = sound_array("source", source)
    Z: Float64 = check_array(source, dtype=np.float64, input_name="source")
    return Z


def _of_kernel(
    kernel: Kernel,
    rows: DataRows,
    alpha: float,
    confidence: float,
    streams: RandomStreams,
    n_jobs: int | None,
) -> StatisticalDimension:
    check_alpha_is_felt(alpha, kernel_diagonal(kernel, rows))
    if rows.count <= _EXACT_ROWS:
        value = _kernel_dimension(kernel, rows, alpha, n_jobs)
        return _exact(value, f"of the kernel matrix of {rows.count} rows, from its eigenvalues")
    if kernel_work(rows, MOST_PRODUCTS) > _WORK:
        return _from_subsets(kernel, rows, alpha, confidence, streams, n_jobs)
    what = f"of the kernel matrix of {rows.count} rows"
    product = kernel_product(kernel, rows, n_jobs)
    return _from_quadrature(product, rows.count, alpha, confidence, streams, what)


def _of_features(
    Z: Float64, alpha: float, confidence: float, streams: RandomStreams
) -> StatisticalDimension:
    count, components = Z.shape
    with np.errstate(over="ignore"):
        check_alpha_is_felt(alpha, np.einsum("ij,ij->i", Z, Z))
    what = f"of Z Zᵀ with {components} components"
    if min(count, components) <= _EXACT_COLUMNS:
        gram = interruptible(lambda: Z.T @ Z if components < count else Z @ Z.T)
        found = _exact(_dimension(gram, alpha), f"{what}, from its eigenvalues")
    else:
        found = _from_quadrature(lambda V: Z @ (Z.T @ V), count, alpha, confidence, streams, what)
    if found.value <= _FULL * components:
        return found
    warning = (
        f"; it is above a quarter of the {components} components, so that the one of the kernel "
        "that Z stands for is probably larger: use more components, or pass the kernel"
    )
    return StatisticalDimension(
        found.value, found.low, found.high, found.method, found.message + warning
    )


def _from_quadrature(
    product: Callable[[Float64], Float64],
    count: int,
    alpha: float,
    confidence: float,
    streams: RandomStreams,
    what: str,
) -> StatisticalDimension:
    trace = ridge_trace(product, count, alpha, confidence, streams)
    message = f"{what}, from random vectors"
    return StatisticalDimension(trace.value, trace.low, trace.high, "quadrature", message)


def _from_subsets(
    kernel: Kernel,
    rows: DataRows,
    alpha: float,
    confidence: float,
    streams: RandomStreams,
    n_jobs: int | None,
) -> StatisticalDimension:
    """Return bounds from principal submatrices, for more rows than can be multiplied.

    The eigenvalues of a submatrix are below those of K, and so is its dimension. As x / (x + α) is
    concave, the dimensions of the blocks of any partition add up to at least that of K.
    """
    order = streams.sample("subsets", rows.count, _SUBSETS * _EXACT_ROWS)
    subsets = order.reshape(_SUBSETS, _EXACT_ROWS)
    found = np.array(
        [_kernel_dimension(kernel, rows.take(np.sort(part)), alpha, n_jobs) for part in subsets]
    )
    low = float(found.max())
    blocks = rows.count / _EXACT_ROWS
    high = blocks * (float(found.mean()) + student_error(found, confidence))
    high = min(max(high, low), float(rows.count))
    return StatisticalDimension(
        math.sqrt(low * high),
        low,
        high,
        "subsets",
        f"of the kernel matrix of {rows.count} rows, bounded by those of {_SUBSETS} times "
        f"{_EXACT_ROWS} rows only: for a better value pass a fitted feature map",
    )


def _kernel_dimension(kernel: Kernel, rows: DataRows, alpha: float, n_jobs: int | None) -> float:
    return _dimension(kernel_matrix(kernel, rows, n_jobs), alpha)


def _dimension(gram: Float64, alpha: float) -> float:
    values = interruptible(lambda: np.linalg.eigvalsh(gram))
    values = np.maximum(values, 0.0)
    return float(np.sum(values / (values + alpha)))


def _exact(value: float, message: str) -> StatisticalDimension:
    return StatisticalDimension(value, value, value, "eigenvalues", message)
