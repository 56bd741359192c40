"""Names, kernels and maps as `sketch` all end in a fitted feature map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
    kernels,
)
from powersketch.kernel_ridge import SketchedKernelRidge
from powersketch.kernel_ridge.sketch_parameter import rows_by_weight, unfitted_map
from tests.kernel_ridge.ridge_data import diabetes, features

KERNELS: list[tuple[kernels.Kernel, type]] = [
    (kernels.Gaussian(0.3), GaussianSketch),
    (kernels.Polynomial(3, 0.2, 1.5), PolynomialSketch),
    (kernels.ArcCosine(1, 2), ArcCosineSketch),
    (kernels.NeuralTangent(2, False, 1.5, 0.1), NeuralTangentSketch),
    (kernels.DotProduct([0.5, 0.0, 2.0]), DotProductSketch),
]


@pytest.mark.parametrize(("kernel", "expected"), KERNELS, ids=str)
def test_a_kernel_means_its_map(kernel: kernels.Kernel, expected: type) -> None:
    X = features(50, 4, mean=0.0)
    fitted = unfitted_map(kernel).fit(X)
    assert type(fitted) is expected
    np.testing.assert_allclose(fitted.kernel_(X), kernel(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "parameters", "expected"),
    [
        ("gaussian", None, GaussianSketch("scale", n_components=256)),
        ("gaussian", {"gamma": 0.5}, GaussianSketch(0.5, n_components=256)),
        ("polynomial", {"degree": 4, "n_components": 9}, PolynomialSketch(4, n_components=9)),
        ("arc-cosine", {"order": 0}, ArcCosineSketch(0, n_components=256)),
        ("neural-tangent", {"depth": 3}, NeuralTangentSketch(3, n_components=256)),
        ("dot-product", {"series": "cosh"}, DotProductSketch("cosh", n_components=256)),
        (None, None, GaussianSketch("scale", n_components=256)),
    ],
)
def test_a_name_means_the_map_with_these_parameters(
    name: str | None, parameters: dict[str, Any] | None, expected: Any
) -> None:
    made = unfitted_map(name, parameters)
    assert type(made) is type(expected)
    assert made.get_params() == expected.get_params()


def test_size_seed_and_threads_are_handed_on() -> None:
    made = unfitted_map("gaussian", n_components=33, seed=7, n_jobs=2)
    assert (made.n_components, made.random_state, made.n_jobs) == (33, 7, 2)
    own = unfitted_map(GaussianSketch(random_state=1, n_jobs=1), seed=7, n_jobs=2)
    assert (own.random_state, own.n_jobs) == (1, 1)


def test_the_estimator_takes_all_of_them() -> None:
    X, y = diabetes(150)
    for sketch in ("polynomial", kernels.Polynomial(2), PolynomialSketch(2, n_components=256)):
        model = SketchedKernelRidge(sketch, random_state=0).fit(X, y)
        assert model.sketch_.kernel_ == kernels.Polynomial(2)
        assert model.coef_.shape == (256,)


class TestRowsByWeight:
    def test_whole_weights_repeat_rows(self) -> None:
        X, times = features(20, 3), np.random.default_rng(0).integers(1, 5, size=20)
        np.testing.assert_array_equal(
            rows_by_weight(X, times.astype(float)), X.repeat(times, axis=0)
        )

    def test_equal_weights_change_nothing(self) -> None:
        X = features(20, 3)
        assert rows_by_weight(X, None) is X
        assert rows_by_weight(X, np.full(20, 0.3)) is X

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_rows_appear_in_proportion(self, scale: float) -> None:
        X, w = np.arange(30.0)[:, np.newaxis], np.random.default_rng(1).gamma(2.0, size=30)
        rows = rows_by_weight(X, scale * w)[:, 0].astype(int)
        shares = np.bincount(rows, minlength=30) / rows.size
        assert 30 <= rows.size <= 240
        np.testing.assert_allclose(shares, w / w.sum(), rtol=0, atol=1.0 / rows.size + 1e-12)
