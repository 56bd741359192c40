"""How the features are shared among the degrees of the expansion around the mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.feature_maps.maps.sizes import StackedSizes, choose_sizes
from powersketch.powers import monomial_count

Weights = NDArray[np.float64]
NUMBERS = st.one_of(st.just(0.0), st.floats(1e-12, 1.0))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Weights, Weights, int]:
    """Weights of the degrees, energies of the coordinates that add up to weights[1], and a size."""
    weights = np.array(draw(st.lists(NUMBERS, min_size=2, max_size=40)))
    energies = np.array(draw(st.lists(NUMBERS, min_size=1, max_size=12)))
    if energies.sum() > 0:
        energies *= weights[1] / energies.sum()
    return weights, energies, draw(st.integers(3, 300))


@dataclass(frozen=True, eq=False)
class FullProblem:
    """Any number of constants, terms beyond the degrees, and sizes down to one."""

    weights: Weights
    energies: Weights
    others: Weights
    size: int
    constants: int

    @property
    def sizes(self) -> StackedSizes:
        return choose_sizes(
            self.weights,
            self.energies,
            len(self.energies),
            self.size,
            constants=self.constants,
            others=self.others,
        )


@st.composite
def full_problems(draw: st.DrawFn) -> FullProblem:
    weights, energies, size = draw(problems())
    others = np.array(draw(st.lists(NUMBERS, max_size=10)))
    size = draw(st.one_of(st.just(size), st.integers(1, 12)))
    return FullProblem(weights, energies, others, size, draw(st.integers(0, 9)))


def chosen(weights: Weights, energies: Weights, size: int) -> StackedSizes:
    return choose_sizes(weights, energies, len(energies), size)


def predicted_error(sizes: StackedSizes, weights: Weights, energies: Weights, size: int) -> float:
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
        widths = {1: sizes.linear, **sizes.exact, **sizes.sketched}
        assert sizes.offsets[0] == 0
        position = sizes.constants
        for degree in sizes.degrees:
            assert sizes.offsets[degree] == position
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
        """All degrees with any weight up to some degree, degree 1 among them."""
        sizes, weights, columns = chosen(*problem), problem[0], len(problem[1])
        last = max(sizes.exact, default=1)
        weighty = [degree for degree in range(2, last + 1) if weights[degree] > 0]
        assert list(sizes.exact) == weighty
        for degree, width in sizes.exact.items():
            assert width == monomial_count(columns, degree)
        if sizes.exact:
            assert len(sizes.coordinates) == (columns if weights[1] > 0 else 0)
            assert sizes.shared == 0

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
        assert list(sizes.slices) == list(sizes.sketched)
        for degree, cut in sizes.slices.items():
            assert cut.start == stop
            assert cut.size == sizes.sketched[degree]
            assert cut.offset == sizes.offsets[degree]
            stop = cut.start + cut.size
        assert stop <= problem[2]


class TestOtherTerms:
    @given(full_problems())
    @settings(max_examples=200)
    def test_budget_is_never_exceeded(self, problem: FullProblem) -> None:
        sizes = problem.sizes
        assert sizes.constants == min(problem.constants, problem.size)
        assert sizes.stop <= problem.size
        if sizes.sketched or sizes.others:
            assert sizes.stop == problem.size

    @given(full_problems())
    @settings(max_examples=200)
    def test_blocks_lie_side_by_side(self, problem: FullProblem) -> None:
        sizes = problem.sizes
        widths = {1: sizes.linear, **sizes.exact, **sizes.sketched}
        position = sizes.constants
        for degree in sizes.degrees:
            assert sizes.offsets[degree] == position
            position += widths[degree]
        for cut in sizes.other_slices.values():
            assert cut.offset == position
            position += cut.size
        assert sizes.stop == position

    @given(full_problems())
    def test_others_use_different_rows_of_their_pair_sketch(self, problem: FullProblem) -> None:
        sizes, stop = problem.sizes, 0
        assert list(sizes.other_slices) == list(sizes.others)
        for term, cut in sizes.other_slices.items():
            assert (cut.start, cut.size) == (stop, sizes.others[term])
            assert cut.size >= 1
            assert problem.others[term] > 0
            stop = cut.start + cut.size

    @given(full_problems())
    def test_sketched_terms_of_all_kinds_are_shared_by_weight(self, problem: FullProblem) -> None:
        sizes = problem.sizes
        assert len(sizes.sketched) + len(sizes.others) <= 24
        blocks = [(problem.weights[degree], width) for degree, width in sizes.sketched.items()]
        blocks += [(problem.others[term], width) for term, width in sizes.others.items()]
        for weight, width in blocks:
            for other_weight, other_width in blocks:
                assert weight <= other_weight or width >= other_width

    def test_equal_weights_have_equal_blocks(self) -> None:
        sizes = choose_sizes(
            np.array([0.0, 0, 0.25, 0.25]),
            np.zeros(100),
            100,
            63,
            constants=3,
            others=np.array([0.25, 0.0]),
        )
        assert (sizes.sketched, sizes.others) == ({2: 20, 3: 20}, {0: 20})

    def test_only_others(self) -> None:
        sizes = choose_sizes(np.zeros(2), np.zeros(5), 5, 9, constants=0, others=np.ones(3))
        assert (sizes.degrees, sizes.others) == ([], {0: 3, 1: 3, 2: 3})

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_constants_come_first(self, size: int) -> None:
        sizes = choose_sizes(np.full(4, 0.25), np.full(5, 0.05), 5, size, constants=3)
        assert (sizes.constants, sizes.stop, sizes.degrees) == (size, size, [])


class TestOptimality:
    @given(problems())
    @settings(max_examples=200)
    def test_no_worse_than_the_plain_choices(self, problem: tuple[Weights, Weights, int]) -> None:
        """Nothing exact, or all of degree 1 exact where it fits."""
        weights, energies, size = problem
        columns = np.arange(len(energies))
        plain = [StackedSizes(columns[:0], size - 1)]
        if len(energies) < size - 1:
            plain.append(StackedSizes(columns, 0))
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
        assert sizes.degrees == []
        assert sizes.stop == sizes.constants == 1

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
