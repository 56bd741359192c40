"""Scores of a path of alphas equal those of refits, and the choice is guarded."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV

from powersketch.kernel_ridge import block_statistics
from powersketch.kernel_ridge.regularisation_path import (
    RegularisationPath,
    checked_alphas,
    chosen_by_generalised,
    chosen_by_left_out,
)
from tests.kernel_ridge.ridge_data import brute_force, features, targets, weights

ALPHAS = np.logspace(-6, 3, 10)
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
each_weighting = pytest.mark.parametrize("weighted", [True, False])
each_target_count = pytest.mark.parametrize("count", [None, 3])


def left_out_by_refits(
    Z: NDArray[np.float64],
    y: NDArray[np.float64],
    w: NDArray[np.float64],
    alpha: float,
    *,
    fit_intercept: bool,
) -> float:
    total = 0.0
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        coef, intercept = brute_force(Z[rest], y[rest], alpha, w[rest], fit_intercept=fit_intercept)
        total += w[i] * float(np.mean((y[i] - Z[i] @ coef - intercept) ** 2))
    return total / w.sum()


class TestLeaveOneOut:
    @each_intercept
    @each_weighting
    @each_target_count
    def test_equals_refits(self, fit_intercept: bool, weighted: bool, count: int | None) -> None:
        Z, y = features(30, 8), targets(30, count)
        w = weights(30) if weighted else np.ones(30)
        path = RegularisationPath.of(block_statistics(Z, y, w), fit_intercept=fit_intercept)
        scores = path.left_out_errors(ALPHAS, [(Z, y, w if weighted else None)])
        expected = [
            left_out_by_refits(Z, y, w, alpha, fit_intercept=fit_intercept) for alpha in ALPHAS
        ]
        np.testing.assert_allclose(scores, expected, rtol=1e-8)

    def test_with_more_features_than_rows_equals_refits(self) -> None:
        Z, y, w = features(12, 30), targets(12), weights(12)
        path = RegularisationPath.of(block_statistics(Z, y, w), fit_intercept=True)
        alphas = np.logspace(-2, 2, 5)
        expected = [left_out_by_refits(Z, y, w, alpha, fit_intercept=True) for alpha in alphas]
        np.testing.assert_allclose(path.left_out_errors(alphas, [(Z, y, w)]), expected, rtol=1e-8)

    def test_does_not_depend_on_the_blocks(self) -> None:
        Z, y, w = features(), targets(count=2), weights()
        path = RegularisationPath.of(block_statistics(Z, y, w), fit_intercept=True)
        parts = [(Z[i : i + 7], y[i : i + 7], w[i : i + 7]) for i in range(0, 60, 7)]
        whole = path.left_out_errors(ALPHAS, [(Z, y, w)])
        np.testing.assert_allclose(path.left_out_errors(ALPHAS, parts), whole, rtol=1e-12)

    def test_of_many_targets_is_the_mean_of_each(self) -> None:
        Z, y = features(40, 6), targets(40, 700)
        each = []
        for column in y.T[:5]:
            path = RegularisationPath.of(block_statistics(Z, column), fit_intercept=True)
            each.append(path.left_out_errors(ALPHAS, [(Z, column, None)]))
        path = RegularisationPath.of(block_statistics(Z, y[:, :5]), fit_intercept=True)
        some = path.left_out_errors(ALPHAS, [(Z, y[:, :5], None)])
        np.testing.assert_allclose(some, np.mean(each, axis=0), rtol=1e-10)
        # More targets than fit into one product.
        path = RegularisationPath.of(block_statistics(Z, y), fit_intercept=True)
        repeated = np.concatenate(
            [path.left_out_errors(ALPHAS[i : i + 1], [(Z, y, None)]) for i in range(10)]
        )
        np.testing.assert_allclose(path.left_out_errors(ALPHAS, [(Z, y, None)]), repeated)

    def test_chooses_what_scikit_learn_chooses(self) -> None:
        Z, y = features(200, 10), targets(200)
        y = y + Z @ np.linspace(-1, 1, 10)
        peer = RidgeCV(alphas=ALPHAS, store_cv_results=True).fit(Z, y)
        path = RegularisationPath.of(block_statistics(Z, y), fit_intercept=True)
        scores = path.left_out_errors(ALPHAS, [(Z, y, None)])
        np.testing.assert_allclose(scores, peer.cv_results_.mean(axis=0), rtol=1e-8)
        assert chosen_by_left_out(ALPHAS, scores) == peer.alpha_


class TestGeneralised:
    @each_intercept
    @each_weighting
    def test_follows_from_the_matrix_of_predictions(
        self, fit_intercept: bool, weighted: bool
    ) -> None:
        Z, y = features(), targets(count=2)
        w = weights() if weighted else np.ones(60)
        path = RegularisationPath.of(block_statistics(Z, y, w), fit_intercept=fit_intercept)
        scores = path.generalised_errors(ALPHAS)
        for alpha, score in zip(ALPHAS, scores, strict=True):
            coef, intercept = brute_force(Z, y, alpha, w, fit_intercept=fit_intercept)
            residuals = float(np.mean(w @ (y - Z @ coef - intercept) ** 2))
            impulses = brute_force(Z, np.eye(60), alpha, w, fit_intercept=fit_intercept)
            trace = float(np.trace(Z @ impulses[0] + impulses[1]))
            assert score == pytest.approx(residuals / 60 / (1 - trace / 60) ** 2, rel=1e-8)

    def test_values_with_too_many_parameters_are_left_out(self) -> None:
        Z, y = features(20, 30), targets(20)
        path = RegularisationPath.of(block_statistics(Z, y), fit_intercept=True)
        scores = path.generalised_errors(ALPHAS)
        parameters = path.effective_parameters(ALPHAS)
        np.testing.assert_array_equal(np.isinf(scores), parameters > 10.0)
        assert np.isinf(scores[0])
        assert np.isfinite(scores[-1])

    def test_takes_the_largest_alpha_within_a_standard_error(self) -> None:
        alphas, scores = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.05, 1.0, 1.09, 1.2])
        assert chosen_by_generalised(alphas, scores, rows=200) == 3.0  # √(2 / 200) = 0.1
        assert chosen_by_generalised(alphas, scores, rows=20_000) == 2.0
        assert chosen_by_generalised(alphas, np.full(4, np.inf), rows=200) == 4.0


class TestPath:
    @each_intercept
    @each_target_count
    def test_solutions_equal_those_of_the_statistics(
        self, fit_intercept: bool, count: int | None
    ) -> None:
        statistics = block_statistics(features(), targets(count=count), weights())
        path = RegularisationPath.of(statistics, fit_intercept=fit_intercept)
        for alpha in ALPHAS:
            expected = statistics.solve(alpha, fit_intercept=fit_intercept)
            actual = path.solve(alpha)
            np.testing.assert_allclose(actual.coef, expected.coef, rtol=0, atol=1e-9)
            np.testing.assert_allclose(actual.intercept, expected.intercept, rtol=0, atol=1e-9)

    def test_default_values_follow_the_scale_of_the_features(self) -> None:
        Z, y = features(), targets()
        small, large = (
            RegularisationPath.of(block_statistics(s * Z, y), fit_intercept=True).default_alphas()
            for s in (1.0, 10.0)
        )
        assert small.size == 50
        np.testing.assert_allclose(large, 100.0 * small, rtol=1e-10)
        trace = np.sum((Z - Z.mean(axis=0)) ** 2)
        np.testing.assert_allclose(small[[0, -1]], [1e-10 * trace, trace], rtol=1e-10)

    def test_default_values_are_positive_for_features_of_zero(self) -> None:
        path = RegularisationPath.of(
            block_statistics(np.zeros((5, 2)), np.ones(5)), fit_intercept=True
        )
        assert (path.default_alphas() > 0.0).all()


class TestAlphas:
    def test_are_sorted_and_single(self) -> None:
        np.testing.assert_array_equal(checked_alphas([3.0, 1.0, 3]), [1.0, 3.0])
        assert checked_alphas(None) is None

    @pytest.mark.parametrize("alphas", [[], [1.0, 0.0], [-1.0], [np.nan], [np.inf], [[1.0]], 1.0])
    def test_others_are_refused(self, alphas: object) -> None:
        with pytest.raises(ValueError, match=r"alphas=.*finite numbers above 0"):
            checked_alphas(alphas)  # type: ignore[arg-type]
