"""Exact kernels, the ground truth that every feature map approximates."""

from typing import TYPE_CHECKING

from powersketch.kernels._kernel import Kernel
from powersketch.kernels.polynomial import Polynomial
from powersketch.lazy_names import loader_of_names

if TYPE_CHECKING:
    from powersketch.kernels.arc_cosine import ArcCosine, kappa_0, kappa_1, kappa_2
    from powersketch.kernels.dot_product import DotProduct
    from powersketch.kernels.gaussian import Gaussian
    from powersketch.kernels.neural_tangent import NeuralTangent

__all__ = [
    "ArcCosine",
    "DotProduct",
    "Gaussian",
    "Kernel",
    "NeuralTangent",
    "Polynomial",
    "kappa_0",
    "kappa_1",
    "kappa_2",
]

# The other kernels and their series are imported when their names are first used.
_MODULES = {
    "ArcCosine": "arc_cosine",
    "DotProduct": "dot_product",
    "Gaussian": "gaussian",
    "NeuralTangent": "neural_tangent",
    "kappa_0": "_kappa",
    "kappa_1": "_kappa",
    "kappa_2": "_kappa",
    "series": "series",
}

__getattr__ = loader_of_names(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
