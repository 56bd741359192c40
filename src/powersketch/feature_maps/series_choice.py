"""Chooses how the powers of a series are taken: of the rows themselves or around the mean."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from powersketch.arrays import Real, Rows
from powersketch.feature_maps.scale_free import rows_near_one
from powersketch.feature_maps.selection import best_map, pilot_rows
from powersketch.feature_maps.series_expansion import (
    MeanSeriesExpansion,
    SeriesExpansion,
    SeriesKernel,
)
from powersketch.feature_maps.stacked import StackedMap
from powersketch.random_streams import RandomStreams

EXPANSIONS = ("auto", "mean", "none")


def series_map(
    streams: RandomStreams,
    X: Rows,
    size: int,
    kernel: SeriesKernel,
    exact: Callable[[Rows], Real],
    expansion: str,
    options: dict[str, Any],
) -> StackedMap:
    """Draw the features of a series; "auto" measures both expansions against the exact kernel."""
    pilot = pilot_rows(X, streams)
    if kernel.homogeneity == 0:
        pilot = rows_near_one(pilot)
    direct = StackedMap.draw(
        streams.child("none"), SeriesExpansion(kernel, X.shape[1]), pilot, size, **options
    )
    if expansion == "none" or (expansion == "auto" and not options["preserve_norms"]):
        return direct
    around_mean = MeanSeriesExpansion.of_pilot(kernel, pilot, size)
    if around_mean is None or around_mean.constants + 2 > size:
        return direct
    mean = StackedMap.draw(streams.child("mean"), around_mean, pilot, size, **options)
    mean = dataclasses.replace(mean, safe=direct if options["preserve_norms"] else None)
    if expansion == "mean":
        return mean
    return best_map([direct, mean], pilot, size, exact)
