"""Every feature map behaves as scikit-learn expects of a transformer."""

from __future__ import annotations

import inspect
import os
import pickle
import re
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

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
    kernels,
)
from powersketch.feature_maps.base import FeatureMap
from tests.feature_maps.cases import (
    CASES,
    ESTIMATORS,
    FLOATS,
    Case,
    assert_same_bits,
    digit_labels,
    digits,
    each_case,
    each_case_with,
    each_estimator,
    uncentred,
)

SHARED = {
    "base_sketch": "auto",
    "norm_preserving": True,
    "internal_components": None,
    "compress_from": None,
    "eps": None,
    "random_state": None,
    "n_jobs": None,
    "verbose": 0,
}
NEURAL = {"power_method": "squaring", "tail": "fit", "tail_eps": 1e-3, "expansion": "auto"}
DEFAULTS: dict[type[FeatureMap], dict[str, Any]] = {
    PolynomialSketch: {
        "degree": 2,
        "gamma": 1.0,
        "coef0": 0,
        "n_components": 100,
        "method": "power",
        "expansion": "auto",
        **SHARED,
    },
    GaussianSketch: {
        "gamma": 1.0,
        "n_components": 100,
        "method": "auto",
        "power_method": "squaring",
        **SHARED,
    },
    DotProductSketch: {
        "series": "exp",
        "gamma": None,
        "n_components": 100,
        "method": "power",
        "power_method": "squaring",
        "expansion": "auto",
        "tail": "truncate",
        "tail_eps": 1e-3,
        **SHARED,
    },
    ArcCosineSketch: {
        "order": 1,
        "depth": 1,
        "n_components": 100,
        "method": "power",
        **NEURAL,
        **SHARED,
    },
    NeuralTangentSketch: {
        "depth": 1,
        "train_output": True,
        "weight_variance": 2.0,
        "bias_variance": 0.0,
        "n_components": 100,
        "method": "power",
        "composition": "auto",
        **NEURAL,
        **SHARED,
    },
}
POSITIONAL = {ArcCosineSketch: 2}  # one elsewhere
PARAMETERS = [(estimator, name) for estimator in ESTIMATORS for name in DEFAULTS[estimator]]

# Few components where a map other than the exact one is meant: the checks use few columns.
CHECKED: list[tuple[type[FeatureMap], dict[str, Any]]] = [
    (PolynomialSketch, {}),
    (PolynomialSketch, {"expansion": "none", "n_components": 2}),
    (PolynomialSketch, {"expansion": "mean", "n_components": 5, "degree": 3, "n_jobs": 2}),
    (PolynomialSketch, {"norm_preserving": False, "expansion": "mean", "coef0": 0.5}),
    (PolynomialSketch, {"compress_from": 8, "n_components": 2, "degree": 3}),
    (PolynomialSketch, {"method": "adaptive", "n_components": 4, "degree": 3}),
    (GaussianSketch, {}),
    (GaussianSketch, {"gamma": "scale", "n_components": 2}),
    (GaussianSketch, {"method": "single_power", "power_method": "tree", "n_components": 3}),
    (DotProductSketch, {"series": [1.0, 2.0, 1.0], "expansion": "mean", "n_components": 5}),
    (ArcCosineSketch, {}),
    (ArcCosineSketch, {"method": "random", "depth": 2, "n_components": 3}),
    (NeuralTangentSketch, {}),
    (NeuralTangentSketch, {"method": "random", "n_components": 3}),
]

# Some checks ask for what a kernel cannot give: rows of norm 140, or a single component.
TOO_LARGE = {"check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in"}
TOO_FEW = {
    "check_dont_overwrite_parameters",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
}
# (estimator, parameters, the checks that it refuses, what it says then)
REFUSING: list[tuple[type[FeatureMap], dict[str, Any], set[str], str]] = [
    (DotProductSketch, {}, TOO_LARGE, "exp is above the largest float64.*scale the data down"),
    (
        DotProductSketch,
        {"series": "cosh", "expansion": "none", "n_components": 3},
        TOO_LARGE,
        "cosh is above the largest float64.*scale the data down",
    ),
    (
        GaussianSketch,
        {"method": "fourier", "n_components": 7},
        TOO_FEW,
        "n_components=1 is out of range; choose an integer of at least 2",
    ),
    (
        NeuralTangentSketch,
        {"depth": 2, "bias_variance": 0.5, "expansion": "none", "n_components": 8},
        TOO_FEW,
        "n_components=1 is out of range.*at least 8.*layers",
    ),
    (
        NeuralTangentSketch,
        {"depth": 2, "method": "random", "n_components": 20},
        TOO_FEW,
        "n_components=1 is out of range.*at least 8.*layers",
    ),
]


def name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def failed_checks(sketch: FeatureMap) -> dict[str, Exception]:
    """Run all of scikit-learn's checks and return the errors of those that do not pass."""
    array_api = os.environ.get("SCIPY_ARRAY_API")
    assert array_api == "1", "set SCIPY_ARRAY_API=1, or scikit-learn leaves out a check"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings of their own
        results = check_estimator(sketch, on_fail=None)
    assert len(results) >= 40  # 47 in scikit-learn 1.9
    return {r["check_name"]: r["exception"] for r in results if r["status"] != "passed"}


class TestScikitLearnsOwnChecks:
    @pytest.mark.parametrize(("estimator", "parameters"), CHECKED, ids=name_of)
    def test_every_check_passes_and_none_is_skipped(
        self, estimator: type[FeatureMap], parameters: dict[str, Any]
    ) -> None:
        assert failed_checks(estimator(**parameters)) == {}

    @pytest.mark.parametrize(
        ("estimator", "parameters", "checks", "message"),
        REFUSING,
        ids=[f"{estimator.__name__}-{parameters}" for estimator, parameters, _, _ in REFUSING],
    )
    def test_every_check_passes_but_for_what_must_be_refused(
        self,
        estimator: type[FeatureMap],
        parameters: dict[str, Any],
        checks: set[str],
        message: str,
    ) -> None:
        failed = failed_checks(estimator(**parameters))
        assert set(failed) <= checks
        for error in failed.values():
            assert re.search(message, str(error))


class TestParameters:
    @each_estimator
    def test_signature_and_defaults_are_the_documented_ones(
        self, estimator: type[FeatureMap]
    ) -> None:
        signature = inspect.signature(estimator).parameters
        assert {name: p.default for name, p in signature.items()} == DEFAULTS[estimator]
        keyword_only = [n for n, p in signature.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
        assert keyword_only == list(signature)[POSITIONAL.get(estimator, 1) :]

    @each_estimator
    def test_docstring_names_every_parameter_and_default(self, estimator: type[FeatureMap]) -> None:
        text = inspect.getdoc(estimator)
        assert text is not None
        for name, default in DEFAULTS[estimator].items():
            (line,) = [x for x in text.splitlines() if x.startswith(f"{name} : ")]
            written = re.search(r"default=(\S+)$", line)
            assert written is not None
            shown = f'"{default}"' if isinstance(default, str) else str(default)
            assert written[1] == shown or float(written[1]) == default

    @each_estimator
    def test_docstring_names_nothing_else(self, estimator: type[FeatureMap]) -> None:
        text = inspect.getdoc(estimator)
        assert text is not None
        section = text[text.index("Parameters\n") : text.index("Attributes\n")]
        assert re.findall(r"^(\w+) : ", section, re.MULTILINE) == list(
            inspect.signature(estimator).parameters
        )
        assert "%(" not in text

    @each_estimator
    def test_docstring_names_every_fitted_attribute(self, estimator: type[FeatureMap]) -> None:
        text = inspect.getdoc(estimator)
        assert text is not None
        listed = text[text.index("Attributes\n") :]
        frame = pd.DataFrame(uncentred(20, 6)).add_prefix("column ")
        fitted = [name for name in vars(estimator().fit(frame)) if name.endswith("_")]
        assert "kernel_" in fitted
        for name in fitted:
            assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", listed, re.MULTILINE)

    @each_estimator
    def test_constructor_stores_what_it_is_given(self, estimator: type[FeatureMap]) -> None:
        nonsense = {name: object() for name in DEFAULTS[estimator]}
        assert estimator(**nonsense).get_params() == nonsense

    def test_set_params_takes_effect_on_the_next_fit(self) -> None:
        X = uncentred(20, 6)
        sketch = PolynomialSketch(random_state=0).fit(X)
        sketch.set_params(degree=3, n_components=7)
        assert sketch.transform(X).shape == (20, 100)
        assert sketch.fit_transform(X).shape == (20, 7)
        assert sketch.kernel_.degree == 3

    @each_case
    def test_components_may_change_after_fit(self, case: Case) -> None:
        X, size = case.rows(), case.parameters["n_components"]
        sketch = case.sketch().fit(X)
        sketch.set_params(n_components=size + 9)
        assert_same_bits(sketch.transform(X), case.features())
        assert sketch.fit_transform(X).shape == (len(X), size + 9)

    @pytest.mark.parametrize(("estimator", "name"), PARAMETERS, ids=name_of)
    def test_fit_leaves_parameters_alone(self, estimator: type[FeatureMap], name: str) -> None:
        value = {
            "gamma": "scale",
            "n_components": np.int64(9),
            "series": [1.0, 0.0, 2.0],
            "tail_eps": np.float32(0.1),
        }.get(name, DEFAULTS[estimator][name])
        others = {"tail": "truncate"} if name == "tail_eps" else {}
        sketch = estimator(**{name: value}, **others).fit(uncentred(20, 6))
        assert getattr(sketch, name) is value

    @each_case
    def test_clone_gives_the_same_sketch(self, case: Case) -> None:
        sketch = case.fitted()
        copy = clone(sketch)
        assert not hasattr(copy, "seed_")
        assert copy.get_params() == sketch.get_params()
        assert_same_bits(copy.fit_transform(case.rows()), case.features())


KERNELS = {
    PolynomialSketch: kernels.Polynomial,
    GaussianSketch: kernels.Gaussian,
    DotProductSketch: kernels.DotProduct,
    ArcCosineSketch: kernels.ArcCosine,
    NeuralTangentSketch: kernels.NeuralTangent,
}


class TestFittedState:
    @each_case
    def test_attributes(self, case: Case) -> None:
        sketch = case.fitted()
        assert sketch.n_features_in_ == case.columns
        assert sketch.n_components_ == case.parameters["n_components"]
        assert sketch.seed_ == 5
        assert type(sketch.kernel_) is KERNELS[case.estimator]
        assert not hasattr(sketch, "feature_names_in_")

    @each_case
    def test_kernel_has_the_parameters(self, case: Case) -> None:
        """Of the sketch, where both have one of the same name."""
        sketch = case.fitted()
        common = set(vars(sketch.kernel_)) & set(sketch.get_params())
        assert common or case.estimator is DotProductSketch
        for name in common - {"gamma"}:
            assert getattr(sketch.kernel_, name) == getattr(sketch, name)
        if hasattr(sketch, "gamma_"):
            assert sketch.gamma_ == sketch.kernel_.gamma

    @each_case
    def test_series_in_use(self, case: Case) -> None:
        """Degrees ascend, coefficients are positive, and the bound holds on the diagonal."""
        sketch = case.fitted()
        if getattr(sketch, "degrees_", None) is None:
            for name in ("coefficients_", "tail_mass_", "series_error_bound_"):
                assert getattr(sketch, name, None) is None
            return
        assert list(sketch.degrees_) == sorted(set(sketch.degrees_))
        assert len(sketch.coefficients_) == len(sketch.degrees_)
        assert np.all(sketch.coefficients_ > 0)
        assert 0 <= sketch.tail_mass_ <= sketch.series_error_bound_ + 1e-12

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
            ("series exp", "none"),
            ("series exp chosen by measuring", "mean"),
            ("series literal sinh", "none"),
            ("series literal exp around the mean", "mean"),
            ("arc-cosine of steps", "none"),
            ("arc-cosine of ramps, around the mean", "mean"),
            ("arc-cosine at random, order 2, depth 2", "random"),
            ("tangent of the paper", "none"),
            ("tangent with bias around the mean", "mean"),
            ("tangent by layers with bias", "layers"),
            ("tangent by layers around the mean", "layers"),
            ("tangent at random", "random"),
        ],
    )
    def test_expansion_in_use(self, name: str, expansion: str) -> None:
        assert CASES[name].fitted().expansion_ == expansion

    @pytest.mark.parametrize(
        ("name", "method"),
        [
            ("gaussian powers", "power"),
            ("gaussian single power", "single_power"),
            ("gaussian odd fourier", "fourier"),
            ("gaussian chosen by measuring", "fourier"),
        ],
    )
    def test_method_in_use(self, name: str, method: str) -> None:
        assert CASES[name].fitted().method_ == method

    @each_case_with(dtype=FLOATS)
    def test_pickle_keeps_every_bit(self, case: Case, dtype: Any) -> None:
        copy = pickle.loads(pickle.dumps(case.fitted(dtype=dtype)))
        assert_same_bits(copy.transform(case.rows(dtype=dtype)), case.features(dtype=dtype))

    @each_case
    def test_fit_transform_is_fit_then_transform(self, case: Case) -> None:
        assert_same_bits(case.sketch().fit_transform(case.rows()), case.features())

    @each_estimator
    def test_target_is_ignored(self, estimator: type[FeatureMap]) -> None:
        X = uncentred(20, 6)
        Z = estimator(random_state=0).fit_transform(X, ["ignored"])
        assert_same_bits(Z, estimator(random_state=0).fit_transform(X))

    @pytest.mark.parametrize("estimator", [GaussianSketch, PolynomialSketch])
    @pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
    def test_scale_is_scikit_learns_gamma(self, estimator: type[FeatureMap], shift: float) -> None:
        X = uncentred(500, 30) + shift
        sketch: Any = estimator(gamma="scale").fit(X)
        np.testing.assert_allclose(sketch.gamma_, 1 / (30 * X.var()), rtol=1e-12)

    def test_scale_does_not_depend_on_coef0(self) -> None:
        X = uncentred(500, 30) + 3
        gammas = [PolynomialSketch(gamma="scale", coef0=c).fit(X).gamma_ for c in (0, 0.5)]
        assert gammas[0] == gammas[1]

    @pytest.mark.parametrize("estimator", [GaussianSketch, PolynomialSketch])
    def test_scale_of_sparse_rows_counts_their_zeros(self, estimator: type[FeatureMap]) -> None:
        X = sp.random(200, 30, density=0.1, format="csr", random_state=0)
        sketch: Any = estimator(gamma="scale").fit(X)
        np.testing.assert_allclose(sketch.gamma_, 1 / (30 * X.toarray().var()), rtol=1e-12)

    @pytest.mark.parametrize("estimator", [GaussianSketch, PolynomialSketch])
    def test_scale_of_constant_data_is_one(self, estimator: type[FeatureMap]) -> None:
        sketch: Any = estimator(gamma="scale").fit(np.full((10, 4), 2.0))
        assert sketch.gamma_ == 1.0


class TestColumnNames:
    FRAME = pd.DataFrame(uncentred(20, 3), columns=["height", "width", "depth"])

    @each_estimator
    def test_names_of_the_output(self, estimator: type[FeatureMap]) -> None:
        names = estimator(n_components=3).fit(uncentred(20, 6)).get_feature_names_out()
        assert names.tolist() == [f"{estimator.__name__.lower()}{i}" for i in range(3)]

    @each_estimator
    def test_names_of_the_input_are_kept(self, estimator: type[FeatureMap]) -> None:
        sketch: Any = estimator().fit(self.FRAME)
        assert sketch.feature_names_in_.tolist() == ["height", "width", "depth"]

    @each_estimator
    def test_other_names_are_refused(self, estimator: type[FeatureMap]) -> None:
        sketch = estimator().fit(self.FRAME)
        with pytest.raises(ValueError, match="feature names"):
            sketch.transform(self.FRAME.rename(columns={"width": "length"}))

    @each_estimator
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_pandas_output(self, estimator: type[FeatureMap], dtype: str) -> None:
        frame = self.FRAME.astype(dtype).set_index(np.arange(20) * 10)
        sketch = estimator(n_components=5, random_state=0)
        Z = sketch.set_output(transform="pandas").fit_transform(frame)
        assert isinstance(Z, pd.DataFrame)
        assert Z.columns.tolist() == sketch.get_feature_names_out().tolist()
        assert Z.index.equals(frame.index)
        assert set(Z.dtypes) == {np.dtype(dtype)}
        plain = estimator(n_components=5, random_state=0).fit_transform(frame.to_numpy())
        assert_same_bits(Z.to_numpy(), plain)


class TestInsideOtherTools:
    @each_estimator
    def test_pipeline_learns_digits(self, estimator: type[FeatureMap]) -> None:
        """A linear model on the features is right about 95 of 100 digits; 9 of 10 must be."""
        X, y = digits(1000) / 16, digit_labels(1000)
        X /= np.linalg.norm(X, axis=1).mean()
        sketch = estimator(n_components=300, random_state=0)
        model = make_pipeline(sketch, RidgeClassifier(0.01))
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
