"""Power series of dot-product kernels: coefficients, values and proven tails."""

from powersketch.kernels.series.closed_forms import (
    NAMED_SERIES,
    CoefficientSeries,
    exponential_series,
)
from powersketch.kernels.series.contour import callable_series
from powersketch.kernels.series.power_series import PowerSeries

__all__ = [
    "NAMED_SERIES",
    "CoefficientSeries",
    "PowerSeries",
    "callable_series",
    "exponential_series",
]
