"""PolynomialSketch behaves as scikit-learn expects of a transformer."""

from __future__ import annotations

import inspect
import os
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from powersketch import PolynomialSketch
from tests.feature_maps.maps import (
    CASES,
    Case,
    assert_same_bits,
    digit_labels,
    digits,
    each_case,
    each_float,
    uncentred,
)

DEFAULTS = {
    "degree": 2,
    "gamma": 1.0,
    "coef0": 0,
    "n_components": 100,
    "method": "power",
    "base_sketch": "auto",
    "expansion": "auto",
    "norm_preserving": True,
    "internal_components": None,
    "random_state": None,
    "n_jobs": None,
    "verbose": 0,
}
# Few components where a map other than the exact one is meant: the checks use few columns.
CHECKED = [
    {},
    {"expansion": "none", "n_components": 2},
    {"expansion": "mean", "n_components": 5, "degree": 3},
    {"norm_preserving": False},
    {"norm_preserving": False, "expansion": "mean", "coef0": 0.5},
    {"base_sketch": "osnap", "n_components": 2},
    {"base_sketch": "gaussian", "n_components": 1},
    {"coef0": 1.0},
    {"coef0": 1.0, "n_components": 7, "degree": 6},
    {"gamma": "scale"},
    {"degree": 1, "n_components": 1, "n_jobs": 2},
]


class TestScikitLearnsOwnChecks:
    @pytest.mark.parametrize("parameters", CHECKED, ids=str)
    def test_every_check_passes_and_none_is_skipped(self, parameters: dict[str, Any]) -> None:
        array_api = os.environ.get("SCIPY_ARRAY_API")
        assert array_api == "1", "set SCIPY_ARRAY_API=1, or scikit-learn leaves out a check"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the checks provoke warnings of their own
            results = check_estimator(PolynomialSketch(**parameters), on_fail=None)
        assert {r["check_name"]: r["exception"] for r in results if r["status"] != "passed"} == {}
        assert len(results) >= 40  # 47 in scikit-learn 1.9


class TestParameters:
    def test_signature_and_defaults_are_the_documented_ones(self) -> None:
        signature = inspect.signature(PolynomialSketch).parameters
        assert {name: p.default for name, p in signature.items()} == DEFAULTS
        keyword_only = [n for n, p in signature.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
        assert keyword_only == list(DEFAULTS)[1:]

    def test_docstring_names_every_parameter_and_default(self) -> None:
        text = inspect.getdoc(PolynomialSketch)
        assert text is not None
        for name, default in DEFAULTS.items():
            (line,) = [x for x in text.splitlines() if x.startswith(f"{name} : ")]
            shown = f'"{default}"' if isinstance(default, str) else str(default)
            assert line.endswith(f"default={shown}")

    def test_constructor_stores_what_it_is_given(self) -> None:
        nonsense = {name: object() for name in DEFAULTS}
        assert PolynomialSketch(**nonsense).get_params() == nonsense

    def test_set_params_takes_effect_on_the_next_fit(self) -> None:
        X = uncentred(20, 6)
        sketch = PolynomialSketch(random_state=0).fit(X)
        sketch.set_params(degree=3, n_components=7)
        assert sketch.transform(X).shape == (20, 100)
        assert sketch.fit_transform(X).shape == (20, 7)
        assert sketch.kernel_.degree == 3

    @pytest.mark.parametrize("name", DEFAULTS)
    def test_fit_leaves_parameters_alone(self, name: str) -> None:
        value = {"gamma": "scale", "n_components": np.int64(9)}.get(name, DEFAULTS[name])
        sketch = PolynomialSketch(**{name: value}).fit(uncentred(20, 6))
        assert getattr(sketch, name) is value

    @each_case
    def test_clone_gives_the_same_sketch(self, case: Case) -> None:
        X, sketch = case.rows(), case.sketch()
        Z = sketch.fit_transform(X)
        copy = clone(sketch)
        assert not hasattr(copy, "seed_")
        assert copy.get_params() == sketch.get_params()
        assert_same_bits(copy.fit_transform(X), Z)


class TestFittedState:
    @each_case
    def test_attributes(self, case: Case) -> None:
        sketch = case.sketch().fit(case.rows())
        assert sketch.n_features_in_ == case.columns
        assert sketch.n_components_ == case.parameters["n_components"]
        assert sketch.seed_ == 5
        assert sketch.gamma_ == sketch.kernel_.gamma == case.parameters.get("gamma", 1.0)
        assert sketch.kernel_.degree == case.parameters["degree"]
        assert sketch.kernel_.coef0 == case.parameters.get("coef0", 0)
        assert not hasattr(sketch, "feature_names_in_")

    @pytest.mark.parametrize(
        ("name", "expansion"),
        [
            ("exact", "exact"),
            ("direct", "none"),
            ("linear", "none"),
            ("mean", "mean"),
            ("mean with monomials", "mean"),
            ("literal", "none"),
            ("literal around the mean", "mean"),
            ("chosen by measuring", "mean"),
        ],
    )
    def test_expansion_in_use(self, name: str, expansion: str) -> None:
        assert CASES[name].sketch().fit(CASES[name].rows()).expansion_ == expansion

    @each_case
    @each_float
    def test_pickle_keeps_every_bit(self, case: Case, dtype: Any) -> None:
        X = case.rows(dtype=dtype)
        sketch = case.sketch().fit(X)
        assert_same_bits(pickle.loads(pickle.dumps(sketch)).transform(X), sketch.transform(X))

    @each_case
    def test_fit_transform_is_fit_then_transform(self, case: Case) -> None:
        X = case.rows()
        assert_same_bits(case.sketch().fit_transform(X), case.sketch().fit(X).transform(X))

    def test_target_is_ignored(self) -> None:
        X = uncentred(20, 6)
        Z = PolynomialSketch(random_state=0).fit_transform(X, ["ignored"])
        assert_same_bits(Z, PolynomialSketch(random_state=0).fit_transform(X))

    @pytest.mark.parametrize("coef0", [0, 0.5])
    @pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
    def test_scale_is_scikit_learns_gamma(self, coef0: float, shift: float) -> None:
        X = uncentred(500, 30) + shift
        sketch = PolynomialSketch(gamma="scale", coef0=coef0).fit(X)
        np.testing.assert_allclose(sketch.gamma_, 1 / (30 * X.var()), rtol=1e-12)

    def test_scale_of_sparse_rows_counts_their_zeros(self) -> None:
        X = sp.random(200, 30, density=0.1, format="csr", random_state=0)
        sketch = PolynomialSketch(gamma="scale").fit(X)
        np.testing.assert_allclose(sketch.gamma_, 1 / (30 * X.toarray().var()), rtol=1e-12)

    def test_scale_of_constant_data_is_one(self) -> None:
        assert PolynomialSketch(gamma="scale").fit(np.full((10, 4), 2.0)).gamma_ == 1.0


class TestColumnNames:
    FRAME = pd.DataFrame(uncentred(20, 3), columns=["height", "width", "depth"])

    def test_names_of_the_output(self) -> None:
        sketch = PolynomialSketch(n_components=3).fit(uncentred(20, 6))
        assert sketch.get_feature_names_out().tolist() == [
            "polynomialsketch0",
            "polynomialsketch1",
            "polynomialsketch2",
        ]

    def test_names_of_the_input_are_kept(self) -> None:
        sketch = PolynomialSketch().fit(self.FRAME)
        assert sketch.feature_names_in_.tolist() == ["height", "width", "depth"]

    def test_other_names_are_refused(self) -> None:
        sketch = PolynomialSketch().fit(self.FRAME)
        with pytest.raises(ValueError, match="feature names"):
            sketch.transform(self.FRAME.rename(columns={"width": "length"}))

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_pandas_output(self, dtype: str) -> None:
        frame = self.FRAME.astype(dtype).set_index(np.arange(20) * 10)
        sketch = PolynomialSketch(n_components=5, random_state=0)
        Z = sketch.set_output(transform="pandas").fit_transform(frame)
        assert isinstance(Z, pd.DataFrame)
        assert Z.columns.tolist() == sketch.get_feature_names_out().tolist()
        assert Z.index.equals(frame.index)
        assert set(Z.dtypes) == {np.dtype(dtype)}
        assert_same_bits(
            Z.to_numpy(),
            PolynomialSketch(n_components=5, random_state=0).fit_transform(frame.to_numpy()),
        )


class TestInsideOtherTools:
    def test_pipeline_learns_digits(self) -> None:
        """A linear model on the features is right about 97 of 100 digits; 9 of 10 must be."""
        X, y = digits(1000) / 16, digit_labels(1000)
        model = make_pipeline(
            PolynomialSketch(n_components=300, random_state=0), RidgeClassifier(0.01)
        )
        assert model.fit(X[:700], y[:700]).score(X[700:], y[700:]) > 0.9

    def test_grid_search_over_parameters(self) -> None:
        X, y = digits(300) / 16, digit_labels(300)
        model = make_pipeline(
            PolynomialSketch(n_components=60, random_state=0), RidgeClassifier(0.01)
        )
        grid = {"polynomialsketch__degree": [1, 3], "polynomialsketch__expansion": ["none", "mean"]}
        search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, y)
        assert set(search.best_params_) == set(grid)
        assert search.best_score_ > 0.7

    def test_column_transformer(self) -> None:
        frame = TestColumnNames.FRAME
        join = make_column_transformer(
            (PolynomialSketch(n_components=4, random_state=0), ["height", "depth"]),
            ("passthrough", ["width"]),
        )
        assert join.fit_transform(frame).shape == (20, 5)
        assert len(join.get_feature_names_out()) == 5
