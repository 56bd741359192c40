"""What every method of the registry promises."""

from __future__ import annotations

import re

import numpy as np
import pytest

from powersketch import PolynomialSketch
from powersketch.comparison import METHODS
from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    NeuralTangent,
    Polynomial,
)
from powersketch.powers import POWER_METHODS
from tests.comparison.measured_rows import unit_rows

KERNELS: tuple[Kernel, ...] = (
    Polynomial(3, gamma=0.5, coef0=0.5),
    Gaussian(0.5),
    ArcCosine(),
    NeuralTangent(depth=2),
    DotProduct("exp"),
)
PAIRS = [
    pytest.param(name, kernel, id=f"{name}-{type(kernel).__name__}")
    for name, method in METHODS.items()
    for kernel in KERNELS
    if method.supports(kernel) is None
]


class Constant(Kernel):
    """A kernel that no sketch knows."""

    def series(self):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    def _values(self, products, left, right):  # type: ignore[no-untyped-def]
        return np.ones_like(products)

    def _diagonal_values(self, sizes):  # type: ignore[no-untyped-def]
        return np.ones_like(sizes)


@pytest.mark.parametrize(("name", "kernel"), PAIRS)
def test_features_approximate_the_kernel(name: str, kernel: Kernel) -> None:
    """For fixed seeds; those without exact norms have large errors in high degrees."""
    X = unit_rows(300)
    fitted = METHODS[name].build(kernel, 256, 3, None).fit(X[:270])
    Z = fitted.transform(X[270:])
    assert Z.shape == (30, 256)
    K = kernel(X[270:])
    most = 0.8 if name.endswith("-literal") else 0.4
    assert np.linalg.norm(Z @ Z.T - K) < most * np.linalg.norm(K)


@pytest.mark.parametrize(("name", "kernel"), PAIRS)
def test_the_seed_decides_the_features(name: str, kernel: Kernel) -> None:
    X = unit_rows(40, 30)
    first, again, other = (
        METHODS[name].build(kernel, 12, seed, 2).fit(X).transform(X) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name: str) -> None:
    method = METHODS[name]
    assert method.name == name
    assert re.fullmatch(r"[a-z_-]+", name)
    assert method.kind in ("oblivious", "data-dependent", "peer")
    assert (method.kind == "peer") == name.startswith("sklearn")
    assert method.description
    assert any(method.supports(kernel) is None for kernel in KERNELS)


def test_every_kernel_has_sketches_landmarks_and_a_reason_for_the_rest() -> None:
    for kernel in KERNELS:
        able = {name for name, method in METHODS.items() if method.supports(kernel) is None}
        assert {"power", "power-literal", "tree", "ctr", "nystroem", "nystroem-uniform"} <= able
        for name in METHODS.keys() - able:
            assert METHODS[name].supports(kernel)


def test_every_way_to_sketch_powers_takes_part() -> None:
    for name in POWER_METHODS:
        assert {name, f"{name}-literal"} <= METHODS.keys()


def test_a_kernel_without_a_sketch_has_landmarks() -> None:
    able = [name for name, method in METHODS.items() if method.supports(Constant()) is None]
    assert able == ["nystroem", "nystroem-uniform"]


def test_the_literal_method_is_the_paper_as_printed() -> None:
    X = unit_rows(20, 40)
    literal = METHODS["power-literal"].build(Polynomial(3), 16, 5, None).fit_transform(X)
    printed = PolynomialSketch(
        3, n_components=16, norm_preserving=False, expansion="none", random_state=5
    ).fit_transform(X)
    np.testing.assert_array_equal(literal, printed)


def test_the_default_method_is_the_estimator_with_its_defaults() -> None:
    X = unit_rows(20, 40)
    default = METHODS["power"].build(Polynomial(3), 16, 5, None).fit_transform(X)
    estimator = PolynomialSketch(3, n_components=16, random_state=5)
    np.testing.assert_array_equal(default, estimator.fit_transform(X))
