"""Inverses from a feature map: the triangular factor of [SWYZ21], Algorithm 2, or Woodbury's."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from powersketch.arrays import Real, Rows
from powersketch.execution import thread_count
from powersketch.feature_maps import FeatureMap
from powersketch.kernel_systems.approximation import Approximation
from powersketch.kernel_systems.maps import map_for
from powersketch.kernels import Kernel
from powersketch.linalg import LowRankInverse, SquaredFactor, TriangularFactor
from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT

_FEATURES_PER_ROW = 4
# Of the m features, S keeps this part, and at least 2 n: with 4 n features, the condition number
# of B of Algorithm 2 is 4 then; with half of the features it is 14.
_KEPT = 0.75
_LEAST_KEPT_PER_ROW = 2


def fitted_map(
    X: Rows,
    kernel: Kernel,
    size: int | None,
    given: FeatureMap | None,
    streams: RandomStreams,
    n_jobs: int | None,
    verbose: int,
) -> FeatureMap:
    """Return a map that is fitted to X: a copy of the given one, or that of the kernel.

    A size of None is the given map's own, or four features per row. The seed is the given map's
    own as well, if it has one.
    """
    seed = int(streams.integers("map", 1, 2**32)[0])
    if given is not None:
        sketch: FeatureMap = clone(given)
        if sketch.random_state is None:
            sketch.set_params(random_state=seed)
        if size is not None:
            sketch.set_params(n_components=size)
    else:
        size = _FEATURES_PER_ROW * X.shape[0] if size is None else size
        sketch = map_for(kernel, size, random_state=seed, n_jobs=n_jobs, verbose=verbose)
    return sketch.fit(X)


def feature_approximation(
    Z: Real, diagonal: Real, alpha: float, streams: RandomStreams, n_jobs: int | None
) -> Approximation:
    """Return the inverse of Z Zᵀ + alpha I or, with fewer features than rows, plus a nugget.

    The nugget is alpha and what the features leave of the diagonal of the kernel matrix, or their
    smallest eigenvalue if that is more.
    """
    text = f"{Z.shape[1]} features"
    if Z.shape[1] >= Z.shape[0]:
        factor = triangular_factor(Z, alpha, streams, n_jobs)
        return Approximation(SquaredFactor(factor), Z.shape[1], alpha, text)
    squares = np.einsum("ij,ij->i", Z, Z, dtype=np.float64)
    tail = max(float(np.mean(diagonal - squares)), 0.0)
    inverse = LowRankInverse.with_tail(Z, alpha, tail=tail)
    return Approximation(inverse, Z.shape[1], inverse.nugget, f"{text}: {inverse.describe()}")


def triangular_factor(
    Z: Real, alpha: float, streams: RandomStreams, n_jobs: int | None
) -> TriangularFactor:
    """Return R of [SWYZ21], Algorithm 2, lines 5 and 6, with the rows of √alpha I below S W."""
    rows, features = Z.shape
    kept = min(max(int(_KEPT * features), _LEAST_KEPT_PER_ROW * rows), features)
    sketched = Z
    if kept < features:
        S = SRHT.draw(streams.child("features"), features, kept)
        sketched = S.apply(np.ascontiguousarray(Z), threads=thread_count(n_jobs))
    return TriangularFactor.of_rows(sketched.T, alpha)
