"""The exact Gaussian kernel against differences of rows, scikit-learn and its power series."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from powersketch.kernels import Gaussian
from tests.kernels.kernel_cases import assert_frozen, assert_refused, points


def naive(gamma: float, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.float64]:
    """From differences of rows, which do not cancel."""
    differences = X[:, np.newaxis, :].astype(np.float64) - Y[np.newaxis, :, :].astype(np.float64)
    values: NDArray[np.float64] = np.exp(-gamma * (differences**2).sum(axis=2))
    return values


class TestMatrix:
    @pytest.mark.parametrize("gamma", [1e-3, 0.5, 1.0, 40.0])
    def test_equals_differences_and_scikit_learn(self, gamma: float) -> None:
        X, Y = points(30), points(20, seed=1)
        K = Gaussian(gamma)(X, Y)
        np.testing.assert_allclose(K, naive(gamma, X, Y), rtol=1e-12)
        np.testing.assert_allclose(K, rbf_kernel(X, Y, gamma=gamma), rtol=1e-12)

    def test_hand_computed(self) -> None:
        K = Gaussian(gamma=np.log(2.0))([[0.0, 0.0], [1.0, 1.0]], [[0.0, 1.0], [2.0, 1.0]])
        np.testing.assert_allclose(K, [[1 / 2, 1 / 32], [1 / 2, 1 / 2]], rtol=1e-14)

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_far_from_the_origin(self, dtype: Any) -> None:
        # Without the shift, squared norms of 6e12 leave distances an error of 1e-3.
        X, Y = (1e6 + points(30)).astype(dtype), (1e6 + points(20, seed=1)).astype(dtype)
        np.testing.assert_allclose(Gaussian()(X, Y), naive(1.0, X, Y), rtol=1e-6)
        np.testing.assert_allclose(Gaussian()(X), naive(1.0, X, X), rtol=1e-6)

    def test_equal_rows_have_at_most_the_diagonal(self) -> None:
        X = 100.0 * np.repeat(points(10), 2, axis=0)
        for K in (Gaussian(1e3)(X), Gaussian(1e3)(sparse.csr_array(X))):
            assert K.max() == 1.0
            np.testing.assert_allclose(np.diag(K, 1)[::2], 1.0, atol=1e-7)

    @given(shift=st.floats(-100.0, 100.0), gamma=st.floats(1e-3, 10.0))
    def test_shift_invariant(self, shift: float, gamma: float) -> None:
        X, Y = points(8), points(7, seed=1)
        kernel = Gaussian(gamma)
        np.testing.assert_allclose(kernel(X + shift, Y + shift), kernel(X, Y), rtol=1e-9)

    @pytest.mark.parametrize(("size", "gamma"), [(1e150, 1e-300), (1e-150, 1e300)])
    def test_huge_and_tiny_rows(self, size: float, gamma: float) -> None:
        X, Y = points(9), points(8, seed=1)
        np.testing.assert_allclose(Gaussian(gamma)(size * X, size * Y), Gaussian()(X, Y), rtol=1e-9)
        np.testing.assert_allclose(Gaussian()(1e-150 * X), 1.0, rtol=1e-15)
        np.testing.assert_array_equal(Gaussian()(1e150 * np.eye(3)), np.eye(3))

    def test_distances_beyond_float64_are_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"overflows float64: .* squared norm reaches inf.*X"):
            Gaussian()([[1e200], [1.1e200], [-9e200]])


class TestFromInnerProducts:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_any_layout_has_the_same_bits(self, dtype: Any) -> None:
        X, Y = points(30), points(20, seed=1)
        products, left, right = (X @ Y.T).astype(dtype), (X**2).sum(axis=1), (Y**2).sum(axis=1)
        expected = Gaussian(0.7).from_inner_products(products, left, right)
        assert expected.dtype == dtype
        np.testing.assert_allclose(expected, naive(0.7, X, Y), rtol=20 * np.finfo(dtype).eps)
        spaced = np.repeat(products, 2, axis=1)[:, ::2]
        for layout in (np.asfortranarray(products), spaced, products[::-1].copy()[::-1]):
            layout.flags.writeable = False
            norms = np.repeat(left, 2)[::2], np.repeat(right, 3)[::3]
            found = Gaussian(0.7).from_inner_products(layout, *norms)
            np.testing.assert_array_equal(found, expected)

    def test_what_is_not_a_number_is_an_error(self) -> None:
        with pytest.raises(ValueError, match=r"overflows float64: .* squared norm reaches 2"):
            Gaussian().from_inner_products([[1.0, np.nan]], [1.0], [1.0, 2.0])


class TestSeries:
    def test_evaluates_to_the_kernel(self) -> None:
        kernel, X, Y = Gaussian(gamma=0.7), points(9), points(8, seed=1)
        outer = np.exp(-0.7 * np.add.outer((X**2).sum(axis=1), (Y**2).sum(axis=1)))
        np.testing.assert_allclose(
            outer * kernel.power_series().value(X @ Y.T), kernel(X, Y), rtol=1e-12
        )

    def test_coefficients(self) -> None:
        coefficients = Gaussian(gamma=1.5).power_series().coefficients(4)
        np.testing.assert_allclose(coefficients, [1.0, 3.0, 4.5, 4.5, 3.375], rtol=1e-15)


class TestParameters:
    def test_defaults_and_numpy_numbers(self) -> None:
        assert Gaussian() == Gaussian(gamma=1.0)
        assert repr(Gaussian(np.float32(0.5))) == "Gaussian(gamma=0.5)"
        assert repr(Gaussian(np.int64(2))) == "Gaussian(gamma=2.0)"
        assert_frozen(Gaussian(), "gamma")

    @pytest.mark.parametrize(
        ("gamma", "error", "message"),
        [
            (0.0, ValueError, "gamma=0.0 .* above 0"),
            (-1.0, ValueError, "gamma=-1.0 .* above 0"),
            (np.nan, ValueError, "gamma=nan .* finite"),
            (np.inf, ValueError, "gamma=inf .* finite"),
            ("sqrt", ValueError, "gamma='sqrt' is unknown"),
            (None, TypeError, "gamma=None is a NoneType"),
            (1j, TypeError, "gamma=1j is a complex"),
            (True, TypeError, "gamma=True is a bool"),
        ],
    )
    def test_refused(self, gamma: Any, error: type[Exception], message: str) -> None:
        assert_refused(Gaussian, {"gamma": gamma}, error, message)


class TestOutliers:
    """An exact kernel is exact for every pair, whatever other rows there are."""

    def check(self, X: NDArray[Any], gamma: float = 0.05) -> None:
        expected = naive(gamma, X, X)
        S, kernel = sparse.csr_array(X), Gaussian(gamma)
        for K in (kernel(X), kernel(S), kernel(S, X), kernel(X, X.copy())):
            np.testing.assert_allclose(K, expected, rtol=0, atol=1e-9)
        V = np.ones(X.shape[0])
        np.testing.assert_allclose(kernel.product(X, V), expected @ V, rtol=1e-9)

    @pytest.mark.parametrize("value", [1e10, 1e20, 9.97e36])
    def test_one_row_far_away(self, value: float) -> None:
        X = np.random.default_rng(0).standard_normal((60, 12))
        X[3, 0] = value
        self.check(X)

    @pytest.mark.parametrize("distance", [1e4, 1e8, 1e12])
    def test_two_clusters(self, distance: float) -> None:
        X = np.random.default_rng(0).standard_normal((60, 12))
        X[30:] += distance
        self.check(X)

    def test_rows_far_from_each_other_with_equal_ones_among_them(self) -> None:
        X = 1e10 * np.random.default_rng(0).standard_normal((60, 12))
        X[5] = X[7]
        self.check(X)
