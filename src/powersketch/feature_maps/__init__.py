"""Feature maps with scikit-learn's interface, one file for each."""

from powersketch.feature_maps.arc_cosine import ArcCosineSketch
from powersketch.feature_maps.base import FeatureMap, checked_size
from powersketch.feature_maps.dot_product import DotProductSketch
from powersketch.feature_maps.gaussian import GaussianSketch
from powersketch.feature_maps.kernel_maps import map_for
from powersketch.feature_maps.neural_tangent import NeuralTangentSketch
from powersketch.feature_maps.outliers import (
    DO_NOT_COUNT,
    absurd_distances,
    absurd_rows,
    capped,
    central_row,
    outlying,
    warn_of_far_rows,
    without_rows,
)
from powersketch.feature_maps.polynomial import PolynomialSketch

__all__ = [
    "DO_NOT_COUNT",
    "ArcCosineSketch",
    "DotProductSketch",
    "FeatureMap",
    "GaussianSketch",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "absurd_distances",
    "absurd_rows",
    "capped",
    "central_row",
    "checked_size",
    "map_for",
    "outlying",
    "warn_of_far_rows",
    "without_rows",
]
