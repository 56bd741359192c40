"""Gradients of kernel expansions, against central differences of the kernel itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels import (
    ArcCosine,
    DotProduct,
    Gaussian,
    Kernel,
    NeuralTangent,
    Polynomial,
    WithLinear,
)
from powersketch.kernels import tiles as tiles_module
from powersketch.kernels.series import NAMED_SERIES, callable_series, exponential_series
from tests.kernels.kernel_cases import (
    assert_close,
    each_dtype,
    each_kernel,
    each_tiling,
    points,
)

# Of central differences: their step times itself, and rounding errors over the step.
DIFFERENCES = 1e-7
STEP = 1e-5


def differences(
    kernel: Kernel, X: NDArray[Any], V: NDArray[Any], Y: NDArray[Any]
) -> NDArray[np.float64]:
    steps = STEP * np.eye(X.shape[1])
    columns = [(kernel(X + step, Y) @ V - kernel(X - step, Y) @ V) / (2.0 * STEP) for step in steps]
    return np.stack(columns, axis=-1)


def needs_angles(kernel: Kernel) -> bool:
    """Tell whether rows that are zero have nothing that the kernel is a function of."""
    if isinstance(kernel, WithLinear):
        return needs_angles(kernel.kernel)
    return isinstance(kernel, ArcCosine) or getattr(kernel, "bias_variance", 1.0) == 0.0


@pytest.fixture(scope="class")
def small_tiles() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles_module, "_EDGE", 16)
        yield


@pytest.mark.usefixtures("small_tiles")
class TestEveryKernel:
    @each_kernel
    def test_equal_to_differences(self, kernel: Kernel) -> None:
        X, Y, V = points(40), points(35, seed=1), points(35, 3, seed=2)
        expected = differences(kernel, X, V, Y)
        gradients = kernel.gradients(X, V, Y)
        assert gradients.shape == (40, 3, 6)
        assert gradients.dtype == np.float64
        assert_close(gradients, expected, DIFFERENCES)
        one = kernel.gradients(X, V[:, 1], Y)
        assert one.shape == (40, 6)
        assert_close(one, gradients[:, 1])

    @each_kernel
    def test_sparse_rows(self, kernel: Kernel) -> None:
        X, Y, V = points(40), points(35, seed=1), points(35, 2, seed=2)
        expected = kernel.gradients(X, V, Y)
        for left, right in (
            (sparse.csr_array(X), sparse.csr_matrix(Y)),
            (sparse.csc_matrix(X), Y),
            (X, sparse.coo_array(Y)),
        ):
            gradients = kernel.gradients(left, V, right)
            assert type(gradients) is np.ndarray
            assert_close(gradients, expected)

    @each_kernel
    def test_at_the_rows_themselves(self, kernel: Kernel) -> None:
        X, V = points(40), points(40, 2, seed=2)
        gradients = kernel.gradients(X, V)
        assert np.isfinite(gradients).all()
        assert_close(gradients, kernel.gradients(X, V, X.copy()))

    @each_kernel
    def test_at_equal_rows_half_of_that_of_the_diagonal(self, kernel: Kernel) -> None:
        for row in points(10):
            steps = row + STEP * np.eye(6), row - STEP * np.eye(6)
            slopes = (kernel.diagonal(steps[0]) - kernel.diagonal(steps[1])) / (4.0 * STEP)
            scale = 1.0 + np.abs(slopes).max()
            gradient = kernel.gradients(row[np.newaxis], [1.0])[0]
            np.testing.assert_allclose(gradient, slopes, rtol=0.0, atol=DIFFERENCES * scale)

    @each_kernel
    @pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9, 1e-12, 1e-16, 1e-30, 1e-300])
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_bounded_at_nearly_parallel_rows(
        self, kernel: Kernel, distance: float, sign: float
    ) -> None:
        X = points(10)
        X[:, 0] = 0.0
        Y = sign * X
        Y[:, 0] = distance
        gradients = kernel.gradients(X, np.eye(10), Y)
        # Layers of order 0 have roots as singularities, which are steeper than cones.
        assert np.abs(gradients).max() < (1e8 if isinstance(kernel, ArcCosine) else 1e3)

    @each_kernel
    def test_one_row(self, kernel: Kernel) -> None:
        X, Y = points(1), points(1, seed=1)
        expected = differences(kernel, X, np.ones(1), Y)
        assert_close(kernel.gradients(X, [1.0], Y), expected, DIFFERENCES)

    @each_kernel
    def test_linear_in_the_coefficients(self, kernel: Kernel) -> None:
        X, Y, V = points(20), points(35, seed=1), points(35, 2, seed=2)
        gradients = kernel.gradients(X, V, Y)
        assert_close(kernel.gradients(X, V @ [2.0, -3.0], Y), [2.0, -3.0] @ gradients)
        assert not kernel.gradients(X, np.zeros(35), Y).any()
        assert kernel.gradients(X, np.zeros((35, 0)), Y).shape == (20, 0, 6)

    @each_kernel
    def test_dtypes(self, kernel: Kernel) -> None:
        X, V = points(20).astype(np.float32), points(20, 2, seed=2).astype(np.float32)
        double = kernel.gradients(X.astype(np.float64), V.astype(np.float64))
        single = kernel.gradients(X, V)
        assert single.dtype == np.float32
        assert_close(single, double, 1e-6)
        for rows, vectors in ((X, V.astype(np.float64)), (X.astype(np.float64), V)):
            gradients = kernel.gradients(rows, vectors)
            assert gradients.dtype == np.float64
            assert_close(gradients, double)

    @each_kernel
    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_zero_rows(self, kernel: Kernel, to_layout: Callable[[Any], Any]) -> None:
        X, Y, V = points(20), points(35, seed=1), points(35, 2, seed=2)
        X[3], Y[4:6] = 0.0, 0.0
        gradients = kernel.gradients(to_layout(X), V, to_layout(Y))
        expected = differences(kernel, X, V, Y)
        if needs_angles(kernel):
            expected[3] = kernel.weight * V.T @ Y if isinstance(kernel, WithLinear) else 0.0
        assert_close(gradients, expected, DIFFERENCES)

    @each_kernel
    def test_threads_change_rounding_at_most(self, kernel: Kernel) -> None:
        X, V = points(40), points(40, 2, seed=2)
        assert_close(kernel.gradients(X, V, n_jobs=2), kernel.gradients(X, V))


@pytest.mark.parametrize(
    ("kernel", "power", "sizes"),
    [
        (ArcCosine(order=0, depth=2), -1, (1e-150, 1e150)),
        (ArcCosine(order=1, depth=3), 1, (1e-250, 1e250)),
        (ArcCosine(order=2), 3, (1e-90, 1e90)),
        (NeuralTangent(depth=2), 1, (1e-250, 1e250)),
        (NeuralTangent(train_output=False), 1, (1e-250, 1e250)),
        (Polynomial(degree=3), 5, (1e-50, 1e50)),
    ],
)
def test_sizes_of_rows_are_factors(kernel: Kernel, power: int, sizes: tuple[float, float]) -> None:
    X, V = points(20), points(20, 2, seed=2)
    gradients = kernel.gradients(X, V)
    for size in sizes:
        assert_close(kernel.gradients(size * X, V) / size**power, gradients, 1e-7)


@pytest.mark.parametrize("size", [1e-100, 1e-3, 1e3, 1e100])
def test_gaussian_rows_of_any_size(size: float) -> None:
    X, V = points(20), points(20, 2, seed=2)
    gradients = size * Gaussian(gamma=size**-2).gradients(size * X, V)
    assert_close(gradients, Gaussian().gradients(X, V))


class TestDotProducts:
    @pytest.mark.parametrize("series", [*NAMED_SERIES, [2.0], [1.0, 3.0], [0.0, 1.0, 0.5, 2.0]])
    @pytest.mark.parametrize("gamma", [1.0, 0.2])
    def test_named_and_coefficients(self, series: Any, gamma: float) -> None:
        X, Y, V = 0.4 * points(20), 0.4 * points(15, seed=1), points(15, 2, seed=2)
        kernel = DotProduct(series, gamma)
        expected = differences(kernel, X, V, Y)
        assert_close(kernel.gradients(X, V, Y), expected, 10 * DIFFERENCES)

    @pytest.mark.parametrize(
        "function",
        [np.exp, lambda t: 1.0 / (2.0 - t), lambda t: t**5, lambda t: 1.0 + 0.0 * t.real],
    )
    def test_callables(self, function: Callable[[Any], Any]) -> None:
        X, Y, V = points(20), points(15, seed=1), points(15, 2, seed=2)
        kernel = DotProduct(function, gamma=0.5)
        assert_close(kernel.gradients(X, V, Y), differences(kernel, X, V, Y), DIFFERENCES)

    def test_of_series(self) -> None:
        X, V = points(20), points(20, 2, seed=2)
        expected = DotProduct("exp", 0.5).gradients(X, V)
        for series in (exponential_series(0.5), callable_series(lambda t: np.exp(0.5 * t), 4.0)):
            assert_close(DotProduct(series).gradients(X, V), expected)
        with pytest.raises(TypeError, match="does not say what its derivative is; names, coeff"):
            DotProduct(ArcCosine().power_series()).gradients(0.1 * X, V)

    def test_infinite_ones_are_left_out(self) -> None:
        X = points(20)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        apart = DotProduct("arcsin").gradients(X[:1], np.ones(19), X[1:])
        assert_close(DotProduct("arcsin").gradients(X[:1], np.ones(20), X), apart)

    def test_functions_without_derivatives(self) -> None:
        with pytest.raises(TypeError, match="returns float64 for complex numbers; a derivative"):
            DotProduct(lambda t: np.abs(t) ** 2).gradients(points(3), np.ones(3))


class TestWithoutDerivatives:
    def test_says_what_to_define(self) -> None:
        class Constant(Kernel):
            def _values(self, products: Any, left: Any, right: Any) -> Any:
                return np.ones_like(products)

            def _diagonal_values(self, sizes: Any) -> Any:
                return np.ones_like(sizes)

        message = r"Constant does not say .* use one of them, or define its _derivatives\(products"
        with pytest.raises(TypeError, match=message):
            Constant().gradients(points(3), np.ones(3))

    def test_of_ones_own(self) -> None:
        class InverseQuadratic(Kernel):
            def _values(self, products: Any, left: Any, right: Any) -> Any:
                return 1.0 / (1.0 + np.add.outer(left, right) - 2.0 * products)

            def _diagonal_values(self, sizes: Any) -> Any:
                return np.ones_like(sizes)

            def _derivatives(self, products: Any, left: Any, right: Any) -> Any:
                slopes = 2.0 * self._values(products, left, right) ** 2
                return slopes, -slopes

        X, Y, V = points(40), points(35, seed=1), points(35, 3, seed=2)
        for kernel in (InverseQuadratic(), WithLinear(InverseQuadratic(), 0.5)):
            expected = differences(kernel, X, V, Y)
            assert_close(kernel.gradients(X, V, Y), expected, DIFFERENCES)


class TestInput:
    @pytest.mark.parametrize(
        ("V", "error", "message"),
        [
            (np.ones(3), ValueError, r"V has shape \(3,\); allowed are \(4,\) and \(4, t\)"),
            ([1.0, np.nan, 0.0, 0.0], ValueError, "V contains NaN or infinity"),
            ([1j, 0, 0, 0], TypeError, "V has dtype complex128"),
        ],
    )
    def test_refused_vectors(self, V: Any, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            Gaussian().gradients(points(4), V)

    def test_refused_rows(self) -> None:
        with pytest.raises(ValueError, match=r"X has 6 features and Y has 5"):
            Gaussian().gradients(points(3), np.ones(3), points(3, 5))
        with pytest.raises(ValueError, match="X contains NaN"):
            Gaussian().gradients([[np.nan]], [1.0])

    def test_overflow_is_an_error(self) -> None:
        X = np.array([[1e200, 1.0]])
        with pytest.raises(ValueError, match=r"a gradient overflows float64: .* scale X or V down"):
            Polynomial(degree=2).gradients(X, [1.0])
        X = np.array([[1e20, 1.0]], dtype=np.float32)
        with pytest.raises(ValueError, match=r"overflows float32: .* down, or use float64\."):
            Polynomial(degree=2).gradients(X, np.ones(1, np.float32))

    @each_tiling
    @each_dtype
    def test_left_as_it_was(self, kernel: Kernel, dtype: Any) -> None:
        X, V = points(10).astype(dtype), np.ones(10, dtype)
        kernel.gradients(X, V)
        np.testing.assert_array_equal(X, points(10).astype(dtype))
        np.testing.assert_array_equal(V, np.ones(10))


def test_gaussian_far_from_the_origin() -> None:
    X, V = points(30), points(30, 2, seed=2)
    assert_close(Gaussian().gradients(X + 1e6, V), Gaussian().gradients(X, V), 1e-8)
