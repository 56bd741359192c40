"""Classifies Fashion-MNIST by ridge regression on the features of several maps."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.linalg
from sklearn.kernel_approximation import Nystroem, RBFSampler
from threadpoolctl import threadpool_limits

from benchmarks.data import fashion_mnist
from benchmarks.errors import Maker
from benchmarks.report import Row, Table
from powersketch import GaussianSketch, NeuralTangentSketch

# The best of 0.002, 0.005, 0.01, 0.02 and 0.05 for RBFSampler, and the best of the depths 1, 2, 3
# and 5, on the held-out rows after training on 20,000 others with 2048 components.
GAMMA, DEPTH = 0.01, 2
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
CLASSES, BLOCK_ROWS = 10, 5000
MAPS: dict[str, Maker] = {
    "GaussianSketch": partial(GaussianSketch, GAMMA),
    f"NeuralTangentSketch, depth {DEPTH}": partial(NeuralTangentSketch, DEPTH),
    "RBFSampler": partial(RBFSampler, gamma=GAMMA),
    "Nystroem": partial(Nystroem, gamma=GAMMA),
}


def fashion_mnist_classification(*, quick: bool) -> Table:
    train, test = (labelled_rows(part) for part in ("train", "t10k"))
    if quick:
        train, test = train.slice(0, 5000), test.slice(0, 2000)
    size = 512 if quick else 4096
    return Table(
        "Fashion-MNIST: ridge regression on features",
        f"{len(train)} rows to train, {len(test)} to test, pixels in [0, 1], {size} components, "
        f"float32, gamma = {GAMMA:g}. The penalty, relative to the mean square of a feature, is "
        "chosen on a held-out tenth of the training rows. Maps are timed with one thread each; "
        "transform is for all rows.",
        [_map_row(name, make, size, train, test) for name, make in MAPS.items()],
    )


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Samples and their classes."""

    X: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def slice(self, start: int, stop: int) -> Self:
        return type(self)(self.X[start:stop], self.labels[start:stop])

    def blocks(self) -> Iterator[Self]:
        """Yield a few rows at a time: all of their features at once might not fit into memory."""
        for start in range(0, len(self), BLOCK_ROWS):
            yield self.slice(start, start + BLOCK_ROWS)


def labelled_rows(part: str) -> LabelledRows:
    return LabelledRows(*fashion_mnist(part))


def _map_row(name: str, make: Maker, size: int, train: LabelledRows, test: LabelledRows) -> Row:
    timed = TimedMap(make(n_components=size, random_state=0), train.X)
    accuracy, alpha = classified(timed, train, test)
    cells = {
        "map": name,
        "accuracy %": f"{100 * accuracy:.2f}",
        "penalty": alpha,
        "fit s": timed.fit_seconds,
        "transform s": timed.transform_seconds,
    }
    return Row(cells)


class TimedMap:
    """A fitted map that counts the seconds it takes, with one thread."""

    def __init__(self, feature_map: Any, X: np.ndarray) -> None:
        start = time.perf_counter()
        with threadpool_limits(limits=1):
            self._map = feature_map.fit(X)
        self.fit_seconds = time.perf_counter() - start
        self.transform_seconds = 0.0

    def features(self, X: np.ndarray) -> np.ndarray:
        start = time.perf_counter()
        with threadpool_limits(limits=1):
            Z = self._map.transform(X)
        self.transform_seconds += time.perf_counter() - start
        return Z


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Zᵀ Z and Zᵀ Y of some rows, Y one column for every class."""

    gram: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, labels: np.ndarray) -> Self:
        Y = np.eye(CLASSES, dtype=Z.dtype)[labels] - Z.dtype.type(1 / CLASSES)
        return cls((Z.T @ Z).astype(np.float64), (Z.T @ Y).astype(np.float64))

    def __add__(self, other: Self) -> Self:
        return type(self)(self.gram + other.gram, self.targets + other.targets)

    def solution(self, alpha: float) -> np.ndarray:
        """Return the weights; the penalty is relative to the mean square of a feature."""
        penalty = alpha * np.mean(np.diag(self.gram))
        gram = self.gram + penalty * np.eye(len(self.gram))
        return scipy.linalg.solve(gram, self.targets, assume_a="pos", overwrite_a=True)


def classified(timed: TimedMap, train: LabelledRows, test: LabelledRows) -> tuple[float, float]:
    """Return the accuracy on the test rows, and the penalty that the held-out rows chose."""
    split = len(train) - len(train) // 10
    fitted, held_out = train.slice(0, split), train.slice(split, len(train))
    equations = equations_of(timed, fitted)
    held_out_features = timed.features(held_out.X)
    hits = {
        alpha: hit_rate(held_out_features, equations.solution(alpha), held_out.labels)
        for alpha in ALPHAS
    }
    alpha = max(hits, key=hits.__getitem__)
    equations += NormalEquations.of(held_out_features, held_out.labels)
    weights = equations.solution(alpha)
    blocks = [(len(b), hit_rate(timed.features(b.X), weights, b.labels)) for b in test.blocks()]
    return sum(count * rate for count, rate in blocks) / len(test), alpha


def equations_of(timed: TimedMap, rows: LabelledRows) -> NormalEquations:
    parts = (NormalEquations.of(timed.features(b.X), b.labels) for b in rows.blocks())
    total = next(parts)
    for part in parts:
        total += part
    return total


def hit_rate(Z: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(np.argmax(Z @ weights.astype(Z.dtype), axis=1) == labels))


MEASUREMENTS = (fashion_mnist_classification,)
