"""The sum of a kernel and a linear one, whatever the kernel does with its rows."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from powersketch.kernels import DotProduct, Gaussian, Kernel, Linear, Polynomial, WithLinear
from tests.kernels.kernel_cases import (
    assert_close,
    assert_frozen,
    assert_refused,
    each_dtype,
    each_kernel,
    points,
)


class Laplacian(Kernel):
    """A kernel of one's own, computed from distances."""

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def _values(self, products: Any, left: Any, right: Any) -> Any:
        squares = np.add.outer(left, right) - 2.0 * products
        return np.exp(-self.gamma * np.sqrt(np.maximum(squares, 0.0)))

    def _diagonal_values(self, sizes: Any) -> Any:
        return np.ones_like(sizes)


@each_kernel
@each_dtype
@pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
def test_is_the_sum(kernel: Kernel, dtype: Any, to_layout: Any) -> None:
    X, Y = points(30).astype(dtype), points(20, seed=1).astype(dtype)
    total, tolerance = WithLinear(kernel, 0.4), 4 * np.finfo(dtype).eps + 1e-12
    expected = kernel(X, Y) + 0.4 * (X.astype(np.float64) @ Y.T)
    assert_close(total(to_layout(X), to_layout(Y)), expected, tolerance)
    assert_close(total(to_layout(X), Y), expected, tolerance)
    values = total.columns(to_layout(Y))
    assert_close(values(to_layout(X), np.dtype(dtype)), expected, tolerance)
    diagonal = kernel.diagonal(X) + 0.4 * np.sum(X.astype(np.float64) ** 2, axis=1)
    assert_close(total.diagonal(to_layout(X)), diagonal, tolerance)


def test_kernels_of_ones_own() -> None:
    X, V = points(30), points(30, 2, seed=2)
    total = WithLinear(Laplacian(gamma=2.0), weight=3.0)
    expected = Laplacian(gamma=2.0)(X) + 3.0 * X @ X.T
    assert_close(total(X), expected)
    assert_close(total.product(X, V), expected @ V)
    squares = np.sum(X**2, axis=1)
    assert_close(total.from_inner_products(X @ X.T, squares, squares), expected, 1e-6)
    assert total.get_params()["kernel__gamma"] == 2.0
    np.testing.assert_array_equal(clone(total)(X), total(X))
    with pytest.raises(TypeError, match="Laplacian does not say what its derivatives are"):
        total.gradients(X, V)


def test_without_weight_it_is_the_kernel() -> None:
    X = points(40)
    np.testing.assert_array_equal(WithLinear(Gaussian(), 0.0)(X), Gaussian()(X))


class TestParameters:
    def test_of_the_kernel_are_parameters_of_the_sum(self) -> None:
        kernel = Polynomial(degree=3, coef0=1.0)
        total = WithLinear(kernel, 2)
        assert total.get_params(deep=False) == {"kernel": kernel, "weight": 2.0}
        inner = {"kernel__degree": 3, "kernel__gamma": 1.0, "kernel__coef0": 1.0}
        assert total.get_params() == {"kernel": kernel, "weight": 2.0} | inner
        assert total.set_params(kernel__degree=2, weight=0.5, kernel__gamma=0.1) is total
        assert total == WithLinear(Polynomial(degree=2, gamma=0.1, coef0=1.0), 0.5)
        # The kernel that was given is left as it is.
        assert kernel == Polynomial(degree=3, coef0=1.0)

    def test_those_of_a_new_kernel_at_once(self) -> None:
        total = WithLinear(Polynomial()).set_params(kernel__gamma=3.0, kernel=Gaussian())
        assert total == WithLinear(Gaussian(gamma=3.0))

    def test_of_a_sum_in_a_sum(self) -> None:
        total = WithLinear(WithLinear(Gaussian(), 1.0), 2.0)
        total.set_params(kernel__kernel__gamma=0.5, kernel__weight=3.0)
        assert total == WithLinear(WithLinear(Gaussian(0.5), 3.0), 2.0)

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"weight": 2.0, "kernel__gamma": -1.0}, "gamma=-1.0 is out of range"),
            ({"weight": 2.0, "kernel__order": 1}, "the Gaussian kernel has no order; .* gamma"),
            ({"weight__gamma": 1.0}, "WithLinear kernel has no weight__gamma; .* kernel, weight"),
            ({"gamma": 1.0, "weight": 2.0}, "the WithLinear kernel has no gamma"),
        ],
    )
    def test_nothing_changes_if_one_is_refused(self, wrong: dict[str, Any], message: str) -> None:
        total = WithLinear(Gaussian(), 0.5)
        with pytest.raises(ValueError, match=message):
            total.set_params(**wrong)
        assert total == WithLinear(Gaussian(), 0.5)

    def test_kernels_without_kernels_have_no_such_names(self) -> None:
        with pytest.raises(ValueError, match="the Gaussian kernel has no kernel__gamma"):
            Gaussian().set_params(kernel__gamma=1.0)

    def test_resolved_from_the_data(self) -> None:
        X, total = points(30), WithLinear(Gaussian("median"), 0.5)
        resolved = total.resolve(X)
        assert resolved == WithLinear(Gaussian("median").resolve(X), 0.5)
        assert resolved.resolve(X) == resolved
        for values in (
            lambda: total(X),
            lambda: total.diagonal(X),
            lambda: total.product(X, X[:, 0]),
            lambda: total.gradients(X, X[:, 0]),
            lambda: total.columns(X)(X, X.dtype),
        ):
            with pytest.raises(ValueError, match=r"gamma='median' is resolved .* kernel.resolve"):
                values()

    def test_copied_in_every_way(self) -> None:
        total = WithLinear(Gaussian(0.5), 0.25)
        assert repr(total) == "WithLinear(kernel=Gaussian(gamma=0.5), weight=0.25)"
        for twin in (clone(total), copy.deepcopy(total), pickle.loads(pickle.dumps(total))):
            assert twin == total
            assert twin.kernel is not total.kernel
        assert_frozen(total, "weight")


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"kernel": "gaussian"}, TypeError, r"kernel='gaussian' is a str; .*as_kernel\(name\)"),
        ({"kernel": Gaussian}, TypeError, "kernel=.* allowed are the kernels"),
        ({"kernel": Linear(), "weight": -1.0}, ValueError, "weight=-1.0 is out of range; .* at l"),
        ({"kernel": Linear(), "weight": np.inf}, ValueError, "weight=inf is out of range"),
        ({"kernel": Linear(), "weight": "1"}, TypeError, "weight='1' is a str"),
    ],
)
def test_refused(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    assert_refused(WithLinear, parameters, error, message)


def test_has_no_power_series() -> None:
    with pytest.raises(TypeError, match=r"has no power series of its own: use that of its kernel"):
        WithLinear(DotProduct()).power_series()
