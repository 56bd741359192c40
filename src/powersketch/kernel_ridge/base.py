"""What the regressor and the classifier share: parameters, fitting, fitted attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse
from powersketch.exceptions import InputError
from powersketch.execution import Progress
from powersketch.kernel_ridge.choice import (
    MOST_SUMMED_FEATURES,
)
from powersketch.kernel_ridge.columns import Columns
from powersketch.kernel_ridge.dual import (
    DualSystem,
    KernelSum,
    exact_solution,
    sum_at_landmarks,
)
from powersketch.kernel_ridge.exact import exact_path
from powersketch.kernel_ridge.features import (
    Features,
    feature_blocks,
    feature_statistics,
    row_parts,
)
from powersketch.kernel_ridge.iterative import (
    MOST_DENSE_COLUMNS,
    IterativeRidge,
    LandmarkRows,
    SparseRows,
)
from powersketch.kernel_ridge.path import (
    LEFT_OUT_ROWS,
    LeftOut,
    checked_alphas,
    left_out_predictions,
    ridge_solution,
    warn_at_lower_end,
)
from powersketch.kernel_ridge.pilot import without_copies
from powersketch.kernel_ridge.row_sketch import row_sketch_solution
from powersketch.kernel_ridge.search import Model, warn_if_a_line_is_better, widened
from powersketch.kernel_ridge.settings import RidgeSettings
from powersketch.kernel_ridge.statistics import GramSpectrum, RidgeSolution, RidgeStatistics
from powersketch.kernel_ridge.training_rows import (
    Reservoir,
    TrainingRows,
    gathered,
    row_blocks,
    warn_of_dominant_rows,
    without_absurd_rows,
)
from powersketch.kernels import Kernel, WithLinear
from powersketch.random_streams import RandomStreams
from powersketch.validation import REAL_ROWS, sound_array

# Batches are gathered up to this many rows before anything is chosen.
FIRST_ROWS = 20_000
_ATTRIBUTES_OF_MAP = (
    "seed_",
    "feature_map_",
    "choice_",
    "kernel_",
    "classes_",
    "_block_bytes",
    "_columns",
    "_features",
    "_alpha_per_root",
    "_limits",
    "_map_settings",
)
# All that a fit can leave behind: the next one with other features must not show it.
_FITTED = (
    *_ATTRIBUTES_OF_MAP,
    "statistics_",
    "effective_dimension_",
    "noise_variance_",
    "X_fit_",
    "_fit_targets",
    "_fit_weights",
    "dual_coef_",
    "solver_result_",
    "row_sketch_",
    "_statistics_kept",
    "_sample",
    "_solution",
    "_left_out",
    "_posterior",
    "_calibration",
    "_kernel_sum",
)


class SketchedRidge(RidgeSettings):
    """Fits targets of any kind; subclasses say what the targets are and what becomes of them."""

    # Whether rows are left out for more than the choice of alpha.
    _uses_left_out: ClassVar[bool] = False
    fit: Callable[..., Any]
    feature_map_: Any
    _features: Features | None
    _columns: Columns | None
    _sample: Reservoir
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

    @property
    def feature_importances_(self) -> Vector:
        """The diagonal of the learned metric, by given columns and with the sum one."""
        return self._columns_or_plain().importances()

    @property
    def metric_(self) -> Float64:
        """The learned metric of the columns as the kernel sees them, of trace one."""
        return self._columns_or_plain().metric_matrix()

    def _columns_or_plain(self) -> Columns:
        check_is_fitted(self)
        return self._columns or Columns(-np.inf, np.inf, None, np.ones(1))

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
            state.pop("_sample", None)
        return state

    def _stored_state(self, *, compact: bool) -> dict[str, Any]:
        """Return what a file holds: all that was fitted, or only what predictions need."""
        self._solved()
        state = {name: value for name, value in vars(self).items() if name != "_posterior"}
        if not compact or "_statistics_kept" not in state:
            return self._without_landmarks(state) if compact else state
        for name in ("statistics_", "_sample", "_left_out"):
            state.pop(name, None)
        return self._without_landmarks(state | {"_statistics_kept": False})

    @staticmethod
    def _without_landmarks(state: dict[str, Any]) -> dict[str, Any]:
        """Leave out features of landmarks: predictions are sums of kernel values at these."""
        features = state["_features"]
        if features is None or features.landmarks is None:
            return state
        return {n: v for n, v in state.items() if n != "feature_map_"} | {"_features": None}

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
        rows, fitted = self._fit_features(rows)
        attributes |= fitted
        attributes |= self._fitting(rows, attributes)(rows, attributes)
        if self._chooses_by_leaving_out and (self._kind == "given" or not self._chooses_kernel):
            streams = RandomStreams(attributes["seed_"], "kernel-ridge/line")
            warn_if_a_line_is_better(rows, attributes["_solution"], streams)
        validate_data(self, given, skip_check_array=True)
        self._store(attributes)

    def _fitting(self, rows: TrainingRows, fitted: dict[str, Any]) -> Callable[..., Any]:
        """Return the method that fits such features."""
        features = fitted["_features"]
        if features is None or self._kind == "row-sketch":
            return self._fit_dual
        wide = is_sparse(rows.X) and rows.X.shape[1] > MOST_DENSE_COLUMNS
        if (features.weight and wide) or (self._iterates and _has_many_landmarks(features)):
            return self._fit_iteratively
        return self._fit_primal

    def _fit_iteratively(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        """Fit features that are too many for a Gram matrix."""
        if self.alpha == "gcv":
            raise InputError(
                "alpha='gcv' needs sums of all pairs of columns, which are too many here: use "
                "alpha='loo', or a number."
            )
        features = fitted["_features"]
        stored = SparseRows if features.landmarks is None else LandmarkRows
        ridge = IterativeRidge(
            features, stored, self.fit_intercept, self.tol, fitted["seed_"], self._iterates
        )
        alpha: Any = "loo" if isinstance(self.alpha, str) else float(self.alpha)
        start = _first_alpha(fitted, rows.count)
        solution, left_out = ridge.solve(rows, alpha, checked_alphas(self.alphas), start)
        solved = self._from_left_out(left_out) if self._leaves_out else {}
        at_landmarks = sum_at_landmarks(features, solution.coef)
        return {**solved, "_solution": solution, "_kernel_sum": at_landmarks}

    def _add_rows(self, rows: TrainingRows, given: Any, **attributes: Any) -> None:
        """Choose and fit the map on the first block, and add the statistics of every block."""
        if self._goes_on:
            self._refuse_another_map()
            validate_data(self, given, reset=False, skip_check_array=True)
            before = vars(self) if "statistics_" in vars(self) else self._exact_fit_on_features()
            attributes |= {n: before[n] for n in _ATTRIBUTES_OF_MAP if n in before}
            kernel = attributes.get("kernel_")
            rows, _ = without_absurd_rows(rows, lambda _: kernel)
            rows = self._prepared(rows)
            warn_of_dominant_rows(kernel, rows)
            sums = before["statistics_"].merge(self._sums(rows, attributes))
            sample = before.get("_sample") or self._reservoir(attributes["seed_"])
            if attributes["_limits"] is not None:
                attributes["_limits"] = widened(attributes["_limits"], rows.targets)
        else:
            rows, fitted = self._fit_features(rows, more_to_come=True)
            attributes |= fitted
            sums = self._sums(rows, attributes)
            sample = self._reservoir(fitted["seed_"])
            validate_data(self, given, skip_check_array=True)
        attributes |= {"statistics_": sums, "_sample": sample.with_block(rows, LEFT_OUT_ROWS)}
        self._store({**attributes, "_statistics_kept": True, "_solution": None})

    def _exact_fit_on_features(self) -> dict[str, Any]:
        """Return what a fit with the exact kernel is on features, to which blocks can be added."""
        rows = TrainingRows(self.X_fit_, self._fit_targets, self._fit_weights)
        attributes = {name: vars(self)[name] for name in _ATTRIBUTES_OF_MAP if name in vars(self)}
        kernel: Kernel = attributes["kernel_"]
        linear = 0.0
        if isinstance(kernel, WithLinear):
            linear, kernel = float(kernel.weight), kernel.kernel
        reasons = self.choice_.model if "choice_" in attributes else ()
        model = Model(self._columns, kernel, linear, reasons=reasons)
        attributes |= self._fit_model(rows, model, attributes["seed_"], more_to_come=True)
        sample = self._reservoir(attributes["seed_"]).with_block(rows, LEFT_OUT_ROWS)
        return {**attributes, "statistics_": self._sums(rows, attributes), "_sample": sample}

    @staticmethod
    def _reservoir(seed: int) -> Reservoir:
        return Reservoir(RandomStreams(seed, "kernel-ridge/left-out"))

    def _fit_primal(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        statistics, features = self._sums(rows, fitted), fitted["_features"]
        attributes: dict[str, Any] = {"statistics_": statistics, "_statistics_kept": False}
        left_out: list[Any] = []
        if self._leaves_out:
            sample = self._reservoir(fitted["seed_"])
            sample = sample.with_block(without_copies(rows), LEFT_OUT_ROWS)
            assert sample.rows is not None
            left_out = list(feature_blocks(features, sample.rows, fitted["_block_bytes"]))
            attributes["_sample"] = sample
        return attributes | self._solve(statistics, left_out, fitted)

    def _fit_dual(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        kernel, seed = fitted["kernel_"], fitted["seed_"]
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept}
        if isinstance(self.alpha, str):
            alphas, rows = checked_alphas(self.alphas), without_copies(rows)
            start = _first_alpha(fitted, rows.count)
            solution, left_out = exact_path(
                rows, kernel, alphas, seed=seed, n_jobs=self.n_jobs, start=start, **options
            )
            attributes = self._from_left_out(left_out)
        else:
            budget = None if self.memory_budget is None else int(self.memory_budget)
            system = DualSystem(rows, kernel, float(self.alpha), budget, seed, self.n_jobs)
            options["verbose"] = self.verbose
            if self._kind == "row-sketch":
                solution, report = row_sketch_solution(
                    system, fitted["_features"], eps=self.eps, **options
                )
                attributes = {"row_sketch_": report}
            else:
                solution, result = exact_solution(system, tol=self.tol, **options)
                attributes = {"solver_result_": result}
        # A copy: who changes the rows later on does not expect other predictions.
        points = rows.X.copy() if fitted["_columns"] is None else rows.X
        attributes |= {"X_fit_": points, "_fit_weights": rows.weights}
        attributes["_fit_targets"] = rows.targets.copy()
        attributes |= {"dual_coef_": solution.coef, "_solution": solution}
        return {**attributes, "_kernel_sum": KernelSum(kernel, points, solution.coef)}

    def _sums(self, rows: TrainingRows, fitted: dict[str, Any]) -> RidgeStatistics:
        progress = Progress(type(self).__name__, rows.count, self.verbose)
        return feature_statistics(fitted["_features"], rows, fitted["_block_bytes"], progress)

    def _solve(
        self, statistics: RidgeStatistics, left_out: list[Any], fitted: Mapping[str, Any]
    ) -> dict[str, Any]:
        start = _first_alpha(fitted, statistics.count)
        solution = ridge_solution(
            statistics,
            self.alpha,
            checked_alphas(self.alphas),
            left_out,
            fit_intercept=self.fit_intercept,
            start=start,
        )
        warn_at_lower_end(solution, statistics)
        at_landmarks = sum_at_landmarks(fitted["_features"], solution.coef)
        solved: dict[str, Any] = {"_solution": solution, "_kernel_sum": at_landmarks}
        if left_out:
            solved |= self._from_left_out(left_out_predictions(statistics, solution, left_out))
        return solved

    def _from_left_out(self, left_out: LeftOut) -> dict[str, Any]:
        """Return what is kept of rows that were left out, as attributes."""
        return {"_left_out": left_out}

    @property
    def _chooses_by_leaving_out(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "loo"

    @property
    def _leaves_out(self) -> bool:
        return self._uses_left_out or self._chooses_by_leaving_out

    def _fit_batches(self, batches: Iterable[Any], target: Any, options: dict[str, Any]) -> Self:
        """Choose on the first batches, which are fitted at once if there are no more."""
        self._check_parameters()
        first, more = gathered(batches, target, FIRST_ROWS)
        if more is None:
            self.fit(first.X, first.y, sample_weight=first.weights)
            return self
        model: Any = clone(self)
        model.partial_fit(first.X, first.y, sample_weight=first.weights, **options)
        for batch in more:
            model.partial_fit(batch.X, batch.y, sample_weight=batch.weights)
        model._solved()
        validate_data(self, first.X, skip_check_array=True)
        self._store({name: value for name, value in vars(model).items() if name in _FITTED})
        return self

    def _prepared(self, rows: TrainingRows) -> TrainingRows:
        """Return rows as the kernel of the fitted model sees them."""
        return rows if self._columns is None else replace(rows, X=self._columns.transform(rows.X))

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

    def _decision(
        self, X: Any, visit: Callable[[Rows, Float64 | None], None] | None = None
    ) -> Real:
        """Return the value of every target at every row, in the dtype of the rows.

        `visit` is given one block of prepared rows after the other, with their features if any.
        """
        solution, at_points, features = self._solved(), self._kernel_sum, self._features
        X = validate_data(self, sound_array("X", X), **REAL_ROWS, reset=False)
        dtype, X = X.dtype, X if self._columns is None else self._columns.transform(X)
        values = np.empty((X.shape[0], *solution.intercept.shape))
        if at_points is not None:
            values = np.asarray(at_points.values(X, self.n_jobs) + solution.intercept)
        if features is not None and (at_points is None or visit is not None):
            for part in row_parts(features, X, self._block_bytes):
                if at_points is None:
                    values[part] = features.product(X[part], solution.coef) + solution.intercept
                if visit is not None:
                    visit(X[part], features.transform(X[part]).astype(np.float64, copy=False))
        elif visit is not None:
            for part in row_blocks(X.shape[0], self.X_fit_.shape[0], self._block_bytes):
                visit(X[part], None)
        if self._limits is not None:
            values = np.clip(values, *self._limits)
        return in_dtype_of_rows(values, dtype)

    def _solved(self) -> RidgeSolution:
        """Return the solution; blocks that were added since the last one enter now."""
        check_is_fitted(self)
        if self._solution is None:
            self._check_parameters()
            self._check_partial()
            features, sample = self._features, self._sample.rows
            assert features is not None
            assert sample is not None
            blocks = feature_blocks(features, sample, self._block_bytes)
            left_out = list(blocks) if self._leaves_out else []
            self.__dict__.update(self._solve(self.statistics_, left_out, vars(self)))
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
            f"{name} needs statistics_, which a pickle and a compact file leave out to be small: "
            "use powersketch.save(model, path, compact=False), which keeps them."
        )

    @property
    def _goes_on(self) -> bool:
        """Whether a block is added to earlier ones; refused where those are lost."""
        if vars(self).get("_statistics_kept") is False and "statistics_" not in vars(self):
            raise AttributeError(self._missing_statistics("partial_fit"))
        fitted = vars(self)
        if fitted.get("_features") and not {"statistics_", "row_sketch_"} & fitted.keys():
            raise InputError(
                "partial_fit cannot go on with a fit that was solved by iterations, which keep no "
                "sums: use fit with all rows, or begin with partial_fit on a clone."
            )
        exact = self._kind == "auto" and "_fit_targets" in vars(self)
        return exact or "statistics_" in vars(self)

    def _store(self, attributes: dict[str, Any]) -> None:
        for name in _FITTED:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)


def _first_alpha(fitted: Mapping[str, Any], rows: int) -> float | None:
    """Return the alpha of a pilot, for so many rows; None if there was no pilot."""
    per_root = fitted["_alpha_per_root"]
    return None if per_root is None else per_root * math.sqrt(rows)


def _has_many_landmarks(features: Features) -> bool:
    """Tell whether landmarks are too many for sums."""
    landmarks = features.landmarks
    return landmarks is not None and landmarks.n_components_ > MOST_SUMMED_FEATURES


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
