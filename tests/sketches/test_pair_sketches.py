"""What every pair sketch S promises; a new one is covered by its entry in the tables below.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import hadamard

from powersketch.arrays import padded_length
from powersketch.random_streams import RandomStreams
from powersketch.sketches import PAIR_SKETCHES, PairSketch, TensorSketch, TensorSRHT

# S(a ⊗ b) for seed 7, a = (1, −2, 3), b = (2, 1, −1) and four outputs.
FIXED: dict[str, list[float]] = {
    "tensor_srht": [4.0, 0.0, 0.0, -2.0],
    "tensor_sketch": [2.0, 2.0, 6.0, 6.0],
}


def tensor_srht_matrix(S: TensorSRHT) -> NDArray[np.float64]:
    """P (H D₁ ⊗ H D₂) / √size (Definition 2.7 of [SWYZ21])."""
    spec, H = S.spec, hadamard(S.spec.length)
    both = np.kron(H * spec.signs_first, H * spec.signs_second)
    matrix: NDArray[np.float64] = both[spec.first * spec.length + spec.second] / np.sqrt(S.size)
    kept = np.arange(spec.length) < S.length
    return matrix[:, np.kron(kept, kept)]


def tensor_sketch_matrix(S: TensorSketch) -> NDArray[np.float64]:
    """The CountSketch with bucket h₁(i) + h₂(j) modulo size and sign s₁(i) s₂(j) [PP13]."""
    matrix = np.zeros((S.size, S.length**2))
    for i, first in enumerate(S.first.spec.table[:, 0]):
        for j, second in enumerate(S.second.spec.table[:, 0]):
            bucket = (first // 2 + second // 2) % S.size
            matrix[bucket, i * S.length + j] = (-1) ** (first + second)
    return matrix


MATRIX: dict[str, Callable[[Any], NDArray[np.float64]]] = {
    "tensor_srht": tensor_srht_matrix,
    "tensor_sketch": tensor_sketch_matrix,
}


def tensor_srht_variance(a: float, N: float, f: float, d: int, m: int) -> float:
    """Rademacher rows, and the covariance of two rows that are sampled without replacement."""
    between_rows = (a - (N + a - 2 * f) / (d - 1)) ** 2 - a**2
    return ((N + 2 * (a - f)) ** 2 - a**2 + (m - 1) * between_rows) / m


def tensor_sketch_variance(a: float, N: float, f: float, _: int, m: int) -> float:
    """Every way to pair up the four signs of a factor, times the probability of both collisions.

    Two coordinates i ≠ k of a factor meet twice in the same order (N − f) or in the opposite one
    (a − f); if the factors differ in that, both collisions need 2 (h(i) − h(k)) = 0 modulo m.
    """
    same, opposite = N - f, a - f
    one_collision = 2 * a * (same + opposite) + same**2 + opposite**2
    return one_collision / m + (2 - m % 2) * 2 * same * opposite / m**2


# The variance of ⟨S(x⊗x), S(y⊗y)⟩ from a = ⟨x,y⟩², N = ‖x‖²‖y‖², f = Σ xᵢ²yᵢ², the padded length
# and the size.
VARIANCE: dict[str, Callable[[float, float, float, int, int], float]] = {
    "tensor_srht": tensor_srht_variance,
    "tensor_sketch": tensor_sketch_variance,
}

sketches = pytest.mark.parametrize("name", PAIR_SKETCHES)
seeds = st.integers(0, 2**63 - 1)
lengths = st.integers(1, 20)
sizes = st.integers(1, 40)


def draw(name: str, length: int, size: int, seed: int = 1) -> PairSketch:
    return PAIR_SKETCHES[name].draw(RandomStreams(seed), length, size)


def points(rows: int, columns: int, dtype: Any = np.float64) -> NDArray[Any]:
    generator = np.random.default_rng([rows, columns])
    return (generator.normal(size=(rows, columns)) / np.sqrt(columns)).astype(dtype)


def tensors(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    return np.einsum("ri,rj->rij", A, B).reshape(len(A), -1)


class TestBilinearMap:
    @sketches
    @given(length=lengths, size=sizes, seed=seeds)
    def test_is_its_matrix(self, name: str, length: int, size: int, seed: int) -> None:
        S, X = draw(name, length, size, seed), points(8, length)
        expected = tensors(X[:4], X[4:]) @ MATRIX[name](S).T
        np.testing.assert_allclose(S.apply(X[:4], X[4:]), expected, atol=1e-13)

    @sketches
    @given(length=lengths, size=sizes, seed=seeds, factor=st.floats(-4, 4))
    def test_is_linear_in_both(
        self, name: str, length: int, size: int, seed: int, factor: float
    ) -> None:
        S, (A, B, C) = draw(name, length, size, seed), np.split(points(9, length), 3)
        left = S.apply(A + factor * B, C)
        right = S.apply(C, A + factor * B)
        np.testing.assert_allclose(left, S.apply(A, C) + factor * S.apply(B, C), atol=1e-13)
        np.testing.assert_allclose(right, S.apply(C, A) + factor * S.apply(C, B), atol=1e-13)

    @sketches
    @given(length=lengths, size=sizes, seed=seeds, left=lengths, right=lengths)
    def test_missing_columns_are_zeros(
        self, name: str, length: int, size: int, seed: int, left: int, right: int
    ) -> None:
        S = draw(name, length, size, seed)
        short = [points(4, min(columns, length)) for columns in (left, right)]
        whole = [np.pad(X, ((0, 0), (0, length - X.shape[1]))) for X in short]
        np.testing.assert_array_equal(S.apply(*short), S.apply(*whole))

    @sketches
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_keeps_the_dtype(self, name: str, dtype: Any) -> None:
        S, X = draw(name, 20, 16), points(10, 20, dtype)
        Z = S.apply(X[:5], X[5:])
        assert Z.dtype == dtype
        assert Z.shape == (5, S.size) == (5, 16)
        precise = S.apply(*np.split(X.astype(np.float64), 2))
        np.testing.assert_allclose(Z, precise, atol=8 * np.finfo(dtype).eps)

    @sketches
    def test_zero_rows_give_zeros(self, name: str) -> None:
        S, X = draw(name, 20, 16), points(3, 20)
        np.testing.assert_array_equal(S.apply(X, np.zeros_like(X)), 0.0)

    @sketches
    def test_threads_do_not_matter(self, name: str) -> None:
        S, X = draw(name, 100, 64), points(140, 100)
        np.testing.assert_array_equal(S.apply(X[:70], X[70:], threads=3), S.apply(X[:70], X[70:]))

    @sketches
    def test_no_rows(self, name: str) -> None:
        assert draw(name, 10, 4).apply(np.empty((0, 10)), np.empty((0, 10))).shape == (0, 4)


class TestSeed:
    @sketches
    def test_fixed_numbers(self, name: str) -> None:
        Z = draw(name, 3, 4, seed=7).apply(
            np.array([[1.0, -2.0, 3.0]]), np.array([[2.0, 1.0, -1.0]])
        )
        np.testing.assert_allclose(Z[0], FIXED[name], atol=1e-14)

    @sketches
    @given(length=lengths, size=sizes, seed=seeds)
    def test_same_seed_same_sketch(self, name: str, length: int, size: int, seed: int) -> None:
        X = points(4, length)
        first, second = (draw(name, length, size, seed).apply(X, X) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    @sketches
    def test_different_seeds_differ(self, name: str) -> None:
        X = points(1, 32)
        assert len({draw(name, 32, 32, seed).apply(X, X).tobytes() for seed in range(50)}) == 50


@cache
def squares_of(name: str, length: int, size: int, draws: int) -> NDArray[np.float64]:
    """⟨S(x ⊗ x), S(y ⊗ y)⟩ for many seeds."""
    x, y = points(2, length)[:, None]
    operators = (draw(name, length, size, seed) for seed in range(draws))
    return np.array([(S.apply(x, x) @ S.apply(y, y).T).item() for S in operators])


class TestLaw:
    """11 columns, of which TensorSRHT makes 16; 8 outputs; 5000 seeds."""

    LENGTH, SIZE, DRAWS = 11, 8, 5000

    def moments(self) -> tuple[float, float, float]:
        """a = ⟨x,y⟩², N = ‖x‖²‖y‖², f = Σ xᵢ²yᵢ²."""
        x, y = points(2, self.LENGTH)
        return (x @ y) ** 2, (x @ x) * (y @ y), (x * x) @ (y * y)

    @sketches
    def test_squares_are_unbiased(self, name: str) -> None:
        """E ⟨S(x⊗x), S(y⊗y)⟩ = ⟨x,y⟩² within 5 standard errors: failure probability 6e-7."""
        products = squares_of(name, self.LENGTH, self.SIZE, self.DRAWS)
        error = abs(products.mean() - self.moments()[0])
        assert error < 5 * products.std() / np.sqrt(self.DRAWS)

    @sketches
    def test_products_are_unbiased(self, name: str) -> None:
        """E ⟨S(a⊗b), S(c⊗d)⟩ = ⟨a,c⟩⟨b,d⟩ within 5 standard errors: failure probability 6e-7."""
        a, b, c, d = points(4, self.LENGTH)[:, None]
        operators = (draw(name, self.LENGTH, self.SIZE, seed) for seed in range(2000))
        products = np.array([(S.apply(a, b) @ S.apply(c, d).T).item() for S in operators])
        error = abs(products.mean() - (a @ c.T * (b @ d.T)).item())
        assert error < 5 * products.std() / np.sqrt(2000)

    @pytest.mark.parametrize("name", VARIANCE)
    def test_variance_is_the_one_of_the_formula(self, name: str) -> None:
        """Var ⟨S(x⊗x), S(y⊗y)⟩ within 15 %.

        Its relative standard error is √((kurtosis − 1) / draws), 3 % for the kurtosis of 6 that
        both sketches have here: failure probability 1e-6.
        """
        expected = VARIANCE[name](*self.moments(), padded_length(self.LENGTH), self.SIZE)
        variance = squares_of(name, self.LENGTH, self.SIZE, self.DRAWS).var()
        assert variance == pytest.approx(expected, rel=0.15)


class TestTensorSRHT:
    @given(length=lengths, size=st.integers(1, 100), seed=seeds)
    def test_each_side_is_sampled_equally_often(self, length: int, size: int, seed: int) -> None:
        spec = TensorSRHT.draw(RandomStreams(seed), length, size).spec
        for side in (spec.first, spec.second):
            counts = np.bincount(side, minlength=spec.length)
            assert counts.max() - counts.min() <= 1

    def test_the_sides_are_drawn_apart(self) -> None:
        spec = TensorSRHT.draw(RandomStreams(1), 256, 256).spec
        assert (spec.first == spec.second).mean() < 0.1
        assert abs((spec.signs_first * spec.signs_second).sum()) < 6 * np.sqrt(256)

    def test_fixed_draws(self) -> None:
        spec = TensorSRHT.draw(RandomStreams(7), 4, 6).spec
        assert spec.signs_first.tolist() == [1, -1, 1, 1]
        assert spec.signs_second.tolist() == [-1, 1, -1, 1]
        assert spec.first.tolist() == [3, 0, 2, 1, 0, 1]
        assert spec.second.tolist() == [2, 0, 3, 1, 2, 3]


@given(length=lengths, size=sizes, seed=seeds)
def test_tensor_sketch_maps_unit_tensors_to_unit_vectors(length: int, size: int, seed: int) -> None:
    S = TensorSketch.draw(RandomStreams(seed), length, size)
    Z = S.apply(np.eye(length), np.eye(length)[::-1].copy())
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-14)


class TestRefusals:
    @sketches
    @pytest.mark.parametrize(("length", "size"), [(0, 4), (4, 0), (-1, 4)])
    def test_no_inputs_or_outputs(self, name: str, length: int, size: int) -> None:
        with pytest.raises(ValueError, match=f"{length} coordinates to {size}: both must be at"):
            draw(name, length, size)

    @sketches
    @pytest.mark.parametrize("widths", [(11, 11), (11, 5), (5, 11)])
    def test_longer_rows(self, name: str, widths: tuple[int, int]) -> None:
        A, B = (np.ones((2, columns)) for columns in widths)
        S = draw(name, 10, 4)
        with pytest.raises(ValueError, match="up to 10 coordinates, got 11: draw it with more"):
            S.apply(A, B)


def test_every_sketch_has_its_matrix_and_fixed_numbers() -> None:
    assert set(FIXED) == set(MATRIX) == set(PAIR_SKETCHES)
