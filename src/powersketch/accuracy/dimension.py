"""The statistical dimension Tr K (K + αI)⁻¹ with bounds, and the sizes of the paper's theorems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import stdtrit
from sklearn.utils import check_array

from powersketch.accuracy.pairs import Interval
from powersketch.accuracy.rows import (
    DataRows,
    FittedMap,
    Transformer,
    checked_confidence,
    checked_map,
)
from powersketch.accuracy.spectral import (
    MOST_WORK,
    check_alpha_above_rounding,
    kernel_product,
    kernel_work,
)
from powersketch.arrays import Float64, Vector
from powersketch.docstrings import documented
from powersketch.exceptions import InputError
from powersketch.execution import interruptible, thread_count
from powersketch.kernels import (
    ArcCosine,
    Gaussian,
    Kernel,
    Linear,
    NeuralTangent,
    Polynomial,
    as_kernel,
)
from powersketch.linalg import ResolventBounds
from powersketch.parameters import checked_positive
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.validation import sound_array

_EXACT_ROWS = 2000
_EXACT_COLUMNS = 4096
_SUBSETS = 4
# Above this share, Z has too few columns to show the statistical dimension of the kernel.
_FULL = 0.25
_SUBSPACE = 32
_PROBES = 32
_STEPS = 64
_GAP = 0.01  # steps end where the bounds are this close to each other, relative to the trace


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


@runtime_checkable
class SeriesMap(Protocol):
    """A fitted feature map that takes some degrees of a power series."""

    @property
    def degrees_(self) -> Sequence[int]:
        """The degrees, ascending."""


@documented
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
    %(n_jobs)s

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
        rows = _checked_rows(X)
        kernel = as_kernel(source, rows.matrix)
        return _of_kernel(kernel, rows, alpha, confidence, streams, n_jobs)
    if isinstance(source, Transformer):
        Z = _checked_rows(X).features(checked_map(source))
    else:
        Z = _checked_features(source, X)
    return _of_features(Z, alpha, confidence, streams)


def theorem_size(sketch: FittedMap, rows: DataRows, eps: float) -> tuple[int, str]:
    """Return the size that [SWYZ21] states for a spectral error eps of K, and its formula.

    Without a ridge, with constant one and without logarithms.
    """
    kernel, count = sketch.kernel_, rows.count
    if isinstance(kernel, Polynomial):
        size = count * kernel.degree**2 / eps**2
        return math.ceil(size), f"n p² / eps² with the degree p = {kernel.degree} (Section 5)"
    degree, formula = _cut_off(sketch, rows, eps)
    size = count * degree**3 / eps**2
    return math.ceil(size), f"n q³ / eps² with q = {degree:.4g} degrees, {formula}"


def _cut_off(sketch: FittedMap, rows: DataRows, eps: float) -> tuple[float, str]:
    """Return how many terms of the series the theorem takes."""
    kernel, count = sketch.kernel_, rows.count
    if isinstance(kernel, Gaussian):
        # The theorem is for exp(−‖x − y‖² / 2), to which rows are scaled by √(2 gamma).
        squared_radius = 2.0 * kernel.gamma * float(rows.kernel_diagonal(Linear()).max())
        return squared_radius + math.log(count / eps), "r² + log(n / eps) (Section 6.1)"
    if isinstance(kernel, ArcCosine | NeuralTangent):
        # Coefficients fall like l^(−3/2) for steps and tangents, and faster for smoother units.
        power = 1.5 + (kernel.order if isinstance(kernel, ArcCosine) else 0)
        return 1.0 + (count / eps) ** (1.0 / power), f"1 + (n / eps)^(1/{power:g}) (Section 6.2)"
    degrees = sketch.degrees_ if isinstance(sketch, SeriesMap) else ()
    highest = float(degrees[-1]) if degrees else math.log(count / eps)
    return max(highest, 1.0), "the series that the map takes (Section 6.2)"


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
    check_alpha_above_rounding(alpha, rows.kernel_diagonal(kernel))
    what = f"of the kernel matrix of {rows.count} rows"
    if rows.count <= _EXACT_ROWS:
        return _exact(rows.kernel_matrix(kernel, n_jobs), alpha, what)
    if kernel_work(rows, _STEPS + 1) > MOST_WORK:
        return _from_subsets(kernel, rows, alpha, confidence, streams, n_jobs)
    product = kernel_product(kernel, rows, n_jobs)
    return _from_quadrature(product, rows.count, alpha, confidence, streams, what)


def _of_features(
    Z: Float64, alpha: float, confidence: float, streams: RandomStreams
) -> StatisticalDimension:
    count, components = Z.shape
    with np.errstate(over="ignore"):
        check_alpha_above_rounding(alpha, np.einsum("ij,ij->i", Z, Z))
    what = f"of Z Zᵀ with {components} components"
    if min(count, components) <= _EXACT_COLUMNS:
        gram = interruptible(lambda: Z.T @ Z if components < count else Z @ Z.T)
        dimension = _exact(gram, alpha, what)
    else:
        dimension = _from_quadrature(
            lambda V: Z @ (Z.T @ V), count, alpha, confidence, streams, what
        )
    if dimension.value <= _FULL * components:
        return dimension
    warning = (
        f"; it is above a quarter of the {components} components, so that the one of the kernel "
        "that Z stands for is probably larger: use more components, or pass the kernel"
    )
    return replace(dimension, message=dimension.message + warning)


def _from_quadrature(
    product: Callable[[Float64], Float64],
    count: int,
    alpha: float,
    confidence: float,
    streams: RandomStreams,
    what: str,
) -> StatisticalDimension:
    trace = _ridge_trace(product, count, alpha, confidence, streams)
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
    matrices = (rows.take(np.sort(part)).kernel_matrix(kernel, n_jobs) for part in subsets)
    dimensions = np.array([_dimension(K, alpha) for K in matrices])
    low = float(dimensions.max())
    blocks = rows.count / _EXACT_ROWS
    high = blocks * (float(dimensions.mean()) + _student_error(dimensions, confidence))
    high = min(max(high, low), float(rows.count))
    return StatisticalDimension(
        math.sqrt(low * high),
        low,
        high,
        "subsets",
        f"of the kernel matrix of {rows.count} rows, bounded by those of {_SUBSETS} times "
        f"{_EXACT_ROWS} rows only: for a better value pass a fitted feature map",
    )


def _exact(gram: Float64, alpha: float, what: str) -> StatisticalDimension:
    value = _dimension(gram, alpha)
    message = f"{what}, from its eigenvalues"
    return StatisticalDimension(value, value, value, "eigenvalues", message)


def _dimension(gram: Float64, alpha: float) -> float:
    values = interruptible(lambda: np.linalg.eigvalsh(gram))
    values = np.maximum(values, 0.0)
    return float(np.sum(values / (values + alpha)))


def _ridge_trace(
    product: Callable[[Float64], Float64],
    count: int,
    alpha: float,
    confidence: float,
    streams: RandomStreams,
) -> Interval:
    """Return the trace of f(K) = K (K + αI)⁻¹: exactly on a subspace, by random vectors beside it.

    The subspace is the range of K on a few random vectors, which holds most of a small trace. The
    mean of vᵀ f(K) v over random signs v, projected, is the rest [UCS17], [MMMW21].
    """
    start = streams.signs("subspace", count * _SUBSPACE).reshape(count, _SUBSPACE)
    subspace, _ = np.linalg.qr(product(start.astype(np.float64)))
    signs = streams.signs("probes", count * _PROBES).reshape(count, _PROBES)
    probes = signs - subspace @ (subspace.T @ signs)
    resolvent = ResolventBounds(product, np.hstack((subspace, probes)), alpha)
    for _ in range(_STEPS):
        resolvent.step()
        low, high = (_traces(bounds) for bounds in resolvent.bounds())
        if float(np.mean(high - low)) <= _GAP * float(np.mean(low)):
            break
    return Interval(
        float(np.mean(low + high)) / 2.0,
        max(float(low.mean()) - _student_error(low, confidence), 0.0),
        min(float(high.mean()) + _student_error(high, confidence), float(count)),
    )


def _student_error(sample: Vector, confidence: float) -> float:
    """Return how far the mean of independent values may be from what it estimates."""
    quantile = float(stdtrit(len(sample) - 1, 0.5 + 0.5 * confidence))
    return quantile * float(np.std(sample, ddof=1)) / math.sqrt(len(sample))


def _traces(bounds: Vector) -> Vector:
    """Return an estimate of the trace for every probe."""
    traces: Vector = bounds[:_SUBSPACE].sum() + bounds[_SUBSPACE:]
    return traces
