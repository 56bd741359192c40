"""SRHT and TensorSRHT: their matrices, their laws, and that coordinates are sampled evenly.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import hadamard

from powersketch.random_streams import RandomStreams
from powersketch.sketches import SRHT, TensorSRHT, padded_length

seeds = st.integers(0, 2**63 - 1)
lengths = st.integers(1, 20)
sizes = st.integers(1, 40)


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


def draw_pair(length: int, size: int, seed: int = 1) -> TensorSRHT:
    return TensorSRHT.draw(RandomStreams(seed), length, size)


def points(rows: int, columns: int, dtype: Any = np.float64) -> NDArray[Any]:
    generator = np.random.default_rng([rows, columns])
    return (generator.normal(size=(rows, columns)) / np.sqrt(columns)).astype(dtype)


def pair_matrix(S: TensorSRHT) -> NDArray[np.float64]:
    """P (H D₁ ⊗ H D₂) / √size (Definition 2.9 of [SWYZ21])."""
    spec, H = S.spec, hadamard(S.spec.length)
    both = np.kron(H * spec.signs_first, H * spec.signs_second)
    matrix: NDArray[np.float64] = both[spec.first * spec.length + spec.second] / np.sqrt(S.size)
    kept = np.arange(spec.length) < S.length
    return matrix[:, np.kron(kept, kept)]


class TestTensorSRHT:
    @given(length=lengths, size=sizes, seed=seeds)
    def test_is_its_matrix(self, length: int, size: int, seed: int) -> None:
        S, X = draw_pair(length, size, seed), points(8, length)
        tensors = np.einsum("ri,rj->rij", X[:4], X[4:]).reshape(4, -1)
        expected = tensors @ pair_matrix(S).T
        np.testing.assert_allclose(S.apply(X[:4], X[4:]), expected, atol=1e-13)

    @given(length=lengths, size=sizes, seed=seeds, left=lengths, right=lengths)
    def test_missing_columns_are_zeros(
        self, length: int, size: int, seed: int, left: int, right: int
    ) -> None:
        S = draw_pair(length, size, seed)
        short = [points(4, min(columns, length)) for columns in (left, right)]
        whole = [np.pad(X, ((0, 0), (0, length - X.shape[1]))) for X in short]
        np.testing.assert_array_equal(S.apply(*short), S.apply(*whole))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_keeps_the_dtype(self, dtype: Any) -> None:
        S, X = draw_pair(20, 16), points(10, 20, dtype)
        Z = S.apply(X[:5], X[5:])
        assert Z.dtype == dtype
        assert Z.shape == (5, S.size) == (5, 16)
        precise = S.apply(*np.split(X.astype(np.float64), 2))
        np.testing.assert_allclose(Z, precise, atol=8 * np.finfo(dtype).eps)

    def test_zero_rows_give_zeros(self) -> None:
        S, X = draw_pair(20, 16), points(3, 20)
        np.testing.assert_array_equal(S.apply(X, np.zeros_like(X)), 0.0)

    def test_threads_do_not_matter(self) -> None:
        S, X = draw_pair(100, 64), points(140, 100)
        np.testing.assert_array_equal(S.apply(X[:70], X[70:], threads=3), S.apply(X[:70], X[70:]))

    def test_no_rows(self) -> None:
        assert draw_pair(10, 4).apply(np.empty((0, 10)), np.empty((0, 10))).shape == (0, 4)

    def test_different_seeds_differ(self) -> None:
        X = points(1, 32)
        assert len({draw_pair(32, 32, seed).apply(X, X).tobytes() for seed in range(50)}) == 50

    def test_fixed_numbers(self) -> None:
        """A seed means the same sketch for ever."""
        a, b = np.array([[1.0, -2.0, 3.0]]), np.array([[2.0, 1.0, -1.0]])
        Z = draw_pair(3, 4, seed=7).apply(a, b)
        np.testing.assert_allclose(Z[0], [4.0, 0.0, 0.0, -2.0], atol=1e-14)
        spec = draw_pair(4, 6, seed=7).spec
        assert spec.signs_first.tolist() == [1, -1, 1, 1]
        assert spec.signs_second.tolist() == [-1, 1, -1, 1]
        assert spec.first.tolist() == [3, 0, 2, 1, 0, 1]
        assert spec.second.tolist() == [2, 0, 3, 1, 2, 3]

    @given(length=lengths, size=st.integers(1, 100), seed=seeds)
    def test_each_side_is_sampled_equally_often(self, length: int, size: int, seed: int) -> None:
        spec = draw_pair(length, size, seed).spec
        for side in (spec.first, spec.second):
            counts = np.bincount(side, minlength=spec.length)
            assert counts.max() - counts.min() <= 1

    def test_the_sides_are_drawn_apart(self) -> None:
        spec = draw_pair(256, 256).spec
        assert (spec.first == spec.second).mean() < 0.1
        assert abs((spec.signs_first * spec.signs_second).sum()) < 6 * np.sqrt(256)

    @pytest.mark.parametrize(("length", "size"), [(0, 4), (4, 0), (-1, 4)])
    def test_no_inputs_or_outputs(self, length: int, size: int) -> None:
        with pytest.raises(ValueError, match=f"{length} coordinates to {size}: both must be at"):
            draw_pair(length, size)

    @pytest.mark.parametrize("widths", [(11, 11), (11, 5), (5, 11)])
    def test_longer_rows(self, widths: tuple[int, int]) -> None:
        A, B = (np.ones((2, columns)) for columns in widths)
        S = draw_pair(10, 4)
        with pytest.raises(ValueError, match="up to 10 coordinates, got 11: draw it with more"):
            S.apply(A, B)


class TestLawOfTensorSRHT:
    """11 columns, padded to 16; 8 outputs; 5000 seeds."""

    LENGTH, SIZE, DRAWS = 11, 8, 5000

    @classmethod
    @cache
    def products(cls) -> NDArray[np.float64]:
        """⟨S(x⊗x), S(y⊗y)⟩ and ⟨S(x⊗u), S(y⊗v)⟩ in two columns, a row for every seed."""
        x, y, u, v = points(4, cls.LENGTH)
        left, right = np.stack([x, y, x, y]), np.stack([x, y, u, v])
        values = []
        for seed in range(cls.DRAWS):
            Z = draw_pair(cls.LENGTH, cls.SIZE, seed).apply(left, right)
            values.append((Z[0] @ Z[1], Z[2] @ Z[3]))
        return np.array(values)

    def test_is_unbiased(self) -> None:
        """E ⟨S(a⊗b), S(c⊗d)⟩ = ⟨a,c⟩⟨b,d⟩ within 5 standard errors: failure probability 6e-7."""
        x, y, u, v = points(4, self.LENGTH)
        products, exact = self.products(), np.array([(x @ y) ** 2, (x @ y) * (u @ v)])
        errors = np.abs(products.mean(axis=0) - exact)
        assert np.all(errors < 5 * products.std(axis=0) / np.sqrt(self.DRAWS))

    def test_variance_is_the_one_of_the_formula(self) -> None:
        """Var ⟨S(x⊗x), S(y⊗y)⟩ within 15 %.

        That of rows of signs, and the covariance of two rows sampled without replacement. The
        relative standard error of a variance is √((kurtosis − 1) / draws), 3 % for the kurtosis of
        6 here: failure probability 1e-6.
        """
        x, y, *_ = points(4, self.LENGTH)
        a, N, f = (x @ y) ** 2, (x @ x) * (y @ y), (x * x) @ (y * y)
        d, m = padded_length(self.LENGTH), self.SIZE
        between_rows = (a - (N + a - 2 * f) / (d - 1)) ** 2 - a**2
        expected = ((N + 2 * (a - f)) ** 2 - a**2 + (m - 1) * between_rows) / m
        assert self.products()[:, 0].var() == pytest.approx(expected, rel=0.15)
