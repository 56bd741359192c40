"""The exact neural tangent kernel against published values and the recursion that defines it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels import NeuralTangent
from tests.kernels.kernel_cases import assert_frozen, assert_refused, points

COSINES = [-1.0, -0.5, 0.0, 0.5, 0.9, 1.0]
# K_L at these cosines, from the recursion in [ZHASKS21] without biases.
PUBLISHED = {
    1: [0.0, -0.0576688856, 0.3183098862, 0.9423311144, 1.6803287350, 2.0],
    2: [0.3183098862, 0.3438622463, 0.6857086363, 1.3514795611, 2.3688136627, 3.0],
    3: [0.6857086363, 0.7422493226, 1.0603881068, 1.7378446792, 2.9856931874, 4.0],
    5: [1.4303904972, 1.5071068020, 1.7921959668, 2.4628931325, 4.0608947406, 6.0],
}
VARIANTS = [
    NeuralTangent(depth, train_output, weight_variance, bias_variance)
    for depth in (1, 2, 4)
    for train_output in (True, False)
    for weight_variance, bias_variance in ((2.0, 0.0), (1.5, 0.3), (3.0, 2.0))
]
variants = pytest.mark.parametrize("kernel", VARIANTS, ids=repr)
without_bias = pytest.mark.parametrize(
    "kernel", [kernel for kernel in VARIANTS if kernel.bias_variance == 0.0], ids=repr
)


def naive(kernel: NeuralTangent, x: NDArray[Any], y: NDArray[Any]) -> float:
    """The recursion as it is defined, on one pair of rows, with covariances as they are."""
    gain, bias = kernel.weight_variance / 2, kernel.bias_variance
    left, right, pair = (gain * float(a @ b) + bias for a, b in ((x, x), (y, y), (x, y)))
    tangent = pair
    for layer in range(kernel.depth):
        scale = math.sqrt(left * right)
        cosine = max(-1.0, min(1.0, pair / scale))
        angle = math.acos(cosine)
        slope = 1.0 - angle / math.pi
        if layer == kernel.depth - 1 and not kernel.train_output:
            return 0.5 * slope * tangent
        image = (math.sin(angle) + (math.pi - angle) * cosine) / math.pi
        pair = gain * scale * image + bias
        tangent = pair + gain * slope * tangent
        left, right = gain * left + bias, gain * right + bias
    return tangent


class TestPublishedValues:
    @pytest.mark.parametrize("depth", PUBLISHED)
    def test_profile(self, depth: int) -> None:
        values = NeuralTangent(depth).profile(COSINES)
        np.testing.assert_allclose(values, PUBLISHED[depth], rtol=0, atol=1e-10)

    @pytest.mark.parametrize("depth", PUBLISHED)
    def test_matrix(self, depth: int) -> None:
        circle = np.array([[t, math.sqrt(1.0 - t * t)] for t in COSINES])
        K = NeuralTangent(depth)([[2.0, 0.0]], 3.0 * circle)
        np.testing.assert_allclose(K[0], 6.0 * np.array(PUBLISHED[depth]), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("depth", [1, 2, 3, 5, 50])
    def test_peak_is_one_more_than_the_depth(self, depth: int) -> None:
        np.testing.assert_allclose(NeuralTangent(depth).profile(1.0), depth + 1, rtol=1e-14)
        diagonal = NeuralTangent(depth).diagonal([[3.0, 4.0]])
        np.testing.assert_allclose(diagonal, 25.0 * (depth + 1), rtol=1e-14)

    def test_first_layer_only(self) -> None:
        # [SWYZ21]: t / 4 + t arcsin(t) / 2π on rows of norm one.
        t = np.linspace(-1.0, 1.0, 21)
        expected = t / 4 + t * np.arcsin(t) / (2 * math.pi)
        kernel = NeuralTangent(train_output=False)
        np.testing.assert_allclose(kernel.profile(t), expected, atol=1e-15)
        circle = np.column_stack([t, np.sqrt(1.0 - t**2)])
        np.testing.assert_allclose(kernel([[1.0, 0.0]], circle)[0], expected, atol=1e-9)

    def test_parameterisation_with_mean_inner_products(self) -> None:
        # S_0 = σ_w² ⟨x, y⟩ / d + σ_b², one hidden layer, written out.
        X, Y = points(5), points(4, seed=1)
        covariance = 1.5 * X @ Y.T / 6 + 0.3
        left, right = ((1.5 * (A**2).sum(axis=1) / 6 + 0.3) for A in (X, Y))
        scale = np.sqrt(np.outer(left, right))
        angles = np.arccos(covariance / scale)
        image = (np.sin(angles) + (math.pi - angles) * np.cos(angles)) / math.pi
        tangent = 0.75 * scale * image + 0.3 + 0.75 * (1.0 - angles / math.pi) * covariance
        kernel = NeuralTangent(weight_variance=1.5, bias_variance=0.3)
        scaled = kernel(math.sqrt(2 / 6) * X, math.sqrt(2 / 6) * Y)
        np.testing.assert_allclose(scaled, tangent, rtol=1e-12)


class TestMatrix:
    @variants
    def test_equals_the_recursion(self, kernel: NeuralTangent) -> None:
        X, Y = points(12), points(9, seed=1)
        X[3], Y[4] = 20.0 * X[3], 0.01 * Y[4]
        expected = np.array([[naive(kernel, x, y) for y in Y] for x in X])
        np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-11, atol=1e-13)
        diagonal = [naive(kernel, x, x) for x in X]
        np.testing.assert_allclose(kernel.diagonal(X), diagonal, rtol=3e-8)

    @variants
    def test_equal_rows_off_the_diagonal(self, kernel: NeuralTangent) -> None:
        X = np.random.default_rng(0).normal(size=(40, 17))
        for layout in (X, sparse.csr_array(X)):
            diagonal = np.diag(kernel(layout, X.copy()))
            np.testing.assert_allclose(diagonal, kernel.diagonal(X), rtol=1e-13)

    @without_bias
    def test_homogeneous(self, kernel: NeuralTangent) -> None:
        X, Y = points(6), points(5, seed=1)
        np.testing.assert_allclose(kernel(3.0 * X, 0.1 * Y), 0.3 * kernel(X, Y), rtol=1e-12)

    @without_bias
    def test_zero_rows_without_bias_are_zero(self, kernel: NeuralTangent) -> None:
        X = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
        for layout in (X, sparse.csr_array(X)):
            np.testing.assert_array_equal(kernel(layout)[1], 0.0)
            np.testing.assert_array_equal(kernel(layout)[:, 1], 0.0)
            assert kernel.diagonal(layout)[1] == 0.0

    def test_zero_rows_with_bias(self) -> None:
        kernel = NeuralTangent(depth=2, weight_variance=1.5, bias_variance=0.3)
        X = np.array([[3.0, 4.0], [0.0, 0.0]])
        expected = [[naive(kernel, x, y) for y in X] for x in X]
        np.testing.assert_allclose(kernel(X), expected, rtol=3e-8)

    @without_bias
    def test_huge_and_tiny_rows(self, kernel: NeuralTangent) -> None:
        X, Y = points(6), points(5, seed=1)
        K = kernel(X, Y)
        np.testing.assert_allclose(kernel(1e200 * X, 1e-200 * Y), K, rtol=1e-12)
        np.testing.assert_allclose(kernel(1e150 * X, 1e150 * Y) / 1e300, K, rtol=1e-12)
        np.testing.assert_allclose(1e300 * kernel(1e-150 * X, 1e-150 * Y), K, rtol=1e-7, atol=1e-20)

    def test_huge_and_tiny_rows_with_bias(self) -> None:
        X, bias = points(6), NeuralTangent(3, weight_variance=1.5, bias_variance=0.3)
        huge = NeuralTangent(3, weight_variance=1.5)(X)
        np.testing.assert_allclose(bias(1e150 * X) / 1e300, huge, rtol=1e-7)
        constant = bias.profile(1.0, squared_norm=1e-300)
        np.testing.assert_allclose(bias(1e-150 * X), constant, rtol=1e-7)


class TestProfile:
    @variants
    @pytest.mark.parametrize("squared_norm", [1.0, 0.04, 9.0])
    def test_equals_the_kernel(self, kernel: NeuralTangent, squared_norm: float) -> None:
        norm, angles = math.sqrt(squared_norm), np.linspace(0.1, math.pi - 0.1, 9)
        circle = norm * np.column_stack([np.cos(angles), np.sin(angles)])
        first = np.array([[norm, 0.0]])
        size = kernel.weight_variance / 2 * squared_norm + kernel.bias_variance
        cosines = kernel.weight_variance / 2 * (first @ circle.T)[0] + kernel.bias_variance
        values = kernel.profile(cosines / size, squared_norm)
        np.testing.assert_allclose(values, kernel(first, circle)[0], rtol=1e-9, atol=1e-12)
        at_one = kernel.profile(1.0, squared_norm)
        np.testing.assert_allclose(at_one, kernel.diagonal(first)[0], rtol=1e-13)

    @variants
    @pytest.mark.parametrize("squared_norm", [1.0, 4.0])
    def test_series_evaluates_to_it(self, kernel: NeuralTangent, squared_norm: float) -> None:
        cosines = np.linspace(-0.9, 0.9, 13)
        profile = kernel.profile(cosines, squared_norm)
        series = kernel.power_series(squared_norm)
        np.testing.assert_allclose(series.value(cosines), profile, rtol=1e-9, atol=1e-12)
        evaluated = np.polynomial.polynomial.polyval(cosines, series.coefficients(400))
        np.testing.assert_allclose(evaluated, profile, rtol=1e-9, atol=1e-12)

    @without_bias
    def test_squared_norm_is_a_factor_without_bias(self, kernel: NeuralTangent) -> None:
        profile = kernel.profile(COSINES)
        np.testing.assert_allclose(kernel.profile(COSINES, 7.0), 7.0 * profile, rtol=1e-13)

    @given(cosine=st.floats(-1.0, 1.0), squared_norm=st.floats(1e-3, 1e3))
    def test_never_above_its_value_at_one(self, cosine: float, squared_norm: float) -> None:
        for kernel in VARIANTS:
            peak = float(kernel.profile(1.0, squared_norm))
            assert abs(kernel.profile(cosine, squared_norm)) <= peak * (1.0 + 1e-12)

    def test_refused_squared_norm(self) -> None:
        for call in (NeuralTangent().power_series, lambda s: NeuralTangent().profile(0.5, s)):
            with pytest.raises(ValueError, match=r"squared_norm=-1.0 .* above 0"):
                call(-1.0)


class TestParameters:
    def test_defaults_and_numpy_numbers(self) -> None:
        assert NeuralTangent() == NeuralTangent(1, True, 2.0, 0.0)
        kernel = NeuralTangent(np.int32(2), np.bool_(False), np.float32(1.5), np.int64(1))  # type: ignore[arg-type]
        assert repr(kernel) == (
            "NeuralTangent(depth=2, train_output=False, weight_variance=1.5, bias_variance=1.0)"
        )
        assert_frozen(kernel, "depth")

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"depth": 0}, ValueError, "depth=0 .* at least 1"),
            ({"depth": 1.0}, TypeError, "depth=1.0 is a float"),
            ({"depth": True}, TypeError, "depth=True is a bool"),
            ({"train_output": 1}, TypeError, "train_output=1 is a int; allowed are True and"),
            ({"train_output": None}, TypeError, "train_output=None is a NoneType"),
            ({"weight_variance": 0.0}, ValueError, "weight_variance=0.0 .* above 0"),
            ({"weight_variance": np.inf}, ValueError, "weight_variance=inf .* finite"),
            ({"weight_variance": "2"}, TypeError, "weight_variance='2' is a str"),
            ({"bias_variance": -0.1}, ValueError, "bias_variance=-0.1 .* not positive definite"),
            ({"bias_variance": np.nan}, ValueError, "bias_variance=nan .* finite"),
            ({"bias_variance": 1j}, TypeError, "bias_variance=1j is a complex"),
        ],
    )
    def test_refused(
        self, parameters: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        assert_refused(NeuralTangent, parameters, error, message)
