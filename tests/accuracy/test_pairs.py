"""Errors over all pairs of rows and over the diagonal: exact, or from samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from powersketch import PolynomialSketch
from powersketch.accuracy import Interval
from powersketch.accuracy.pairs import (
    ExactPairs,
    IndependentPairs,
    dominance_in_diagonal,
    dominance_in_pairs,
    without_dominant_rows,
)
from powersketch.accuracy.rows import DataRows, RowSample
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import (
    KeptNorms,
    Projected,
    Stretched,
    all_entries,
    drawn_sample,
    pair_errors,
    random_rows,
    relative_error,
)

KINDS = ("equal", "clustered", "heavy", "low-rank")


def all_rows(X: Any) -> RowSample:
    return RowSample.of_all(DataRows.of(X))


class TestAllPairs:
    @pytest.mark.parametrize("kind", KINDS)
    def test_equals_brute_force(self, kind: str) -> None:
        X, sketch = random_rows(kind, 60, 9, 0), Projected(9, 20)
        found = pair_errors(sketch, all_rows(X)).frobenius(0.99)
        assert found.exact
        assert found.value == pytest.approx(relative_error(sketch, X), rel=1e-12)

    def test_root_mean_square_equals_brute_force(self) -> None:
        X, sketch = random_rows("equal", 40, 9, 1), Projected(9, 20)
        Z, K = sketch.transform(X), sketch.kernel_(X)
        expected = math.sqrt(np.mean((Z @ Z.T - K)[~np.eye(40, dtype=bool)] ** 2))
        found = pair_errors(sketch, all_rows(X)).root_mean_square(0.99)
        assert found.exact
        assert found.value == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("factor", [0.0, 0.5, 1.1, 30.0])
    def test_known_error(self, factor: float) -> None:
        X = random_rows("equal", 30, 4, 2)
        found = pair_errors(Stretched(factor), all_rows(X)).frobenius(0.99)
        assert found.value == pytest.approx(abs(factor**2 - 1), rel=1e-12)

    @pytest.mark.parametrize("power", [-140, 140])
    def test_squares_of_entries_neither_overflow_nor_vanish(self, power: int) -> None:
        X = random_rows("equal", 30, 4, 2) * 10.0**power
        found = pair_errors(Stretched(1.1), all_rows(X))
        assert found.frobenius(0.99).value == pytest.approx(0.21, rel=1e-12)

    def test_two_rows(self) -> None:
        found = pair_errors(Stretched(1.1), all_rows(np.ones((2, 1)))).frobenius(0.99)
        assert found.value == pytest.approx(0.21)

    def test_rows_of_zeros_have_no_error(self) -> None:
        found = pair_errors(Stretched(1.1), all_rows(np.zeros((5, 3)))).frobenius(0.99)
        assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)

    def test_orthogonal_rows_that_are_mixed_up_are_infinitely_wrong(self) -> None:
        sketch = Projected(5, 3)
        found = pair_errors(sketch, all_rows(np.eye(5))).frobenius(0.99)
        assert (found.low, found.high) == (math.inf, math.inf)

    def test_float32_and_sparse_rows(self) -> None:
        X = random_rows("equal", 30, 4, 2)
        expected = pair_errors(Stretched(1.1), all_rows(X)).frobenius(0.99).value
        for given in (
            X.astype(np.float32),
            sp.csr_array(X),
            sp.csc_matrix(X),
            np.asfortranarray(X),
        ):
            found = pair_errors(Stretched(1.1), all_rows(given)).frobenius(0.99)
            assert found.value == pytest.approx(expected, rel=1e-5)


class TestIntervals:
    def test_contain_the_exact_value(self) -> None:
        """Of 100 intervals of 99 %, correct ones hold at least 96 but for a risk of 0.4 %."""
        held = 0
        for trial in range(100):
            kind, degree = KINDS[trial % 4], 1 + trial // 4 % 3
            X = random_rows(kind, 400, 6, trial)
            X /= np.abs(X).max()
            sketch = Projected(6, 12, trial, Polynomial(1))
            if degree > 1:
                sketch = _powers(sketch, degree)
            rows = DataRows.of(X)
            sample = drawn_sample(sketch, rows, RandomStreams(trial), 150)
            held += relative_error(sketch, X) in pair_errors(sketch, sample).frobenius(0.99)
        assert held >= 96

    def test_hold_for_new_rows(self) -> None:
        """Rows of one distribution: 96 of 100 intervals of 99 % hold but for a risk of 0.4 %."""
        sketch, everything = Projected(5, 30), random_rows("equal", 3000, 5, 99)
        truth, held = relative_error(sketch, everything), 0
        for trial in range(100):
            rows = DataRows.of(random_rows("equal", 150, 5, trial))
            sample = RowSample.of_all(rows, for_new_rows=True)
            found = pair_errors(sketch, sample).frobenius(0.99)
            held += truth in found
            assert found.high > found.low
        assert held >= 96

    def test_more_confidence_is_wider(self) -> None:
        rows = DataRows.of(random_rows("equal", 300, 5, 0))
        errors = pair_errors(
            Projected(5, 30), drawn_sample(Projected(5, 30), rows, RandomStreams(0), 100)
        )
        narrow, wide = errors.frobenius(0.9), errors.frobenius(0.999)
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high

    @pytest.mark.parametrize("keep", [False, True])
    def test_of_all_entries_contain_the_exact_value(self, keep: bool) -> None:
        held = 0
        for trial in range(100):
            X = random_rows(("equal", "clustered", "heavy", "low-rank")[trial % 4], 400, 6, trial)
            X /= np.abs(X).max()
            sketch: Any = Projected(6, 12, trial)
            if keep:
                sketch = KeptNorms(sketch)
            sample = drawn_sample(sketch, DataRows.of(X), RandomStreams(trial), 150)
            held += all_entries(sketch, X) in pair_errors(sketch, sample).whole(0.99)
        assert held >= 96

    @pytest.mark.parametrize("keep", [False, True])
    def test_of_all_entries_hold_for_new_rows(self, keep: bool) -> None:
        """Matrices of as many further rows have errors that vary themselves: the bound holds."""
        sketch: Any = Projected(5, 30)
        if keep:
            sketch = KeptNorms(sketch)
        everything = random_rows("equal", 3000, 5, 99)
        truth, held = all_entries(sketch, everything), 0
        for trial in range(100):
            rows = DataRows.of(random_rows("equal", 150, 5, trial))
            sample = RowSample.of_all(rows, for_new_rows=True)
            held += truth <= pair_errors(sketch, sample).larger(0.99).high
        assert held >= 96


def _powers(sketch: Projected, degree: int) -> Any:
    """Return independent projections multiplied with each other, for ⟨x, y⟩^degree."""

    class Product(Projected):
        def transform(self, X: Any) -> Any:
            factors = [
                Projected(self.columns, 60, 7 * self.seed + k).transform(X) for k in range(degree)
            ]
            return np.prod(factors, axis=0) * 60 ** ((degree - 1) / 2)

    return Product(sketch.columns, 60, sketch.seed, Polynomial(degree))


class TestIndependentPairs:
    @pytest.mark.parametrize("known", [False, True])
    def test_values_of_pairs_of_different_rows(self, known: bool) -> None:
        if known:
            pairs = known_pairs(ROWS, 1)
        else:
            pairs = IndependentPairs.measure(Stretched(1.1), ROWS, RandomStreams(1))
        K = ROWS.matrix @ ROWS.matrix.T
        apart = K[~np.eye(50, dtype=bool)]
        for value in pairs.exact[:100]:
            assert np.min(np.abs(apart - value)) < 1e-12
        assert pairs.approximate == pytest.approx(1.21 * pairs.exact)
        assert pairs.largest_error() == pytest.approx(0.21 * np.abs(pairs.exact).max())

    def test_known_pairs_are_those_that_would_be_computed(self) -> None:
        errors = pair_errors(Stretched(1.1), RowSample.of_all(ROWS))
        known = IndependentPairs.among(errors, RandomStreams(4))
        computed = IndependentPairs.measure(Stretched(1.1), ROWS, RandomStreams(4))
        assert known.exact == pytest.approx(computed.exact, rel=1e-13)
        assert known.approximate == pytest.approx(computed.approximate, rel=1e-13)

    def test_pairs_are_uniform(self) -> None:
        """With rows 0, 1, 2 the three products 0·1, 0·2, 1·2 are equally frequent."""
        rows = DataRows.of(np.array([[1.0], [2.0], [4.0]]))
        pairs = IndependentPairs.measure(Stretched(1.0), rows, RandomStreams(1))
        values, counts = np.unique(pairs.exact, return_counts=True)
        assert list(values) == [2.0, 4.0, 8.0]
        # Each has a standard deviation of 30 around a third of 4096.
        assert counts == pytest.approx(np.full(3, 4096 / 3), abs=150)

    def test_disjoint_pairs_take_every_row_once(self) -> None:
        assert len(known_pairs(ROWS, 1).exact) == 25

    def test_exceeding_share(self) -> None:
        pairs = IndependentPairs(np.zeros(100), np.zeros(100))
        share = pairs.exceeding_share(0.99)
        assert (1.0 - share) ** 100 == pytest.approx(0.01)

    def test_exceeding_share_holds(self) -> None:
        """In 200 trials, at most 8 of the shares of 99 % may fail, but for a risk of 0.02 %."""
        X = random_rows("heavy", 200, 3, 5)
        K = X @ X.T
        errors, failures = 0.21 * np.abs(K[~np.eye(200, dtype=bool)]), 0
        for seed in range(200):
            pairs = known_pairs(DataRows.of(X), seed)
            worse = np.mean(errors > pairs.largest_error() * (1 + 1e-12))
            failures += worse > pairs.exceeding_share(0.99)
        assert failures <= 8


ROWS = DataRows.of(random_rows("equal", 50, 3, 0))


def known_pairs(rows: DataRows, seed: int, factor: float = 1.1) -> IndependentPairs:
    """Return pairs that share no row, as further rows need them."""
    sample = RowSample.of_all(rows, for_new_rows=True)
    errors = pair_errors(Stretched(factor), sample)
    return IndependentPairs.among(errors, RandomStreams(seed))


ORDINARY = {
    "digits": load_digits().data[:1000] / 16.0,
    "gaussian": np.random.default_rng(0).normal(size=(1000, 12)),
    "uniform": np.random.default_rng(1).random((1000, 10)),
    "sparse": np.where(np.random.default_rng(2).random((1000, 40)) < 0.2, 1.0, 0.0)
    * np.random.default_rng(3).normal(size=(1000, 40)),
    "log-normal": np.random.default_rng(4).lognormal(0.0, 0.5, size=(1000, 8)),
    "clustered": random_rows("clustered", 1000, 6, 0),
}


class TestDominance:
    @pytest.mark.parametrize("name", ORDINARY)
    @pytest.mark.parametrize("kernel", [Polynomial(2), Polynomial(3), Gaussian(0.05)], ids=str)
    def test_ordinary_rows_do_not_dominate(self, name: str, kernel: Any) -> None:
        rows = DataRows.of(ORDINARY[name])
        assert not dominance_in_diagonal(kernel.diagonal(rows.matrix), 500)
        sketch = PolynomialSketch(2, n_components=64, random_state=0).fit(rows.matrix)
        sample = RowSample(rows.take(np.arange(500)), np.ones(500), for_new_rows=True)
        assert not dominance_in_pairs(ExactPairs.of(sketch.kernel_, sample))

    def test_one_extreme_row(self) -> None:
        diagonal = np.ones(1000)
        diagonal[7] = 1e4
        text = "one row makes up half of the sum of k(x, x) over 1000 rows"
        assert dominance_in_diagonal(diagonal, 500) == text

    def test_one_extreme_row_among_measured_pairs(self) -> None:
        X = random_rows("equal", 100, 5, 0)
        X[7] *= 1e3
        sample = RowSample.of_all(DataRows.of(X), for_new_rows=True)
        # A pair counts for both of its rows.
        text = "2 rows make up half of the kernel's squares over 100 rows"
        assert dominance_in_pairs(ExactPairs.of(Polynomial(1), sample)) == text

    def test_rows_that_a_sample_holds_too_few_of(self) -> None:
        """Six rows make up half of the sum: of 10,000 rows a sample of 2000 has one of them."""
        diagonal = np.ones(10000)
        diagonal[:11] = 1e9
        assert dominance_in_diagonal(diagonal, 2000).startswith("6 rows make up half")
        assert not dominance_in_diagonal(diagonal, 10000)

    def test_dominant_rows_are_dropped(self) -> None:
        X = random_rows("equal", 500, 3, 0)
        X[[3, 40, 41, 300, 450, 499]] *= 1e4
        rows = DataRows.of(X)
        kept = without_dominant_rows(rows, rows.kernel_diagonal(Polynomial(2))).matrix
        assert len(kept) >= 490
        assert np.abs(kept).max() < 10.0

    def test_zeros_do_not_dominate(self) -> None:
        assert not dominance_in_diagonal(np.zeros(100), 50)


def test_interval_knows_what_it_contains() -> None:
    interval = Interval(2.0, 1.0, 4.0)
    assert 1.0 in interval
    assert 4.0 in interval
    assert 0.999 not in interval
    assert 4.001 not in interval
    assert float(interval) == 2.0
    assert not interval.exact
    assert interval.to_dict() == {"value": 2.0, "low": 1.0, "high": 4.0}
    assert str(interval) == "2 [1, 4]"


def test_exact_interval_has_no_width() -> None:
    assert Interval(2.0, 2.0, 2.0).exact
    assert str(Interval(2.0, 2.0, 2.0)) == "2 [exact]"
