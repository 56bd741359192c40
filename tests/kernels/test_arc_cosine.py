"""The exact arc-cosine kernels against integrals, published values and their own identities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels import ArcCosine
from powersketch.kernels.arc_cosine import kappa_0, kappa_1, kappa_2
from tests.kernels.kernel_cases import assert_frozen, assert_refused, points

KAPPAS: list[Callable[[Any], NDArray[np.float64]]] = [kappa_0, kappa_1, kappa_2]
PEAKS = [1.0, 1.0, 3.0]

orders = pytest.mark.parametrize("order", [0, 1, 2])
depths = pytest.mark.parametrize("depth", [1, 2, 3])


def integral(order: int, angle: float) -> float:
    """Twice E[max(0, u)^n max(0, v)^n] for normal u, v whose correlation is that of the angle.

    In polar coordinates the radius gives 2^n n!, and the rest is an integral over the directions
    in which both are positive.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = (math.pi - angle) / 2
    # Measured from the middle of the interval, its ends come out as differences of angles only.
    left, right = np.cos(half * nodes + angle / 2), np.cos(half * nodes - angle / 2)
    total = half * float(np.sum(weights * (left * right) ** order))
    return 2**order * math.factorial(order) / math.pi * total


def naive(order: int, depth: int, x: NDArray[Any], y: NDArray[Any]) -> float:
    """The recursion as it is defined, on one pair of rows."""
    left, right, pair = float(x @ x), float(y @ y), float(x @ y)
    for _ in range(depth):
        angle = math.acos(max(-1.0, min(1.0, pair / math.sqrt(left * right))))
        pair = math.sqrt(left * right) ** order * integral(order, angle)
        left, right = PEAKS[order] * left**order, PEAKS[order] * right**order
    return pair


class TestKappas:
    @orders
    def test_published_values(self, order: int) -> None:
        values = KAPPAS[order]([-1.0, 0.0, 1.0])
        expected = [[0.0, 0.5, 1.0], [0.0, 1.0 / math.pi, 1.0], [0.0, 0.5, 3.0]][order]
        np.testing.assert_allclose(values, expected, rtol=1e-15)
        assert values[2] == expected[2]

    @orders
    def test_equals_the_integral(self, order: int) -> None:
        angles = np.linspace(0.0, math.pi, 201)[:-1]
        expected = [integral(order, angle) for angle in angles]
        np.testing.assert_allclose(KAPPAS[order](np.cos(angles)), expected, rtol=1e-12)

    @orders
    def test_relative_precision_next_to_minus_one(self, order: int) -> None:
        # The complement of the angle follows from 1 + cos without loss.
        above = np.array([2.0**-k for k in range(1, 50)])
        complements = 2.0 * np.arcsin(np.sqrt(above / 2.0))
        expected = [leading_term(order, angle) for angle in complements]
        values = KAPPAS[order](above - 1.0)
        np.testing.assert_allclose(values, expected, rtol=1e-14)

    @orders
    def test_precision_next_to_one(self, order: int) -> None:
        below = np.array([2.0**-k for k in range(1, 53)])
        expected = [integral(order, 2.0 * math.asin(math.sqrt(gap / 2.0))) for gap in below]
        np.testing.assert_allclose(KAPPAS[order](1.0 - below), expected, rtol=1e-14)

    @orders
    def test_outside_counts_as_the_end(self, order: int) -> None:
        np.testing.assert_array_equal(KAPPAS[order]([-1.5, 1.0 + 1e-15]), [0.0, PEAKS[order]])

    @orders
    def test_any_shape_and_dtype(self, order: int) -> None:
        kappa = KAPPAS[order]
        for shape in ((), (0,), (3,), (2, 0, 3), (2, 3)):
            assert kappa(np.full(shape, -0.9)).shape == shape
        single = kappa(np.array([0.25, -0.75], dtype=np.float32))
        assert single.dtype == np.float64
        np.testing.assert_array_equal(single, kappa([0.25, -0.75]))
        assert np.isnan(kappa(np.nan))

    @orders
    def test_input_is_left_as_it_was(self, order: int) -> None:
        cosines = np.linspace(-1.0, 1.0, 9)
        cosines.flags.writeable = False
        KAPPAS[order](cosines)
        np.testing.assert_array_equal(cosines, np.linspace(-1.0, 1.0, 9))

    def test_derivative(self) -> None:
        # κ₁' = κ₀ and κ₂' = 4 κ₁, by central differences.
        cosines, step = np.linspace(-0.95, 0.95, 39), 1e-5
        for function, derivative in ((kappa_1, kappa_0), (kappa_2, lambda t: 4.0 * kappa_1(t))):
            slopes = (function(cosines + step) - function(cosines - step)) / (2 * step)
            np.testing.assert_allclose(slopes, derivative(cosines), atol=1e-8)


def leading_term(order: int, complement: float) -> float:
    """The integral over a small interval around the direction that bisects two opposite ones."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = complement / 2
    # cos(h t + a/2) = sin(h (1 − t)) and cos(h t − a/2) = sin(h (1 + t)), as a/2 = π/2 − h.
    product = np.sin(half * (1.0 - nodes)) * np.sin(half * (1.0 + nodes))
    total = half * float(np.sum(weights * product**order))
    return 2**order * math.factorial(order) / math.pi * total


class TestMatrix:
    @orders
    @depths
    def test_equals_the_recursion(self, order: int, depth: int) -> None:
        X, Y = points(12), points(9, seed=1)
        expected = [[naive(order, depth, x, y) for y in Y] for x in X]
        np.testing.assert_allclose(ArcCosine(order, depth)(X, Y), expected, rtol=1e-11)

    @orders
    def test_equals_random_features(self, order: int) -> None:
        # Twice the mean over 20 000 random weights; the bound is seven standard errors.
        X = points(5, 3)
        W = np.random.default_rng(0).normal(size=(3, 20_000))
        features = np.heaviside(X @ W, 0.0) * (X @ W) ** order
        samples = 2.0 * features[:, np.newaxis] * features[np.newaxis]
        errors = samples.mean(axis=2) - ArcCosine(order)(X)
        assert (np.abs(errors) <= 7.0 * samples.std(axis=2) / np.sqrt(20_000)).all()

    @orders
    @depths
    def test_homogeneous(self, order: int, depth: int) -> None:
        kernel, X, Y = ArcCosine(order, depth), points(6), points(5, seed=1)
        power = order**depth
        np.testing.assert_allclose(kernel(3.0 * X, Y), 3.0**power * kernel(X, Y), rtol=1e-13)
        np.testing.assert_allclose(kernel(X, 0.1 * Y), 0.1**power * kernel(X, Y), rtol=1e-13)

    @orders
    @depths
    def test_diagonal(self, order: int, depth: int) -> None:
        X = points(9)
        expected = (X**2).sum(axis=1)
        for _ in range(depth):
            expected = PEAKS[order] * expected**order
        np.testing.assert_allclose(ArcCosine(order, depth).diagonal(X), expected, rtol=1e-14)

    @orders
    @depths
    @pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])
    def test_zero_rows_are_zero(
        self, order: int, depth: int, to_layout: Callable[[Any], Any]
    ) -> None:
        X = to_layout(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]]))
        K = ArcCosine(order, depth)(X)
        np.testing.assert_array_equal(K[1], 0.0)
        np.testing.assert_array_equal(K[:, 1], 0.0)
        assert ArcCosine(order, depth).diagonal(X)[1] == 0.0
        assert (K[[0, 0, 2, 2], [0, 2, 0, 2]] > 0.0).all()

    @orders
    @depths
    @pytest.mark.parametrize("left", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("right", [np.asarray, sparse.csr_array])
    def test_equal_and_opposite_rows_are_exact(
        self, order: int, depth: int, left: Callable[[Any], Any], right: Callable[[Any], Any]
    ) -> None:
        X, kernel = np.random.default_rng(0).normal(size=(40, 17)), ArcCosine(order, depth)
        diagonal = kernel.diagonal(X)
        np.testing.assert_allclose(np.diag(kernel(left(X), right(X.copy()))), diagonal, rtol=1e-14)
        np.testing.assert_allclose(np.diag(kernel(left(4.0 * X), right(X / 4.0))), diagonal, 1e-14)
        opposite = np.diag(kernel(left(X), right(-X)))
        np.testing.assert_allclose(opposite / diagonal, kernel.profile(-1.0) / kernel.profile(1.0))

    def test_many_equal_rows(self) -> None:
        X = np.tile(points(1, 90), (520, 1))
        for layout in (X, sparse.csr_array(X)):
            np.testing.assert_array_equal(ArcCosine(order=0, depth=3)(layout), 1.0)

    @depths
    def test_order_zero_does_not_see_norms(self, depth: int) -> None:
        kernel, X, Y = ArcCosine(0, depth), points(6), points(5, seed=1)
        for left, right in ((1e300, 1e300), (1e-300, 1e-300), (1e300, 1e-300), (5e-324, 1.0)):
            rows = np.where(X == 0.0, 0.0, left) if left < 1e-310 else left * X
            expected = kernel(np.sign(np.abs(X)), Y) if left < 1e-310 else kernel(X, Y)
            np.testing.assert_allclose(kernel(rows, right * Y), expected, rtol=1e-12)
            np.testing.assert_allclose(
                kernel(sparse.csr_array(rows), right * Y), expected, rtol=1e-12
            )

    def test_huge_and_tiny_rows(self) -> None:
        X, Y = points(6), points(5, seed=1)
        for order in (1, 2):
            kernel = ArcCosine(order)
            np.testing.assert_allclose(kernel(1e200 * X, 1e-200 * Y), kernel(X, Y), rtol=1e-12)
        np.testing.assert_allclose(
            ArcCosine(1)(1e150 * X), 1e300 * ArcCosine(1)(X), rtol=1e-12, atol=1e290
        )
        np.testing.assert_allclose(
            ArcCosine(1)(1e-150 * X), 1e-300 * ArcCosine(1)(X), rtol=1e-12, atol=1e-310
        )


class TestProfile:
    @orders
    @depths
    def test_equals_the_kernel(self, order: int, depth: int) -> None:
        kernel, angles = ArcCosine(order, depth), np.linspace(0.0, math.pi, 9)
        circle = 1.5 * np.column_stack([np.cos(angles), np.sin(angles)])
        values = kernel.profile(np.cos(angles), squared_norm=2.25)
        np.testing.assert_allclose(kernel([[1.5, 0.0]], circle)[0], values, atol=1e-7)
        assert values[0] == kernel.diagonal([[1.5, 0.0]])[0]

    @orders
    @depths
    def test_series_evaluates_to_it(self, order: int, depth: int) -> None:
        cosines = np.linspace(-0.9, 0.9, 13)
        kernel = ArcCosine(order, depth)
        value = kernel.power_series().value(cosines)
        np.testing.assert_allclose(value, kernel.profile(cosines), rtol=1e-10)
        coefficients = kernel.power_series().coefficients(400)
        evaluated = np.polynomial.polynomial.polyval(cosines, coefficients)
        np.testing.assert_allclose(evaluated, kernel.profile(cosines), rtol=1e-10)

    def test_scalar(self) -> None:
        assert float(ArcCosine(2).profile(1.0, 2.0)) == 12.0

    @given(cosine=st.floats(-1.0, 1.0), order=st.integers(0, 2), depth=st.integers(1, 4))
    def test_never_above_its_value_at_one(self, cosine: float, order: int, depth: int) -> None:
        kernel = ArcCosine(order, depth)
        assert 0.0 <= kernel.profile(cosine) <= kernel.profile(1.0)

    @pytest.mark.parametrize("squared_norm", [0.0, -1.0, np.nan, np.inf])
    def test_refused_squared_norm(self, squared_norm: float) -> None:
        with pytest.raises(ValueError, match=r"squared_norm=.* above 0"):
            ArcCosine().profile([0.5], squared_norm=squared_norm)


class TestParameters:
    def test_defaults_and_numpy_numbers(self) -> None:
        assert ArcCosine() == ArcCosine(order=1, depth=1)
        assert repr(ArcCosine(np.int8(2), np.uint64(3))) == "ArcCosine(order=2, depth=3)"  # type: ignore[arg-type]
        assert_frozen(ArcCosine(), "order")

    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            ({"order": 3}, ValueError, "order=3 is out of range; .* from 0 to 2"),
            ({"order": -1}, ValueError, "order=-1 .* from 0 to 2"),
            ({"order": 1.0}, TypeError, "order=1.0 is a float"),
            ({"order": True}, TypeError, "order=True is a bool"),
            ({"depth": 0}, ValueError, "depth=0 .* at least 1"),
            ({"depth": 2.5}, TypeError, "depth=2.5 is a float"),
            ({"depth": "2"}, TypeError, "depth='2' is a str"),
        ],
    )
    def test_refused(
        self, parameters: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        assert_refused(ArcCosine, parameters, error, message)
