"""Explicit feature maps for polynomial-like kernels of any degree, and solvers that use them."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from powersketch import accuracy, kernels
    from powersketch.comparison import compare
    from powersketch.feature_maps.arc_cosine import ArcCosineSketch
    from powersketch.feature_maps.dot_product import DotProductSketch
    from powersketch.feature_maps.gaussian import GaussianSketch
    from powersketch.feature_maps.neural_tangent import NeuralTangentSketch
    from powersketch.feature_maps.polynomial import PolynomialSketch
    from powersketch.kernel_ridge.classifier import SketchedKernelRidgeClassifier
    from powersketch.kernel_ridge.regressor import SketchedKernelRidge
    from powersketch.kernel_systems.preconditioner import SketchPreconditioner
    from powersketch.kernel_systems.solve import solve_kernel_system
    from powersketch.nystroem import LeverageNystroem

__all__ = [
    "ArcCosineSketch",
    "DotProductSketch",
    "GaussianSketch",
    "LeverageNystroem",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "SketchPreconditioner",
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "__version__",
    "accuracy",
    "compare",
    "kernels",
    "solve_kernel_system",
]

__version__ = "0.1.0"

# A name's module is imported when the name is first used, so that importing the package is quick.
_MODULES = {
    "ArcCosineSketch": "feature_maps.arc_cosine",
    "DotProductSketch": "feature_maps.dot_product",
    "GaussianSketch": "feature_maps.gaussian",
    "LeverageNystroem": "nystroem",
    "NeuralTangentSketch": "feature_maps.neural_tangent",
    "PolynomialSketch": "feature_maps.polynomial",
    "SketchPreconditioner": "kernel_systems.preconditioner",
    "SketchedKernelRidge": "kernel_ridge.regressor",
    "SketchedKernelRidgeClassifier": "kernel_ridge.classifier",
    "accuracy": "accuracy",
    "compare": "comparison",
    "kernel_ridge": "kernel_ridge",
    "kernels": "kernels",
    "solve_kernel_system": "kernel_systems.solve",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    value = module if _MODULES[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
