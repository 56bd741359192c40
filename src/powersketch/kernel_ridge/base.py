"""What the regressor and the classifier share: parameters, fitting, fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from powersketch.arrays import Float64, Real, Rows, Vector
from powersketch.exceptions import InputError
from powersketch.kernel_ridge.blockwise import BlockwiseRidge
from powersketch.kernel_ridge.columns import Columns
from powersketch.kernel_ridge.dual import (
    KernelSum,
)
from powersketch.kernel_ridge.features import (
    Features,
    feature_blocks,
    row_parts,
)
from powersketch.kernel_ridge.statistics import GramSpectrum, RidgeSolution, RidgeStatistics
from powersketch.kernel_ridge.training_rows import (
    Reservoir,
    row_blocks,
)
from powersketch.validation import REAL_ROWS, sound_array


class SketchedRidge(BlockwiseRidge):
    """Fits targets of any kind; subclasses say what the targets are and what becomes of them."""

    feature_map_: Any
    _features: Features | None
    _sample: Reservoir
    _solution: RidgeSolution | None
    _kernel_sum: KernelSum | None
    _block_bytes: int

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
        return self._statistics("statistics_")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: no matrix of the size of the Gram matrix, as a rule.

        A model that was given blocks of rows keeps its statistics, as more of them may come.
        """
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_posterior", None)
        state.pop("_kept_rows", None)
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
        for name in ("statistics_", "_kept_rows", "_sample", "_left_out"):
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
            solution = self._solution_of(self.statistics_, left_out, vars(self))
            solved = self._from_solution(solution, self.statistics_, left_out, vars(self))
            self.__dict__.update(solved)
        assert self._solution is not None
        return self._solution

    def _path(self, name: str) -> Vector:
        values = getattr(self._solved(), name)
        if values is None:
            raise AttributeError(f"{name}_ exists only if alpha is 'gcv' or 'loo'.")
        return np.asarray(values)

    def _statistics(self, name: str) -> RidgeStatistics:
        check_is_fitted(self)
        try:
            self._sum_kept_rows()
        except InputError as error:
            raise AttributeError(f"{name} needs sums: {error}") from error
        statistics = vars(self).get("statistics_")
        if not isinstance(statistics, RidgeStatistics):
            raise AttributeError(self._missing_statistics(name))
        return statistics


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
