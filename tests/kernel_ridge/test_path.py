"""Scores of a path of alphas equal those of refits, and the choice is guarded."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import OneHotEncoder

from powersketch.kernel_ridge import (
    RegularisationWarning,
    SketchedKernelRidge,
    block_statistics,
)
from powersketch.kernel_ridge.solving import path as ridge_path
from powersketch.kernel_ridge.solving.factored_path import factored_path, factors_are_cheaper
from powersketch.kernel_ridge.solving.path import (
    RegularisationPath,
    checked_alphas,
    largest_within_error,
    ridge_solution,
)
from tests.kernel_ridge.ridge_data import Float64, brute_force, features, ridge, targets, weights

ALPHAS = np.logspace(-6, 3, 10)
FEW_ALPHAS = np.logspace(-4, 2, 4)
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
each_weighting = pytest.mark.parametrize("weighted", [True, False])
each_target_count = pytest.mark.parametrize("count", [None, 3])


def left_out_by_refits(
    Z: Float64,
    y: Float64,
    w: Float64,
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
        solution = ridge_solution(
            block_statistics(Z, y), "loo", ALPHAS, [(Z, y, None)], fit_intercept=True
        )
        assert solution.alpha == peer.alpha_


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
        assert largest_within_error(alphas, scores, rows=200) == 3.0  # √(2 / 200) = 0.1
        assert largest_within_error(alphas, scores, rows=20_000) == 2.0
        assert largest_within_error(alphas, np.full(4, np.inf), rows=200) == 4.0


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


@each_intercept
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("count", [None, 3])
def test_scores_and_solutions_equal_those_of_the_eigendecomposition(
    fit_intercept: bool, weighted: bool, count: int | None
) -> None:
    Z, y = features(60, 40), targets(60, count)
    w = weights(60) if weighted else None
    statistics = block_statistics(Z, y, w)
    blocks: list[tuple[Any, Any, Any]] = [
        (Z[i : i + 25], y[i : i + 25], None if w is None else w[i : i + 25])
        for i in range(0, 60, 25)
    ]
    found = factored_path(statistics, FEW_ALPHAS, blocks, fit_intercept=fit_intercept)
    assert found is not None
    path = RegularisationPath.of(statistics, fit_intercept=fit_intercept)
    np.testing.assert_allclose(found.scores, path.left_out_errors(FEW_ALPHAS, blocks), rtol=1e-8)
    for alpha in FEW_ALPHAS:
        solution = factored_path(statistics, np.array([alpha]), blocks, fit_intercept=fit_intercept)
        assert solution is not None
        expected = path.solve(float(alpha))
        assert solution.coef.shape == expected.coef.shape
        np.testing.assert_allclose(solution.coef, expected.coef, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(solution.intercept, expected.intercept, rtol=1e-8)


def test_single_precision_features_give_six_digits() -> None:
    Z, y = features(300, 50).astype(np.float32), targets(300)
    statistics = block_statistics(Z, y)
    found = factored_path(statistics, FEW_ALPHAS, [(Z, y, None)], fit_intercept=True)
    assert found is not None
    path = RegularisationPath.of(statistics, fit_intercept=True)
    expected = path.left_out_errors(FEW_ALPHAS, [(Z, y, None)])
    np.testing.assert_allclose(found.scores, expected, rtol=1e-4)


def test_an_alpha_lost_in_rounding_errors_is_left_to_the_eigendecomposition() -> None:
    Z, y = features(10, 30), targets(10)
    statistics = block_statistics(Z, y)
    alphas = np.array([1e-16, 1.0])
    assert factored_path(statistics, alphas, [(Z, y, None)], fit_intercept=True) is None


def test_factors_are_cheaper_for_few_alphas_and_many_features() -> None:
    assert factors_are_cheaper(6, 4096)
    assert factors_are_cheaper(4, 1024)
    assert not factors_are_cheaper(50, 4096)
    assert not factors_are_cheaper(6, 128)


@pytest.mark.parametrize("alphas", [[1e-3, 1e-1, 10.0], [1e-14, 1e-1, 10.0]])
def test_the_estimator_chooses_the_same(
    alphas: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(500, 4))
    y = np.sin(X).sum(axis=1) + 0.1 * generator.normal(size=500)
    options: dict[str, Any] = {"alpha": "loo", "alphas": alphas, "random_state": 0}
    monkeypatch.setattr("powersketch.kernel_ridge.solving.factored_path.LEFT_OUT_ROWS", 500)
    factored = ridge(n_components=300, **options).fit(X, y)
    monkeypatch.setattr(ridge_path, "factors_are_cheaper", lambda *_: False)
    decomposed = ridge(n_components=300, **options).fit(X, y)
    assert factored.alpha_ == decomposed.alpha_
    np.testing.assert_allclose(factored.scores_, decomposed.scores_, rtol=1e-5)
    np.testing.assert_allclose(factored.predict(X), decomposed.predict(X), atol=1e-6)


def test_features_of_whole_numbers() -> None:
    labels = np.random.default_rng(0).integers(0, 300, size=(900, 1))
    y = np.sin(labels[:, 0]) + np.random.default_rng(1).normal(size=900)
    scores = []
    for dtype in (int, float):
        encoder = OneHotEncoder(dtype=dtype, sparse_output=False)
        model = ridge(features=encoder, alpha="loo", alphas=[1e-3, 0.1, 10.0]).fit(labels, y)
        scores.append(model.scores_)
    np.testing.assert_allclose(*scores)


def waves(frequency: float, noise: float = 0.0) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(0)
    X = generator.uniform(-1.0, 1.0, (2000, 2))
    y = np.sin(frequency * X[:, 0]) * np.cos(frequency * X[:, 1])
    return X, y + noise * generator.standard_normal(2000)


def model(gamma: float | str, n_components: int, **parameters: Any) -> SketchedKernelRidge:
    return ridge(
        kernel_params={"gamma": gamma}, n_components=n_components, random_state=0, **parameters
    )


def error(model: SketchedKernelRidge, X: Float64, y: Float64) -> float:
    return float(np.mean((model.fit(X[:1000], y[:1000]).predict(X[1000:]) - y[1000:]) ** 2))


def error_and_advice(model: SketchedKernelRidge, X: Float64, y: Float64) -> tuple[float, str]:
    with pytest.warns(RegularisationWarning) as caught:
        value = error(model, X, y)
    assert len(caught) == 1
    return value, str(caught[0].message)


def silent_error(model: SketchedKernelRidge, X: Float64, y: Float64) -> float:
    """Return the error, whatever is said of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegularisationWarning)
        return error(model, X, y)


@pytest.mark.parametrize("alpha", ["loo", "gcv"])
def test_features_that_are_all_in_use_call_for_more(alpha: str) -> None:
    X, y = waves(12.0)
    before, advice = error_and_advice(model(10.0, 300, alpha=alpha), X, y)
    assert "Use more than the 300 features (n_components)" in advice
    assert advice.index("n_components") < advice.index("gamma")
    assert silent_error(model(10.0, 900, alpha=alpha), X, y) < 0.1 * before


@pytest.mark.parametrize(("alpha", "frequency"), [("loo", 3.0), ("gcv", 3.0), ("loo", 6.0)])
def test_a_kernel_that_is_too_smooth_calls_for_a_larger_gamma(alpha: str, frequency: float) -> None:
    X, y = waves(frequency)
    before, advice = error_and_advice(model(0.1, 300, alpha=alpha), X, y)
    assert "Use a larger gamma" in advice
    assert "n_components" not in advice
    assert silent_error(model(0.5, 300, alpha=alpha), X, y) < 0.5 * before


def test_columns_of_very_different_units_call_for_equal_spread() -> None:
    generator = np.random.default_rng(0)
    standard = generator.normal(size=(1200, 4))
    y = standard.sum(axis=1) + 0.1 * generator.normal(size=1200)
    X = standard * [1e4, 1.0, 1e-3, 1e-5]
    linear = SketchedKernelRidge("linear", random_state=0)
    before, advice = error_and_advice(linear, X, y)
    assert "scaling='scaled'" in advice
    assert "gamma" not in advice
    assert error(linear.set_params(scaling="scaled"), X, y) < 0.1 * before


def test_alphas_that_are_all_large_call_for_smaller_ones() -> None:
    X, y = waves(6.0, 0.05)
    before, advice = error_and_advice(model(3.0, 300, alpha="loo", alphas=[30.0, 100.0]), X, y)
    assert "Give smaller alphas" in advice
    assert silent_error(model(3.0, 300, alpha="loo"), X, y) < 0.5 * before


def test_smaller_alphas_are_not_advised_where_they_change_nothing() -> None:
    X, y = waves(3.0)
    first = model(10.0, 300, alpha="loo")
    before, advice = error_and_advice(first, X, y)
    assert "alphas" not in advice
    fewer = model(10.0, 300, alpha="loo", alphas=1e-5 * first.alphas_)
    assert silent_error(fewer, X, y) > 0.8 * before


def test_nothing_is_said_where_nothing_is_left_to_gain() -> None:
    X, _ = waves(1.0)
    y = X @ [1.0, 2.0]
    poly = ridge(
        "polynomial", kernel_params={"degree": 2, "coef0": 1.0}, alpha="loo", random_state=0
    )
    assert error(poly.set_params(alphas=[1e-9, 1e-8, 1.0]), X, y) < 1e-8


def test_few_alphas_by_factors_give_the_same_advice() -> None:
    X, y = waves(12.0)
    alphas = [1e-7, 1.0]
    _, advice = error_and_advice(model(10.0, 300, alpha="loo", alphas=alphas), X, y)
    assert "Use more than the 300 features (n_components)" in advice
