"""How often the intervals of certificates contain the exact values, over many problems."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice, product
from typing import Any

import numpy as np
import scipy.linalg

from benchmarks.data import fashion_mnist
from benchmarks.report import Row, Table, at_least
from powersketch import ArcCosineSketch, GaussianSketch, NeuralTangentSketch, PolynomialSketch
from powersketch.accuracy import certify

CONFIDENCE, HELD_OF_200 = 0.99, 197
RELATIVE_ALPHA = 1e-3
ROUNDING = 1e-9

Maker = Callable[..., Any]
MAPS: dict[str, Maker] = {
    "Gaussian": lambda **options: GaussianSketch("scale", **options),
    "polynomial": lambda **options: PolynomialSketch(4, coef0=1.0, **options),
    "arc-cosine": lambda **options: ArcCosineSketch(1, **options),
    "neural tangent": lambda **options: NeuralTangentSketch(2, **options),
}


def normal_rows(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.standard_normal((rows, 30))


def clustered_rows(generator: np.random.Generator, rows: int) -> np.ndarray:
    centres = generator.standard_normal((20, 30))
    return centres[generator.integers(20, size=rows)] + normal_rows(generator, rows) / 10


def heavy_tailed_rows(generator: np.random.Generator, rows: int) -> np.ndarray:
    return generator.standard_t(4, size=(rows, 20))


def low_rank_rows(generator: np.random.Generator, rows: int) -> np.ndarray:
    factors = generator.standard_normal((rows, 5)), generator.standard_normal((5, 300))
    return factors[0] @ factors[1] + generator.standard_normal((rows, 300)) / 2


def image_rows(generator: np.random.Generator, rows: int) -> np.ndarray:
    images = fashion_mnist("t10k")[0]
    return images[generator.permutation(len(images))[:rows]].astype(np.float64)


ROWS = (normal_rows, clustered_rows, heavy_tailed_rows, low_rank_rows, image_rows)
SIZES = (64, 512)


@dataclass(frozen=True, eq=False)
class FittedMap:
    """A map of random rows, with the matrices to compare."""

    sketch: Any
    X: np.ndarray
    K: np.ndarray
    approximate: np.ndarray

    def spectral_error(self, alpha: float) -> float:
        """Return the least eps with (1 − eps)(K + αI) ⪯ Z Zᵀ + αI ⪯ (1 + eps)(K + αI)."""
        shift = alpha * np.eye(len(self.K))
        ends = scipy.linalg.eigh(self.approximate + shift, self.K + shift, eigvals_only=True)
        return float(max(ends[-1] - 1, 1 - ends[0]))


def off_diagonal_error(approximate: np.ndarray, K: np.ndarray) -> float:
    """Return ‖approximate − K‖ / ‖K‖ (Frobenius) without the diagonals."""
    others = ~np.eye(len(K), dtype=bool)
    return float(np.linalg.norm((approximate - K)[others]) / np.linalg.norm(K[others]))


@dataclass(frozen=True)
class Outcome:
    """Whether an interval holds the exact value, and its width relative to that."""

    holds: bool
    width: float


def certificate_coverage(*, quick: bool) -> Table:
    problems, rows, spectral_rows = (2, 2100, 1600) if quick else (200, 3000, 1600)
    frobenius = [_frobenius_outcome(case) for case in _fitted_maps(problems, rows)]
    spectral = [_spectral_outcome(case) for case in _fitted_maps(problems, spectral_rows)]
    return Table(
        "Certificates: how often the interval contains the exact value",
        f"{problems} problems of {len(MAPS)} maps, {len(ROWS)} kinds of rows and {len(SIZES)} "
        f"sizes, {CONFIDENCE:.0%} confidence asked for. Exact values come from all pairs of {rows} "
        f"rows, and from all eigenvalues of {spectral_rows} with alpha = {RELATIVE_ALPHA:g} × the "
        "trace of K. The width of the interval is relative to the exact value.",
        [
            _coverage_row("relative Frobenius error", frobenius),
            _coverage_row("spectral error", spectral),
        ],
    )


def _fitted_maps(count: int, rows: int) -> Iterator[FittedMap]:
    """Yield problems of all kinds in turn, each with a seed of its own."""
    kinds = islice(cycle(product(SIZES, ROWS, MAPS.values())), count)
    for seed, (size, draw, make) in enumerate(kinds):
        X = draw(np.random.default_rng(seed), rows)
        X /= np.sqrt(np.mean(np.sum(X**2, axis=1)))
        sketch = make(n_components=size, random_state=seed, n_jobs=-1).fit(X)
        Z = sketch.transform(X)
        yield FittedMap(sketch, X, sketch.kernel_(X, n_jobs=-1), Z @ Z.T)


def _frobenius_outcome(fitted: FittedMap) -> Outcome:
    certificate = certify(fitted.sketch, fitted.X, confidence=CONFIDENCE, random_state=1, n_jobs=-1)
    return _outcome(certificate.frobenius, off_diagonal_error(fitted.approximate, fitted.K))


def _spectral_outcome(fitted: FittedMap) -> Outcome:
    alpha = RELATIVE_ALPHA * float(np.trace(fitted.K))
    certificate = certify(
        fitted.sketch, fitted.X, alpha=alpha, confidence=CONFIDENCE, random_state=1, n_jobs=-1
    )
    return _outcome(certificate.spectral.eps, fitted.spectral_error(alpha))


def _outcome(interval: Any, exact: float) -> Outcome:
    slack = ROUNDING * exact
    holds = interval.low - slack <= exact <= interval.high + slack
    return Outcome(bool(holds), (interval.high - interval.low) / exact)


def _coverage_row(name: str, outcomes: list[Outcome]) -> Row:
    held = sum(outcome.holds for outcome in outcomes)
    widths = [outcome.width for outcome in outcomes]
    cells = {
        "figure": name,
        "problems": len(outcomes),
        "held": held,
        "median width": float(np.median(widths)),
        "95 % of widths below": float(np.quantile(widths, 0.95, method="inverted_cdf")),
    }
    return Row(cells, [at_least(held, HELD_OF_200 * len(outcomes) // 200)])


MEASUREMENTS = (certificate_coverage,)
