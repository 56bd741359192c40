"""Power series of dot-product kernels: coefficients, values and proven tails."""

from powersketch.kernels.series.choice import as_power_series
from powersketch.kernels.series.contour import callable_series
from powersketch.kernels.series.finite import CoefficientSeries
from powersketch.kernels.series.named import NAMED_SERIES, exponential_series
from powersketch.kernels.series.neural import arc_cosine_series, neural_tangent_series
from powersketch.kernels.series.power_series import PowerSeries

__all__ = [
    "NAMED_SERIES",
    "CoefficientSeries",
    "PowerSeries",
    "arc_cosine_series",
    "as_power_series",
    "callable_series",
    "exponential_series",
    "neural_tangent_series",
]
