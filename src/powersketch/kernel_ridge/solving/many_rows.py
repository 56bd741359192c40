"""Fits of more rows than choices look at: a sample stands for all, in memory or elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Vector
from powersketch.feature_maps import (
    ChoiceRows,
    TypicalRows,
    warn_of_far_rows,
)
from powersketch.kernel_ridge.rows.columns import Columns
from powersketch.kernel_ridge.rows.training_rows import LEFT_OUT, TrainingRows, grows_with_rows
from powersketch.kernel_ridge.solving.features import Features, FeatureSums
from powersketch.kernel_ridge.solving.statistics import RidgeStatistics
from powersketch.kernels import EntryMoments


class FeatureFit(NamedTuple):
    """What a sample has decided, as far as products with the features of all rows need it."""

    preparation: RowPreparation
    features: Features
    sample: TrainingRows
    fit_intercept: bool
    seed: int


class ManyRows(Protocol):
    """Rows that are elsewhere: some of them that stand for all, and sums over all of them."""

    sample: TrainingRows
    total: int
    target_range: Float64
    moments: EntryMoments | None

    def sums(
        self, preparation: RowPreparation, sums: FeatureSums, block_bytes: int
    ) -> RidgeStatistics:
        """Return the sums over the features of all rows, before they are finished."""

    def products(self, fit: FeatureFit) -> Any:
        """Return products with the features of all rows, as `BlockProducts` are in memory.

        The rows that it holds out are among those of the sample.
        """


def sample_of(rows: TrainingRows, chosen: ChoiceRows) -> TrainingRows:
    """Return those of the rows that choices are made from."""
    numbers = chosen.numbers
    places = numbers if rows.numbers is None else np.searchsorted(rows.numbers, numbers)
    return replace(rows[places], numbers=numbers)


class FarRows(NamedTuple):
    """Rows that were left out of a fit: their numbers, and how far away they are."""

    numbers: NDArray[np.intp]
    ratios: Vector

    def warn(self) -> None:
        """Name them, if there are any."""
        if self.numbers.size:
            warn_of_far_rows(self.numbers, self.ratios, LEFT_OUT)


@dataclass(frozen=True, eq=False)
class RowPreparation:
    """What is done to all rows once a model was chosen on some.

    Absurd rows are left out where the kernel grows with its rows, as `typical` ones tell; columns
    are prepared as the kernel sees them.
    """

    columns: Columns | None
    typical: TypicalRows | None

    @classmethod
    def of(cls, sample: TrainingRows, columns: Columns | None, kernel: Any) -> Self:
        """Learn from rows of a sample, as they were given, and the kernel of the model."""
        prepared = sample.X if columns is None else columns.transform(sample.X)
        grows = grows_with_rows(kernel, prepared)
        return cls(columns, TypicalRows.of(sample.X) if grows else None)

    def prepared(self, rows: TrainingRows) -> tuple[TrainingRows, FarRows]:
        """Return the rows as the kernel sees them, and which were left out."""
        far = FarRows(np.empty(0, np.intp), np.empty(0))
        if self.typical is not None:
            places, ratios = self.typical.absurd(rows.X)
            numbers = places if rows.numbers is None else rows.numbers[places].astype(np.intp)
            far = FarRows(numbers, ratios)
            rows = rows.without(places) if places.size else rows
        if self.columns is not None:
            rows = replace(rows, X=self.columns.transform(rows.X))
        return rows, far
