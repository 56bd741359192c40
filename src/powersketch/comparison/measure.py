"""One method at one size beside the exact kernel matrix: errors, times, memory, warnings."""

from __future__ import annotations

import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from powersketch.accuracy import DataRows, check_alpha_above_rounding
from powersketch.arrays import Float64, Vector
from powersketch.comparison.methods import Method
from powersketch.comparison.prediction import Prediction
from powersketch.comparison.results import ExactKernel, Measurement
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import interruptible
from powersketch.kernel_ridge import StraightLineWarning
from powersketch.kernels import Kernel
from powersketch.linalg import ritz_values
from powersketch.random_streams import RandomStreams

# K, Z Zᵀ, their difference and what Lanczos or LAPACK holds beside them.
MATRICES_IN_MEMORY = 4

_SPECTRUM_ROWS = 512
_IMAGE_ROWS = 96
_LANCZOS_STEPS = 100
_ALPHA_SHARE = 0.01  # of the trace, which is the sum of the eigenvalues
# A transform is repeated a few times at most, and only while the total time is short.
_SECONDS_OF_REPEATS = 0.2
_MOST_REPEATS = 3
# Notes to developers, about features of libraries that will go or change; and that a linear model
# is better, which stands beside every method anyway.
_NOT_FOR_USERS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    FutureWarning,
    ImportWarning,
    StraightLineWarning,
)


@dataclass(frozen=True, eq=False)
class ExactReference:
    """The exact kernel of the measured rows, and all that is asked of it more than once.

    All matrices are divided by `scale`, the largest entry: squares of entries of high degrees
    would overflow.
    """

    matrix: Float64
    scale: float
    frobenius: float
    operator_norm: float
    alpha: float
    spectrum: Vector
    image_rows: NDArray[np.int64]
    cost: ExactKernel
    start: Vector
    _factor: Float64

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        rows: DataRows,
        alpha: float | None,
        streams: RandomStreams,
        n_jobs: int | None,
    ) -> ExactReference:
        """Compute the kernel of the rows; an `alpha` of None is a share of its trace."""
        begin = time.perf_counter()
        K = np.asarray(kernel(rows.matrix, dtype=np.float64, n_jobs=n_jobs))
        cost = ExactKernel(time.perf_counter() - begin, K.nbytes)
        scale = float(np.abs(K).max())
        if scale == 0.0:
            raise InputError(
                f"{kernel} is zero on all {rows.count} measured rows, so that there are no "
                "relative errors: pass rows that are not zero."
            )
        K /= scale
        part = K[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS]
        ridge = _ALPHA_SHARE * float(np.trace(part)) if alpha is None else alpha / scale
        check_alpha_above_rounding(ridge * scale, np.diagonal(part) * scale)
        start = streams.normal("start", rows.count)
        return cls(
            matrix=K,
            scale=scale,
            frobenius=float(np.linalg.norm(K)),
            operator_norm=_operator_norm(K, start),
            alpha=ridge,
            spectrum=_descending_eigenvalues(part),
            image_rows=_similar_together(K[:_IMAGE_ROWS, :_IMAGE_ROWS]),
            cost=cost,
            start=start,
            _factor=interruptible(lambda: cholesky(_shifted(part, ridge), lower=True)),
        )

    def approximate(self, Z: Float64) -> Float64:
        """Return Z Zᵀ, divided by the scale."""
        scaled = Z / np.sqrt(self.scale)
        return interruptible(lambda: scaled @ scaled.T)

    def relative_errors(self, approximate: Float64) -> tuple[float, float]:
        """Return the relative errors in Frobenius and in operator norm."""
        difference = approximate - self.matrix
        frobenius = float(np.linalg.norm(difference)) / self.frobenius
        return frobenius, _operator_norm(difference, self.start) / self.operator_norm

    def pencil(self, approximate: Float64) -> tuple[float, float]:
        """Return the extreme eigenvalues of (Z Zᵀ + αI, K + αI) on the rows of the spectrum."""
        part = _shifted(approximate[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS], self.alpha)
        half = solve_triangular(self._factor, part, lower=True, check_finite=False)
        whole = solve_triangular(self._factor, half.T, lower=True, check_finite=False)
        values = _descending_eigenvalues(0.5 * (whole + whole.T))
        return float(values[-1]), float(values[0])

    def spectrum_of(self, approximate: Float64) -> Vector:
        """Return the eigenvalues of Z Zᵀ on the rows of the spectrum, descending."""
        part = approximate[:_SPECTRUM_ROWS, :_SPECTRUM_ROWS]
        return self.scale * _descending_eigenvalues(part)

    def image_of(self, matrix: Float64) -> Float64:
        """Return the matrix on the rows of the images."""
        return self.scale * matrix[np.ix_(self.image_rows, self.image_rows)]


def _operator_norm(matrix: Float64, start: Vector) -> float:
    """Return the largest absolute eigenvalue, from below except for rounding errors."""
    values = ritz_values(partial(np.matmul, matrix), start, _LANCZOS_STEPS)
    return float(np.abs(values).max())


def _shifted(matrix: Float64, alpha: float) -> Float64:
    shifted = matrix.copy()
    shifted[np.diag_indices_from(shifted)] += alpha
    return shifted


def _descending_eigenvalues(matrix: Float64) -> Vector:
    values = interruptible(lambda: np.linalg.eigvalsh(matrix))
    return np.asarray(values[::-1], dtype=np.float64)


def _similar_together(K: Float64) -> NDArray[np.int64]:
    """Return an order that puts similar rows beside each other.

    The leading eigenvector of a kernel is nearly constant; that of the centred one tells groups.
    """
    means = K.mean(axis=0)
    _, vectors = np.linalg.eigh(K - means - means[:, np.newaxis] + means.mean())
    leading = vectors[:, -1]
    sign = np.sign(leading[np.argmax(np.abs(leading))])
    return np.argsort(sign * leading, kind="stable").astype(np.int64)


@dataclass(frozen=True, eq=False)
class Picture:
    """What a method's approximation looks like: its eigenvalues, and a part of the matrix."""

    spectrum: Vector
    image: Float64


@dataclass(frozen=True)
class _Run:
    """The figures of one seed."""

    frobenius: float
    operator_norm: float
    spectral: tuple[float, float]
    fit_seconds: float
    transform_seconds: float


@dataclass(frozen=True, eq=False)
class Experiment:
    """The rows, the exact kernel and the seeds that every method is measured with."""

    kernel: Kernel
    fit_rows: DataRows
    measured_rows: DataRows
    exact: ExactReference
    seeds: tuple[int, ...]
    n_jobs: int | None
    prediction: Prediction | None = None

    def measure(self, method: Method, size: int) -> tuple[Measurement, Picture | None]:
        """Return the figures of a method; a failure is a result, too."""
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            try:
                figures, picture = self._figures(method, size)
            except Exception as error:
                figures, picture = {"error_message": _message(error)}, None
        texts = _distinct_texts(caught)
        return Measurement(method.name, method.kind, size, warnings=texts, **figures), picture

    def _figures(self, method: Method, size: int) -> tuple[dict[str, Any], Picture]:
        runs = []
        for seed in self.seeds:
            feature_map = method.build(self.kernel, size, seed, self.n_jobs)
            begin = time.perf_counter()
            feature_map.fit(self.fit_rows.given)
            fit_seconds = time.perf_counter() - begin
            Z, transform_seconds = self._timed_transform(feature_map)
            self._check_features(Z, size)
            approximate = self.exact.approximate(Z)
            errors = self.exact.relative_errors(approximate)
            if not np.isfinite(errors).all():
                raise InputError("its errors are not finite: scale the rows of X down.")
            pencil = self.exact.pencil(approximate)
            runs.append(_Run(*errors, pencil, fit_seconds, transform_seconds))
        # Memory and pictures depend little on the seed: those of the last one will do.
        memory = {
            "transform_rows": self.measured_rows.count,
            "state_bytes": stored_bytes(feature_map),
            "transform_bytes": peak_bytes(lambda: feature_map.transform(self.measured_rows.given)),
        }
        picture = Picture(self.exact.spectrum_of(approximate), self.exact.image_of(approximate))
        return _medians(runs) | memory | self._predicted(method, size), picture

    def _predicted(self, method: Method, size: int) -> dict[str, float]:
        """Return the error of predictions from the features of the first seed."""
        if self.prediction is None:
            return {}
        feature_map = method.build(self.kernel, size, self.seeds[0], self.n_jobs)
        return {"prediction_error": self.prediction.error_on(feature_map, self.n_jobs)}

    def _timed_transform(self, feature_map: Any) -> tuple[Float64, float]:
        """Return the features and the time of the fastest of a few transforms."""
        times: list[float] = []
        while not times or (sum(times) < _SECONDS_OF_REPEATS and len(times) < _MOST_REPEATS):
            begin = time.perf_counter()
            features = feature_map.transform(self.measured_rows.given)
            times.append(time.perf_counter() - begin)
        return np.asarray(features, dtype=np.float64), min(times)

    def _check_features(self, Z: Float64, size: int) -> None:
        if Z.shape[1] != size:
            raise InputError(
                f"it has {Z.shape[1]} features only, one for each of the {self.fit_rows.count} "
                "rows that it was fitted on: raise pilot_rows or compare fewer components."
            )
        if not np.isfinite(Z).all():
            raise InputError("its features are not finite: scale the rows of X down.")


def _medians(runs: list[_Run]) -> dict[str, Any]:
    frobenius = [run.frobenius for run in runs]
    return {
        "frobenius": statistics.median(frobenius),
        "frobenius_spread": 0.5 * (max(frobenius) - min(frobenius)),
        "operator_norm": statistics.median(run.operator_norm for run in runs),
        "spectral": (
            statistics.median(run.spectral[0] for run in runs),
            statistics.median(run.spectral[1] for run in runs),
        ),
        "fit_seconds": statistics.median(run.fit_seconds for run in runs),
        "transform_seconds": statistics.median(run.transform_seconds for run in runs),
    }


def _message(error: Exception) -> str:
    """Return what went wrong in one line, by its kind unless it is a message of the library."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    if isinstance(error, InputError | InputTypeError) and text:
        return text
    return f"{name}: {text}" if text else name


def _distinct_texts(caught: Iterable[warnings.WarningMessage]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            " ".join(str(warning.message).split())
            for warning in caught
            if not issubclass(warning.category, _NOT_FOR_USERS)
        )
    )


def peak_bytes(call: Callable[[], Any]) -> int:
    """Return the most that Python and NumPy held at a time on top of what they held before.

    Scratch memory of compiled code, a few MiB for each thread, is not seen.
    """
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return max(peak - before, 0)


def stored_bytes(holder: Any) -> int:
    """Return the size of all arrays that an object holds, each counted once."""
    return _stored_bytes(holder, set())


def _stored_bytes(holder: Any, seen: set[int]) -> int:
    if isinstance(holder, np.ndarray) and isinstance(holder.base, np.ndarray):
        holder = holder.base  # A view keeps all of the memory that it looks at.
    if id(holder) in seen or isinstance(holder, type | ModuleType):
        return 0
    seen.add(id(holder))
    if isinstance(holder, np.ndarray):
        return holder.nbytes
    parts = [*getattr(holder, "__dict__", {}).values()]
    if isinstance(holder, Mapping):
        parts += holder.values()
    elif isinstance(holder, list | tuple | set | frozenset):
        parts += holder
    return sum(_stored_bytes(part, seen) for part in parts)
