"""Explicit feature maps for polynomial-like kernels of any degree, and solvers that use them."""

from typing import TYPE_CHECKING

from powersketch.lazy_names import loader_of_names

if TYPE_CHECKING:
    from powersketch import accuracy, kernels, solvers
    from powersketch.comparison import compare
    from powersketch.feature_maps.arc_cosine import ArcCosineSketch
    from powersketch.feature_maps.dot_product import DotProductSketch
    from powersketch.feature_maps.gaussian import GaussianSketch
    from powersketch.feature_maps.leverage_nystroem import LeverageNystroem
    from powersketch.feature_maps.neural_tangent import NeuralTangentSketch
    from powersketch.feature_maps.polynomial import PolynomialSketch
    from powersketch.kernel_ridge.classifier import SketchedKernelRidgeClassifier
    from powersketch.kernel_ridge.regressor import SketchedKernelRidge
    from powersketch.kernel_systems.preconditioner import SketchPreconditioner
    from powersketch.kernel_systems.solve import solve_kernel_system

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
    "solvers",
]

__version__ = "0.1.0"

# A name's module is imported when the name is first used, so that importing the package is quick.
_MODULES = {
    "ArcCosineSketch": "feature_maps.arc_cosine",
    "DotProductSketch": "feature_maps.dot_product",
    "GaussianSketch": "feature_maps.gaussian",
    "LeverageNystroem": "feature_maps.leverage_nystroem",
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
    "solvers": "solvers",
}

__getattr__ = loader_of_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
