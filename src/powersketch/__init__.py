"""Explicit feature maps for polynomial-like kernels of any degree."""

from powersketch import kernels
from powersketch.feature_maps import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)

__all__ = [
    "ArcCosineSketch",
    "DotProductSketch",
    "GaussianSketch",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "__version__",
    "kernels",
]

__version__ = "0.1.0"
