"""Feature maps whose errors are known, and brute force for those whose errors are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.accuracy.pairs import ExactPairs, PairErrors
from powersketch.accuracy.rows import DataRows, FittedMap, RowSample
from powersketch.kernels import Kernel, Polynomial
from powersketch.random_streams import RandomStreams


@dataclass(frozen=True, eq=False)
class Stretched:
    """The exact map of ⟨x, y⟩ times a factor: every relative error is |factor² − 1|."""

    factor: float = 1.1
    kernel_: Kernel = field(default_factory=lambda: Polynomial(degree=1))

    def transform(self, X: Any) -> NDArray[Any]:
        dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        features: NDArray[Any] = (self.factor * dense).astype(dense.dtype)
        return features


@dataclass(frozen=True, eq=False)
class Projected:
    """Random projections of the rows: their inner products are those of the rows on average."""

    columns: int
    size: int
    seed: int = 0
    kernel_: Kernel = field(default_factory=lambda: Polynomial(degree=1))

    def transform(self, X: Any) -> NDArray[Any]:
        projection = np.random.default_rng(self.seed).normal(size=(self.columns, self.size))
        features: NDArray[Any] = X @ projection / np.sqrt(self.size)
        return features


def relative_error(sketch: Any, X: NDArray[Any]) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ over pairs of different rows."""
    Z, K = sketch.transform(X).astype(np.float64), sketch.kernel_(X.astype(np.float64))
    apart = ~np.eye(len(K), dtype=bool)
    return float(np.linalg.norm((Z @ Z.T - K)[apart]) / np.linalg.norm(K[apart]))


def random_rows(kind: str, count: int, columns: int, seed: int) -> NDArray[np.float64]:
    """Return rows of equal kind, in a few clusters, with heavy tails, or near a line."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, columns))
    if kind == "clustered":
        centres = generator.normal(size=(8, columns))
        X = centres[generator.integers(0, 8, count) // 2] + 0.1 * X
    elif kind == "heavy":
        X *= generator.standard_t(2.0, size=(count, 1))
    elif kind == "low-rank":
        X = generator.normal(size=(count, 1)) * X[0] + 0.01 * X
    rows: NDArray[np.float64] = X
    return rows


def pair_errors(sketch: FittedMap, sample: RowSample) -> PairErrors:
    """Measure all pairs of a sample."""
    return PairErrors.measure(sketch, ExactPairs.of(sketch.kernel_, sample))


def drawn_sample(sketch: FittedMap, rows: DataRows, streams: RandomStreams, size: int) -> RowSample:
    """Draw a sample of rows with the probabilities that suit the map."""
    return RowSample.draw(sketch, rows, rows.kernel_diagonal(sketch.kernel_), streams, size)


@dataclass(frozen=True, eq=False)
class KeptNorms:
    """Random projections of the rows, scaled to the rows' own norms."""

    projected: Projected

    @property
    def kernel_(self) -> Kernel:
        return self.projected.kernel_

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        Z = self.projected.transform(X)
        Z *= (np.linalg.norm(X, axis=1) / np.linalg.norm(Z, axis=1))[:, np.newaxis]
        return Z


def all_entries(sketch: Any, X: NDArray[Any]) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ over all entries."""
    Z, K = sketch.transform(X).astype(np.float64), sketch.kernel_(X)
    return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))


def spread_out(count: int) -> NDArray[np.float64]:
    """Return rows whose kernel matrix is the identity, but for a few near-duplicates."""
    generator = np.random.default_rng(0)
    X = 3.0 * generator.standard_normal((count, 12))
    X[-5:] = X[:5] + 1e-3 * generator.standard_normal((5, 12))
    return X
