"""The parameters of the ridge estimators: their checks, and the model and features they ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from powersketch.arrays import is_sparse
from powersketch.ecosystem import DocumentationLinks
from powersketch.exceptions import FarRowWarning, InputError, InputTypeError, held_back
from powersketch.execution import thread_count
from powersketch.feature_maps import ChoiceRows, FeatureMap
from powersketch.kernel_ridge.choosing.budgets import MOST_SUMMED_FEATURES, Budget, bytes_of_block
from powersketch.kernel_ridge.choosing.maps import Choice, chosen_features
from powersketch.kernel_ridge.choosing.metric import FORMS
from powersketch.kernel_ridge.choosing.model import Model, Wishes, found_model
from powersketch.kernel_ridge.choosing.pilot import without_copies
from powersketch.kernel_ridge.choosing.solvers import SOLVERS, Plan, Problem, planned
from powersketch.kernel_ridge.rows.columns import SCALINGS, checked_clip
from powersketch.kernel_ridge.rows.training_rows import (
    BLOCK_BYTES,
    TrainingRows,
    warn_of_dominant_rows,
    without_absurd_rows,
)
from powersketch.kernel_ridge.solving.features import (
    Features,
    fitted_map,
    has_sketch,
    map_of_kernel,
    needs_float64,
)
from powersketch.kernel_ridge.solving.path import checked_alphas
from powersketch.kernels import (
    EntryMoments,
    Kernel,
    Linear,
    WithLinear,
    as_kernel,
    asks_for_scale,
    at_scale,
)
from powersketch.nystroem import LeverageNystroem
from powersketch.parameters import (
    checked_alpha,
    checked_integer,
    checked_positive,
    checked_truth,
    checked_verbose,
    one_of,
    refuse_unused,
)
from powersketch.random_streams import RandomStreams, seed_from

_DEFAULT_COMPONENTS = 256
_KINDS = ("auto", "sketch", "landmarks", "exact", "row-sketch")
NEED_ALL_ROWS = ("exact", "row-sketch")
_CRITERIA = ("gcv", "loo")
_METRICS = ("auto", *FORMS)
_PARAMETERS_OF_MAP = (
    "kernel",
    "kernel_params",
    "features",
    "n_components",
    "metric",
    "linear",
    "scaling",
    "clip",
    "random_state",
)


class RidgeSettings(DocumentationLinks, BaseEstimator):
    """The parameters that both estimators have: their checks, and the features they ask for."""

    # Whether many landmarks are solved for by iterations, which give no standard deviations.
    _iterates: ClassVar[bool] = False

    def __init__(
        self,
        kernel: str | Kernel = "auto",
        *,
        kernel_params: dict[str, Any] | None = None,
        features: Any = "auto",
        n_components: int | None = None,
        metric: str | None = "auto",
        linear: bool | str = "auto",
        scaling: str | None = "auto",
        clip: float | str | None = "auto",
        alpha: float | str = "loo",
        alphas: ArrayLike | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        eps: float = 0.1,
        tol: float = 1e-6,
        time_budget: float | None = None,
        memory_budget: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.kernel_params = kernel_params
        self.features = features
        self.n_components = n_components
        self.metric = metric
        self.linear = linear
        self.scaling = scaling
        self.clip = clip
        self.alpha = alpha
        self.alphas = alphas
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.eps = eps
        self.tol = tol
        self.time_budget = time_budget
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _kind(self) -> str:
        """The name of the features; "given" if they are a map."""
        return self.features if isinstance(self.features, str) else "given"

    @property
    def _chooses_kernel(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "auto"

    def _check_parameters(self) -> None:
        """Refuse bad parameters, and those without effect, before any data is touched."""
        kind, unused = self._kind, self._unused_options()
        self._check_features()
        self._check_columns()
        self._check_penalty()
        self._check_solver()
        checked_truth("fit_intercept", self.fit_intercept)
        checked_positive("eps", self.eps)
        checked_positive("tol", self.tol)
        if self.n_components is not None:
            checked_integer("n_components", self.n_components, 1)
        for name in ("time_budget", "memory_budget"):
            if getattr(self, name) is not None:
                checked_positive(name, getattr(self, name))
        checked_verbose(self.verbose)
        refuse_unused(self, unused)
        thread_count(self.n_jobs)
        if kind == "given":
            self._copied_map()

    def _check_solver(self) -> None:
        one_of("solver", self.solver, SOLVERS)
        if self.solver == "cg" and self.alpha == "gcv":
            raise InputError(
                "alpha='gcv' needs sums of all pairs of features, which solver='cg' does without: "
                "use alpha='loo', or solver='gram'."
            )

    @property
    def _chooses_size(self) -> bool:
        return self._kind == "auto" and self.n_components is None

    def _planned(self, rows: TrainingRows, size: int, landmarks: bool, *, precise: bool) -> Plan:
        """Return how a fit of so many features is done; refuse what does not fit the memory.

        Of landmarks, `precise` says whether iterations need kernel values in float64.
        """
        solver = self.solver
        columns = int(rows.X.shape[1])  # which may be features beside those of the map
        if solver != "cg" and self._chooses_size and size <= MOST_SUMMED_FEATURES + columns:
            # Features that were chosen are as many as sums and the budget take.
            return Plan("gram")
        if self.alpha == "gcv":
            solver = "gram"
        problem = replace(self._problem(rows, size, landmarks), precise=precise)
        return planned(problem, solver, self.memory_budget)

    def _problem(self, rows: TrainingRows, size: int, landmarks: bool) -> Problem:
        """Return what the time and the memory of a fit depend on."""
        alphas = checked_alphas(self.alphas)
        searched = 0 if alphas is None else alphas.size
        return Problem(
            rows.count,
            int(rows.X.shape[1]),
            size,
            int(np.prod(rows.targets.shape[1:])),
            searched if isinstance(self.alpha, str) else 1,
            landmarks,
            rows.X.dtype,
            isinstance(self.alpha, str) or self._iterates,
            rows.bytes if self.solver == "auto" else 0.0,
        )

    def _check_memory_of_sums(self, rows: TrainingRows, features: Features) -> None:
        """Refuse sums, of rows that were fitted by iterations, that do not fit the memory."""
        problem = self._problem(rows, features.size(rows.X), features.landmarks is not None)
        planned(problem, "gram", self.memory_budget)

    def _check_penalty(self) -> None:
        kind = self._kind
        checked_alphas(self.alphas)
        if not isinstance(self.alpha, str):
            checked_alpha(self.alpha)
        elif kind == "row-sketch" or (kind == "exact" and self.alpha == "gcv"):
            raise InputError(
                f"alpha={self.alpha!r} cannot be used with features={self.features!r}: give a "
                "number for alpha, or use features='sketch'."
            )
        else:
            one_of("alpha", self.alpha, _CRITERIA)
        if kind == "row-sketch":
            checked_positive("alpha", self.alpha, remedy="a row sketch needs a penalty")

    def _check_columns(self) -> None:
        """Refuse unknown ways to prepare columns."""
        if self.metric is not None:
            one_of("metric", self.metric, _METRICS)
        if self.scaling is not None:
            one_of("scaling", self.scaling, ("auto", *SCALINGS))
        if self.linear != "auto":
            checked_truth("linear", self.linear)
        checked_clip(self.clip)

    def _unused_options(self) -> dict[str, str]:
        """Return what has no effect on this fit, and why; a careful user would expect one."""
        kind, here = self._kind, f"with features={self.features!r}"
        unused = {}
        if not isinstance(self.alpha, str):
            unused["alphas"] = f"beside alpha={self.alpha!r}, which is not to be chosen"
        if kind != "row-sketch":
            unused["eps"] = here
        if self.solver != "cg" and (kind != "exact" or isinstance(self.alpha, str)):
            unused["tol"] = here if kind != "exact" else f"beside alpha={self.alpha!r}"
        if kind in NEED_ALL_ROWS:
            unused["solver"] = f"{here}, which has one of its own"
        if kind == "exact":
            unused["n_components"] = f"{here}, which needs no feature map"
        if kind == "given":
            unused |= dict.fromkeys(("kernel", "kernel_params"), f"{here}, which has its own")
            why = f"{here}: put what prepares columns before it in a pipeline"
            unused |= dict.fromkeys(("metric", "linear", "scaling", "clip"), why)
        elif self._chooses_kernel:
            unused["kernel_params"] = "with kernel='auto', which chooses them"
        if kind in NEED_ALL_ROWS:
            unused["time_budget"] = here
        elif kind != "auto":
            unused["time_budget"] = f"{here}: only 'auto' keeps to a time"
        elif self.n_components is not None:
            why = f"beside n_components={self.n_components}, which is the size"
            unused["time_budget"] = why
        return unused

    def _check_partial(self) -> None:
        """Refuse what needs all rows at once."""
        if self._kind in NEED_ALL_ROWS:
            raise InputError(
                f"partial_fit cannot be used with features={self.features!r}, which needs all rows "
                "at once: use 'sketch', 'landmarks', 'auto' or a feature map."
            )
        if self.solver == "cg":
            raise InputError(
                "partial_fit cannot be used with solver='cg', which reads all rows again and "
                "again: use solver='gram' or 'auto'."
            )

    def _check_features(self) -> None:
        """Refuse what is no kernel and no features, or features that the kernel does not have."""
        if isinstance(self.features, str):
            one_of("features", self.features, _KINDS)
        elif isinstance(self.features, type) or not hasattr(self.features, "transform"):
            raise InputTypeError(
                f"features={self.features!r} is a {type(self.features).__name__}; allowed are "
                f"{', '.join(map(repr, _KINDS))}, a feature map and any transformer: pass an "
                "instance, not a class, and a kernel as kernel."
            )
        if hasattr(self.kernel, "transform"):
            raise InputTypeError(f"kernel={self.kernel!r} is a feature map: pass it as features.")
        if self.kernel_params is not None and not isinstance(self.kernel_params, Mapping):
            raise InputTypeError(
                f"kernel_params={self.kernel_params!r} is a {type(self.kernel_params).__name__}; "
                "allowed is a dict from names of parameters to values, or None."
            )
        kind, kernel = self._kind, self._given_kernel()
        if kind in ("sketch", "row-sketch") and kernel is not None and not has_sketch(kernel):
            raise InputTypeError(
                f"features={self.features!r} needs a sketch of the kernel, and there is none of "
                f"{kernel!r}: use features='landmarks', 'exact' or 'auto'."
            )

    def _given_kernel(self) -> Kernel | None:
        """Return the kernel that was asked for; None if it is to be chosen."""
        if self._chooses_kernel:
            return None
        if not self.kernel_params:
            return as_kernel(self.kernel)
        try:
            return as_kernel(self.kernel, None, **self.kernel_params)
        except (InputError, TypeError) as error:
            kind = InputTypeError if isinstance(error, TypeError) else InputError
            raise kind(f"kernel_params={self.kernel_params!r}: {error}") from error

    @property
    def _measures_scale(self) -> bool:
        """Whether gamma="scale" is that of the rows as they are, so that all of them count."""
        if isinstance(self.features, FeatureMap | LeverageNystroem):
            return asks_for_scale(self.features._exact_kernel())
        as_given = self.scaling in (None, "auto") and self.clip in (None, "auto")
        return self._kind != "given" and as_given and asks_for_scale(self._given_kernel())

    def _choice_rows(self, rows: TrainingRows, total: int, most: int) -> ChoiceRows:
        """Return which of some rows choices for `total` rows are made from."""
        numbers = np.arange(rows.count) if rows.numbers is None else rows.numbers
        # Maps of landmarks take no weights.
        weights = None if isinstance(self.features, LeverageNystroem) else rows.weights
        return ChoiceRows.of(
            rows.X, numbers, total, most, measure=self._measures_scale, weights=weights
        )

    def _model(self, rows: TrainingRows, seed: int, moments: EntryMoments | None) -> Model:
        """Return the columns, kernel and linear part of the fit, chosen or as they were given."""
        kernel = at_scale(self._given_kernel(), moments)
        streams = RandomStreams(seed, "kernel-ridge/search")
        if kernel is None or getattr(kernel, "gamma", None) == "auto":
            rows = without_copies(rows)
        wishes = Wishes(self.metric, self.linear, self.scaling, self.clip, self.fit_intercept)
        return found_model(rows, kernel, wishes, streams)

    def _unfitted_map(self, kernel: Kernel, rows: TrainingRows, seed: int) -> Any:
        """Return the map of a kernel that was asked for by its name."""
        name, size = "sketch", self.n_components or _DEFAULT_COMPONENTS
        if self._kind == "landmarks":
            name, size = "leverage", self.n_components or min(_DEFAULT_COMPONENTS, rows.count)
        return map_of_kernel(name, kernel, size, seed=seed, n_jobs=self.n_jobs)

    def _copied_map(self, seed: int | None = None) -> Any:
        """Return an unfitted copy of the map that was given, with this size and seed.

        A seed or number of jobs that was set keeps its value, also in a pipeline.
        """
        feature_map = clone(self.features)
        shared = {"random_state": seed, "n_jobs": self.n_jobs}
        for name, value in feature_map.get_params(deep=True).items():
            other = shared.get(name.rpartition("__")[2])
            if value is None and other is not None:
                feature_map.set_params(**{name: other})
        if self.n_components is None:
            return feature_map
        if "n_components" not in feature_map.get_params(deep=False):
            raise InputError(
                f"n_components={self.n_components} cannot be set: {type(feature_map).__name__} has "
                "no such parameter: leave n_components at None."
            )
        return feature_map.set_params(n_components=self.n_components)

    def _settings_of_map(self) -> dict[str, str]:
        """Return everything that the fitted map depends on, as text without addresses."""
        values = {
            name: type(value) if hasattr(value, "get_params") else value
            for name, value in self.get_params(deep=True).items()
            if name.partition("__")[0] in _PARAMETERS_OF_MAP
        }
        address = re.compile(" at 0x[0-9a-f]+", re.IGNORECASE)
        return {name: address.sub("", repr(value)) for name, value in values.items()}

    def _fit_features(
        self,
        rows: TrainingRows,
        *,
        more_to_come: bool = False,
        total: int | None = None,
        moments: EntryMoments | None = None,
    ) -> tuple[TrainingRows, dict[str, Any]]:
        """Return the rows as the kernel sees them, and what was chosen and fitted, as attributes.

        Features of None stand for the exact kernel, which needs all rows. The rows may stand for
        `total` of them, whose moments are known where they are asked for.
        """
        seed = seed_from(self.random_state)
        attributes: dict[str, Any] = {
            "seed_": seed,
            "_block_bytes": BLOCK_BYTES,
            "_map_settings": self._settings_of_map(),
            "_columns": None,
            "_alpha_per_root": None,
            "_limits": None,
        }
        if self._kind == "given":
            rows, feature_map = self._fit_given_map(rows, seed, moments)
            attributes |= {"feature_map_": feature_map, "_features": Features(feature_map)}
            kernel = getattr(feature_map, "kernel_", None)
        else:
            rows, absurd = without_absurd_rows(rows, self._kernel_of_absurd_rows)
            model = self._model(rows.without(absurd) if absurd.size else rows, seed, moments)
            rows, kernel = model.prepared(rows), model.whole_kernel
            attributes["_columns"] = model.columns
            attributes |= {"_alpha_per_root": model.alpha_per_root, "_limits": model.limits}
            attributes |= self._fit_model(rows, model, seed, more_to_come, total)
        if isinstance(kernel, Kernel):
            attributes["kernel_"] = kernel
        warn_of_dominant_rows(kernel, rows)
        return rows, attributes

    def _fit_given_map(
        self, rows: TrainingRows, seed: int, moments: EntryMoments | None
    ) -> tuple[TrainingRows, Any]:
        """Fit a copy of the map that was given, without absurd rows where its kernel grows."""

        def kernel_of(others: TrainingRows) -> Any:
            return getattr(fitted_map(self._copied_map(seed), others), "kernel_", None)

        rows, _ = without_absurd_rows(rows, kernel_of)
        # Rows that are far away were named before, in the numbers that the user knows.
        with held_back(FarRowWarning):
            return rows, fitted_map(self._copied_map(seed), rows, moments)

    def _kernel_of_absurd_rows(self, others: TrainingRows) -> Kernel:
        """Return the kernel that tells whether absurd rows do harm; lines are always tried."""
        kernel = self._given_kernel()
        if kernel is None or getattr(kernel, "gamma", None) == "auto":
            return Linear()
        return kernel.resolve(others.repeated_by_weight())

    def _fit_model(
        self,
        rows: TrainingRows,
        model: Model,
        seed: int,
        more_to_come: bool,
        total: int | None = None,
    ) -> dict[str, Any]:
        """Fit the map of a model, of a kind and size that suit it, and say what was chosen."""
        attributes: dict[str, Any] = {}
        feature_map, choice = self._map_of_model(rows, model, seed, more_to_come, total)
        if choice is not None:
            attributes["choice_"] = choice
            size = choice.n_components + (rows.X.shape[1] if model.linear else 0)
            block_bytes = bytes_of_block(self.memory_budget, size, rows.X.shape[1])
            attributes["_block_bytes"] = block_bytes
        if feature_map == "exact":
            return {**attributes, "_features": None}
        if feature_map is not None:
            self._check_memory(rows, model, feature_map, more_to_come)
            with held_back(FarRowWarning):
                attributes["feature_map_"] = fitted_map(feature_map, rows)
        in_kernel = isinstance(getattr(feature_map, "kernel", None), WithLinear)
        weight = 1.0 if feature_map is None else 0.0 if in_kernel else model.linear
        return {**attributes, "_features": Features(attributes.get("feature_map_"), weight)}

    def _check_memory(
        self, rows: TrainingRows, model: Model, feature_map: Any, more_to_come: bool
    ) -> None:
        """Refuse what does not fit the memory before the first landmark is drawn."""
        landmarks = isinstance(feature_map, LeverageNystroem)
        size = int(feature_map.n_components) + (rows.X.shape[1] if model.linear else 0)
        size = min(size, rows.count) if landmarks else size
        if self._kind != "row-sketch" and not (more_to_come or is_sparse(rows.X)):
            jitter = getattr(feature_map, "jitter", None)
            precise = rows.X.dtype == np.float64 if jitter is None else needs_float64(jitter)
            self._planned(rows, size, landmarks, precise=landmarks and precise)

    def _map_of_model(
        self,
        rows: TrainingRows,
        model: Model,
        seed: int,
        more_to_come: bool,
        total: int | None = None,
    ) -> tuple[Any, Choice | None]:
        """Return an unfitted map, None if columns are features enough, or "exact"."""
        if self._kind == "auto":
            budget = Budget(self.n_components, self.time_budget, self.memory_budget)
            return chosen_features(
                rows,
                model,
                self.alpha,
                budget,
                fit_intercept=self.fit_intercept,
                more_to_come=more_to_come,
                iterates=self.solver == "cg" or (self._iterates and self.solver == "auto"),
                seed=seed,
                n_jobs=self.n_jobs,
                total=total or rows.count,
            )
        if self._kind == "exact":
            feature_map: Any = "exact"
            size = 0
        elif isinstance(model.kernel, Linear) and self._kind == "sketch":
            feature_map, size = None, int(rows.X.shape[1])
        else:
            feature_map = self._unfitted_map(model.kernel, rows, seed)
            size = int(feature_map.n_components)
        if not model.reasons:
            return feature_map, None
        return feature_map, Choice(self._kind, size, (), "as was asked for", model.reasons)
