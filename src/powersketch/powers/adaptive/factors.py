"""Factors V_k of (K + λI)⁻¹ ∘ G^∘(q − k), from which tuples are drawn by ridge leverage scores.

Rows are those of X (n × d), G = X Xᵀ and K = G^∘q. Nothing here has to be accurate: a poor factor
costs variance, never bias. But other bits would mean other draws, and LAPACK's bits depend on the
machine and its number of threads: the factorisations here, of matrices of a few hundred rows, have
a fixed order of operations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from powersketch import routines
from powersketch.arrays import Float64, Rows, is_sparse, slices
from powersketch.powers.methods import PowerOptions, ShiftedRows, Slice
from powersketch.powers.repeated_squaring import PowerSketch
from powersketch.powers.scaled_numbers import Scaled, ascending_powers
from powersketch.random_streams import RandomStreams
from powersketch.sketches import padded_length

MOST_HALVINGS = 40  # of λ, from the trace of K downwards
_DENSE_ENTRIES = 1 << 19  # of sparse rows made dense at a time
_POWER_SIZE = 64  # features of each sketched power G^∘r
_FIRST_LEVEL = 8  # times as many probes where all tuples begin alike, which costs next to nothing


def exact_factors(X: Rows, degree: int, dimension: float) -> list[Float64]:
    """Return Cholesky factors of the matrices themselves: n columns each, O(n²d + degree · n³).

    The trace of K is halved until, as λ, it gives the statistical dimension.
    """
    G = _gram_of_rows(X)
    powers = [np.ones_like(G)]
    for _ in range(degree):
        powers.append(powers[-1] * G)
    K = powers.pop()
    inner = _inverse_root(K, _ridge(K, dimension))
    inverse = gram(inner.T)
    return [cholesky(inverse * power) for power in reversed(powers)]


def _gram_of_rows(X: Rows) -> Float64:
    """Return X Xᵀ."""
    if not is_sparse(X):
        return gram(X)
    products = np.empty((X.shape[0], X.shape[0]))
    for part in slices(X.shape[0], max(_DENSE_ENTRIES // X.shape[1], 1)):
        products[:, part] = routines.product(X, np.ascontiguousarray(X[part].toarray().T))
    return products


def _ridge(K: Float64, dimension: float) -> float:
    """Return the first halving of the trace with at least this statistical dimension."""
    trace = float(np.cumsum(K.diagonal())[-1])
    few, many = 0, MOST_HALVINGS
    while few < many:
        middle = (few + many) // 2
        ridge = math.ldexp(trace, -middle)
        if _dimension(_inverse_root(K, ridge), ridge) < dimension:
            few = middle + 1
        else:
            many = middle
    return math.ldexp(trace, -many)


@dataclass(frozen=True, eq=False, repr=False)
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
        return cls(features, ridge, _inverse_root(gram(features.T), ridge))

    @property
    def dimension(self) -> float:
        """The statistical dimension of W Wᵀ."""
        return _dimension(self.inner, self.ridge)

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


@dataclass(frozen=True, eq=False, repr=False)
class SketchedPowers:
    """Features whose inner products stand for G^∘r, for every r below a degree.

    All degrees come from one chain with one T and one S, as partially correlated projections
    suffice [WZ22]: what they cost is accuracy, on which only the variance depends.
    """

    blocks: Float64
    degree: int

    @classmethod
    def of(cls, streams: RandomStreams, X: Rows, degree: int) -> SketchedPowers:
        """Sketch the powers of rows of norms up to one."""
        size, degrees = _POWER_SIZE, range(1, degree)
        out = np.ones((X.shape[0], size * max(degree - 1, 1)))
        if degree > 1:
            outputs = {r: Slice(0, size, (r - 1) * size) for r in degrees}
            options = PowerOptions(padded_length(2 * size), "osnap", preserve_norms=True)
            sketch = PowerSketch.draw(streams, X.shape[1], outputs, options)
            lengths = Scaled.of(np.sqrt(routines.squared_norms(X)))
            norms = ascending_powers(lengths, degrees).to_float()
            columns = np.stack([norms[r - 1] for r in sketch.degrees], axis=1)
            sketch.write(ShiftedRows(X, np.ones(X.shape[0])), columns, out, 1)
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
        branch = streams.child(f"level {level}")
        probes = width * _FIRST_LEVEL if level == 0 else width
        rest = powers.probes(branch, powers.degree - 1 - level, probes)
        factors.append(rest * inverse.probes(branch, probes))
    return factors


def gram(A: Float64) -> Float64:
    """Return A Aᵀ, symmetric to the bit."""
    return routines.product(np.ascontiguousarray(A), np.ascontiguousarray(A.T))


def cholesky(A: Float64) -> Float64:
    """Return a lower triangular L with L Lᵀ = A, for a positive semidefinite A.

    A direction in which nothing but rounding errors is left gets a column of zeros.
    """
    rest, factor = A.copy(), np.zeros_like(A)
    smallest = A.shape[0] * np.finfo(np.float64).eps * A.diagonal()
    for j in range(A.shape[0]):
        pivot = rest[j, j]
        if pivot <= smallest[j]:
            continue
        column = rest[j:, j] / np.sqrt(pivot)
        factor[j:, j] = column
        rest[j + 1 :, j + 1 :] -= column[1:, None] * column[1:]
    return factor


def inverse_of_triangular(L: Float64) -> Float64:
    """Return L⁻¹ for a lower triangular L without zeros on its diagonal."""
    inverse = np.eye(L.shape[0])
    for j in range(L.shape[0]):
        inverse[j, : j + 1] /= L[j, j]
        inverse[j + 1 :, : j + 1] -= L[j + 1 :, j, None] * inverse[j, : j + 1]
    return inverse


def _inverse_root(A: Float64, ridge: float) -> Float64:
    """Return L⁻¹ for L Lᵀ = A + ridge · I."""
    shifted = A.copy()
    np.fill_diagonal(shifted, shifted.diagonal() + ridge)
    return inverse_of_triangular(cholesky(shifted))


def _dimension(inner: Float64, ridge: float) -> float:
    """Return tr A (A + λI)⁻¹, the number of rows minus λ times the trace of the inverse."""
    traces = routines.squared_norms(inner)
    return float(len(traces) - ridge * np.cumsum(traces)[-1])
