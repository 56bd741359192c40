"""The feature map that belongs to a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from powersketch.feature_maps import map_for
from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    NeuralTangent,
    Polynomial,
)
from tests.kernel_systems.systems import long_rows

KERNELS = [
    Gaussian(gamma=0.7),
    Polynomial(degree=3, gamma=0.5, coef0=2.0),
    ArcCosine(order=0, depth=1),
    ArcCosine(order=1, depth=2),
    NeuralTangent(depth=2),
    NeuralTangent(train_output=False),
    NeuralTangent(weight_variance=1.5, bias_variance=0.1),
    DotProduct("cosh"),
    DotProduct([1.0, 0.0, 2.0]),
    DotProduct(DotProduct("exp").power_series()),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_map_approximates_its_kernel(kernel: Kernel) -> None:
    X = long_rows(40, 60)
    sketch = map_for(kernel, 3000, random_state=0).fit(X)
    Z = sketch.transform(X)
    K = kernel(X)
    # At this size, wrong parameters give errors of the size of K.
    assert np.linalg.norm(Z @ Z.T - K) < 0.1 * np.linalg.norm(K)


def test_options_reach_the_map() -> None:
    sketch = map_for(Gaussian(), 7, random_state=3, n_jobs=2, verbose=1)
    assert sketch.get_params()["n_components"] == 7
    assert (sketch.random_state, sketch.n_jobs, sketch.verbose) == (3, 2, 1)


def test_kernels_without_a_map_are_refused() -> None:
    class Constant(Kernel):
        def series(self):
            raise NotImplementedError

        def _values(self, products, left, right):
            return np.ones_like(products)

        def _diagonal_values(self, sizes):
            return np.ones_like(sizes)

    with pytest.raises(TypeError, match="allowed are Gaussian"):
        map_for(Constant(), 5)
