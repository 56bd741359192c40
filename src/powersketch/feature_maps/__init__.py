"""Feature maps with scikit-learn's interface, one file for each."""

from powersketch.feature_maps.arc_cosine import ArcCosineSketch
from powersketch.feature_maps.automatic_size import checked_size
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.dot_product import DotProductSketch
from powersketch.feature_maps.gaussian import GaussianSketch
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
from powersketch.feature_maps.weighted_draws import thinned, weighted_sample

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
    "outlying",
    "thinned",
    "warn_of_far_rows",
    "weighted_sample",
    "without_rows",
]
