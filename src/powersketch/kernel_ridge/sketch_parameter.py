"""The parameter `sketch` of the estimators: what may be given, and the feature map it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from powersketch import kernels
from powersketch.exceptions import InputError, InputTypeError
from powersketch.feature_maps import (
    ArcCosineSketch,
    DotProductSketch,
    FeatureMap,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.kernel_systems import kernel_parameters, map_for
from powersketch.nystroem import LeverageNystroem
from powersketch.parameters import refuse_unless_default

_DEFAULT_COMPONENTS = 256
# A row of large weight is given to the map so many times at most.
_LARGEST_REPETITION = 8

_BY_NAME: dict[str, type[FeatureMap]] = {
    "gaussian": GaussianSketch,
    "polynomial": PolynomialSketch,
    "arc-cosine": ArcCosineSketch,
    "neural-tangent": NeuralTangentSketch,
    "dot-product": DotProductSketch,
}
KERNEL_NAMES = tuple(_BY_NAME)


def unfitted_map(
    sketch: Any,
    kernel_params: dict[str, Any] | None = None,
    *,
    parameter: str = "sketch",
    n_components: int | None = None,
    seed: int | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Return a new feature map for a name, a kernel, None or a feature map; the last is cloned.

    Errors call it by the name of the parameter that it was given as.
    """
    if kernel_params is not None and not isinstance(kernel_params, Mapping):
        raise InputTypeError(
            f"kernel_params={kernel_params!r} is a {type(kernel_params).__name__}; allowed is a "
            "dict from names of parameters to values, or None."
        )
    if sketch is None or isinstance(sketch, str):
        feature_map = _named_map("gaussian" if sketch is None else sketch, kernel_params, parameter)
    elif kernel_params is not None:
        raise InputError(
            f"kernel_params={kernel_params!r} is for a kernel given by its name; {parameter} is a "
            f"{type(sketch).__name__}: set the parameters there."
        )
    elif isinstance(sketch, kernels.Kernel):
        feature_map = map_for(sketch, _DEFAULT_COMPONENTS)
    elif not isinstance(sketch, type) and hasattr(sketch, "transform"):
        feature_map = clone(sketch)
    else:
        raise InputTypeError(
            f"{parameter}={sketch!r} is a {type(sketch).__name__}; allowed are None, "
            f"{_automatic(parameter)}the name of a kernel ({', '.join(map(repr, KERNEL_NAMES))}), "
            "a powersketch.kernels object and a transformer: pass an instance, not a class."
        )
    _set_if_open(feature_map, seed, n_jobs)
    if n_components is not None:
        if kernel_params and "n_components" in kernel_params:
            refuse_unless_default(
                "kernel_params['n_components']",
                kernel_params["n_components"],
                n_components,
                f"beside n_components={n_components}",
            )
        _set_size(feature_map, n_components)
    return feature_map


def refuse_map_parameters(sketch: Any, kernel_params: dict[str, Any] | None, why: str) -> None:
    """Refuse parameters of a named map that are none of its kernel, for the reason given."""
    name = "gaussian" if sketch is None else sketch
    if not isinstance(name, str) or not kernel_params:
        return
    defaults, own = _BY_NAME[name]().get_params(), kernel_parameters(_BY_NAME[name])
    for parameter, value in kernel_params.items():
        if parameter not in own:
            given = f"kernel_params[{parameter!r}]"
            refuse_unless_default(given, value, defaults[parameter], why)


def rows_for(feature_map: Any, X: Any, weights: NDArray[np.float64] | None) -> Any:
    """Return the rows to fit a map on; to repeat landmarks would waste features."""
    return X if isinstance(feature_map, LeverageNystroem) else rows_by_weight(X, weights)


def rows_by_weight(X: Any, weights: NDArray[np.float64] | None) -> Any:
    """Return rows that represent the weighted ones: what a feature map without weights is given.

    Whole weights repeat rows. Others do so as nearly as can be: evenly spaced points of the
    cumulated weights are looked up. All weights are above 0.
    """
    if weights is None or weights.min() == weights.max():
        return X
    total = float(weights.sum())
    count = int(np.clip(round(total), weights.size, _LARGEST_REPETITION * weights.size))
    points = (np.arange(count) + 0.5) * (total / count)
    return X[np.minimum(np.searchsorted(np.cumsum(weights), points), weights.size - 1)]


def exact_kernel(fitted_map: Any) -> kernels.Kernel:
    """Return the kernel that a fitted map approximates."""
    kernel = getattr(fitted_map, "kernel_", None)
    if not isinstance(kernel, kernels.Kernel):
        raise InputError(
            f"{type(fitted_map).__name__} does not know its exact kernel, which sketch='auto' and "
            "the modes 'exact' and 'row-sketch' need: use a feature map of powersketch, or pass "
            "this one as sketch with mode='primal'."
        )
    return kernel


def _automatic(parameter: str) -> str:
    return "'auto' or " if parameter == "sketch" else ""


def _named_map(name: str, kernel_params: dict[str, Any] | None, parameter: str) -> FeatureMap:
    if name not in _BY_NAME:
        raise InputError(
            f"{parameter}={name!r} is unknown; use {_automatic(parameter)}one of "
            f"{', '.join(map(repr, KERNEL_NAMES))}, or pass a feature map."
        )
    parameters: dict[str, Any] = {"n_components": _DEFAULT_COMPONENTS}
    if name == "gaussian":
        parameters["gamma"] = "scale"
    parameters |= kernel_params or {}
    unknown = set(parameters) - set(_BY_NAME[name]().get_params())
    if unknown:
        allowed = ", ".join(map(repr, _BY_NAME[name]().get_params()))
        raise InputError(
            f"kernel_params has {', '.join(map(repr, sorted(unknown)))}, unknown to the kernel "
            f"{name!r}; allowed are {allowed}."
        )
    return _BY_NAME[name](**parameters)


def _set_if_open(feature_map: Any, seed: int | None, n_jobs: int | None) -> None:
    """Set every random state and number of jobs that was left at None, also in a pipeline."""
    for name, value in feature_map.get_params(deep=True).items():
        if value is not None:
            continue
        last = name.rpartition("__")[2]
        if last == "random_state" and seed is not None:
            feature_map.set_params(**{name: seed})
        if last == "n_jobs" and n_jobs is not None:
            feature_map.set_params(**{name: n_jobs})


def _set_size(feature_map: Any, n_components: int) -> None:
    if "n_components" not in feature_map.get_params(deep=False):
        raise InputError(
            f"n_components={n_components} cannot be set: {type(feature_map).__name__} has no such "
            "parameter: leave n_components at None."
        )
    feature_map.set_params(n_components=n_components)
