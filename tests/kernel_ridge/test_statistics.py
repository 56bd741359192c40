"""Statistics of blocks merge into those of all rows, and give the solution of ridge regression."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from powersketch.kernel_ridge import RidgeStatistics, block_statistics
from powersketch.kernel_ridge.rows.training_rows import row_blocks
from tests.kernel_ridge.ridge_data import brute_force, features, targets, weights

each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
each_target_count = pytest.mark.parametrize("count", [None, 1, 3])


def relative_difference(actual: NDArray[Any], expected: NDArray[Any]) -> float:
    return float(np.max(np.abs(actual - expected)) / np.max(np.abs(expected)))


def split(rows: int, seed: int) -> list[slice]:
    """Cut the rows into blocks of random lengths, some of one row."""
    generator = np.random.default_rng(seed)
    cuts = np.sort(generator.choice(np.arange(1, rows), size=min(7, rows - 1), replace=False))
    edges = [0, *cuts.tolist(), rows]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


class TestMoments:
    @each_target_count
    def test_are_those_about_the_weighted_means(self, count: int | None) -> None:
        Z, y, w = features(), targets(count=count), weights()
        statistics = block_statistics(Z, y, w)
        mean, target_mean = w @ Z / w.sum(), w @ y / w.sum()
        D, e = Z - mean, y - target_mean
        assert statistics.count == 60
        assert statistics.weight == pytest.approx(w.sum(), rel=1e-14)
        np.testing.assert_allclose(statistics.feature_mean, mean, rtol=1e-13)
        np.testing.assert_allclose(statistics.target_mean, target_mean, rtol=1e-13)
        np.testing.assert_allclose(statistics.gram, (D.T * w) @ D, rtol=0, atol=1e-11)
        np.testing.assert_allclose(statistics.cross, (D.T * w) @ e, rtol=0, atol=1e-11)
        np.testing.assert_allclose(statistics.target_squares, w @ e**2, rtol=1e-13)

    def test_of_no_intercept_are_about_zero(self) -> None:
        Z, y, w = features(), targets(count=2), weights()
        gram, cross, squares = block_statistics(Z, y, w).moments(fit_intercept=False)
        np.testing.assert_allclose(gram, (Z.T * w) @ Z, rtol=1e-12)
        np.testing.assert_allclose(cross, (Z.T * w) @ y, rtol=1e-12)
        np.testing.assert_allclose(squares, w @ y**2, rtol=1e-12)

    def test_keep_their_digits_far_from_zero(self) -> None:
        Z, y = features(mean=0.0), targets()
        near, far = block_statistics(Z, y), block_statistics(Z + 1e6, y)
        assert relative_difference(far.gram, near.gram) < 1e-8

    def test_the_gram_matrix_is_symmetric_to_the_last_bit(self) -> None:
        statistics = block_statistics(features(700, 600), targets(700), weights(700))
        np.testing.assert_array_equal(statistics.gram, statistics.gram.T)

    def test_are_the_same_for_all_layouts(self) -> None:
        Z, y = features(), targets()
        expected = block_statistics(Z, y).gram
        wide = np.repeat(Z, 2, axis=1)
        read_only = Z.copy()
        read_only.flags.writeable = False
        for same in (
            np.asfortranarray(Z),
            wide[:, ::2],
            read_only,
            sp.csr_array(Z),
            sp.csc_array(Z),
        ):
            np.testing.assert_allclose(block_statistics(same, y).gram, expected, rtol=1e-12)

    def test_float32_features_are_summed_in_float64(self) -> None:
        Z, y = features().astype(np.float32), targets()
        statistics = block_statistics(Z, y)
        expected = block_statistics(Z.astype(np.float64), y)
        assert statistics.gram.dtype == np.float64
        np.testing.assert_allclose(statistics.gram, expected.gram, rtol=1e-12)

    def test_inputs_are_left_as_they_are(self) -> None:
        Z, y, w = features(), targets(), weights()
        copies = Z.copy(), y.copy(), w.copy()
        first, second = block_statistics(Z[:20], y[:20], w[:20]), block_statistics(Z[20:], y[20:])
        gram = first.gram.copy()
        first.merge(second).solve(0.1)
        for array, copy in zip((Z, y, w, first.gram), (*copies, gram), strict=True):
            np.testing.assert_array_equal(array, copy)

    def test_whole_weights_repeat_rows(self) -> None:
        Z, y = features(), targets()
        times = np.random.default_rng(0).integers(0, 4, size=60)
        weighted, repeated = (
            block_statistics(Z, y, times),
            block_statistics(Z.repeat(times, axis=0), y.repeat(times)),
        )
        assert weighted.count == np.count_nonzero(times)
        np.testing.assert_allclose(weighted.gram, repeated.gram, rtol=0, atol=1e-11)
        np.testing.assert_allclose(weighted.cross, repeated.cross, rtol=0, atol=1e-11)


class TestMerge:
    @pytest.mark.parametrize("seed", range(5))
    @each_target_count
    def test_any_split_gives_the_statistics_of_all_rows(self, seed: int, count: int | None) -> None:
        Z, y, w = features(), targets(count=count), weights()
        Z[:20] += 50.0  # blocks with means far apart
        whole = block_statistics(Z, y, w)
        parts = [block_statistics(Z[part], y[part], w[part]) for part in split(60, seed)]
        np.random.default_rng(seed).shuffle(parts)  # type: ignore[arg-type]
        merged = RidgeStatistics.merged(parts)
        assert merged.count == whole.count
        for name in ("weight", "feature_mean", "target_mean", "gram", "cross", "target_squares"):
            expected = getattr(whole, name)
            assert relative_difference(np.asarray(getattr(merged, name)), expected) < 1e-12
        assert relative_difference(merged.solve(0.3).coef, whole.solve(0.3).coef) < 1e-10

    def test_is_associative(self) -> None:
        Z, y = features(), targets()
        a, b, c = (block_statistics(Z[i : i + 20], y[i : i + 20]) for i in (0, 20, 40))
        left, right = a.merge(b).merge(c), a.merge(b.merge(c))
        assert relative_difference(left.gram, right.gram) < 1e-13

    def test_rows_of_weight_zero_change_nothing(self) -> None:
        Z, y = features(), targets()
        some = block_statistics(Z, y)
        nothing = block_statistics(Z + 1.0, y, np.zeros(60))
        assert nothing.count == 0
        for merged in (some.merge(nothing), nothing.merge(some)):
            np.testing.assert_array_equal(merged.gram, some.gram)
            np.testing.assert_array_equal(merged.feature_mean, some.feature_mean)

    def test_of_different_sizes_is_refused(self) -> None:
        first = block_statistics(features(columns=12), targets())
        with pytest.raises(ValueError, match=r"\(12,\) and \(11,\) cannot be merged.*same fitted"):
            first.merge(block_statistics(features(columns=11), targets()))
        with pytest.raises(ValueError, match="cannot be merged"):
            first.merge(block_statistics(features(), targets(count=2)))


class TestSolve:
    @each_intercept
    @each_target_count
    @pytest.mark.parametrize("alpha", [1e-6, 0.3, 100.0])
    def test_is_the_solution_by_least_squares(
        self, fit_intercept: bool, count: int | None, alpha: float
    ) -> None:
        Z, y, w = features(), targets(count=count), weights()
        solution = block_statistics(Z, y, w).solve(alpha, fit_intercept=fit_intercept)
        coef, intercept = brute_force(Z, y, alpha, w, fit_intercept=fit_intercept)
        np.testing.assert_allclose(solution.coef, coef.T, rtol=0, atol=1e-9)
        np.testing.assert_allclose(solution.intercept, intercept, rtol=0, atol=1e-9)

    @each_intercept
    @each_target_count
    def test_is_that_of_scikit_learn(self, fit_intercept: bool, count: int | None) -> None:
        Z, y, w = features(), targets(count=count), weights()
        solution = block_statistics(Z, y, w).solve(0.5, fit_intercept=fit_intercept)
        peer = Ridge(alpha=0.5, fit_intercept=fit_intercept).fit(Z, y, w)
        coef = peer.coef_.reshape(solution.coef.shape)  # flat in scikit-learn for one column of y
        np.testing.assert_allclose(solution.coef, coef, rtol=0, atol=1e-10)
        np.testing.assert_allclose(solution.intercept, peer.intercept_, rtol=0, atol=1e-10)

    def test_without_penalty_has_the_least_norm(self) -> None:
        Z, y = features(rows=8, columns=12), targets(8)
        solution = block_statistics(Z, y).solve(0.0)
        centred = Z - Z.mean(axis=0)
        np.testing.assert_allclose(
            solution.coef, np.linalg.pinv(centred) @ (y - y.mean()), atol=1e-9
        )
        np.testing.assert_allclose(Z @ solution.coef + solution.intercept, y, atol=1e-9)

    def test_of_one_row_is_its_target(self) -> None:
        solution = block_statistics([[2.0, 1.0]], [5.0]).solve(1.0)
        np.testing.assert_array_equal(solution.coef, [0.0, 0.0])
        assert solution.intercept == 5.0

    def test_of_zero_features_is_the_mean(self) -> None:
        for alpha in (0.0, 1.0):
            solution = block_statistics(np.zeros((4, 2)), [1.0, 2.0, 3.0, 6.0]).solve(alpha)
            np.testing.assert_array_equal(solution.coef, [0.0, 0.0])
            assert solution.intercept == 3.0

    def test_refuses_a_negative_penalty(self) -> None:
        with pytest.raises(ValueError, match=r"alpha=-1\.0 is out of range.*at least 0"):
            block_statistics(features(), targets()).solve(-1.0)


class TestBadInput:
    def test_names_what_is_wrong(self) -> None:
        Z, y = features(), targets()
        with pytest.raises(ValueError, match="NaN"):
            block_statistics(np.where(Z > 3, np.nan, Z), y)
        with pytest.raises(ValueError, match="y contains NaN"):
            block_statistics(Z, np.where(y > 3, np.nan, y))
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            block_statistics(Z, y[1:])
        with pytest.raises(ValueError, match=r"y has shape \(60, 1, 1\)"):
            block_statistics(Z, y.reshape(60, 1, 1))
        with pytest.raises(ValueError, match=r"[Nn]egative"):
            block_statistics(Z, y, -np.ones(60))
        with pytest.raises(ValueError, match="sample_weight"):
            block_statistics(Z, y, np.ones(59))

    def test_there_is_something_to_merge(self) -> None:
        with pytest.raises(ValueError, match="no statistics to merge; at least 1"):
            RidgeStatistics.merged([])

    def test_repr_tells_the_sizes_only(self) -> None:
        statistics = block_statistics(features(), targets(count=2))
        assert repr(statistics) == "RidgeStatistics(60 rows of weight 60, 12 features, 2 targets)"


class TestRowBlocks:
    @pytest.mark.parametrize(("rows", "columns"), [(1, 1), (10**6, 2048), (5, 10**5), (0, 3)])
    def test_cover_all_rows_within_the_memory(self, rows: int, columns: int) -> None:
        blocks = list(row_blocks(rows, columns))
        assert [part.start for part in blocks[1:]] == [part.stop for part in blocks[:-1]]
        assert sum(part.stop - part.start for part in blocks) == rows
        longest = max((part.stop - part.start for part in blocks), default=0)
        assert longest * columns * 8 <= 128 << 20
