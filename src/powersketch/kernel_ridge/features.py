"""The features of a fit: the map that was asked for, its features in blocks, and sums over them.

The features of a row by landmarks are its kernel values there times R⁻¹. Sums of products of values
turn into those of features by R⁻¹ from both sides, which takes as much time as the features of a
few thousand rows. Errors of rounding grow by it, so that it is done where R is well conditioned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from powersketch.arrays import Float64, Real, Rows, is_sparse
from powersketch.exceptions import InputError, InputTypeError
from powersketch.execution import Progress, thread_count
from powersketch.feature_maps import FeatureMap, map_for
from powersketch.kernel_ridge.path import checked_alphas
from powersketch.kernel_ridge.statistics import (
    Blocks,
    RidgeStatistics,
    mirror_upper_triangle,
    statistics_of_blocks,
)
from powersketch.kernel_ridge.training_rows import BLOCK_BYTES, TrainingRows, row_blocks
from powersketch.kernels import Kernel, as_kernel
from powersketch.linalg import TriangularRows
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
from powersketch.random_streams import RandomStreams

_DEFAULT_COMPONENTS = 256
# Of the sums, relative to the trace of the features' Gram matrix; as good as sums of features are.
_LARGEST_ROUNDING_ERROR = 1e-10
_PROBES = 16
# How landmarks may be drawn, in the words of LeverageNystroem; the cheaper way first.
LANDMARKS = ("uniform", "leverage")


_KINDS = ("auto", "sketch", "landmarks", "exact", "row-sketch")
NEED_ALL_ROWS = ("exact", "row-sketch")
_CRITERIA = ("gcv", "loo")
_SOLVERS = ("gram",)
_PARAMETERS_OF_MAP = ("kernel", "kernel_params", "features", "n_components", "random_state")


class RidgeSettings(BaseEstimator):
    """The parameters that both estimators have: their checks, and the features they ask for."""

    def __init__(
        self,
        kernel: str | Kernel = "gaussian",
        *,
        kernel_params: dict[str, Any] | None = None,
        features: Any = "sketch",
        n_components: int | None = None,
        alpha: float | str = 1.0,
        alphas: ArrayLike | None = None,
        solver: str = "gram",
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

    def _check_parameters(self) -> None:
        """Refuse bad parameters, and those without effect, before any data is touched."""
        kind, unused = self._kind, self._unused_options()
        self._check_features()
        self._check_penalty()
        one_of("solver", self.solver, _SOLVERS)
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

    def _check_penalty(self) -> None:
        kind = self._kind
        checked_alphas(self.alphas)
        if not isinstance(self.alpha, str):
            checked_alpha(self.alpha)
        elif kind in NEED_ALL_ROWS:
            raise InputError(
                f"alpha={self.alpha!r} cannot be used with features={self.features!r}: give a "
                "number for alpha, or use features='sketch'."
            )
        else:
            one_of("alpha", self.alpha, _CRITERIA)
        if kind == "row-sketch":
            checked_positive("alpha", self.alpha, remedy="a row sketch needs a penalty")

    def _unused_options(self) -> dict[str, str]:
        """Return what has no effect on this fit, and why; a careful user would expect one."""
        kind, here = self._kind, f"with features={self.features!r}"
        unused = {}
        if not isinstance(self.alpha, str):
            unused["alphas"] = f"beside alpha={self.alpha!r}, which is not to be chosen"
        if kind != "row-sketch":
            unused["eps"] = here
        if kind != "exact":
            unused["tol"] = here
        else:
            unused["n_components"] = f"{here}, which needs no feature map"
        if kind == "given":
            unused |= dict.fromkeys(("kernel", "kernel_params"), f"{here}, which has its own")
        if kind in NEED_ALL_ROWS:
            unused["time_budget"] = here
        elif kind != "auto":
            why = f"{here}: only 'auto' keeps to budgets"
            unused |= dict.fromkeys(("time_budget", "memory_budget"), why)
        elif self.n_components is not None:
            why = f"beside n_components={self.n_components}, which is the size"
            unused |= dict.fromkeys(("time_budget", "memory_budget"), why)
        return unused

    def _check_partial(self) -> None:
        """Refuse what needs all rows at once."""
        if self._kind in NEED_ALL_ROWS:
            raise InputError(
                f"partial_fit cannot be used with features={self.features!r}, which needs all rows "
                "at once: use 'sketch', 'landmarks', 'auto' or a feature map."
            )
        if self.alpha == "loo":
            raise InputError(
                "partial_fit cannot leave out rows that it no longer has, got alpha='loo': "
                "use alpha='gcv' or a number."
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
        if kind in ("sketch", "row-sketch") and not has_sketch(kernel):
            raise InputTypeError(
                f"features={self.features!r} needs a sketch of the kernel, and there is none of "
                f"{kernel!r}: use features='landmarks', 'exact' or 'auto'."
            )

    def _given_kernel(self) -> Kernel:
        if not self.kernel_params:
            return as_kernel(self.kernel)
        try:
            return as_kernel(self.kernel, None, **self.kernel_params)
        except (InputError, TypeError) as error:
            kind = InputTypeError if isinstance(error, TypeError) else InputError
            raise kind(f"kernel_params={self.kernel_params!r}: {error}") from error

    def _kernel_for(self, rows: TrainingRows, seed: int, without: Any = None) -> Any:
        """Return the kernel with what it takes from the rows; that of a given map, if known."""
        if self._kind != "given":
            return self._given_kernel().resolve(rows.repeated_by_weight(without))
        return getattr(fitted_map(self._unfitted_map(None, rows, seed), rows), "kernel_", None)

    def _unfitted_map(self, kernel: Any, rows: TrainingRows, seed: int) -> Any:
        if self._kind == "given":
            return self._copied_map(seed)
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


def has_sketch(kernel: Kernel) -> bool:
    """Tell whether there is a feature map for the kernel that needs no landmarks."""
    try:
        map_for(kernel, _DEFAULT_COMPONENTS)
    except InputTypeError:
        return False
    return True


def map_of_kernel(name: str, kernel: Kernel, size: int, *, seed: int, n_jobs: int | None) -> Any:
    """Return an unfitted map: a "sketch", or landmarks drawn as "uniform" or by "leverage"."""
    if name == "sketch":
        return map_for(kernel, size, random_state=seed, n_jobs=n_jobs)
    return LeverageNystroem(
        kernel, n_components=size, landmarks=name, random_state=seed, n_jobs=n_jobs
    )


def fitted_map(feature_map: Any, rows: TrainingRows) -> Any:
    """Fit a map; rows are repeated by weight, but not for landmarks: it would waste features."""
    repeats = not isinstance(feature_map, LeverageNystroem)
    return feature_map.fit(rows.repeated_by_weight() if repeats else rows.X, None)


def features_of(feature_map: Any, X: Rows) -> Real:
    """Return the features of rows as a dense array, whatever the map returns."""
    Z = feature_map.transform(X)
    return np.asarray(Z.toarray() if is_sparse(Z) else Z)


def map_blocks(feature_map: Any, X: Rows, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Yield slices of the rows such that the features of each stay small."""
    if isinstance(feature_map, FeatureMap | LeverageNystroem):
        size = feature_map.n_components_
    else:
        # Others tell by the features of one row, of which those of this package might warn.
        size = int(features_of(feature_map, X[:1]).shape[1])
    return row_blocks(X.shape[0], size, block_bytes)


def feature_blocks(
    feature_map: Any,
    rows: TrainingRows,
    block_bytes: int = BLOCK_BYTES,
    *,
    progress: Progress | None = None,
    values: Callable[[Rows], Real] | None = None,
) -> Blocks:
    """Yield features, or other values, with targets and weights of one block after the other."""
    for part in map_blocks(feature_map, rows.X, block_bytes):
        block = rows[part]
        Z = features_of(feature_map, block.X) if values is None else values(block.X)
        yield Z, block.targets, block.weights
        if progress is not None:
            progress.update(part.stop)


def feature_statistics(
    feature_map: Any, rows: TrainingRows, block_bytes: int, progress: Progress
) -> RidgeStatistics:
    """Return the statistics of the features; those of landmarks from kernel values, if possible."""
    if isinstance(feature_map, LeverageNystroem):
        solver = TriangularRows.of(feature_map.factor_)
        if well_conditioned(solver):
            values = feature_map.kernel_columns()
            sums = feature_blocks(feature_map, rows, block_bytes, progress=progress, values=values)
            return solved_statistics(statistics_of_blocks(sums), solver)
    return statistics_of_blocks(feature_blocks(feature_map, rows, block_bytes, progress=progress))


def solved_statistics(values: RidgeStatistics, solver: TriangularRows) -> RidgeStatistics:
    """Turn the statistics of kernel values at landmarks into those of features."""

    def solved(rows: Float64) -> Float64:
        rows = np.array(rows, order="C")
        solver.solve(rows)
        return rows

    # The matrix is symmetric: its transpose, which lies in memory row by row, is the same.
    gram = values.gram.T.copy()
    solver.solve_both_sides(gram)
    mirror_upper_triangle(gram)
    cross = values.cross.reshape(values.cross.shape[0], -1)
    return replace(
        values,
        feature_mean=solved(values.feature_mean[np.newaxis])[0],
        gram=gram.T,
        cross=solved(cross.T).T.reshape(values.cross.shape),
    )


def well_conditioned(solver: TriangularRows) -> bool:
    """Tell whether R⁻¹ from both sides leaves rounding errors small.

    An error of relative size ε in every entry of a Gram matrix with diagonal g becomes one of size
    up to ε g tr(K⁻¹) in that of the features, whose trace is that of K. The trace of the inverse is
    estimated from its products with normal vectors.
    """
    size = solver.factor.shape[0]
    normal = RandomStreams(0, "kernel-ridge/conditioning").normal("probes", _PROBES * size)
    rows = normal.reshape(_PROBES, size)
    solver.solve(rows)
    trace_of_inverse = float(np.mean(np.einsum("ij,ij->i", rows, rows)))
    diagonal = np.einsum("ij,ij->i", solver.factor, solver.factor)
    rounding = float(np.finfo(np.float64).eps) * float(diagonal.max()) * trace_of_inverse
    return bool(rounding <= _LARGEST_ROUNDING_ERROR)
