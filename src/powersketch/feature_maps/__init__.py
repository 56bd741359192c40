"""Feature maps with scikit-learn's interface, one file for each, and the map of a kernel."""

import numpy as np

from powersketch.exceptions import InputTypeError
from powersketch.feature_maps.arc_cosine import ArcCosineSketch
from powersketch.feature_maps.base import FeatureMap
from powersketch.feature_maps.choice_rows import (
    MOST_CHOICE_ROWS,
    ChoiceRows,
    are_many,
    spread_numbers,
)
from powersketch.feature_maps.dot_product import DotProductSketch
from powersketch.feature_maps.gaussian import GaussianSketch
from powersketch.feature_maps.neural_tangent import NeuralTangentSketch
from powersketch.feature_maps.pilot import (
    DO_NOT_COUNT,
    TypicalRows,
    absurd_distances,
    absurd_rows,
    capped,
    central_row,
    outlying,
    warn_of_far_rows,
    without_rows,
)
from powersketch.feature_maps.polynomial import PolynomialSketch
from powersketch.kernels import Kernel

__all__ = [
    "DO_NOT_COUNT",
    "MOST_CHOICE_ROWS",
    "SKETCHED_KERNELS",
    "ArcCosineSketch",
    "ChoiceRows",
    "DotProductSketch",
    "FeatureMap",
    "GaussianSketch",
    "NeuralTangentSketch",
    "PolynomialSketch",
    "TypicalRows",
    "absurd_distances",
    "absurd_rows",
    "are_many",
    "capped",
    "central_row",
    "map_for",
    "outlying",
    "spread_numbers",
    "warn_of_far_rows",
    "without_rows",
]

_MAPS: tuple[type[FeatureMap], ...] = (
    GaussianSketch,
    PolynomialSketch,
    ArcCosineSketch,
    NeuralTangentSketch,
    DotProductSketch,
)

SKETCHED_KERNELS = tuple(sketch.kernel_class for sketch in _MAPS)
"""The kernels that have a map of their own."""


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
    >>> from powersketch.feature_maps import map_for
    >>> from powersketch.kernels import Polynomial
    >>> map_for(Polynomial(degree=3, coef0=1.0), 50, random_state=0)
    PolynomialSketch(coef0=1.0, degree=3, n_components=50, random_state=0)
    """
    for sketch in _MAPS:
        if isinstance(kernel, sketch.kernel_class):
            return sketch(
                **{name: getattr(kernel, name) for name in sketch.kernel_names},
                n_components=n_components,
                random_state=random_state,
                n_jobs=n_jobs,
                verbose=verbose,
            )
    known = ", ".join(sketch.kernel_class.__name__ for sketch in _MAPS)
    raise InputTypeError(
        f"there is no feature map for {kernel!r}; allowed are {known}: give a map of your own, or "
        "use another strategy."
    )
