"""What estimators hand up when they are given Dask collections."""

from __future__ import annotations

import inspect
from typing import Any

from powersketch.distributed.lazy import rowwise
from powersketch.distributed.maps import fit_map
from powersketch.distributed.ridge import fit_metric, fit_ridge
from powersketch.distributed.systems import solve_blocks
from powersketch.distributed.tables import fit_table, transformed_table
from powersketch.engines import is_elsewhere
from powersketch.exceptions import InputTypeError
from powersketch.feature_maps import FeatureMap
from powersketch.kernel_ridge import LearnedMetric
from powersketch.nystroem import LeverageNystroem
from powersketch.tables import TablePreparation

_ROWWISE = ("transform", "predict", "predict_proba", "decision_function")


class DaskEngine:
    """Runs methods of estimators for Dask arrays, DataFrames and Series."""

    def run(
        self, method: str, estimator: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> Any:
        """Do what the estimator's method of this name does with rows in memory."""
        # By the class: the method of the object would come back here.
        signature = inspect.signature(getattr(type(estimator), method))
        arguments = dict(signature.bind(estimator, *given, **named).arguments)
        arguments.pop("self", None)
        X = arguments.pop("X", None)
        if not is_elsewhere(X):
            raise InputTypeError(
                f"X is a {type(X).__name__} where another argument is a Dask collection: give X "
                "as a Dask array or DataFrame, too, or the other one by its compute()."
            )
        if isinstance(estimator, TablePreparation):
            return fit_table(estimator, X) if method == "fit" else transformed_table(estimator, X)
        if method in _ROWWISE:
            return rowwise(method, estimator, X, arguments)
        if isinstance(estimator, FeatureMap | LeverageNystroem):
            return fit_map(estimator, X)
        if isinstance(estimator, LearnedMetric):
            return fit_metric(estimator, X, **arguments)
        return fit_ridge(estimator, X, **arguments)

    def solve(self, **given: Any) -> Any:
        """Do what `solve_kernel_system` does with rows in memory, given all its parameters."""
        return solve_blocks(**given)


ENGINE = DaskEngine()
