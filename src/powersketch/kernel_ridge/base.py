"""What the regressor and the classifier share: parameters, fitting, fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import Float64, Real, Rows, Vector
from powersketch.exceptions import FarRowWarning, InputError, held_back
from powersketch.execution import Progress
from powersketch.kernel_ridge.choice import Budget, Choice, bytes_of_block, chosen_map
from powersketch.kernel_ridge.dual import (
    DualSystem,
    KernelSum,
    exact_solution,
    sum_at_landmarks,
)
from powersketch.kernel_ridge.features import (
    NEED_ALL_ROWS,
    RidgeSettings,
    feature_blocks,
    feature_statistics,
    features_of,
    fitted_map,
    map_blocks,
)
from powersketch.kernel_ridge.path import (
    LEFT_OUT_ROWS,
    checked_alphas,
    ridge_solution,
    warn_at_lower_end,
)
from powersketch.kernel_ridge.row_sketch import row_sketch_solution
from powersketch.kernel_ridge.statistics import (
    Blocks,
    GramSpectrum,
    RidgeSolution,
    RidgeStatistics,
)
from powersketch.kernel_ridge.training_rows import (
    BLOCK_BYTES,
    TrainingRows,
    warn_of_dominant_rows,
    without_absurd_rows,
)
from powersketch.kernels import Kernel
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.validation import REAL_ROWS, sound_array

_ATTRIBUTES_OF_MAP = (
    "seed_",
    "feature_map_",
    "choice_",
    "kernel_",
    "classes_",
    "_block_bytes",
    "_map_settings",
)
# All that a fit can leave behind: the next one with other features must not show it.
_FITTED = (
    *_ATTRIBUTES_OF_MAP,
    "statistics_",
    "effective_dimension_",
    "noise_variance_",
    "X_fit_",
    "dual_coef_",
    "solver_result_",
    "row_sketch_",
    "_statistics_kept",
    "_solution",
    "_posterior",
    "_kernel_sum",
)


class SketchedRidge(RidgeSettings):
    """Fits targets of any kind; subclasses say what the targets are and what becomes of them."""

    feature_map_: Any
    _solution: RidgeSolution | None
    _kernel_sum: KernelSum | None
    _block_bytes: int
    _map_settings: dict[str, str]

    @property
    def coef_(self) -> Float64:
        """Coefficients of the features."""
        solution = self._solved()
        if "dual_coef_" in vars(self):
            raise AttributeError(
                "features='exact' and 'row-sketch' give no coefficients of features: use "
                "dual_coef_, or fit with features='sketch'."
            )
        return solution.coef

    @property
    def intercept_(self) -> Any:
        """The constant term of every target."""
        return self._solved().intercept[()]

    @property
    def alpha_(self) -> float:
        """The alpha in use."""
        return self._solved().alpha

    @property
    def alphas_(self) -> Vector:
        """The values of the path, ascending, if alpha was chosen."""
        return self._path("alphas")

    @property
    def scores_(self) -> Vector:
        """Their scores; the least is the best."""
        return self._path("scores")

    @cached_property
    def effective_dimension_(self) -> float:
        """tr(G (G + alpha I)⁻¹) of the features' Gram matrix G."""
        statistics = self._statistics("effective_dimension_")
        gram = statistics.moments(fit_intercept=self._solved().fit_intercept)[0]
        return float(GramSpectrum.of(gram).effective_dimension(self.alpha_))

    @cached_property
    def statistics_(self) -> RidgeStatistics:
        """Sums over all rows; this is reached only where they are not stored."""
        check_is_fitted(self)
        raise AttributeError(self._missing_statistics("statistics_"))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: no matrix of the size of the Gram matrix, as a rule.

        A model that was given blocks of rows keeps its statistics, as more of them may come.
        """
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_posterior", None)
        if not state.get("_statistics_kept", True):
            state.pop("statistics_", None)
        return state

    def __copy__(self) -> Self:
        """Return a copy that has everything, unlike a pickle."""
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that has everything, unlike a pickle."""
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(deepcopy(self.__dict__, memo))
        return new

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit_rows(self, rows: TrainingRows, given: Any, **attributes: Any) -> None:
        """Fit everything, and store it at the end: a failed fit leaves the last one intact."""
        fit = self._fit_dual if self._kind in NEED_ALL_ROWS else self._fit_primal
        rows, fitted = self._fit_features(rows)
        attributes |= fitted
        attributes |= fit(rows, attributes)
        validate_data(self, given, skip_check_array=True)
        self._store(attributes)

    def _add_rows(self, rows: TrainingRows, given: Any, **attributes: Any) -> None:
        """Fit the map on the first block, and add the statistics of every block."""
        if self._goes_on:
            self._refuse_another_map()
            validate_data(self, given, reset=False, skip_check_array=True)
            attributes |= {n: vars(self)[n] for n in _ATTRIBUTES_OF_MAP if n in vars(self)}
            kernel = attributes.get("kernel_")
            rows, _ = without_absurd_rows(rows, lambda _: kernel)
            added = self._statistics_of(rows, attributes)
            attributes["statistics_"] = self.statistics_.merge(added)
            warn_of_dominant_rows(kernel, rows)
        else:
            rows, fitted = self._fit_features(rows)
            attributes |= fitted
            attributes["statistics_"] = self._statistics_of(rows, attributes)
            validate_data(self, given, skip_check_array=True)
        self._store({**attributes, "_statistics_kept": True, "_solution": None})

    def _fit_features(self, rows: TrainingRows) -> tuple[TrainingRows, dict[str, Any]]:
        """Return the rows in use, and the kernel and the fitted map as attributes."""
        kind, seed = self._kind, seed_from(self.random_state)
        rows, absurd = without_absurd_rows(rows, lambda others: self._kernel_for(others, seed))
        kernel: Any = None if kind == "given" else self._kernel_for(rows, seed, absurd)
        attributes = {
            "seed_": seed,
            "_block_bytes": BLOCK_BYTES,
            "_map_settings": self._settings_of_map(),
        }
        if kind != "exact":
            # Rows that are far away were named before, in the numbers that the user knows.
            with held_back(FarRowWarning):
                if kind == "auto":
                    feature_map, choice = self._chosen_map(rows, kernel, seed)
                    size, columns = choice.n_components, rows.X.shape[1]
                    attributes["choice_"] = choice
                    attributes["_block_bytes"] = bytes_of_block(self.memory_budget, size, columns)
                else:
                    feature_map = self._unfitted_map(kernel, rows, seed)
                attributes["feature_map_"] = fitted_map(feature_map, rows)
            kernel = getattr(feature_map, "kernel_", None)
        if isinstance(kernel, Kernel):
            attributes["kernel_"] = kernel
        warn_of_dominant_rows(kernel, rows)
        return rows, attributes

    def _chosen_map(self, rows: TrainingRows, kernel: Kernel, seed: int) -> tuple[Any, Choice]:
        return chosen_map(
            rows,
            kernel,
            self.alpha,
            Budget(self.n_components, self.time_budget, self.memory_budget),
            fit_intercept=self.fit_intercept,
            seed=seed,
            n_jobs=self.n_jobs,
        )

    def _fit_primal(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        statistics = self._statistics_of(rows, fitted)
        left_out: Blocks = ()
        if self.alpha == "loo":
            streams = RandomStreams(fitted["seed_"], "kernel-ridge/left-out")
            sample = rows.sample(LEFT_OUT_ROWS, streams)
            left_out = feature_blocks(fitted["feature_map_"], sample, fitted["_block_bytes"])
        solved = self._solve(statistics, left_out, fitted["feature_map_"])
        return {"statistics_": statistics, "_statistics_kept": False, **solved}

    def _fit_dual(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        kernel = fitted["kernel_"]
        budget = None if self.memory_budget is None else int(self.memory_budget)
        system = DualSystem(rows, kernel, float(self.alpha), budget, fitted["seed_"], self.n_jobs)
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept, "verbose": self.verbose}
        if self._kind == "exact":
            solution, result = exact_solution(system, tol=self.tol, **options)
            attributes: dict[str, Any] = {"solver_result_": result}
        else:
            feature_map = fitted["feature_map_"]
            solution, report = row_sketch_solution(system, feature_map, eps=self.eps, **options)
            attributes = {"row_sketch_": report}
        # A copy: who changes the rows later on does not expect other predictions.
        points = rows.X.copy()
        attributes |= {"X_fit_": points, "dual_coef_": solution.coef, "_solution": solution}
        return {**attributes, "_kernel_sum": KernelSum(kernel, points, solution.coef)}

    def _statistics_of(self, rows: TrainingRows, fitted: dict[str, Any]) -> RidgeStatistics:
        progress = Progress(type(self).__name__, rows.count, self.verbose)
        return feature_statistics(fitted["feature_map_"], rows, fitted["_block_bytes"], progress)

    def _solve(
        self, statistics: RidgeStatistics, left_out: Blocks, feature_map: Any
    ) -> dict[str, Any]:
        solution = ridge_solution(
            statistics,
            self.alpha,
            checked_alphas(self.alphas),
            left_out,
            fit_intercept=self.fit_intercept,
        )
        warn_at_lower_end(solution, statistics)
        return {"_solution": solution, "_kernel_sum": sum_at_landmarks(feature_map, solution.coef)}

    def _refuse_another_map(self) -> None:
        """Refuse parameters of the map that were changed since it was fitted on the first block."""
        before, now = self._map_settings, self._settings_of_map()
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                raise InputError(
                    f"{name} has changed since the first block, from {before.get(name)} to "
                    f"{now.get(name)}, and blocks of different maps cannot be added: set it back, "
                    "or use fit, which starts anew."
                )

    def _decision(self, X: Any, visit: Callable[[Rows, Float64], None] | None = None) -> Real:
        """Return the value of every target at every row, in the dtype of the rows.

        `visit` is given one block of rows after the other, with their features.
        """
        solution, at_points = self._solved(), self._kernel_sum
        X = validate_data(self, sound_array("X", X), **REAL_ROWS, reset=False)
        values = np.empty((X.shape[0], *solution.intercept.shape))
        if at_points is not None:
            values = np.asarray(at_points.values(X, self.n_jobs) + solution.intercept)
        if at_points is None or visit is not None:
            for part in map_blocks(self.feature_map_, X, self._block_bytes):
                Z = features_of(self.feature_map_, X[part]).astype(np.float64, copy=False)
                if at_points is None:
                    values[part] = Z @ solution.coef.T + solution.intercept
                if visit is not None:
                    visit(X[part], Z)
        return in_dtype_of_rows(values, X.dtype)

    def _solved(self) -> RidgeSolution:
        """Return the solution; blocks that were added since the last one enter now."""
        check_is_fitted(self)
        if self._solution is None:
            self._check_parameters()
            self._check_partial()
            self.__dict__.update(self._solve(self.statistics_, (), self.feature_map_))
        assert self._solution is not None
        return self._solution

    def _path(self, name: str) -> Vector:
        values = getattr(self._solved(), name)
        if values is None:
            raise AttributeError(f"{name}_ exists only if alpha is 'gcv' or 'loo'.")
        return np.asarray(values)

    def _statistics(self, name: str) -> RidgeStatistics:
        check_is_fitted(self)
        statistics = vars(self).get("statistics_")
        if not isinstance(statistics, RidgeStatistics):
            raise AttributeError(self._missing_statistics(name))
        return statistics

    def _missing_statistics(self, name: str) -> str:
        """Return why something cannot be had that follows from the statistics, and a remedy."""
        if "_statistics_kept" not in vars(self):
            return (
                f"{name} exists only after a fit on features: use features='sketch', 'landmarks' "
                "or 'auto', and fit again."
            )
        return (
            f"{name} needs statistics_, which a pickle leaves out to be small: fit by partial_fit "
            "before pickling, which keeps them, or pickle model.statistics_ beside the model and "
            "set statistics_ after loading."
        )

    @property
    def _goes_on(self) -> bool:
        """Whether a block is added to earlier ones; refused where those are lost."""
        if vars(self).get("_statistics_kept") is False and "statistics_" not in vars(self):
            raise AttributeError(self._missing_statistics("partial_fit"))
        return "statistics_" in vars(self)

    def _store(self, attributes: dict[str, Any]) -> None:
        for name in _FITTED:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)


def in_dtype_of_rows(values: Float64, dtype: np.dtype[Any]) -> Real:
    """Return predictions in the dtype of the rows; refuse what would become infinite or zero."""
    limits, largest = np.finfo(dtype), float(np.abs(values).max(initial=0.0))
    fits = float(limits.tiny) <= largest <= float(limits.max)
    if dtype == np.float32 and largest > 0.0 and not fits:
        where = "beyond" if largest > 1.0 else "below"
        raise InputError(
            f"predictions are {where} the range of float32, the dtype of the rows: they reach "
            f"{largest:.3g}. Give rows of float64."
        )
    return values.astype(dtype, copy=False)
