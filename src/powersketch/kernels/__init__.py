"""Exact kernels, the ground truth that every feature map approximates, and their names."""

import inspect
from typing import Any

from powersketch.exceptions import InputError, InputTypeError
from powersketch.kernels.arc_cosine import ArcCosine
from powersketch.kernels.dot_product import DotProduct
from powersketch.kernels.entry_moments import EntryMoments
from powersketch.kernels.gaussian import Gaussian, median_row
from powersketch.kernels.kernel import Kernel
from powersketch.kernels.kernel_parameters import asks_for_scale, at_scale, resolved_gamma
from powersketch.kernels.neural_tangent import NeuralTangent
from powersketch.kernels.polynomial import Linear, Polynomial, WithLinear
from powersketch.kernels.rows import MatrixLike
from powersketch.parameters import check_parameter_names, one_of

__all__ = [
    "KERNEL_NAMES",
    "ArcCosine",
    "DotProduct",
    "EntryMoments",
    "Gaussian",
    "Kernel",
    "Linear",
    "NeuralTangent",
    "Polynomial",
    "WithLinear",
    "as_kernel",
    "asks_for_scale",
    "at_scale",
    "median_row",
    "resolved_gamma",
]

_KERNELS: dict[str, type[Kernel]] = {
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "arc-cosine": ArcCosine,
    "neural-tangent": NeuralTangent,
    "ntk": NeuralTangent,
    "dot-product": DotProduct,
}
KERNEL_NAMES = tuple(_KERNELS)


def as_kernel(kernel: Kernel | str, X: MatrixLike | None = None, **params: Any) -> Kernel:
    """Return the kernel that is meant by an object or by a name.

    Parameters
    ----------
    kernel : Kernel or str
        A kernel; or ``"linear"``, ``"polynomial"`` (``"poly"``), ``"gaussian"`` (``"rbf"``),
        ``"arc-cosine"``, ``"neural-tangent"`` (``"ntk"``) or ``"dot-product"``.
    X : {array-like, sparse matrix or array} of shape (n, d), default=None
        The data that parameters such as ``gamma="scale"`` are resolved from. None leaves them.
    **params : dict
        Parameters of a kernel that is given by its name; the others have their defaults. That of
        the Gaussian kernel's gamma is ``"scale"`` here: no number suits all data.

    Returns
    -------
    Kernel
        The object itself, or with X a new kernel that has numbers for all parameters.

    Raises
    ------
    TypeError
        For anything else than a kernel or a text.
    ValueError
        For unknown names and for parameters that the kernel does not have.

    Examples
    --------
    >>> from powersketch.kernels import as_kernel
    >>> as_kernel("poly", degree=3)
    Polynomial(degree=3, gamma=1.0, coef0=0.0)
    >>> as_kernel("rbf", [[0.0, 1.0], [2.0, 1.0]])
    Gaussian(gamma=1.0)
    """
    if isinstance(kernel, str):
        kernel = _named_kernel(kernel, params)
    elif not isinstance(kernel, Kernel):
        raise InputTypeError(
            f"kernel={kernel!r} is a {type(kernel).__name__}; allowed are the kernels of "
            f"powersketch.kernels and the names {', '.join(map(repr, KERNEL_NAMES))}: pass for "
            "instance Gaussian(gamma=0.5) or 'gaussian'."
        )
    elif params:
        raise InputError(
            f"parameters ({', '.join(params)}) go with the name of a kernel; this is {kernel!r}: "
            "set them there."
        )
    return kernel if X is None else kernel.resolve(X)


def _named_kernel(name: str, params: dict[str, Any]) -> Kernel:
    kind = _KERNELS[one_of("kernel", name, KERNEL_NAMES)]
    check_parameter_names(name, params, inspect.signature(kind).parameters)
    if kind is Gaussian:
        params = {"gamma": "scale"} | params
    return kind(**params)
