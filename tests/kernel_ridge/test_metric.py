"""A learned metric finds the columns and directions that matter, and only where there are some."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from powersketch import LearnedMetric, SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.kernel_ridge.choosing import metric
from powersketch.kernel_ridge.choosing.metric import root_of_metric
from tests.kernel_ridge.ridge_data import Float64, ridge

each_exponent = pytest.mark.parametrize("exponent", [1.0, 0.5])


def relevant(rows: int = 400, columns: int = 10, seed: int = 0) -> tuple[Float64, Float64]:
    """Return normal columns, and a function of the first two with a little noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * generator.normal(size=rows)


class TestRoot:
    @each_exponent
    def test_times_itself_is_a_power_of_the_mean_outer_product(self, exponent: float) -> None:
        G = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1.0, 7.0)
        T = root_of_metric(G, "full", exponent)
        values, vectors = np.linalg.eigh(G.T @ G)
        power = (vectors * (values / values.max()) ** exponent) @ vectors.T
        np.testing.assert_allclose(T @ T.T, power, atol=1e-12)
        np.testing.assert_allclose(T, T.T, atol=1e-12)  # columns keep their meaning

    @each_exponent
    def test_that_is_diagonal_has_the_mean_squares(self, exponent: float) -> None:
        G = np.random.default_rng(0).normal(size=(50, 6)) * np.arange(1.0, 7.0)
        squares = np.mean(G**2, axis=0)
        np.testing.assert_allclose(
            root_of_metric(G, "diagonal", exponent) ** 2, (squares / squares.max()) ** exponent
        )

    def test_has_a_low_rank_where_columns_are_many(self) -> None:
        generator = np.random.default_rng(0)
        G = generator.normal(size=(300, 5)) @ generator.normal(size=(5, 400))
        T = root_of_metric(G, "full", 1.0)
        assert T.shape == (400, 256)
        M = G.T @ G
        np.testing.assert_allclose(T @ T.T, M / np.linalg.norm(M, 2), atol=1e-10)
        few = root_of_metric(generator.normal(size=(20, 400)), "full", 1.0)
        assert few.shape == (400, 20)

    @pytest.mark.parametrize("form", ["full", "diagonal"])
    def test_of_no_gradients_is_zero(self, form: str) -> None:
        assert not root_of_metric(np.zeros((10, 3)), form, 1.0).any()


class TestEstimator:
    @pytest.mark.parametrize("form", ["diagonal", "full"])
    @pytest.mark.parametrize("kernel", ["auto", "gaussian"])
    def test_finds_the_columns_that_matter(self, form: str, kernel: str) -> None:
        X, y = relevant()
        new, wanted = relevant(seed=1)
        model = SketchedKernelRidge(kernel, metric=form, random_state=0).fit(X, y)
        assert model.feature_importances_.shape == (10,)
        assert model.feature_importances_.sum() == pytest.approx(1.0)
        assert model.feature_importances_[:2].sum() > 0.9
        assert model.metric_.shape == (10, 10)
        plain = SketchedKernelRidge(kernel, metric=None, random_state=0).fit(X, y)
        assert 1.0 - model.score(new, wanted) < 0.5 * (1.0 - plain.score(new, wanted))
        assert f"A {form} metric was learned in" in str(model.choice_)

    def test_finds_a_direction_that_no_column_is(self) -> None:
        generator = np.random.default_rng(0)
        X = generator.normal(size=(500, 6))
        direction = np.array([1.0, -1.0, 2.0, 0.0, 1.0, -2.0])
        y = np.sin(0.5 * X @ direction) + 0.05 * generator.normal(size=500)
        model = SketchedKernelRidge("gaussian", metric="full", random_state=0).fit(X, y)
        main = np.linalg.eigh(model.metric_)[1][:, -1]
        assert abs(main @ direction) / np.linalg.norm(direction) > 0.98

    def test_is_learned_by_default_where_it_helps(self) -> None:
        X, y = relevant(300)
        model = SketchedKernelRidge(random_state=0).fit(X, y)
        assert model.feature_importances_[:2].sum() > 0.9
        generator = np.random.default_rng(0)
        noise = SketchedKernelRidge(random_state=0).fit(X, generator.normal(size=300))
        assert "metric does not help" in str(noise.choice_)
        with pytest.raises(AttributeError, match="this fit has none: use metric="):
            _ = noise.feature_importances_
        assert not hasattr(noise, "metric_")

    def test_of_few_rows_is_not_learned(self) -> None:
        X, y = relevant(30)
        model = ridge(features="exact", metric="full", random_state=0).fit(X, y)
        assert "30 rows are too few to learn a metric from" in str(model.choice_)
        assert not hasattr(model, "metric_")

    def test_classifies(self) -> None:
        X, y = relevant(500)
        labels = np.digitize(y, [0.0, 1.0])
        model = SketchedKernelRidgeClassifier("gaussian", metric="diagonal", random_state=0)
        plain = SketchedKernelRidgeClassifier("gaussian", random_state=0)
        new, wanted = relevant(500, seed=1)
        expected = np.digitize(wanted, [0.0, 1.0])
        better = model.fit(X, labels).score(new, expected)
        assert better > plain.fit(X, labels).score(new, expected) + 0.05
        assert model.feature_importances_[:2].sum() > 0.9

    def test_takes_sparse_rows_and_float32(self) -> None:
        X, y = relevant(300)
        X = np.where(np.abs(X) > 0.5, X, 0.0)
        expected = ridge(features="exact", metric="diagonal", random_state=0).fit(X, y)
        sparse = ridge(features="exact", metric="diagonal", random_state=0).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(
            sparse.predict(sp.csr_array(X)), expected.predict(X), rtol=1e-4, atol=1e-4
        )
        single = ridge(features="exact", metric="full", random_state=0)
        assert single.fit(X.astype(np.float32), y).predict(X.astype(np.float32)).dtype == np.float32

    def test_goes_on_with_blocks(self) -> None:
        X, y = relevant(600)
        model = SketchedKernelRidge("gaussian", metric="diagonal", n_components=100, random_state=0)
        model.partial_fit(X[:400], y[:400])
        before = model.metric_.copy()
        model.partial_fit(X[400:], y[400:])
        np.testing.assert_array_equal(model.metric_, before)
        assert model.score(X, y) > 0.95


class TestLearnedMetric:
    @pytest.mark.parametrize("form", ["diagonal", "full"])
    def test_distances_are_those_of_the_metric(self, form: str) -> None:
        X, y = relevant()
        learned = LearnedMetric(form, random_state=0).fit(X, y)
        Z = learned.transform(X)
        assert learned.feature_importances_[:2].sum() > 0.9
        scaled = (X - np.median(X, axis=0)) / X.std(axis=0)
        differences = scaled[:50] - scaled[50:100]
        expected = np.einsum("ij,jk,ik->i", differences, learned.metric_, differences)
        found = np.sum((Z[:50] - Z[50:100]) ** 2, axis=1)
        np.testing.assert_allclose(found / expected, found[0] / expected[0], rtol=1e-8)

    def test_takes_labels(self) -> None:
        X, y = relevant()
        labels = np.where(y > 1.0, "large", "small")
        learned = LearnedMetric("diagonal", random_state=0).fit(X, labels)
        assert learned.feature_importances_[:2].sum() > 0.8

    def test_few_rows_leave_columns_as_they_are(self) -> None:
        X, y = relevant(30)
        with pytest.warns(UserWarning, match=r"30 rows are too few .*at least 40"):
            learned = LearnedMetric().fit(X, y)
        np.testing.assert_allclose(learned.feature_importances_, 1.0 / X.shape[1])

    def test_every_check_of_scikit_learn_passes(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the checks provoke warnings of their own
            results = check_estimator(LearnedMetric(), on_fail=None)
        failed = {r["check_name"]: r["exception"] for r in results if r["status"] != "passed"}
        assert failed == {}

    def test_same_seed_same_bits_and_pickles(self) -> None:
        X, y = relevant(200)
        first, second = (LearnedMetric(random_state=3).fit(X, y).transform(X) for _ in range(2))
        np.testing.assert_array_equal(first, second)
        learned = LearnedMetric(random_state=3).fit(X, y)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(learned)).transform(X), first)

    @pytest.mark.parametrize(
        "parameters", [{"metric": "cosine"}, {"scaling": "none"}, {"clip": -1.0}]
    )
    def test_refuses_other_parameters(self, parameters: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(parameters))):
            LearnedMetric(**parameters).fit(*relevant(50))


def test_many_columns_get_a_diagonal_metric_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = relevant(200, 8)
    monkeypatch.setattr("powersketch.kernel_ridge.choosing.model.MOST_FULL_COLUMNS", 5)
    model = SketchedKernelRidge(random_state=0).fit(X, y)
    assert "full" not in str(model.choice_)
    assert np.count_nonzero(model.metric_ - np.diag(model.metric_.diagonal())) == 0
    monkeypatch.setattr("powersketch.kernel_ridge.choosing.model.MOST_DIAGONAL_COLUMNS", 5)
    assert "metric" not in str(SketchedKernelRidge(random_state=0).fit(X, y).choice_)
    assert metric.MOST_DIAGONAL_COLUMNS == 4096


@pytest.mark.parametrize("kernel", ["auto", "linear"])
@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_a_metric_is_learned_where_a_line_is_best(kernel: str, form: str) -> None:
    X = np.random.default_rng(0).standard_normal((120, 5))
    y = X @ [3.0, 1.0, 0.0, 0.0, 0.0]
    model = SketchedKernelRidge(kernel, metric=form, random_state=0).fit(X, y)
    assert model.feature_importances_[0] > 0.7
    assert model.score(X, y) > 0.99
