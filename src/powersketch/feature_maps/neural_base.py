"""What the feature maps of neural kernels share: their parameters and fitted attributes."""

from __future__ import annotations

from typing import Any

from powersketch.arrays import Rows
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.dot_product import series_attributes
from powersketch.feature_maps.finite_series import FiniteSeries
from powersketch.feature_maps.neural_maps import SeriesOptions
from powersketch.feature_maps.row_maps import RowMap
from powersketch.feature_maps.series_choice import EXPANSIONS
from powersketch.feature_maps.series_tails import check_tail, unused_tail_options
from powersketch.parameters import one_of
from powersketch.powers import POWER_METHODS

_UNUSED_BY_NEURONS = ("tail", "tail_eps", "expansion", "norm_preserving", "internal_components")
_METHODS = (*POWER_METHODS, "random")


class NeuralFeatureMap(FeatureMap):
    """A feature map of a kernel that is, on rows of norm one, a power series of their cosine."""

    method: str
    expansion: str
    tail: str
    tail_eps: float

    def _check_series_parameters(self) -> None:
        one_of("method", self.method, _METHODS)
        one_of("expansion", self.expansion, EXPANSIONS)
        check_tail(self.tail, self.tail_eps)

    def _unused_options(self) -> dict[str, str]:
        if self.method != "random":
            return super()._unused_options() | unused_tail_options(self.tail)
        why = "with method='random', which takes the activations of neurons"
        return dict.fromkeys(_UNUSED_BY_NEURONS, why)

    def _series_options(self, X: Rows, size: int) -> SeriesOptions:
        return SeriesOptions(
            self.tail,
            float(self.tail_eps),
            self.expansion,
            self._sketch_options(X, size),
        )

    @staticmethod
    def _attributes(row_map: RowMap, finite: FiniteSeries | None) -> dict[str, Any]:
        """Return the fitted attributes; there is no series where there are layers or neurons."""
        told = series_attributes(finite) if finite else dict.fromkeys(_SERIES_ATTRIBUTES)
        return {"expansion_": row_map.name, **told}


_SERIES_ATTRIBUTES = ("degrees_", "coefficients_", "tail_mass_", "series_error_bound_")
