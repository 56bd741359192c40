"""features="auto" takes the better map for the data, of a size that the budget allows."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch import kernels
from powersketch.comparison.measure import peak_bytes
from powersketch.kernel_ridge.choosing.budgets import (
    Budget,
    bytes_of_block,
    bytes_of_fit,
    exact_fits,
)
from powersketch.kernel_ridge.choosing.maps import Candidate, _best, _fits, _size
from powersketch.kernel_ridge.rows.training_rows import BLOCK_BYTES, TrainingRows, row_blocks
from tests.kernel_ridge.ridge_data import (
    Float64,
    classifier,
    diabetes,
    digits,
    ridge,
    waves,
    weights,
)

LEVERAGE = Candidate("leverage", 0.2, 500, 1e-4, 0.1, 1e-10, 20)
SKETCH_MAP = replace(LEVERAGE, name="sketch", seconds_per_row=1e-6)


def rows(count: int) -> TrainingRows:
    return TrainingRows(np.zeros((count, 1)), np.zeros(count), None)


def clusters(count: int) -> tuple[Float64, Float64]:
    """Return points around 20 centres, and a number for each centre with a little noise."""
    generator = np.random.default_rng(0)
    labels = generator.integers(20, size=count)
    X = generator.normal(size=(20, 10))[labels] + 0.05 * generator.normal(size=(count, 10))
    return 3.0 * X, generator.normal(size=20)[labels] + 0.1 * generator.normal(size=count)


class TestBest:
    def test_is_the_one_of_the_least_error(self) -> None:
        worse = replace(SKETCH_MAP, error=0.3)
        best, why = _best((LEVERAGE, worse), 1000, Budget())
        assert best is LEVERAGE
        assert "0.2 (leverage" in why
        assert "0.3 (sketch" in why
        assert _best((replace(LEVERAGE, error=0.5), worse), 1000, Budget())[0] is worse

    def test_is_the_first_where_errors_are_equal(self) -> None:
        equal = replace(SKETCH_MAP, error=0.203)
        best, why = _best((equal, LEVERAGE), 1000, Budget())
        assert best is equal
        assert why.startswith("first of those within 2% of the least error, in this order; ")


class TestSize:
    def test_is_the_one_asked_for(self) -> None:
        assert _size(LEVERAGE, rows(1000), Budget(300))[0] == 300
        assert _size(SKETCH_MAP, rows(100), Budget(300))[0] == 300
        with pytest.warns(UserWarning, match="n_components=300 exceeds the 100 rows"):
            size, why = _size(LEVERAGE, rows(100), Budget(300))
        assert (size, why) == (100, "landmarks can be no more than the rows")

    def test_a_budget_that_is_too_small_is_named(self) -> None:
        with pytest.warns(UserWarning, match="even 32 features .* than memory_budget=1000"):
            assert _size(LEVERAGE, rows(1000), Budget(None, None, 1000.0))[0] == 32

    def test_is_what_sums_allow_without_a_budget(self) -> None:
        assert _size(LEVERAGE, rows(20), Budget())[0] == 20
        assert _size(LEVERAGE, rows(10_000), Budget())[0] == 4096
        size, why = _size(LEVERAGE, rows(10**6), Budget())
        assert size == 1000  # 10⁶ · 1000² products
        assert "as many features as their sums" in why

    @pytest.mark.parametrize("budget", [Budget(None, 1.0), Budget(None, 10.0, 4e8)])
    def test_is_the_largest_within_the_budget(self, budget: Budget) -> None:
        size, why = _size(SKETCH_MAP, rows(10**5), budget)
        assert _fits(SKETCH_MAP, 10**5, size, budget)
        assert not _fits(SKETCH_MAP, 10**5, 2 * size, budget)
        assert "predicted to take" in why

    def test_predicted_times_grow_with_rows_and_features(self) -> None:
        for candidate in (LEVERAGE, SKETCH_MAP):
            assert candidate.seconds(2000, 500) > candidate.seconds(1000, 500)
            assert candidate.seconds(1000, 1000) > 1.5 * candidate.seconds(1000, 500)


class TestEstimator:
    def test_landmarks_win_where_the_spectrum_decays(self) -> None:
        X, y = clusters(1000)
        model = ridge(features="auto", n_components=40, alpha=0.01, random_state=0).fit(X, y)
        errors = {candidate.name: candidate.error for candidate in model.choice_.candidates}
        assert set(errors) == {"leverage", "uniform", "sketch"}
        assert type(model.feature_map_).__name__ == "LeverageNystroem"
        assert model.choice_.name in ("leverage", "uniform")
        assert str(model.choice_).startswith("Nyström map with ")
        assert "landmarks of 40 features" in str(model.choice_) or "by leverage of 40" in str(
            model.choice_
        )
        assert errors[model.choice_.name] < 0.9 * errors["sketch"]
        assert model.score(X, y) > 0.9

    @pytest.mark.parametrize("alpha", [0.1, "loo", "gcv"])
    def test_is_as_good_as_the_better_candidate(self, alpha: float | str) -> None:
        X, y = digits(1400)
        chosen = classifier(features="auto", n_components=150, alpha=alpha, random_state=0).fit(
            X[:1000], y[:1000]
        )
        sketched = classifier(n_components=150, alpha=alpha, random_state=0).fit(X[:1000], y[:1000])
        assert chosen.score(X[1000:], y[1000:]) >= sketched.score(X[1000:], y[1000:]) - 0.02

    def test_takes_another_kernel(self) -> None:
        X, y = diabetes()
        kernel = kernels.Polynomial(2, 0.1, 1.0)
        for given, parameters in (
            (kernel, None),
            ("polynomial", {"degree": 2, "gamma": 0.1, "coef0": 1.0}),
        ):
            model = ridge(
                features="auto",
                kernel=given,
                kernel_params=parameters,
                n_components=30,
                random_state=0,
            ).fit(X, y)
            assert model.feature_map_.kernel_ == kernel

    def test_takes_the_exact_kernel_of_few_rows(self) -> None:
        X, y = diabetes(50)
        model = ridge(features="auto").fit(X, y)
        assert (model.choice_.name, model.choice_.n_components) == ("exact", 0)
        assert str(model.choice_) == "exact kernel: 50 rows are few enough for it"
        exact = ridge(features="exact").fit(X, y)
        np.testing.assert_array_equal(model.predict(X), exact.predict(X))

    def test_takes_features_where_rows_are_many_or_a_budget_is_small(self) -> None:
        assert exact_fits(7000, 10, Budget())
        assert not exact_fits(8000, 10, Budget())
        assert exact_fits(11_000, 5000, Budget())
        assert not exact_fits(1000, 10, Budget(seconds=0.01))
        assert not exact_fits(1000, 10, Budget(bytes=1e7))

    def test_gives_a_short_first_block_all_as_landmarks(self) -> None:
        X, y = diabetes(50)
        model = ridge(features="auto", random_state=0).partial_fit(X, y)
        assert model.choice_.n_components == 50
        assert model.choice_.candidates == ()
        assert "too few for a pilot" in model.choice_.reason
        exact = ridge(features="exact", random_state=0).fit(X, y)
        np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-3)

    def test_repeats_no_landmark_for_its_weight(self) -> None:
        X, y = diabetes(100)
        w = np.random.default_rng(0).integers(1, 6, 100).astype(float)
        model = ridge(features="auto", alpha=1e-3, random_state=0).partial_fit(X, y, w)
        assert np.unique(model.feature_map_.landmarks_, axis=0).shape[0] == 100
        exact = ridge(features="exact", alpha=1e-3, tol=1e-9).fit(X, y, w)
        np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-3)

    def test_says_that_the_first_block_is_too_short(self) -> None:
        X, y = waves(50)
        model = ridge(features="auto", n_components=400, alpha=0.1, random_state=0)
        with pytest.warns(UserWarning, match="n_components=400 exceeds the 50 rows"):
            model.partial_fit(X, y)
        assert model.choice_.n_components == 50

    def test_keeps_to_a_memory_budget(self) -> None:
        X, y = diabetes()
        model = ridge(features="auto", alpha="gcv", memory_budget=1e7, random_state=0).fit(X, y)
        assert model.choice_.n_components == 128
        assert model.coef_.shape == (128,)

    def test_takes_weights_and_sparse_rows(self) -> None:
        X, y = digits(400)
        w = weights(400)
        w[::3] = 0.0
        model = ridge(features="auto", n_components=50, random_state=0)
        model.fit(sp.csr_array(X), y, w)
        assert model.statistics_.count == np.count_nonzero(w)

    def test_chooses_from_the_first_block(self) -> None:
        X, y = waves(1000)
        model = ridge(features="auto", n_components=40, alpha=0.01, random_state=0)
        model.partial_fit(X[:500], y[:500])
        choice = model.choice_
        model.partial_fit(X[500:], y[500:])
        assert model.choice_ is choice
        assert model.score(X, y) > 0.97


def blocks(rows: int, columns: int) -> tuple[Float64, Float64]:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((rows, columns))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * generator.standard_normal(rows)


@pytest.mark.parametrize(
    ("rows", "budget", "least"),
    [(1000, 20e6, 256), (1000, 10e6, 128), (6000, 50e6, 512), (20_000, 20e6, 256)],
)
@pytest.mark.parametrize("alpha", [1.0, "loo", "gcv"])
def test_a_fit_takes_no_more_than_it_may(
    rows: int, budget: float, least: int, alpha: float | str
) -> None:
    X, y = blocks(rows, 6)
    model = ridge(features="auto", memory_budget=budget, alpha=alpha, random_state=0)
    model.fit(X, y)  # What is imported for the first time does not count.
    assert peak_bytes(lambda: model.fit(X, y)) <= budget
    assert model.choice_.n_components >= least
    assert peak_bytes(lambda: model.predict(X)) <= budget


def test_a_larger_budget_allows_more_features() -> None:
    X, y = blocks(2000, 5)
    sizes = [
        ridge(features="auto", alpha="gcv", memory_budget=budget, random_state=0)
        .fit(X, y)
        .choice_.n_components
        for budget in (9.5e6, 20e6, 100e6, 300e6)
    ]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("rows", [100, 1000])
def test_the_advised_budget_is_enough(rows: int) -> None:
    X, y = waves(rows)
    model = ridge(features="auto", alpha="gcv", memory_budget=1000, random_state=0)
    with pytest.warns(UserWarning, match="even 32 features .* more than memory_budget=1000") as w:
        model.fit(X, y)
    advised = int(re.search(r"give memory_budget=(\d+) or more", str(w[0].message))[1])  # type: ignore[index]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(memory_budget=advised).fit(X, y)
    assert model.choice_.n_components == 32
    with pytest.warns(UserWarning, match="more than memory_budget"):
        model.set_params(memory_budget=advised - 1).fit(X, y)


def test_the_advised_budgets_of_both_kinds_are_enough() -> None:
    X, y = waves(1000)
    model = ridge(features="auto", memory_budget=1000, time_budget=1e-9, random_state=0)
    with pytest.warns(UserWarning, match="bytes, more than .* s, more than time_budget=1e-09") as w:
        model.fit(X, y)
    found: Any = re.search(r"memory_budget=(\d+) and time_budget=(\S+) or", str(w[0].message))
    # What is predicted from measured times varies more on a busy machine than the advice allows.
    model.set_params(memory_budget=int(found[1]), time_budget=100 * float(found[2]))
    assert model.fit(X, y).choice_.n_components == 32


def test_few_rows_keep_to_a_budget_as_well() -> None:
    X, y = waves(120)
    whole = ridge(features="auto", alpha="gcv", memory_budget=1e8, random_state=0).fit(X, y)
    assert whole.choice_.n_components == 120
    part = ridge(features="auto", alpha="gcv", memory_budget=8.9e6, random_state=0).fit(X, y)
    assert part.choice_.n_components == 64
    assert "memory is limited" in part.choice_.reason


def test_blocks_get_shorter_where_memory_is_scarce() -> None:
    assert bytes_of_block(None, 100, 5) == BLOCK_BYTES
    need = bytes_of_fit(10**6, 500, 5)
    limit = bytes_of_block(need, 500, 5)
    assert [part.stop for part in row_blocks(200, 500, limit)] == [64, 128, 192, 200]
    assert bytes_of_block(1e12, 500, 5) == BLOCK_BYTES
    assert bytes_of_block(1.0, 500, 5) == 0


def test_blocks_that_are_added_keep_to_the_budget() -> None:
    X, y = blocks(3000, 6)
    model = ridge(features="auto", memory_budget=10e6, random_state=0)
    model.partial_fit(X, y)
    assert peak_bytes(lambda: model.partial_fit(X, y)) <= 10e6
