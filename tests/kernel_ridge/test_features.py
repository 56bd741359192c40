"""Names, kernels and maps all end in features; sums over landmarks are sums over features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    LeverageNystroem,
    NeuralTangentSketch,
    PolynomialSketch,
    kernels,
)
from powersketch.kernel_ridge import block_statistics
from powersketch.kernel_ridge.solving.dual import sum_at_landmarks
from powersketch.kernel_ridge.solving.features import Features, solved_statistics, well_conditioned
from powersketch.kernels import Gaussian
from powersketch.linalg import TriangularRows
from tests.kernel_ridge.ridge_data import Cauchy, diabetes, features, ridge, targets, waves, weights


def rows(count: int = 400, columns: int = 20, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(0).normal(size=(count, columns)).astype(dtype)


def fitted(X: Any, gamma: float = 0.05, size: int = 60) -> LeverageNystroem:
    return LeverageNystroem(Gaussian(gamma), n_components=size, random_state=0).fit(X)


KERNELS: list[tuple[Any, dict[str, Any] | None, kernels.Kernel, type]] = [
    ("gaussian", {"gamma": 0.3}, kernels.Gaussian(0.3), GaussianSketch),
    ("rbf", {"gamma": 0.3}, kernels.Gaussian(0.3), GaussianSketch),
    ("poly", {"degree": 3, "coef0": 1.5}, kernels.Polynomial(3, 1.0, 1.5), PolynomialSketch),
    ("arc-cosine", {"depth": 2}, kernels.ArcCosine(1, 2), ArcCosineSketch),
    ("ntk", {"depth": 2}, kernels.NeuralTangent(2), NeuralTangentSketch),
    ("dot-product", {"series": "cosh"}, kernels.DotProduct("cosh"), DotProductSketch),
    (kernels.Polynomial(3, 0.2, 1.5), None, kernels.Polynomial(3, 0.2, 1.5), PolynomialSketch),
]


class TestFeaturesOfAKernel:
    @pytest.mark.parametrize(("kernel", "parameters", "exact", "kind"), KERNELS)
    def test_are_those_of_its_sketch(
        self, kernel: Any, parameters: Any, exact: kernels.Kernel, kind: type
    ) -> None:
        X = features(60, 4, mean=0.0)
        model = ridge(kernel, kernel_params=parameters, random_state=0)
        model.fit(X, targets(60))
        assert type(model.feature_map_) is kind
        assert model.feature_map_.n_components_ == 256
        np.testing.assert_allclose(model.kernel_(X), exact(X), rtol=1e-12)

    @pytest.mark.parametrize("kind", ["sketch", "auto"])
    def test_of_a_linear_one_are_the_columns(self, kind: str) -> None:
        X, y = diabetes(150)
        model = ridge("linear", features=kind, alpha=0.5).fit(X, y)
        peer = Ridge(0.5).fit(X, y)
        assert not hasattr(model, "feature_map_")
        np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-8)
        np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-10)
        np.testing.assert_allclose(model.predict(sparse.csr_array(X)), peer.predict(X), rtol=1e-10)

    def test_of_the_gaussian_one_by_its_name_have_gamma_scale(self) -> None:
        X, y = diabetes(150)
        model = ridge("gaussian", random_state=0).fit(X, y)
        sketch = GaussianSketch("scale", n_components=256, random_state=0).fit(X)
        assert model.kernel_.gamma == sketch.kernel_.gamma
        np.testing.assert_array_equal(model.feature_map_.transform(X), sketch.transform(X))

    def test_at_landmarks_are_those_of_leverage_nystroem(self) -> None:
        X, y = waves(400)
        model = ridge(features="landmarks", n_components=40, random_state=0)
        expected = LeverageNystroem(n_components=40, random_state=0).fit(X)
        found = model.fit(X, y).feature_map_
        np.testing.assert_array_equal(found.landmark_indices_, expected.landmark_indices_)
        np.testing.assert_array_equal(found.transform(X), expected.transform(X))
        few = ridge(features="landmarks", random_state=0).fit(X[:50], y[:50])
        assert few.feature_map_.n_components_ == 50

    def test_size_seed_and_threads_are_handed_on(self) -> None:
        X, y = diabetes(60)
        options: dict[str, Any] = {"random_state": 7, "n_jobs": 2}
        made = ridge(n_components=33, **options).fit(X, y).feature_map_
        assert (made.n_components, made.random_state, made.n_jobs) == (33, 7, 2)
        given = GaussianSketch("scale", random_state=1, n_jobs=1)
        copy = ridge(features=given, n_components=33, **options).fit(X, y)
        made = copy.feature_map_
        assert (made.n_components, made.random_state, made.n_jobs) == (33, 1, 1)


class TestOwnKernel:
    """A user's own kernel has no sketch, and works wherever none is needed."""

    @pytest.mark.parametrize("kind", ["exact", "landmarks", "auto"])
    def test_works_without_a_sketch(self, kind: str) -> None:
        X, y = waves(300)
        size = 40 if kind == "auto" else None
        model = ridge(Cauchy(2.0), features=kind, n_components=size, alpha=0.1, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.97
        assert model.kernel_ == Cauchy(2.0)
        if kind == "auto":
            assert [c.name for c in model.choice_.candidates] == ["uniform", "leverage"]

    @pytest.mark.parametrize("kind", ["sketch", "row-sketch"])
    def test_is_refused_with_a_remedy(self, kind: str) -> None:
        model = ridge(Cauchy(), features=kind)
        with pytest.raises(TypeError, match=r"none of Cauchy.*use features='landmarks', 'exact'"):
            model.fit(*waves(50))

    def test_a_subclass_of_a_kernel_with_a_sketch_has_one(self) -> None:
        class Other(kernels.Gaussian):
            pass

        model = ridge(Other(0.1)).fit(*diabetes(50))
        assert isinstance(model.feature_map_, GaussianSketch)


@pytest.mark.parametrize("kind", ["exact", "auto"])
def test_no_map_is_fitted_to_read_its_kernel(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    original = GaussianSketch.fit

    def counted(sketch: Any, X: Any, y: Any = None) -> Any:
        fits.append(X.shape[0])
        return original(sketch, X, y)

    monkeypatch.setattr(GaussianSketch, "fit", counted)
    X, y = waves(300)
    size = 64 if kind == "auto" else None
    model = ridge(features=kind, n_components=size, random_state=0).fit(X, y)
    pilot, last = [150], [300]
    expected = [] if kind == "exact" else pilot
    assert fits == expected + (
        last if isinstance(vars(model).get("feature_map_"), GaussianSketch) else []
    )


class TestStatistics:
    @pytest.mark.parametrize("count", [None, 3])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_equal_those_of_the_features(self, count: int | None, weighted: bool) -> None:
        X, y, w = rows(), targets(400, count), weights(400) if weighted else None
        nystroem = fitted(X)
        solver = TriangularRows.of(nystroem.factor_)
        assert well_conditioned(solver)
        values = nystroem.kernel_columns()(X)
        found = solved_statistics(block_statistics(values, y, w), solver)
        expected = block_statistics(nystroem.transform(X), y, w)
        scale = np.trace(expected.gram)
        np.testing.assert_allclose(found.gram, expected.gram, atol=1e-10 * scale)
        np.testing.assert_array_equal(found.gram, found.gram.T)
        for name in ("feature_mean", "cross", "target_mean", "target_squares"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
        assert (found.count, found.weight) == (expected.count, expected.weight)


def test_nearly_dependent_landmarks_are_not_well_conditioned() -> None:
    nystroem = fitted(rows(columns=2, dtype=np.float32), gamma=1e-3)
    assert not well_conditioned(TriangularRows.of(nystroem.factor_))


class TestSumAtLandmarks:
    @pytest.mark.parametrize("coef", [np.arange(60.0), np.arange(120.0).reshape(2, 60)])
    def test_is_that_of_the_features(self, coef: Any) -> None:
        X = rows()
        nystroem = fitted(X)
        found = sum_at_landmarks(Features(nystroem), coef)
        assert found is not None
        np.testing.assert_allclose(found.values(X, 2), nystroem.transform(X) @ coef.T, atol=1e-8)

    def test_has_all_digits_for_float32_rows(self) -> None:
        X = rows(dtype=np.float32)
        nystroem = fitted(X)
        found = sum_at_landmarks(Features(nystroem), np.ones(60))
        assert found is not None
        precise = nystroem.transform(X.astype(np.float64)) @ np.ones(60)
        np.testing.assert_allclose(found.values(X, None), precise, atol=1e-8)

    def test_is_none_for_other_maps(self) -> None:
        sketch = GaussianSketch(random_state=0).fit(rows())
        assert sum_at_landmarks(Features(sketch), np.ones(100)) is None


class TestColumns:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_times_the_inverse_factor_are_the_features(self, dtype: Any) -> None:
        X = rows(dtype=dtype)
        nystroem = fitted(X)
        C = nystroem.kernel_columns()(X)
        assert C.dtype == dtype
        np.testing.assert_allclose(C, nystroem.kernel_(X, nystroem.landmarks_), rtol=1e-5)
        features = np.linalg.solve(nystroem.factor_, C.T.astype(np.float64)).T
        np.testing.assert_allclose(nystroem.transform(X), features, atol=5e-5)

    def test_are_float64_where_features_need_it(self) -> None:
        X = rows(columns=2, dtype=np.float32)
        kernel = Gaussian(1e-2)
        nystroem = LeverageNystroem(kernel, n_components=60, jitter=1e-13, random_state=0).fit(X)
        assert nystroem.kernel_columns()(X).dtype == np.float64

    def test_of_sparse_rows(self) -> None:
        X = sparse.random_array((100, 30), density=0.2, rng=0, format="csr")
        nystroem = fitted(X, gamma=1.0, size=20)
        np.testing.assert_allclose(
            nystroem.kernel_columns()(X), nystroem.kernel_columns()(X.toarray()), rtol=1e-12
        )


@pytest.mark.parametrize("gamma", [0.05, 1e-4])
def test_ridge_on_landmarks_is_ridge_on_features(gamma: float) -> None:
    X, y = rows(), targets(400, 2)
    given = LeverageNystroem(Gaussian(gamma), n_components=60)
    model = ridge(features=given, alpha=0.1, random_state=0).fit(X, y)
    Z = model.feature_map_.transform(X)
    expected = block_statistics(Z, y).solve(0.1)
    np.testing.assert_allclose(model.coef_, expected.coef, atol=1e-7)
    predictions = Z @ expected.coef.T + expected.intercept
    np.testing.assert_allclose(model.predict(X), predictions, atol=1e-7)
    parts = ridge(features=given, alpha=0.1, random_state=0)
    for part in (slice(0, 400), slice(0, 150)):
        parts.partial_fit(X[part], y[part])
    np.testing.assert_allclose(parts.predict(X[:7]), parts.predict(X)[:7], rtol=1e-10)
