"""How a model is fitted: by sums over rows, by iterations, or with the exact kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from sklearn.utils.validation import _num_samples, validate_data

from powersketch.arrays import Vector, is_sparse
from powersketch.exceptions import InputError
from powersketch.execution import Progress
from powersketch.feature_maps import DO_NOT_COUNT, MOST_CHOICE_ROWS, are_many
from powersketch.kernel_ridge.choosing.budgets import MOST_SUMMED_FEATURES
from powersketch.kernel_ridge.choosing.model import warn_if_a_line_is_better, widened
from powersketch.kernel_ridge.choosing.pilot import alpha_on_landmarks, without_copies
from powersketch.kernel_ridge.rows.training_rows import Reservoir, TrainingRows
from powersketch.kernel_ridge.settings import NEED_ALL_ROWS, RidgeSettings
from powersketch.kernel_ridge.solving.dual import (
    DualSystem,
    KernelSum,
    exact_solution,
    sum_at_landmarks,
)
from powersketch.kernel_ridge.solving.exact import exact_path
from powersketch.kernel_ridge.solving.factored_path import LEAST_PER_ROUNDING
from powersketch.kernel_ridge.solving.features import FeatureSums, feature_blocks, needs_float64
from powersketch.kernel_ridge.solving.iterative import MOST_DENSE_COLUMNS, IterativeRidge
from powersketch.kernel_ridge.solving.left_out import LEFT_OUT_ROWS, LeftOut, left_out_predictions
from powersketch.kernel_ridge.solving.many_rows import (
    FeatureFit,
    ManyRows,
    RowPreparation,
    sample_of,
)
from powersketch.kernel_ridge.solving.path import checked_alphas, ridge_solution, warn_at_lower_end
from powersketch.kernel_ridge.solving.precision import errors_of_float32
from powersketch.kernel_ridge.solving.row_products import (
    BlockProducts,
    DenseFeatures,
    LandmarkValues,
)
from powersketch.kernel_ridge.solving.row_sketch import row_sketch_solution
from powersketch.kernel_ridge.solving.sparse_columns import SparseColumns
from powersketch.kernel_ridge.solving.statistics import RidgeSolution, RidgeStatistics
from powersketch.kernels import EntryMoments
from powersketch.random_streams import RandomStreams

ATTRIBUTES_OF_MAP = (
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
FITTED = (
    *ATTRIBUTES_OF_MAP,
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
    "_kept_rows",
    "_sample",
    "_solution",
    "_left_out",
    "_posterior",
    "_calibration",
    "_kernel_sum",
)


class RidgeFits(RidgeSettings):
    """Fits features and targets of any kind; subclasses say what the targets are."""

    # Whether rows are left out for more than the choice of alpha.
    _uses_left_out: ClassVar[bool] = False

    def _fit_rows(self, rows: TrainingRows, given: Any, **attributes: Any) -> None:
        """Fit everything, and store it at the end: a failed fit leaves the last one intact."""
        total = int(_num_samples(given))
        if are_many(total, MOST_CHOICE_ROWS) and self._kind not in NEED_ALL_ROWS:
            chosen = self._choice_rows(rows, total, MOST_CHOICE_ROWS)
            few = sample_of(rows, chosen)
            preparation, sample, fitted = self._fit_sample(few, total, chosen.moments)
            if preparation.typical is None:
                chosen.warn_of_far_rows(DO_NOT_COUNT)
            rows, far = preparation.prepared(rows)
            far.warn()
            if fitted["_limits"] is not None:
                fitted["_limits"] = widened(fitted["_limits"], rows.targets)
        else:
            rows, fitted = self._fit_features(rows)
            sample = rows
        attributes |= fitted
        fit = self._fitting(rows, attributes)
        try:
            if fit == self._fit_primal:
                attributes |= fit(sample, attributes, partial(self._sums, rows, attributes))
            else:
                attributes |= fit(rows, attributes)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(_nothing_reached(rows, attributes))
            raise
        self._finish(sample, given, attributes)

    def _fit_elsewhere(self, everything: ManyRows, given: Any, **attributes: Any) -> None:
        """Fit rows that are elsewhere; `given` are some of them, as they were given."""
        preparation, sample, fitted = self._fit_sample(
            everything.sample, everything.total, everything.moments
        )
        attributes |= fitted
        if fitted["_limits"] is not None:
            attributes["_limits"] = widened(fitted["_limits"], everything.target_range)
        features = fitted["_features"]
        if self.solver == "cg" or features.size(sample.X) > MOST_SUMMED_FEATURES:
            chosen = FeatureFit(preparation, features, sample, self.fit_intercept, fitted["seed_"])
            products = everything.products(chosen)
            attributes |= self._iterated(products, attributes, everything.total)
            self._finish(sample, given, attributes)
            return
        sums = FeatureSums.of(features)

        def summed(**_: Any) -> RidgeStatistics:
            return sums.finished(everything.sums(preparation, sums, fitted["_block_bytes"]))

        attributes |= self._fit_primal(sample, attributes, summed)
        self._finish(sample, given, attributes)

    def _fit_sample(
        self, few: TrainingRows, total: int, moments: EntryMoments | None
    ) -> tuple[RowPreparation, TrainingRows, dict[str, Any]]:
        """Choose and fit features on rows that stand for all, and how the others are prepared."""
        sample, fitted = self._fit_features(few, total=total, moments=moments)
        preparation = RowPreparation.of(few, fitted["_columns"], fitted.get("kernel_"))
        return preparation, sample, fitted

    def _finish(self, rows: TrainingRows, given: Any, attributes: dict[str, Any]) -> None:
        """Warn where a line is better, and store what was fitted."""
        attributes.pop("_plan", None)
        if self._chooses_by_leaving_out and (self._kind == "given" or not self._chooses_kernel):
            streams = RandomStreams(attributes["seed_"], "kernel-ridge/line")
            warn_if_a_line_is_better(rows, attributes["_solution"], streams)
        validate_data(self, given, skip_check_array=True)
        self._store(attributes)
        result = attributes.get("solver_result_")
        if result is not None and result.interrupted:
            interrupt = KeyboardInterrupt()
            interrupt.add_note(f"The model keeps what was reached: {result.message}")
            raise interrupt

    def _fitting(self, rows: TrainingRows, fitted: dict[str, Any]) -> Callable[..., Any]:
        """Return the method that fits such features."""
        features = fitted["_features"]
        if features is None or self._kind == "row-sketch":
            return self._fit_dual
        if features.weight and _is_wide(rows):
            return self._fit_iteratively
        landmarks = features.landmarks
        precise = landmarks is not None and needs_float64(landmarks.jitter_)
        plan = self._planned(rows, features.size(rows.X), landmarks is not None, precise=precise)
        fitted["_plan"] = plan
        if plan.reason and "choice_" in fitted:
            how = "one Gram matrix" if plan.solver == "gram" else "iterations"
            choice = fitted["choice_"]
            reason = f"{choice.reason}; solved by {how}, {plan.reason}"
            fitted["choice_"] = replace(choice, reason=reason)
        return self._fit_primal if plan.solver == "gram" else self._fit_iteratively

    def _fit_iteratively(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        """Fit by conjugate gradients."""
        if self.alpha == "gcv":
            raise InputError(
                "alpha='gcv' needs sums of all pairs of columns, which are too many here: use "
                "alpha='loo', or a number."
            )
        solved = self._iterated(self._products(rows, fitted), fitted, rows.count)
        if self.solver == "auto" and "_plan" in fitted:
            # Nobody asked to do without what follows from sums.
            kept = rows if fitted["_columns"] is not None else rows.copied()
            solved |= {"_kept_rows": kept, "_statistics_kept": False}
        return solved

    def _iterated(self, products: Any, fitted: dict[str, Any], rows: int) -> dict[str, Any]:
        """Solve by iterations on products with the features of so many rows."""
        ridge = IterativeRidge(
            self.fit_intercept, self.tol, fitted["seed_"], self._iterates, self.verbose
        )
        solved: dict[str, Any] = {}
        if self._leaves_out:
            solution, left_out, result = ridge.solve(
                products, self.alpha, checked_alphas(self.alphas), _first_alpha(fitted, rows)
            )
            solved = self._from_left_out(left_out)
        else:
            solution, result = ridge.solve_given(products, float(self.alpha))
        at_landmarks = sum_at_landmarks(fitted["_features"], solution.coef)
        solved |= {"_solution": solution, "_kernel_sum": at_landmarks, "solver_result_": result}
        return solved

    def _products(self, rows: TrainingRows, fitted: dict[str, Any]) -> BlockProducts:
        """Return the rows as iterations see them: stored, or computed again for every product."""
        features, intercept = fitted["_features"], self.fit_intercept
        if features.weight and _is_wide(rows):
            return SparseColumns(features, rows, fit_intercept=intercept, seed=fitted["seed_"])
        options = {"stored": fitted["_plan"].stored, "seed": fitted["seed_"]}
        if features.landmarks is not None:
            return LandmarkValues(
                features, rows, fit_intercept=intercept, verbose=self.verbose, **options
            )
        return DenseFeatures(features, rows, fit_intercept=intercept, **options)

    @staticmethod
    def _reservoir(seed: int) -> Reservoir:
        return Reservoir(RandomStreams(seed, "kernel-ridge/left-out"))

    def _fit_primal(
        self,
        rows: TrainingRows,
        fitted: dict[str, Any],
        sums: Callable[..., RidgeStatistics],
    ) -> dict[str, Any]:
        """Fit by sums over all rows; `rows` are those that some are left out of."""
        statistics, features = sums(), fitted["_features"]
        attributes: dict[str, Any] = {"_statistics_kept": False}
        left_out: list[Any] = []
        if self._leaves_out:
            sample = self._reservoir(fitted["seed_"])
            sample = sample.with_block(without_copies(rows), LEFT_OUT_ROWS)
            assert sample.rows is not None
            left_out = list(feature_blocks(features, sample.rows, fitted["_block_bytes"]))
            attributes["_sample"] = sample
        solution = self._solution_of(statistics, left_out, fitted)
        if statistics.rounding and self._is_at_rounding(solution, statistics):
            # Smaller alphas may be better, and only sums in float64 can tell.
            statistics = sums(in_float64=True)
            solution = self._solution_of(statistics, left_out, fitted)
        attributes |= self._from_solution(solution, statistics, left_out, fitted)
        return {**attributes, "statistics_": statistics}

    def _is_at_rounding(self, solution: RidgeSolution, statistics: RidgeStatistics) -> bool:
        """Tell whether the alpha was chosen and is the least that sums in float32 allow."""
        if not isinstance(self.alpha, str) or self.alphas is not None:
            return False
        gram, _, _ = statistics.moments(fit_intercept=self.fit_intercept)
        return bool(solution.alpha <= LEAST_PER_ROUNDING * statistics.smallest_alpha(gram))

    def _fit_dual(self, rows: TrainingRows, fitted: dict[str, Any]) -> dict[str, Any]:
        kernel, seed = fitted["kernel_"], fitted["seed_"]
        options: dict[str, Any] = {"fit_intercept": self.fit_intercept}
        if isinstance(self.alpha, str):
            alphas, rows = checked_alphas(self.alphas), without_copies(rows)
            start = _first_alpha(fitted, rows.count)
            streams = RandomStreams(seed, "kernel-ridge/exact")

            def first() -> float:
                return start or alpha_on_landmarks(rows, kernel, streams, **options)

            solution, left_out = exact_path(
                rows,
                kernel,
                alphas,
                streams=streams,
                n_jobs=self.n_jobs,
                start=first,
                costs=self._row_costs,
                memory_budget=self.memory_budget,
                **options,
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

    def _sums(
        self,
        rows: TrainingRows,
        fitted: Mapping[str, Any],
        *,
        before: float | None = None,
        in_float64: bool = False,
    ) -> RidgeStatistics:
        """Return the statistics of the features of rows, in float32 where nobody can tell.

        Of rows that come in blocks, `before` is the rounding of the others so far. Their alpha has
        to be known then: it cannot be seen too late that it is too small.
        """
        features = fitted["_features"]
        sums = FeatureSums.of(features)

        def summed(rounding: float | None = None) -> RidgeStatistics:
            progress = Progress(type(self).__name__, rows.count, self.verbose)
            return sums.finished(sums.of_rows(rows, fitted["_block_bytes"], progress, rounding))

        errors = None
        if not in_float64 and (before is None or not isinstance(self.alpha, str)):
            errors = errors_of_float32(features, rows)
        if errors is None:
            return summed()
        used = self.alpha, checked_alphas(self.alphas)
        if errors.are_hidden(rows.count, *used, before or 0.0):
            return summed(errors.of_rows(rows.count))
        if before is None and errors.may_be_small(rows.count, *used):
            statistics = summed(errors.of_rows(rows.count))
            if errors.are_small(statistics.gram, rows.count, *used):
                return replace(statistics, rounding=0.0)
        return summed()

    def _solution_of(
        self, statistics: RidgeStatistics, left_out: list[Any], fitted: Mapping[str, Any]
    ) -> RidgeSolution:
        return ridge_solution(
            statistics,
            self.alpha,
            checked_alphas(self.alphas),
            left_out,
            fit_intercept=self.fit_intercept,
            start=_first_alpha(fitted, statistics.count),
        )

    def _from_solution(
        self,
        solution: RidgeSolution,
        statistics: RidgeStatistics,
        left_out: list[Any],
        fitted: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return what follows from a solution, as attributes."""
        warn_at_lower_end(
            solution,
            statistics,
            are_columns=fitted["_features"].feature_map is None,
            best_of_kernels=self._chooses_kernel,
        )
        at_landmarks = sum_at_landmarks(fitted["_features"], solution.coef)
        solved: dict[str, Any] = {"_solution": solution, "_kernel_sum": at_landmarks}
        if left_out:
            solved |= self._from_left_out(left_out_predictions(statistics, solution, left_out))
        return solved

    @property
    def _row_costs(self) -> Callable[[LeftOut], Vector] | None:
        """What errors at rows left out cost in the choice of the exact kernel's alpha, or None."""
        return None

    def _from_left_out(self, left_out: LeftOut) -> dict[str, Any]:
        """Return what is kept of rows that were left out, as attributes."""
        return {"_left_out": left_out}

    @property
    def _chooses_by_leaving_out(self) -> bool:
        return isinstance(self.alpha, str) and self.alpha == "loo"

    @property
    def _leaves_out(self) -> bool:
        return self._uses_left_out or self._chooses_by_leaving_out

    def _store(self, attributes: dict[str, Any]) -> None:
        for name in FITTED:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)


def _first_alpha(fitted: Mapping[str, Any], rows: int) -> float | None:
    """Return the alpha of a pilot, for so many rows; None if there was no pilot."""
    per_root = fitted["_alpha_per_root"]
    return None if per_root is None else per_root * math.sqrt(rows)


def _nothing_reached(rows: TrainingRows, fitted: Mapping[str, Any]) -> str:
    """Say after an interrupt what was to be computed, and what takes less time."""
    features, plan = fitted["_features"], fitted.get("_plan")
    what = f"an exact solution for {rows.count} rows"
    if features is not None and plan is not None:
        what = plan.describe(features.size(rows.X), rows.count)
    return f"The model is as it was before: interrupted was {what}. Fewer features take less time."


def _is_wide(rows: TrainingRows) -> bool:
    """Tell whether rows are sparse and too long to be made dense."""
    return is_sparse(rows.X) and rows.X.shape[1] > MOST_DENSE_COLUMNS
