"""Promises about errors: choices are good, certificates true, one absurd row spoils nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.exceptions import OutlierWarning, RangeWarning
from powersketch.feature_maps.pilot import fair_shares
from powersketch.kernels import Gaussian, Polynomial
from tests.feature_maps.cases import Case
from tests.hostile.matrices import GOOD, ROWS, AbsurdRow, Matrix, normal
from tests.hostile.outcomes import demand
from tests.hostile.promises_of_values import within
from tests.hostile.subjects import (
    KernelSubject,
    MapSubject,
    NystroemSubject,
    RidgeSubject,
    Subject,
    targets,
)

Float64 = NDArray[np.float64]

ABSURD_INDEX = 17
_SEEDS = (0, 1, 2)
# How much worse something may be, relative to what it could be, and where errors are tiny anyway.
_WORSE_CHOICE = 1.5
_SMALL_ERROR = {"inside": 0.01, "outside": 0.1, "heavy tails": 0.2}
_WORSE_ROWS, _TINY = 2.0, {"ridge": 0.02}


@dataclass(frozen=True)
class Chooser:
    """An estimator that chooses by itself, and what it chooses from."""

    name: str
    estimator: Callable[..., Any]
    parameters: dict[str, Any]
    choices: tuple[dict[str, Any], ...]  # the safest one last

    def error(self, fitted_to: Any, X: Any, **choice: Any) -> float:
        """Return the relative error on rows X of a map fitted to other rows.

        No few rows decide it: where kernels grow with the norms, one row might be all of K.
        """
        sketch = self.estimator(**{"random_state": 5, **self.parameters, **choice}).fit(fitted_to)
        Z, K = sketch.transform(X), sketch.kernel_(X, dtype=np.float64)
        dense = X.toarray() if sp.issparse(X) else np.asarray(X)
        lengths = np.linalg.norm(dense, axis=1)
        factors = fair_shares(np.sqrt(K.diagonal()), lengths)[1][:, None]
        return kernel_error(Z * factors, factors * K * factors.T)


def _chooser(
    estimator: Callable[..., Any], option: str, values: tuple[str, ...], **parameters: Any
) -> Chooser:
    told = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    choices = tuple({option: value} for value in values)
    return Chooser(f"{estimator.__name__}({told})", estimator, parameters, choices)


_EXPANSIONS = ("mean", "none")
CHOOSERS = {
    chooser.name: chooser
    for chooser in (
        *(
            _chooser(
                GaussianSketch,
                "method",
                ("power", "single_power", "fourier"),
                gamma=gamma,
                n_components=size,
            )
            for gamma, size in ((0.1, 128), (0.5, 64), (0.05, 256), (4.0, 128))
        ),
        *(
            _chooser(PolynomialSketch, "expansion", _EXPANSIONS, degree=p, coef0=c, n_components=m)
            for p, c, m in ((3, 1.0, 64), (8, 0.5, 128), (2, 0.0, 32))
        ),
        _chooser(DotProductSketch, "expansion", _EXPANSIONS, n_components=64),
        _chooser(ArcCosineSketch, "expansion", _EXPANSIONS, order=0, n_components=64),
        _chooser(ArcCosineSketch, "expansion", _EXPANSIONS, order=1, n_components=64),
        _chooser(NeuralTangentSketch, "expansion", _EXPANSIONS, n_components=64),
    )
}


_AUTOMATIC: dict[str, Any] = {"n_components": "auto", "eps": 0.2}
_CERTIFIED_SLACK = 1.25
CERTIFIED: dict[str, Subject] = {
    subject.name: subject
    for subject in (
        *(
            NystroemSubject(
                f"LeverageNystroem({kernel!r}, eps=0.2)",
                "landmarks",
                parameters={"kernel": kernel, **_AUTOMATIC},
            )
            for kernel in (Gaussian(0.5), Polynomial(3, coef0=1.0))
        ),
        *(
            MapSubject(f"{case.name}, eps=0.2", "map", case=case)
            for case in (
                Case("Gaussian", 12, _AUTOMATIC, estimator=GaussianSketch),
                Case("polynomial", 12, {"degree": 3, "coef0": 1.0, **_AUTOMATIC}),
                Case("arc-cosine", 12, _AUTOMATIC, estimator=ArcCosineSketch),
            )
        ),
    )
}


@dataclass(frozen=True)
class Region:
    """Rows to fit to, and where the rows of `transform` lie in relation to them."""

    name: str
    matrix: Matrix
    move: Callable[[Any], Any]
    small_error: float


def _shifted(X: Any) -> Any:
    X = X.toarray() if sp.issparse(X) else X
    spread = 1.4826 * float(np.median(np.abs(X - np.median(X))))
    return X + 5.0 * (spread or X.std())


_MOVES: dict[str, Callable[[Any], Any]] = {
    "inside": lambda X: X,
    "x 10": lambda X: X * 10.0,
    "x 1000": lambda X: X * 1000.0,
    "shifted": _shifted,
}
_KINDS = (
    "normal",
    "uniform",
    "positive",
    "counts",
    "one-hot CSR",
    "opposite rows",
    "near duplicates",
    "constant columns",
    "Cauchy",
    "one row x 30",
    "1e20",
    "1e-8",
)
CERTIFIED_ROWS = {
    name: GOOD[name]
    for name in (
        *_KINDS,
        "mixed rows",
        "duplicates",
        "zero rows",
        "constant",
        "one row x 1e10",
        "two columns",
    )
}


def _small_error(kind: str, name: str) -> float:
    # Forty rows without a variance say little about forty others.
    heavy_tails = _SMALL_ERROR["heavy tails"] if kind == "Cauchy" else 0.0
    return max(_SMALL_ERROR.get(name, _SMALL_ERROR["outside"]), heavy_tails)


REGIONS = {
    f"{kind}, {name}": Region(f"{kind}, {name}", GOOD[kind], move, _small_error(kind, name))
    for kind in _KINDS
    for name, move in _MOVES.items()
}


def choice_is_good(chooser: Chooser, region: Region, seed: int) -> None:
    """The error is near that of the best own choice; of rows unlike those of fit, of the safest.

    Or a warning says that rows are far off.
    """
    rows = region.matrix.rows(seed, rows=6 * ROWS)  # fewer say little about others
    fitted_to, X = rows[::2], region.move(rows[1::2])
    errors = {str(choice): chooser.error(fitted_to, X, **choice) for choice in chooser.choices}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = chooser.error(fitted_to, X)
    if any(issubclass(warning.category, RangeWarning) for warning in caught):
        return
    safest = str(chooser.choices[-1])
    inside = region.name.endswith(", inside")
    best = min(errors, key=errors.__getitem__) if inside else safest
    demand(
        own <= _WORSE_CHOICE * errors[best] + region.small_error,
        f"the error is {own:.3g}, with {best} {errors[best]:.3g}",
    )


def certificate_is_true(subject: Subject, matrix: Matrix, seed: int) -> None:
    """Where the size was chosen for an error, all entries together have no larger one."""
    X = within(matrix.rows(seed, rows=2 * ROWS), subject)
    fitted = subject.fit(X)
    error = kernel_error(subject.apply(fitted, X), fitted.kernel_(X, dtype=np.float64))
    demand(
        error <= _CERTIFIED_SLACK * fitted.eps,
        f"eps={fitted.eps} was asked for, the error is {error:.3g}",
    )


def clean_rows_keep_their_accuracy(subject: Subject, absurd: AbsurdRow, seed: int) -> None:
    """One absurd row given to `fit` costs the others at most a factor of two.

    Where rows are summed and the kernel is not bounded, that row outweighs all others by more than
    the digits of a float64. There it is enough that a warning names it.
    """
    X = _ordinary(subject, seed)
    clean, spoilt = np.delete(X, ABSURD_INDEX, axis=0), absurd.among(X, ABSURD_INDEX)
    measure = _MEASURES.get(subject.family, _map_errors)
    without = measure(subject, clean, clean)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        beside = measure(subject, clean, spoilt)
    excused = subject.family in ("ridge", "landmarks") and _is_named(caught)
    demand(
        beside <= _WORSE_ROWS * without + _TINY.get(subject.family, 1e-6)
        or (excused and _outweighs(subject, clean, spoilt)),
        f"the error of the other rows is {beside:.3g}, without that row {without:.3g}",
    )


def absurd_row_is_named(subject: Subject, absurd: AbsurdRow, seed: int) -> None:
    """Where the rows given to `fit` matter, a warning names the one that was left out."""
    X = _ordinary(subject, seed)
    if not _looks_at_rows(subject, X):
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subject.fit(absurd.among(X, ABSURD_INDEX), targets(X))
    demand(_is_named(caught), f"no OutlierWarning named row {ABSURD_INDEX}")


def clean_rows_keep_their_bits(subject: Subject, absurd: AbsurdRow, seed: int) -> None:
    """One absurd row given to `transform` or `predict` changes no other."""
    X = _ordinary(subject, seed)
    fitted = subject.fit(X)
    alone, beside = (
        np.delete(subject.apply(fitted, rows), ABSURD_INDEX, axis=0)
        for rows in (X, absurd.among(X, ABSURD_INDEX))
    )
    error = float(np.abs(alone - beside).max())
    allowed = 0.0 if subject.same_bits else 1e-9 * float(np.abs(alone).max())
    demand(error <= allowed, f"other rows change by up to {error:.3g}")


def kernel_error(Z: Any, K: Float64) -> float:
    """Return ‖Z Zᵀ − K‖ / ‖K‖ in Frobenius norms, for numbers of any size."""
    scale = float(np.abs(K).max()) or 1.0
    Z = Z.astype(np.float64) / np.sqrt(scale)
    return float(np.linalg.norm(Z @ Z.T - K / scale) / np.linalg.norm(K / scale))


def _ordinary(subject: Subject, seed: int) -> Float64:
    X: Float64 = within(normal(np.random.default_rng([seed, 3]), 60, 12), subject)
    return X


def _map_errors(subject: Subject, clean: Float64, given: Float64) -> float:
    """Return the mean error on the clean rows of maps that were fitted to the given ones.

    The kernel is that of the clean rows, from which "scale" takes its gamma.
    """
    K = subject.fit(clean).kernel_(clean)
    errors = [
        kernel_error(subject.fit(given, random_state=seed).transform(clean), K) for seed in _SEEDS
    ]
    return float(np.mean(errors))


def _kernel_errors(subject: KernelSubject, clean: Float64, given: Float64) -> float:
    """Return the largest error of a clean pair, relative to the roots of the diagonal."""
    K, found = subject.kernel(clean), subject.kernel(given)
    if len(given) > len(clean):
        found = np.delete(np.delete(found, ABSURD_INDEX, axis=0), ABSURD_INDEX, axis=1)
    roots = np.sqrt(np.diag(K))
    return float(np.abs((found - K) / roots / roots[:, np.newaxis]).max())


def _ridge_errors(subject: RidgeSubject, clean: Float64, given: Float64) -> float:
    """Return the root mean square error of the predictions for new clean rows."""
    y = targets(clean)
    given_y = y if len(given) == len(clean) else np.insert(y, ABSURD_INDEX, 0.0)
    fitted = subject.fit(given, given_y)
    new = normal(np.random.default_rng(99), 200, clean.shape[1])
    wanted = targets(new)
    if subject.classifies:
        wanted = np.where(wanted > np.median(y), 1.0, -1.0)
    return float(np.sqrt(np.mean((subject.apply(fitted, new) - wanted) ** 2)))


_MEASURES: dict[str, Callable[[Any, Float64, Float64], float]] = {
    "kernel": _kernel_errors,
    "ridge": _ridge_errors,
}


def _is_named(caught: list[warnings.WarningMessage]) -> bool:
    told = [str(w.message) for w in caught if issubclass(w.category, OutlierWarning)]
    return any(re.search(rf"\b{ABSURD_INDEX}\b", message) for message in told)


def _outweighs(subject: Subject, clean: Float64, spoilt: Float64) -> bool:
    """Tell whether k(x, x) of the absurd row is far above that of the others."""
    kernel = subject.fit(clean).kernel_
    return bool(kernel.diagonal(spoilt).max() > 100.0 * kernel.diagonal(clean).max())


def _looks_at_rows(subject: Subject, X: Float64) -> bool:
    """Tell whether maps fitted to different rows are different maps."""
    other = within(np.abs(X) * 1.5 + 0.1, subject)
    first, second = (subject.apply(subject.fit(rows), X) for rows in (X, other))
    return first.shape != second.shape or not np.array_equal(first, second)
