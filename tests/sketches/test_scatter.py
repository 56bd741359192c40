"""CountSketch and OSNAP: where every coordinate goes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.random_streams import RandomStreams
from powersketch.sketches import OSNAP, CountSketch

seeds = st.integers(0, 2**63 - 1)
sizes = st.integers(1, 60)


def matrix_of(T: OSNAP) -> NDArray[np.float64]:
    """T with coordinates as columns."""
    matrix: NDArray[np.float64] = T.apply(np.eye(T.columns)).T
    return matrix


@given(columns=sizes, size=sizes, seed=seeds)
def test_countsketch_has_one_sign_in_every_column(columns: int, size: int, seed: int) -> None:
    T = matrix_of(CountSketch.draw(RandomStreams(seed), columns, size))
    assert set(np.unique(T)) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(np.count_nonzero(T, axis=0), 1)


@given(columns=sizes, size=sizes, seed=seeds)
def test_osnap_has_one_entry_in_every_band(columns: int, size: int, seed: int) -> None:
    """As many bands as copies, or as outputs where those are fewer."""
    T = matrix_of(OSNAP.draw(RandomStreams(seed), columns, size))
    copies = min(4, size)
    edges = [band * size // copies for band in range(copies + 1)]
    for low, high in pairwise(edges):
        np.testing.assert_array_equal(np.count_nonzero(T[low:high], axis=0), 1)
    np.testing.assert_array_equal(np.unique(np.abs(T[T != 0])), 1 / math.sqrt(copies))


@pytest.mark.parametrize("sketch", [CountSketch, OSNAP])
def test_columns_have_norm_one_exactly(sketch: type[OSNAP]) -> None:
    T = matrix_of(sketch.draw(RandomStreams(3), 500, 64))
    np.testing.assert_array_equal((T * T).sum(axis=0), 1.0)


class TestKeeping:
    COLUMNS = 12
    KEPT = np.array([7, 2, 9])

    def draw(self, shared: int = 4, seed: int = 1) -> CountSketch:
        return CountSketch.keeping(RandomStreams(seed), self.COLUMNS, self.KEPT, shared)

    @given(seed=seeds, shared=st.integers(1, 20))
    def test_kept_coordinates_come_first_and_unchanged(self, seed: int, shared: int) -> None:
        X = np.random.default_rng(0).normal(size=(5, self.COLUMNS))
        T = self.draw(shared, seed)
        assert T.size == 3 + shared
        np.testing.assert_array_equal(T.apply(X)[:, :3], X[:, self.KEPT])

    @given(seed=seeds, shared=st.integers(1, 20))
    def test_the_rest_shares_the_other_outputs(self, seed: int, shared: int) -> None:
        T = matrix_of(self.draw(shared, seed))
        assert set(np.unique(T)) <= {-1.0, 0.0, 1.0}
        np.testing.assert_array_equal(np.count_nonzero(T, axis=0), 1)
        rest = np.delete(np.arange(self.COLUMNS), self.KEPT)
        np.testing.assert_array_equal(T[:3, rest], 0.0)

    def test_fixed_numbers(self) -> None:
        Z = self.draw(seed=7).apply(np.arange(1.0, 13.0)[None, :])
        assert Z[0].tolist() == [8.0, 3.0, 10.0, -6.0, 10.0, -2.0, -1.0]

    def test_all_coordinates_can_be_kept(self) -> None:
        order = np.arange(self.COLUMNS)[::-1]
        T = CountSketch.keeping(RandomStreams(1), self.COLUMNS, order, 0)
        np.testing.assert_array_equal(matrix_of(T), np.eye(self.COLUMNS)[::-1])

    def test_no_coordinate_need_be_kept(self) -> None:
        nothing = np.empty(0, dtype=np.int64)
        T = CountSketch.keeping(RandomStreams(1), self.COLUMNS, nothing, 5)
        drawn = CountSketch.draw(RandomStreams(1), self.COLUMNS, 5)
        np.testing.assert_array_equal(matrix_of(T), matrix_of(drawn))

    def test_the_rest_needs_an_output(self) -> None:
        with pytest.raises(ValueError, match="maps 9 coordinates to 0"):
            self.draw(shared=0)
