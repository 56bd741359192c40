"""How the features are shared among the degrees of the expansion around the mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.feature_maps.split_sizes import SplitSizes, choose_sizes
from powersketch.powers import monomial_count

Weights = NDArray[np.float64]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Weights, Weights, int]:
    """Weights of the degrees, energies of the coordinates that add up to weights[1], and a size."""
    numbers = st.one_of(st.just(0.0), st.floats(1e-12, 1.0))
    weights = np.array(draw(st.lists(numbers, min_size=2, max_size=40)))
    energies = np.array(draw(st.lists(numbers, min_size=1, max_size=12)))
    if energies.sum() > 0:
        energies *= weights[1] / energies.sum()
    return weights, energies, draw(st.integers(3, 300))


def chosen(weights: Weights, energies: Weights, size: int) -> SplitSizes:
    return choose_sizes(weights, energies, len(energies), size)


def predicted_error(sizes: SplitSizes, weights: Weights, energies: Weights, size: int) -> float:
    """Return (weight that is sketched)² / (features for it)."""
    exact = [0, *sizes.exact]
    linear = weights[1]
    if energies.sum() > 0:
        linear *= 1 - energies[sizes.coordinates].sum() / energies.sum()
    if len(sizes.coordinates) == len(energies):
        linear = 0.0
    rest = linear + sum(w for level, w in enumerate(weights) if level > 1 and level not in exact)
    budget = size - 1 - len(sizes.coordinates) - sum(sizes.exact.values())
    return float(rest**2 / budget) if rest > 1e-15 else 0.0


class TestBudget:
    @given(problems())
    @settings(max_examples=200)
    def test_never_exceeded_and_used_up_if_anything_is_sketched(
        self, problem: tuple[Weights, Weights, int]
    ) -> None:
        sizes = chosen(*problem)
        assert sizes.stop <= problem[2]
        if sizes.sketched:
            assert sizes.stop == problem[2]

    @given(problems())
    def test_unused_only_if_all_else_is_exact(self, problem: tuple[Weights, Weights, int]) -> None:
        weights, energies, size = problem
        sizes = chosen(*problem)
        if sizes.stop < size:
            assert predicted_error(sizes, weights, energies, size) == 0.0

    @given(problems())
    def test_blocks_lie_side_by_side(self, problem: tuple[Weights, Weights, int]) -> None:
        sizes = chosen(*problem)
        widths = {0: 1, 1: sizes.linear, **sizes.exact, **sizes.sketched}
        position = 0
        for degree in sizes.degrees.tolist():
            assert sizes.offset(degree) == position
            position += widths[degree]
        assert sizes.stop == position
        assert np.all(np.diff(sizes.degrees) > 0)


class TestBlocks:
    @given(problems())
    def test_every_coordinate_has_a_place(self, problem: tuple[Weights, Weights, int]) -> None:
        """Its own feature or a shared one, unless degree 1 has no features at all."""
        sizes, columns = chosen(*problem), len(problem[1])
        assert len(set(sizes.coordinates.tolist())) == len(sizes.coordinates)
        assert set(sizes.coordinates.tolist()) <= set(range(columns))
        assert sizes.linear == 0 or len(sizes.coordinates) == columns or sizes.shared > 0
        assert len(sizes.coordinates) < columns or sizes.shared == 0

    @given(problems())
    def test_own_features_go_to_the_strongest_coordinates(
        self, problem: tuple[Weights, Weights, int]
    ) -> None:
        sizes, energies = chosen(*problem), problem[1]
        others = np.setdiff1d(np.arange(len(energies)), sizes.coordinates)
        if len(sizes.coordinates) and len(others):
            assert energies[sizes.coordinates].min() >= energies[others].max()

    @given(problems())
    def test_exact_degrees_have_all_monomials(self, problem: tuple[Weights, Weights, int]) -> None:
        sizes, columns = chosen(*problem), len(problem[1])
        assert list(sizes.exact) == list(range(2, 2 + len(sizes.exact)))
        for degree, width in sizes.exact.items():
            assert width == monomial_count(columns, degree)
        if sizes.exact:
            assert len(sizes.coordinates) == columns

    @given(problems())
    def test_sketched_degrees_are_shared_by_weight(
        self, problem: tuple[Weights, Weights, int]
    ) -> None:
        sizes, weights = chosen(*problem), problem[0]
        assert len(sizes.sketched) <= 24
        for degree, width in sizes.sketched.items():
            assert width >= 1
            assert weights[degree] > 0
            for other, other_width in sizes.sketched.items():
                assert weights[degree] <= weights[other] or width >= other_width

    @given(problems())
    def test_degrees_use_different_rows_of_the_pair_sketch(
        self, problem: tuple[Weights, Weights, int]
    ) -> None:
        sizes, stop = chosen(*problem), 0
        assert list(sizes.slices()) == list(sizes.sketched)
        for degree, cut in sizes.slices().items():
            assert cut.start == stop
            assert cut.size == sizes.sketched[degree]
            assert cut.offset == sizes.offset(degree)
            stop = cut.stop
        assert stop <= problem[2]


class TestOptimality:
    @given(problems())
    @settings(max_examples=200)
    def test_no_worse_than_the_plain_choices(self, problem: tuple[Weights, Weights, int]) -> None:
        """Nothing exact, or all of degree 1 exact where it fits."""
        weights, energies, size = problem
        columns = np.arange(len(energies))
        plain = [SplitSizes(columns[:0], size - 1)]
        if len(energies) < size - 1:
            plain.append(SplitSizes(columns, 0))
        sizes = chosen(*problem)
        if sizes.shared == 1:  # a coordinate may have lost its own feature to make room
            return
        best = min(predicted_error(other, weights, energies, size) for other in plain)
        assert predicted_error(sizes, weights, energies, size) <= best * (1 + 1e-9) + 1e-15

    @given(problems(), st.integers(1, 100))
    def test_more_features_never_predict_more_error(
        self, problem: tuple[Weights, Weights, int], more: int
    ) -> None:
        weights, energies, size = problem
        few, many = chosen(*problem), chosen(weights, energies, size + more)
        if 1 in (few.shared, many.shared):
            return
        before = predicted_error(few, weights, energies, size)
        after = predicted_error(many, weights, energies, size + more)
        assert after <= before * (1 + 1e-9) + 1e-15


class TestKnownCases:
    def test_all_weight_at_degree_zero(self) -> None:
        sizes = choose_sizes(np.array([1.0, 0, 0, 0]), np.zeros(5), 5, 10)
        assert sizes.degrees.tolist() == [0]
        assert sizes.stop == 1

    def test_all_weight_at_degree_one_that_fits(self) -> None:
        sizes = choose_sizes(np.array([0.0, 1, 0, 0]), np.full(5, 0.2), 5, 10)
        assert sorted(sizes.coordinates.tolist()) == [0, 1, 2, 3, 4]
        assert sizes.stop == 6

    def test_all_weight_at_degree_one_that_does_not_fit(self) -> None:
        sizes = choose_sizes(np.array([0.0, 1, 0, 0]), np.full(50, 0.02), 50, 10)
        assert sizes.linear == 9

    def test_silent_coordinates_share_what_is_left(self) -> None:
        sizes = choose_sizes(np.array([0.0, 1.0]), np.array([0.0, 1.0, 0.0]), 3, 3)
        assert (sizes.coordinates.tolist(), sizes.shared) == ([1], 1)

    def test_one_strong_coordinate_is_kept(self) -> None:
        energies = np.full(50, 1e-4)
        energies[17] = 1.0
        sizes = choose_sizes(np.array([0.0, 1, 0, 0]), energies, 50, 10)
        assert 17 in sizes.coordinates

    @pytest.mark.parametrize("high", [5, 30])
    def test_all_weight_at_one_high_degree(self, high: int) -> None:
        weights = np.zeros(31)
        weights[high] = 1.0
        sizes = choose_sizes(weights, np.zeros(100), 100, 64)
        assert sizes.sketched == {high: 63}

    def test_equal_weights_have_equal_blocks(self) -> None:
        sizes = choose_sizes(np.array([0.25, 0, 0.25, 0.25, 0.25]), np.zeros(100), 100, 61)
        assert sizes.sketched == {2: 20, 3: 20, 4: 20}

    def test_few_columns_take_monomials(self) -> None:
        sizes = choose_sizes(np.full(8, 1 / 8), np.full(2, 1 / 16), 2, 30)
        assert sizes.exact == {2: 3, 3: 4, 4: 5, 5: 6}
        assert sum(sizes.sketched.values()) == 9

    def test_all_monomials_fit(self) -> None:
        sizes = choose_sizes(np.full(5, 0.2), np.full(2, 0.1), 2, 100)
        assert sizes.exact == {2: 3, 3: 4, 4: 5}
        assert sizes.sketched == {}

    @pytest.mark.parametrize("degree", [1, 2, 100, 1024])
    def test_smallest_size(self, degree: int) -> None:
        sizes = choose_sizes(np.full(degree + 1, 1 / (degree + 1)), np.full(7, 0.1), 7, 3)
        assert sizes.stop == 3

    def test_lightest_degrees_are_left_out(self) -> None:
        weights = np.geomspace(1.0, 0.5, 200)
        sizes = choose_sizes(weights, np.zeros(1000), 1000, 4096)
        assert 20 <= len(sizes.sketched) <= 24
        assert max(sizes.sketched) <= 25
