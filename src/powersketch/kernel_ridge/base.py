"""What the regressor and the classifier share: fitting in every mode, fitted attributes."""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.exceptions import (
    FarRowWarning,
    InputError,
    OutlierWarning,
    held_back,
    warn_user,
)
from powersketch.execution import Progress
from powersketch.kernel_ridge.absurd_rows import without_absurd_rows
from powersketch.kernel_ridge.accumulation import BLOCK_BYTES
from powersketch.kernel_ridge.choice import Budget, chosen_map
from powersketch.kernel_ridge.dual_system import DualSystem
from powersketch.kernel_ridge.exact_mode import exact_solution
from powersketch.kernel_ridge.landmark_columns import LandmarkColumns, sum_at_landmarks
from powersketch.kernel_ridge.lower_end import warn_at_lower_end
from powersketch.kernel_ridge.memory_needs import bytes_of_block
from powersketch.kernel_ridge.primal import (
    LEFT_OUT_ROWS,
    TrainingRows,
    feature_blocks,
    features_of,
    map_blocks,
    primal_solution,
)
from powersketch.kernel_ridge.regularisation_path import checked_alphas
from powersketch.kernel_ridge.row_sketch import row_sketch_solution
from powersketch.kernel_ridge.settings import RidgeSettings
from powersketch.kernel_ridge.sketch_parameter import exact_kernel, rows_for, unfitted_map
from powersketch.kernel_ridge.solutions import DualSolution, KernelSum, PrimalSolution
from powersketch.kernel_ridge.spectrum import GramSpectrum
from powersketch.kernel_ridge.statistics import RidgeStatistics, statistics_of_blocks
from powersketch.kernels import Kernel
from powersketch.linalg import dominant_rows_message
from powersketch.random_streams import RandomStreams, seed_from
from powersketch.validation import REAL_ROWS, sound_array

# All that a fit can leave behind: the next one of another mode must not show it.
_FITTED = (
    "seed_",
    "sketch_",
    "choice_",
    "kernel_",
    "statistics_",
    "effective_dimension_",
    "X_fit_",
    "dual_coef_",
    "solver_result_",
    "row_sketch_",
    "_block_bytes",
    "_map_settings",
    "_statistics_kept",
    "_solution",
    "_posterior",
    "_kernel_sum",
)
_OF_THE_MAP = ("seed_", "sketch_", "choice_", "classes_", "_block_bytes", "_map_settings")


class SketchedRidge(RidgeSettings):
    """Fits targets of any kind; subclasses say what the targets are and what becomes of them."""

    _solution: PrimalSolution | DualSolution | None
    _kernel_sum: KernelSum | None
    _block_bytes: int
    _map_settings: dict[str, str]

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Coefficients of the features, in mode "primal"."""
        solution = self._solved()
        if not isinstance(solution, PrimalSolution):
            raise AttributeError(
                "the modes 'exact' and 'row-sketch' give no coefficients of features: use "
                "dual_coef_, or fit with mode='primal'."
            )
        return solution.coef

    @property
    def intercept_(self) -> Any:
        """The constant term of every target."""
        return self._solved().intercept[()]

    @property
    def alpha_(self) -> float:
        """The alpha in use."""
        return float(self._solved().alpha)

    @property
    def alphas_(self) -> NDArray[np.float64]:
        """The values of the path, ascending, if alpha was chosen."""
        return self._path("alphas")

    @property
    def scores_(self) -> NDArray[np.float64]:
        """Their scores; the least is the best."""
        return self._path("scores")

    @cached_property
    def effective_dimension_(self) -> float:
        """tr(G (G + alpha I)⁻¹) of the features' Gram matrix G; in mode "primal"."""
        statistics = self._statistics("effective_dimension_")
        gram = statistics.moments(fit_intercept=self._solved().fit_intercept)[0]
        return float(GramSpectrum.of(gram).effective_dimension(self.alpha_))

    @cached_property
    def statistics_(self) -> RidgeStatistics:
        """Sums over all rows, in mode "primal"; reached only where they are not stored."""
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
        seed = seed_from(self.random_state)
        rows = without_absurd_rows(rows, lambda others: self._map_of_kernel(others, seed))
        attributes |= {"seed_": seed, **self._fitted_map(rows, seed)}
        fit = self._primal_attributes if self.mode == "primal" else self._dual_attributes
        attributes |= fit(attributes["sketch_"], rows, seed, attributes["_block_bytes"])
        validate_data(self, given, skip_check_array=True)
        self._store(attributes)

    def _add_rows(self, rows: TrainingRows, given: Any, **attributes: Any) -> None:
        """Fit the map on the first block, and add the statistics of every block."""
        if self._goes_on:
            self._refuse_another_map()
            validate_data(self, given, reset=False, skip_check_array=True)
            attributes |= {name: vars(self)[name] for name in _OF_THE_MAP if name in vars(self)}
            rows = without_absurd_rows(rows, lambda _: self.sketch_)
            added = self._statistics_of(self.sketch_, rows, self._block_bytes)
            attributes["statistics_"] = self.statistics_.merge(added)
            _warn_of_dominant_rows(self.sketch_, rows)
        else:
            seed = seed_from(self.random_state)
            rows = without_absurd_rows(rows, lambda others: self._map_of_kernel(others, seed))
            attributes |= {"seed_": seed, **self._fitted_map(rows, seed)}
            attributes["statistics_"] = self._statistics_of(
                attributes["sketch_"], rows, attributes["_block_bytes"]
            )
            validate_data(self, given, skip_check_array=True)
        self._store({**attributes, "_statistics_kept": True, "_solution": None})

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

    def _decision(self, X: Any) -> NDArray[Any]:
        """Return the value of every target at every row, in the dtype of the rows."""
        solution = self._solved()
        X = self._checked_new_rows(X)
        if self._kernel_sum is not None:
            values = self._kernel_sum.values(X, self.n_jobs) + solution.intercept
            return in_dtype_of_rows(np.asarray(values), X.dtype)
        values = np.empty((X.shape[0], *solution.intercept.shape))
        for part in map_blocks(self.sketch_, X, self._block_bytes):
            Z = features_of(self.sketch_, X[part]).astype(np.float64, copy=False)
            values[part] = Z @ solution.coef.T + solution.intercept
        return in_dtype_of_rows(values, X.dtype)

    def _checked_new_rows(self, X: Any) -> Any:
        return validate_data(self, sound_array("X", X), **REAL_ROWS, reset=False)

    def _fitted_map(self, rows: TrainingRows, seed: int) -> dict[str, Any]:
        """Return the fitted map and, if it was chosen, why."""
        feature_map = self._unfitted_map(seed)
        attributes: dict[str, Any] = {"_block_bytes": BLOCK_BYTES}
        # Rows that are far away were named before, in the numbers that the user knows.
        with held_back(FarRowWarning):
            if self._chooses_map:
                feature_map, choice = self._chosen_map(rows, seed)
                limit = bytes_of_block(self.memory_budget, choice.n_components, rows.X.shape[1])
                attributes = {"choice_": choice, "_block_bytes": limit}
            feature_map.fit(rows_for(feature_map, rows.X, rows.weights), None)
        _warn_of_dominant_rows(feature_map, rows)
        attributes["_map_settings"] = self._settings_of_map()
        return {"sketch_": feature_map, **attributes}

    def _unfitted_map(self, seed: int) -> Any:
        """Return the map to fit; if one is to be chosen, one that has the kernel."""
        sketch = self.kernel if self._is_automatic else self.sketch
        # It is chosen with the map.
        size = None if self._chooses_map else self.n_components
        return unfitted_map(
            sketch, self.kernel_params, n_components=size, seed=seed, n_jobs=self.n_jobs
        )

    def _map_of_kernel(self, rows: TrainingRows, seed: int) -> Any:
        feature_map = self._unfitted_map(seed)
        return feature_map.fit(rows_for(feature_map, rows.X, rows.weights), None)

    def _chosen_map(self, rows: TrainingRows, seed: int) -> tuple[Any, Any]:
        return chosen_map(
            rows,
            exact_kernel(self._map_of_kernel(rows, seed)),
            self.alpha,
            Budget(self.n_components, self.time_budget, self.memory_budget),
            fit_intercept=self.fit_intercept,
            seed=seed,
            n_jobs=self.n_jobs,
        )

    def _primal_attributes(
        self, feature_map: Any, rows: TrainingRows, seed: int, block_bytes: int
    ) -> dict[str, Any]:
        statistics = self._statistics_of(feature_map, rows, block_bytes)
        sample = rows.sample(LEFT_OUT_ROWS, RandomStreams(seed, "kernel-ridge/left-out"))
        silent = Progress("left-out rows", sample.count, 0)
        solution = primal_solution(
            statistics,
            self.alpha,
            checked_alphas(self.alphas),
            fit_intercept=self.fit_intercept,
            left_out=feature_blocks(feature_map, sample, silent, block_bytes),
        )
        warn_at_lower_end(solution, statistics, fit_intercept=self.fit_intercept)
        kernel_sum = sum_at_landmarks(feature_map, solution.coef)
        return {
            "statistics_": statistics,
            "_statistics_kept": False,
            "_solution": solution,
            "_kernel_sum": kernel_sum,
        }

    def _dual_attributes(
        self, feature_map: Any, rows: TrainingRows, seed: int, _: int
    ) -> dict[str, Any]:
        kernel = exact_kernel(feature_map)
        budget = None if self.memory_budget is None else int(self.memory_budget)
        system = DualSystem(rows, kernel, self._penalty, budget, seed, self.n_jobs)
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept, "verbose": self.verbose}
        if self.mode == "exact":
            solution, result = exact_solution(system, tol=self.tol, **options)
            attributes: dict[str, Any] = {"solver_result_": result}
        else:
            solution, report = row_sketch_solution(system, feature_map, eps=self.eps, **options)
            attributes = {"row_sketch_": report}
        # A copy: whoever changes his rows later on does not expect other predictions.
        points = rows.X.copy()
        attributes |= {"kernel_": kernel, "X_fit_": points, "dual_coef_": solution.coef}
        kernel_sum = KernelSum(kernel, points, solution.coef)
        return {**attributes, "_solution": solution, "_kernel_sum": kernel_sum}

    def _statistics_of(
        self, feature_map: Any, rows: TrainingRows, block_bytes: int
    ) -> RidgeStatistics:
        progress = Progress(type(self).__name__, rows.count, self.verbose)
        columns = LandmarkColumns.of(feature_map)
        if columns is None or not columns.summable:
            return statistics_of_blocks(feature_blocks(feature_map, rows, progress, block_bytes))
        sums = statistics_of_blocks(feature_blocks(columns.prepared(), rows, progress, block_bytes))
        return columns.statistics_of_features(sums)

    def _solved(self) -> Any:
        """Return the solution; blocks that were added since the last one enter now."""
        check_is_fitted(self)
        if self._solution is None:
            self._check_parameters()
            self._check_partial()
            solution = primal_solution(
                self.statistics_,
                self.alpha,
                checked_alphas(self.alphas),
                fit_intercept=self.fit_intercept,
                left_out=iter(()),
            )
            kernel_sum = sum_at_landmarks(self.sketch_, solution.coef)
            self.__dict__.update({"_solution": solution, "_kernel_sum": kernel_sum})
            warn_at_lower_end(solution, self.statistics_, fit_intercept=self.fit_intercept)
        return self._solution

    def _path(self, name: str) -> NDArray[np.float64]:
        values = getattr(self._solved(), name, None)
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
            return f"{name} exists only after a fit with mode='primal': set it, and fit again."
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


def _warn_of_dominant_rows(feature_map: Any, rows: TrainingRows) -> None:
    """Name rows that decide the whole solution because the kernel is so large there, if any."""
    kernel = getattr(feature_map, "kernel_", None)
    if not isinstance(kernel, Kernel):
        return
    diagonal = kernel.diagonal(rows.X).astype(np.float64)
    cause = dominant_rows_message(diagonal, rows.numbers)
    if cause is not None:
        warn_user(f"{cause}.", OutlierWarning)


def in_dtype_of_rows(values: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[Any]:
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
