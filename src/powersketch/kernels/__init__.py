"""Exact kernels, the ground truth that every feature map approximates."""

from powersketch.kernels.arc_cosine import ArcCosine, kappa_0, kappa_1, kappa_2
from powersketch.kernels.dot_product import DotProduct
from powersketch.kernels.gamma import resolved_gamma
from powersketch.kernels.gaussian import Gaussian
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.names import KERNEL_NAMES, as_kernel
from powersketch.kernels.neural_tangent import NeuralTangent
from powersketch.kernels.polynomial import Linear, Polynomial

__all__ = [
    "KERNEL_NAMES",
    "ArcCosine",
    "DotProduct",
    "Gaussian",
    "Kernel",
    "Linear",
    "NeuralTangent",
    "Polynomial",
    "as_kernel",
    "kappa_0",
    "kappa_1",
    "kappa_2",
    "resolved_gamma",
]
