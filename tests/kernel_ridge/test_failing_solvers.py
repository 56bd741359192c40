"""Iterations on hard problems: the best so far is kept and described, or an error has a remedy."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from powersketch import GaussianSketch, LeverageNystroem, load, save
from powersketch.exceptions import InputError
from powersketch.kernel_ridge.choosing import solvers
from powersketch.kernel_ridge.solving import preconditioners
from powersketch.kernel_ridge.solving.row_products import BlockProducts
from powersketch.kernels import Gaussian
from tests.kernel_ridge.ridge_data import classifier, ridge


def waves(rows: int = 900) -> tuple[Any, Any]:
    X = np.random.default_rng(0).normal(size=(rows, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1]


def repeated_waves() -> tuple[Any, Any]:
    X, y = (np.repeat(part[:30], 30, axis=0) for part in waves())
    return X, y


def equal_landmarks() -> LeverageNystroem:
    """Return landmarks of which most are equal, as there are 30 different rows."""
    return LeverageNystroem(Gaussian(0.5), n_components=200, landmarks="uniform")


class Twice(TransformerMixin, BaseEstimator):
    """Columns twice, times a factor, and a constant one: features that depend on each other."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def fit(self, X: Any, y: Any = None) -> Twice:
        return self

    def transform(self, X: Any) -> Any:
        return self.factor * np.column_stack((X, X, np.ones(len(X))))


class TestPreconditioner:
    """One that cannot be factored is replaced by one that can; the solution is the same."""

    @pytest.mark.parametrize("alpha", [0.0, 1e-30])
    def test_of_dependent_features(self, alpha: float) -> None:
        X, y = waves()
        sums = ridge(features=Twice(), alpha=alpha, solver="gram").fit(X, y)
        model = ridge(features=Twice(), alpha=alpha, solver="cg").fit(X, y)
        np.testing.assert_allclose(model.predict(X), sums.predict(X), rtol=0, atol=0.1)

    def test_of_features_that_are_all_constant(self) -> None:
        X, y = waves(50)
        model = ridge(features=Twice(0.0), alpha=0.0, solver="cg").fit(X, y)
        np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-6)

    @pytest.mark.parametrize("alpha", [0.0, 1e-30])
    def test_of_few_rows_that_stand_for_all(self, alpha: float, monkeypatch: Any) -> None:
        monkeypatch.setattr(preconditioners, "MOST_FACTORED", 40)
        X, y = waves()
        sketch = GaussianSketch(0.5, n_components=64, random_state=0)
        sums = ridge(features=sketch, alpha=alpha, solver="gram").fit(X, y)
        model = ridge(features=sketch, alpha=alpha, solver="cg", tol=1e-4).fit(X, y)
        assert 1.0 - model.score(X, y) < 1.1 * (1.0 - sums.score(X, y)) + 1e-4

    def test_of_equal_landmarks(self) -> None:
        """They say little of the rows, but rows of a sample do."""
        X, y = repeated_waves()
        model = ridge(features=equal_landmarks(), alpha=1e-30, solver="cg", random_state=0)
        assert model.fit(X, y).solver_result_.converged
        assert model.score(X, y) > 0.999

    def test_of_equal_landmarks_alone(self, monkeypatch: Any) -> None:
        """They stagnate: what was reached is kept, and the warning names the alpha to exceed."""
        monkeypatch.setattr(preconditioners, "MOST_FACTORED", 0)  # too many for a sample
        X, y = repeated_waves()
        model = ridge(features=equal_landmarks(), alpha=1e-30, solver="cg", random_state=0)
        with pytest.warns(ConvergenceWarning, match=r"stagnated .* a larger alpha than 1e-30"):
            model.fit(X, y)
        assert not model.solver_result_.converged
        assert "stagnated" in repr(model.solver_result_)
        assert model.score(X, y) > 0.9
        better = ridge(features=equal_landmarks(), alpha=1e-3, solver="cg", tol=1e-4)
        assert better.set_params(random_state=0).fit(X, y).solver_result_.converged


class TestSumsOutOfRange:
    @pytest.mark.parametrize("alpha", [0.0, 1.0, "loo"])
    @pytest.mark.parametrize("factor", [1e25, 1e200, np.nan])
    def test_are_refused(self, factor: float, alpha: Any) -> None:
        X, y = waves(200)
        model = ridge(features=Twice(factor), alpha=alpha, solver="cg")
        with pytest.raises(InputError, match=r"infinite or NaN.* range of float32.*solver='gram'"):
            model.fit(X, y)

    def test_have_a_remedy(self) -> None:
        X, y = waves(200)
        model = ridge(features=Twice(1e25), alpha=1.0, solver="gram").fit(X, y)
        assert model.score(X, y) > 0.5


class TestMemory:
    @pytest.mark.parametrize("solver", ["auto", "gram", "cg"])
    @pytest.mark.parametrize("kind", ["sketch", "landmarks"])
    def test_a_size_that_fits_is_named(self, solver: str, kind: str) -> None:
        X, y = waves(1500)
        options: dict[str, Any] = {"features": kind, "solver": solver, "memory_budget": 4e7}
        model = ridge(n_components=1400, alpha=1.0, random_state=0, **options)
        with pytest.raises(InputError, match=r"are memory_budget=4e\+07") as caught:
            model.fit(X, y)
        named = re.search(r"n_components=(\d+) or fewer", str(caught.value))
        assert named is not None
        size = int(named[1])
        assert size > 100
        assert model.set_params(n_components=size).fit(X, y).score(X, y) > 0.9
        with pytest.raises(InputError):
            model.set_params(n_components=int(1.2 * size)).fit(X, y)


def interrupted_at(call: int, function: Any) -> Any:
    """Return the function such that one of its calls is interrupted."""
    calls: list[int] = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return interrupted


class TestInterrupt:
    """The alphas of a search have a factorisation for each few of them."""

    def test_of_the_first_factorisation(self, monkeypatch: Any) -> None:
        X, y = waves()
        model = ridge(features="landmarks", n_components=60, alpha=1.0, random_state=0).fit(X, y)
        before = model.predict(X)
        factor = interrupted_at(1, preconditioners.cholesky_in_place)
        monkeypatch.setattr(preconditioners, "cholesky_in_place", factor)
        with pytest.raises(KeyboardInterrupt) as caught:
            model.set_params(solver="cg").fit(X, y)
        note = caught.value.__notes__[0]
        assert "as it was before" in note
        assert "60 features of 900 rows by solver='cg', predicted to take" in note
        np.testing.assert_array_equal(model.predict(X), before)

    def test_of_a_better_preconditioner(self, monkeypatch: Any) -> None:
        """What the first one has reached is kept."""
        monkeypatch.setattr(preconditioners, "_FEWEST_STEPS", 1)
        monkeypatch.setattr(preconditioners, "_WORK_OF_READING", 1)
        factor = interrupted_at(2, preconditioners.cholesky_in_place)
        monkeypatch.setattr(preconditioners, "cholesky_in_place", factor)
        X, y = waves()
        model = ridge(features="landmarks", n_components=60, alpha=1e-3, random_state=0)
        with pytest.raises(KeyboardInterrupt) as caught:
            model.set_params(solver="cg").fit(X, y)
        assert (
            "the last solution with the preconditioner before was kept" in caught.value.__notes__[0]
        )
        assert model.solver_result_.interrupted
        assert model.solver_result_.iterations > 0
        assert model.score(X, y) > 0.0

    def test_of_a_later_factorisation(self, monkeypatch: Any) -> None:
        X, y = waves()
        factor = interrupted_at(2, preconditioners.cholesky_in_place)
        monkeypatch.setattr(preconditioners, "cholesky_in_place", factor)
        model = ridge(features="landmarks", n_components=60, solver="cg", random_state=0)
        model.set_params(alpha="loo", alphas=[1e-6, 1e-3, 1.0])
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X, y)
        assert re.search(r"before alpha=\S+ was tried; the best .* kept", caught.value.__notes__[0])
        assert model.solver_result_.interrupted
        assert model.alpha_ == 1.0  # the only one that was tried
        assert model.score(X, y) > 0.9

    def test_before_all_rows_took_part(self, monkeypatch: Any) -> None:
        X, y = waves()
        # The first call is without rows held out, the second also with all of them.
        monkeypatch.setattr(BlockProducts, "leave_out", interrupted_at(2, BlockProducts.leave_out))
        model = ridge(features="landmarks", n_components=60, solver="cg", random_state=0)
        model.set_params(alpha="loo")
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(X, y)
        assert "before all rows took part; the best" in caught.value.__notes__[0]
        assert model.score(X, y) > 0.9

    def test_of_sums(self, monkeypatch: Any) -> None:
        X, y = waves()
        monkeypatch.setattr(
            "powersketch.kernel_ridge.fitting.ridge_solution", interrupted_at(1, lambda: None)
        )
        with pytest.raises(KeyboardInterrupt) as caught:
            ridge(n_components=60, solver="gram", alpha=1.0).fit(X, y)
        assert "60 features of 900 rows by solver='gram'" in caught.value.__notes__[0]


@pytest.fixture
def iterates(monkeypatch: Any) -> None:
    """Let "auto" take iterations for few features, as it does for many."""
    monkeypatch.setattr(solvers, "_FEWEST_FEATURES", 1)
    monkeypatch.setattr(solvers, "_WORTH_IT", np.inf)


@pytest.mark.usefixtures("iterates")
class TestSumsAskedForLater:
    """ "auto" may iterate, and then everything that follows from sums is there all the same."""

    def fitted(self, solver: str, **options: Any) -> Any:
        X, y = waves()
        usual: dict[str, Any] = {"features": "sketch", "n_components": 60, "alpha": 1e-2}
        return ridge(solver=solver, random_state=0, **{**usual, **options}).fit(X, y)

    @pytest.mark.parametrize("kind", ["sketch", "landmarks"])
    @pytest.mark.parametrize("alpha", [1e-2, "loo"])
    def test_standard_deviations(self, kind: str, alpha: Any) -> None:
        X, _ = waves()
        model = self.fitted("auto", features=kind, alpha=alpha)
        assert "solver_result_" in vars(model)
        before = model.predict(X)
        after, deviations = model.predict(X, return_std=True)
        np.testing.assert_array_equal(before, after)
        sums = self.fitted("gram", features=kind, alpha=model.alpha_)
        if alpha != "loo":
            _, expected = sums.predict(X, return_std=True)
            np.testing.assert_allclose(deviations, expected, rtol=1e-6)
        np.testing.assert_allclose(model.noise_variance_, sums.noise_variance_, rtol=1e-6)
        np.testing.assert_allclose(model.effective_dimension_, sums.effective_dimension_, rtol=1e-6)

    def test_intervals_cover_rows(self) -> None:
        X, y = waves()
        y = y + np.random.default_rng(1).normal(size=len(y))
        model = self.fitted("auto", alpha="loo").fit(X[:600], y[:600])
        means, deviations = model.predict(X[600:], return_std=True)
        assert 0.9 < np.mean(np.abs(y[600:] - means) < 1.96 * deviations) < 0.99

    def test_blocks_can_be_added(self) -> None:
        X, y = waves()
        model, sums = self.fitted("auto"), self.fitted("gram")
        for each in (model, sums):
            each.partial_fit(X[:100] + 0.5, y[:100])
        np.testing.assert_allclose(model.predict(X), sums.predict(X), rtol=0, atol=1e-8)

    def test_who_changes_the_rows_does_not_mean_these(self) -> None:
        X, y = waves()
        model = ridge(features="sketch", n_components=60, alpha=1e-2, random_state=0).fit(X, y)
        X[:], y[:] = 0.0, 0.0
        np.testing.assert_allclose(
            model.statistics_.gram, self.fitted("gram").statistics_.gram, rtol=1e-9, atol=1e-9
        )

    def test_pickles_leave_the_rows_out(self) -> None:
        X, _ = waves()
        model = self.fitted("auto")
        pickled = pickle.dumps(model)
        assert X[:100].tobytes() not in pickled
        loaded = pickle.loads(pickled)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        with pytest.raises(AttributeError, match=r"which a pickle and a compact file leave out"):
            loaded.predict(X, return_std=True)

    def test_whole_files_keep_them(self, tmp_path: Any) -> None:
        X, _ = waves()
        model = self.fitted("auto")
        save(model, tmp_path / "whole", compact=False)
        _, deviations = load(tmp_path / "whole").predict(X, return_std=True)
        np.testing.assert_array_equal(deviations, model.predict(X, return_std=True)[1])
        save(model, tmp_path / "compact")
        with pytest.raises(AttributeError, match=r"compact=False"):
            load(tmp_path / "compact").predict(X, return_std=True)

    def test_probabilities_stay_as_they_were(self) -> None:
        X, y = waves()
        model = classifier(features="sketch", n_components=60, random_state=0).fit(X, y > 0.0)
        before = model.predict_proba(X)
        assert model.effective_dimension_ > 1.0
        np.testing.assert_array_equal(model.predict_proba(X), before)

    def test_sums_that_do_not_fit_are_refused(self) -> None:
        X, y = waves()
        model = self.fitted("auto")
        model.memory_budget = 1e6
        with pytest.raises(AttributeError, match=r"effective_dimension_ needs sums: 60 features"):
            _ = model.effective_dimension_
        assert model.score(X, y) > 0.9

    def test_the_choice_says_so(self) -> None:
        X, y = waves()
        model = ridge("auto", features="landmarks", n_components=60, random_state=0).fit(X, y)
        assert re.search(
            r"solved by iterations, predicted to take .* s of 'gram'", str(model.choice_)
        )
