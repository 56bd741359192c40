"""Copies of a feature map with other numbers of components, fitted to be measured."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from powersketch.accuracy.data_rows import DataRows, FittedMap, checked_map
from powersketch.accuracy.growth import LARGEST_SIZE
from powersketch.exceptions import InputTypeError
from powersketch.random_streams import RandomStreams

_TRIAL_SIZE = 256
# One half to fit to, and of the other one quarter to search with and one to confirm the result on.
_FEWEST_DIVIDED = 400
_MOST_MEASURED = 3000


@dataclass(frozen=True, eq=False)
class TrialMaps:
    """A feature map, the rows that copies of it are fitted to, and their seed."""

    sketch: Any
    rows: DataRows
    seed: int

    def draw(self, size: int) -> FittedMap:
        """Return a fitted map with this number of components."""
        trial = clone(self.sketch).set_params(n_components=size, random_state=self.seed)
        if "eps" in trial.get_params():
            trial.set_params(eps=None)
        return checked_map(trial.fit(self.rows.given))

    @property
    def has_landmarks(self) -> bool:
        """Whether features are made of the kernel's columns at some of the rows."""
        return hasattr(self.sketch, "kernel_columns")

    @property
    def sizes(self) -> tuple[int, int]:
        """How few and how many components the map can have."""
        smallest = self.sketch._smallest_size() if hasattr(self.sketch, "_smallest_size") else 1
        largest = min(LARGEST_SIZE, self.rows.count) if self.has_landmarks else LARGEST_SIZE
        internal = self.sketch.get_params().get("internal_components")
        if isinstance(internal, numbers.Integral):
            largest = min(largest, int(internal))
        # Where no size is allowed, the map says so when it is fitted with its smallest one.
        return smallest, max(smallest, largest)

    @property
    def first_size(self) -> int:
        """The size of a first map, from whose errors others are predicted."""
        smallest, largest = self.sizes
        return min(max(_TRIAL_SIZE, smallest), largest)


def check_is_map(sketch: Any) -> None:
    """Refuse what has no number of components."""
    if not (hasattr(sketch, "get_params") and "n_components" in sketch.get_params()):
        raise InputTypeError(
            f"sketch is a {type(sketch).__name__}; allowed is a feature map with the parameter "
            "n_components: pass for instance GaussianSketch()."
        )


def divided(rows: DataRows, streams: RandomStreams) -> tuple[DataRows, DataRows]:
    """Return the rows to measure on and those to fit to: others, if there are many.

    A map that takes landmarks from its rows, or suits itself to them, has smaller errors there.
    """
    if rows.count < _FEWEST_DIVIDED:
        return rows, rows
    count = min(rows.count // 2, _MOST_MEASURED)
    measured = np.sort(streams.sample("measured", rows.count, count))
    return rows.take(measured), rows.take(np.delete(np.arange(rows.count), measured))
