"""Kernels by name, and their parameters as scikit-learn reads and writes them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from powersketch.kernels import (
    KERNEL_NAMES,
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    Linear,
    NeuralTangent,
    Polynomial,
    as_kernel,
)
from tests.kernels.kernel_cases import KERNELS, each_kernel, points

BY_NAME: dict[str, Kernel] = {
    "linear": Linear(),
    "polynomial": Polynomial(),
    "poly": Polynomial(),
    "gaussian": Gaussian("scale"),
    "rbf": Gaussian("scale"),
    "arc-cosine": ArcCosine(),
    "neural-tangent": NeuralTangent(),
    "ntk": NeuralTangent(),
    "dot-product": DotProduct(),
}
PARAMETERS: dict[str, dict[str, Any]] = {
    "polynomial": {"degree": 3, "gamma": "median", "coef0": 1.0},
    "rbf": {"gamma": 0.25},
    "arc-cosine": {"order": 2, "depth": 3},
    "ntk": {
        "depth": 2,
        "train_output": False,
        "weight_variance": 1.0,
        "bias_variance": 0.5,
    },
    "dot-product": {"series": "cosh", "gamma": "scale"},
}
NO_KERNELS: list[Any] = [Gaussian, None, 3, np.exp]


class ExactRidge(RegressorMixin, BaseEstimator):
    """Kernel ridge regression with a kernel as a parameter."""

    def __init__(self, kernel: Kernel | str = "gaussian", alpha: float = 1e-3) -> None:
        self.kernel = kernel
        self.alpha = alpha

    def fit(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> ExactRidge:
        self.kernel_ = as_kernel(self.kernel, X)
        self.ridge_ = KernelRidge(alpha=self.alpha, kernel="precomputed").fit(self.kernel_(X), y)
        self.X_ = X
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        predictions: NDArray[np.float64] = self.ridge_.predict(self.kernel_(X, self.X_))
        return predictions


class TestNames:
    def test_all_are_here(self) -> None:
        assert set(BY_NAME) == set(KERNEL_NAMES)

    @pytest.mark.parametrize("name", BY_NAME)
    def test_a_name_stands_for_a_kernel_with_its_defaults(self, name: str) -> None:
        assert repr(as_kernel(name)) == repr(BY_NAME[name])

    @pytest.mark.parametrize("name", BY_NAME)
    def test_with_rows_there_are_values(self, name: str) -> None:
        X = points(8)
        expected = BY_NAME[name].resolve(X)(X)
        np.testing.assert_array_equal(as_kernel(name, X)(X), expected)

    @pytest.mark.parametrize("name", PARAMETERS)
    def test_parameters_go_with_names(self, name: str) -> None:
        kernel = as_kernel(name, **PARAMETERS[name])
        assert kernel.get_params() == PARAMETERS[name]

    @each_kernel
    def test_a_kernel_stands_for_itself(self, kernel: Kernel) -> None:
        assert as_kernel(kernel) is kernel
        assert as_kernel(kernel, points(3)) is kernel

    def test_unknown_names(self) -> None:
        with pytest.raises(ValueError, match=r"kernel='matern' is unknown; use one of 'linear', "):
            as_kernel("matern")

    @pytest.mark.parametrize("wrong", NO_KERNELS)
    def test_neither_kernel_nor_name(self, wrong: Any) -> None:
        message = r"allowed are the kernels of .* the names 'linear', .* pass for instance Gauss"
        with pytest.raises(TypeError, match=message):
            as_kernel(wrong)

    @pytest.mark.parametrize(
        ("name", "allowed"),
        [("polynomial", "degree, gamma, coef0"), ("rbf", "gamma"), ("linear", "none")],
    )
    def test_parameters_that_the_kernel_does_not_have(self, name: str, allowed: str) -> None:
        message = f"the {name} kernel has no order; its parameters are {allowed}: leave order out"
        with pytest.raises(ValueError, match=message):
            as_kernel(name, order=1)

    def test_parameters_beside_an_object(self) -> None:
        with pytest.raises(ValueError, match=r"\(gamma\) go with the name .* Gaussian\(gamma=1.0"):
            as_kernel(Gaussian(), gamma=2.0)


class TestParameters:
    @each_kernel
    def test_clones_are_equal_and_independent(self, kernel: Kernel) -> None:
        twin = clone(kernel)
        assert twin is not kernel
        assert repr(twin) == repr(kernel)
        np.testing.assert_array_equal(twin(points(5)), kernel(points(5)))
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(kernel))(points(5)), twin(points(5))
        )

    @each_kernel
    def test_set_to_what_they_are(self, kernel: Kernel) -> None:
        twin = clone(kernel)
        before = repr(twin)
        assert twin.set_params(**kernel.get_params()) is twin
        assert repr(twin) == before

    def test_in_place_with_all_that_follows(self) -> None:
        kernel = DotProduct("exp")
        kernel.set_params(series=[0.0, 3.0], gamma=2)
        assert kernel.get_params() == {"series": [0.0, 3.0], "gamma": 2.0}
        np.testing.assert_array_equal(kernel([[1.0]], [[5.0]]), [[30.0]])

    @pytest.mark.parametrize(
        "wrong", [{"degree": 3, "gamma": -1.0}, {"degree": 3, "order": 1}, {"gamma": "auto"}]
    )
    def test_nothing_changes_if_one_is_refused(self, wrong: dict[str, Any]) -> None:
        kernel = Polynomial(degree=2, coef0=1.0)
        with pytest.raises(ValueError, match=r"out of range|has no order|gamma='auto' is unknown"):
            kernel.set_params(**wrong)
        assert kernel == Polynomial(degree=2, coef0=1.0)

    def test_names_of_parameters(self) -> None:
        for kernel in KERNELS:
            assert all(f"{name}=" in repr(kernel) for name in kernel.get_params(deep=False))

    def test_searched_over_inside_an_estimator(self) -> None:
        X = np.random.default_rng(0).uniform(-1.0, 1.0, (80, 2))
        y = np.sin(4.0 * X[:, 0])
        grid = {"kernel__gamma": [1e-4, 2.0, "median", 1e4]}
        search = GridSearchCV(ExactRidge(Gaussian()), grid, cv=3).fit(X, y)
        assert search.best_params_["kernel__gamma"] in (2.0, "median")
        assert search.best_score_ > 0.9
        # The kernel that was given is left as it is.
        assert search.estimator.kernel == Gaussian()

    def test_searched_over_whole_kernels(self) -> None:
        X = np.random.default_rng(0).standard_normal((60, 3))
        kernels = ["linear", Polynomial(degree=2, coef0=1.0)]
        search = GridSearchCV(ExactRidge(), {"kernel": kernels}, cv=3).fit(X, X[:, 0] * X[:, 1])
        assert search.best_params_["kernel"] == kernels[1]


class InverseQuadratic(Kernel):
    """1 / (1 + gamma ‖x − y‖²), a kernel as a user may write it."""

    def __init__(self, gamma: float | str = 1.0) -> None:
        self.gamma = gamma

    def _values(self, products: Any, left: Any, right: Any) -> Any:
        return 1.0 / (1.0 + self._gamma * (np.add.outer(left, right) - 2.0 * products))

    def _diagonal_values(self, sizes: Any) -> Any:
        return np.ones_like(sizes)


class TestOwnKernels:
    def test_has_all_but_a_series(self) -> None:
        X, Y = points(7), points(5, seed=1)
        distances = np.sum((X[:, np.newaxis] - Y) ** 2, axis=2)
        kernel = as_kernel(InverseQuadratic(gamma=2.0))
        np.testing.assert_allclose(kernel(X, Y), 1.0 / (1.0 + 2.0 * distances), rtol=1e-13)
        np.testing.assert_allclose(kernel.product(X, Y[:, 0], Y), kernel(X, Y) @ Y[:, 0])
        np.testing.assert_allclose(kernel.columns(Y)(X, X.dtype), kernel(X, Y))
        np.testing.assert_array_equal(kernel.diagonal(X), np.ones(7))
        with pytest.raises(TypeError, match="InverseQuadratic does not say what its power series"):
            kernel.power_series()

    def test_parameters(self) -> None:
        X = points(9)
        kernel = clone(InverseQuadratic("scale")).set_params(gamma="median")
        resolved = kernel.resolve(X)
        assert isinstance(resolved, InverseQuadratic)
        assert resolved.gamma == Gaussian("median").resolve(X).gamma
