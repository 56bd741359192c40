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

from powersketch.powers import Scaled, adaptive_tuples, affordable_draw
from powersketch.powers.adaptive_draws import drawn_tuples, tuple_law
from powersketch.powers.merged_tuples import merged_tuples
from powersketch.random_streams import RandomStreams

Array = NDArray[np.float64]
each_draw = pytest.mark.parametrize("draw", ["exact", "sketched", "rows"])


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
    @pytest.mark.parametrize("most_draws", [None, 600])
    def test_spectral_approximation(self, draw: str, decay: float, most_draws: Any) -> None:
        """Bounds that the worst of 50 data sets and seeds did not come near."""
        for dimension, (low, high) in ((2, (0.93, 1.07)), (10, (0.80, 1.25))):
            for seed in range(2):
                X = unit_rows(30, 40, seed, decay=decay)
                K = (X @ X.T) ** 4
                ridge = ridge_of_dimension(K, dimension)
                drawn = adaptive_tuples(
                    X, 4, 600, RandomStreams(seed), ridge=ridge, draw=draw, most_draws=most_draws
                )
                smallest, largest = spectral_interval(drawn.features(X), K, ridge)
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
            drawn = [
                adaptive_tuples(X, 2, 150, RandomStreams(seed), ridge=ridge, draw=draw)
                for seed in range(5)
            ]
            intervals = [spectral_interval(each.features(X), K, ridge) for each in drawn]
            worst[draw] = np.median([high - low for low, high in intervals])
        assert worst["exact"] < 0.8 * worst["rows"]
        assert worst["sketched"] < 0.9 * worst["rows"]


class TestUnbiasedness:
    @each_draw
    @pytest.mark.parametrize(("size", "limit"), [(1, 16), (4, 64)])
    def test_mean_over_seeds(self, draw: str, size: int, limit: int) -> None:
        """Also of rows outside the pilot, and with merging: within 4.5 standard errors.

        Correct code fails with probability 6 · 7e-6.
        """
        pilot = np.array([[1.0, 0.5, 0.2], [0.2, -1.0, 0.4], [0.7, 0.7, -0.5], [0.1, 0.3, 1.0]])
        others = np.array([[0.5, -0.2, 0.8], [-1.0, 0.3, 0.3], [0.4, 0.9, 0.1]])
        law = tuple_law(pilot, 3, size, RandomStreams(1), ridge=0.3, draw=draw)
        upper = np.triu_indices(3)
        found = []
        for seed in range(300):
            Z = drawn_tuples(law, size, limit, RandomStreams(seed)).features(others)
            found.append((Z @ Z.T)[upper])
        expected = ((others @ others.T) ** 3)[upper]
        errors = np.std(found, axis=0) / math.sqrt(len(found))
        assert np.all(np.abs(np.mean(found, axis=0) - expected) < 4.5 * errors)

    def test_more_draws_make_up_for_repeated_ones(self) -> None:
        X = unit_rows(20, 6, 0, decay=1.0)
        fixed = adaptive_tuples(X, 3, 40, RandomStreams(0), most_draws=40)
        filled = adaptive_tuples(X, 3, 40, RandomStreams(0))
        assert fixed.draws == 40
        assert len(fixed.tuples) < 30
        assert 37 <= len(filled.tuples) <= 40
        assert filled.draws > 80

    def test_all_monomials_can_be_drawn(self) -> None:
        """Two coordinates have four monomials of degree 3; then weights are near their number."""
        X = unit_rows(20, 2, 0)
        drawn = adaptive_tuples(X, 3, 50, RandomStreams(0))
        assert drawn.draws == 800
        np.testing.assert_array_equal(drawn.tuples, [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]])
        np.testing.assert_allclose(drawn.squared_weights.to_float(), [1, 3, 3, 1], rtol=0.25)


class TestMerging:
    TUPLES = np.array([[2, 1], [0, 0], [1, 2], [0, 0], [1, 1], [2, 1]], dtype=np.int32)
    PROBABILITIES = np.array([0.5, 0.25, 0.2, 0.25, 0.125, 0.5])

    def test_weights_add_up(self) -> None:
        merged = merged_tuples(self.TUPLES, Scaled.of(self.PROBABILITIES), 3)
        assert merged.draws == 6
        np.testing.assert_array_equal(merged.tuples, [[0, 0], [1, 1], [1, 2]])
        weights = merged.squared_weights.to_float()
        np.testing.assert_allclose(weights, np.array([8.0, 8.0, 9.0]) / 6, rtol=1e-15)
        np.testing.assert_allclose(np.exp(merged.log_probabilities[1]), 0.125, rtol=1e-14)

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
        logarithms = -np.log([(2 + 4 / 3), 2.0]) - np.array([5000, 9000]) * math.log(2)
        np.testing.assert_allclose(merged.log_probabilities, logarithms, rtol=1e-14)


class TestAnyRows:
    @each_draw
    def test_same_seed_same_bits(self, draw: str) -> None:
        X = unit_rows(25, 9, 0)
        first, second, other = (
            adaptive_tuples(X, 3, 60, RandomStreams(seed), draw=draw) for seed in (4, 4, 5)
        )
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
            drawn = adaptive_tuples(X, degree, 7, RandomStreams(0), draw=draw)
            Z = drawn.features(X)
            assert np.isfinite(Z).all()
            assert 1 <= len(drawn.tuples) <= 7
            assert not Z[~X.any(axis=1)].any()
            np.testing.assert_array_equal(X, before)

    @pytest.mark.parametrize("draw", ["exact", "rows"])
    def test_high_degree(self, draw: str) -> None:
        """Monomials of degree 500 of coordinates near 0.2 are 1e-350: weights make up for it."""
        X = unit_rows(6, 25, 0)
        drawn = adaptive_tuples(X, 500, 20, RandomStreams(0), draw=draw, most_draws=20)
        Z = drawn.features(X)
        assert np.isfinite(Z).all()
        assert drawn.log_probabilities.max() < -700
        diagonal = np.square(Z).sum(axis=1)
        assert 0.1 < diagonal.mean() < 10

    @each_draw
    def test_dtypes_and_read_only_rows(self, draw: str) -> None:
        X = unit_rows(20, 6, 0).astype(np.float32)
        X.flags.writeable = False
        expected = adaptive_tuples(X.astype(np.float64), 3, 30, RandomStreams(0), draw=draw)
        found = adaptive_tuples(X, 3, 30, RandomStreams(0), draw=draw)
        np.testing.assert_array_equal(found.tuples, expected.tuples)
        np.testing.assert_array_equal(found.features(sp.csr_array(X)), expected.features(X))

    def test_what_is_affordable(self) -> None:
        X = unit_rows(200, 400, 0)
        draws = [affordable_draw(X[:rows], 4, 500) for rows in (10, 110, 200)]
        assert draws == ["exact", "sketched", "rows"]
        assert affordable_draw(sp.csr_array(X[:110]), 4, 500) == "sketched"
        assert affordable_draw(X[:2, :3], 1000, 2) == "rows"


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "error", "message"),
        [
            ({"degree": 0}, ValueError, "degree=0 is out of range"),
            ({"size": 0}, ValueError, "size=0 is out of range"),
            ({"size": 2.0}, TypeError, "size=2.0 is a float"),
            ({"ridge": 0.0}, ValueError, "ridge=0.0 is out of range.*None"),
            ({"ridge": np.nan}, ValueError, "ridge=nan"),
            ({"draw": "fast"}, ValueError, "draw='fast' is unknown.*'sketched'"),
            ({"most_draws": 4}, ValueError, "most_draws=4 is out of range.*at least 5"),
            ({"X": np.array([[1.0, np.nan]])}, ValueError, "squared norm.*nan.*remove NaN"),
            ({"X": np.array([[1.0, 1e200]])}, ValueError, "squared norm.*inf.*scale"),
            ({"X": np.ones(3)}, ValueError, r"shape \(3,\).*two dimensions"),
            ({"X": np.ones((3, 0))}, ValueError, r"shape \(3, 0\).*one column"),
        ],
    )
    def test_refused(self, change: dict[str, Any], error: type[Exception], message: str) -> None:
        arguments: dict[str, Any] = {"X": np.ones((3, 2)), "degree": 2, "size": 5, **change}
        with pytest.raises(error, match=message):
            adaptive_tuples(streams=RandomStreams(0), **arguments)
