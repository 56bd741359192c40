"""The number of components chosen for an error."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.accuracy import Certificate
from powersketch.feature_maps.base import FeatureMap
from tests.feature_maps.cases import assert_same_bits, each_estimator, uncentred

TRAINING, FURTHER = uncentred(600, 12, seed=1), uncentred(500, 12, seed=2)
# Kernels of these rows that no few features give exactly, and the error to keep.
MAPS: list[tuple[FeatureMap, float]] = [
    (PolynomialSketch(5, coef0=0.2), 0.05),
    (PolynomialSketch(3, norm_preserving=False), 0.1),
    (GaussianSketch(1.0, method="fourier"), 0.1),
    (DotProductSketch("exp"), 0.03),
    (ArcCosineSketch(1, method="random"), 0.1),
    (NeuralTangentSketch(2), 0.05),
]
each_map = pytest.mark.parametrize(
    ("sketch", "eps"), MAPS, ids=[f"{k}-{type(s).__name__}" for k, (s, _) in enumerate(MAPS)]
)


def automatic(sketch: FeatureMap, eps: float, **changes: Any) -> Any:
    return clone(sketch).set_params(n_components="auto", eps=eps, random_state=0, **changes)


def relative_error(sketch: Any, X: NDArray[Any]) -> float:
    Z, K = sketch.transform(X), sketch.kernel_(X)
    apart = ~np.eye(len(K), dtype=bool)
    return float(np.linalg.norm((Z @ Z.T - K)[apart]) / np.linalg.norm(K[apart]))


class TestError:
    @each_map
    def test_is_kept_on_further_rows_with_few_components(
        self, sketch: FeatureMap, eps: float
    ) -> None:
        fitted = automatic(sketch, eps).fit(TRAINING)
        assert fitted.certificate_.for_new_rows
        assert fitted.certificate_.frobenius.high <= eps
        assert relative_error(fitted, FURTHER) <= eps
        size = fitted.n_components_
        assert fitted.transform(FURTHER).shape == (500, size)
        half = clone(sketch).set_params(n_components=size // 2, random_state=0).fit(TRAINING)
        assert relative_error(half, FURTHER) > eps

    def test_is_kept_for_most_seeds(self) -> None:
        """Maps that keep it with 99 %, as they should, miss 3 of 20 with a risk of 0.1 %."""
        held = 0
        for seed in range(20):
            sketch = GaussianSketch(1.0, n_components="auto", eps=0.2, random_state=seed)
            held += relative_error(sketch.fit(uncentred(300, 6, seed=seed)), FURTHER[:, :6]) <= 0.2
        assert held >= 18


class TestFixedSizeAfterwards:
    def test_same_bits_as_that_size_given(self) -> None:
        chosen = automatic(GaussianSketch(1.0), 0.1).fit(TRAINING)
        given = GaussianSketch(1.0, n_components=chosen.n_components_, random_state=0)
        assert_same_bits(chosen.transform(FURTHER), given.fit(TRAINING).transform(FURTHER))
        assert not hasattr(given, "certificate_")

    def test_certificate_goes_with_the_next_fit(self) -> None:
        sketch = automatic(GaussianSketch(1.0), 0.3).fit(TRAINING)
        assert isinstance(sketch.certificate_, Certificate)
        sketch.set_params(n_components=5, eps=None).fit(TRAINING)
        assert not hasattr(sketch, "certificate_")
        assert sketch.n_components_ == 5

    def test_failed_fit_leaves_everything(self) -> None:
        sketch = automatic(GaussianSketch(1.0), 0.3).fit(TRAINING)
        certificate, Z = sketch.certificate_, sketch.transform(FURTHER)
        sketch.set_params(eps=1e-4, internal_components=64)
        with pytest.raises(ValueError, match=r"eps=0\.0001 is out of reach: with n_components=64"):
            sketch.fit(uncentred(600, 12, seed=3))
        assert sketch.certificate_ is certificate
        assert_same_bits(sketch.transform(FURTHER), Z)


class TestSameResult:
    def test_for_every_number_of_threads(self) -> None:
        one, two = (automatic(NeuralTangentSketch(), 0.1, n_jobs=jobs) for jobs in (None, 2))
        assert_same_bits(one.fit(TRAINING).transform(FURTHER), two.fit(TRAINING).transform(FURTHER))

    def test_after_pickling(self) -> None:
        sketch = automatic(GaussianSketch(1.0), 0.3).fit(TRAINING)
        copy = pickle.loads(pickle.dumps(sketch))
        assert copy.certificate_.to_dict() == sketch.certificate_.to_dict()
        assert_same_bits(copy.transform(FURTHER), sketch.transform(FURTHER))

    def test_of_a_clone(self) -> None:
        sketch = automatic(GaussianSketch(1.0), 0.3).fit(TRAINING)
        copy = clone(sketch)
        assert (copy.n_components, copy.eps) == ("auto", 0.3)
        assert not hasattr(copy, "certificate_")
        assert copy.fit(TRAINING).n_components_ == sketch.n_components_

    def test_rows_are_not_changed(self) -> None:
        X = TRAINING.copy()
        X.flags.writeable = False
        automatic(GaussianSketch(1.0), 0.3).fit(X)
        assert np.array_equal(X, TRAINING)


class TestRows:
    def test_sparse_rows(self) -> None:
        sketch = automatic(PolynomialSketch(3, coef0=1.0), 0.1).fit(sp.csr_array(TRAINING))
        assert relative_error(sketch, FURTHER) <= 0.1

    def test_float32_rows(self) -> None:
        sketch = automatic(GaussianSketch(1.0), 0.1).fit(TRAINING.astype(np.float32))
        Z = sketch.transform(FURTHER.astype(np.float32))
        assert Z.dtype == np.float32

    def test_in_a_pipeline(self) -> None:
        pipeline = make_pipeline(StandardScaler(), automatic(GaussianSketch("scale"), 0.5))
        Z = pipeline.fit_transform(TRAINING)
        assert Z.shape[1] == pipeline[-1].n_components_
        assert len(pipeline[-1].get_feature_names_out()) == Z.shape[1]

    @each_estimator
    @pytest.mark.parametrize(
        "X",
        [np.zeros((40, 3)), np.full((2, 3), 0.5), np.full((300, 1), 0.5), uncentred(30, 3)],
        ids=["zeros", "two", "one column", "few"],
    )
    def test_few_and_degenerate_rows(self, estimator: type[FeatureMap], X: NDArray[Any]) -> None:
        sketch = automatic(estimator(), 0.2).fit(X)
        assert sketch.certificate_.frobenius.high <= 0.2
        if len(X) < 200:
            assert not sketch.certificate_.for_new_rows
            assert sketch.certificate_.rows == len(X)

    @each_estimator
    def test_one_row_is_too_few(self, estimator: type[FeatureMap]) -> None:
        with pytest.raises(ValueError, match="X has 1 row; at least 2 are needed"):
            automatic(estimator(), 0.2).fit(np.ones((1, 3)) / 3)


class TestSmallestSizes:
    def test_pairs_of_a_cosine_and_a_sine(self) -> None:
        sketch = automatic(GaussianSketch(1e-6, method="fourier"), 0.5).fit(TRAINING)
        assert sketch.n_components_ == 2

    def test_layers_of_a_network(self) -> None:
        sketch = automatic(NeuralTangentSketch(2, bias_variance=100.0), 0.9).fit(TRAINING)
        assert sketch.n_components_ == 8

    def test_exact_monomials_are_found(self) -> None:
        sketch = automatic(PolynomialSketch(2), 1e-6).fit(TRAINING[:, :8])
        assert sketch.expansion_ == "exact"
        assert sketch.n_components_ <= 40  # 36 are needed


@each_estimator
class TestParameters:
    def refused(self, estimator: type[FeatureMap], error: type[Exception], **given: Any) -> str:
        sketch = estimator(**given)
        with pytest.raises(error) as refusal:
            sketch.fit(TRAINING)
        assert not hasattr(sketch, "seed_")
        return str(refusal.value)

    def test_auto_needs_eps(self, estimator: type[FeatureMap]) -> None:
        text = self.refused(estimator, ValueError, n_components="auto")
        assert "pass for instance eps=0.05" in text

    def test_eps_needs_auto(self, estimator: type[FeatureMap]) -> None:
        text = self.refused(estimator, ValueError, eps=0.1)
        assert "eps=0.1 has no meaning with n_components=100" in text
        assert "n_components='auto'" in text

    @pytest.mark.parametrize("eps", [0.0, -0.1, 1.0, 3, np.nan, np.inf])
    def test_range_of_eps(self, estimator: type[FeatureMap], eps: float) -> None:
        assert "eps=" in self.refused(estimator, ValueError, n_components="auto", eps=eps)

    @pytest.mark.parametrize("eps", ["0.1", True, [0.1]])
    def test_type_of_eps(self, estimator: type[FeatureMap], eps: Any) -> None:
        assert "eps=" in self.refused(estimator, TypeError, n_components="auto", eps=eps)

    def test_other_words(self, estimator: type[FeatureMap]) -> None:
        text = self.refused(estimator, TypeError, n_components="few", eps=0.1)
        assert "'auto' together with eps" in text

    def test_bad_internal_components(self, estimator: type[FeatureMap]) -> None:
        given = {"n_components": "auto", "eps": 0.1, "internal_components": 0}
        assert "internal_components=0" in self.refused(estimator, ValueError, **given)

    def test_internal_components_bound_the_search(self, estimator: type[FeatureMap]) -> None:
        given = {"n_components": "auto", "eps": 1e-9, "internal_components": 16}
        text = self.refused(estimator, ValueError, random_state=0, **given)
        assert "with n_components=16, the largest number tried" in text
