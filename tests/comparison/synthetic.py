"""Comparisons made up of plausible figures, in which nothing has been measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.comparison import Comparison, ExactKernel, Measurement

NAMES = (
    "power",
    "power-literal",
    "tree",
    "tree-literal",
    "tensorsketch",
    "tensorsketch-literal",
    "ctr",
    "adaptive",
    "nystroem",
    "nystroem-uniform",
    "sklearn-countsketch",
    "sklearn-nystroem",
)
SIZES = (128, 256, 512, 1024, 2048)
ROWS = 1000

FAST = Measurement("fast", "oblivious", 64, 0.4, 0.01, 0.2, (0.5, 2.0), 1.0, 0.1, 100, 50, 1000)
EXACT = Measurement("exact", "peer", 64, 0.1, 0.0, 0.3, (0.9, 1.1), 1.0, 0.5, 100, 10, 9000)
LARGE = Measurement("fast", "oblivious", 128, 0.2, 0.0, 0.1, (0.7, 1.4), 2.0, 0.2, 100, 90, 2000)
BROKEN = Measurement("broken", "peer", 64, error_message="it broke")
MADE = Comparison(
    kernel="Polynomial(degree=2)",
    data_shape=(1000, 5),
    fit_rows=100,
    measured_rows=100,
    components=(64, 128),
    seeds=3,
    seed=7,
    measurements=(FAST, EXACT, BROKEN, LARGE),
    exact=ExactKernel(0.25, 80_000),
    alpha=1.5,
    spectrum=np.array([3.0, 1.0]),
    common_components=64,
    approximate_spectra={"fast": np.array([2.0, 0.5])},
    kernel_image=np.eye(2),
    approximate_images={"fast": np.ones((2, 2))},
)


def kind_of(name: str) -> str:
    """Return the kind that a method of this name has."""
    if name.startswith("sklearn"):
        return "peer"
    return "data-dependent" if name.startswith(("nystroem", "adaptive")) else "oblivious"


def measurement(name: str, size: int, error: float, **changes: Any) -> Measurement:
    """Return a measurement with this Frobenius error; all else follows from error and size."""
    figures: dict[str, Any] = {
        "frobenius": error,
        "frobenius_spread": 0.2 * error,
        "operator_norm": 0.6 * error,
        "spectral": (1.0 / (1.0 + 3.0 * error), 1.0 + 3.0 * error),
        "fit_seconds": 1e-3 * size,
        "transform_seconds": 2e-5 * size,
        "transform_rows": ROWS,
        "state_bytes": 16 * size,
        "transform_bytes": 8 * ROWS * size,
    }
    return Measurement(name, kind_of(name), size, **(figures | changes))


def failure(name: str, size: int, message: str) -> Measurement:
    """Return the measurement of a method that failed."""
    return Measurement(name, kind_of(name), size, error_message=message)


def kernel_matrix(rows: int = 96) -> np.ndarray:
    """Return the kernel (½ + ½ cos)^4 of points on a circle and some noise."""
    random = np.random.RandomState(5)
    X = np.concatenate([random.randn(rows, 6) + 2.0 * random.randn(1, 6)], axis=1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X[np.argsort(X[:, 0])]
    return (0.5 + 0.5 * X @ X.T) ** 4


def made_up(
    names: tuple[str, ...] = NAMES[:6],
    sizes: tuple[int, ...] = SIZES[:4],
    *,
    errors: tuple[float, float] = (1e-4, 10.0),
    **changes: Any,
) -> Comparison:
    """Return a comparison in which the errors of the largest size span this range."""
    random = np.random.RandomState(0)
    levels = np.geomspace(*errors, len(names))
    K = kernel_matrix()
    noise = random.randn(*K.shape)
    measurements = tuple(
        measurement(
            name,
            size,
            float(levels[number] * (sizes[-1] / size) ** (0.4 + 0.05 * number)),
            transform_seconds=float((1 + number % 5) ** 2 * 1e-5 * size**0.9),
            state_bytes=(1 + number) * 4000 * size,
        )
        for size in sizes
        for number, name in enumerate(names)
    )
    images = {
        name: K + level * K.mean() * (noise + noise.T) / 2
        for name, level in zip(names, levels, strict=True)
    }
    spectrum = np.sort(np.linalg.eigvalsh(K))[::-1]
    fields: dict[str, Any] = {
        "kernel": "Polynomial(degree=4, gamma=0.5, coef0=0.5)",
        "data_shape": (60000, 784),
        "fit_rows": 2000,
        "measured_rows": ROWS,
        "components": sizes,
        "seeds": 3,
        "seed": 7,
        "measurements": measurements,
        "exact": ExactKernel(0.031, 8 * ROWS * ROWS),
        "alpha": 0.5,
        "spectrum": spectrum,
        "common_components": sizes[-1],
        "approximate_spectra": {
            name: np.sort(np.linalg.eigvalsh(image))[::-1] for name, image in images.items()
        },
        "kernel_image": K,
        "approximate_images": images,
    }
    return Comparison(**(fields | changes))
