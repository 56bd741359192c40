"""Kernels by name, and kernels of one's own, wherever a kernel is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from powersketch import LeverageNystroem, SketchPreconditioner, compare, solve_kernel_system
from powersketch.accuracy import statistical_dimension
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
from powersketch.linalg import KernelOperator
from tests.kernels.kernel_cases import each_kernel, points

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
        assert repr(as_kernel(kernel, points(3))) == repr(kernel)

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


class InverseQuadratic(Kernel):
    """1 / (1 + gamma ‖x − y‖²), a kernel as a user may write it."""

    def __init__(self, gamma: float | str = 1.0) -> None:
        self.gamma = gamma

    def _values(self, products: Any, left: Any, right: Any) -> Any:
        return 1.0 / (1.0 + self.gamma * (np.add.outer(left, right) - 2.0 * products))

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


X = points(30)
ONES = np.ones(30)


def compared(kernel: Any) -> list[float]:
    found = compare(X, kernel, methods=["nystroem"], components=[8], seeds=1, random_state=0)
    return [measurement.frobenius for measurement in found.measurements]


# What is computed with a kernel, without a sketch of it.
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "operator": lambda kernel: KernelOperator(kernel, X) @ ONES,
    "system": lambda kernel: solve_kernel_system(X, ONES, kernel, alpha=0.1).x,
    "preconditioner": lambda kernel: (
        SketchPreconditioner(X, kernel, 0.1, strategy="nystroem", random_state=0) @ ONES
    ),
    "landmarks": lambda kernel: LeverageNystroem(
        kernel, n_components=8, random_state=0
    ).fit_transform(X),
    "dimension": lambda kernel: float(statistical_dimension(kernel, X, alpha=0.1)),
    "comparison": compared,
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
class TestEntries:
    @pytest.mark.parametrize(
        ("given", "kernel"), [("rbf", Gaussian("scale")), (Gaussian("median"), Gaussian("median"))]
    )
    def test_same_as_with_the_resolved_kernel(
        self, entry: Callable[[Any], NDArray[np.float64]], given: Any, kernel: Kernel
    ) -> None:
        np.testing.assert_array_equal(entry(given), entry(kernel.resolve(X)))

    def test_own_kernel(self, entry: Callable[[Any], NDArray[np.float64]]) -> None:
        assert np.isfinite(entry(InverseQuadratic("scale"))).all()
