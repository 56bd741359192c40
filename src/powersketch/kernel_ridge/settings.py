"""The constructor's parameters that both estimators have, and their checks."""

from __future__ import annotations

import numbers
import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from powersketch.exceptions import InputError
from powersketch.execution import thread_count
from powersketch.kernel_ridge.regularisation_path import checked_alphas
from powersketch.kernel_ridge.sketch_parameter import refuse_map_parameters, unfitted_map
from powersketch.parameters import (
    checked_alpha,
    checked_integer,
    checked_positive,
    checked_truth,
    checked_verbose,
    one_of,
    refuse_unused,
)

_MODES = ("primal", "exact", "row-sketch")
_CRITERIA = ("gcv", "loo")
_OF_THE_MAP = ("sketch", "kernel", "kernel_params", "n_components", "random_state")


class RidgeSettings(BaseEstimator):
    """Holds the parameters; they are checked before any data is touched."""

    sketch: Any
    kernel: Any
    kernel_params: dict[str, Any] | None
    n_components: int | None
    alpha: float | str
    alphas: ArrayLike | None
    mode: str
    eps: float
    tol: float
    fit_intercept: bool
    time_budget: float | None
    memory_budget: float | None
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    verbose: int

    def _check_parameters(self) -> None:
        one_of("mode", self.mode, _MODES)
        self._check_penalty()
        checked_truth("fit_intercept", self.fit_intercept)
        checked_positive("eps", self.eps)
        checked_positive("tol", self.tol)
        if self.n_components is not None:
            checked_integer("n_components", self.n_components, 1)
        for name in ("time_budget", "memory_budget"):
            if getattr(self, name) is not None:
                checked_positive(name, getattr(self, name))
        thread_count(self.n_jobs)
        checked_verbose(self.verbose)
        self._check_sketch()
        self._refuse_unused()

    def _check_partial(self) -> None:
        """Refuse what needs all rows at once."""
        if self.mode != "primal":
            raise InputError(
                f"partial_fit needs mode='primal', got mode={self.mode!r}: "
                "the other modes need all rows at once."
            )
        if self.alpha == "loo":
            raise InputError(
                "partial_fit cannot leave out rows that it no longer has, got alpha='loo': "
                "use alpha='gcv' or a number."
            )

    def _check_penalty(self) -> None:
        checked_alphas(self.alphas)
        if not isinstance(self.alpha, str):
            checked_alpha(self.alpha)
        elif self.mode != "primal":
            raise InputError(
                f"alpha={self.alpha!r} needs mode='primal', got mode={self.mode!r}: "
                "give a number for alpha."
            )
        else:
            one_of("alpha", self.alpha, _CRITERIA)
        if self.mode == "row-sketch":
            checked_positive("alpha", self.alpha, remedy="a row sketch needs a penalty")

    def _check_sketch(self) -> None:
        if self._is_automatic:
            unfitted_map(self.kernel, self.kernel_params, parameter="kernel")
            return
        unfitted_map(self.sketch, self.kernel_params, n_components=self.n_components)
        if self.kernel is not None:
            raise InputError(
                f"kernel={self.kernel!r} is for sketch='auto', got sketch={self.sketch!r}: "
                "give the kernel, or its name, as sketch."
            )

    def _refuse_unused(self) -> None:
        """Refuse what has no effect on this fit; a careful user would expect one."""
        in_mode = f"in mode={self.mode!r}"
        unused = {}
        if not isinstance(self.alpha, str):
            unused["alphas"] = f"beside alpha={self.alpha!r}, which is not to be chosen"
        if self.mode != "row-sketch":
            unused["eps"] = in_mode
        if self.mode != "exact":
            unused["tol"] = in_mode
        else:
            unused["n_components"] = f"{in_mode}, which needs no features"
        refuse_unused(self, unused | self._unused_budgets(in_mode))
        if self._chooses_map or self.mode == "exact":
            why = "with sketch='auto'" if self._chooses_map else in_mode
            given = self.kernel if self._is_automatic else self.sketch
            refuse_map_parameters(given, self.kernel_params, f"{why}, where only the kernel counts")

    def _unused_budgets(self, in_mode: str) -> dict[str, str]:
        """Return the budgets that limit nothing, and why."""
        if self._chooses_map and self.n_components is None:
            return {}
        if self.mode != "primal":
            return {"time_budget": in_mode}
        why = f"with sketch={self.sketch!r}: only 'auto' keeps to budgets"
        if self._chooses_map:
            why = f"beside n_components={self.n_components}, which is the size"
        return {"time_budget": why, "memory_budget": why}

    def _settings_of_map(self) -> dict[str, str]:
        """Return everything that the fitted map depends on, as text without addresses."""
        return {
            name: re.sub(r" at 0x[0-9a-f]+", "", repr(value), flags=re.IGNORECASE)
            for name, value in self.get_params(deep=True).items()
            if name.partition("__")[0] in _OF_THE_MAP and not hasattr(value, "get_params")
        }

    @property
    def _chooses_map(self) -> bool:
        return self._is_automatic and self.mode == "primal"

    @property
    def _is_automatic(self) -> bool:
        return isinstance(self.sketch, str) and self.sketch == "auto"

    @property
    def _penalty(self) -> float:
        """The penalty in the modes that do not choose it."""
        assert isinstance(self.alpha, numbers.Real)
        return float(self.alpha)
