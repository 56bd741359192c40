"""One method at one size: its errors, times and memory."""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from powersketch.accuracy import DataRows
from powersketch.arrays import Float64
from powersketch.comparison.memory import peak_bytes, stored_bytes
from powersketch.comparison.methods import Method
from powersketch.comparison.pilot import ExactReference
from powersketch.comparison.results import Measurement
from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels import Kernel

# A transform is repeated until it has taken so long in total, a few times at most.
_SECONDS_OF_REPEATS = 0.2
_MOST_REPEATS = 5


@dataclass(frozen=True, eq=False)
class Picture:
    """What a method's approximation looks like: its eigenvalues, and a part of the matrix."""

    spectrum: Float64
    image: Float64


@dataclass(frozen=True)
class _Run:
    """What one seed gave."""

    frobenius: float
    operator_norm: float
    spectral: tuple[float, float]
    fit_seconds: float
    transform_seconds: float


@dataclass(frozen=True, eq=False)
class Laboratory:
    """The rows, the exact kernel and the seeds that every method is measured with."""

    kernel: Kernel
    fitted: DataRows
    measured: DataRows
    exact: ExactReference
    seeds: tuple[int, ...]
    n_jobs: int | None

    def measure(self, method: Method, size: int) -> tuple[Measurement, Picture | None]:
        """Return the figures of a method; a failure is a figure, too."""
        try:
            # A comparison reports what features are worth; what methods warn of is part of that.
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return self._measured(method, size)
        except Exception as error:
            failed = Measurement(method.name, method.kind, size, error_message=_message(error))
            return failed, None

    def _measured(self, method: Method, size: int) -> tuple[Measurement, Picture]:
        runs = []
        for seed in self.seeds:
            made = method.make(self.kernel, size, seed, self.n_jobs)
            begin = time.perf_counter()
            made.fit(self.fitted.given)
            fit_seconds = time.perf_counter() - begin
            Z, transform_seconds = self._timed_transform(made)
            self._check_features(Z, size)
            approximate = self.exact.approximate(Z)
            errors = self.exact.relative_errors(approximate)
            if not np.isfinite(errors).all():
                raise InputError("its errors are not finite: scale the rows of X down.")
            pencil = self.exact.pencil(approximate)
            runs.append(_Run(*errors, pencil, fit_seconds, transform_seconds))
        # Memory and pictures depend little on the seed: those of the last one will do.
        memory = stored_bytes(made), peak_bytes(lambda: made.transform(self.measured.given))
        picture = Picture(self.exact.spectrum_of(approximate), self.exact.image_of(approximate))
        return self._aggregated(method, size, runs, memory), picture

    def _timed_transform(self, made: Any) -> tuple[Float64, float]:
        """Return the features and the time of the fastest of a few transforms."""
        times: list[float] = []
        while not times or (sum(times) < _SECONDS_OF_REPEATS and len(times) < _MOST_REPEATS):
            begin = time.perf_counter()
            features = made.transform(self.measured.given)
            times.append(time.perf_counter() - begin)
        return np.asarray(features, dtype=np.float64), min(times)

    def _check_features(self, Z: Float64, size: int) -> None:
        if Z.shape[1] != size:
            raise InputError(
                f"it has {Z.shape[1]} features only, one for each of the {self.fitted.count} rows "
                "that it was fitted on: raise pilot_rows or compare fewer components."
            )
        if not np.isfinite(Z).all():
            raise InputError("its features are not finite: scale the rows of X down.")

    def _aggregated(
        self, method: Method, size: int, runs: list[_Run], memory: tuple[int, int]
    ) -> Measurement:
        frobenius = [run.frobenius for run in runs]
        return Measurement(
            method.name,
            method.kind,
            size,
            frobenius=statistics.median(frobenius),
            frobenius_spread=0.5 * (max(frobenius) - min(frobenius)),
            operator_norm=statistics.median(run.operator_norm for run in runs),
            spectral=(
                statistics.median(run.spectral[0] for run in runs),
                statistics.median(run.spectral[1] for run in runs),
            ),
            fit_seconds=statistics.median(run.fit_seconds for run in runs),
            transform_seconds=statistics.median(run.transform_seconds for run in runs),
            transform_rows=self.measured.count,
            state_bytes=memory[0],
            transform_bytes=memory[1],
        )


def _message(error: Exception) -> str:
    """Return what went wrong in one line, by its kind unless it is a message of the library."""
    name = type(error).__name__
    text = " ".join(str(error).split())
    if isinstance(error, InputError | InputTypeError) and text:
        return text
    return f"{name}: {text}" if text else name
