"""What is chosen by default: lines for lines, curves for curves, and the same every time."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch import SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.exceptions import OutlierWarning
from powersketch.kernel_ridge.choosing.model import StraightLineWarning
from powersketch.kernels import Gaussian, Linear, NeuralTangent, Polynomial, WithLinear
from tests.kernel_ridge.ridge_data import Float64, digits, ridge, waves, weights


def line(rows: int = 300, seed: int = 0) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, 5))
    return X, X @ [1.0, -2.0, 0.5, 0.0, 0.0] + 0.5 * generator.normal(size=rows)


def curve(rows: int = 300, seed: int = 0) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (rows, 3))
    return X, np.sin(6.0 * X[:, 0]) + 0.1 * generator.normal(size=rows)


class TestChoice:
    def test_is_a_line_for_linear_data(self) -> None:
        X, y = line()
        model = SketchedKernelRidge(random_state=0).fit(X, y)
        assert isinstance(model.kernel_, Linear)
        assert model.choice_.name == "columns"
        assert model.coef_.shape == (5,)
        assert "linear model" in str(model.choice_)
        new, wanted = line(seed=1)
        plain = ridge("linear", alpha="loo").fit(X, y)
        assert model.score(new, wanted) > plain.score(new, wanted) - 0.01

    def test_beats_a_line_for_a_curve(self) -> None:
        X, y = curve()
        model = SketchedKernelRidge(random_state=0).fit(X, y)
        assert not isinstance(model.kernel_, Linear)
        new, wanted = curve(seed=1)
        assert model.score(new, wanted) > 0.95
        assert ridge("linear", alpha="loo").fit(X, y).score(new, wanted) < 0.5

    def test_is_not_worse_than_a_gaussian_kernel_with_gamma_scale(self) -> None:
        for data in (line, curve, waves):
            X, y = data(400)
            new, wanted = data(400, seed=1)
            chosen = SketchedKernelRidge(random_state=0).fit(X, y).score(new, wanted)
            gaussian = ridge("gaussian", features="exact", alpha="loo")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", StraightLineWarning)
                gaussian.fit(X, y)
            assert chosen > gaussian.score(new, wanted) - 0.01

    def test_a_given_kernel_that_a_line_beats_is_named(self) -> None:
        model = ridge("gaussian", features="exact", alpha="loo")
        with pytest.warns(StraightLineWarning, match="a straight line predicts better") as caught:
            model.fit(*line(400))
        assert caught[0].filename == __file__
        model.fit(*curve())  # and nothing is said here

    def test_finds_interactions(self) -> None:
        generator = np.random.default_rng(0)
        X = generator.normal(size=(600, 8))
        y = X[:, 0] * X[:, 1] + 0.1 * generator.normal(size=600)
        model = SketchedKernelRidge(metric=None, random_state=0).fit(X[:400], y[:400])
        assert model.score(X[400:], y[400:]) > 0.95
        assert "polynomial kernel of degree 2" in str(model.choice_)

    def test_of_scales_does_not_depend_on_units(self) -> None:
        X, y = curve()
        units = np.array([1e-6, 1e3, 1.0])
        model = SketchedKernelRidge(scaling="scaled", random_state=0)
        expected = model.fit(X, y).predict(X)
        np.testing.assert_allclose(model.fit(X * units, y).predict(X * units), expected, rtol=1e-5)

    def test_sees_categories_in_whole_numbers(self) -> None:
        generator = np.random.default_rng(0)
        kinds = generator.integers(0, 12, 500)
        X = np.column_stack((kinds, generator.normal(size=500)))
        y = generator.normal(size=12)[kinds] * 3.0 + X[:, 1] + 0.1 * generator.normal(size=500)
        model = SketchedKernelRidge(random_state=0).fit(X[:300], y[:300])
        assert "indicators" in str(model.choice_)
        assert model.score(X[300:], y[300:]) > 0.97

    def test_takes_a_kernel_that_is_less_smooth_in_a_metric(self) -> None:
        generator = np.random.default_rng(0)
        X = generator.normal(size=(700, 10))
        y = np.floor(2.0 * X[:, 0]) + np.sign(X[:, 1]) + 0.05 * generator.normal(size=700)
        model = SketchedKernelRidge(random_state=0).fit(X[:500], y[:500])
        assert isinstance(model.kernel_, NeuralTangent)
        assert "In this metric the leave-one-out error is 0.0" in str(model.choice_)
        smooth = SketchedKernelRidge(
            Gaussian("auto"), metric="diagonal", scaling="scaled", random_state=0
        ).fit(X[:500], y[:500])
        assert isinstance(smooth.kernel_, Gaussian)  # one that was given stays
        assert "In this metric" not in str(smooth.choice_)
        errors = [1.0 - each.score(X[500:], y[500:]) for each in (model, smooth)]
        assert errors[0] < 0.8 * errors[1]

    def test_takes_skewed_columns_by_rank(self) -> None:
        generator = np.random.default_rng(0)
        logarithms = 2.0 * generator.normal(size=(600, 3))
        y = np.sin(logarithms[:, 0]) + logarithms[:, 1] + 0.1 * generator.normal(size=600)
        X = np.exp(logarithms)
        model = SketchedKernelRidge(random_state=0).fit(X[:400], y[:400])
        assert "skewed ones by rank" in str(model.choice_)
        spread = SketchedKernelRidge(scaling="scaled", random_state=0).fit(X[:400], y[:400])
        assert model.score(X[400:], y[400:]) > max(0.97, spread.score(X[400:], y[400:]))

    def test_of_a_linear_part_helps_beyond_the_data(self) -> None:
        generator = np.random.default_rng(0)
        X = generator.uniform(-1.0, 1.0, (300, 2))
        y = 3.0 * X[:, 0] + np.sin(5.0 * X[:, 1]) + 0.05 * generator.normal(size=300)
        model = ridge(Gaussian(2.0), features="exact", linear=True, alpha="loo").fit(X, y)
        assert isinstance(model.kernel_, WithLinear)
        far = np.array([[2.0, 0.0], [-2.0, 0.0]])
        plain = ridge(Gaussian(2.0), features="exact", alpha="loo").fit(X, y)
        errors = [np.abs(m.predict(far) - [6.0, -6.0]).max() for m in (model, plain)]
        assert errors[0] < 0.5 * errors[1]
        for kind in ("landmarks", "sketch"):
            features = ridge(Gaussian(2.0), features=kind, linear=True, alpha=1e-3, random_state=0)
            exact = ridge(Gaussian(2.0), features="exact", linear=True, alpha=1e-3, random_state=0)
            expected = exact.fit(X, y).predict(X)
            np.testing.assert_allclose(features.fit(X, y).predict(X), expected, atol=0.05)

    def test_says_what_was_tried(self) -> None:
        model = SketchedKernelRidge(random_state=0).fit(*curve())
        text = str(model.choice_)
        assert "models were tried on 300 rows: the leave-one-out error" in text
        assert "linear model" in text
        assert "exact kernel: 300 rows are few enough for it." in text
        assert model.choice_.model
        given = ridge(features="auto", random_state=0).fit(*curve())
        assert given.choice_.model == ()


class TestRepeatability:
    @pytest.mark.parametrize("data", [line, curve])
    def test_the_same_seed_gives_the_same_choice_for_any_number_of_threads(self, data: Any) -> None:
        X, y = data()
        one, two = (SketchedKernelRidge(random_state=7, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
        assert one.choice_.model == two.choice_.model
        assert one.kernel_ == two.kernel_
        np.testing.assert_array_equal(one.predict(X), two.predict(X))
        again = SketchedKernelRidge(random_state=one.seed_).fit(X, y)
        np.testing.assert_array_equal(again.predict(X), one.predict(X))

    @pytest.mark.parametrize("data", [line, curve])
    def test_pickles_predict_the_same(self, data: Any) -> None:
        X, y = data()
        model = SketchedKernelRidge(random_state=0).fit(X, y)
        loaded = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert str(loaded.choice_) == str(model.choice_)
        labelled = SketchedKernelRidgeClassifier(random_state=0).fit(X, y > 0.0)
        loaded = pickle.loads(pickle.dumps(labelled))
        np.testing.assert_array_equal(loaded.predict_proba(X), labelled.predict_proba(X))

    def test_containers_and_dtypes_agree(self) -> None:
        X, y = curve()
        expected = SketchedKernelRidge(random_state=0).fit(X, y).predict(X)
        same = SketchedKernelRidge(random_state=0).fit(np.asfortranarray(X), y)
        np.testing.assert_allclose(same.predict(X), expected, rtol=1e-9, atol=1e-9)
        single = SketchedKernelRidge(random_state=0).fit(X.astype(np.float32), y)
        assert single.predict(X.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(single.predict(X.astype(np.float32)), expected, atol=0.02)

    def test_sparse_rows_are_taken(self) -> None:
        X, y = digits(300)
        model = SketchedKernelRidgeClassifier(random_state=0).fit(sp.csr_array(X[:200]), y[:200])
        assert model.score(sp.csr_array(X[200:]), y[200:]) > 0.8


class TestErrorsOfTheData:
    @pytest.mark.parametrize("data", [line, curve])
    def test_one_row_of_training_does_no_harm(self, data: Any) -> None:
        X, y = data()
        new, wanted = data(500, seed=1)
        expected = SketchedKernelRidge(random_state=0).fit(X, y).score(new, wanted)
        for spoilt in (np.full(X.shape[1], 1e20), np.append(1e20, X[7, 1:])):
            changed = X.copy()
            changed[7] = spoilt
            with pytest.warns(OutlierWarning, match=r"row 7 \("):
                model = SketchedKernelRidge(random_state=0).fit(changed, y)
            assert model.score(new, wanted) == pytest.approx(expected, abs=0.01)

    @pytest.mark.parametrize("data", [line, curve])
    def test_one_percent_of_new_rows_leave_the_others_as_they_are(self, data: Any) -> None:
        X, y = data()
        new, wanted = data(500, seed=1)
        model = SketchedKernelRidge(random_state=0).fit(X, y)
        spoilt = new.copy()
        spoilt[::100, 1] = 1e20
        others = np.arange(500) % 100 != 0
        np.testing.assert_allclose(
            model.predict(spoilt)[others], model.predict(new)[others], rtol=1e-9, atol=1e-9
        )
        assert model.score(spoilt, wanted) > model.score(new, wanted) - 0.05
        assert np.ptp(model.predict(spoilt)) <= 1.5 * np.ptp(y) + 1e-9

    @pytest.mark.parametrize("value", [1e20, -9999.0])
    def test_a_classifier_does_not_mind_either(self, value: float) -> None:
        X, y = curve()
        new, wanted = curve(500, seed=1)
        model = SketchedKernelRidgeClassifier(random_state=0)
        expected = model.fit(X, y > 0.0).score(new, wanted > 0.0)
        spoilt = X.copy()
        spoilt[3, 0] = value
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OutlierWarning)
            model.fit(spoilt, y > 0.0)
        assert model.score(new, wanted > 0.0) > expected - 0.02


class TestSmallAndDegenerate:
    @pytest.mark.parametrize("rows", [2, 3, 9])
    def test_few_rows_get_a_default_and_a_warning(self, rows: int) -> None:
        X, y = curve(rows)
        with pytest.warns(UserWarning, match=f"{rows} rows are too few to choose") as caught:
            model = SketchedKernelRidge(random_state=0).fit(X, y)
        assert caught[0].filename == __file__
        assert isinstance(model.kernel_, Gaussian)
        assert np.isfinite(model.predict(X)).all()

    def test_one_row_is_refused(self) -> None:
        with (
            pytest.warns(UserWarning, match="1 row is too few"),
            pytest.raises(ValueError, match="needs at least 2 rows of positive weight, got 1"),
        ):
            SketchedKernelRidge().fit([[1.0, 2.0]], [3.0])

    def test_targets_that_are_not_finite_are_refused(self) -> None:
        X, y = curve(50)
        y[3] = np.nan
        with pytest.raises(ValueError, match="Input y contains NaN"):
            SketchedKernelRidge().fit(X, y)
        for labels in (y, np.where(np.isnan(y), y, y > 0.0)):
            with pytest.raises(ValueError, match="Input y contains NaN"):
                SketchedKernelRidgeClassifier().fit(X, labels)

    def test_one_class_is_refused(self) -> None:
        X, _ = curve(50)
        with pytest.raises(ValueError, match="at least 2 classes, got 1 class"):
            SketchedKernelRidgeClassifier().fit(X, np.ones(50))

    @pytest.mark.parametrize("rows", [20, 100])
    def test_a_constant_target_is_predicted(self, rows: int) -> None:
        X, _ = curve(rows)
        with pytest.warns(UserWarning, match="y has the same value in every row"):
            model = SketchedKernelRidge(random_state=0).fit(X, np.full(rows, 4.0))
        np.testing.assert_allclose(model.predict(10.0 * X), 4.0, rtol=1e-9)

    @pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
    @pytest.mark.parametrize("rows", [20, 100])
    def test_constant_columns_give_the_mean(self, rows: int, container: Any) -> None:
        y = curve(rows)[1]
        X, ones = container(np.full((rows, 3), 7.0)), container(np.ones((rows, 3)))
        with pytest.warns(UserWarning, match="every column of X has the same value"):
            model = SketchedKernelRidge(random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict(container(X[:4])), y.mean(), rtol=1e-6)
        with pytest.warns(UserWarning, match="give columns that vary"):
            labels = SketchedKernelRidgeClassifier(random_state=0).fit(ones, y > 0.0)
        np.testing.assert_allclose(
            labels.predict_proba(np.ones((4, 3)))[:, 1], np.mean(y > 0.0), atol=0.1
        )

    def test_a_constant_column_changes_nothing(self) -> None:
        X, y = curve()
        wider = np.column_stack((X, np.full(300, 1e6 / 3.0)))
        plain = SketchedKernelRidge(random_state=0).fit(X, y)
        with_constant = SketchedKernelRidge(random_state=0).fit(wider, y)
        np.testing.assert_allclose(with_constant.predict(wider), plain.predict(X), atol=1e-6)

    def test_honest_extremes_of_an_exact_relation_are_not_clipped(self) -> None:
        random = np.random.default_rng(0)
        X = random.exponential(size=(600, 4))
        X[random.permutation(600)[:8], 1] *= 40.0
        y = X @ [1.0, 2.0, -1.0, 0.5]
        model = SketchedKernelRidge(random_state=0).fit(X[:500], y[:500])
        assert model.score(X[500:], y[500:]) > 0.9999
        assert "linear model" in str(model.choice_)
        beyond = 5.0 * X.max(axis=0, keepdims=True)  # an exact relation holds there, too
        np.testing.assert_allclose(model.predict(beyond), beyond @ [1.0, 2.0, -1.0, 0.5], rtol=1e-4)

    @pytest.mark.parametrize("scaling", ["scaled", "indicators", "ranks"])
    def test_a_scaling_that_has_nothing_to_do_is_as_it_is(self, scaling: str) -> None:
        X, y = curve(100)
        for rows in (sp.csr_array(X), X):
            model = SketchedKernelRidge(scaling=scaling, random_state=0).fit(rows, y)
            assert model.score(rows, y) > 0.9

    def test_weights_are_taken(self) -> None:
        X, y = curve()
        w = weights(300)
        w[::3] = 0.0
        model = SketchedKernelRidge(random_state=0).fit(X, y, w)
        kept = w > 0.0
        expected = SketchedKernelRidge(random_state=0).fit(X[kept], y[kept], w[kept])
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))


class TestGamma:
    @pytest.mark.parametrize("kind", ["exact", "sketch", "landmarks", "auto"])
    def test_is_searched_for(self, kind: str) -> None:
        X, y = waves()
        new, wanted = waves(seed=1)
        model = SketchedKernelRidge(
            "gaussian", kernel_params={"gamma": "auto"}, features=kind, random_state=0
        ).fit(X, y)
        assert isinstance(model.kernel_.gamma, float)
        assert model.score(new, wanted) > 0.95
        object_ = SketchedKernelRidge(Gaussian("auto"), features=kind, random_state=0).fit(X, y)
        np.testing.assert_array_equal(object_.predict(X), model.predict(X))

    def test_follows_the_data(self) -> None:
        gammas = []
        for frequency in (2.0, 40.0):
            X = np.random.default_rng(0).uniform(-1.0, 1.0, (300, 1))
            y = np.sin(frequency * X[:, 0])
            y = y + 0.1 * np.random.default_rng(1).normal(size=300)
            model = ridge(Gaussian("auto"), features="exact", random_state=0)
            gammas.append(model.fit(X, y).kernel_.gamma)
        assert gammas[1] > 2.0 * gammas[0]

    def test_of_a_polynomial_is_searched_for(self) -> None:
        X, y = curve()
        parameters = {"degree": 5, "gamma": "auto", "coef0": 1.0}
        model = SketchedKernelRidge("polynomial", kernel_params=parameters, random_state=0)
        model.fit(X, y)
        assert model.kernel_.degree == 5
        assert model.kernel_.gamma > 0.0
        assert model.score(*curve(seed=1)) > 0.9

    def test_can_be_searched_for_by_a_classifier(self) -> None:
        X, y = curve()
        model = SketchedKernelRidgeClassifier(Polynomial(3, "auto", 1.0), random_state=0)
        assert model.fit(X, y > 0.0).score(X, y > 0.0) > 0.8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "cosine"}, "metric='cosine' is unknown"),
        ({"scaling": "standard"}, "scaling='standard' is unknown"),
        ({"linear": "yes"}, "linear='yes'"),
        ({"clip": "hard"}, "clip='hard' is unknown"),
        ({"clip": -2.0}, "clip=-2.0 is out of range"),
        ({"kernel_params": {"gamma": 1.0}}, "kernel_params=.* has no effect with kernel='auto'"),
    ],
)
def test_other_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SketchedKernelRidge(**parameters).fit(*curve(50))


@pytest.mark.parametrize("name", ["metric", "linear", "scaling", "clip"])
def test_with_a_given_kernel_auto_does_nothing(name: str) -> None:
    X, y = curve(100)
    off = False if name == "linear" else None
    found, expected = (
        ridge(Gaussian(2.0), features="exact", alpha="loo", **{name: value}).fit(X, y).predict(X)
        for value in ("auto", off)
    )
    np.testing.assert_array_equal(found, expected)


def test_predictions_stay_near_the_range_of_the_targets_of_all_blocks() -> None:
    X, y = line()
    model = SketchedKernelRidge(random_state=0).partial_fit(X, y)
    far = np.array([[100.0, 0.0, 0.0, 0.0, 0.0], [-100.0, 0.0, 0.0, 0.0, 0.0]])
    assert np.abs(model.predict(far)).max() <= np.abs(y).max() + 0.25 * np.ptp(y)
    model.partial_fit(X, y + 100.0)
    later = SketchedKernelRidge(random_state=0).fit(np.vstack((X, X)), np.append(y, y + 100.0))
    np.testing.assert_allclose(model.predict(X), later.predict(X), atol=1.0)
    assert model.predict(X).mean() > 40.0


def test_a_given_gamma_stays_beside_a_linear_part() -> None:
    X = np.random.default_rng(0).normal(size=(1600, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1]
    model = SketchedKernelRidge(Gaussian(0.05), linear=True, random_state=0).fit(X, y)
    assert model.kernel_.kernel.gamma == 0.05
