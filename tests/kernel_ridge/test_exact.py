"""The exact kernel with alpha by leave-one-out: an identity, and the posterior beside it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from powersketch import SketchedKernelRidge
from powersketch.exceptions import InputError
from powersketch.kernel_ridge import SketchedKernelRidgeClassifier
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving import exact
from powersketch.kernel_ridge.solving.exact import exact_path
from powersketch.kernel_ridge.solving.left_out import LeftOut
from powersketch.kernel_ridge.solving.statistics import RidgeSolution
from powersketch.kernels import Gaussian
from powersketch.random_streams import RandomStreams
from tests.kernel_ridge.ridge_data import Float64, digits, ridge, std, waves, weights

KERNEL = Gaussian(2.0)
ALPHAS = np.logspace(-3, 1, 5)
STREAMS = RandomStreams(0, "exact")
each_branch = pytest.mark.parametrize("branch", ["decomposed", "factored"])
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])
each_weighting = pytest.mark.parametrize("weighted", [True, False])


def dual_fit(
    K: Float64, y: Float64, w: Float64, alpha: float, *, fit_intercept: bool
) -> tuple[Float64, Any]:
    """Return coefficients and intercept of kernel ridge regression from one dense system."""
    count = len(K)
    A = K + alpha * np.diag(1.0 / w)
    if not fit_intercept:
        return np.linalg.solve(A, y), 0.0
    system = np.block([[A, np.ones((count, 1))], [np.ones((1, count)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.concatenate((y, np.zeros((1, *y.shape[1:])))))
    return solution[:-1], solution[-1]


def left_out(K: Float64, y: Float64, w: Float64, alpha: float, *, fit_intercept: bool) -> Float64:
    """Return what every row is predicted to be by a fit of all others."""
    found = []
    for i in range(len(K)):
        rest = np.arange(len(K)) != i
        coef, intercept = dual_fit(
            K[np.ix_(rest, rest)], y[rest], w[rest], alpha, fit_intercept=fit_intercept
        )
        found.append(K[i, rest] @ coef + intercept)
    return np.array(found)


def use_branch(branch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_ROWS_TO_DECOMPOSE", 10**6 if branch == "decomposed" else 1)


class TestLeaveOneOut:
    @each_branch
    @each_intercept
    @each_weighting
    @pytest.mark.parametrize("count", [None, 2])
    def test_equals_refits(
        self,
        branch: str,
        fit_intercept: bool,
        weighted: bool,
        count: int | None,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        use_branch(branch, monkeypatch)
        X, y = waves(25)
        y = y if count is None else np.column_stack((y, y**2))
        w = weights(25) + 0.1 if weighted else np.ones(25)
        rows = TrainingRows(X, y, w if weighted else None)
        solution, kept = exact_path(
            rows,
            KERNEL,
            ALPHAS,
            fit_intercept=fit_intercept,
            streams=STREAMS,
            n_jobs=None,
            start=lambda: 1.0,
        )
        expected = {
            alpha: left_out(KERNEL(X), y, w, alpha, fit_intercept=fit_intercept) for alpha in ALPHAS
        }
        scores = [
            np.average(np.mean((y - found).reshape(25, -1) ** 2, axis=1), weights=w)
            for found in expected.values()
        ]
        np.testing.assert_allclose(solution.scores, scores, rtol=1e-8)
        # The largest alpha whose score is within half a standard error of the least.
        squares = [np.mean((y - e).reshape(25, -1) ** 2, axis=1) for e in expected.values()]
        least = int(np.argmin(scores))
        near = [
            score - scores[least] <= 0.5 * np.std(one - squares[least]) / 5.0 + 1e-12
            for one, score in zip(squares, scores, strict=True)
        ]
        assert solution.alpha == ALPHAS[least:][near[least:]][-1]
        best = expected[solution.alpha]
        np.testing.assert_allclose(kept.predictions.reshape(best.shape), best, rtol=1e-7, atol=1e-9)
        coef, intercept = dual_fit(KERNEL(X), y, w, solution.alpha, fit_intercept=fit_intercept)
        np.testing.assert_allclose(solution.coef, coef, rtol=0, atol=1e-8 * np.abs(coef).max())
        np.testing.assert_allclose(solution.intercept, intercept, rtol=1e-8, atol=1e-10)

    @each_weighting
    def test_both_branches_find_nearly_the_same_alpha(
        self, weighted: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        X, y = waves(300)
        w = weights(300) if weighted else None
        found = []
        for branch in ("decomposed", "factored"):
            use_branch(branch, monkeypatch)
            found.append(ridge(KERNEL, features="exact", alpha="loo").fit(X, y, w))
        assert 0.2 < found[1].alpha_ / found[0].alpha_ < 5.0
        assert found[1].scores_.min() < 1.02 * found[0].scores_.min()
        # Downhill from a good start, few alphas need a factorisation.
        assert found[1].alphas_.size < 12

    def test_given_alphas_that_are_too_small_to_factor_are_named(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        use_branch("factored", monkeypatch)
        X, y = waves(200)
        model = ridge(Gaussian(1e-3), features="exact", alpha="loo", alphas=[1e-30, 1.0])
        with pytest.raises(InputError, match=r"alpha=1e-30 is too small .* give larger alphas"):
            model.fit(X, y)

    def test_of_many_rows_some_make_the_score(self, monkeypatch: pytest.MonkeyPatch) -> None:
        X, y = waves(300)
        whole = ridge(KERNEL, features="exact", alpha="loo", random_state=0).fit(X, y)
        monkeypatch.setattr(exact, "_LEFT_OUT_ROWS", 150)
        some = ridge(KERNEL, features="exact", alpha="loo", random_state=0).fit(X, y)
        assert not np.array_equal(some.scores_, whole.scores_)
        np.testing.assert_allclose(some.scores_, whole.scores_, rtol=0.5)

    @each_intercept
    def test_another_cost_chooses_another_alpha(self, fit_intercept: bool) -> None:
        X, y = waves(60)
        rows = TrainingRows(X, y, None)

        def far_from_a_third(kept: LeftOut) -> Float64:
            return np.abs(kept.slacks - 1 / 3)

        def path(**costs: Any) -> tuple[RidgeSolution, LeftOut]:
            return exact_path(
                rows,
                KERNEL,
                np.logspace(-3, -1, 9),
                fit_intercept=fit_intercept,
                streams=STREAMS,
                n_jobs=None,
                start=lambda: 1.0,
                **costs,
            )

        usual, other = path()[0], path(costs=far_from_a_third)[0]
        assert other.alpha != usual.alpha
        assert usual.scores is not None
        assert other.scores is not None
        np.testing.assert_array_equal(other.scores, usual.scores)  # squares in any case
        near = other.scores <= 1.1 * other.scores.min()
        assert near[other.alphas == other.alpha]

    def test_classifiers_take_the_alpha_of_the_most_likely_labels(self) -> None:
        X, labels = digits(120)
        model = SketchedKernelRidgeClassifier(Gaussian(0.02), features="exact").fit(X, labels)
        costs = []
        for alpha in model.alphas_[model.scores_ <= 1.1 * model.scores_.min()]:
            one = clone(model).set_params(alphas=[alpha]).fit(X, labels)
            chances = one._row_costs(one._left_out)
            costs.append((alpha, chances))
        least = int(np.argmin([np.mean(cost) for _, cost in costs]))
        near = [
            alpha
            for alpha, cost in costs[least:]
            if np.mean(cost - costs[least][1])
            <= max(0.5 * np.std(cost - costs[least][1]) / np.sqrt(120), 1e-6 * np.mean(cost))
        ]
        assert model.alpha_ == near[-1] != model.alphas_[np.argmin(model.scores_)]

    def test_the_largest_of_equal_alphas_is_taken(self) -> None:
        y = waves(40)[1]
        model = ridge(KERNEL, features="exact", alpha="loo").fit(np.zeros((40, 2)), y)
        assert model.alpha_ == model.alphas_[-1]
        np.testing.assert_allclose(model.predict(np.zeros((3, 2))), y.mean(), rtol=1e-9)

    def test_finds_the_noise_as_features_do(self) -> None:
        X, y = waves(400)
        model = ridge(KERNEL, features="exact", alpha="loo").fit(X, y)
        assert 0.008 < model.scores_.min() < 0.013  # the variance of the noise is 0.01
        fresh, wanted = waves(seed=1)
        assert np.mean((model.predict(fresh) - wanted) ** 2) < 0.013
        assert 0.0085 < model.noise_variance_ < 0.0115


class TestPosterior:
    def model(self, **parameters: Any) -> SketchedKernelRidge:
        return ridge(KERNEL, features="exact", **parameters)

    def test_is_that_of_scikit_learns_gaussian_process(self) -> None:
        X, y = waves(120)
        model = self.model(alpha=0.05, fit_intercept=False, tol=1e-10).fit(X, y)
        noise = float(model.noise_variance_)
        prior = ConstantKernel(noise / 0.05, "fixed") * RBF(0.5, "fixed")  # gamma = 1 / (2 l²)
        peer = GaussianProcessRegressor(prior, alpha=noise, optimizer=None).fit(X, y)
        new = waves(50, seed=3)[0]
        mean, of_function = peer.predict(new, return_std=True)
        np.testing.assert_allclose(model.predict(new), mean, rtol=1e-6)
        np.testing.assert_allclose(std(model, new), np.sqrt(of_function**2 + noise), rtol=1e-6)

    @each_weighting
    @each_intercept
    def test_is_the_formula(self, weighted: bool, fit_intercept: bool) -> None:
        X, y = waves(60)
        new, alpha = waves(20, seed=3)[0], 0.05
        w = weights(60) + 0.1 if weighted else np.ones(60)
        model = self.model(alpha=alpha, fit_intercept=fit_intercept, tol=1e-11)
        model.fit(X, y, w if weighted else None)
        A = KERNEL(X) + alpha * np.diag(1.0 / w)
        cross = KERNEL(X, new)
        if fit_intercept:  # by the conditions on coefficients and intercept at once
            A = np.block([[A, np.ones((60, 1))], [np.ones((1, 60)), np.zeros((1, 1))]])
            cross = np.vstack((cross, np.ones(20)))
        inverse = np.linalg.inv(A)
        unknown = 1.0 - np.einsum("ij,ik,kj->j", cross, inverse, cross)
        freedom = np.sum(alpha * inverse.diagonal()[:60] / w)
        residuals = y - model.predict(X)
        noise = w @ residuals**2 / freedom
        assert model.noise_variance_ == pytest.approx(noise, rel=1e-6)
        expected = np.sqrt(noise * (1.0 + unknown / alpha))
        np.testing.assert_allclose(std(model, new), expected, rtol=1e-6)

    def test_is_that_of_exact_features(self) -> None:
        X, y = waves(80)
        primal = ridge(KERNEL, features="landmarks", n_components=80, alpha=0.1).fit(X, y)
        dual = self.model(alpha=0.1, tol=1e-10).fit(X, y)
        new = waves(30, seed=2)[0]
        assert dual.noise_variance_ == pytest.approx(primal.noise_variance_, rel=1e-4)
        np.testing.assert_allclose(std(dual, new), std(primal, new), rtol=1e-3)

    def test_has_a_column_for_every_target(self) -> None:
        X, y = waves(150)
        model = self.model(alpha="loo").fit(X, np.column_stack((y, 3.0 * y)))
        deviations = std(model, X)
        assert deviations.shape == (150, 2)
        np.testing.assert_allclose(deviations[:, 1], 3.0 * deviations[:, 0], rtol=1e-8)

    def test_survives_a_pickle(self) -> None:
        X, y = waves(150)
        model = self.model(alpha="loo").fit(X, y)
        expected = std(model, X)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(std(again, X), expected)
        assert len(pickle.dumps(model)) < 20 * X.nbytes  # no matrix of rows × rows

    def test_needs_a_penalty_and_freedom(self) -> None:
        X, y = waves(20)
        with pytest.raises(InputError, match="needs alpha above 0"):
            std(ridge(Gaussian(500.0), features="exact", alpha=0.0).fit(X, y), X)
        with pytest.raises(InputError, match="for which 1 rows leave"):
            std(self.model(alpha=1.0).fit(X[:1], y[:1]), X)


@pytest.mark.parametrize("noise", ["normal", "heteroscedastic", "heavy tails"])
@pytest.mark.parametrize("kind", ["exact", "sketch", "chosen"])
def test_intervals_cover_95_percent(noise: str, kind: str) -> None:
    """Of 4000 new rows, by a model of 600: a correct one is outside of 92–97 % with p < 1e-3."""
    generator = np.random.default_rng(5)

    def data(rows: int) -> tuple[Float64, Float64]:
        X = generator.uniform(-1.0, 1.0, (rows, 2))
        errors = {
            "normal": generator.normal(size=rows),
            "heteroscedastic": generator.normal(size=rows) * (0.3 + np.abs(X[:, 0])),
            "heavy tails": generator.standard_t(3, size=rows),
        }[noise]
        return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.2 * errors

    model = SketchedKernelRidge(random_state=0)
    if kind != "chosen":
        model.set_params(kernel="gaussian", features=kind)
    model.fit(*data(600))
    X, y = data(4000)
    predictions, deviations = model.predict(X, return_std=True)
    inside = np.mean(np.abs(y - predictions) <= 1.96 * deviations)
    assert 0.92 < inside < 0.97


def test_a_number_for_alpha_leaves_deviations_as_they_are() -> None:
    """The documented formula; only leave-one-out residuals could tell that they are too small."""
    X, y = waves(300)
    y = y + 0.5 * np.random.default_rng(0).standard_t(2, size=300)
    chosen = ridge(KERNEL, features="exact", alpha="loo").fit(X, y)
    given = ridge(KERNEL, features="exact", alpha=chosen.alpha_, tol=1e-10).fit(X, y)
    assert given.noise_variance_ == pytest.approx(chosen.noise_variance_, rel=1e-5)
    ratio = std(chosen, X) / std(given, X)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert abs(ratio[0] - 1.0) > 0.05
    block = ridge(features="sketch", alpha=1.0, random_state=0)
    np.testing.assert_allclose(
        std(block.partial_fit(X, y), X), std(ridge(random_state=0).fit(X, y), X), rtol=1e-6
    )


def test_a_classifier_is_chosen_by_leaving_out_too() -> None:
    X, y = digits(500)
    model = SketchedKernelRidgeClassifier(Gaussian(0.05), features="exact", alpha="loo")
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.88
    assert model.scores_.shape == model.alphas_.shape == (50,)


@pytest.mark.parametrize("rows", [400, 2000])
def test_a_matrix_beyond_the_budget_is_refused(rows: int) -> None:
    X, y = waves(rows)
    model = ridge(KERNEL, features="exact", alpha="loo", memory_budget=1e6)
    with pytest.raises(InputError, match=r"memory_budget=1e\+06: .*or a number for alpha"):
        model.fit(X, y)
    assert not hasattr(model, "dual_coef_")
