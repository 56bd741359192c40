"""SketchedKernelRidgeClassifier regresses on ±1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss

from powersketch import GaussianSketch, SketchedKernelRidgeClassifier
from tests.kernel_ridge.ridge_data import classifier, digits, weights

SKETCH = GaussianSketch("scale", n_components=60)


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 1: 0.5}])
    @pytest.mark.parametrize("classes", [2, 10])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_is_its_ridge_classifier_on_the_features(
        self, class_weight: Any, classes: int, weighted: bool
    ) -> None:
        X, y = digits(1000)
        X, y = X[y < classes], y[y < classes]
        w = weights(len(y)) if weighted else None
        model = classifier(features=SKETCH, class_weight=class_weight, random_state=0)
        model.fit(X, y, w)
        Z = model.feature_map_.transform(X)
        peer = RidgeClassifier(class_weight=class_weight).fit(Z, y, w)
        assert model.coef_.shape == (1 if classes == 2 else classes, 60)
        np.testing.assert_allclose(
            model.decision_function(X), peer.decision_function(Z), rtol=0, atol=1e-8
        )
        np.testing.assert_array_equal(model.predict(X), peer.predict(Z))

    def test_leave_one_out_gives_a_good_classifier(self) -> None:
        X, y = digits(1500)
        model = classifier(alpha="loo", n_components=300, random_state=0)
        assert model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.94


class TestLabels:
    def test_may_be_text(self) -> None:
        X, y = digits(300)
        names = np.array([f"digit {label}" for label in y])
        model = classifier(random_state=0).fit(X, names)
        numbers = classifier(random_state=0).fit(X, y)
        assert set(model.predict(X)) <= set(names)
        assert model.score(X, names) == numbers.score(X, y)

    def test_of_rows_without_weight_do_not_exist(self) -> None:
        X, y = digits(300)
        w = np.where(y == 9, 0.0, 1.0)
        model = classifier(random_state=0).fit(X, y, w)
        np.testing.assert_array_equal(model.classes_, np.arange(9))
        without = classifier(random_state=0).fit(X[y < 9], y[y < 9])
        np.testing.assert_allclose(model.decision_function(X), without.decision_function(X))

    def test_of_one_class_are_refused(self) -> None:
        X, y = digits(300)
        with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class: \[3\]"):
            classifier().fit(X, np.full(300, 3))
        with pytest.raises(ValueError, match=r"at least 2 classes, got 1 class"):
            classifier().fit(X, y, np.where(y == 3, 1.0, 0.0))

    def test_that_are_real_numbers_are_refused(self) -> None:
        with pytest.raises(ValueError, match="Unknown label type"):
            classifier().fit(*[a / 3.0 for a in digits(100)])

    def test_must_be_as_many_as_rows(self) -> None:
        X, y = digits(100)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            classifier().fit(X, y[1:])
        with pytest.raises(ValueError, match="requires y to be passed"):
            classifier().fit(X, None)


class TestPartialFit:
    def test_equals_one_fit_with_the_same_map(self) -> None:
        X, y = digits(600)
        streamed = classifier(features=SKETCH, random_state=0)
        for start in range(0, 600, 150):
            part = slice(start, start + 150)
            streamed.partial_fit(X[part], y[part], classes=np.arange(10))
        peer = RidgeClassifier().fit(streamed.feature_map_.transform(X), y)
        np.testing.assert_allclose(streamed.coef_, peer.coef_, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(streamed.classes_, np.arange(10))

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    def test_a_block_may_hold_one_class(self) -> None:
        X, y = digits(600)
        # The map is that of the first class, and has to suit the others.
        everywhere = GaussianSketch("scale", n_components=200, method="fourier")
        model = classifier(features=everywhere, random_state=0)
        order = np.argsort(y, kind="stable")
        for part in np.array_split(order, 20):
            model.partial_fit(X[part], y[part], classes=range(10))
        assert model.score(X, y) > 0.8

    def test_names_what_is_wrong(self) -> None:
        X, y = digits(100)
        with pytest.raises(ValueError, match="classes=None in the first call of partial_fit"):
            classifier().partial_fit(X, y)
        with pytest.raises(ValueError, match="at least 2 classes"):
            classifier().partial_fit(X, y, classes=[1])
        with pytest.raises(ValueError, match=r"labels \[9\], which are not among the classes"):
            classifier().partial_fit(X, y, classes=range(9))
        with pytest.raises(ValueError, match="class_weight='balanced' needs all rows"):
            classifier(class_weight="balanced").partial_fit(X, y, range(10))
        model = classifier(random_state=0).partial_fit(X, y, range(10))
        with pytest.raises(ValueError, match="differ from those of the first call"):
            model.partial_fit(X, y, classes=range(11))


class TestClassWeight:
    def test_of_some_classes_leaves_the_others_at_one(self) -> None:
        X, y = digits(120)
        y = y % 2
        given = classifier(class_weight={1: 5.0}, random_state=0)
        given.partial_fit(X, y, classes=[0, 1])
        given.partial_fit(X[y == 0], y[y == 0])
        other = classifier(random_state=0)
        other.partial_fit(X, y, classes=[0, 1], sample_weight=np.where(y == 1, 5.0, 1.0))
        other.partial_fit(X[y == 0], y[y == 0])
        np.testing.assert_allclose(given.decision_function(X), other.decision_function(X))

    @pytest.mark.parametrize("factor", [-1.0, np.nan, np.inf])
    def test_out_of_range_is_refused(self, factor: float) -> None:
        X, y = digits(120)
        model = classifier(class_weight={0: factor})
        with pytest.raises(ValueError, match=r"class_weight={0: .*} is out of range; allowed are"):
            model.fit(X, y % 2)

    def test_balanced_counts_rows_of_positive_weight(self) -> None:
        X, y = digits(120)
        w = np.ones(120)
        w[:50] = 0.0
        options = {"class_weight": "balanced", "random_state": 0}
        weighted = classifier(**options).fit(X, y, w)
        fewer = classifier(**options).fit(X[50:], y[50:])
        np.testing.assert_allclose(weighted.decision_function(X), fewer.decision_function(X))


def overlapping(rows: int, classes: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    """Return rows, labels drawn from known probabilities, and these."""
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1.0, 1.0, (rows, 2))
    slopes = 2.0 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])[:classes]
    shares = softmax(X @ slopes.T, axis=1)
    labels = (shares.cumsum(axis=1) < generator.uniform(size=(rows, 1))).sum(axis=1)
    return X, labels, shares


class TestProbabilities:
    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"kernel": "gaussian", "features": "sketch", "n_components": 60, "alpha": 1.0},
            {"kernel": "gaussian", "features": "landmarks", "n_components": 60, "alpha": "gcv"},
            {"kernel": "gaussian", "features": "exact"},
        ],
    )
    def test_sum_to_one_and_agree_with_labels(
        self, classes: int, parameters: dict[str, Any]
    ) -> None:
        X, labels, _ = overlapping(400, classes)
        names = np.array(["a", "b", "c"])[labels]
        model = SketchedKernelRidgeClassifier(random_state=0, **parameters).fit(X, names)
        likely = model.predict_proba(X)
        assert likely.shape == (400, classes)
        assert (likely >= 0.0).all()
        np.testing.assert_allclose(likely.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_array_equal(model.classes_[likely.argmax(axis=1)], model.predict(X))

    @pytest.mark.parametrize("classes", [2, 3])
    def test_are_better_than_a_softmax_of_predictions(self, classes: int) -> None:
        """And near the best possible: the entropy of the labels, which nobody can beat."""
        X, labels, _ = overlapping(600, classes)
        new, wanted, shares = overlapping(4000, classes, seed=1)
        model = SketchedKernelRidgeClassifier(random_state=0).fit(X, labels)
        scores = model.decision_function(new)
        scores = np.column_stack((-scores, scores)) if classes == 2 else scores
        found = log_loss(wanted, model.predict_proba(new))
        best = log_loss(wanted, shares)
        assert found < log_loss(wanted, softmax(scores, axis=1))
        assert found < best + 0.03

    def test_are_sharp_where_classes_are_apart(self) -> None:
        X, y = digits(1000)
        model = SketchedKernelRidgeClassifier("gaussian", random_state=0).fit(X[:700], y[:700])
        likely = model.predict_proba(X[700:])
        assert log_loss(y[700:], likely) < 0.35
        assert np.median(likely.max(axis=1)) > 0.9

    def test_follow_the_frequencies(self) -> None:
        """Of rows with a predicted probability of about p, the share p is of that class."""
        X, labels, _ = overlapping(800, 2)
        new, wanted, _ = overlapping(8000, 2, seed=1)
        model = SketchedKernelRidgeClassifier(random_state=0).fit(X, labels)
        likely = model.predict_proba(new)[:, 1]
        for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
            inside = (likely >= low) & (likely < high)
            assert wanted[inside].mean() == pytest.approx(likely[inside].mean(), abs=0.06)

    def test_of_float32_rows_are_float32(self) -> None:
        X, labels, _ = overlapping(200)
        model = classifier(n_components=60, random_state=0).fit(X, labels)
        single = model.predict_proba(X.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, model.predict_proba(X), atol=1e-3)

    def test_follow_further_blocks(self) -> None:
        X, labels, _ = overlapping(600)
        streamed = classifier(n_components=60, random_state=0)
        streamed.partial_fit(X[:300], labels[:300], classes=range(3))
        before = streamed.predict_proba(X)
        streamed.partial_fit(X[300:], labels[300:])
        assert not np.allclose(streamed.predict_proba(X), before)

    def test_need_rows_left_out(self) -> None:
        X, labels, _ = overlapping(200)
        model = classifier(features="exact", alpha="loo").fit(X, labels)
        model.predict_proba(X)
        model.set_params(alpha=1.0).fit(X, labels)  # nothing of the last fit is left
        with pytest.raises(ValueError, match=r"probabilities need .*alpha=1.0 has not: use alpha="):
            model.predict_proba(X)

    def test_of_weighted_classes_are_theirs(self) -> None:
        X, labels, _ = overlapping(600, 2)
        plain = SketchedKernelRidgeClassifier("gaussian", random_state=0).fit(X, labels)
        heavy = SketchedKernelRidgeClassifier(
            "gaussian", class_weight={0: 1.0, 1: 5.0}, random_state=0
        ).fit(X, labels)
        assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.1


class TestGoingOn:
    def test_partial_fit_knows_the_classes_of_a_fit_with_the_exact_kernel(self) -> None:
        X, y = digits(300)
        model = SketchedKernelRidgeClassifier("gaussian", random_state=0).fit(X[:200], y[:200])
        assert model.choice_.name == "exact"
        model.partial_fit(X[200:], y[200:])
        assert model.statistics_.count == 300
        assert model.score(X, y) > 0.9
        with pytest.raises(ValueError, match="differ from those of the first call"):
            model.partial_fit(X, y, classes=range(11))
