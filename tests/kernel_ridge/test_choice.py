"""sketch="auto" takes the better map for the data, of a size that the budget allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import kernels
from powersketch.kernel_ridge import SketchedKernelRidge, SketchedKernelRidgeClassifier
from powersketch.kernel_ridge.choice import Budget, Candidate, _best, _fits, _size
from powersketch.kernel_ridge.primal import TrainingRows
from tests.kernel_ridge.ridge_data import diabetes, digits, waves, weights

LEVERAGE = Candidate("leverage", 0.2, 500, 1e-4, 0.1, 1e-10, 20)
OBLIVIOUS = replace(LEVERAGE, name="oblivious", seconds_per_row=1e-6)


def rows(count: int) -> TrainingRows:
    return TrainingRows(np.zeros((count, 1)), np.zeros(count), None)


def clusters(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points around 20 centres, and a number for each centre with a little noise."""
    generator = np.random.default_rng(0)
    labels = generator.integers(20, size=count)
    X = generator.normal(size=(20, 10))[labels] + 0.05 * generator.normal(size=(count, 10))
    return 3.0 * X, generator.normal(size=20)[labels] + 0.1 * generator.normal(size=count)


class TestBest:
    def test_is_the_one_of_the_least_error(self) -> None:
        worse = replace(OBLIVIOUS, error=0.3)
        best, why = _best((LEVERAGE, worse), 1000, Budget())
        assert best is LEVERAGE
        assert "0.2 (leverage" in why
        assert "0.3 (oblivious" in why
        assert _best((replace(LEVERAGE, error=0.5), worse), 1000, Budget())[0] is worse

    def test_is_the_cheaper_one_where_errors_are_equal(self) -> None:
        equal = replace(OBLIVIOUS, error=0.203)
        best, why = _best((equal, LEVERAGE), 1000, Budget())
        assert best is equal
        assert why.startswith("cheapest of those with equal errors")


class TestSize:
    def test_is_the_one_asked_for(self) -> None:
        assert _size(LEVERAGE, rows(1000), Budget(300))[0] == 300
        assert _size(OBLIVIOUS, rows(100), Budget(300))[0] == 300
        with pytest.warns(UserWarning, match="n_components=300 exceeds the 100 rows"):
            size, why = _size(LEVERAGE, rows(100), Budget(300))
        assert (size, why) == (100, "landmarks can be no more than the rows")

    def test_a_budget_that_is_too_small_is_named(self) -> None:
        with pytest.warns(UserWarning, match="even 32 features .* than memory_budget=1000"):
            assert _size(LEVERAGE, rows(1000), Budget(None, None, 1000.0))[0] == 32

    def test_grows_with_the_rows_without_a_budget(self) -> None:
        assert _size(LEVERAGE, rows(10_000), Budget())[0] == 922  # √n log n
        assert _size(LEVERAGE, rows(20), Budget())[0] == 14

    @pytest.mark.parametrize("budget", [Budget(None, 1.0), Budget(None, 10.0, 4e8)])
    def test_is_the_largest_within_the_budget(self, budget: Budget) -> None:
        size, why = _size(OBLIVIOUS, rows(10**5), budget)
        assert _fits(OBLIVIOUS, 10**5, size, budget)
        assert not _fits(OBLIVIOUS, 10**5, 2 * size, budget)
        assert "predicted to take" in why

    def test_predicted_times_grow_with_rows_and_features(self) -> None:
        for candidate in (LEVERAGE, OBLIVIOUS):
            assert candidate.seconds(2000, 500) > candidate.seconds(1000, 500)
            assert candidate.seconds(1000, 1000) > 1.5 * candidate.seconds(1000, 500)


class TestEstimator:
    def test_landmarks_win_where_the_spectrum_decays(self) -> None:
        X, y = clusters(1000)
        model = SketchedKernelRidge("auto", n_components=40, alpha=0.01, random_state=0).fit(X, y)
        errors = {candidate.name: candidate.error for candidate in model.choice_.candidates}
        assert set(errors) == {"leverage", "uniform", "oblivious"}
        assert type(model.sketch_).__name__ == "LeverageNystroem"
        assert model.choice_.name in ("leverage", "uniform")
        assert str(model.choice_).startswith("Nyström map with ")
        assert "landmarks of 40 features" in str(model.choice_) or "by leverage of 40" in str(
            model.choice_
        )
        assert errors[model.choice_.name] < 0.9 * errors["oblivious"]
        assert model.score(X, y) > 0.9

    @pytest.mark.parametrize("alpha", [0.1, "loo", "gcv"])
    def test_is_as_good_as_the_better_candidate(self, alpha: float | str) -> None:
        X, y = digits(1400)
        chosen = SketchedKernelRidgeClassifier(
            "auto", n_components=150, alpha=alpha, random_state=0
        ).fit(X[:1000], y[:1000])
        oblivious = SketchedKernelRidgeClassifier(
            n_components=150, alpha=alpha, random_state=0
        ).fit(X[:1000], y[:1000])
        assert chosen.score(X[1000:], y[1000:]) >= oblivious.score(X[1000:], y[1000:]) - 0.02

    def test_takes_another_kernel(self) -> None:
        X, y = diabetes()
        kernel = kernels.Polynomial(2, 0.1, 1.0)
        for given, parameters in (
            (kernel, None),
            ("polynomial", {"degree": 2, "gamma": 0.1, "coef0": 1.0}),
        ):
            model = SketchedKernelRidge(
                "auto", kernel=given, kernel_params=parameters, n_components=30, random_state=0
            ).fit(X, y)
            assert model.sketch_.kernel_ == kernel

    def test_gives_few_rows_all_as_landmarks(self) -> None:
        X, y = diabetes(50)
        model = SketchedKernelRidge("auto", random_state=0).fit(X, y)
        assert model.choice_.n_components == 50
        assert model.choice_.candidates == ()
        assert "too few for a pilot" in model.choice_.reason
        exact = SketchedKernelRidge(mode="exact", random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-3)

    def test_repeats_no_landmark_for_its_weight(self) -> None:
        X, y = diabetes(100)
        w = np.random.default_rng(0).integers(1, 6, 100).astype(float)
        model = SketchedKernelRidge("auto", alpha=1e-3, random_state=0).fit(X, y, w)
        assert np.unique(model.sketch_.landmarks_, axis=0).shape[0] == 100
        exact = SketchedKernelRidge(mode="exact", alpha=1e-3, tol=1e-9).fit(X, y, w)
        np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-3)

    def test_says_that_the_first_block_is_too_short(self) -> None:
        X, y = waves(50)
        model = SketchedKernelRidge("auto", n_components=400, alpha=0.1, random_state=0)
        with pytest.warns(UserWarning, match="n_components=400 exceeds the 50 rows"):
            model.partial_fit(X, y)
        assert model.choice_.n_components == 50

    def test_has_the_given_size_in_a_row_sketch(self) -> None:
        X, y = waves(300)
        model = SketchedKernelRidge(
            "auto", mode="row-sketch", n_components=90, alpha=1.0, random_state=0
        )
        assert model.fit(X, y).sketch_.n_components_ == 90

    def test_keeps_to_a_memory_budget(self) -> None:
        X, y = diabetes()
        model = SketchedKernelRidge("auto", memory_budget=1e7, random_state=0).fit(X, y)
        assert model.choice_.n_components == 128
        assert model.coef_.shape == (128,)

    def test_takes_weights_and_sparse_rows(self) -> None:
        X, y = digits(400)
        w = weights(400)
        w[::3] = 0.0
        model = SketchedKernelRidge("auto", n_components=50, random_state=0)
        model.fit(sp.csr_array(X), y, w)
        assert model.statistics_.count == np.count_nonzero(w)

    def test_chooses_from_the_first_block(self) -> None:
        X, y = waves(1000)
        model = SketchedKernelRidge("auto", n_components=40, alpha=0.01, random_state=0)
        model.partial_fit(X[:500], y[:500])
        choice = model.choice_
        model.partial_fit(X[500:], y[500:])
        assert model.choice_ is choice
        assert model.score(X, y) > 0.97
