"""SketchedKernelRidge on features is ridge regression on these features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

from powersketch import GaussianSketch, PolynomialSketch, kernels
from powersketch.kernel_ridge import RegularisationWarning, block_statistics, settings
from powersketch.kernel_ridge.solving import left_out
from tests.kernel_ridge.ridge_data import (
    Identity,
    brute_force,
    diabetes,
    digits,
    features,
    ridge,
    std,
    targets,
    waves,
    weights,
)

MAPS: list[Any] = [
    GaussianSketch("scale", n_components=60),
    PolynomialSketch(3, gamma="scale", coef0=1.0, n_components=50),
    RBFSampler(n_components=40),
    Identity(),
]
# Its features are as good for rows unlike those of the fit.
EVERYWHERE = GaussianSketch("scale", n_components=256, method="fourier")
each_map = pytest.mark.parametrize("sketch", MAPS, ids=lambda sketch: type(sketch).__name__)


class TestSolution:
    @each_map
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_is_scikit_learns_ridge_on_the_features(self, sketch: Any, fit_intercept: bool) -> None:
        X, y = diabetes()
        w = weights(len(y))
        model = ridge(features=sketch, alpha=0.7, fit_intercept=fit_intercept, random_state=0).fit(
            X, y, w
        )
        Z = model.feature_map_.transform(X)
        peer = Ridge(0.7, fit_intercept=fit_intercept).fit(Z, y, w)
        np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, rtol=1e-7)
        np.testing.assert_allclose(model.predict(X), peer.predict(Z), rtol=1e-8)
        assert model.score(X, y) == pytest.approx(r2_score(y, peer.predict(Z)), rel=1e-8)

    def test_of_many_targets_is_that_of_each(self) -> None:
        X, y = diabetes()
        Y = np.column_stack((y, y**2 / 100, -y))
        model = ridge(random_state=0).fit(X, Y)
        assert model.coef_.shape == (3, 256)
        assert model.intercept_.shape == (3,)
        assert model.predict(X).shape == (442, 3)
        for i in range(3):
            single = ridge(random_state=0).fit(X, Y[:, i])
            assert single.coef_.shape == (256,)
            np.testing.assert_allclose(model.predict(X)[:, i], single.predict(X), rtol=1e-9)

    def test_does_not_depend_on_the_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X, y = diabetes()
        whole = ridge(alpha="loo", random_state=0).fit(X, y)
        monkeypatch.setattr(settings, "BLOCK_BYTES", 100 * 256 * 8)
        parts = ridge(alpha="loo", random_state=0).fit(X, y)
        assert parts.alpha_ == pytest.approx(whole.alpha_, rel=1e-12)
        np.testing.assert_allclose(parts.scores_, whole.scores_, rtol=1e-9)
        np.testing.assert_allclose(parts.predict(X), whole.predict(X), rtol=1e-9)

    def test_no_more_features_than_a_block_are_held(self, monkeypatch: pytest.MonkeyPatch) -> None:
        largest = 0

        class Recording(Identity):
            def transform(self, X: Any) -> Any:
                nonlocal largest
                largest = max(largest, X.shape[0])
                return X

        monkeypatch.setattr(settings, "BLOCK_BYTES", 100 * 12 * 8)
        model = ridge(features=Recording(), alpha="loo").fit(features(1000), targets(1000))
        model.predict(features(1000))
        std(model, features(1000))
        assert 0 < largest <= 100

    def test_of_a_constant_is_the_constant(self) -> None:
        X, _ = diabetes(100)
        for alpha in (1.0, "gcv"):
            model = ridge(alpha=alpha, random_state=0).fit(X, np.full(100, 4.0))
            np.testing.assert_allclose(model.predict(X), 4.0, rtol=1e-12)

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    def test_of_one_row_is_its_target(self) -> None:
        model = ridge(features=EVERYWHERE, random_state=0).fit([[1.0, 2.0]], [3.0])
        np.testing.assert_allclose(model.predict([[1.0, 2.0], [5.0, -1.0]]), 3.0)

    def test_of_duplicate_rows_and_one_column_is_smooth(self) -> None:
        x = np.repeat(np.linspace(-1.0, 1.0, 20), 5)[:, np.newaxis]
        model = ridge(alpha=1e-3, random_state=0).fit(x, np.sin(3.0 * x[:, 0]))
        assert model.score(x, np.sin(3.0 * x[:, 0])) > 0.999

    def test_whole_weights_repeat_rows_for_the_map_too(self) -> None:
        X, y = diabetes(100)
        times = np.random.default_rng(0).integers(0, 5, size=100)
        weighted = ridge(random_state=0).fit(X, y, times)
        repeated = ridge(random_state=0).fit(X.repeat(times, axis=0), y.repeat(times))
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)


class TestInputFormats:
    def test_all_layouts_and_sparse_formats_agree(self) -> None:
        X, y = digits(150)
        expected = ridge(random_state=0).fit(X, y).predict(X)
        read_only = X.copy()
        read_only.flags.writeable = False
        formats: list[Any] = [
            np.asfortranarray(X),
            np.repeat(X, 2, axis=1)[:, ::2],
            read_only,
            X.tolist(),
            sp.csr_array(X),
            sp.csc_matrix(X),
        ]
        for same in formats:
            sketch = GaussianSketch("scale", n_components=256, base_sketch="srht")
            model = ridge(features=sketch, random_state=0).fit(same, y)
            np.testing.assert_allclose(model.predict(same), expected, rtol=1e-6)

    def test_float32_rows_give_float32_predictions(self) -> None:
        X, y = diabetes()
        single = ridge(random_state=0).fit(X.astype(np.float32), y)
        double = ridge(random_state=0).fit(X, y)
        assert single.coef_.dtype == np.float64
        assert single.predict(X.astype(np.float32)).dtype == np.float32
        assert std(single, X.astype(np.float32)).dtype == np.float32
        assert double.predict(X).dtype == np.float64
        np.testing.assert_allclose(
            single.predict(X.astype(np.float32)), double.predict(X), rtol=1e-3
        )

    def test_inputs_are_left_as_they_are(self) -> None:
        X, y = waves(100)
        w = weights(100)
        w[:10] = 0.0
        copies = X.copy(), y.copy(), w.copy()
        ridge(alpha="loo", random_state=0).fit(X, y, w).predict(X)
        for array, copy in zip((X, y, w), copies, strict=True):
            np.testing.assert_array_equal(array, copy)


class TestPath:
    def test_leave_one_out_finds_the_noise(self) -> None:
        X, y = waves()
        model = ridge(alpha="loo", random_state=0).fit(X, y)
        assert model.alphas_.shape == model.scores_.shape == (50,)
        assert model.alpha_ == model.alphas_[np.argmin(model.scores_)]
        assert 0.008 < model.scores_.min() < 0.013  # the variance of the noise is 0.01
        fresh, smooth = waves(seed=1)
        assert np.mean((model.predict(fresh) - smooth) ** 2) < 0.013

    def test_generalised_cross_validation_is_near_it(self) -> None:
        X, y = waves()
        model = ridge(alpha="gcv", random_state=0).fit(X, y)
        fresh, smooth = waves(seed=1)
        assert np.mean((model.predict(fresh) - smooth) ** 2) < 0.014

    def test_scores_are_those_of_refits(self) -> None:
        Z, y, w = features(40, 6), targets(40), weights(40)
        alphas = [0.1, 1.0, 10.0]
        model = ridge(features=Identity(), alpha="loo", alphas=alphas).fit(Z, y, w)
        for alpha, score in zip(model.alphas_, model.scores_, strict=True):
            squares = []
            for i in range(40):
                rest = np.delete(np.arange(40), i)
                coef, intercept = brute_force(Z[rest], y[rest], alpha, w[rest])
                squares.append((y[i] - Z[i] @ coef - intercept) ** 2)
            assert score == pytest.approx(np.average(squares, weights=w), rel=1e-8)

    def test_many_rows_are_sampled_for_the_score_only(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, y = waves()
        whole = ridge(alpha="loo", random_state=0).fit(X, y)
        monkeypatch.setattr("powersketch.kernel_ridge.fitting.LEFT_OUT_ROWS", 200)
        sampled = ridge(alpha="loo", random_state=0).fit(X, y)
        assert not np.array_equal(sampled.scores_, whole.scores_)
        np.testing.assert_allclose(sampled.scores_, whole.scores_, rtol=0.5)
        np.testing.assert_array_equal(sampled.statistics_.gram, whole.statistics_.gram)
        assert left_out.LEFT_OUT_ROWS == 2048

    def test_the_end_of_the_path_is_reported(self) -> None:
        X, y = waves()
        model = ridge(alpha="loo", alphas=[10.0, 100.0], random_state=0)
        with pytest.warns(RegularisationWarning, match="alpha=10, the smallest") as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__
        assert model.alpha_ == 10.0

    def test_there_is_none_for_a_number(self) -> None:
        model = ridge(alpha=2.0, random_state=0).fit(*waves())
        assert model.alpha_ == 2.0
        for name in ("alphas_", "scores_"):
            with pytest.raises(AttributeError, match=f"{name} exists only if alpha is 'gcv' or"):
                getattr(model, name)


class TestEffectiveDimension:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_is_the_trace_of_its_definition(self, fit_intercept: bool) -> None:
        Z = features()
        model = ridge(features=Identity(), alpha=2.0, fit_intercept=fit_intercept)
        model.fit(Z, targets())
        D = Z - Z.mean(axis=0) if fit_intercept else Z
        expected = np.trace(np.linalg.solve(D.T @ D + 2.0 * np.eye(12), D.T @ D))
        assert model.effective_dimension_ == pytest.approx(expected, rel=1e-10)

    def test_follows_a_refit(self) -> None:
        model = ridge(features=Identity(), alpha=2.0).fit(features(), targets())
        first = model.effective_dimension_
        assert model.set_params(alpha=20.0).fit(features(), targets()).effective_dimension_ < first


class TestPartialFit:
    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    def test_equals_one_fit_with_the_same_map(self) -> None:
        X, y = diabetes()
        w = weights(len(y))
        streamed = ridge(features=EVERYWHERE, random_state=0)
        for start in range(0, 442, 100):
            part = slice(start, start + 100)
            streamed.partial_fit(X[part], y[part], w[part])
        Z = streamed.feature_map_.transform(X)
        expected = block_statistics(Z, y, w).solve(1.0)
        scale = np.abs(expected.coef).max()
        np.testing.assert_allclose(streamed.coef_, expected.coef, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(streamed.intercept_, expected.intercept, rtol=1e-9)
        assert streamed.statistics_.count == 442

    def test_continues_a_fit(self) -> None:
        X, y = diabetes()
        model = ridge(random_state=0).fit(X[:300], y[:300])
        before = model.predict(X)
        model.partial_fit(X[300:], y[300:])
        assert model.statistics_.count == 442
        assert not np.allclose(model.predict(X), before)

    def test_chooses_alpha_from_all_rows(self) -> None:
        X, y = waves()
        streamed = ridge(alpha="gcv", random_state=0)
        for start in range(0, 400, 100):
            streamed.partial_fit(X[start : start + 100], y[start : start + 100])
        assert streamed.alphas_.size == 50
        assert streamed.score(X, y) > 0.97

    def test_leaves_out_rows_of_all_blocks(self) -> None:
        X, y = diabetes()
        model = ridge(features=Identity(), alpha=1.0).partial_fit(X[:300], y[:300])
        model.partial_fit(X[300:], y[300:]).set_params(alpha="loo")
        whole = ridge(features=Identity(), alpha="loo").fit(X, y)
        np.testing.assert_allclose(model.scores_, whole.scores_, rtol=1e-9)
        assert model.alpha_ == pytest.approx(whole.alpha_, rel=1e-9)
        np.testing.assert_allclose(std(model, X), std(whole, X), rtol=1e-6)

    def test_leaves_out_a_sample_of_many_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("powersketch.kernel_ridge.blockwise.LEFT_OUT_ROWS", 100)
        X, y = waves()
        model = ridge(alpha="loo", random_state=0)
        for start in range(0, 400, 80):
            model.partial_fit(X[start : start + 80], y[start : start + 80])
        assert model.score(X, y) > 0.97
        kept = model._sample.rows
        assert kept.count == 100
        blocks = np.searchsorted(np.sort(y), kept.targets)
        assert np.isin(kept.targets, y).all()
        assert np.unique(blocks).size == 100

    def test_does_not_look_at_a_block_again(self) -> None:
        X, y = waves()
        expected = ridge(alpha="loo", random_state=0).partial_fit(X[:200], y[:200])
        expected.partial_fit(X[200:], y[200:])
        model = ridge(alpha="loo", random_state=0)
        buffer, values = X[:200].copy(), y[:200].copy()
        model.partial_fit(buffer, values)
        buffer[:], values[:] = X[200:], y[200:]  # as readers do that fill one array again and again
        model.partial_fit(buffer, values)
        np.testing.assert_array_equal(model.scores_, expected.scores_)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))

    @pytest.mark.parametrize("alpha", [0.1, "loo"])
    def test_continues_a_fit_with_the_exact_kernel(self, alpha: Any) -> None:
        X, y = waves()
        model = ridge(features="auto", alpha=alpha, random_state=0).fit(X[:300], y[:300])
        assert model.choice_.name == "exact"
        model.partial_fit(X[300:], y[300:])
        assert model.statistics_.count == 400
        assert not hasattr(model, "dual_coef_")
        whole = ridge(features="exact", alpha=model.alpha_).fit(X, y)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=0.02)

    def test_needs_the_same_columns_and_targets(self) -> None:
        X, y = diabetes()
        model = ridge(random_state=0).partial_fit(X[:100], y[:100])
        before = model.predict(X)
        with pytest.raises(ValueError, match="9 features, but SketchedKernelRidge is expecting 10"):
            model.partial_fit(X[:100, :9], y[:100])
        with pytest.raises(ValueError, match="cannot be merged"):
            model.partial_fit(X[:100], np.column_stack((y[:100], y[:100])))
        np.testing.assert_array_equal(model.predict(X), before)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"features": "row-sketch"}, "partial_fit cannot be used with features='row-sketch'"),
            ({"features": "exact"}, "partial_fit cannot be used with features='exact'"),
        ],
    )
    def test_refuses_what_needs_all_rows(self, parameters: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            ridge(**parameters).partial_fit(*diabetes())


class TestFailedFit:
    def test_leaves_the_last_one_intact(self) -> None:
        X, y = diabetes()
        model = ridge(random_state=0).fit(X, y)
        before = model.predict(X)

        class Breaking(Identity):
            def transform(self, X: Any) -> Any:
                raise KeyboardInterrupt

        model.set_params(kernel="auto", features=Breaking())
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :3], y)
        np.testing.assert_array_equal(model.predict(X), before)
        assert model.n_features_in_ == 10


class TestRandomness:
    def test_the_seed_is_kept_and_gives_the_same_bits(self) -> None:
        X, y = diabetes()
        model = ridge().fit(X, y)
        again = ridge(random_state=model.seed_, n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_a_map_with_its_own_seed_keeps_it(self) -> None:
        sketch = GaussianSketch("scale", n_components=30, random_state=5)
        model = ridge(features=sketch, random_state=0).fit(*diabetes())
        assert model.feature_map_.seed_ == 5


class TestStandardDeviation:
    def posterior(
        self, kernel: Any, X: NDArray[Any], w: NDArray[Any], new: NDArray[Any], alpha: float
    ) -> NDArray[Any]:
        """Return the variance of a Gaussian process of prior k and noise alpha / w."""
        K = kernel(X) + alpha * np.diag(1.0 / w)
        cross = kernel(new, X)
        return kernel.diagonal(new) - np.einsum("ij,ji->i", cross, np.linalg.solve(K, cross.T))

    @pytest.mark.parametrize("weighted", [True, False])
    def test_is_that_of_a_gaussian_process(self, weighted: bool) -> None:
        X, y = diabetes(150)
        X, alpha = X[:, :3], 0.5
        w = weights(150) if weighted else np.ones(150)
        kernel = kernels.Polynomial(2, 0.3, 1.0)  # 10 monomials: the features are exact
        model = ridge(kernel, alpha=alpha, fit_intercept=False)
        model.fit(X[:100], y[:100], w[:100] if weighted else None)
        Z, residuals = model.feature_map_.transform(X[:100]), y[:100] - model.predict(X[:100])
        np.testing.assert_allclose(Z @ Z.T, kernel(X[:100]), rtol=1e-10)
        noise = w[:100] @ residuals**2 / (100 - model.effective_dimension_)
        variance = self.posterior(kernel, X[:100], w[:100], X[100:], alpha)
        expected = np.sqrt(noise / alpha * variance + noise)
        assert model.noise_variance_ == pytest.approx(noise, rel=1e-8)
        np.testing.assert_allclose(std(model, X[100:]), expected, rtol=1e-6)

    def test_is_that_of_scikit_learn(self) -> None:
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

        X, y = diabetes(150)
        X = X[:, :3]
        model = ridge(features=Identity(), alpha=0.5, fit_intercept=False)
        model.fit(X[:100], y[:100])
        residuals = y[:100] - model.predict(X[:100])
        noise = residuals @ residuals / (100 - model.effective_dimension_)
        linear = DotProduct(sigma_0=0.0, sigma_0_bounds="fixed")
        prior = ConstantKernel(noise / 0.5, "fixed") * linear
        peer = GaussianProcessRegressor(prior, alpha=noise, optimizer=None).fit(X[:100], y[:100])
        mean, of_function = peer.predict(X[100:], return_std=True)
        np.testing.assert_allclose(model.predict(X[100:]), mean, rtol=1e-6)
        np.testing.assert_allclose(std(model, X[100:]), np.sqrt(of_function**2 + noise), rtol=1e-6)

    def test_a_free_intercept_is_a_constant_of_large_prior_variance(self) -> None:
        Z, y, alpha = features(50, 4), targets(50), 0.7
        model = ridge(features=Identity(), alpha=alpha).fit(Z, y)
        A = np.column_stack((Z, np.ones(50)))
        penalty = np.diag([alpha] * 4 + [1e-9])
        inverse = np.linalg.inv(A.T @ A + penalty)
        residuals = y - model.predict(Z)
        noise = residuals @ residuals / (50 - model.effective_dimension_ - 1)
        expected = np.sqrt(noise * (1.0 + np.einsum("ij,jk,ik->i", A, inverse, A)))
        np.testing.assert_allclose(std(model, Z), expected, rtol=1e-6)

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    def test_grows_away_from_the_data_to_the_prior(self) -> None:
        X, y = waves()
        model = ridge(features=EVERYWHERE, alpha=0.1, fit_intercept=False, random_state=0)
        model.fit(X, y)
        deviations = std(model, np.array([[0.0, 0.0], [3.0, 3.0]]))
        near, far = np.sqrt(deviations**2 - model.noise_variance_)
        assert 0.0 < near < 0.1 * far

    def test_has_a_column_for_every_target(self) -> None:
        X, y = diabetes()
        model = ridge(random_state=0).fit(X, np.column_stack((y, 3.0 * y)))
        deviations = std(model, X)
        assert deviations.shape == (442, 2)
        np.testing.assert_allclose(deviations[:, 1], 3.0 * deviations[:, 0], rtol=1e-8)
        assert model.noise_variance_[1] == pytest.approx(9.0 * model.noise_variance_[0], rel=1e-8)

    def test_follows_further_blocks(self) -> None:
        X, y = diabetes()
        model = ridge(random_state=0).partial_fit(X[:200], y[:200])
        before = std(model, X)
        assert std(model.partial_fit(X[200:], y[200:]), X).mean() < before.mean()

    def test_needs_a_penalty(self) -> None:
        model = ridge(features=Identity(), alpha=0.0).fit(features(), targets())
        with pytest.raises(ValueError, match="predictions needs alpha above 0"):
            std(model, features())

    def test_needs_degrees_of_freedom(self) -> None:
        X, y = diabetes(5)
        for rows, alpha in ((1, 1.0), (5, 1e-12)):
            model = ridge(alpha=alpha, random_state=0).fit(X[:rows], y[:rows])
            with pytest.raises(ValueError, match=f"for which {rows} rows leave .* larger alpha"):
                std(model, X)

    def test_of_float32_rows_is_that_of_float64(self) -> None:
        X, y = waves(2000)
        model = ridge(alpha=1e-6, n_components=64, random_state=0).fit(X, y)
        rounded = std(model, X[:50].astype(np.float32))
        np.testing.assert_allclose(rounded, std(model, X[:50]), rtol=1e-2)
