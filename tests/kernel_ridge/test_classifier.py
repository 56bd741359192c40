"""SketchedKernelRidgeClassifier regresses on ±1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from powersketch import GaussianSketch
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
