"""Tables as input and output, metadata on its way through pipelines, and the view in notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

import powersketch
from powersketch import PolynomialSketch, SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.ecosystem import documentation_home
from tests.ecosystem.test_array_libraries import each_map
from tests.feature_maps.cases import FLOATS, assert_same_bits, uncentred

ESTIMATORS = [name for name in powersketch.__all__ if hasattr(getattr(powersketch, name), "fit")]


class TestTables:
    @each_map
    @pytest.mark.parametrize("dtype", FLOATS)
    @pytest.mark.parametrize("container", ["pandas", "polars"])
    def test_output(self, sketch: Any, dtype: Any, container: str) -> None:
        X, y = uncentred(40, 6, dtype), np.arange(40.0)
        plain = clone(sketch).fit(X, y).transform(X)
        fitted = clone(sketch).set_output(transform=container).fit(X, y)
        table = fitted.transform(X)
        assert isinstance(table, pd.DataFrame if container == "pandas" else pl.DataFrame)
        assert list(table.columns) == fitted.get_feature_names_out().tolist()
        assert_same_bits(np.ascontiguousarray(table.to_numpy()), plain)

    @each_map
    def test_polars_input(self, sketch: Any) -> None:
        X, y = uncentred(40, 6), np.arange(40.0)
        frame = pl.DataFrame({f"column {i}": X[:, i] for i in range(6)})
        fitted = clone(sketch).fit(frame, y)
        assert fitted.feature_names_in_.tolist() == frame.columns
        assert_same_bits(fitted.transform(frame), clone(sketch).fit(X, y).transform(X))
        with pytest.raises(ValueError, match="feature names"):
            fitted.transform(frame.rename({"column 0": "another"}))


class TestMetadataRouting:
    @pytest.fixture(autouse=True)
    def routing(self) -> Iterator[None]:
        with sklearn.config_context(enable_metadata_routing=True):
            yield

    @pytest.mark.parametrize("model", [SketchedKernelRidge, SketchedKernelRidgeClassifier])
    def test_weights_pass_through_a_pipeline(self, model: Any) -> None:
        X, y = uncentred(60, 6), np.arange(60.0) % 3
        weights = np.where(np.arange(60) % 2, 1.0, 0.0)
        ridge = model("rbf", alpha=0.1, random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(PolynomialSketch(random_state=0), ridge)
        routed = pipeline.fit(X, y, sample_weight=weights).predict(X)
        Z = PolynomialSketch(random_state=0).fit_transform(X)
        direct = model("rbf", alpha=0.1, random_state=0).fit(Z, y, sample_weight=weights)
        np.testing.assert_array_equal(routed, direct.predict(Z))
        unweighted = model("rbf", alpha=0.1, random_state=0).fit(Z, y)
        assert not np.array_equal(routed, unweighted.predict(Z))

    def test_weights_pass_through_cross_validation(self) -> None:
        X, y = uncentred(60, 6), np.arange(60.0)
        ridge = SketchedKernelRidge("rbf", alpha=0.1, random_state=0)
        ridge.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(ridge, X, y, params={"sample_weight": np.ones(60)}, cv=3)
        assert np.isfinite(found["test_score"]).all()

    def test_standard_deviations_can_be_asked_for(self) -> None:
        X, y = uncentred(60, 6), np.arange(60.0)
        ridge = SketchedKernelRidge("rbf", alpha=0.1).set_predict_request(return_std=True)
        pipeline = make_pipeline(PolynomialSketch(random_state=0), ridge).fit(X, y)
        mean, deviation = pipeline.predict(X, return_std=True)
        assert mean.shape == deviation.shape == (60,)


class TestViewInNotebooks:
    @pytest.fixture(autouse=True)
    def fresh_address(self) -> Iterator[None]:
        documentation_home.cache_clear()
        yield
        documentation_home.cache_clear()

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_links_to_the_page_of_the_class(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = metadata.metadata("powersketch")
        del project["Project-URL"]
        project["Project-URL"] = "Documentation, https://docs.invalid/stable/"
        monkeypatch.setattr(metadata, "metadata", lambda _: project)
        page = estimator_html_repr(getattr(powersketch, name)())
        assert f"https://docs.invalid/stable/api/powersketch.{name}.html" in page

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_without_an_address_there_is_no_link(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = metadata.metadata("powersketch")
        del project["Project-URL"]
        monkeypatch.setattr(metadata, "metadata", lambda _: project)
        page = estimator_html_repr(getattr(powersketch, name)())
        assert name in page
        assert "/modules/generated/" not in page  # of scikit-learn's own site
        assert "api/powersketch" not in page
