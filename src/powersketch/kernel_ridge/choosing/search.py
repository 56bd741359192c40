"""The choice of columns, kernel, gamma, linear part and metric, one after the other, on a pilot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from powersketch.arrays import is_sparse
from powersketch.kernel_ridge.choosing.pilot import (
    GAMMAS,
    Pilot,
    Trial,
    View,
    describe_kernel,
    least_error,
    standard_error,
)
from powersketch.kernel_ridge.rows.columns import (
    SCALINGS,
    Columns,
    median_squared_distance,
    normalised,
    prepared_columns,
    summary_of,
)
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernels import (
    ArcCosine,
    Gaussian,
    Kernel,
    Linear,
    NeuralTangent,
    Polynomial,
)
from powersketch.random_streams import RandomStreams

_LINEAR_WEIGHTS = (0.1, 1.0)
_DEGREES = (2, 3, 4)
_DEPTHS = (1, 3)
_STARTS = 2
_FEW_ROWS = 512  # for which one start has to do
# A line is taken where its error is within this many standard errors of the least one.
_STANDARD_ERRORS = 0.5
_SCALING_TEXTS = {
    "scaled": "columns of equal spread",
    "as-is": "columns as they are",
    "indicators": "columns of equal spread, with indicators for those of few whole numbers",
    "ranks": "columns of equal spread, skewed ones by rank",
}
# Where gamma is chosen again, and the share of an error that a further step has to gain.
_ROWS_FOR_LARGER_SCALE = 1500
_LARGER_ROWS, _LARGER_LANDMARKS = 10_000, 1024
_LEAST_GAIN = 0.002
# With half of the landmarks, errors that are larger by this share promise more of larger maps.
_STILL_FALLING = 0.03


class Search:
    """Tries one choice after the other on a pilot, and keeps what was better."""

    def __init__(
        self,
        rows: TrainingRows,
        streams: RandomStreams,
        *,
        clip: float | str | None,
        fit_intercept: bool,
        threads: int,
    ) -> None:
        self.pilot = Pilot.of(rows, fit_intercept=fit_intercept, streams=streams, threads=threads)
        self.streams, self.clip, self._rows = streams, clip, rows
        # A gamma that was given stays as it is, unless the metric changes what it means.
        self.chooses_gamma = self.chooses_kernel = False
        self.trials: list[Trial] = []
        self._views: list[View] = []

    def best(self) -> Trial:
        """Return the trial of the least leave-one-out error so far."""
        return least_error(self.trials)

    def simplest_of_the_best(self) -> Trial:
        """Return the best trial, or the best line where the difference may well be chance.

        Where a line is better by far with every entry as it is, none of them is an error.
        """
        best, lines = self.best(), self._lines()
        if lines:
            noise = standard_error(lines[0].squares, best.squares)
            if lines[0].error - best.error <= _STANDARD_ERRORS * noise:
                best = lines[0]
        line = self._line_without_limits()
        if line is None or best.error - line.error <= standard_error(best.squares, line.squares):
            return best
        self.trials.append(line)
        return line

    def _line_without_limits(self) -> Trial | None:
        """Return the line of columns that are not clipped; None where no entry is."""
        X = self.pilot.rows.X
        if self.clip is None or is_sparse(X):
            return None
        # Every way to prepare columns has the same limits.
        limits = self._views[0].columns
        assert limits is not None
        if (limits.lower <= X.min(axis=0)).all() and (X.max(axis=0) <= limits.upper).all():
            return None
        summary = summary_of(self._rows.X, None)
        columns = prepared_columns(self._rows.X, summary, "scaled", None)
        assert columns is not None
        view = self.pilot.view(normalised(columns, X, self.streams))
        return self.pilot.trial(view, Linear())

    def try_given(self, columns: Columns, kernel: Kernel) -> None:
        """Try a kernel, with several gammas if its gamma is to be chosen."""
        view = self.pilot.view(columns)
        self._views.append(view)
        if getattr(kernel, "gamma", None) != "auto":
            self._try(view, [kernel])
            return
        self.chooses_gamma = True
        unit = 1.0 / median_squared_distance(view.landmarks)
        self._try(view, [with_gamma(kernel, unit * ratio) for ratio in GAMMAS])
        self.refine_gamma()

    def try_columns(self, scaling: str) -> None:
        """Try Gaussian kernels of a few gammas, and lines, on columns prepared in several ways."""
        self.chooses_gamma = True
        summary = summary_of(self._rows.X, self.clip)
        for name in SCALINGS if scaling == "auto" else (scaling,):
            columns = prepared_columns(self._rows.X, summary, name, self.clip)
            if columns is not None:
                columns = normalised(columns, self.pilot.rows.X, self.streams)
                view = self.pilot.view(columns)
                self._views.append(view)
                self._try(view, [Linear(), *map(Gaussian, GAMMAS)])
        if not self._views:
            self.try_columns("as-is" if summary is None else "scaled")

    def try_kernels(self) -> None:
        """Try other kernels on the columns that were best."""
        self.chooses_kernel = True
        view = self._view_of(self.best())
        assert view.columns is not None
        biased = view
        if not is_sparse(view.P):
            # Kernels that know directions only take a constant column for their intercept.
            biased = self.pilot.view(view.columns.with_constant())
            self._views.append(biased)
        self._try(view, [Polynomial(degree, 1.0, 1.0) for degree in _DEGREES])
        self._try(biased, _neural_kernels())

    def refine_gamma(self) -> None:
        """Try gammas between those of the grid, and beyond its ends."""
        for ratio in (2.0, math.sqrt(2.0)):
            best = self.best()
            gamma = getattr(best.kernel, "gamma", None)
            if gamma is not None and not isinstance(best.kernel, Polynomial | Linear):
                kernels = [with_gamma(best.kernel, gamma * step) for step in (1 / ratio, ratio)]
                self._try(self._view_of(best), kernels, best.linear)

    def at_larger_scale(self, best: Trial) -> tuple[Trial, Pilot, tuple[str, ...]]:
        """Choose gamma again on more rows and landmarks, which can follow a narrower kernel."""
        if self._rows.count < _ROWS_FOR_LARGER_SCALE or not isinstance(best.kernel, Gaussian):
            return best, self.pilot, ()
        streams = self.streams.child("larger")
        rows = self._rows.sample(_LARGER_ROWS, streams)
        pilot = Pilot.with_landmarks(
            rows, _LARGER_LANDMARKS, streams, fit_intercept=self.pilot.fit_intercept
        )
        pilot = replace(pilot, threads=self.pilot.threads)
        view, gamma = pilot.view(best.columns), best.kernel.gamma
        gammas = [gamma, 2.0 * gamma]
        trials = pilot.trials(view, map(Gaussian, gammas), best.linear)
        if trials[0].error <= trials[1].error:
            gammas, trials = gammas[::-1], trials[::-1]
        while trials[-1].error < (1.0 - _LEAST_GAIN) * trials[-2].error:
            gammas.append(gammas[-1] ** 2 / gammas[-2])
            trials += pilot.trials(view, [Gaussian(gammas[-1])], best.linear)
        found = least_error(trials)
        pairs = zip(trials, gammas, strict=True)
        figures = ", ".join(f"{trial.error:.4f} with gamma {value:.3g}" for trial, value in pairs)
        text = f"With {rows.count} rows and {len(pilot.landmarks)} landmarks it is {figures}."
        return found, pilot, (text,)

    def in_metric(self, best: Trial, pilot: Pilot) -> tuple[Trial, tuple[str, ...]]:
        """Try kernels that are less smooth in the metric that was learned for a Gaussian one.

        Gradients of a smooth kernel tell which directions matter; along these, relations may
        well have bends and steps.
        """
        assert best.columns is not None
        if not self.chooses_kernel or best.columns.metric is None or is_sparse(pilot.rows.X):
            return best, ()
        view = pilot.view(best.columns.with_constant())
        others = pilot.trials(view, _neural_kernels(), best.linear)
        found = least_error(others)
        better = found.error < (1.0 - _LEAST_GAIN) * best.error
        text = f"In this metric the leave-one-out error is {_errors((best, *others))}."
        return found if better else best, (text,)

    def linear_parts(self) -> list[Trial]:
        """Return the best kernel with the columns beside its features, with more and more weight.

        The last of the trials is worse than the one before it, or has the largest weight.
        """
        found = [least_error(t for t in self.trials if not isinstance(t.kernel, Linear))]
        view = self._view_of(found[0])
        for weight in _LINEAR_WEIGHTS:
            found.append(self.pilot.trial(view, found[0].kernel, weight))
            if found[-1].error >= found[-2].error:
                break
        return found[1:]

    def reasons(self, best: Trial) -> tuple[str, ...]:
        """Say what was tried, what a line would have got, and whether more landmarks would help."""
        count, rows = len(self.trials), self.pilot.rows.count
        assert best.columns is not None
        chosen = f"{best.describe()} on {_SCALING_TEXTS[best.columns.scaling]}"
        tried = (
            f"{count} models were tried on {rows} rows: the leave-one-out error relative to the "
            f"variance is {best.error:.4f} with {_article(chosen)}"
        )
        others = [t for t in self.trials if type(t.kernel) is not type(best.kernel)]
        kinds = {type(t.kernel) for t in others}
        by_kind = [least_error(t for t in others if type(t.kernel) is kind) for kind in kinds]
        figures = _errors(sorted(by_kind, key=lambda trial: trial.error))
        return (f"{tried}{f', {figures}' if figures else ''}.", *self._size_advice(best))

    def _size_advice(self, best: Trial) -> tuple[str, ...]:
        """Say how the error of the pilot depends on the number of landmarks."""
        if isinstance(best.kernel, Linear) or len(self.pilot.landmarks) >= self.pilot.rows.count:
            return ()
        smaller = replace(self.pilot, landmarks=self.pilot.landmarks[::2]).again(best)
        sizes = f"{len(self.pilot.landmarks)} landmarks instead of {smaller.landmarks.shape[0]}"
        errors = f"{best.error:.4f} instead of {smaller.error:.4f}"
        falls = smaller.error > (1.0 + _STILL_FALLING) * best.error
        advice = "more features would still help" if falls else "more features would hardly help"
        return (f"On the pilot {sizes} give {errors}: {advice}.",)

    def _lines(self) -> list[Trial]:
        """Return the models that are linear in the columns, the best first."""
        lines = [trial for trial in self.trials if isinstance(trial.kernel, Linear)]
        return sorted(lines, key=lambda trial: trial.error)

    def starts(self) -> list[Trial]:
        """Return where to learn a metric from: the best Gaussian kernel on the best columns."""
        found = []
        for view in self._views:
            on_view = [t for t in self.trials if t.columns is view.columns]
            gaussian = [t for t in on_view if isinstance(t.kernel, Gaussian)]
            found += [least_error(gaussian)] if gaussian else []
        starts = 1 if self.pilot.rows.count <= _FEW_ROWS else _STARTS
        return sorted(found, key=lambda trial: trial.error)[:starts]

    def starts_from(self, best: Trial) -> list[Trial]:
        """Return where to learn a metric from that was asked for: a line has only one direction."""
        gaussian = self.starts()[:1] if isinstance(best.kernel, Linear) else []
        return gaussian or [best]

    def _try(self, view: View, kernels: Iterable[Kernel], linear: float = 0.0) -> None:
        self.trials += self.pilot.trials(view, kernels, linear)

    def _view_of(self, trial: Trial) -> View:
        return next(view for view in self._views if view.columns is trial.columns)


def with_gamma(kernel: Kernel, gamma: float) -> Kernel:
    """Return the kernel with another gamma."""
    return type(kernel)(**(kernel.get_params(deep=False) | {"gamma": float(gamma)}))


def _neural_kernels() -> list[Kernel]:
    return [ArcCosine(1), *map(NeuralTangent, _DEPTHS)]


def _errors(trials: Iterable[Trial]) -> str:
    """Return the errors of trials and their kernels in words."""
    return ", ".join(
        f"{trial.error:.4f} with {_article(describe_kernel(trial.kernel))}" for trial in trials
    )


def _article(text: str) -> str:
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"
