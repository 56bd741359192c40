"""Tuples drawn by leverage scores: unbiased, accurate, merged, the same on every run."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.powers import Scaled
from powersketch.powers.adaptive import (
    AdaptiveTuples,
    adaptive_tuples,
    affordable_draw,
    drawn_tuples,
    merged_tuples,
    tuple_law,
)
from powersketch.random_streams import RandomStreams

Array = NDArray[np.float64]
each_draw = pytest.mark.parametrize("draw", ["exact", "sketched", "rows"])


def drawn(X: Any, degree: int, size: int, seed: int, draw: str) -> AdaptiveTuples:
    """What `adaptive_tuples` draws, if it draws that way."""
    streams = RandomStreams(seed)
    law = tuple_law(X, degree, size, streams.child("law"), draw)
    return drawn_tuples(law, size, streams.child("draws"))


def unit_rows(count: int, columns: int, seed: int, *, decay: float = 0.0) -> Array:
    X = np.random.default_rng(seed).normal(size=(count, columns))
    X *= np.arange(1, columns + 1) ** -decay
    normalised: Array = X / np.linalg.norm(X, axis=1, keepdims=True)
    return normalised


def ridge_of_dimension(K: Array, dimension: float) -> float:
    eigenvalues = np.linalg.eigvalsh(K)
    low, high = 1e-12 * eigenvalues.sum(), 1e6 * eigenvalues.sum()
    for _ in range(100):
        middle = math.sqrt(low * high)
        too_small = (eigenvalues / (eigenvalues + middle)).sum() > dimension
        low, high = (middle, high) if too_small else (low, middle)
    return middle


def spectral_interval(Z: Array, K: Array, ridge: float) -> tuple[float, float]:
    shift = ridge * np.eye(len(K))
    eigenvalues = scipy.linalg.eigh(Z @ Z.T + shift, K + shift, eigvals_only=True)
    return float(eigenvalues[0]), float(eigenvalues[-1])


class TestAccuracy:
    @pytest.mark.parametrize("draw", ["exact", "sketched"])
    @pytest.mark.parametrize("decay", [0.0, 0.7])
    def test_spectral_approximation(self, draw: str, decay: float) -> None:
        """Bounds within which the worst of 50 data sets and seeds stayed."""
        for seed in range(2):
            X = unit_rows(30, 40, seed, decay=decay)
            K, Z = (X @ X.T) ** 4, drawn(X, 4, 600, seed, draw).features(X)
            for dimension, (low, high) in ((2, (0.93, 1.07)), (10, (0.80, 1.25))):
                smallest, largest = spectral_interval(Z, K, ridge_of_dimension(K, dimension))
                assert low < smallest < 1 < largest < high

    def test_scores_find_what_norms_overlook(self) -> None:
        """Few rows in directions of their own among many in one."""
        X = np.zeros((90, 30))
        X[:80, :10] = 1.0 + 0.1 * np.random.default_rng(0).normal(size=(80, 10))
        X[80:, 10:] = np.random.default_rng(1).normal(size=(10, 20))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        K = (X @ X.T) ** 2
        ridge = ridge_of_dimension(K, 12)
        worst = {}
        for draw in ("exact", "sketched", "rows"):
            samples = [drawn(X, 2, 150, seed, draw) for seed in range(5)]
            intervals = [spectral_interval(each.features(X), K, ridge) for each in samples]
            worst[draw] = np.median([high - low for low, high in intervals])
        assert worst["exact"] < 0.8 * worst["rows"]
        assert worst["sketched"] < 0.9 * worst["rows"]


class TestUnbiasedness:
    @each_draw
    @pytest.mark.parametrize("size", [1, 4])
    def test_mean_over_seeds(self, draw: str, size: int) -> None:
        """Also of rows outside the pilot, and with merging: within 4.5 standard errors.

        Correct code fails with probability 6 · 7e-6.
        """
        pilot = np.array([[1.0, 0.5, 0.2], [0.2, -1.0, 0.4], [0.7, 0.7, -0.5], [0.1, 0.3, 1.0]])
        others = np.array([[0.5, -0.2, 0.8], [-1.0, 0.3, 0.3], [0.4, 0.9, 0.1]])
        law = tuple_law(pilot, 3, size, RandomStreams(1), draw)
        upper = np.triu_indices(3)
        estimates = []
        for seed in range(300):
            Z = drawn_tuples(law, size, RandomStreams(seed)).features(others)
            estimates.append((Z @ Z.T)[upper])
        expected = ((others @ others.T) ** 3)[upper]
        errors = np.std(estimates, axis=0) / math.sqrt(len(estimates))
        assert np.all(np.abs(np.mean(estimates, axis=0) - expected) < 4.5 * errors)

    def test_more_draws_make_up_for_repeated_ones(self) -> None:
        X = unit_rows(20, 6, 0, decay=1.0)
        filled = adaptive_tuples(X, 3, 40, RandomStreams(0))
        assert 37 <= len(filled.tuples) <= 40
        assert filled.draws > 80

    def test_all_monomials_can_be_drawn(self) -> None:
        """Two coordinates have four monomials of degree 3; then weights are near their number."""
        X = unit_rows(20, 2, 0)
        sample = adaptive_tuples(X, 3, 50, RandomStreams(0))
        assert sample.draws == 800
        np.testing.assert_array_equal(sample.tuples, [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]])
        np.testing.assert_allclose(sample.squared_weights.to_float(), [1, 3, 3, 1], rtol=0.25)


class TestMerging:
    TUPLES = np.array([[2, 1], [0, 0], [1, 2], [0, 0], [1, 1], [2, 1]], dtype=np.int32)
    PROBABILITIES = np.array([0.5, 0.25, 0.2, 0.25, 0.125, 0.5])

    def test_weights_add_up(self) -> None:
        merged = merged_tuples(self.TUPLES, Scaled.of(self.PROBABILITIES), 3)
        assert merged.draws == 6
        np.testing.assert_array_equal(merged.tuples, [[0, 0], [1, 1], [1, 2]])
        weights = merged.squared_weights.to_float()
        np.testing.assert_allclose(weights, np.array([8.0, 8.0, 9.0]) / 6, rtol=1e-15)

    def test_ends_before_one_monomial_too_many(self) -> None:
        merged = merged_tuples(self.TUPLES, Scaled.of(self.PROBABILITIES), 2)
        assert merged.draws == 4
        np.testing.assert_array_equal(merged.tuples, [[0, 0], [1, 2]])
        np.testing.assert_allclose(merged.squared_weights.to_float(), [2.0, 7 / 4], rtol=1e-15)

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_expected_weights_are_one(self, size: int) -> None:
        """Over all sequences of five independent draws of three monomials, by enumeration.

        A rule that ended with the last new monomial, or counted one draw more, would not do.
        """
        law, total = np.array([0.5, 0.3, 0.2]), np.zeros(3)
        for sequence in product(range(3), repeat=5):
            draws = np.array(sequence, dtype=np.int32)
            merged = merged_tuples(draws[:, None], Scaled.of(law[draws]), size)
            weights = merged.squared_weights.to_float()
            total[merged.tuples[:, 0]] += np.prod(law[draws]) * weights
        np.testing.assert_allclose(total, 1.0, rtol=1e-13)

    def test_numbers_beyond_double_precision(self) -> None:
        tiny = Scaled(np.array([0.5, 0.75, 0.5]), np.array([-5000, -5000, -9000]))
        tuples = np.array([[0], [0], [1]], dtype=np.int32)
        merged = merged_tuples(tuples, tiny, 2)
        weights = merged.squared_weights.times_power_of_two(np.array([-5000, -9000])).to_float()
        np.testing.assert_allclose(weights, np.array([2 + 4 / 3, 2.0]) / 3, rtol=1e-14)


class TestAnyRows:
    @each_draw
    def test_same_seed_same_bits(self, draw: str) -> None:
        X = unit_rows(25, 9, 0)
        first, second, other = (drawn(X, 3, 60, seed, draw) for seed in (4, 4, 5))
        np.testing.assert_array_equal(first.tuples, second.tuples)
        np.testing.assert_array_equal(first.features(X), second.features(X))
        assert first.tuples.shape != other.tuples.shape or (first.tuples != other.tuples).any()

    @each_draw
    @pytest.mark.parametrize("degree", [1, 2, 5])
    def test_plain_rows(self, draw: str, degree: int) -> None:
        for X in (
            np.zeros((4, 3)),
            np.ones((1, 1)),
            np.eye(4),
            np.vstack([np.zeros(5), np.arange(5.0)]),
            np.full((6, 2), -3.0),
        ):
            before = X.copy()
            sample = drawn(X, degree, 7, 0, draw)
            Z = sample.features(X)
            assert np.isfinite(Z).all()
            assert 1 <= len(sample.tuples) <= 7
            assert not Z[~X.any(axis=1)].any()
            np.testing.assert_array_equal(X, before)

    @pytest.mark.parametrize(("draw", "degree"), [("exact", 128), ("rows", 500)])
    def test_high_degree(self, draw: str, degree: int) -> None:
        """Monomials of degree 500 of coordinates near 0.2 are 1e-350: weights make up for it."""
        X = unit_rows(6, 25, 0)
        sample = drawn(X, degree, 20, 0, draw)
        Z = sample.features(X)
        assert np.isfinite(Z).all()
        assert sample.squared_weights.exponent.min() > 2 * degree
        diagonal = np.square(Z).sum(axis=1)
        assert 0.1 < diagonal.mean() < 10

    @each_draw
    def test_dtypes_and_read_only_rows(self, draw: str) -> None:
        X = unit_rows(20, 6, 0).astype(np.float32)
        X.flags.writeable = False
        expected = drawn(X.astype(np.float64), 3, 30, 0, draw)
        sample = drawn(X, 3, 30, 0, draw)
        np.testing.assert_array_equal(sample.tuples, expected.tuples)
        np.testing.assert_array_equal(sample.features(sp.csr_array(X)), expected.features(X))

    def test_what_is_affordable(self) -> None:
        X = unit_rows(200, 400, 0)
        draws = [affordable_draw(X[:rows], 4, 500) for rows in (10, 110, 200)]
        assert draws == ["exact", "sketched", "rows"]
        assert affordable_draw(sp.csr_array(X[:110]), 4, 500) == "sketched"
        assert affordable_draw(X[:2, :3], 1000, 2) == "rows"


@pytest.mark.parametrize(
    ("entry", "message"),
    [(np.nan, "squared norm.*nan.*remove NaN"), (1e200, "squared norm.*inf.*scale")],
)
def test_rows_without_finite_squared_norms_are_refused(entry: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adaptive_tuples(np.array([[1.0, entry]]), 2, 5, RandomStreams(0))
