"""Iterations give what Gram matrices give, and sparse columns are never made dense."""

from __future__ import annotations

import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from powersketch import (
    GaussianSketch,
    LeverageNystroem,
    SketchedKernelRidge,
    SketchedKernelRidgeClassifier,
)
from powersketch.comparison.measure import peak_bytes
from powersketch.exceptions import InputError, RangeWarning
from powersketch.kernel_ridge import block_statistics
from powersketch.kernel_ridge.choosing import budgets, maps
from powersketch.kernel_ridge.choosing.solvers import Problem, planned
from powersketch.kernel_ridge.rows.training_rows import TrainingRows
from powersketch.kernel_ridge.solving import preconditioners
from powersketch.kernel_ridge.solving.features import Features
from powersketch.kernel_ridge.solving.iterative import IterativeRidge, _HeldOut, _Search, _Watch
from powersketch.kernel_ridge.solving.preconditioners import steps_with_landmarks
from powersketch.kernel_ridge.solving.row_products import (
    BlockProducts,
    DenseFeatures,
    LandmarkValues,
)
from powersketch.kernels import Gaussian
from powersketch.random_streams import RandomStreams
from tests.kernel_ridge.ridge_data import classifier, ridge, weights


def documents(rows: int = 200, columns: int = 5000, count: int | None = None) -> tuple[Any, Any]:
    """Return rows of few words, and a linear function of these with noise."""
    generator = np.random.default_rng(0)
    X = sp.random_array((rows, columns), density=0.01, rng=generator, format="csr")
    slopes = generator.normal(size=columns if count is None else (columns, count))
    y = X @ slopes
    return X, y + 0.1 * generator.normal(size=y.shape) + 2.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("count", [None, 2])
def test_they_give_ridge_regression(fit_intercept: bool, weighted: bool, count: int | None) -> None:
    X, y = documents(count=count)
    w = weights(200) + 0.1 if weighted else None
    model = ridge("linear", alpha=0.5, fit_intercept=fit_intercept, random_state=0).fit(X, y, w)
    peer = Ridge(0.5, fit_intercept=fit_intercept).fit(X.toarray(), y, w)
    np.testing.assert_allclose(model.predict(X), peer.predict(X.toarray()), rtol=0, atol=5e-4)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=0, atol=5e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=5e-4)


def test_a_column_of_zero_mean_keeps_the_intercept() -> None:
    """All means are zero here, and the intercept is the mean of the targets all the same."""
    X, y = documents(100)
    both = sp.vstack((X, -X)).tocsr()
    model = ridge("linear", alpha=0.5, random_state=0).fit(both, np.append(y, y))
    np.testing.assert_allclose(model.intercept_, y.mean(), rtol=1e-4)


def test_memory_stays_near_the_rows() -> None:
    X, y = documents(2000, 20_000)
    model = ridge("linear", alpha=0.5, random_state=0)
    model.fit(X[:50], y[:50])
    assert peak_bytes(lambda: model.fit(X, y)) < 0.1 * 8 * X.shape[0] * X.shape[1]


def test_blocks_cannot_be_added_in_silence() -> None:
    X, y = documents()
    model = ridge("linear", alpha=0.5, random_state=0).fit(X, y)
    before = model.predict(X)
    with pytest.raises(InputError, match=r"solved by iterations, .*on a clone"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)


def rings(rows: int) -> tuple[Any, Any]:
    """Return points of the plane, and which of three rings around the centre they are on."""
    X = np.random.default_rng(1).normal(size=(rows, 2))
    return X, np.digitize(np.hypot(*X.T), [0.8, 1.5])


def _iterate_from(features: int, monkeypatch: Any) -> None:
    """Let "auto" iterate for more features than these, and take the exact kernel for few rows."""
    monkeypatch.setattr("powersketch.kernel_ridge.settings.MOST_SUMMED_FEATURES", features)
    monkeypatch.setattr("powersketch.kernel_ridge.choosing.solvers._FEWEST_FEATURES", features)
    monkeypatch.setattr("powersketch.kernel_ridge.choosing.solvers._WORTH_IT", np.inf)
    monkeypatch.setattr(budgets, "_MOST_EXACT_ROWS", 500)


class TestLandmarks:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weight", [0.0, 0.3])
    @pytest.mark.parametrize("stored", [0, 400, 800])
    def test_they_give_what_sums_give(
        self, fit_intercept: bool, weight: float, stored: int
    ) -> None:
        X, labels = rings(800)
        targets = np.where(labels[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        landmarks = LeverageNystroem(
            Gaussian(0.5), n_components=60, landmarks="uniform", jitter=1e-5, random_state=0
        ).fit(X)
        features = Features(landmarks, weight)
        rows = TrainingRows(X, targets, None)
        values = LandmarkValues(features, rows, fit_intercept=fit_intercept, stored=stored)
        ridge = IterativeRidge(fit_intercept, 1e-6, seed=0)
        solution, _ = ridge.solve_given(values, 1.0)
        Z = features.transform(X)
        exact = block_statistics(Z, targets).solve(1.0, fit_intercept=fit_intercept)
        found = Z @ solution.coef.T + solution.intercept
        # Values are stored in float32, and iterations end at a residual of 1e-4.
        np.testing.assert_allclose(found, Z @ exact.coef.T + exact.intercept, rtol=0, atol=0.01)
        _, left_out, result = ridge.solve(values, 1.0, None, None)
        assert left_out.predictions.shape == (80, 3)
        assert result.errors is not None
        assert result.errors[-1] < result.errors[0]

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_all_rows_are_iterated_beside_those_not_held_out(self, fit_intercept: bool) -> None:
        X, labels = rings(200)
        targets = np.where(labels[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        landmarks = LeverageNystroem(
            Gaussian(0.5), n_components=60, landmarks="uniform", jitter=1e-5, random_state=0
        ).fit(X)
        rows, features = TrainingRows(X, targets, None), Features(landmarks)
        values = LandmarkValues(features, rows, fit_intercept=fit_intercept, stored=len(X))
        ridge = IterativeRidge(fit_intercept, 1e-6, seed=0)
        solution, left_out, _ = ridge.solve(values, 1.0, None, None)
        held = np.sort(RandomStreams(0, "kernel-ridge/held-out").sample("rows", 200, 20))
        Z, others = features.transform(X), np.delete(np.arange(200), held)
        every, without = (
            block_statistics(Z[some], targets[some]).solve(1.0, fit_intercept=fit_intercept)
            for some in (np.arange(200), others)
        )
        every_at, without_at = (Z[held] @ s.coef.T + s.intercept for s in (every, without))
        found = Z[held] @ solution.coef.T + solution.intercept
        distance = np.linalg.norm
        # Iterations end when errors level off, by then much nearer to their own side.
        assert distance(found - every_at) < 0.5 * distance(found - without_at)
        left = left_out.predictions
        assert distance(left - without_at) < 0.5 * distance(left - every_at)

    def test_rows_held_out_choose_alpha(self) -> None:
        X, labels = rings(800)
        targets = np.where(labels[:, np.newaxis] == np.arange(3), 1.0, -1.0)
        landmarks = LeverageNystroem(
            Gaussian(0.5), n_components=60, landmarks="uniform", jitter=1e-5, random_state=0
        ).fit(X)
        rows = TrainingRows(X, targets, None)
        values = LandmarkValues(Features(landmarks), rows, fit_intercept=True, stored=len(X))
        chosen, _, _ = IterativeRidge(True, 1e-6, seed=0).solve(values, "loo", None, 1e3)
        assert chosen.alpha < 100.0  # far below where the search began
        assert chosen.alphas is not None
        assert chosen.scores is not None
        assert chosen.scores[chosen.alphas == chosen.alpha] == chosen.scores.min()

    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("noise", [0.01, 3.0])
    def test_the_search_begins_near_the_best_alpha(self, noise: float, weighted: bool) -> None:
        """Few rows tell how much noise there is, whatever their weights are in sum."""
        X, _ = rings(3000)
        y = np.sin(X[:, 0]) + noise * np.random.default_rng(0).normal(size=3000)
        w = np.full(3000, 1e3) if weighted else None
        options: dict[str, Any] = {"features": "landmarks", "n_components": 100}
        sums = ridge(solver="gram", alpha="loo", random_state=0, **options).fit(X, y, w)
        landmarks = LeverageNystroem(
            Gaussian(0.5), n_components=100, landmarks="uniform", jitter=1e-5, random_state=0
        ).fit(X)
        rows = TrainingRows(X, y, w)
        values = LandmarkValues(Features(landmarks), rows, fit_intercept=True, stored=len(X))
        likely = values.likely_alpha()
        assert 0.02 < likely / sums.alpha_ < 50.0

    @pytest.mark.parametrize(("error", "goes_on"), [(0.9972, True), (0.997001, False)])
    def test_the_search_goes_on_by_what_can_be_explained(self, error: float, goes_on: bool) -> None:
        """A gain far below the noise is a large one where little can be explained at all."""
        targets = np.array([[-1.0], [1.0]])
        products: Any = SimpleNamespace(targets=targets, all_weights=np.ones(2))
        search = _Search(IterativeRidge(True, 1e-6, seed=0), products, np.arange(2))
        search.tried = {1.0: _HeldOut(error=0.997), 3.0: _HeldOut(error=error)}
        assert search._gains(1.0) is goes_on

    def test_classifiers_of_many_rows_take_more_of_them(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(budgets, "_ROWS_TO_ITERATE", 1000)
        monkeypatch.setattr(budgets, "_MOST_ITERATED", 300)
        monkeypatch.setattr(maps, "MOST_SUMMED_FEATURES", 100)
        _iterate_from(100, monkeypatch)
        X, labels = rings(2000)
        model = SketchedKernelRidgeClassifier(Gaussian(3.0), random_state=0).fit(
            X[:1500], labels[:1500]
        )
        assert model.choice_.n_components == 300
        assert "iterations" in str(model.choice_)
        assert model.score(X[1500:], labels[1500:]) > 0.95
        shares = model.predict_proba(X[1500:])
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)

    def test_regressors_keep_their_sums_with_columns_beside(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(budgets, "MOST_SUMMED_FEATURES", 100)
        _iterate_from(100, monkeypatch)
        X, labels = rings(2000)
        model = SketchedKernelRidge(Gaussian(3.0), linear=True, random_state=0).fit(X, labels)
        assert model.choice_.n_components + X.shape[1] > 100
        # Iterations would sum up rows as well, but later, and beside their own work.
        assert not hasattr(model, "solver_result_")
        assert "statistics_" in vars(model)
        _, deviations = model.predict(X[:10], return_std=True)
        assert (deviations > 0.0).all()


class TestPreconditioners:
    """Landmarks are a poor sample of rows where alpha leaves nearly all of their dimensions."""

    def rows(self) -> tuple[Any, Any]:
        X = np.random.default_rng(0).uniform(-3.0, 3.0, size=(4000, 2))
        return X, np.sin(5.0 * X[:, 0]) * np.cos(4.0 * X[:, 1])

    def fitted(self, monkeypatch: Any, fewest: float, most: int = 8192) -> Any:
        monkeypatch.setattr(preconditioners, "_WORK_OF_READING", 10)
        monkeypatch.setattr(preconditioners, "_FEWEST_STEPS", fewest)
        monkeypatch.setattr(preconditioners, "MOST_FACTORED", most)
        X, y = self.rows()
        landmarks = LeverageNystroem(
            Gaussian(8.0), n_components=200, landmarks="uniform", jitter=1e-5, random_state=0
        )
        model = ridge(features=landmarks, alpha=1e-2, solver="cg", tol=1e-3, random_state=0)
        return model.fit(X, y)

    def test_a_sample_takes_fewer_steps_to_the_same_solution(self, monkeypatch: Any) -> None:
        X, _ = self.rows()
        landmarks = self.fitted(monkeypatch, 0, most=0)
        at_once = self.fitted(monkeypatch, np.inf)
        later = self.fitted(monkeypatch, 1)
        results = [model.solver_result_ for model in (at_once, later, landmarks)]
        steps = [result.iterations for result in results]
        assert steps[0] < steps[1] < steps[2]
        assert steps[2] > 3 * steps[0]
        for model, result in zip((at_once, later, landmarks), results, strict=True):
            assert result.converged
            assert len(result.history) == result.iterations + 1
            np.testing.assert_allclose(model.predict(X), at_once.predict(X), rtol=0, atol=5e-3)
        made_of = [result.preconditioner for result in results]
        assert made_of == ["a sample of 800 rows", "a sample of 800 rows", "landmarks"]
        assert "iterations with landmarks went before" in results[1].message

    def test_the_time_of_a_sample_says_when(self) -> None:
        def steps(rows: int, features: int, patience: float = 1.0) -> float:
            return steps_with_landmarks(rows, features, 1, patience)

        assert steps(10**6, 4096) == 0.0  # a step takes as long
        assert steps(50_000, 4096) > 20.0
        assert steps(50_000, 4096, 2.0) == 2.0 * steps(50_000, 4096)
        assert steps(50_000, 16_384) == np.inf  # it would take too much memory


class _Steps:
    """Products of which step number k predicts a given number at the only row."""

    def __init__(self, sides: int, predictions: list[float]) -> None:
        self.sides, self._predictions = sides, iter(predictions)
        self.targets, self.all_weights = np.zeros((1, 1)), np.ones(1)

    def product(self, V: Any, rows: Any) -> Any:
        return np.full((len(rows), 1), next(self._predictions))

    def intercept(self, coef: Any) -> Any:
        return np.zeros(coef.shape[1])


@pytest.mark.parametrize(("sides", "kept"), [(1, 1.0), (2, 2.0)])
def test_the_last_step_counts_for_a_known_alpha(sides: int, kept: float) -> None:
    """Unless it is clearly worse than the best: where alphas are compared, the best one counts."""
    products: Any = _Steps(sides, [1.0, 0.5, 0.501, 0.6])
    watch = _Watch(products, np.array([0]), [1.0], classifies=False)
    for step in range(4):
        watch(np.full((3 * sides, 1), float(step)))
    np.testing.assert_array_equal(watch.found[1.0].coef, np.full((3, sides), kept))


def test_one_wide_row() -> None:
    X, y = documents(1)
    assert np.isfinite(ridge("linear", alpha=1.0).fit(X, y).predict(X)).all()


def test_sums_are_asked_for_in_vain() -> None:
    X, y = documents()
    with pytest.raises(InputError, match=r"alpha='gcv' needs sums .*use alpha='loo'"):
        ridge("linear", alpha="gcv").fit(X, y)


class TestSolver:
    """`solver="cg"` gives what sums give, whether features are stored or computed again."""

    @pytest.mark.parametrize("kind", ["sketch", "landmarks"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_is_that_of_sums(self, kind: str, dtype: Any, weighted: bool) -> None:
        X, labels = rings(900)
        w = weights(900) if weighted else None
        options: dict[str, Any] = {"features": kind, "n_components": 60, "alpha": 1.0}
        sums = ridge(solver="gram", random_state=0, **options).fit(X.astype(dtype), labels, w)
        model = ridge(solver="cg", tol=1e-5, random_state=0, **options)
        found = model.fit(X.astype(dtype), labels, w).predict(X)
        np.testing.assert_allclose(found, sums.predict(X), rtol=0, atol=0.01)
        assert model.solver_result_.history[-1] < model.solver_result_.history[0]

    @pytest.mark.parametrize("kind", ["sketch", "landmarks"])
    def test_what_is_computed_again_has_the_same_bits(self, kind: str, monkeypatch: Any) -> None:
        X, labels = rings(1500)
        X = X.astype(np.float32)
        options: dict[str, Any] = {"features": kind, "n_components": 60, "solver": "cg"}
        stored = classifier(random_state=0, **options).fit(X, labels)
        monkeypatch.setattr("powersketch.kernel_ridge.choosing.solvers._SHARE_TO_STORE", 0.0)
        again = classifier(random_state=0, **options).fit(X, labels)
        np.testing.assert_array_equal(stored.coef_, again.coef_)

    @pytest.mark.parametrize("stored", [0, 700, 1499])
    @pytest.mark.parametrize("kind", ["sketch", "landmarks"])
    def test_some_rows_stored_give_the_same_bits(self, kind: str, stored: int) -> None:
        X, labels = rings(1500)
        y, V = labels.astype(np.float64), np.random.default_rng(0).normal(size=(60, 3))
        if kind == "sketch":
            sketch = GaussianSketch(0.5, n_components=60, random_state=0).fit(X)
            products, features = DenseFeatures, Features(sketch)
        else:
            landmarks = LeverageNystroem(Gaussian(0.5), n_components=60, random_state=0).fit(X)
            products, features = LandmarkValues, Features(landmarks)
        whole, part = (
            products(features, TrainingRows(X, y, None), fit_intercept=True, stored=count)
            for count in (1500, stored)
        )
        some = np.array([0, 3, 650, 699, 700, 1400, 1499])
        for each in (whole, part):
            each.leave_out(np.arange(10))
        np.testing.assert_array_equal(whole.normal_product(V), part.normal_product(V))
        np.testing.assert_array_equal(whole.right_side(), part.right_side())
        # BLAS may add the products of other numbers of rows in another order.
        np.testing.assert_allclose(whole.block(some), part.block(some), rtol=1e-5, atol=1e-6)

    def test_what_maps_say_of_rows_is_said_and_looked_for_once(self, monkeypatch: Any) -> None:
        X, labels = rings(1500)
        sketch = GaussianSketch(0.5, n_components=60, random_state=0).fit(X)
        far = TrainingRows(5.0 * X, labels.astype(np.float64), None)
        products = DenseFeatures(Features(sketch), far, fit_intercept=True, stored=700)
        with pytest.warns(RangeWarning) as told:
            products.leave_out(np.arange(10))
        assert len(told) == 1
        others = len(products._parts) - 1
        assert f"The same is true of {others} other blocks of rows" in str(told[0].message)
        monkeypatch.setattr("powersketch.feature_maps.base.check_range", None)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            products.leave_out(np.arange(20))
            products.normal_product(np.ones((60, 1)))
        with pytest.raises(TypeError, match="not callable"):
            sketch.transform(far.X)

    @pytest.mark.parametrize("kind", ["sketch", "landmarks"])
    def test_alpha_is_chosen_at_rows_held_out(self, kind: str) -> None:
        X, labels = rings(900)
        model = ridge(features=kind, n_components=60, alpha="loo", solver="cg", random_state=0)
        model.fit(X, labels)
        assert model.scores_[model.alphas_ == model.alpha_] == model.scores_.min()
        errors = model.solver_result_.errors
        assert errors[-1] < 0.15 * labels.var()
        given = [1e-3, 1e-2, 10.0]
        model = ridge(
            features=kind, alpha="loo", alphas=given, solver="cg", n_components=60, random_state=0
        )
        assert model.fit(X, labels).alpha_ in given

    def test_many_features_are_inverted_by_some_rows(self, monkeypatch: Any) -> None:
        monkeypatch.setattr("powersketch.kernel_ridge.solving.preconditioners.MOST_FACTORED", 40)
        X, labels = rings(900)
        options: dict[str, Any] = {"n_components": 60, "alpha": 1.0, "random_state": 0}
        sums = ridge(solver="gram", **options).fit(X, labels)
        model = ridge(solver="cg", tol=1e-4, **options).fit(X, labels)
        np.testing.assert_allclose(model.predict(X), sums.predict(X), rtol=0, atol=0.01)

    def test_an_interrupt_keeps_what_was_reached(self, monkeypatch: Any) -> None:
        X, labels = rings(900)
        steps: list[int] = []
        product = BlockProducts.normal_product

        def interrupted(products: Any, V: Any) -> Any:
            steps.append(len(steps))
            if len(steps) == 6:
                raise KeyboardInterrupt
            return product(products, V)

        monkeypatch.setattr(BlockProducts, "normal_product", interrupted)
        monkeypatch.setattr(preconditioners, "MOST_FACTORED", 0)  # landmarks take more steps
        model = ridge(features="landmarks", n_components=60, solver="cg", alpha=1e-3)
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X, labels)
        assert "5 iterations" in caught.value.__notes__[0]
        assert model.solver_result_.interrupted
        monkeypatch.undo()
        assert model.score(X, labels) > 0.0

    def test_standard_deviations_and_blocks_need_sums(self) -> None:
        X, labels = rings(300)
        model = ridge(n_components=40, solver="cg", random_state=0).fit(X, labels)
        with pytest.raises(AttributeError, match=r"solver='gram'"):
            model.predict(X, return_std=True)
        with pytest.raises(InputError, match=r"solver='cg', which reads all rows again"):
            model.partial_fit(X, labels)
        with pytest.raises(InputError, match=r"solver='gram'"):
            ridge(alpha="gcv", solver="cg").fit(X, labels)


class TestPlan:
    def problem(self, **sizes: Any) -> Problem:
        usual: dict[str, Any] = {"rows": 60_000, "columns": 784, "features": 4096, "targets": 10}
        usual |= {"alphas": 1, "landmarks": True, "dtype": np.dtype(np.float32)}
        return Problem(**{**usual, **sizes})

    def test_a_path_is_for_sums_and_one_alpha_of_many_features_for_iterations(self) -> None:
        assert planned(self.problem(features=8192), "auto", 1e11).solver == "cg"
        many = self.problem(alphas=200, landmarks=False, features=1024, columns=20)
        assert planned(many, "auto", 1e11).solver == "gram"
        assert planned(self.problem(features=200), "auto", 1e11).solver == "gram"

    def test_nearly_dependent_landmarks_take_twice_the_bytes(self) -> None:
        """Their values are in float64, whatever the rows are in."""
        usual, precise = self.problem(), self.problem(precise=True)
        assert precise.bytes_of_row() == 2 * usual.bytes_of_row()
        stored = [planned(problem, "cg", 1e9).stored for problem in (usual, precise)]
        assert stored[1] < 0.6 * stored[0]

    def test_many_targets_are_counted(self) -> None:
        few, many = (self.problem(targets=count).bytes_of_iterations() for count in (1, 100))
        assert many - few > 40 * 99 * self.problem().rows

    def test_what_does_not_fit_is_computed_again_or_refused(self) -> None:
        problem = self.problem(features=8192)
        assert planned(problem, "cg", 2e10).stored == problem.rows
        some = planned(problem, "cg", 3e9)
        assert 0 < some.stored < problem.rows
        assert some.bytes <= 3e9
        assert planned(problem, "cg", 1.01 * problem.bytes_of_iterations()).stored < 1000
        with pytest.raises(InputError, match=r"memory_budget=1e\+09: use n_components=\d+00 or"):
            planned(self.problem(features=32_768), "cg", 1e9)

    def test_the_size_that_is_advised_fits(self) -> None:
        for solver in ("auto", "gram", "cg"):
            with pytest.raises(InputError) as caught:
                planned(self.problem(features=30_000), solver, 3e9)
            advised = int(re.search(r"n_components=(\d+)", str(caught.value))[1])  # type: ignore[index]
            assert planned(self.problem(features=advised), solver, 3e9).bytes <= 3e9

    def test_a_fit_says_so_before_it_begins(self) -> None:
        X, labels = rings(3000)
        model = ridge(features="landmarks", n_components=2000, memory_budget=1e7)
        with pytest.raises(InputError, match=r"2000 features of 3000 rows take at least"):
            model.fit(X, labels)
