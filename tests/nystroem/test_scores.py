"""Ridge leverage scores against their definition, and the draws that rest on them."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from powersketch.kernels import Gaussian, Kernel, Polynomial
from powersketch.nystroem import LANDMARKS, draw_landmarks
from powersketch.nystroem.scores import LeverageScores, thinned, weighted_sample
from powersketch.random_streams import RandomStreams
from tests.kernels.kernel_cases import KERNELS

Float64 = NDArray[np.float64]
Estimate = Callable[..., Float64]
KERNEL = Gaussian(gamma=0.5)
each_method = pytest.mark.parametrize("method", LANDMARKS)


def recursive_scores(*given: Any, **options: Any) -> Float64:
    return LeverageScores(*given, **options).recursive()


def approximate_scores(*given: Any, **options: Any) -> Float64:
    return LeverageScores(*given, **options).approximate()


each_estimate = pytest.mark.parametrize("scores", [recursive_scores, approximate_scores])


def rows(count: int, columns: int = 3, seed: int = 0) -> Float64:
    return np.random.default_rng(seed).normal(size=(count, columns))


def exact_scores(kernel: Kernel, X: Float64, alpha: float) -> Float64:
    """Return the diagonal of K (K + αI)⁻¹."""
    K = kernel(X)
    return np.diag(np.linalg.solve(K + alpha * np.eye(len(K)), K))


def nystroem(K: Float64, sample: NDArray[np.int64]) -> Float64:
    """Return the approximation of K from these columns."""
    return K[:, sample] @ np.linalg.pinv(K[np.ix_(sample, sample)], hermitian=True) @ K[sample]


class TestRecursiveScores:
    """[MM17] with a fixed number of landmarks."""

    def test_of_two_levels_by_definition(self) -> None:
        X, alpha = rows(60), 0.3
        streams = RandomStreams(1)
        scores = recursive_scores(KERNEL, X, 40, streams, alpha=alpha)
        half = streams.permutation("order", 60)[:30]
        K = KERNEL(X)
        explained = K[:, half] @ np.linalg.solve(
            K[np.ix_(half, half)] + alpha * np.eye(30), K[half]
        )
        expected = np.minimum(np.diag(K - explained) / alpha, 1.0)
        np.testing.assert_allclose(scores, expected, rtol=1e-9)

    def test_ridge_is_the_tail_of_the_eigenvalues(self) -> None:
        X, streams = rows(60), RandomStreams(1)
        half = streams.permutation("order", 60)[:30]
        rank = math.ceil(40 / (4 * math.log(40)))
        eigenvalues = np.linalg.eigvalsh(KERNEL(X[half]))
        alpha = eigenvalues[:-rank].sum() / rank
        expected = recursive_scores(KERNEL, X, 40, streams, alpha=float(alpha))
        actual = recursive_scores(KERNEL, X, 40, streams)
        np.testing.assert_allclose(actual, expected, rtol=1e-8)

    @pytest.mark.parametrize("seed", range(5))
    def test_never_below_the_exact_scores_with_one_half(self, seed: int) -> None:
        X = rows(80, seed=seed)
        scores = recursive_scores(KERNEL, X, 50, RandomStreams(seed), alpha=0.1)
        assert (scores >= exact_scores(KERNEL, X, 0.1) - 1e-9).all()

    @pytest.mark.parametrize("seed", range(5))
    def test_near_the_exact_scores_over_many_levels(self, seed: int) -> None:
        # The quotients lay between 0.79 and 3.24 for the seeds 0 … 29; the sample, that of a half,
        # misses by a factor of two at most what the rows of the other half add.
        X, alpha = rows(1200, seed=seed), 20.0
        scores = recursive_scores(KERNEL, X, 100, RandomStreams(seed), alpha=alpha)
        quotients = scores / exact_scores(KERNEL, X, alpha)
        assert quotients.min() > 0.5
        assert quotients.max() < 5.0
        assert 1.0 < np.median(quotients) < 2.0

    def test_scores_of_far_rows_are_one(self) -> None:
        X = np.vstack([np.zeros((200, 2)), 50.0 * np.eye(2)])
        indices, scores = draw_landmarks(KERNEL, X, 5, RandomStreams(0), alpha=0.05)
        np.testing.assert_array_less(0.95, scores[-2:])
        np.testing.assert_array_less(scores[:-2], 0.2)
        assert {200, 201} <= set(indices)

    @pytest.mark.parametrize("alpha", [0.01, 1.0, None])
    def test_float32_rows_have_the_scores_of_float64_ones(self, alpha: float | None) -> None:
        single = rows(2000).astype(np.float32)
        scores = recursive_scores(KERNEL, single, 60, RandomStreams(0), alpha=alpha)
        expected = recursive_scores(
            KERNEL, single.astype(np.float64), 60, RandomStreams(0), alpha=alpha
        )
        np.testing.assert_allclose(scores, expected, rtol=1e-2)
        assert (scores != expected).any()

    def test_float64_serves_where_float32_would_not_tell_rows_apart(self) -> None:
        generator = np.random.default_rng(0)
        centres = 2000.0 * generator.normal(size=(20, 3))
        single = (centres[np.arange(2000) % 20] + rows(2000)).astype(np.float32)
        scores = recursive_scores(KERNEL, single, 60, RandomStreams(0))
        expected = recursive_scores(KERNEL, single.astype(np.float64), 60, RandomStreams(0))
        np.testing.assert_array_equal(scores, expected)

    @pytest.mark.parametrize("scale", [1e-10, 1e5])
    def test_float64_serves_where_values_are_beyond_float32(self, scale: float) -> None:
        single, kernel = (scale * rows(2000)).astype(np.float32), Polynomial(degree=10)
        scores = recursive_scores(kernel, single, 60, RandomStreams(0))
        expected = recursive_scores(kernel, single.astype(np.float64), 60, RandomStreams(0))
        np.testing.assert_allclose(scores, expected, rtol=1e-2, atol=1e-4)


class TestApproximateScores:
    """[AM15], from the Nyström approximation of some columns."""

    def test_by_definition(self) -> None:
        X, alpha, streams = rows(60), 0.3, RandomStreams(2)
        kernel = Polynomial(degree=2, coef0=1.0)
        scores = approximate_scores(kernel, X, 7, streams, alpha=alpha)
        K = kernel(X)
        approximation = nystroem(K, weighted_sample(streams, "columns", np.diag(K), 7))
        expected = np.diag(
            np.linalg.solve(approximation + alpha * np.eye(60), approximation),
        )
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("seed", range(5))
    def test_never_above_the_exact_scores(self, seed: int) -> None:
        X = rows(80, seed=seed)
        scores = approximate_scores(KERNEL, X, 20, RandomStreams(seed), alpha=0.1)
        assert (scores <= exact_scores(KERNEL, X, 0.1) + 1e-8).all()

    def test_their_sum_is_the_statistical_dimension(self) -> None:
        X, alpha = rows(80), 0.1
        scores = approximate_scores(KERNEL, X, 79, RandomStreams(0), alpha=alpha)
        eigenvalues = np.linalg.eigvalsh(KERNEL(X))
        assert scores.sum() == pytest.approx((eigenvalues / (eigenvalues + alpha)).sum(), rel=0.02)


class TestAllScores:
    """What holds whichever way landmarks are chosen."""

    @each_method
    def test_indices_and_scores(self, method: str) -> None:
        X = rows(300)
        indices, scores = draw_landmarks(KERNEL, X, 40, RandomStreams(0), landmarks=method)
        assert indices.shape == (40,)
        assert (np.diff(indices) > 0).all()
        assert scores.shape == (300,)
        assert (scores >= 0.0).all()
        assert (scores <= 1.0).all()

    @each_method
    def test_the_seed_decides(self, method: str) -> None:
        X = rows(300)
        first, again, other = (
            draw_landmarks(KERNEL, X, 40, RandomStreams(seed), landmarks=method)[0]
            for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)

    @each_method
    @pytest.mark.parametrize("size", [20, 21, 500])
    def test_all_rows_where_there_are_no_more(self, method: str, size: int) -> None:
        indices, scores = draw_landmarks(KERNEL, rows(20), size, RandomStreams(0), landmarks=method)
        np.testing.assert_array_equal(indices, np.arange(20))
        np.testing.assert_array_equal(scores, np.ones(20))

    @each_method
    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_few_landmarks(self, method: str, size: int) -> None:
        indices, _ = draw_landmarks(KERNEL, rows(50), size, RandomStreams(0), landmarks=method)
        assert indices.size == size

    @each_estimate
    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    def test_every_kernel(self, scores: Estimate, kernel: Kernel) -> None:
        found = scores(kernel, rows(90), 20, RandomStreams(0))
        assert np.isfinite(found).all()
        assert found.max() > 0.0

    @each_estimate
    def test_duplicates_share_their_score(self, scores: Estimate) -> None:
        X = np.tile(rows(30), (4, 1))
        found = scores(KERNEL, X, 25, RandomStreams(0), alpha=0.2)
        np.testing.assert_allclose(found.reshape(4, 30), found[:30][np.newaxis].repeat(4, 0))
        # Four copies of a row have at most one together, but for what the estimate adds.
        assert np.median(found) < 0.35

    @each_estimate
    def test_sparse_rows(self, scores: Estimate) -> None:
        X = rows(120, 8) * (rows(120, 8, seed=1) > 0.3)
        dense = scores(KERNEL, X, 20, RandomStreams(0))
        csr = scores(KERNEL, sparse.csr_array(X), 20, RandomStreams(0))
        np.testing.assert_allclose(csr, dense, rtol=1e-7, atol=1e-10)

    @each_estimate
    def test_single_precision_rows(self, scores: Estimate) -> None:
        X = rows(120).astype(np.float32)
        single = scores(KERNEL, X, 20, RandomStreams(0), alpha=1e-4)
        double = scores(KERNEL, X.astype(np.float64), 20, RandomStreams(0), alpha=1e-4)
        np.testing.assert_allclose(single, double, rtol=1e-7, atol=1e-9)

    @each_estimate
    def test_threads(self, scores: Estimate) -> None:
        X = rows(9000, 2)
        one = scores(KERNEL, X, 20, RandomStreams(0), threads=1)
        two = scores(KERNEL, X, 20, RandomStreams(0), threads=2)
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)

    @each_estimate
    @pytest.mark.parametrize("alpha", [None, 1e-200, 1e200])
    def test_kernel_that_is_zero(self, scores: Estimate, alpha: float | None) -> None:
        found = scores(Polynomial(degree=3), np.zeros((40, 2)), 10, RandomStreams(0), alpha=alpha)
        np.testing.assert_array_equal(found, np.zeros(40))

    @each_estimate
    @pytest.mark.parametrize("alpha", [None, 1e-200])
    def test_low_rank(self, scores: Estimate, alpha: float | None) -> None:
        X = rows(100, 3)
        X[::7] = 0.0
        kernel = Polynomial(degree=1)
        found = scores(kernel, X, 50, RandomStreams(0), alpha=alpha)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[::7], 0.0, atol=1e-6)

    @each_estimate
    def test_memory(self, scores: Estimate) -> None:
        # 30,000 × 300 entries in float64 are 72 MB.
        X = rows(30_000, 2)
        tracemalloc.start()
        scores(KERNEL, X, 300, RandomStreams(0))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 56e6

    def test_uniform_scores_are_the_share_of_landmarks(self) -> None:
        scores = draw_landmarks(KERNEL, rows(50), 10, RandomStreams(0), landmarks="uniform")[1]
        np.testing.assert_array_equal(scores, np.full(50, 0.2))

    def test_unknown_name(self) -> None:
        with pytest.raises(ValueError, match="landmarks='exact' is unknown; use one of 'leverage'"):
            draw_landmarks(KERNEL, rows(5), 2, RandomStreams(0), landmarks="exact")


class TestWeightedSample:
    """Positions drawn one by one, without replacement."""

    def test_frequencies(self) -> None:
        # The pair {1, 2} comes with probability 2/6 · 3/4 + 3/6 · 2/3. Over 4000 draws the error
        # exceeds 0.04, five standard deviations, with a probability below 1e-6.
        weights = np.array([1.0, 2.0, 3.0])
        drawn = [weighted_sample(RandomStreams(i), "demo", weights, 2) for i in range(4000)]
        share = np.mean([list(pair) == [1, 2] for pair in drawn])
        assert share == pytest.approx(2 / 6 * 3 / 4 + 3 / 6 * 2 / 3, abs=0.04)

    def test_positions_without_weight_come_last(self) -> None:
        weights = np.array([0.0, 1e-300, 0.0, 1e300, 0.0])
        for seed in range(20):
            streams = RandomStreams(seed)
            assert list(weighted_sample(streams, "demo", weights, 2)) == [1, 3]
            assert {1, 3} < set(weighted_sample(streams, "demo", weights, 3))
        assert list(weighted_sample(RandomStreams(0), "demo", weights, 5)) == [0, 1, 2, 3, 4]


class TestThinned:
    """Positions kept independently of each other."""

    def test_frequencies_and_weights(self) -> None:
        # Five standard deviations of a share over 4000 draws are below 0.04.
        probabilities = np.array([0.25, 1.0, 0.0, 0.5])
        counts = np.zeros(4)
        for seed in range(4000):
            kept, weights = thinned(RandomStreams(seed), "demo", probabilities, 4)
            counts[kept] += 1
            np.testing.assert_allclose(weights, probabilities[kept] ** -0.5)
        np.testing.assert_allclose(counts / 4000, probabilities, atol=0.04)
        assert counts[1] == 4000
        assert counts[2] == 0

    def test_never_many_more_than_asked_for(self) -> None:
        kept, weights = thinned(RandomStreams(0), "demo", np.ones(10_000), 100)
        assert 50 < kept.size < 150
        np.testing.assert_allclose(weights, 10.0)

    def test_uniform_where_nothing_is_kept(self) -> None:
        kept, weights = thinned(RandomStreams(0), "demo", np.zeros(50), 8)
        assert len(set(kept)) == 8
        np.testing.assert_allclose(weights**2, 50 / 8)
