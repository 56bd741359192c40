"""Fourier features: unbiased but for the structure's small bias, and of little variance."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import GaussianSketch
from powersketch.feature_maps.expansions.centred import CentredRows
from powersketch.feature_maps.gaussian import FourierMap
from powersketch.kernels import Gaussian
from powersketch.random_streams import RandomStreams
from tests.feature_maps.cases import each_float, squared_lengths, uncentred

Array = NDArray[Any]

SEEDS = 400
each_width = pytest.mark.parametrize("gamma", [0.02, 0.3, 2.0])
each_dimension = pytest.mark.parametrize("columns", [2, 20, 100])


def features(X: Array, gamma: float, size: int, seed: int) -> Array:
    sketch = GaussianSketch(gamma, n_components=size, method="fourier", random_state=seed)
    return sketch.fit_transform(X)


@cache
def drawn_kernels(columns: int, gamma: float, size: int) -> tuple[Array, Array]:
    """Return the exact kernel of 12 rows, and its approximations over many seeds."""
    X = uncentred(12, columns, seed=2)
    kernels = []
    for seed in range(SEEDS):
        Z = features(X, gamma, size, seed)
        kernels.append(Z @ Z.T)
    return Gaussian(gamma)(X), np.array(kernels)


class TestLaws:
    @each_width
    @each_dimension
    def test_unbiased(self, columns: int, gamma: float) -> None:
        """The mean over 400 seeds is within 5 standard errors and a bias of 0.1 %.

        66 pairs, nine cases: failure probability 4e-4, if there were no bias at all.
        """
        K, kernels = drawn_kernels(columns, gamma, 64)
        errors = kernels.std(axis=0) / math.sqrt(SEEDS)
        assert np.all(np.abs(kernels.mean(axis=0) - K) <= 5 * errors + 1e-3)

    @each_width
    @each_dimension
    def test_no_more_variance_than_independent_frequencies(
        self, columns: int, gamma: float
    ) -> None:
        """These have (1 − k²)²/m per pair; on average over 66 pairs.

        The ratio is between 0.04 and 0.92, and its relative error over 400 seeds about 3 %.
        """
        K, kernels = drawn_kernels(columns, gamma, 64)
        pairs = np.triu_indices(len(K), 1)
        independent = np.square(1 - np.square(K[pairs])) / 64
        assert kernels.var(axis=0)[pairs].mean() <= independent.mean()

    def test_far_less_variance_for_wide_kernels(self) -> None:
        """A whole block of orthogonal frequencies leaves no error of second order: 0.023."""
        K, kernels = drawn_kernels(100, 0.02, 256)
        pairs = np.triu_indices(len(K), 1)
        independent = np.square(1 - np.square(K[pairs])) / 256
        assert kernels.var(axis=0)[pairs].mean() <= 0.1 * independent.mean()


class TestIdentities:
    @each_width
    @each_dimension
    @each_float
    def test_rows_have_norm_one(self, columns: int, gamma: float, dtype: Any) -> None:
        X = uncentred(50, columns, dtype)
        tolerance = 2e-6 if dtype == np.float32 else 1e-14
        np.testing.assert_allclose(squared_lengths(features(X, gamma, 64, 0)), 1, atol=tolerance)

    @each_width
    def test_are_cosines_and_sines_of_normal_frequencies(self, gamma: float) -> None:
        """z = (cos⟨w, x − c⟩, sin⟨w, x − c⟩) / √(number of w), w of variance 2 gamma."""
        X, centre = uncentred(20, 7), np.linspace(0, 1, 7)
        rows = CentredRows(centre, math.sqrt(2 * gamma))
        fourier = FourierMap.draw(RandomStreams(3), rows, 400)
        W = 2 * math.pi * fourier.frequencies.apply(np.eye(7)).T
        assert W.shape == (200, 7)
        np.testing.assert_allclose(W.var(), 2 * gamma, rtol=0.2)
        phases = (X - centre) @ W.T
        expected = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(200)
        Z = np.empty((20, 400))
        fourier.write(X, Z, 1)
        np.testing.assert_allclose(Z, expected, atol=1e-12)

    def test_an_odd_column_is_zero(self) -> None:
        Z = features(uncentred(20, 7), 1.0, 33, 0)
        assert not Z[:, -1].any()
        np.testing.assert_allclose(squared_lengths(Z), 1.0, rtol=1e-13)
        np.testing.assert_array_equal(Z[:, :-1], features(uncentred(20, 7), 1.0, 32, 0))

    def test_rows_in_several_steps(self) -> None:
        """Sparse and dense rows that are longer than 4 MiB together."""
        X = uncentred(700, 1000)
        sketch = GaussianSketch(0.5, n_components=32, method="fourier", random_state=0).fit(X)
        whole = sketch.transform(X)
        np.testing.assert_array_equal(whole[650:], sketch.transform(X[650:]))
        np.testing.assert_allclose(sketch.transform(sp.csr_array(X)), whole, atol=1e-13)

    def test_shifted_rows_have_the_same_kernel(self) -> None:
        X = uncentred(50, 20)
        Z, shifted = features(X, 0.5, 256, 0), features(X + 1000.0, 0.5, 256, 0)
        np.testing.assert_allclose(shifted @ shifted.T, Z @ Z.T, atol=1e-10)


@pytest.mark.parametrize(("dtype", "factor"), [(np.float64, 1e17), (np.float32, 1e9)])
def test_rows_whose_phases_have_no_digits(dtype: Any, factor: float) -> None:
    """All cosines were one: the kernel of any two rows was, too."""
    X = (factor * np.random.default_rng(0).standard_normal((60, 12))).astype(dtype)
    X[5] = X[6]
    sketch = GaussianSketch(0.05, n_components=512, method="fourier", random_state=0).fit(X)
    products = sketch.transform(X) @ sketch.transform(X).T
    expected = np.eye(60)
    expected[5, 6] = expected[6, 5] = 1.0
    np.testing.assert_allclose(products, expected, atol=0.25)
    np.testing.assert_allclose(products[5, 6], 1.0, rtol=1e-6)
