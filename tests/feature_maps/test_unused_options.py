"""Options that a method has no use for are refused, by every estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.feature_maps.base import FeatureMap

X = np.random.default_rng(0).random((20, 5))
BY_NEURONS = {
    "power_method": "tree",
    "tail": "truncate",
    "tail_eps": 1e-2,
    "expansion": "none",
    "norm_preserving": False,
    "internal_components": 512,
}
OF_POWERS = {"base_sketch": "osnap", "internal_components": 512}
CASES: list[tuple[type[FeatureMap], dict[str, Any], dict[str, Any]]] = [
    (PolynomialSketch, {"method": "tensorsketch"}, OF_POWERS),
    (PolynomialSketch, {"method": "adaptive"}, OF_POWERS),
    (GaussianSketch, {"power_method": "tensorsketch"}, OF_POWERS),
    (
        GaussianSketch,
        {"method": "fourier"},
        OF_POWERS | {"norm_preserving": False, "power_method": "tree"},
    ),
    (DotProductSketch, {"power_method": "tensorsketch"}, OF_POWERS),
    (DotProductSketch, {"tail": "fit"}, {"tail_eps": 1e-2}),
    (ArcCosineSketch, {"method": "random"}, BY_NEURONS | {"base_sketch": "osnap"}),
    (ArcCosineSketch, {"tail": "fit"}, {"tail_eps": 1e-2}),
    (NeuralTangentSketch, {"method": "random", "depth": 2}, BY_NEURONS | {"composition": "layers"}),
    (NeuralTangentSketch, {"depth": 1}, {"composition": "layers"}),
]


@pytest.mark.parametrize(
    ("estimator", "method", "name", "value"),
    [
        (estimator, method, name, value)
        for estimator, method, options in CASES
        for name, value in options.items()
    ],
)
def test_refused_with_the_reason(
    estimator: type[FeatureMap], method: dict[str, Any], name: str, value: Any
) -> None:
    with pytest.raises(ValueError, match=f"{name}=.* has no effect with .*leave it at"):
        estimator(**method, **{name: value}).fit(X)
    estimator(**method).fit(X)


@pytest.mark.parametrize("verbose", ["a", -1, 1.5, None])
@pytest.mark.parametrize("estimator", [GaussianSketch, LeverageNystroem])
def test_verbose(estimator: Any, verbose: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="verbose="):
        estimator(n_components=8, verbose=verbose).fit(X)


def test_uniform_landmarks_have_no_ridge() -> None:
    with pytest.raises(ValueError, match=r"alpha=.* has no effect with .*leave it at None"):
        LeverageNystroem(n_components=8, landmarks="uniform", alpha=1.0).fit(X)
