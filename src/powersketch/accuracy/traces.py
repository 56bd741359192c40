"""The trace of K (K + αI)⁻¹ from products with K, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import stdtrit

from powersketch.accuracy.data_rows import Float64
from powersketch.accuracy.intervals import Interval
from powersketch.accuracy.quadrature import ResolventBounds
from powersketch.random_streams import RandomStreams

_SUBSPACE = 32
_PROBES = 32
_STEPS = 64
_GAP = 0.01  # steps end where the bounds are so near to each other, relative to the trace
MOST_PRODUCTS = _STEPS + 1


def ridge_trace(
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
        max(float(low.mean()) - student_error(low, confidence), 0.0),
        min(float(high.mean()) + student_error(high, confidence), float(count)),
    )


def student_error(sample: Float64, confidence: float) -> float:
    """Return how far the mean of independent values may be from what it estimates."""
    quantile = float(stdtrit(len(sample) - 1, 0.5 + 0.5 * confidence))
    return quantile * float(np.std(sample, ddof=1)) / math.sqrt(len(sample))


def _traces(bounds: Float64) -> Float64:
    """Return an estimate of the trace for every probe."""
    traces: Float64 = bounds[:_SUBSPACE].sum() + bounds[_SUBSPACE:]
    return traces
