"""Sums of kernel values at landmarks become sums of features, where that loses no digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from powersketch import GaussianSketch, LeverageNystroem, SketchedKernelRidge
from powersketch.kernel_ridge import block_statistics
from powersketch.kernel_ridge.landmark_columns import LandmarkColumns, sum_at_landmarks
from powersketch.kernels import Gaussian
from tests.kernel_ridge.ridge_data import targets, weights


def rows(count: int = 400, columns: int = 20, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(0).normal(size=(count, columns)).astype(dtype)


def fitted(X: Any, gamma: float = 0.05, size: int = 60) -> LeverageNystroem:
    return LeverageNystroem(Gaussian(gamma), n_components=size, random_state=0).fit(X)


class TestStatistics:
    @pytest.mark.parametrize("count", [None, 3])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_equal_those_of_the_features(self, count: int | None, weighted: bool) -> None:
        X, y, w = rows(), targets(400, count), weights(400) if weighted else None
        nystroem = fitted(X)
        columns = LandmarkColumns.of(nystroem)
        assert columns is not None
        assert columns.summable
        found = columns.statistics_of_features(
            block_statistics(columns.prepared().transform(X), y, w)
        )
        expected = block_statistics(nystroem.transform(X), y, w)
        scale = np.trace(expected.gram)
        np.testing.assert_allclose(found.gram, expected.gram, atol=1e-10 * scale)
        np.testing.assert_array_equal(found.gram, found.gram.T)
        for name in ("feature_mean", "cross", "target_mean", "target_squares"):
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
        assert (found.count, found.weight) == (expected.count, expected.weight)


class TestWhereItIsDone:
    def test_not_for_nearly_dependent_landmarks(self) -> None:
        X = rows(columns=2, dtype=np.float32)
        nystroem = fitted(X, gamma=1e-3)
        columns = LandmarkColumns.of(nystroem)
        assert columns is not None
        assert not columns.summable

    def test_not_for_other_maps(self) -> None:
        assert LandmarkColumns.of(GaussianSketch(random_state=0).fit(rows())) is None


class TestSumAtLandmarks:
    @pytest.mark.parametrize("coef", [np.arange(60.0), np.arange(120.0).reshape(2, 60)])
    def test_is_that_of_the_features(self, coef: Any) -> None:
        X = rows()
        nystroem = fitted(X)
        found = sum_at_landmarks(nystroem, coef)
        assert found is not None
        np.testing.assert_allclose(found.values(X, 2), nystroem.transform(X) @ coef.T, atol=1e-8)

    def test_has_all_digits_for_float32_rows(self) -> None:
        X = rows(dtype=np.float32)
        nystroem = fitted(X)
        found = sum_at_landmarks(nystroem, np.ones(60))
        assert found is not None
        precise = nystroem.transform(X.astype(np.float64)) @ np.ones(60)
        np.testing.assert_allclose(found.values(X, None), precise, atol=1e-8)

    def test_is_none_for_other_maps(self) -> None:
        assert sum_at_landmarks(GaussianSketch(random_state=0).fit(rows()), np.ones(100)) is None


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
    sketch = LeverageNystroem(Gaussian(gamma), n_components=60)
    model = SketchedKernelRidge(sketch, alpha=0.1, random_state=0).fit(X, y)
    Z = model.sketch_.transform(X)
    expected = block_statistics(Z, y).solve(0.1)
    np.testing.assert_allclose(model.coef_, expected.coef, atol=1e-7)
    predictions = Z @ expected.coef.T + expected.intercept
    np.testing.assert_allclose(model.predict(X), predictions, atol=1e-7)
    parts = SketchedKernelRidge(sketch, alpha=0.1, random_state=0)
    for part in (slice(0, 400), slice(0, 150)):
        parts.partial_fit(X[part], y[part])
    np.testing.assert_allclose(parts.predict(X[:7]), parts.predict(X)[:7], rtol=1e-10)
