"""The SRHT: its matrix is P H D / √size, its coordinates are sampled evenly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from powersketch.arrays import padded_length
from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT

seeds = st.integers(0, 2**63 - 1)


def draw(columns: int, size: int, seed: int = 1) -> SRHT:
    return SRHT.draw(RandomStreams(seed), columns, size)


def test_fixed_draws() -> None:
    spec = draw(5, 19, seed=7).spec
    assert spec.signs.tolist() == [-1, 1, 1, 1, 1]
    first, second, rest = [6, 1, 0, 7, 3, 5, 2, 4], [5, 1, 6, 7, 3, 2, 0, 4], [7, 4, 1]
    assert spec.indices.tolist() == [*first, *second, *rest]


@given(columns=st.integers(1, 40), size=st.integers(1, 100), seed=seeds)
def test_is_the_matrix_of_its_definition(columns: int, size: int, seed: int) -> None:
    """P H D / √size (Definition 2.6 of [SWYZ21])."""
    T = draw(columns, size, seed)
    P = np.eye(padded_length(columns))[T.spec.indices]
    D = np.diag(T.spec.signs)
    expected = P @ hadamard(len(P.T))[:, :columns] @ D / np.sqrt(size)
    np.testing.assert_allclose(T.apply(np.eye(columns)).T, expected, rtol=1e-15)


@given(columns=st.integers(1, 40), size=st.integers(1, 200), seed=seeds)
def test_coordinates_are_sampled_equally_often(columns: int, size: int, seed: int) -> None:
    counts = np.bincount(draw(columns, size, seed).spec.indices, minlength=padded_length(columns))
    assert counts.max() - counts.min() <= 1


@given(columns=st.sampled_from([1, 2, 16, 64]), share=st.floats(0.01, 1), seed=seeds)
def test_rows_of_the_matrix_are_orthogonal(columns: int, share: float, seed: int) -> None:
    """T Tᵀ = (columns / size) I where columns is a power of two and size does not exceed it."""
    size = max(int(share * columns), 1)
    T = draw(columns, size, seed).apply(np.eye(columns)).T
    np.testing.assert_allclose(T @ T.T, columns / size * np.eye(size), atol=1e-12)


@given(columns=st.integers(1, 70), rounds=st.integers(1, 3), seed=seeds)
def test_whole_rounds_are_isometries(columns: int, rounds: int, seed: int) -> None:
    """Nothing is lost where every coordinate is kept: Tᵀ T = I."""
    T = draw(columns, rounds * padded_length(columns), seed).apply(np.eye(columns)).T
    np.testing.assert_allclose(T.T @ T, np.eye(columns), atol=1e-14)


def test_every_coordinate_is_as_likely() -> None:
    """The first of 8 coordinates over 4000 seeds: a χ² with 7 degrees of freedom stays below 40.

    Failure probability 1e-6.
    """
    firsts = [int(draw(8, 1, seed).spec.indices[0]) for seed in range(4000)]
    counts = np.bincount(firsts, minlength=8)
    assert ((counts - 500) ** 2 / 500).sum() < 40


@pytest.mark.parametrize("columns", [1, 64, 65])
def test_pads_to_the_next_power_of_two(columns: int) -> None:
    assert draw(columns, 3).spec.padded == padded_length(columns)
