"""Feature maps with scikit-learn's interface."""

from powersketch.feature_maps.arc_cosine import ArcCosineSketch
from powersketch.feature_maps.dot_product import DotProductSketch
from powersketch.feature_maps.gaussian import GaussianSketch
from powersketch.feature_maps.neural_tangent import NeuralTangentSketch
from powersketch.feature_maps.polynomial import PolynomialSketch

__all__ = [
    "ArcCosineSketch",
    "DotProductSketch",
    "GaussianSketch",
    "NeuralTangentSketch",
    "PolynomialSketch",
]
