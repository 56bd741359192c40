"""Errors over all pairs of different rows, exact or from a sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch.accuracy.data_rows import DataRows
from powersketch.accuracy.sampled_pairs import (
    SAMPLE_ROWS,
    PairErrors,
    RowSample,
    row_chances,
    row_sample,
    sample_rows,
)
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Projected, Stretched, random_rows, relative_error

KINDS = ("equal", "clustered", "heavy", "low-rank")


def all_rows(X: Any) -> RowSample:
    return RowSample(DataRows.of(X), np.ones(X.shape[0]))


class TestAllPairs:
    @pytest.mark.parametrize("kind", KINDS)
    def test_equals_brute_force(self, kind: str) -> None:
        X, sketch = random_rows(kind, 60, 9, 0), Projected(9, 20)
        found = PairErrors.measure(sketch, all_rows(X)).frobenius(0.99)
        assert found.exact
        assert found.value == pytest.approx(relative_error(sketch, X), rel=1e-12)

    def test_root_mean_square_equals_brute_force(self) -> None:
        X, sketch = random_rows("equal", 40, 9, 1), Projected(9, 20)
        Z, K = sketch.transform(X), sketch.kernel_(X)
        expected = math.sqrt(np.mean((Z @ Z.T - K)[~np.eye(40, dtype=bool)] ** 2))
        found = PairErrors.measure(sketch, all_rows(X)).root_mean_square(0.99)
        assert found.exact
        assert found.value == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("factor", [0.0, 0.5, 1.1, 30.0])
    def test_known_error(self, factor: float) -> None:
        X = random_rows("equal", 30, 4, 2)
        found = PairErrors.measure(Stretched(factor), all_rows(X)).frobenius(0.99)
        assert found.value == pytest.approx(abs(factor**2 - 1), rel=1e-12)

    @pytest.mark.parametrize("power", [-140, 140])
    def test_squares_of_entries_neither_overflow_nor_vanish(self, power: int) -> None:
        X = random_rows("equal", 30, 4, 2) * 10.0**power
        found = PairErrors.measure(Stretched(1.1), all_rows(X))
        assert found.frobenius(0.99).value == pytest.approx(0.21, rel=1e-12)

    def test_two_rows(self) -> None:
        found = PairErrors.measure(Stretched(1.1), all_rows(np.ones((2, 1)))).frobenius(0.99)
        assert found.value == pytest.approx(0.21)

    def test_rows_of_zeros_have_no_error(self) -> None:
        found = PairErrors.measure(Stretched(1.1), all_rows(np.zeros((5, 3)))).frobenius(0.99)
        assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)

    def test_orthogonal_rows_that_are_mixed_up_are_infinitely_wrong(self) -> None:
        sketch = Projected(5, 3)
        found = PairErrors.measure(sketch, all_rows(np.eye(5))).frobenius(0.99)
        assert (found.low, found.high) == (math.inf, math.inf)

    def test_float32_and_sparse_rows(self) -> None:
        X = random_rows("equal", 30, 4, 2)
        expected = PairErrors.measure(Stretched(1.1), all_rows(X)).frobenius(0.99).value
        for given in (
            X.astype(np.float32),
            sp.csr_array(X),
            sp.csc_matrix(X),
            np.asfortranarray(X),
        ):
            found = PairErrors.measure(Stretched(1.1), all_rows(given)).frobenius(0.99)
            assert found.value == pytest.approx(expected, rel=1e-5)


class TestRowChances:
    def test_add_up_to_the_size_wanted(self) -> None:
        sizes = np.random.default_rng(0).pareto(0.7, 1000)
        for count in (1, 10, 100, 999):
            chances = row_chances([np.ones(1000), sizes], count)
            assert chances.sum() == pytest.approx(count)
            assert chances.min() > 0.0
            assert chances.max() <= 1.0

    def test_outstanding_rows_are_certain(self) -> None:
        sizes = np.ones(1000)
        sizes[[3, 77]] = 1e6
        chances = row_chances([np.ones(1000), sizes], 50)
        assert list(np.flatnonzero(chances == 1.0)) == [3, 77]
        assert len(np.unique(np.delete(chances, [3, 77]))) == 1

    def test_equal_sizes_give_equal_chances(self) -> None:
        assert row_chances([np.ones(8), np.full(8, 1e300)], 2) == pytest.approx(np.full(8, 0.25))

    def test_sizes_of_zero_are_left_to_the_others(self) -> None:
        chances = row_chances([np.ones(8), np.zeros(8)], 2)
        assert chances == pytest.approx(np.full(8, 0.25))


class TestRowSample:
    def test_few_rows_are_all_taken(self) -> None:
        rows = DataRows.of(random_rows("equal", 30, 4, 0))
        sample = row_sample(Stretched(), rows, RandomStreams(0), 30)
        assert sample.complete
        assert sample.rows is rows

    def test_expected_number_of_rows(self) -> None:
        rows = DataRows.of(random_rows("heavy", 800, 4, 0))
        counts = [
            row_sample(Stretched(), rows, RandomStreams(s), 100).rows.count for s in range(20)
        ]
        # Each has a standard deviation of at most 10, their mean one of 2.3.
        assert 88 < np.mean(counts) < 112

    def test_same_seed_same_rows(self) -> None:
        rows = DataRows.of(random_rows("equal", 300, 4, 0))
        one, two = (row_sample(Stretched(), rows, RandomStreams(5), 100) for _ in range(2))
        assert np.array_equal(one.rows.matrix, two.rows.matrix)
        assert not one.complete

    def test_row_with_a_large_error_is_certain_to_be_taken(self) -> None:
        """Its error shows in a first look at all rows; its k(x, x) is like the others'."""

        class WrongForOne(Stretched):
            def transform(self, X: Any) -> Any:
                return super().transform(X) * np.where(X[:, :1] == X[:, :1].round(), 50.0, 1.0)

        X = random_rows("equal", 600, 4, 0)
        X[17, 0] = 1.0
        rows, sketch = DataRows.of(X), WrongForOne(1.0, Gaussian(0.01))
        for seed in range(10):
            assert 1.0 in row_sample(sketch, rows, RandomStreams(seed), 60).rows.matrix[:, 0]

    def test_many_components_leave_room_for_fewer_rows(self) -> None:
        assert sample_rows(100) == SAMPLE_ROWS
        assert sample_rows(2**16) == 1024
        assert sample_rows(2**30) == 256


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
            sample = row_sample(sketch, rows, RandomStreams(trial), 150)
            held += relative_error(sketch, X) in PairErrors.measure(sketch, sample).frobenius(0.99)
        assert held >= 96

    def test_hold_for_new_rows(self) -> None:
        """Rows of one distribution: 96 of 100 intervals of 99 % hold but for a risk of 0.4 %."""
        sketch, everything = Projected(5, 30), random_rows("equal", 3000, 5, 99)
        truth, held = relative_error(sketch, everything), 0
        for trial in range(100):
            rows = DataRows.of(random_rows("equal", 150, 5, trial))
            sample = RowSample(rows, np.ones(150), for_new_rows=True)
            found = PairErrors.measure(sketch, sample).frobenius(0.99)
            held += truth in found
            assert found.high > found.low
        assert held >= 96

    def test_more_confidence_is_wider(self) -> None:
        rows = DataRows.of(random_rows("equal", 300, 5, 0))
        errors = PairErrors.measure(
            Projected(5, 30), row_sample(Projected(5, 30), rows, RandomStreams(0), 100)
        )
        narrow, wide = errors.frobenius(0.9), errors.frobenius(0.999)
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


def _powers(sketch: Projected, degree: int) -> Any:
    """Return independent projections multiplied with each other, for ⟨x, y⟩^degree."""

    class Product(Projected):
        def transform(self, X: Any) -> Any:
            factors = [
                Projected(self.columns, 60, 7 * self.seed + k).transform(X) for k in range(degree)
            ]
            return np.prod(factors, axis=0) * 60 ** ((degree - 1) / 2)

    return Product(sketch.columns, 60, sketch.seed, Polynomial(degree))
