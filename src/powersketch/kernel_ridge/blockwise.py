"""Models of rows that come in blocks: the first one decides on the features, all are summed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import validate_data

from powersketch.arrays import Float64, Rows, Vector
from powersketch.exceptions import InputError
from powersketch.kernel_ridge.choice import (
    Choice,
)
from powersketch.kernel_ridge.columns import Columns
from powersketch.kernel_ridge.features import Features, feature_blocks
from powersketch.kernel_ridge.fitting import ATTRIBUTES_OF_MAP, FITTED, RidgeFits
from powersketch.kernel_ridge.path import LEFT_OUT_ROWS, left_out_predictions
from powersketch.kernel_ridge.pilot import without_copies
from powersketch.kernel_ridge.search import Model, widened
from powersketch.kernel_ridge.statistics import RidgeStatistics
from powersketch.kernel_ridge.training_rows import (
    TrainingRows,
    gathered,
    warn_of_dominant_rows,
    without_absurd_rows,
)
from powersketch.kernels import Kernel, WithLinear

# Batches are gathered up to this many rows before anything is chosen.
FIRST_ROWS = 20_000


class BlockwiseRidge(RidgeFits):
    """Adds blocks of rows to a fit."""

    fit: Callable[..., Any]
    choice_: Choice
    X_fit_: Rows
    _fit_targets: Float64
    _fit_weights: Vector | None
    _columns: Columns | None
    _map_settings: dict[str, str]

    def _add_rows(self, rows: TrainingRows, given: Any, **attributes: Any) -> None:
        """Choose and fit the map on the first block, and add the statistics of every block."""
        self._sum_kept_rows()
        if self._goes_on:
            self._refuse_another_map()
            validate_data(self, given, reset=False, skip_check_array=True)
            before = vars(self) if "statistics_" in vars(self) else self._exact_fit_on_features()
            attributes |= {n: before[n] for n in ATTRIBUTES_OF_MAP if n in before}
            kernel = attributes.get("kernel_")
            rows, _ = without_absurd_rows(rows, lambda _: kernel)
            rows = self._prepared(rows)
            warn_of_dominant_rows(kernel, rows)
            known: RidgeStatistics = before["statistics_"]
            sums = known.merge(self._sums(rows, attributes, before=known.rounding))
            sample = before.get("_sample") or self._reservoir(attributes["seed_"])
            if attributes["_limits"] is not None:
                attributes["_limits"] = widened(attributes["_limits"], rows.targets)
        else:
            rows, fitted = self._fit_features(rows, more_to_come=True)
            attributes |= fitted
            sums = self._sums(rows, attributes, before=0.0)
            sample = self._reservoir(fitted["seed_"])
            validate_data(self, given, skip_check_array=True)
        attributes |= {"statistics_": sums, "_sample": sample.with_block(rows, LEFT_OUT_ROWS)}
        self._store({**attributes, "_statistics_kept": True, "_solution": None})

    def _sum_kept_rows(self) -> None:
        """Compute the sums of rows that "auto" solved by iterations, now that they are needed."""
        rows: TrainingRows | None = vars(self).get("_kept_rows")
        if rows is None:
            return
        features: Features = vars(self)["_features"]
        self._check_memory_of_sums(rows, features)
        # The alpha that was found may be smaller than what sums in float32 are good for.
        sums = self._sums(rows, vars(self), in_float64=isinstance(self.alpha, str))
        sample = self._reservoir(vars(self)["seed_"])
        sample = sample.with_block(without_copies(rows), LEFT_OUT_ROWS)
        assert sample.rows is not None
        found: dict[str, Any] = {"statistics_": sums, "_sample": sample}
        if self._leaves_out and not self._uses_left_out:
            # Rows that iterations held out do not tell how much each counts in the fit.
            blocks = list(feature_blocks(features, sample.rows, vars(self)["_block_bytes"]))
            left_out = left_out_predictions(sums, vars(self)["_solution"], blocks)
            found |= self._from_left_out(left_out)
        self.__dict__.update(found)
        del self.__dict__["_kept_rows"]

    def _exact_fit_on_features(self) -> dict[str, Any]:
        """Return what a fit with the exact kernel is on features, to which blocks can be added."""
        rows = TrainingRows(self.X_fit_, self._fit_targets, self._fit_weights)
        attributes = {name: vars(self)[name] for name in ATTRIBUTES_OF_MAP if name in vars(self)}
        kernel: Kernel = attributes["kernel_"]
        linear = 0.0
        if isinstance(kernel, WithLinear):
            linear, kernel = float(kernel.weight), kernel.kernel
        reasons = self.choice_.model if "choice_" in attributes else ()
        model = Model(self._columns, kernel, linear, reasons=reasons)
        attributes |= self._fit_model(rows, model, attributes["seed_"], more_to_come=True)
        sample = self._reservoir(attributes["seed_"]).with_block(rows, LEFT_OUT_ROWS)
        sums = self._sums(rows, attributes, before=0.0)
        return {**attributes, "statistics_": sums, "_sample": sample}

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
        self._store({name: value for name, value in vars(model).items() if name in FITTED})
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

    def _missing_statistics(self, name: str) -> str:
        """Return why something cannot be had that follows from the statistics, and a remedy."""
        fitted = vars(self)
        if "solver_result_" in fitted and not {"dual_coef_", "_statistics_kept"} & fitted.keys():
            return (
                f"{name} needs sums, and this fit was solved by iterations, which keep none: use "
                "solver='gram', and fit again."
            )
        if "_statistics_kept" not in fitted:
            return (
                f"{name} exists only after a fit on features: use features='sketch', 'landmarks' "
                "or 'auto', and fit again."
            )
        return (
            f"{name} needs statistics_, which a pickle and a compact file leave out to be small: "
            "use powersketch.save(model, path, compact=False), which keeps them."
        )
