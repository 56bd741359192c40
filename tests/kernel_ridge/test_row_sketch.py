"""The row sketch: near the best objective, and honest about how near."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch import LeverageNystroem, kernels
from powersketch.kernel_ridge import CoarseSketchWarning
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving import row_sketch
from powersketch.kernel_ridge.solving.dual import DualSystem
from powersketch.kernel_ridge.solving.features import Features
from powersketch.kernel_ridge.solving.row_sketch import row_sketch_solution, sketched_rows
from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT
from tests.kernel_ridge.ridge_data import classifier, diabetes, digits, ridge, waves, weights

KERNEL = kernels.Gaussian(0.05)
each_weighting = pytest.mark.parametrize("weighted", [True, False])


def objective(
    K: NDArray[Any], x: NDArray[Any], y: NDArray[Any], w: NDArray[Any], alpha: float
) -> float:
    return float(w @ (K @ x - y) ** 2 + alpha * x @ K @ x)


class TestRowSketch:
    def data(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        if name == "digits":
            X, labels = digits(400)
            return X, np.where(labels % 2 == 0, 1.0, -1.0)
        return diabetes(400) if name == "diabetes" else waves(400)

    # With all rows as landmarks the features are exact. Of 20 sketches 1 may miss: with 1 % of
    # misses, the most that was measured, more happen in 1.7 % of all runs.
    @pytest.mark.parametrize("name", ["digits", "diabetes", "waves"])
    @pytest.mark.parametrize("eps", [0.1, 0.5])
    def test_the_objective_is_near_its_minimum(self, name: str, eps: float) -> None:
        X, y = self.data(name)
        kernel, alpha = kernels.Gaussian(0.5 / (X.shape[1] * X.var())), 4.0
        K, ones = kernel(X), np.ones(400)
        least = alpha * y @ np.linalg.solve(K + alpha * np.eye(400), y)
        landmarks = LeverageNystroem(kernel, n_components=400, random_state=0).fit(X)
        ratios = []
        for seed in range(20):
            system = DualSystem(TrainingRows(X, y, None), kernel, alpha, None, seed, None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CoarseSketchWarning)
                solution, report = row_sketch_solution(
                    system, Features(landmarks), fit_intercept=False, eps=eps, verbose=0
                )
            ratios.append(objective(K, solution.coef, y, ones, alpha) / least)
            assert ratios[-1] <= report.objective_ratio * (1.0 + 1e-9)
            assert report.rows < 400
        assert np.mean(np.array(ratios) <= 1.0 + eps) >= 0.95
        assert np.median(ratios) > 1.0 + 0.05 * eps  # no larger than it has to be

    def test_predicts_with_the_exact_kernel(self) -> None:
        X, y = diabetes(300)
        model = ridge(
            KERNEL, n_components=2000, features="row-sketch", alpha=5.0, random_state=0
        ).fit(X, y)
        assert model.row_sketch_.objective_ratio < 1.1
        assert model.intercept_ == pytest.approx(y.mean())
        expected = KERNEL(X) @ model.dual_coef_ + y.mean()
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    @each_weighting
    def test_coarse_features_are_reported(self, weighted: bool) -> None:
        X, y = diabetes(300)
        w = weights(300) + 0.1 if weighted else np.ones(300)
        model = ridge(KERNEL, n_components=20, features="row-sketch", alpha=1e-3, random_state=0)
        with pytest.warns(
            CoarseSketchWarning, match=r"too coarse for alpha=0\.001.*Use more comp"
        ) as caught:
            model.fit(X, y, w if weighted else None)
        assert caught[0].filename == __file__
        centred = y - np.average(y, weights=w)
        K = KERNEL(X)
        least = 1e-3 * centred @ np.linalg.solve(K + 1e-3 * np.diag(1.0 / w), centred)
        ratio = objective(K, model.dual_coef_, centred, w, 1e-3) / least
        assert ratio > 1.1
        # A bound that is not far from the truth.
        assert ratio * (1 - 1e-9) <= model.row_sketch_.objective_ratio <= 1.5 * ratio

    @each_weighting
    def test_as_many_rows_as_there_are_need_no_sketch(self, weighted: bool) -> None:
        X, y = diabetes(100)
        w = weights(100) if weighted else np.ones(100)
        kernel = kernels.Polynomial(2, 0.3, 1.0)  # the features are exact
        model = ridge(kernel, features="row-sketch", alpha=0.5, eps=0.01, random_state=0)
        model.fit(X[:, :3], y, w if weighted else None)
        assert model.row_sketch_.rows == 100
        centred = y - np.average(y, weights=w)
        exact = np.linalg.solve(kernel(X[:, :3]) + 0.5 * np.diag(1.0 / w), centred)
        np.testing.assert_allclose(model.dual_coef_, exact, rtol=0, atol=1e-7)
        assert model.row_sketch_.objective_ratio == pytest.approx(1.0, abs=1e-9)

    def test_a_large_penalty_gives_the_mean(self) -> None:
        X, y = diabetes(200)
        model = ridge(KERNEL, features="row-sketch", alpha=1e12, random_state=0)
        np.testing.assert_allclose(model.fit(X, y).predict(X), y.mean(), rtol=1e-6)

    def test_targets_that_are_constant_are_met(self) -> None:
        X, _ = diabetes(200)
        model = ridge(KERNEL, features="row-sketch", random_state=0)
        np.testing.assert_allclose(model.fit(X, np.ones(200)).predict(X), 1.0)
        assert model.row_sketch_.objective_ratio == 1.0

    def test_classifies(self) -> None:
        X, y = digits(500)
        model = classifier(
            KERNEL, n_components=2000, features="row-sketch", alpha=0.05, eps=0.5, random_state=0
        ).fit(X[:300], y[:300])
        assert model.score(X[300:], y[300:]) > 0.85

    def test_the_sketch_has_the_size_of_the_theorem(self) -> None:
        assert sketched_rows(30.0, 0.1) == 491  # (1 + 1.25 / 0.1) (30 + 4 + log 10)
        assert sketched_rows(30.0, 2.0) == 56

    @pytest.mark.parametrize(("columns", "size"), [(1, 1), (5, 3), (64, 20), (100, 99)])
    def test_the_transposed_product_is_the_adjoint(self, columns: int, size: int) -> None:
        sketch = SRHT.draw(RandomStreams(0), columns, size)
        matrix = sketch.apply(np.eye(columns))  # Sᵀ, as rows are sketched
        V = np.random.default_rng(0).normal(size=(size, 2))
        actual = row_sketch._transposed_product(sketch, V, threads=1)
        np.testing.assert_allclose(actual, matrix @ V, rtol=1e-12, atol=1e-12)
