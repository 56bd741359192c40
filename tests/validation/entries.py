"""Every public function and method that takes rows, as a function of them alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone

from powersketch import (
    GaussianSketch,
    LeverageNystroem,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
    SketchPreconditioner,
    accuracy,
    compare,
    solve_kernel_system,
)
from powersketch.kernels import Gaussian, Polynomial
from powersketch.linalg import KernelOperator
from tests.feature_maps.cases import ESTIMATORS
from tests.kernels.kernel_cases import KERNELS
from tests.validation.corruptions import ROWS, sound_rows

Entry = Callable[[Any], Any]

_LABELS = np.arange(ROWS) % 2
_TARGETS = np.linspace(0.0, 1.0, ROWS)
_MAPS: dict[str, Any] = {
    **{kind.__name__: kind(n_components=32) for kind in ESTIMATORS},
    "fourier": GaussianSketch(method="fourier", n_components=32),
    "automatic size": PolynomialSketch(n_components="auto", eps=0.5),
    "landmarks": LeverageNystroem(n_components=8),
}
_RIDGE: dict[str, Any] = {
    "ridge": SketchedKernelRidge("gaussian", features="sketch", n_components=32, alpha=1.0),
    "default ridge": SketchedKernelRidge(),
    "exact ridge": SketchedKernelRidge("gaussian", alpha=1.0, features="exact"),
    "classifier": SketchedKernelRidgeClassifier(
        "gaussian", features="sketch", n_components=32, alpha=1.0
    ),
}
# The kernels of one class check rows in the same place.
_KERNELS = {type(kernel).__name__: kernel for kernel in KERNELS}


def _fresh(estimator: Any) -> Any:
    return clone(estimator).set_params(random_state=0)


@cache
def _fitted(name: str) -> Any:
    if name in _MAPS:
        return _fresh(_MAPS[name]).fit(sound_rows())
    return _fresh(_RIDGE[name]).fit(sound_rows(), _LABELS)


def _of_map(name: str, sketch: Any) -> dict[str, Entry]:
    return {
        f"{name}.fit": lambda X: _fresh(sketch).fit(X),
        f"{name}.transform": lambda X: _fitted(name).transform(X),
    }


def _of_ridge(name: str, ridge: Any) -> dict[str, Entry]:
    return {
        f"{name}.fit": lambda X: _fresh(ridge).fit(X, _LABELS),
        f"{name}.predict": lambda X: _fitted(name).predict(X),
    }


def _of_kernel(name: str, kernel: Any) -> dict[str, Entry]:
    return {
        f"{name}(X)": kernel,
        f"{name}(X, rows)": lambda X: kernel(X, sound_rows()),
        f"{name}.diagonal": kernel.diagonal,
        f"{name}.product": lambda X: kernel.product(X, _TARGETS),
    }


def _of_landmarks(X: Any) -> Any:
    return _fitted("landmarks").kernel_columns()(X)


ENTRIES: dict[str, Entry] = {
    **{entry: call for item in _MAPS.items() for entry, call in _of_map(*item).items()},
    **{entry: call for item in _RIDGE.items() for entry, call in _of_ridge(*item).items()},
    **{entry: call for item in _KERNELS.items() for entry, call in _of_kernel(*item).items()},
    "kernel columns": lambda X: Gaussian().columns(X),
    "kernel at columns": lambda X: Gaussian().columns(sound_rows())(X, np.dtype(np.float64)),
    "landmark columns": _of_landmarks,
    "ridge.partial_fit": lambda X: _fresh(_RIDGE["ridge"]).partial_fit(X, _TARGETS),
    "ridge.predict, with std": lambda X: _fitted("ridge").predict(X, return_std=True),
    "classifier.partial_fit": lambda X: _fresh(_RIDGE["classifier"]).partial_fit(
        X, _LABELS, classes=[0, 1]
    ),
    "solve_kernel_system": lambda X: solve_kernel_system(X, _TARGETS, Gaussian(), alpha=1.0),
    "SketchPreconditioner": lambda X: SketchPreconditioner(X, Gaussian(), alpha=1.0),
    "KernelOperator": lambda X: KernelOperator(Gaussian(), X),
    "certify": lambda X: accuracy.certify(_fitted("GaussianSketch"), X),
    "statistical_dimension": lambda X: accuracy.statistical_dimension(Gaussian(), X, alpha=1.0),
    "required_components": lambda X: accuracy.required_components(GaussianSketch(), X, 0.5),
    "compare": lambda X: compare(X, Polynomial(), components=[8], seeds=1, methods=["power"]),
}
