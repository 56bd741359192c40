"""Scores from one factorisation per alpha equal those of the eigendecomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder

from powersketch import SketchedKernelRidge
from powersketch.kernel_ridge import block_statistics, primal
from powersketch.kernel_ridge.factored_path import factored_path, factors_are_cheaper
from powersketch.kernel_ridge.regularisation_path import RegularisationPath
from tests.kernel_ridge.ridge_data import features, targets, weights

ALPHAS = np.logspace(-4, 2, 4)
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


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
    found = factored_path(statistics, ALPHAS, blocks, fit_intercept=fit_intercept)
    assert found is not None
    path = RegularisationPath.of(statistics, fit_intercept=fit_intercept)
    np.testing.assert_allclose(found[0], path.left_out_errors(ALPHAS, blocks), rtol=1e-8)
    for alpha, solution in zip(ALPHAS, found[1], strict=True):
        expected = path.solve(float(alpha))
        assert solution.coef.shape == expected.coef.shape
        np.testing.assert_allclose(solution.coef, expected.coef, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(solution.intercept, expected.intercept, rtol=1e-8)


def test_single_precision_features_give_six_digits() -> None:
    Z, y = features(300, 50).astype(np.float32), targets(300)
    statistics = block_statistics(Z, y)
    found = factored_path(statistics, ALPHAS, [(Z, y, None)], fit_intercept=True)
    assert found is not None
    path = RegularisationPath.of(statistics, fit_intercept=True)
    np.testing.assert_allclose(found[0], path.left_out_errors(ALPHAS, [(Z, y, None)]), rtol=1e-4)


def test_an_alpha_lost_in_rounding_errors_is_left_to_the_eigendecomposition() -> None:
    Z, y = features(10, 30), targets(10)
    statistics = block_statistics(Z, y)
    alphas = np.array([1e-16, 1.0])
    assert factored_path(statistics, alphas, [(Z, y, None)], fit_intercept=True) is None


def test_factors_are_cheaper_for_few_alphas_and_many_features() -> None:
    assert factors_are_cheaper(6, 4096, 4096)
    assert factors_are_cheaper(4, 1024, 4096)
    assert not factors_are_cheaper(50, 4096, 4096)
    assert not factors_are_cheaper(6, 128, 4096)


@pytest.mark.parametrize("alphas", [[1e-3, 1e-1, 10.0], [1e-14, 1e-1, 10.0]])
def test_the_estimator_chooses_the_same(
    alphas: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(500, 4))
    y = np.sin(X).sum(axis=1) + 0.1 * generator.normal(size=500)
    options: dict[str, Any] = {"alpha": "loo", "alphas": alphas, "random_state": 0}
    monkeypatch.setattr(primal, "LEFT_OUT_ROWS", 500)
    factored = SketchedKernelRidge(n_components=300, **options).fit(X, y)
    monkeypatch.setattr(primal, "factors_are_cheaper", lambda *_: False)
    decomposed = SketchedKernelRidge(n_components=300, **options).fit(X, y)
    assert factored.alpha_ == decomposed.alpha_
    np.testing.assert_allclose(factored.scores_, decomposed.scores_, rtol=1e-5)
    np.testing.assert_allclose(factored.predict(X), decomposed.predict(X), atol=1e-6)


def test_features_of_whole_numbers() -> None:
    labels = np.random.default_rng(0).integers(0, 300, size=(900, 1))
    y = np.sin(labels[:, 0]) + np.random.default_rng(1).normal(size=900)
    scores = []
    for dtype in (int, float):
        encoder = OneHotEncoder(dtype=dtype, sparse_output=False)
        model = SketchedKernelRidge(encoder, alpha="loo", alphas=[1e-3, 0.1, 10.0]).fit(labels, y)
        scores.append(model.scores_)
    np.testing.assert_allclose(*scores)
