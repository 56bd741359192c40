"""Explicit feature maps for polynomial-like kernels of any degree."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from powersketch import kernels
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
    "__version__",
    "kernels",
]

__version__ = "0.1.0"

# A name's module is imported when the name is first used, so that importing the package is quick.
_MODULES = {
    "ArcCosineSketch": "feature_maps.arc_cosine",
    "DotProductSketch": "feature_maps.dot_product",
    "GaussianSketch": "feature_maps.gaussian",
    "NeuralTangentSketch": "feature_maps.neural_tangent",
    "PolynomialSketch": "feature_maps.polynomial",
}


def __getattr__(name: str) -> Any:
    if name == "kernels":
        return importlib.import_module("powersketch.kernels")
    if name not in _MODULES:
        raise AttributeError(f"module 'powersketch' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"powersketch.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
