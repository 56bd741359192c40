"""Exact kernels, the ground truth that every feature map approximates."""

from powersketch.kernels.arc_cosine import ArcCosine, kappa_0, kappa_1, kappa_2
from powersketch.kernels.dot_product import DotProduct
from powersketch.kernels.gaussian import Gaussian
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.neural_tangent import NeuralTangent
from powersketch.kernels.polynomial import Polynomial

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
