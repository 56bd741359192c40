"""Data for comparisons, and a method that tells which rows it was given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.comparison import METHODS, Method
from powersketch.kernels import Kernel, Polynomial

KERNEL = Polynomial(degree=3, gamma=0.5, coef0=1.0)
FEW = {"methods": ["power", "nystroem"], "components": [8], "seeds": 1, "random_state": 0}


def unit_rows(count: int = 60, columns: int = 7, seed: int = 0) -> NDArray[np.float64]:
    """Return rows of norm one that are not centred."""
    X = np.random.default_rng(seed).normal(loc=0.4, size=(count, columns))
    rows: NDArray[np.float64] = X / np.linalg.norm(X, axis=1, keepdims=True)
    return rows


@dataclass
class Recorder:
    """A transformer of random projections that remembers all rows that it sees."""

    size: int
    seed: int
    fitted: list[Any] = field(default_factory=list)
    transformed: list[Any] = field(default_factory=list)

    def fit(self, X: Any) -> Recorder:
        self.fitted.append(X)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        self.transformed.append(X)
        projection = np.random.default_rng(self.seed).normal(size=(X.shape[1], self.size))
        features: NDArray[np.float64] = X @ projection / np.sqrt(self.size)
        return features


def recording_method(monkeypatch: Any, name: str = "recorder") -> list[Recorder]:
    """Enter a method that records into the registry; return all that it will make."""
    made: list[Recorder] = []

    def build(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> Recorder:
        made.append(Recorder(size, seed))
        return made[-1]

    method = Method(name, "oblivious", "a random projection", (Kernel,), "", build)
    monkeypatch.setitem(METHODS, name, method)
    return made


def failing_method(monkeypatch: Any, name: str, error: BaseException, *, after: int = 0) -> None:
    """Enter a method that works a few times and then raises the error whenever it is made."""
    calls: list[int] = []

    def build(kernel: Kernel, size: int, seed: int, n_jobs: int | None) -> Recorder:
        calls.append(size)
        if len(calls) > after:
            raise error
        return Recorder(size, seed)

    monkeypatch.setitem(METHODS, name, Method(name, "peer", "it fails", (Kernel,), "", build))
