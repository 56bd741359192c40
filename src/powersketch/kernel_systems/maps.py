"""The feature map that belongs to a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from powersketch.exceptions import InputTypeError
from powersketch.feature_maps import (
    ArcCosineSketch,
    DotProductSketch,
    FeatureMap,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    NeuralTangent,
    Polynomial,
)

_MAPS: dict[type[Kernel], tuple[type[FeatureMap], dict[str, str]]] = {
    Gaussian: (GaussianSketch, {"gamma": "gamma"}),
    Polynomial: (PolynomialSketch, {"degree": "degree", "gamma": "gamma", "coef0": "coef0"}),
    ArcCosine: (ArcCosineSketch, {"order": "order", "depth": "depth"}),
    NeuralTangent: (
        NeuralTangentSketch,
        {name: name for name in ("depth", "train_output", "weight_variance", "bias_variance")},
    ),
    DotProduct: (DotProductSketch, {"series": "series", "gamma": "gamma"}),
}


def kernel_parameters(sketch: type[FeatureMap]) -> frozenset[str]:
    """Return the names of the parameters of a feature map that belong to its kernel."""
    return frozenset(name for kind, names in _MAPS.values() if kind is sketch for name in names)


def map_for(
    kernel: Kernel,
    n_components: int,
    *,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> FeatureMap:
    """Return an unfitted feature map of the kernel, with the kernel's own parameters.

    Parameters
    ----------
    kernel : powersketch.kernels.Kernel
        A Gaussian, polynomial, arc-cosine, neural tangent or dot-product kernel.
    n_components : int
        Number of features, at least 1.
    random_state, n_jobs, verbose
        As for the map.

    Returns
    -------
    FeatureMap
        One of the sketches of this package.

    Examples
    --------
    >>> from powersketch.kernel_systems.maps import map_for
    >>> from powersketch.kernels import Polynomial
    >>> map_for(Polynomial(degree=3, coef0=1.0), 50, random_state=0)
    PolynomialSketch(coef0=1.0, degree=3, n_components=50, random_state=0)
    """
    for kind, (sketch, names) in _MAPS.items():
        if isinstance(kernel, kind):
            own: dict[str, Any] = {name: getattr(kernel, field) for name, field in names.items()}
            return sketch(
                **own,
                n_components=n_components,
                random_state=random_state,
                n_jobs=n_jobs,
                verbose=verbose,
            )
    known = ", ".join(kind.__name__ for kind in _MAPS)
    raise InputTypeError(
        f"there is no feature map for {kernel!r}; allowed are {known}: give a map of your own, or "
        "use another strategy."
    )
