"""Factors V_k of (K + λI)⁻¹ ∘ G^∘(q − k), from which tuples are drawn by ridge leverage scores.

Rows are those of X (n × d), G = X Xᵀ and K = G^∘q. Nothing here has to be accurate: a poor factor
costs variance, never bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from powersketch import routines
from powersketch.arrays import Rows, is_sparse, padded_length
from powersketch.powers.fixed_order_algebra import (
    cholesky,
    gram,
    inverse_of_triangular,
    shifted,
)
from powersketch.powers.programs import Slice
from powersketch.powers.repeated_squaring import PowerSketch
from powersketch.powers.scaled_numbers import Scaled, ascending_powers
from powersketch.random_streams import RandomStreams

Float64: TypeAlias = NDArray[np.float64]

MOST_HALVINGS = 40  # from the trace of K downwards
_DENSE_ENTRIES = 1 << 19  # of sparse rows made dense at a time
_POWER_SIZE = 64  # features of each sketched power G^∘r
_FIRST_LEVEL = 8  # times as many probes where all tuples begin alike, which costs next to nothing


@dataclass(frozen=True)
class Goal:
    """How far λ is lowered: to `ridge`, or until the statistical dimension reaches `dimension`."""

    ridge: float | None
    dimension: float


def exact_factors(X: Rows, degree: int, goal: Goal) -> list[Float64]:
    """Return Cholesky factors of the matrices themselves: n columns each, O(n²d + degree · n³)."""
    G = gram_of_rows(X)
    powers = [np.ones_like(G)]
    for _ in range(degree):
        powers.append(powers[-1] * G)
    K = powers.pop()
    inverse = _inverse(K, _ridge(K, goal))
    return [cholesky(inverse * power) for power in reversed(powers)]


def gram_of_rows(X: Rows) -> Float64:
    """Return X Xᵀ."""
    if not is_sparse(X):
        return gram(X)
    products = np.empty((X.shape[0], X.shape[0]))
    step = max(_DENSE_ENTRIES // X.shape[1], 1)
    for start in range(0, X.shape[0], step):
        part = slice(start, start + step)
        products[:, part] = routines.product(X, np.ascontiguousarray(X[part].toarray().T))
    return products


@dataclass(frozen=True, eq=False)
class SketchedInverse:
    """(W Wᵀ + λI)⁻¹ for features W of the rows, never formed: O(n · columns of W) per vector."""

    features: Float64
    ridge: float
    inner: Float64  # L⁻¹ for L Lᵀ = Wᵀ W + λI

    @classmethod
    def of(cls, features: Float64, ridge: float) -> SketchedInverse:
        """Factor the smaller of the matrices W Wᵀ and Wᵀ W + λI first."""
        if features.shape[1] > features.shape[0]:
            features = cholesky(gram(features))
        square = shifted(gram(features.T), ridge)
        return cls(features, ridge, inverse_of_triangular(cholesky(square)))

    @property
    def dimension(self) -> float:
        """The statistical dimension of W Wᵀ: its size minus λ times the trace of the inverse."""
        traces = routines.squared_norms(self.inner)
        return float(len(traces) - self.ridge * np.cumsum(traces)[-1])

    def probes(self, streams: RandomStreams, width: int) -> Float64:
        """Return independent normal columns whose covariance is the inverse.

        y = W g + √λ g' has the covariance W Wᵀ + λI; the inverse times y, by Woodbury's identity,
        has that of the inverse.
        """
        count, size = self.features.shape
        inside = streams.normal("inside", size * width).reshape(size, width)
        outside = streams.normal("outside", count * width).reshape(count, width)
        y = routines.product(self.features, inside) + math.sqrt(self.ridge) * outside
        moved = routines.product(np.ascontiguousarray(self.features.T), y)
        moved = routines.product(self.inner, moved)
        moved = routines.product(np.ascontiguousarray(self.inner.T), moved)
        return (y - routines.product(self.features, moved)) / self.ridge


@dataclass(frozen=True, eq=False)
class SketchedPowers:
    """Features whose inner products stand for G^∘r, for every r below a degree.

    All degrees come from one chain with one T and one S, as projections that are partially
    correlated suffice [WZ22]: what they cost is accuracy, which only the variance feels.
    """

    blocks: Float64
    degree: int

    @classmethod
    def of(cls, streams: RandomStreams, X: Rows, degree: int) -> SketchedPowers:
        """Sketch the powers of rows of norms up to one."""
        size, degrees = _POWER_SIZE, range(1, degree)
        out = np.ones((X.shape[0], size * max(degree - 1, 1)))
        if degree > 1:
            sketch = PowerSketch.draw(
                streams,
                X.shape[1],
                {r: Slice(0, size, (r - 1) * size) for r in degrees},
                internal=padded_length(2 * size),
                base_sketch="osnap",
                preserve_norms=True,
            )
            squares = routines.squared_norms(X)
            norms = ascending_powers(Scaled.of(np.sqrt(squares)), list(degrees))
            scales = {r: norm.to_float() for r, norm in zip(degrees, norms, strict=True)}
            columns = np.stack([scales[r] for r in sketch.degrees], axis=1)
            sketch.write(X, np.ones(X.shape[0]), None, columns, out, 1)
        return cls(out, degree)

    def probes(self, streams: RandomStreams, power: int, width: int) -> Float64:
        """Return independent normal columns whose covariance stands for G^∘power."""
        if power == 0:
            return np.repeat(streams.normal("constant", width)[None, :], len(self.blocks), axis=0)
        block = self.blocks[:, (power - 1) * _POWER_SIZE : power * _POWER_SIZE]
        normal = streams.normal("power", _POWER_SIZE * width).reshape(_POWER_SIZE, width)
        return routines.product(np.ascontiguousarray(block), normal)


def sketched_factors(
    streams: RandomStreams, powers: SketchedPowers, inverse: SketchedInverse, width: int
) -> list[Float64]:
    """Return V_k = (probes of G^∘(q − k)) ∘ (probes of the inverse)."""
    factors = []
    for level in range(powers.degree):
        own = streams.child(f"level {level}")
        probes = width * _FIRST_LEVEL if level == 0 else width
        rest = powers.probes(own, powers.degree - 1 - level, probes)
        factors.append(rest * inverse.probes(own, probes))
    return factors


def _ridge(K: Float64, goal: Goal) -> float:
    """Return the ridge in use: the one given, or the first halving of the trace that suffices."""
    trace = float(np.cumsum(K.diagonal())[-1])
    if goal.ridge is not None:
        return max(goal.ridge, math.ldexp(trace, -MOST_HALVINGS))
    few, many = 0, MOST_HALVINGS
    while few < many:
        middle = (few + many) // 2
        if _dimension(K, math.ldexp(trace, -middle)) < goal.dimension:
            few = middle + 1
        else:
            many = middle
    return math.ldexp(trace, -many)


def _dimension(K: Float64, ridge: float) -> float:
    """Return tr K (K + λI)⁻¹."""
    inner = inverse_of_triangular(cholesky(shifted(K, ridge)))
    squares = routines.squared_norms(inner)
    return float(len(K) - ridge * np.cumsum(squares)[-1])


def _inverse(K: Float64, ridge: float) -> Float64:
    inner = inverse_of_triangular(cholesky(shifted(K, ridge)))
    return gram(inner.T)
