"""Fashion-MNIST, all 60,000 rows: error against seconds and memory, each in a fresh process."""

import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import sklearn
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline

from benchmarks.data import fashion_mnist
from benchmarks.features.memory import peak_bytes
from benchmarks.large.frontier import Figures, frontier_table, measured_sizes
from benchmarks.outcomes import kept, library_sources
from benchmarks.peers.large import EigenPro, Falkon
from benchmarks.report import Bar, Row, Table, at_most, from_fresh_process, print_figures
from benchmarks.timing import timed
from powersketch import GaussianSketch, LeverageNystroem, SketchedKernelRidgeClassifier
from powersketch.kernels import Gaussian

PENALTY = 1e-7  # times the number of rows is alpha
MOST_GIGABYTES, MANY_FEATURES = 16, 32_768
LARGEST_SIZES = {"powersketch, landmarks": 32_768, "powersketch, sketch": 131_072}
GIGABYTES_OF_MACHINE = 24


def _landmarks(size: int, gamma: float, rows: int) -> Any:
    landmarks = LeverageNystroem(
        Gaussian(gamma), n_components=size, landmarks="uniform", jitter=1e-5
    )
    return SketchedKernelRidgeClassifier(
        features=landmarks, alpha=PENALTY * rows, solver="auto", random_state=0
    )


def _sketch(size: int, gamma: float, rows: int) -> Any:
    sketch = GaussianSketch(gamma, n_components=size, n_jobs=-1)
    return SketchedKernelRidgeClassifier(
        features=sketch, alpha=10 * PENALTY * rows, solver="cg", random_state=0
    )


def _scikit_learn(size: int, gamma: float, rows: int, *, by_gradients: bool = False) -> Any:
    ridge = RidgeClassifier(alpha=PENALTY * rows)
    features = Nystroem(gamma=gamma, n_components=size, random_state=0)
    return make_pipeline(features, SGDClassifier(random_state=0) if by_gradients else ridge)


METHODS: dict[str, Callable[[int, float, int], Any]] = {
    "powersketch, landmarks": _landmarks,
    "powersketch, sketch": _sketch,
    "scikit-learn, Nystroem + Ridge": _scikit_learn,
    "scikit-learn, Nystroem + SGD": partial(_scikit_learn, by_gradients=True),
    "FALKON in NumPy": lambda size, gamma, rows: Falkon(gamma, size, PENALTY),
    "EigenPro in NumPy": lambda size, gamma, rows: EigenPro(gamma, passes=size),
}
DRAWN = ("powersketch, landmarks", "scikit-learn, Nystroem + Ridge")
SEED_OF = {"scikit-learn, Nystroem + Ridge": "nystroem__random_state"}
SIZES = {
    "powersketch, landmarks": (1024, 2048, 4096, 8192, 16_384),
    "powersketch, sketch": (4096, 8192),
    "scikit-learn, Nystroem + Ridge": (1024, 4096),
    "scikit-learn, Nystroem + SGD": (1024,),
    "FALKON in NumPy": (4096,),
    "EigenPro in NumPy": (2,),
}


def frontier(*, quick: bool) -> Table:
    rows = _rows(quick)
    most = rows // 8 if quick else max(chain.from_iterable(SIZES.values()))
    sizes = {name: [min(size, most) for size in each] for name, each in SIZES.items()}
    return frontier_table(
        "large_images",
        f"Fashion-MNIST, {rows} rows: error against seconds and memory",
        "Gaussian kernel, gamma 'scale', one alpha. EigenPro's size is its passes over the rows.",
        measured_sizes(__spec__.name, sizes, rows),
        error="share of errors",
        bars=lambda *row: () if quick else _bars(*row),
    )


def many_features(*, quick: bool) -> Table:
    """Oblivious features whose Gram matrix would take as much memory as all of them."""
    rows = _rows(quick)
    size = rows // 2 if quick else MANY_FEATURES
    figures = from_fresh_process(__spec__.name, "powersketch, sketch", size, rows)
    bars = [at_most(figures["GB"], MOST_GIGABYTES)]
    return Table(
        "Fashion-MNIST: many features of a sketch",
        f"{rows} rows, Gaussian kernel, one alpha, two cores, a process of its own.",
        [Row({"features": size, **figures}, bars)],
    )


def largest_sizes(*, quick: bool) -> Table:
    """As many landmarks and features as the machine's memory is said to be enough for."""
    rows = _rows(quick)
    measured = {}
    for name, size in LARGEST_SIZES.items():
        size = rows // 2 if quick else size
        measured[name, size] = from_fresh_process(__spec__.name, name, size, rows)
    return Table(
        "Fashion-MNIST: as many features as fit",
        f"{rows} rows, Gaussian kernel, one alpha, two cores, a process of its own for each.",
        [
            Row(
                {"method": name, "features": size, **figures},
                [at_most(figures["GB"], GIGABYTES_OF_MACHINE)],
            )
            for (name, size), figures in measured.items()
        ],
    )


def draws(*, quick: bool) -> Table:
    """Errors of many draws of landmarks: those of two single ones differ by more than a percent."""
    rows = _rows(quick)
    size, seeds = (rows // 8, 2) if quick else (4096, 10)
    errors = {name: [_error(name, size, rows, seed) for seed in range(seeds)] for name in DRAWN}
    means = {name: float(np.mean(each)) for name, each in errors.items()}
    ours, peer = (means[name] for name in DRAWN)
    return Table(
        "Fashion-MNIST: error over many draws of landmarks",
        f"{rows} rows, {size} landmarks of {seeds} seeds each, Gaussian kernel, one alpha.",
        [
            Row(
                {
                    "method": name,
                    "mean error": means[name],
                    "standard error": float(np.std(each, ddof=1) / np.sqrt(seeds)),
                    "least": min(each),
                    "most": max(each),
                    "ratio of means": means[name] / peer,
                },
                [at_most(ours / peer, 1.01)] if name == DRAWN[0] and not quick else (),
            )
            for name, each in errors.items()
        ],
    )


def _error(name: str, size: int, rows: int, seed: int) -> float:
    """Return the share of errors, measured now or before with the same versions."""
    by = library_sources() if name == DRAWN[0] else [sklearn.__version__]
    figures = partial(from_fresh_process, __spec__.name, name, size, rows, seed)
    return float(kept(["draws", name, size, rows, seed, by], figures)["error"])


def _rows(quick: bool) -> int:
    return 6000 if quick else 60_000


def _bars(name: str, size: int, measured: Figures) -> list[Bar]:
    figures, peer = measured[name, size], measured["scikit-learn, Nystroem + Ridge", 4096]
    if (name, size) == ("powersketch, landmarks", 4096):
        return [
            at_most(figures["seconds"], round(0.25 * peer["seconds"], 2)),
            at_most(figures["error"], round(1.01 * peer["error"], 4)),
        ]
    if (name, size) == ("powersketch, landmarks", 8192):
        return [at_most(figures["seconds"], peer["seconds"]), at_most(figures["error"], 0.107)]
    if (name, size) == ("powersketch, landmarks", 16_384):
        return [at_most(figures["GB"], MOST_GIGABYTES), at_most(figures["error"], 0.102)]
    return []


def measure(name: str, size: int, rows: int, seed: int = 0) -> None:
    X, y = (part[:rows] for part in fashion_mnist("train"))
    X_test, y_test = fashion_mnist("t10k")
    model = METHODS[name](size, float(1 / (X.shape[1] * X.var())), rows)
    if seed:
        model.set_params(**{SEED_OF.get(name, "random_state"): seed})
    one_hot = np.where(y[:, np.newaxis] == np.arange(10), 1.0, -1.0)
    _, seconds = timed(lambda: model.fit(X, one_hot if "NumPy" in name else y))
    predicted = model.predict(X_test)
    classes = predicted.argmax(axis=1) if predicted.ndim > 1 else predicted
    error = float(np.mean(classes != y_test))
    print_figures({"seconds": seconds, "GB": peak_bytes() / 1e9, "error": error})


MEASUREMENTS = (frontier, many_features, largest_sizes, draws)

if __name__ == "__main__":
    measure(sys.argv[1], *map(int, sys.argv[2:]))
