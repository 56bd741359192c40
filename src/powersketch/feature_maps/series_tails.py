"""The ways to make an infinite series finite, by name."""

from __future__ import annotations

from powersketch.feature_maps.finite_series import FiniteSeries, sampled_series, truncated_series
from powersketch.feature_maps.series_fit import fitted_series
from powersketch.kernels.series import PowerSeries
from powersketch.parameters import checked_positive, one_of
from powersketch.random_streams import RandomStreams

_TAILS = ("fit", "truncate", "sample")


def check_tail(tail: str, tail_eps: float) -> None:
    """Refuse unknown names, and accuracies that are no positive numbers."""
    one_of("tail", tail, _TAILS)
    checked_positive("tail_eps", tail_eps, remedy="1e-3 is the default")


def unused_tail_options(tail: str) -> dict[str, str]:
    """Return the options that a way has no use for, and why."""
    return (
        {"tail_eps": "with tail='fit', which is as accurate as it can be"} if tail == "fit" else {}
    )


def finite_series_of(
    series: PowerSeries,
    radius: float,
    tail: str,
    eps: float,
    rows: int,
    streams: RandomStreams,
    *,
    high_degrees: bool = True,
) -> FiniteSeries:
    """Return the finite series for |t| ≤ radius; `high_degrees` allows a fit to use them."""
    if tail == "fit":
        return fitted_series(series, radius, high_degrees)
    if tail == "sample":
        return sampled_series(series, radius, rows, eps, streams)
    return truncated_series(series, radius, eps)
