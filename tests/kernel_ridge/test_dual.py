"""Ridge regression with the exact kernel, for any weights."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge

from powersketch import kernels
from powersketch.comparison.measure import peak_bytes
from powersketch.kernel_ridge import SketchedKernelRidge
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving.dual import DualSystem, exact_solution
from tests.kernel_ridge.ridge_data import classifier, diabetes, digits, ridge, waves, weights

KERNEL = kernels.Gaussian(0.05)
each_weighting = pytest.mark.parametrize("weighted", [True, False])


def uneven_weights(rows: int) -> NDArray[Any]:
    """Return weights from 1e-4 to 1e4."""
    return np.asarray(10.0 ** np.random.default_rng(3).uniform(-4.0, 4.0, size=rows))


def with_free_intercept(
    K: NDArray[Any], y: NDArray[Any], w: NDArray[Any], alpha: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return coefficients and intercept from the conditions on both at once."""
    n = len(K)
    system = np.block(
        [[K + alpha * np.diag(1.0 / w), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(system, np.concatenate((y, np.zeros((1, *y.shape[1:])))))
    return solution[:-1], solution[-1]


class TestExact:
    @each_weighting
    def test_is_scikit_learns_kernel_ridge(self, weighted: bool) -> None:
        X, y = diabetes(200)
        w = weights(200) + 0.1 if weighted else None
        model = ridge(KERNEL, features="exact", alpha=0.5, fit_intercept=False, tol=1e-10)
        model.fit(X, y, w)
        peer = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.05).fit(X, y, w)
        np.testing.assert_allclose(model.dual_coef_, peer.dual_coef_, rtol=0, atol=1e-6)
        np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-8)
        assert model.intercept_ == 0.0
        assert model.alpha_ == 0.5
        assert model.solver_result_.residual <= 1e-10

    @each_weighting
    def test_a_free_intercept_is_optimal(self, weighted: bool) -> None:
        X, y = diabetes(200)
        Y = np.column_stack((y, y**2 / 100))
        w = weights(200) + 0.1 if weighted else np.ones(200)
        model = ridge(KERNEL, features="exact", alpha=0.5, tol=1e-11)
        model.fit(X, Y, w if weighted else None)
        coef, intercept = with_free_intercept(KERNEL(X), Y, w, 0.5)
        np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-7)
        np.testing.assert_allclose(model.dual_coef_, coef, rtol=0, atol=1e-6)
        assert model.predict(X).shape == (200, 2)

    def test_is_what_exact_features_give(self) -> None:
        X, y = diabetes(150)
        kernel = kernels.Polynomial(2, 0.3, 1.0)
        primal = ridge(kernel, alpha=0.5).fit(X[:, :3], y)
        exact = ridge(kernel, alpha=0.5, features="exact", tol=1e-12).fit(X[:, :3], y)
        np.testing.assert_allclose(exact.predict(X[:, :3]), primal.predict(X[:, :3]), rtol=1e-7)

    @pytest.mark.parametrize("kernel", ["gaussian", kernels.Gaussian("scale")])
    def test_takes_the_kernel_from_the_data(self, kernel: Any) -> None:
        X, y = diabetes(150)
        model = ridge(kernel, features="exact").fit(X, y)
        assert model.kernel_.gamma == pytest.approx(1.0 / (10 * X.var()), rel=1e-12)
        for name in ("choice_", "feature_map_", "statistics_"):
            assert not hasattr(model, name)
        with pytest.raises(AttributeError, match="use dual_coef_"):
            _ = model.coef_
        with pytest.raises(
            AttributeError, match="effective_dimension_ exists only after a fit on features"
        ):
            _ = model.effective_dimension_

    def test_takes_sparse_rows_and_float32(self) -> None:
        X, y = digits(150)
        expected = ridge(KERNEL, features="exact").fit(X, y).predict(X)
        sparse = ridge(KERNEL, features="exact").fit(sp.csr_array(X), y)
        assert sp.issparse(sparse.X_fit_)
        np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), expected, rtol=1e-5)
        single = ridge(KERNEL, features="exact").fit(X.astype(np.float32), y)
        assert single.predict(X.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(single.predict(X.astype(np.float32)), expected, rtol=1e-3)

    def test_classifies(self) -> None:
        X, y = digits(500)
        model = classifier(KERNEL, features="exact", alpha=0.01)
        model.fit(X[:300], y[:300])
        assert model.score(X[300:], y[300:]) > 0.88
        assert model.dual_coef_.shape == (300, 10)

    def test_says_when_the_solver_has_failed(self) -> None:
        x = np.linspace(0.0, 1.0, 100)[:, np.newaxis]
        y, w = np.random.default_rng(0).normal(size=100), weights(100)
        model = ridge(kernels.Gaussian(1.0), features="exact", alpha=1e-14, tol=1e-14)
        with pytest.warns(ConvergenceWarning, match="residual") as caught:
            model.fit(x, y, w)
        assert caught[0].filename == __file__

    # The advice is about parameters of the estimator only.
    @each_weighting
    def test_advises_what_can_be_changed(self, weighted: bool) -> None:
        x = np.repeat(np.linspace(0.0, 1.0, 20), 2)[:, np.newaxis]
        y, w = np.random.default_rng(0).normal(size=40), weights(40) if weighted else None
        model = ridge(kernels.Gaussian(1.0), features="exact", alpha=0.0)
        advice = (
            r"singular to working precision.* use an alpha well above (\S+),.*features='sketch'"
        )
        with pytest.warns(ConvergenceWarning, match=advice) as caught:
            model.fit(x, y, w)
        message = str(caught[0].message)
        assert model.solver_result_.message == message
        assert "preconditioner" not in message
        assert "allow more" not in message
        match = re.search(advice, message)
        assert match is not None
        model.set_params(alpha=1e6 * float(match[1])).fit(x, y, w)
        assert model.solver_result_.converged

    @each_weighting
    def test_advises_a_larger_tolerance(self, weighted: bool) -> None:
        X, y = waves(150)
        w = uneven_weights(150) if weighted else None
        model = ridge(kernels.Gaussian(5.0), features="exact", alpha=1e-7, tol=1e-15)
        advice = (
            r"above tol=1e-15: use a larger tol, a larger alpha than 1e-07, or features='sketch'"
        )
        with pytest.warns(ConvergenceWarning, match=advice):
            model.fit(X, y, w)

    @each_weighting
    def test_refuses_tolerances_that_no_solver_reaches(self, weighted: bool) -> None:
        X, y = diabetes(20)
        model = ridge(KERNEL, features="exact", tol=1e-20)
        with pytest.raises(ValueError, match="tol=1e-20 is out of range"):
            model.fit(X, y, weights(20) if weighted else None)

    def test_a_fit_in_another_mode_leaves_nothing_behind(self) -> None:
        X, y = diabetes(100)
        model = ridge(KERNEL, features="exact", random_state=0).fit(X, y)
        model.set_params(features="sketch").fit(X, y)
        for name in ("X_fit_", "dual_coef_", "solver_result_"):
            assert not hasattr(model, name)
        model.set_params(features="exact").fit(X, y)
        assert not hasattr(model, "statistics_")


class TestUnevenWeights:
    """Weights over eight orders of magnitude: the preconditioner has to know every one."""

    KERNEL = kernels.Gaussian(5.0)

    def fitted(self, X: Any, y: Any, w: Any, **options: Any) -> SketchedKernelRidge:
        options = {"alpha": 0.1, "tol": 1e-8, "random_state": 0} | options
        return ridge(self.KERNEL, features="exact", **options).fit(X, y, w)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("alpha", [1e-4, 0.1, 1e3])
    @pytest.mark.parametrize("count", [None, 3])
    def test_a_factor_of_the_stored_matrix_takes_a_step(
        self, count: int | None, alpha: float, fit_intercept: bool
    ) -> None:
        X, y = waves(400)
        y = y if count is None else np.column_stack([y**power for power in range(1, count + 1)])
        w = uneven_weights(400)
        model = self.fitted(X, y, w, alpha=alpha, fit_intercept=fit_intercept)
        result = model.solver_result_
        assert result.iterations <= 2
        assert "Cholesky factor in float64" in result.preconditioner
        assert "jitter" not in result.preconditioner
        K = self.KERNEL(X)
        coef, intercept = with_free_intercept(K, y, w, alpha)
        if not fit_intercept:
            coef, intercept = np.linalg.solve(K + alpha * np.diag(1.0 / w), y), 0.0
        assert np.shape(model.dual_coef_) == y.shape
        np.testing.assert_allclose(
            model.dual_coef_, coef, rtol=0, atol=1e-5 * np.abs(coef).max(axis=0).min()
        )
        np.testing.assert_allclose(model.predict(X), K @ coef + intercept, rtol=0, atol=1e-5)

    def test_the_residual_is_that_of_the_weighted_system(self) -> None:
        X, y = waves(300)
        w = uneven_weights(300)
        model = self.fitted(X, y, w, fit_intercept=False, tol=1e-6, memory_budget=1)
        A = self.KERNEL(X) + 0.1 * np.diag(1.0 / w)
        residual = np.linalg.norm(y - A @ model.dual_coef_) / np.linalg.norm(y)
        assert model.solver_result_.residual == pytest.approx(residual, rel=1e-4)
        assert 0.0 < residual <= 1e-6

    def test_rows_of_weight_zero_are_left_out(self) -> None:
        X, y = waves(400)
        w = uneven_weights(400)
        w[::3] = 0.0
        kept = w > 0.0
        model = self.fitted(X, y, w)
        assert model.solver_result_.iterations <= 2
        assert model.X_fit_.shape == (kept.sum(), 2)
        coef, intercept = with_free_intercept(self.KERNEL(X[kept]), y[kept], w[kept], 0.1)
        expected = self.KERNEL(X, X[kept]) @ coef + intercept
        np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-6)

    # In float32, the factor of a diagonal that is not scaled would be refused.
    # The budget is enough for a matrix in float32 and its factor, but not for one in float64.
    @pytest.mark.parametrize("budget", [None, 2_100_000])
    @pytest.mark.parametrize(("alpha", "precision"), [(0.1, "float32"), (1e-4, "float64")])
    def test_float32_rows(self, alpha: float, precision: str, budget: int | None) -> None:
        X, y = waves(400)
        X = X.astype(np.float32)
        w = uneven_weights(400)
        model = self.fitted(X, y, w, alpha=alpha, fit_intercept=False, memory_budget=budget)
        result = model.solver_result_
        assert f"Cholesky factor in {precision}" in result.preconditioner
        assert f"stored in {'float64' if budget is None else 'float32'}" in result.operator
        if budget is None:
            assert result.iterations <= (2 if precision == "float64" else 8)
        A = self.KERNEL(X.astype(np.float64)) + alpha * np.diag(1.0 / w)
        assert np.linalg.norm(y - A @ model.dual_coef_) <= 2e-8 * np.linalg.norm(y)

    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize(
        ("budget", "way"), [(1.2e7, "recomputed"), (1.6e7, "recomputed"), (1e8, "stored")]
    )
    def test_keeps_to_a_memory_budget(
        self, budget: float, way: str, weighted: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("powersketch.kernel_systems.preconditioner._FACTORED_ROWS", 999)
        X, y = waves(3000)
        w = uneven_weights(3000) if weighted else None
        model = SketchedKernelRidge(
            self.KERNEL, features="exact", alpha=1.0, memory_budget=budget, random_state=0
        )
        assert peak_bytes(lambda: model.fit(X, y, w)) <= budget
        assert f"exact kernel, {way}" in model.solver_result_.operator

    def test_the_matrix_is_computed_once_for_products_and_factor(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, y = waves(200)
        w = uneven_weights(200)
        system = DualSystem(TrainingRows(X, y, w), self.KERNEL, 0.1, None, 0, None)
        calls = []
        original = kernels.Gaussian.__call__

        def counted(kernel: Any, *rows: Any, **options: Any) -> Any:
            calls.append(len(rows))
            return original(kernel, *rows, **options)

        monkeypatch.setattr(kernels.Gaussian, "__call__", counted)
        exact_solution(system, fit_intercept=True, tol=1e-8, verbose=0)
        assert calls == [1]

    @pytest.mark.parametrize("sparse", [True, False])
    @pytest.mark.parametrize("limited", ["memory", "rows"])
    def test_a_low_rank_knows_the_weights_too(
        self, limited: str, sparse: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, y = waves(400)
        w = uneven_weights(400)
        if limited == "rows":
            monkeypatch.setattr("powersketch.kernel_systems.preconditioner._FACTORED_ROWS", 399)
        model = self.fitted(
            sp.csr_array(X) if sparse else X,
            y,
            w,
            memory_budget=1 if limited == "memory" else None,
        )
        assert "rank 100" in model.solver_result_.preconditioner
        assert model.solver_result_.iterations <= 60  # with a mean of the weights, 4000 do not do
        coef, intercept = with_free_intercept(self.KERNEL(X), y, w, 0.1)
        expected = self.KERNEL(X) @ coef + intercept
        np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-4)

    @pytest.mark.parametrize("budget", [None, 1])
    @pytest.mark.parametrize("rows", [1, 2, 30])
    def test_few_rows_and_rows_of_zeros(self, rows: int, budget: int | None) -> None:
        X, y = waves(rows)
        X[::2] = 0.0
        w = uneven_weights(rows)
        kernel = kernels.Polynomial(2, 1.0, 0.0)  # zero where a row is
        model = ridge(
            kernel,
            features="exact",
            alpha=0.1,
            tol=1e-10,
            memory_budget=budget,
            fit_intercept=False,
        ).fit(X, y, w)
        expected = np.linalg.solve(kernel(X) + 0.1 * np.diag(1.0 / w), y)
        np.testing.assert_allclose(
            model.dual_coef_, expected, rtol=0, atol=1e-5 * np.abs(expected).max()
        )

    @pytest.mark.parametrize("budget", [None, 1])
    def test_without_a_penalty_weights_change_nothing(self, budget: int | None) -> None:
        X, y = waves(60)
        kernel = kernels.Gaussian(100.0)
        weighted, plain = (
            ridge(
                kernel, features="exact", alpha=0.0, tol=1e-10, memory_budget=budget, random_state=0
            ).fit(X, y, w)
            for w in (uneven_weights(60), None)
        )
        assert weighted.solver_result_.iterations == plain.solver_result_.iterations
        np.testing.assert_array_equal(weighted.dual_coef_, plain.dual_coef_)

    def test_classifies(self) -> None:
        X, y = digits(300)
        model = classifier(KERNEL, features="exact", alpha=0.01)
        model.fit(X, y, uneven_weights(300))
        assert model.solver_result_.iterations <= 2
        assert model.dual_coef_.shape == (300, 10)
