"""Iterations give what Gram matrices give, and sparse columns are never made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from powersketch import LeverageNystroem, SketchedKernelRidgeClassifier
from powersketch.comparison.measure import peak_bytes
from powersketch.exceptions import InputError
from powersketch.kernel_ridge import block_statistics, choice
from powersketch.kernel_ridge.features import Features
from powersketch.kernel_ridge.iterative import IterativeRidge
from powersketch.kernel_ridge.row_products import LandmarkValues
from powersketch.kernel_ridge.training_rows import TrainingRows
from powersketch.kernels import Gaussian
from tests.kernel_ridge.ridge_data import ridge, weights


def documents(rows: int = 200, columns: int = 5000, count: int | None = None) -> tuple[Any, Any]:
    """Return rows of few words, and a linear function of these with noise."""
    generator = np.random.default_rng(0)
    X = sp.random_array((rows, columns), density=0.01, rng=generator, format="csr")
    slopes = generator.normal(size=columns if count is None else (columns, count))
    y = X @ slopes
    return X, y + 0.1 * generator.normal(size=y.shape) + 2.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("count", [None, 2])
def test_they_give_ridge_regression(fit_intercept: bool, weighted: bool, count: int | None) -> None:
    X, y = documents(count=count)
    w = weights(200) + 0.1 if weighted else None
    model = ridge("linear", alpha=0.5, fit_intercept=fit_intercept, random_state=0).fit(X, y, w)
    peer = Ridge(0.5, fit_intercept=fit_intercept).fit(X.toarray(), y, w)
    np.testing.assert_allclose(model.predict(X), peer.predict(X.toarray()), rtol=0, atol=5e-4)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=5e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=5e-4)


def test_a_column_of_zero_mean_keeps_the_intercept() -> None:
    """All means are zero here, and the intercept is the mean of the targets all the same."""
    X, y = documents(100)
    both = sp.vstack((X, -X)).tocsr()
    model = ridge("linear", alpha=0.5, random_state=0).fit(both, np.append(y, y))
    np.testing.assert_allclose(model.intercept_, y.mean(), rtol=1e-4)


def test_memory_stays_near_the_rows() -> None:
    X, y = documents(2000, 20_000)
    model = ridge("linear", alpha=0.5, random_state=0)
    model.fit(X[:50], y[:50])
    assert peak_bytes(lambda: model.fit(X, y)) < 0.1 * 8 * X.shape[0] * X.shape[1]


def test_blocks_cannot_be_added_in_silence() -> None:
    X, y = documents()
    model = ridge("linear", alpha=0.5, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InputError, match=r"solved by iterations, .*on a clone"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def rings(rows: int) -> tuple[Any, Any]:
    """Return points of the plane, and which of three rings around the centre they are on."""
    X = np.random.default_rng(1).normal(size=(rows, 2))
    return X, np.digitize(np.hypot(*X.T), [0.8, 1.5])


class TestLandmarks:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weight", [0.0, 0.3])
    def test_they_give_what_sums_give(self, fit_intercept: bool, weight: float) -> None:
        X, labels = rings(800)
        targets = np.where(labels[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        landmarks = LeverageNystroem(
            Gaussian(0.5), n_components=60, landmarks="uniform", jitter=1e-5, random_state=0
        ).fit(X)
        features = Features(landmarks, weight)
        rows = TrainingRows(X, targets, None)
        values = LandmarkValues(features, rows, fit_intercept=fit_intercept, stored=True)
        ridge = IterativeRidge(fit_intercept, 1e-6, seed=0)
        solution, _ = ridge.solve_given(values, 1.0)
        Z = features.transform(X)
        exact = block_statistics(Z, targets).solve(1.0, fit_intercept=fit_intercept)
        found = Z @ solution.coef.T + solution.intercept
        # Values are stored in float32, and iterations end at a residual of 1e-4.
        np.testing.assert_allclose(found, Z @ exact.coef.T + exact.intercept, rtol=0, atol=0.01)
        _, left_out, result = ridge.solve(values, 1.0, None, None)
        assert left_out.predictions.shape == (80, 3)
        assert result.errors is not None
        assert result.errors[-1] < result.errors[0]

    def test_rows_held_out_choose_alpha(self) -> None:
        X, labels = rings(800)
        targets = np.where(labels[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        landmarks = LeverageNystroem(
            Gaussian(0.5), n_components=60, landmarks="uniform", jitter=1e-5, random_state=0
        ).fit(X)
        rows = TrainingRows(X, targets, None)
        values = LandmarkValues(Features(landmarks), rows, fit_intercept=True, stored=True)
        chosen, _, _ = IterativeRidge(True, 1e-6, seed=0).solve(values, "loo", None, 1e3)
        assert chosen.alpha < 100.0  # far below where the search began
        assert chosen.alphas is not None
        assert chosen.scores is not None
        assert chosen.scores[chosen.alphas == chosen.alpha] == chosen.scores.min()

    def test_classifiers_of_many_rows_take_more_of_them(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(choice, "_ROWS_TO_ITERATE", 1000)
        monkeypatch.setattr(choice, "_MOST_ITERATED", 300)
        monkeypatch.setattr(choice, "MOST_SUMMED_FEATURES", 100)
        monkeypatch.setattr("powersketch.kernel_ridge.settings.MOST_SUMMED_FEATURES", 100)
        monkeypatch.setattr("powersketch.kernel_ridge.solvers._FEWEST_FEATURES", 100)
        monkeypatch.setattr("powersketch.kernel_ridge.solvers._WORTH_IT", np.inf)
        monkeypatch.setattr(choice, "_MOST_EXACT_ROWS", 500)
        X, labels = rings(2000)
        model = SketchedKernelRidgeClassifier(Gaussian(3.0), random_state=0).fit(
            X[:1500], labels[:1500]
        )
        assert model.choice_.n_components == 300
        assert "iterations" in str(model.choice_)
        assert model.score(X[1500:], labels[1500:]) > 0.95
        shares = model.predict_proba(X[1500:])
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_one_wide_row() -> None:
    X, y = documents(1)
    assert np.isfinite(ridge("linear", alpha=1.0).fit(X, y).predict(X)).all()


def test_sums_are_asked_for_in_vain() -> None:
    X, y = documents()
    with pytest.raises(InputError, match=r"alpha='gcv' needs sums .*use alpha='loo'"):
        ridge("linear", alpha="gcv").fit(X, y)
