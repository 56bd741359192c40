"""The choice of columns, kernel, gamma and linear part, one after the other, on a pilot."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from powersketch.arrays import is_sparse
from powersketch.kernel_ridge.columns import SCALINGS, normalised, prepared_columns
from powersketch.kernel_ridge.pilot import Pilot, Trial, View, least_error
from powersketch.kernels import ArcCosine, Gaussian, Kernel, Linear, NeuralTangent, Polynomial
from powersketch.random_streams import RandomStreams

# In units of one over the median squared distance of two rows.
_GAMMAS = (1 / 16, 1 / 4, 1.0, 4.0)
_LINEAR_WEIGHTS = (0.1, 1.0)
_DEGREES = (2, 3, 4)
_DEPTHS = (1, 3)
_STARTS = 2


class Search:
    """Tries one choice after the other on a pilot, and keeps what was better."""

    def __init__(self, pilot: Pilot, streams: RandomStreams, clip: Any) -> None:
        self.pilot, self.streams, self.clip = pilot, streams, clip
        self.trials: list[Trial] = []
        self._views: list[View] = []

    def best(self) -> Trial:
        """Return the trial of the least leave-one-out error so far."""
        return least_error(self.trials)

    def try_columns(self, scaling: str) -> None:
        """Try Gaussian kernels of a few gammas, and lines, on columns prepared in several ways."""
        for name in SCALINGS if scaling == "auto" else (scaling,):
            columns = prepared_columns(self.pilot.rows.X, name, self.clip)
            if columns is not None:
                columns = normalised(columns, self.pilot.rows.X, self.streams)
                view = self.pilot.view(columns)
                self._views.append(view)
                self._try(view, [Linear(), *map(Gaussian, _GAMMAS)])

    def try_kernels(self) -> None:
        """Try other kernels on the columns that were best."""
        view = self._view_of(self.best())
        assert view.columns is not None
        biased = view
        if not is_sparse(view.P):
            # Kernels that know directions only take a constant column for their intercept.
            biased = self.pilot.view(view.columns.with_constant())
            self._views.append(biased)
        self._try(view, [Polynomial(degree, 1.0, 1.0) for degree in _DEGREES])
        self._try(biased, [ArcCosine(1), *map(NeuralTangent, _DEPTHS)])

    def refine_gamma(self) -> None:
        """Try gammas between those of the grid, and beyond its ends."""
        for ratio in (2.0, math.sqrt(2.0)):
            best = self.best()
            if isinstance(best.kernel, Gaussian):
                gamma, view = best.kernel.gamma, self._view_of(best)
                self._try(view, [Gaussian(gamma / ratio), Gaussian(gamma * ratio)], best.linear)

    def try_linear_part(self) -> None:
        """Try the columns beside the features of the best kernel, with more and more weight."""
        best = self.best()
        if isinstance(best.kernel, Linear):
            best = least_error(t for t in self.trials if not isinstance(t.kernel, Linear))
        view = self._view_of(best)
        for weight in _LINEAR_WEIGHTS:
            self._try(view, [best.kernel], weight)
            if self.trials[-1].error >= best.error:
                return
            best = self.trials[-1]

    def line(self) -> Trial:
        """Return the best of the models that are linear in the columns."""
        return least_error(t for t in self.trials if isinstance(t.kernel, Linear))

    def starts(self) -> list[Trial]:
        """Return where to learn a metric from: the best Gaussian kernel on the two best columns."""
        gaussian = [t for t in self.trials if isinstance(t.kernel, Gaussian)]
        by_columns = [least_error(t for t in gaussian if t.columns is view.columns) for view in self._views if any(t.columns is view.columns for t in gaussian)]
        return sorted(by_columns, key=lambda trial: trial.error)[:_STARTS]

    def _try(self, view: View, kernels: Iterable[Kernel], linear: float = 0.0) -> None:
        self.trials += [self.pilot.trial(view, kernel, linear) for kernel in kernels]

    def _view_of(self, trial: Trial) -> View:
        return next(view for view in self._views if view.columns is trial.columns)
