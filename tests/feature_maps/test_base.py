"""What all feature maps have in common beyond scikit-learn's interface."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch import DotProductSketch, GaussianSketch, PolynomialSketch
from powersketch.feature_maps import FeatureMap
from powersketch.powers import POWER_METHODS
from tests.feature_maps.cases import (
    FLOATS,
    Case,
    assert_same_bits,
    each_estimator,
    each_float,
    each_kind,
    error_of,
    uncentred,
    unit_rows,
)

POWERS = [name for name in POWER_METHODS if name != "power"]
each_power_method = pytest.mark.parametrize("power_method", ["squaring", *POWERS])


class TestTransformInto:
    @each_kind
    @each_float
    def test_writes_what_transform_returns(self, case: Case, dtype: Any) -> None:
        X, Z = case.rows(dtype=dtype), case.features(dtype=dtype)
        out = np.full(Z.shape, np.nan, dtype=dtype)
        assert case.fitted(dtype=dtype).transform_into(X, out) is out
        assert_same_bits(out, Z)

    def test_takes_sparse_rows(self) -> None:
        X = sp.csr_array(uncentred(20, 30))
        sketch = PolynomialSketch(3, random_state=0).fit(X)
        out = sketch.transform_into(X, np.empty((20, 100)))
        assert_same_bits(out, sketch.transform(X))

    @pytest.mark.parametrize(
        ("out", "error"),
        [
            ([[0.0] * 100] * 20, TypeError),
            (np.empty((20, 99)), ValueError),
            (np.empty((19, 100)), ValueError),
            (np.empty((20, 100), dtype=np.float32), ValueError),
            (np.empty((20, 100), order="F"), ValueError),
            (np.empty((20, 200))[:, ::2], ValueError),
            (np.broadcast_to(0.0, (20, 100)), ValueError),
        ],
    )
    def test_refuses_what_cannot_hold_the_features(self, out: Any, error: type[Exception]) -> None:
        X = uncentred(20, 30)
        sketch = PolynomialSketch(3, random_state=0).fit(X)
        with pytest.raises(error, match=r"out .*numpy.empty\(\(20, 100\), dtype='float64'\)"):
            sketch.transform_into(X, out)


class TestMethods:
    @each_estimator
    @each_power_method
    def test_every_way_to_sketch_powers(
        self, estimator: type[FeatureMap], power_method: str
    ) -> None:
        options: dict[str, Any] = {"method": "power", "power_method": power_method}
        if estimator is PolynomialSketch:
            options = {} if power_method == "squaring" else {"method": power_method}
        if estimator is GaussianSketch:
            options["gamma"] = 0.1
        X = unit_rows(uncentred(60, 20))
        sketch = estimator(n_components=400, random_state=0, **options)
        assert error_of(sketch, X) < 0.05
        assert sketch.method_ == ("exact" if estimator is PolynomialSketch else "power")

    def test_method_of_a_polynomial_sketch(self) -> None:
        X = uncentred(60, 40)
        for method in (*POWER_METHODS, "adaptive"):
            sketch = PolynomialSketch(3, method=method, random_state=0).fit(X)
            assert sketch.method_ == method

    @pytest.mark.parametrize("method", ["auto", "single_power"])
    def test_all_powers_of_a_gaussian_sketch_are_taken_alike(self, method: str) -> None:
        X = 0.3 * uncentred(60, 20)
        features = [
            GaussianSketch(method=method, power_method=name, random_state=0).fit_transform(X)
            for name in ("squaring", "tree")
        ]
        assert not np.array_equal(*features)


class TestCompression:
    @each_estimator
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_every_map_can_be_compressed(self, estimator: type[FeatureMap], dtype: Any) -> None:
        X = unit_rows(uncentred(300, 20)).astype(dtype)
        options = {"n_components": 50, "random_state": 0}
        if estimator is PolynomialSketch:
            options["degree"] = 4
        plain = error_of(estimator(**options), X)
        sketch = estimator(compress_from=400, **options)
        assert error_of(sketch, X) < plain
        assert sketch.transform(X[:3]).shape == (3, 50)


class TestGamma:
    @pytest.mark.parametrize("estimator", [GaussianSketch, PolynomialSketch, DotProductSketch])
    @pytest.mark.parametrize("gamma", ["scale", "median"])
    def test_is_that_of_the_kernel(self, estimator: type[FeatureMap], gamma: str) -> None:
        X = uncentred(40, 6)
        sketch = estimator(gamma=gamma, random_state=0).fit(X)
        assert sketch.gamma_ == sketch.kernel_.gamma
        assert sketch.gamma_ == sketch._exact_kernel().resolve(X).gamma


@each_kind
def test_what_a_transform_prepares_is_not_pickled(case: Case) -> None:
    """Compiled chains are cached for the next call; in pickles, a few numbers are all there is."""
    X = case.rows(20)
    sketch = case.sketch().fit(X)
    before = pickle.dumps(sketch)
    Z = sketch.transform(X)
    after = pickle.dumps(sketch)
    assert len(after) < len(before) + 500
    assert_same_bits(pickle.loads(after).transform(X), Z)
