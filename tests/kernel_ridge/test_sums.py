"""Sums in float32 are those in float64 where alpha hides the difference, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powersketch import GaussianSketch
from powersketch.exceptions import InputError
from powersketch.execution import blas_threads
from powersketch.kernel_ridge import block_statistics
from powersketch.kernel_ridge.solving import precision, sums
from powersketch.kernel_ridge.solving.statistics import statistics_of_blocks
from tests.kernel_ridge.ridge_data import features, ridge, targets, weights


@pytest.fixture
def small(monkeypatch: Any) -> None:
    """Let few rows and features be enough for float32, and for threads."""
    monkeypatch.setattr(precision, "_FEWEST_FEATURES", 20)
    monkeypatch.setattr(precision, "_FEWEST_ROWS", 500)
    monkeypatch.setattr(sums, "_FEWEST_PRODUCTS", 0.0)
    monkeypatch.setattr(sums, "_WIDTH_OF_FEW", 16)


def rows(count: int = 1000) -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(count, 5)).astype(np.float32)
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * generator.normal(size=count)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_do_not_depend_on_the_threads(small: None, monkeypatch: Any, threads: int) -> None:
    del small
    Z, y, w = features(700, 50).astype(np.float32), targets(700), weights(700)
    blocks = [(Z[part], y[part], w[part]) for part in (slice(0, 300), slice(300, 700))]
    with blas_threads(1):
        expected = statistics_of_blocks(blocks, np.float32)
        monkeypatch.setattr(sums, "blas_thread_count", lambda: threads)
        found = statistics_of_blocks(blocks, np.float32)
    np.testing.assert_array_equal(found.gram, expected.gram)
    np.testing.assert_array_equal(found.gram, found.gram.T)
    exact = block_statistics(Z, y, w)
    np.testing.assert_allclose(found.gram, exact.gram, rtol=0, atol=1e-6 * np.trace(exact.gram))
    np.testing.assert_allclose(found.cross, exact.cross, rtol=0, atol=1e-3)


class TestPrecision:
    def model(self, alpha: Any, **options: Any) -> Any:
        sketch = GaussianSketch(0.2, n_components=60, random_state=0)
        return ridge(features=sketch, alpha=alpha, solver="gram", **options)

    @pytest.mark.parametrize("options", [{"alpha": 1.0}, {"alpha": "loo", "alphas": [0.1, 10.0]}])
    @pytest.mark.filterwarnings("ignore:the best score:UserWarning")
    def test_float32_is_taken_where_it_cannot_be_seen(self, small: None, options: Any) -> None:
        del small
        X, y = rows()
        model, precise = (self.model(**options).fit(Z, y) for Z in (X, X.astype(np.float64)))
        assert model.statistics_.rounding > 0.0
        assert precise.statistics_.rounding == 0.0
        np.testing.assert_allclose(model.predict(X), precise.predict(X), rtol=0, atol=1e-3)

    def test_the_rounding_is_that_of_the_sums(self, small: None) -> None:
        del small
        X, y = rows()
        model = self.model(1.0).fit(X, y)
        Z = model.feature_map_.transform(X).astype(np.float64)
        error = np.linalg.norm(model.statistics_.gram - block_statistics(Z, y).gram, 2)
        assert error < 3.0 * model.statistics_.rounding

    @pytest.mark.parametrize("options", [{"alpha": 1e-7}, {"alpha": "gcv"}])
    @pytest.mark.filterwarnings("ignore:the best score:UserWarning")
    def test_float64_is_taken_where_it_matters(self, small: None, options: Any) -> None:
        del small
        X, y = rows()
        assert self.model(**options).fit(X, y).statistics_.rounding == 0.0
        path = self.model("loo", alphas=[1e-8, 1.0]).fit(X, y)
        assert path.statistics_.rounding == 0.0

    @pytest.mark.parametrize("alphas", [[1e-5, 1e-3, 0.1], [1e-7, 1e-2]])
    @pytest.mark.filterwarnings("ignore:the best score:UserWarning")
    def test_float32_is_taken_where_errors_are_small_beside_the_sums(
        self, small: None, alphas: Any
    ) -> None:
        """Far more rows than features: no direction has an eigenvalue as small as the errors."""
        del small
        generator = np.random.default_rng(0)
        X = generator.normal(size=(20_000, 8)).astype(np.float32)
        y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * generator.normal(size=len(X))
        sketch = GaussianSketch(0.2, n_components=120, random_state=0)
        model = ridge(features=sketch, alpha="loo", alphas=alphas, solver="gram").fit(X, y)
        Z = model.feature_map_.transform(X)
        exact = block_statistics(Z, y)
        assert np.linalg.eigvalsh(exact.gram)[0] > 1.0
        assert np.abs(model.statistics_.gram - exact.gram).max() > 1e-6
        assert model.statistics_.rounding == 0.0
        for alpha in alphas:
            found, expected = (sums.solve(alpha).coef for sums in (model.statistics_, exact))
            np.testing.assert_allclose(Z @ found, Z @ expected, rtol=0, atol=1e-5)

    @pytest.mark.filterwarnings("ignore:the best score:UserWarning")
    def test_float64_is_taken_where_a_direction_is_as_small_as_the_errors(
        self, small: None
    ) -> None:
        del small
        X, y = rows(4000)
        X[:, 4] = X[:, 3] + np.float32(1e-4) * X[:, 4]
        sketch = GaussianSketch(0.05, n_components=60, random_state=0)
        model = ridge(features=sketch, alpha="loo", alphas=[1e-8, 1e-2], solver="gram").fit(X, y)
        exact = block_statistics(model.feature_map_.transform(X), y)
        eigenvalues = np.linalg.eigvalsh(exact.gram)
        assert eigenvalues[0] < 1e-8 * eigenvalues[-1]
        np.testing.assert_allclose(model.statistics_.gram, exact.gram, rtol=0, atol=1e-10)

    @pytest.mark.filterwarnings("ignore:the best score:UserWarning")
    def test_a_small_alpha_is_looked_for_in_float64(self, small: None) -> None:
        del small
        X, _ = rows(3000)
        sketch = GaussianSketch(0.01, n_components=300, random_state=0)
        y = sketch.fit_transform(X)[:, :3].astype(np.float64).sum(axis=1)  # without any noise
        model = ridge(features=sketch, alpha="loo", solver="gram").fit(X, y)
        assert model.statistics_.rounding == 0.0
        assert model.alpha_ < 1e-6 * np.trace(model.statistics_.gram)

    def test_blocks_are_float32_as_long_as_alpha_is_large_enough(self, small: None) -> None:
        del small
        X, y = rows()
        model = self.model(1.0).partial_fit(X, y)
        once = model.statistics_.rounding
        assert once > 0.0
        assert model.partial_fit(X, y).statistics_.rounding == pytest.approx(2.0 * once, rel=1e-6)
        assert self.model("loo").partial_fit(X, y).statistics_.rounding == 0.0


def test_infinite_sums_are_refused() -> None:
    with pytest.raises(InputError, match=r"infinite or NaN.*Scale the columns"):
        statistics_of_blocks([(np.array([[1e200], [-1e200]]), np.ones(2), None)])
