"""Error of the features against the exact kernel, next to scikit-learn's PolynomialCountSketch."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median

import numpy as np
import scipy.fft
from sklearn.kernel_approximation import PolynomialCountSketch

from benchmarks.data import digits, mnist, unit_rows
from benchmarks.errors import relative_error
from benchmarks.report import Bar, Row, Table, at_most
from powersketch import PolynomialSketch
from powersketch.kernels import Polynomial

ROUNDING = 1e-12  # errors below it are those of exact features
PEER_BATCH_ROWS = 250  # the peer needs degree · n_components complex numbers for every row
OPTIONS = {
    "literal": {"norm_preserving": False},
    "none": {"expansion": "none"},
    "mean": {"expansion": "mean"},
    "default": {},
}


@dataclass(frozen=True)
class Kernel:
    """(gamma t + coef0)^degree."""

    degree: int
    gamma: float = 1.0
    coef0: float = 0.0

    def __str__(self) -> str:
        base = f"({self.gamma:g}t + {self.coef0:g})" if self.coef0 else "t"
        return f"{base}^{self.degree}"


def features(name: str, X: np.ndarray, kernel: Kernel, size: int, seed: int) -> np.ndarray:
    shared = {**asdict(kernel), "n_components": size, "random_state": seed}
    if name != "scikit-learn":
        return PolynomialSketch(**shared, **OPTIONS[name]).fit_transform(X)
    peer = PolynomialCountSketch(**shared).fit(X)
    batches = np.array_split(X, -(-len(X) // PEER_BATCH_ROWS))
    with scipy.fft.set_workers(os.cpu_count()):
        return np.vstack([peer.transform(batch) for batch in batches])


def errors(
    names: Iterable[str],
    X: np.ndarray,
    kernel: Kernel,
    size: int,
    seeds: range,
    average: Callable[[Iterable[float]], float],
) -> dict[str, float]:
    """Return the average over the seeds of ‖Z Zᵀ − K‖ / ‖K‖ (Frobenius) for every map."""
    K = Polynomial(**asdict(kernel))(X)

    def error(name: str, seed: int) -> float:
        return relative_error(features(name, X, kernel, size, seed), K)

    return {name: average([error(name, seed) for seed in seeds]) for name in names}


def norm_preservation_on_digits(*, quick: bool) -> Table:
    X = digits(400)
    X = X / np.linalg.norm(X, axis=1).mean()
    table = Table(
        "Relative error on 400 digits by degree: the literal algorithm, norms preserved, default",
        "Rows divided by their mean norm, kernel t^degree; median of 5 seeds (quick: 1). "
        "Bars are for the default.",
    )
    names = ("literal", "none", "default", "scikit-learn")
    for size in (1024, 256):
        for degree in (2, 8, 16, 32, 64):
            found = errors(names, X, Kernel(degree), size, range(1 if quick else 5), median)
            bars = [_not_above_peer(found)]
            if (size, degree) == (1024, 64):
                bars.append(at_most(found["default"], 0.02))
            table.rows.append(Row({"components": size, "degree": degree, **found}, bars))
    return table


def expansion_on_mnist(*, quick: bool) -> Table:
    X = unit_rows(mnist(1000).astype(np.float64))
    kernels = [Kernel(degree, 0.5, 0.5) for degree in (2, 3, 7, 16, 32, 64)]
    limits = {(3, 1024): 0.040, (3, 4096): 0.013, (7, 1024): 0.21, (7, 4096): 0.10}
    bars = {(Kernel(degree, 0.5, 0.5), size): limit for (degree, size), limit in limits.items()}
    return _expansion_table("1000 MNIST rows", X, [*kernels, Kernel(7)], bars, quick=quick)


def expansion_on_digits(*, quick: bool) -> Table:
    X = unit_rows(digits(1000))
    kernels = [Kernel(degree) for degree in (2, 4, 7, 16, 32, 64)]
    bars = {(Kernel(2), 1024): 0.008, (Kernel(4), 1024): 0.045}
    return _expansion_table("1000 digits rows", X, kernels, bars, quick=quick)


def _expansion_table(
    data: str,
    X: np.ndarray,
    kernels: Sequence[Kernel],
    limits: dict[tuple[Kernel, int], float],
    *,
    quick: bool,
) -> Table:
    table = Table(
        f"Relative error on {data} by expansion",
        "Rows of unit norm; mean of 3 seeds (quick: 1). The default chooses mean or none; bars are "
        "for it.",
    )
    names = ("none", "mean", "default", "scikit-learn")
    for size in (1024, 4096):
        for kernel in kernels:
            found = errors(names, X, kernel, size, range(1 if quick else 3), fmean)
            bars = [_not_above_peer(found), _near_the_better(found)]
            if (kernel, size) in limits:
                bars.append(at_most(found["default"], limits[kernel, size]))
            table.rows.append(Row({"components": size, "kernel": str(kernel), **found}, bars))
    return table


def _not_above_peer(found: dict[str, float]) -> Bar:
    return Bar("≤ scikit-learn", found["default"] <= found["scikit-learn"])


def _near_the_better(found: dict[str, float]) -> Bar:
    limit = 1.05 * min(found["mean"], found["none"]) + ROUNDING
    return Bar("≤ 1.05 × better", found["default"] <= limit)


MEASUREMENTS = (norm_preservation_on_digits, expansion_on_mnist, expansion_on_digits)
