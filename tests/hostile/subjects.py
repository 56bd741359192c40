"""What is attacked: every feature map, kernel, regression and solver of the tests' registries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import (
    ArcCosineSketch,
    GaussianSketch,
    LearnedMetric,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
    solve_kernel_system,
)
from powersketch.kernels import Gaussian, Kernel, Polynomial
from powersketch.nystroem import LANDMARKS as LANDMARK_DRAWS
from powersketch.powers import POWER_METHODS
from tests.feature_maps.cases import CASES, ESTIMATORS, Case
from tests.kernels.kernel_cases import KERNELS

Array = NDArray[Any]
FORMS = ("full", "diagonal")
_ROWS_FOR_A_METRIC = 40


@dataclass(frozen=True)
class Subject:
    """Something that is fitted to rows, and then makes numbers of rows."""

    name: str
    family: str
    largest_norm: float = math.inf  # of the rows that it takes
    same_bits: bool = False  # for any split and container; else the same up to rounding
    same_bits_threads: bool = False

    def estimator(self, **changes: Any) -> Any:
        """Return what is to be fitted, with some parameters changed."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, **changes: Any) -> Any:
        """Return it, fitted; without targets, those of the rows are taken where some are needed."""
        return self.refit(self.estimator(**changes), X, y)

    def refit(self, estimator: Any, X: Any, y: Any = None) -> Any:
        """Fit an estimator, which may be fitted already."""
        del y
        return estimator.fit(X)

    def apply(self, fitted: Any, X: Any) -> Array:
        """Return what it makes of rows."""
        values: Array = fitted.transform(X)
        return values


@dataclass(frozen=True)
class MapSubject(Subject):
    """A feature map of the registry."""

    case: Case = field(kw_only=True)

    def estimator(self, **changes: Any) -> Any:
        return self.case.sketch(**changes)


@dataclass(frozen=True)
class NystroemSubject(Subject):
    """Landmarks."""

    parameters: dict[str, Any] = field(kw_only=True)

    def estimator(self, **changes: Any) -> Any:
        return LeverageNystroem(**{"random_state": 5, **self.parameters, **changes})


@dataclass(frozen=True)
class KernelSubject(Subject):
    """An exact kernel, which has nothing to fit: it makes a matrix of rows."""

    kernel: Kernel = field(kw_only=True)

    def fit(self, X: Any, y: Any = None, **changes: Any) -> Any:
        del X, y
        return changes

    def apply(self, fitted: Any, X: Any) -> Array:
        return self.kernel(X, **fitted)


@dataclass(frozen=True)
class RidgeSubject(Subject):
    """A regression on targets that are a smooth function of every row, or their signs."""

    parameters: dict[str, Any] = field(kw_only=True)
    classifies: bool = False

    def estimator(self, **changes: Any) -> Any:
        kind = SketchedKernelRidgeClassifier if self.classifies else SketchedKernelRidge
        return kind(**{"random_state": 5, **self.parameters, **changes})

    def refit(self, estimator: Any, X: Any, y: Any = None) -> Any:
        y = targets(X) if y is None else y
        return estimator.fit(X, labels(y) if self.classifies else y)

    def apply(self, fitted: Any, X: Any) -> Array:
        values: Array = fitted.decision_function(X) if self.classifies else fitted.predict(X)
        return values


@dataclass(frozen=True)
class MetricSubject(Subject):
    """A metric learned from such targets; few rows are given several times."""

    form: str = field(kw_only=True)

    def estimator(self, **changes: Any) -> Any:
        return LearnedMetric(**{"metric": self.form, "random_state": 5, **changes})

    def refit(self, estimator: Any, X: Any, y: Any = None) -> Any:
        y = targets(X) if y is None else y
        times = math.ceil(_ROWS_FOR_A_METRIC / max(len(y), 1))
        if times > 1:
            X = sp.vstack([X] * times) if sp.issparse(X) else np.concatenate([X] * times)
            y = np.tile(y, times)
        return estimator.fit(X, y)

    def apply(self, fitted: Any, X: Any) -> Array:
        values = fitted.transform(X)
        return values.toarray() if sp.issparse(values) else values


@dataclass(frozen=True)
class SolverSubject(Subject):
    """A kernel system, solved anew for the rows given."""

    kernel: Kernel = field(kw_only=True)
    parameters: dict[str, Any] = field(kw_only=True)

    def fit(self, X: Any, y: Any = None, **changes: Any) -> Any:
        y = targets(X) if y is None else y
        return {"y": y, "alpha": 0.1, "random_state": 5, **self.parameters, **changes}

    def apply(self, fitted: Any, X: Any) -> Array:
        solution: Array = solve_kernel_system(X, kernel=self.kernel, **fitted).x
        return solution


def targets(X: Any) -> NDArray[np.float64]:
    """Return a smooth function of every row, bounded, for any container that holds numbers."""
    rows = X.toarray() if sp.issparse(X) else np.ma.getdata(np.asarray(X))
    if rows.dtype.kind not in "biufO" or rows.ndim != 2 or not rows.size:
        return np.zeros(len(rows))
    rows = rows.astype(np.float64)
    with np.errstate(invalid="ignore"):
        smooth = np.tanh(rows[:, 0]) + 0.5 * np.tanh(rows[:, -1])
    return np.nan_to_num(smooth)


def labels(y: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return two classes, both of them present if there are two rows."""
    if not y.size:
        return y > 0.0
    signs = y > np.median(y)
    signs[0], signs[-1] = False, True
    return signs


# Besides those that sketch powers.
OWN_METHODS: dict[type, tuple[str, ...]] = {
    PolynomialSketch: ("adaptive",),
    GaussianSketch: ("auto", "single_power", "fourier"),
    ArcCosineSketch: ("random",),
    NeuralTangentSketch: ("random",),
}
# Methods that leave the diagonal to chance, or lose rows without a drawn monomial.
_INEXACT_DIAGONAL = ("random", "adaptive")


def _with_each_method() -> list[Case]:
    """Return every feature map with its defaults and every method."""
    return [
        Case(
            f"{estimator.__name__}({', '.join(f'{k}={v!r}' for k, v in method.items())})",
            40,
            {**method, "n_components": 64},
            estimator=estimator,
            same_bits_sparse=False,
            diagonal=_diagonal(estimator, method["method"]),
        )
        for estimator in ESTIMATORS
        for method in _methods(estimator)
    ]


def _methods(estimator: type) -> list[dict[str, str]]:
    """Return all ways to approximate the kernel, and all to sketch powers."""
    named = [{"method": name} for name in OWN_METHODS.get(estimator, ())]
    if estimator is PolynomialSketch:
        return [*({"method": name} for name in POWER_METHODS), *named]
    powers = ["squaring", *(name for name in POWER_METHODS if name != "power")]
    return [*({"method": "power", "power_method": name} for name in powers), *named]


def _diagonal(estimator: type, method: str) -> str:
    if method in _INEXACT_DIAGONAL:
        return "neither"
    return "series" if estimator.__name__ == "DotProductSketch" else "kernel"


def _maps() -> list[Subject]:
    return [
        MapSubject(
            case.name,
            "map",
            largest_norm=case.largest_norm,
            same_bits=case.portable,
            same_bits_threads=case.portable,
            case=case,
        )
        for case in (*CASES.values(), *_with_each_method())
    ]


def _nystroem() -> list[Subject]:
    return [
        NystroemSubject(
            f"LeverageNystroem({kernel!r}, landmarks={landmarks!r})",
            "landmarks",
            parameters={"kernel": kernel, "landmarks": landmarks, "n_components": 20},
        )
        for landmarks in LANDMARK_DRAWS
        for kernel in ("gaussian", Gaussian(0.5), Polynomial(3, coef0=1.0))
    ] + [
        NystroemSubject(
            f"LeverageNystroem({kernel!r})",
            "landmarks",
            parameters={"kernel": kernel, "n_components": 20},
        )
        for kernel in KERNELS
    ]


_SKETCH: dict[str, Any] = {"kernel": "gaussian", "features": "sketch", "alpha": 1.0}
_RIDGE: dict[str, dict[str, Any]] = {
    "default": {},
    "sketch": _SKETCH,
    "gcv": _SKETCH | {"alpha": "gcv"},
    "loo": _SKETCH | {"alpha": "loo"},
    "polynomial": _SKETCH | {"kernel": "polynomial", "kernel_params": {"degree": 3, "coef0": 1.0}},
    "given map": {"features": ArcCosineSketch(n_components=256), "alpha": 1.0},
    "landmarks": _SKETCH | {"features": "landmarks", "n_components": 20},
    "auto": _SKETCH | {"features": "auto"},
    "exact": _SKETCH | {"features": "exact"},
    "exact loo": _SKETCH | {"features": "exact", "alpha": "loo"},
    "exact polynomial": _SKETCH | {"kernel": Polynomial(3, coef0=1.0), "features": "exact"},
    "row-sketch": _SKETCH | {"features": "row-sketch"},
}


def _ridge() -> list[Subject]:
    return [
        RidgeSubject(f"{name} {kind}", "ridge", parameters=parameters, classifies=classifies)
        for classifies, kind in ((False, "regressor"), (True, "classifier"))
        for name, parameters in _RIDGE.items()
    ]


_SOLVERS: dict[str, dict[str, Any]] = {
    "by default": {},
    "with cg": {"preconditioner": "none"},
    "with landmarks": {"preconditioner": "nystroem"},
    "with features": {"preconditioner": "features"},
    "sketched": {"operator": "sketched"},
}


def _solvers() -> list[Subject]:
    ways = [("by default", kernel) for kernel in KERNELS]
    ways += [(way, kernel) for way in _SOLVERS for kernel in (Gaussian(0.5), Polynomial(2))]
    return [
        SolverSubject(f"{kernel!r} {way}", "system", kernel=kernel, parameters=_SOLVERS[way])
        for way, kernel in ways
    ]


def _named(subjects: list[Subject]) -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects}


MAPS = _named(_maps())
LANDMARKS = _named(_nystroem())
EXACT_KERNELS = _named([KernelSubject(repr(k), "kernel", kernel=k) for k in KERNELS])
RIDGE = _named(_ridge())
SYSTEMS = _named(_solvers())
METRICS = _named([MetricSubject(f"{form} metric", "metric", form=form) for form in FORMS])
FITTED = {**MAPS, **LANDMARKS, **RIDGE}
SUBJECTS = {**FITTED, **EXACT_KERNELS, **SYSTEMS}
