"""Kernels by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powersketch.arrays import Rows, is_sparse
from powersketch.exceptions import InputError, InputTypeError
from powersketch.feature_maps import resolved_gamma
from powersketch.kernels import ArcCosine, Gaussian, Kernel, NeuralTangent, Polynomial
from powersketch.parameters import one_of

_KERNELS: dict[str, tuple[type[Kernel], tuple[str, ...]]] = {
    "polynomial": (Polynomial, ("degree", "gamma", "coef0")),
    "gaussian": (Gaussian, ("gamma",)),
    "arc-cosine": (ArcCosine, ("order", "depth")),
    "neural-tangent": (NeuralTangent, ("depth",)),
}
KERNEL_NAMES = tuple(_KERNELS)


def check_kernel(kernel: Any) -> None:
    """Refuse what is neither a kernel nor the name of one."""
    if isinstance(kernel, str):
        one_of("kernel", kernel, KERNEL_NAMES)
    elif not isinstance(kernel, Kernel):
        raise InputTypeError(
            f"kernel={kernel!r} is a {type(kernel).__name__}; allowed are the kernels of "
            f"powersketch.kernels and the names {', '.join(KERNEL_NAMES)}: pass for instance "
            "Polynomial(degree=4, coef0=1.0)."
        )


def named_kernel(name: str, X: Rows, parameters: Mapping[str, Any]) -> Kernel:
    """Return the kernel of this name, with its own defaults for what is not given.

    The default of the Gaussian kernel's gamma is "scale", 1 / (n_features · variance of X): a
    constant suits no data in particular.
    """
    one_of("kernel", name, KERNEL_NAMES)
    kind, allowed = _KERNELS[name]
    for parameter in parameters:
        if parameter not in allowed:
            raise InputError(
                f"the {name} kernel has no {parameter}; its parameters are {', '.join(allowed)}: "
                f"leave {parameter} out, or choose another kernel."
            )
    own = dict(parameters)
    if name == "gaussian":
        own.setdefault("gamma", "scale")
    if own.get("gamma") == "scale":
        own["gamma"] = _scale(X)
    return kind(**own)


def _scale(X: Rows) -> float:
    """Return 1 / (n_features · variance of X); sparse entries may be stored in parts."""
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return resolved_gamma("scale", X)
