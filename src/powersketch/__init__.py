"""Explicit feature maps for polynomial-like kernels of any degree, and solvers that use them."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from powersketch import accuracy, kernels
    from powersketch.comparison import compare
    from powersketch.feature_maps import (
        ArcCosineSketch,
        DotProductSketch,
        GaussianSketch,
        NeuralTangentSketch,
        PolynomialSketch,
    )
    from powersketch.kernel_ridge import (
        LearnedMetric,
        SketchedKernelRidge,
        SketchedKernelRidgeClassifier,
    )
    from powersketch.kernel_systems import SketchPreconditioner, solve_kernel_system
    from powersketch.nystroem import LeverageNystroem
    from powersketch.storage import load, save
    from powersketch.tables import TablePreparation

__all__ = [
    "ArcCosineSketch",
    "DotProductSketch",
    "GaussianSketch",
    "LearnedMetric",
    "LeverageNystroem",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "SketchPreconditioner",
    "SketchedKernelRidge",
    "SketchedKernelRidgeClassifier",
    "TablePreparation",
    "__version__",
    "accuracy",
    "compare",
    "kernels",
    "load",
    "save",
    "solve_kernel_system",
]

__version__ = "0.1.0"

# A name's room is imported when the name is first used, so that importing the package is quick.
_ROOMS = {
    "ArcCosineSketch": "feature_maps",
    "DotProductSketch": "feature_maps",
    "GaussianSketch": "feature_maps",
    "LearnedMetric": "kernel_ridge",
    "LeverageNystroem": "nystroem",
    "NeuralTangentSketch": "feature_maps",
    "PolynomialSketch": "feature_maps",
    "SketchPreconditioner": "kernel_systems",
    "SketchedKernelRidge": "kernel_ridge",
    "SketchedKernelRidgeClassifier": "kernel_ridge",
    "TablePreparation": "tables",
    "accuracy": "accuracy",
    "compare": "comparison",
    "kernel_ridge": "kernel_ridge",
    "kernels": "kernels",
    "load": "storage",
    "save": "storage",
    "solve_kernel_system": "kernel_systems",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_ROOMS[name]}")
    value = module if _ROOMS[name] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
