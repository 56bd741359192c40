"""Structured normal rows: orthogonal blocks, lengths and moments of independent normal vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import hadamard

from powersketch.random_streams import RandomStreams
from powersketch.sketches import StructuredNormal, padded_length

seeds = st.integers(0, 2**63 - 1)


def draw(columns: int, size: int, seed: int = 1, factor: float = 1.0) -> StructuredNormal:
    return StructuredNormal.draw(RandomStreams(seed), columns, size, factor)


def matrix(W: StructuredNormal) -> NDArray[np.float64]:
    """Return W, one row for every output."""
    rows: NDArray[np.float64] = W.apply(np.eye(W.columns)).T
    return rows


def test_fixed_draws() -> None:
    spec = draw(3, 5, seed=7).spec
    assert spec.signs.shape == (1, 3, 64)
    assert spec.signs[0, :, :6].tolist() == [
        [-1, 1, 1, 1, 1, -1],
        [1, -1, 1, 1, -1, 1],
        [-1, 1, -1, -1, 1, 1],
    ]
    assert spec.indices.tolist() == [12, 40, 51, 52, 58]
    assert [float(scale).hex() for scale in spec.scales[:3]] == [
        "0x1.02b671845a5eep+3",
        "0x1.c229c49132e94p+2",
        "0x1.01f85c119713dp+3",
    ]
    sums = draw(3, 5, seed=7).apply(np.ones((1, 3)))[0]
    assert [float(value).hex() for value in sums[:2]] == ["0x0.0p+0", "0x1.195a1adabfd1cp+0"]


@given(columns=st.integers(1, 70), size=st.integers(1, 300), seed=seeds)
def test_is_the_matrix_of_its_definition(columns: int, size: int, seed: int) -> None:
    """Rows of the blocks H D₃ H D₂ H D₁, H orthogonal, times lengths."""
    W = draw(columns, size, seed)
    padded = max(padded_length(columns), 64)
    H = hadamard(padded) / math.sqrt(padded)
    blocks = [H * three @ (H * two) @ (H * one) for one, two, three in W.spec.signs]
    expected = np.concatenate(blocks)[W.spec.indices, :columns]
    lengths = np.linalg.norm(matrix(draw(padded, size, seed)), axis=1)
    np.testing.assert_allclose(matrix(W), expected * lengths[:, None], atol=1e-11)


@given(columns=st.sampled_from([64, 128, 512]), size=st.integers(1, 700), seed=seeds)
def test_rows_of_a_block_are_orthogonal(columns: int, size: int, seed: int) -> None:
    W = matrix(draw(columns, size, seed))
    for start in range(0, size, columns):
        block = W[start : start + columns]
        gram = block @ block.T
        np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-10 * columns)


@given(columns=st.integers(1, 200), size=st.integers(1, 700), seed=seeds)
def test_no_row_is_taken_twice(columns: int, size: int, seed: int) -> None:
    """All blocks but the last are whole."""
    indices = draw(columns, size, seed).spec.indices
    padded = max(padded_length(columns), 64)
    whole = size // padded * padded
    assert len(np.unique(indices)) == size
    assert indices[:whole].tolist() == list(range(whole))
    assert indices.max() < -(-size // padded) * padded


@pytest.mark.parametrize("columns", [64, 256, 1024])
def test_lengths_are_those_of_normal_vectors(columns: int) -> None:
    """20000 lengths: mean and variance of χ, and its law by a Kolmogorov–Smirnov test.

    The cube root's law is off by less than 1e-3 in probability; the largest distance of 20000
    draws exceeds 0.02 with probability 1e-6.
    """
    W = draw(columns, 20_000, seed=3)
    scales = W.spec.scales
    lengths = np.linalg.norm(matrix(draw(columns, 1, seed=3)), axis=1)[0] / scales[0] * scales
    law = stats.chi(columns)
    assert abs(lengths.mean() - law.mean()) < 5 * law.std() / math.sqrt(20_000)
    assert abs(lengths.var() / law.var() - 1) < 5 * math.sqrt(2 / 20_000)
    assert stats.kstest(lengths, law.cdf).statistic < 0.02


@pytest.mark.parametrize(("columns", "size"), [(3, 40), (64, 64), (100, 300)])
def test_second_moments_are_unbiased(columns: int, size: int) -> None:
    """E Wᵀ W / size = I: 1000 seeds, five standard errors for six entries.

    Failure probability 4e-6.
    """
    chosen = np.unravel_index([0, 1, 2, columns + 1, columns + 2, -1 % columns**2], [columns] * 2)
    products = []
    for seed in range(1000):
        W = matrix(draw(columns, size, seed))
        products.append([W[:, i] @ W[:, j] / size for i, j in zip(*chosen, strict=True)])
    expected = np.equal(*chosen).astype(float)
    errors = np.std(products, axis=0) / math.sqrt(1000)
    assert np.all(np.abs(np.mean(products, axis=0) - expected) < 5 * errors + 1e-12)


@pytest.mark.parametrize(("columns", "distance"), [(1, 0.03), (2, 0.02), (50, 0.02), (64, 0.02)])
def test_projections_look_normal(columns: int, distance: float) -> None:
    """The law of ⟨w, x⟩ over the rows of 300 draws for an x of norm one.

    Sums of 64 signs are zero in one of 25 cases, which is half as much in distance where x has one
    entry only. That of 19200 independent normal numbers exceeds 0.02 with probability 1e-6.
    """
    x = np.random.default_rng(0).normal(size=(1, columns))
    x /= np.linalg.norm(x)
    sums = np.concatenate([draw(columns, 64, seed).apply(x)[0] for seed in range(300)])
    assert stats.kstest(sums, "norm").statistic < distance


def test_blocks_have_signs_and_lengths_of_their_own() -> None:
    W = draw(64, 128)
    first, second = W.spec.signs
    assert np.mean(first == second) < 0.7
    assert len(np.unique(W.spec.scales)) == 128


def test_the_factor_multiplies_all_entries() -> None:
    np.testing.assert_allclose(
        matrix(draw(20, 30, factor=0.25)), 0.25 * matrix(draw(20, 30)), rtol=1e-14
    )


def test_fourier_features_are_those_of_the_projections() -> None:
    X = np.random.default_rng(0).normal(size=(10, 20))
    W = draw(20, 30)
    phases = 2 * math.pi * X @ matrix(W).T
    expected = 0.5 * np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
    np.testing.assert_allclose(W.fourier(X, 0.5), expected, atol=1e-11)


def test_short_rows_are_padded_with_zeros() -> None:
    X = np.random.default_rng(0).normal(size=(10, 20))
    W = draw(90, 30)
    np.testing.assert_array_equal(W.apply(X), W.apply(np.pad(X, ((0, 0), (0, 70)))))


def test_long_rows_are_refused() -> None:
    W, X = draw(20, 30), np.ones((1, 21))
    for call in (lambda: W.apply(X), lambda: W.fourier(X, 1.0)):
        with pytest.raises(ValueError, match=r"structured normal.* up to 20 coordinates, got 21"):
            call()


@pytest.mark.parametrize(("columns", "size"), [(0, 5), (5, 0)])
def test_empty_operators_are_refused(columns: int, size: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        draw(columns, size)
