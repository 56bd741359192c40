"""Expansions: their factors and powers, put together again, are the kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.feature_maps.expansions import Expansion
from powersketch.feature_maps.expansions.centred import (
    CentredRows,
    GaussianExpansion,
    MeanDirection,
    PolynomialExpansion,
    SinglePowerExpansion,
)
from powersketch.feature_maps.expansions.finite_series import (
    FiniteSeries,
    fitted_series,
    horner,
    truncated_series,
)
from powersketch.feature_maps.expansions.series import (
    MeanSeriesExpansion,
    PowerSum,
    SeriesExpansion,
    landmark_features,
)
from powersketch.feature_maps.rows import AugmentedRows
from powersketch.kernels import Gaussian, Polynomial
from powersketch.kernels.series import NAMED_SERIES
from tests.feature_maps.cases import digits, squared_lengths, uncentred, unit_rows
from tests.kernels.kernel_cases import neural_tangent_series

Array = NDArray[Any]

FINITE = FiniteSeries((0, 1, 2, 5), np.array([0.3, 1.0, 0.5, 0.2]), 1.0, 0.0, 0.0)
WITHOUT_CONSTANT = FiniteSeries((1, 3, 4), np.array([1.0, 0.5, 2.0]), 1.0, 0.0, 0.0)

each_series = pytest.mark.parametrize("series", [FINITE, WITHOUT_CONSTANT], ids=["all", "no 0"])
each_coef0 = pytest.mark.parametrize("coef0", [0.0, 0.4])
each_offset = pytest.mark.parametrize("offset", [0.0, 0.7])


def affine_rows(expansion: Expansion, X: Array, part: int) -> Array:
    """Return u = scale · x + shift · direction of every row, whose norms must be those measured."""
    terms, rows = expansion.parts[part], expansion.measure(X, 1).rows[part]
    U = np.zeros((len(X), terms.columns))
    U[:, : X.shape[1]] = rows.scale[:, None] * X
    if rows.shift is not None:
        assert terms.direction is not None
        U += rows.shift[:, None] * terms.direction
    np.testing.assert_allclose(rows.squared_norms, squared_lengths(U), rtol=1e-8, atol=1e-9)
    return U


def unit(U: Array) -> Array:
    norms = np.linalg.norm(U, axis=1, keepdims=True)
    directions: Array = np.divide(U, norms, out=np.zeros_like(U), where=norms > 0)
    return directions


def amplitudes(expansion: Expansion, X: Array) -> list[Array]:
    """Return those of all constants and all powers."""
    measured = expansion.measure(X, 1)
    found = list(measured.constants)
    assert len(found) == expansion.constants
    for shares in measured.shares:
        found += list(shares)
    return found


def reconstructed(expansion: Expansion, X: Array) -> Array:
    """Return the kernel matrix that the factors and powers add up to."""
    measured = expansion.measure(X, 1)
    total = np.zeros((len(X), len(X)))
    for factor in measured.constants:
        total += np.outer(factor, factor)
    for part, terms in enumerate(expansion.parts):
        directions = unit(affine_rows(expansion, X, part))
        cosines = directions @ directions.T
        found = measured.shares[part]
        for degree, factor in zip(terms.degrees, found, strict=True):
            total += np.outer(factor, factor) * cosines**degree
    return np.outer(measured.norms, measured.norms) * total


def tensor_power(U: Array, degree: int) -> Array:
    """Return u ⊗ … ⊗ u of every row, with all columns^degree entries."""
    power = np.ones((len(U), 1))
    for _ in range(degree):
        power = np.einsum("ni,nj->nij", power, U).reshape(len(U), -1)
    return power


def explicit_features(expansion: Expansion, X: Array) -> Array:
    """Return all features side by side, without any sketch."""
    measured = expansion.measure(X, 1)
    blocks = [factor[:, None] for factor in measured.constants]
    for part, terms in enumerate(expansion.parts):
        directions = unit(affine_rows(expansion, X, part))
        found = measured.shares[part]
        for degree, factor in zip(terms.degrees, found, strict=True):
            blocks.append(factor[:, None] * tensor_power(directions, degree))
    return measured.norms[:, None] * np.concatenate(blocks, axis=1)


def assert_close(actual: Array, expected: Array, tolerance: float = 1e-10) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


def some_rows(columns: int = 4, count: int = 30) -> Array:
    """Rows of several norms, one of them zero."""
    X = uncentred(count, columns) * np.linspace(0.2, 1.0, count)[:, None]
    X[3] = 0.0
    return X


def polynomial(X: Array, degree: int, coef0: float) -> PolynomialExpansion:
    centre = MeanDirection.of_mean(AugmentedRows(0.5, coef0), X.mean(axis=0))
    assert centre is not None
    return PolynomialExpansion(centre, degree, tuple(range(1, degree + 1)))


def series_values(kernel: PowerSum, X: Array) -> Array:
    """Return the kernel matrix from its definition."""
    products = kernel.rows.gamma * X @ X.T + kernel.rows.coef0
    if kernel.homogeneity is None:
        return kernel.series.value(products) + kernel.offset
    norms = np.sqrt(np.diag(products))
    scale = np.outer(norms, norms)
    cosines = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    values = np.where(scale > 0, scale**kernel.homogeneity * kernel.series.value(cosines), 0.0)
    matrix: Array = values + kernel.offset
    return matrix


class TestPolynomial:
    @each_coef0
    @pytest.mark.parametrize("degree", [1, 2, 3, 7, 20])
    def test_is_the_kernel(self, degree: int, coef0: float) -> None:
        X = some_rows()
        K = Polynomial(degree, 0.5, coef0)(X)
        assert_close(reconstructed(polynomial(X, degree, coef0), X), K)

    @each_coef0
    @pytest.mark.parametrize("degree", [1, 3, 5])
    def test_explicit_tensors(self, degree: int, coef0: float) -> None:
        X = some_rows(columns=3)
        Z = explicit_features(polynomial(X, degree, coef0), X)
        assert_close(Z @ Z.T, Polynomial(degree, 0.5, coef0)(X))

    @each_coef0
    @pytest.mark.parametrize("degree", [1, 4, 50])
    def test_squares_of_amplitudes_add_up_to_one(self, degree: int, coef0: float) -> None:
        X = np.delete(some_rows(), 3, axis=0)
        squares = np.square(amplitudes(polynomial(X, degree, coef0), X))
        np.testing.assert_allclose(squares.sum(axis=0), 1.0, rtol=1e-11)


class TestGaussian:
    @pytest.mark.parametrize("gamma", [0.01, 0.5, 2.0])
    @pytest.mark.parametrize("shift", [0.0, 10.0])
    def test_is_the_kernel(self, gamma: float, shift: float) -> None:
        """With enough degrees, for any centre."""
        X = some_rows() + shift
        rows = CentredRows(X.mean(axis=0) + 0.1, math.sqrt(2 * gamma))
        assert_close(reconstructed(GaussianExpansion(rows, 60), X), Gaussian(gamma)(X))

    @pytest.mark.parametrize("highest", [1, 3, 8])
    def test_is_the_taylor_polynomial(self, highest: int) -> None:
        X = some_rows()
        rows = CentredRows(X.mean(axis=0), 1.0)
        U = X - X.mean(axis=0)
        outside = np.exp(-0.5 * np.einsum("ij,ij->i", U, U))
        products = U @ U.T
        polynomial_part = sum(products**k / math.factorial(k) for k in range(highest + 1))
        expected = np.outer(outside, outside) * polynomial_part
        assert_close(reconstructed(GaussianExpansion(rows, highest), X), expected)

    def test_explicit_tensors(self) -> None:
        X = 0.3 * some_rows(columns=2)
        Z = explicit_features(GaussianExpansion(CentredRows(X.mean(axis=0), 1.0), 12), X)
        assert_close(Z @ Z.T, Gaussian(0.5)(X))

    def test_squares_of_amplitudes_are_poisson_weights(self) -> None:
        X = 3 * some_rows()
        expansion = GaussianExpansion(CentredRows(np.zeros(4), 1.0), 80)
        squares = np.square(amplitudes(expansion, X))
        np.testing.assert_allclose(squares.sum(axis=0), 1.0, rtol=1e-12)
        means = np.arange(81) @ squares
        np.testing.assert_allclose(means, np.einsum("ij,ij->i", X, X), rtol=1e-12)

    def test_far_rows_have_weights_in_high_degrees_only(self) -> None:
        """e^−5000 is no double, e^−5000 times 100^200 / √200! is not needed to be one either."""
        expansion = GaussianExpansion(CentredRows(np.zeros(1), 1.0), 10_000)
        low, high = expansion.measure(np.array([[100.0]]), 1, [[1, 10_000]]).shares[0]
        assert low[0] == 0.0
        np.testing.assert_allclose(high[0] ** 2, 1 / math.sqrt(2 * math.pi * 1e4), rtol=1e-4)

    @pytest.mark.parametrize("shift", [0.0, 100.0])
    def test_norms_are_distances_from_the_centre(self, shift: float) -> None:
        X = some_rows() + shift
        rows = CentredRows(X.mean(axis=0), 0.7)
        expected = 0.49 * np.square(X - X.mean(axis=0)).sum(axis=1)
        np.testing.assert_allclose(rows.squared_norms(X, 1), expected, rtol=1e-8, atol=1e-9)
        assert_close(affine_rows(GaussianExpansion(rows, 2), X, 0), 0.7 * (X - X.mean(axis=0)))


class TestSinglePower:
    @pytest.mark.parametrize("degree", [4, 64, 1024])
    def test_is_the_power_of_a_cosine(self, degree: int) -> None:
        X = some_rows()
        expansion = SinglePowerExpansion(CentredRows(X.mean(axis=0), 2.0), degree, math.inf)
        U = 2 * (X - X.mean(axis=0))
        powers = (1 + U @ U.T / degree) ** degree
        scale = np.sqrt(np.diag(powers))
        assert_close(reconstructed(expansion, X), powers / np.outer(scale, scale))

    def test_explicit_tensors(self) -> None:
        X = some_rows(columns=2)
        expansion = SinglePowerExpansion(CentredRows(X.mean(axis=0), 1.0), 6, math.inf)
        Z = explicit_features(expansion, X)
        assert_close(Z @ Z.T, reconstructed(expansion, X))

    @pytest.mark.parametrize("gamma", [0.2, 1.0])
    def test_tends_to_the_gaussian_kernel(self, gamma: float) -> None:
        """The error falls like 1/P."""
        X = some_rows()
        rows = CentredRows(X.mean(axis=0), math.sqrt(2 * gamma))
        K = Gaussian(gamma)(X)
        errors = [
            np.abs(reconstructed(SinglePowerExpansion(rows, degree, math.inf), X) - K).max()
            for degree in (64, 256, 1024)
        ]
        assert errors[0] > 3.5 * errors[1] > 12 * errors[2]
        assert errors[2] < 4 * gamma**2 / 1024

    def test_rows_of_norm_one(self) -> None:
        X = some_rows()
        expansion = SinglePowerExpansion(CentredRows(X.mean(axis=0), 5.0), 64, math.inf)
        assert expansion.constants == 0
        np.testing.assert_array_equal(amplitudes(expansion, X), np.ones((1, len(X))))
        np.testing.assert_allclose(np.diag(reconstructed(expansion, X)), 1.0, rtol=1e-12)


class TestSeries:
    @each_series
    @each_coef0
    @each_offset
    @pytest.mark.parametrize("homogeneity", [None, 0, 1, 2])
    def test_is_the_kernel(
        self, series: FiniteSeries, coef0: float, offset: float, homogeneity: int | None
    ) -> None:
        X = some_rows()
        kernel = PowerSum(AugmentedRows(0.5, coef0), series, homogeneity, offset)
        expansion = SeriesExpansion(kernel, 4)
        assert_close(reconstructed(expansion, X), series_values(kernel, X))
        assert_close(np.square(expansion.measure(X, 1).norms), np.diag(series_values(kernel, X)))

    @each_series
    @each_coef0
    @each_offset
    def test_explicit_tensors(self, series: FiniteSeries, coef0: float, offset: float) -> None:
        X = some_rows(columns=3)
        kernel = PowerSum(AugmentedRows(0.5, coef0), series, 1, offset)
        Z = explicit_features(SeriesExpansion(kernel, 3), X)
        assert_close(Z @ Z.T, series_values(kernel, X))

    @each_series
    @each_coef0
    @each_offset
    @pytest.mark.parametrize("homogeneity", [None, 1])
    def test_squares_of_amplitudes_add_up_to_one(
        self, series: FiniteSeries, coef0: float, offset: float, homogeneity: int | None
    ) -> None:
        X = np.delete(some_rows(), 3, axis=0)
        kernel = PowerSum(AugmentedRows(0.5, coef0), series, homogeneity, offset)
        squares = np.square(amplitudes(SeriesExpansion(kernel, 4), X))
        np.testing.assert_allclose(squares.sum(axis=0), 1.0, rtol=1e-12)

    def test_high_degrees_of_short_and_long_rows(self) -> None:
        """Powers as high as 256 of rows whose squared norms reach from 1e-4 to 1.

        The kernel itself is a matter of rounding errors there, which the degree multiplies.
        """
        X = unit_rows(uncentred(20, 6)) * np.logspace(-2, 0, 20)[:, None]
        kernel = PowerSum(AugmentedRows(1.0, 0.0), fitted_series(neural_tangent_series(3), 1.0))
        assert_close(reconstructed(SeriesExpansion(kernel, 6), X), series_values(kernel, X), 1e-11)

    def test_rows_of_a_homogeneous_kernel_do_not_depend_on_their_norms(self) -> None:
        X = np.delete(some_rows(), 3, axis=0)
        kernel = PowerSum(AugmentedRows(1.0, 0.0), FINITE, 2)
        expansion = SeriesExpansion(kernel, 4)
        np.testing.assert_allclose(amplitudes(expansion, 7 * X), amplitudes(expansion, X))
        assert_close(affine_rows(expansion, 7 * X, 0), unit(X), 1e-14)


class TestAroundTheMean:
    @staticmethod
    def kernel(
        series: FiniteSeries, coef0: float, offset: float, homogeneity: int | None
    ) -> PowerSum:
        return PowerSum(AugmentedRows(1.0, coef0), series, homogeneity, offset)

    @staticmethod
    def expansion(kernel: PowerSum, X: Array, size: int = 1024) -> MeanSeriesExpansion:
        found = MeanSeriesExpansion.of_pilot(kernel, X, size)
        assert found is not None
        return found

    @staticmethod
    def mirrored(count: int = 15) -> Array:
        """Rows of one norm that come in pairs u ± v with v across u: all a are equal."""
        V = unit_rows(np.random.default_rng(0).normal(size=(count, 3)))
        V = np.concatenate([V, -V])
        return np.concatenate([0.6 * V, np.full((2 * count, 1), 0.7)], axis=1)

    @each_series
    @each_coef0
    @each_offset
    @pytest.mark.parametrize("homogeneity", [None, 1, 2])
    def test_exact_for_rows_with_equal_parts_along_the_mean(
        self, series: FiniteSeries, coef0: float, offset: float, homogeneity: int | None
    ) -> None:
        X = self.mirrored()
        kernel = self.kernel(series, coef0, offset, homogeneity)
        expansion = self.expansion(kernel, X)
        along = expansion.centre.geometry(X, 1).along
        np.testing.assert_allclose(along, along[0], rtol=1e-14)
        assert_close(reconstructed(expansion, X), series_values(kernel, X))

    @each_offset
    def test_explicit_tensors(self, offset: float) -> None:
        X = self.mirrored(count=5)
        kernel = self.kernel(WITHOUT_CONSTANT, 0.4, offset, 1)
        Z = explicit_features(self.expansion(kernel, X), X)
        assert_close(Z @ Z.T, series_values(kernel, X))

    @each_series
    def test_profiles_are_those_of_the_binomial_theorem(self, series: FiniteSeries) -> None:
        """Σ_l c_l (ab + s)^l = Σ_j G_j(ab) s^j."""
        expansion = self.expansion(self.kernel(series, 0.0, 0.0, 1), self.mirrored())
        generator = np.random.default_rng(0)
        products, across = generator.uniform(-0.5, 0.5, size=(2, 50))
        profiles = enumerate(expansion.profiles)
        total = sum(horner(profile, products) * across**j for j, profile in profiles)
        np.testing.assert_allclose(total, series.value(products + across), atol=1e-14)

    @pytest.mark.parametrize("homogeneity", [None, 1])
    def test_high_degrees_are_powers_of_the_rows_themselves(self, homogeneity: int | None) -> None:
        series = FiniteSeries((1, 16, 17, 40), np.array([1.0, 0.5, 0.7, 0.3]), 1.0, 0.0, 0.0)
        X = self.mirrored()
        kernel = self.kernel(series, 0.0, 0.0, homogeneity)
        expansion = self.expansion(kernel, X)
        assert expansion.parts[0].degrees == tuple(range(1, 17))
        assert expansion.parts[1].degrees == (17, 40)
        assert_close(affine_rows(expansion, X, 1), X if homogeneity is None else unit(X))
        assert_close(reconstructed(expansion, X), series_values(kernel, X))

    @pytest.mark.parametrize("bias", [0.0, 0.3])
    @pytest.mark.parametrize(("depth", "bound"), [(1, 1e-3), (3, 3e-3)])
    def test_close_to_the_kernel_on_digits(self, depth: int, bound: float, bias: float) -> None:
        X = unit_rows(digits(300))
        series = fitted_series(neural_tangent_series(depth), 1.0)
        kernel = self.kernel(series, bias, bias, 1)
        difference = reconstructed(self.expansion(kernel, X), X) - series_values(kernel, X)
        assert np.linalg.norm(difference) < bound * np.linalg.norm(series_values(kernel, X))

    def test_close_to_the_kernel_for_rows_of_several_norms(self) -> None:
        X = digits(300) / 100
        radius = float(np.square(X).sum(axis=1).max())
        series = truncated_series(NAMED_SERIES["exp"], radius, 1e-6)
        kernel = PowerSum(AugmentedRows(1 / radius, 0.0), series)
        difference = reconstructed(self.expansion(kernel, X), X) - np.exp(X @ X.T)
        assert np.linalg.norm(difference) < 1e-3 * np.linalg.norm(np.exp(X @ X.T))

    def test_norms_are_those_of_the_kernel(self) -> None:
        X = some_rows()
        kernel = self.kernel(FINITE, 0.4, 0.7, 1)
        squares = np.square(self.expansion(kernel, X).measure(X, 1).norms)
        assert_close(squares, np.diag(series_values(kernel, X)), 1e-14)

    def test_nothing_to_expand(self) -> None:
        """No mean, no low degree, or nothing but zero rows."""
        kernel, X = self.kernel(FINITE, 0.0, 0.0, 1), self.mirrored()
        high = FiniteSeries((17, 30), np.ones(2), 1.0, 0.0, 0.0)
        opposite = np.array([[0.5, 0.0, 0.0, 0.25], [-0.5, 0.0, 0.0, -0.25]])
        assert MeanSeriesExpansion.of_pilot(kernel, opposite, 100) is None
        assert MeanSeriesExpansion.of_pilot(self.kernel(high, 0.0, 0.0, 1), X, 100) is None
        assert MeanSeriesExpansion.of_pilot(kernel, np.zeros((5, 4)), 100) is None

    @pytest.mark.parametrize(("size", "most"), [(16, 1), (40, 2), (128, 8), (4096, 8)])
    def test_few_features_of_degree_zero(self, size: int, most: int) -> None:
        X = digits(100) / 100
        kernel = PowerSum(AugmentedRows(1.0, 0.0), truncated_series(NAMED_SERIES["exp"], 1.0, 1e-8))
        assert 1 <= self.expansion(kernel, X, size).constants <= most


profiles = st.lists(st.floats(0, 2), min_size=1, max_size=8).filter(lambda c: max(c) > 0.01)


class TestLandmarks:
    @staticmethod
    def features(profile: Array, landmarks: Array, inverse: Array, numbers: Array) -> Array:
        found: Array = horner(profile, numbers[:, None] * landmarks) @ inverse.T
        return found

    @given(profile=profiles, most=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
    def test_never_more_than_the_kernel(self, profile: list[float], most: int, seed: int) -> None:
        """G − f fᵀ has no negative eigenvalue."""
        generator, coefficients = np.random.default_rng(seed), np.array(profile)
        candidates = generator.uniform(-1.0, 1.5, 9)
        landmarks, inverse = landmark_features(coefficients, candidates, most)
        assert len(landmarks) <= most
        assert inverse.shape == (len(landmarks),) * 2
        numbers = np.concatenate([candidates, generator.uniform(-1.0, 1.5, 20)])
        Z = self.features(coefficients, landmarks, inverse, numbers)
        G = horner(coefficients, np.outer(numbers, numbers))
        assert np.linalg.eigvalsh(G - Z @ Z.T).min() >= -1e-7 * G.max()

    @given(profile=profiles, most=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
    def test_exact_at_the_landmarks(self, profile: list[float], most: int, seed: int) -> None:
        """⟨f(a), f(b)⟩ = G(a b) for every a if b is a landmark."""
        generator, coefficients = np.random.default_rng(seed), np.array(profile)
        landmarks, inverse = landmark_features(coefficients, generator.uniform(0, 1.5, 9), most)
        numbers = generator.uniform(-1.0, 1.5, 20)
        Z = self.features(coefficients, landmarks, inverse, numbers)
        at_landmarks = self.features(coefficients, landmarks, inverse, landmarks)
        G = horner(coefficients, np.outer(numbers, landmarks))
        assert_close(Z @ at_landmarks.T, G, 1e-6)

    def test_as_many_as_the_profile_has_terms(self) -> None:
        """A polynomial of degree 2 is a kernel of rank 3: then the features are exact."""
        profile, candidates = np.array([1.0, 2.0, 0.5]), np.linspace(0.5, 1.0, 9)
        landmarks, inverse = landmark_features(profile, candidates, 8)
        assert len(landmarks) == 3
        numbers = np.linspace(-1, 2, 40)
        Z = self.features(profile, landmarks, inverse, numbers)
        assert_close(Z @ Z.T, horner(profile, np.outer(numbers, numbers)), 1e-8)

    def test_more_landmarks_are_better(self) -> None:
        profile = np.array([1 / math.factorial(k) for k in range(15)])
        numbers = np.linspace(0.2, 1.0, 30)
        G = horner(profile, np.outer(numbers, numbers))
        errors = []
        for most in (1, 2, 3, 4):
            found = landmark_features(profile, np.linspace(0.2, 1.0, 9), most)
            Z = self.features(profile, *found, numbers)
            errors.append(float(np.abs(Z @ Z.T - G).max()))
        assert errors[0] > 5 * errors[1] > 25 * errors[2] > 125 * errors[3]

    def test_equal_candidates_are_one_landmark(self) -> None:
        landmarks, inverse = landmark_features(np.array([1.0, 1.0]), np.full(9, 0.5), 8)
        assert landmarks.tolist() == [0.5]
        np.testing.assert_allclose(inverse, [[1 / math.sqrt(1.25)]], rtol=1e-14)
