"""Complex projections: their matrices, their law, and how they treat rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, ComplexProjection, complex_projection
from powersketch.sketches.projections import (
    ComplexMatrix,
    ComplexSRHT,
    Composed,
    fourth_roots,
)

INTERNAL = 64
sketches = pytest.mark.parametrize("name", BASE_SKETCHES)
each_length = pytest.mark.parametrize("columns", [1, 5, 32, 33, 100, 300])


def draw(name: str, columns: int, size: int, seed: int = 1) -> ComplexProjection:
    return complex_projection(name, RandomStreams(seed), columns, size, INTERNAL)


def complex_rows(W: ComplexProjection, X: Any, threads: int = 1) -> NDArray[np.complex128]:
    real, imaginary = W.apply(X, threads=threads)
    return real + 1j * imaginary


def matrix_of(W: ComplexProjection) -> NDArray[np.complex128]:
    return complex_rows(W, np.eye(W.columns)).T


def points(rows: int, columns: int) -> NDArray[np.float64]:
    generator = np.random.default_rng([rows, columns])
    X = generator.normal(size=(rows, columns))
    X[generator.random(X.shape) < 1 / 3] = 0.0
    return X


class TestRows:
    @sketches
    @each_length
    def test_rows_are_multiplied_by_the_matrix(self, name: str, columns: int) -> None:
        W, X = draw(name, columns, 150), points(7, columns)
        assert (W.columns, W.size) == (columns, 150)
        expected = X @ matrix_of(W).T
        for rows in (X, sp.csr_array(X), sp.csr_matrix(X)):
            np.testing.assert_allclose(complex_rows(W, rows), expected, atol=1e-11)

    @sketches
    def test_missing_columns_are_zeros(self, name: str) -> None:
        W, X = draw(name, 100, 30), points(7, 60)
        whole = np.pad(X, ((0, 0), (0, 40)))
        np.testing.assert_array_equal(complex_rows(W, X), complex_rows(W, whole))

    @sketches
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_keeps_the_dtype_and_ignores_threads(self, name: str, dtype: Any) -> None:
        W, X = draw(name, 100, 200), points(70, 100).astype(dtype)
        parts = W.apply(X)
        assert [part.dtype for part in parts] == [dtype, dtype]
        np.testing.assert_array_equal(complex_rows(W, X, threads=3), complex_rows(W, X))

    @sketches
    def test_longer_rows_are_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match="up to 100 coordinates, got 101"):
            draw(name, 100, 30).apply(np.ones((2, 101)))

    @pytest.mark.parametrize("name", ["srht", "gaussian", "rademacher"])
    def test_no_outputs_are_refused(self, name: str) -> None:
        with pytest.raises(ValueError, match="100 coordinates to 0: both must be at least 1"):
            draw(name, 100, 0)


class TestMatrices:
    def test_fourth_roots_are_uniform(self) -> None:
        """Each has a quarter of 40000 draws, within five standard errors of 87."""
        real, imaginary = fourth_roots(RandomStreams(3), 40_000)
        roots = real + 1j * imaginary
        for root in (1, 1j, -1, -1j):
            assert abs(int((roots == root).sum()) - 10_000) < 435

    @pytest.mark.parametrize("name", ["srht", "rademacher"])
    @each_length
    def test_entries_are_fourth_roots_of_unity(self, name: str, columns: int) -> None:
        W = matrix_of(draw(name, columns, 70))
        assert set(np.unique(W)) <= {1, 1j, -1, -1j}

    @pytest.mark.parametrize("columns", [8, 128])
    def test_rows_of_a_block_are_orthogonal(self, columns: int) -> None:
        W = matrix_of(draw("srht", columns, 3 * columns + 5))
        for start in range(0, len(W), columns):
            block = W[start : start + columns]
            np.testing.assert_array_equal(block @ block.conj().T, columns * np.eye(len(block)))

    def test_blocks_differ(self) -> None:
        W = matrix_of(draw("srht", 64, 256))
        assert len({block.tobytes() for block in W.reshape(4, 64, 64)}) == 4

    def test_short_rows_are_multiplied_by_the_written_transform(self) -> None:
        transform = ComplexSRHT.draw(RandomStreams(4), 23, 80)
        written = ComplexMatrix.of(transform)
        assert written.matrix.dtype == np.int8
        X = points(6, 23)
        np.testing.assert_allclose(complex_rows(written, X), complex_rows(transform, X), atol=1e-13)

    @pytest.mark.parametrize("name", ["countsketch", "osnap"])
    def test_sums_come_first_only_where_rows_are_longer(self, name: str) -> None:
        assert isinstance(draw(name, 64, 10), ComplexSRHT)
        longer = draw(name, 65, 10)
        assert isinstance(longer, Composed)
        assert isinstance(longer.base, BASE_SKETCHES[name])
        assert longer.base.size == INTERNAL

    @sketches
    def test_seeds_give_different_matrices(self, name: str) -> None:
        assert len({matrix_of(draw(name, 90, 10, seed)).tobytes() for seed in range(20)}) == 20
        first, second = (matrix_of(draw(name, 90, 10)) for _ in range(2))
        np.testing.assert_array_equal(first, second)


class TestLaw:
    @sketches
    def test_moments(self, name: str) -> None:
        """E (Wx) conj(Wy) = ⟨x, y⟩ and E (Wx)(Wy) = 0, within five standard errors.

        Over 300 seeds and, in each, the mean of 64 outputs. Failure probability 6e-7 for each of
        the four numbers.
        """
        x, y = points(2, 90)
        plain, squared = [], []
        for seed in range(300):
            left, right = complex_rows(draw(name, 90, 64, seed), np.stack([x, y]))
            plain.append((left * right.conj()).mean())
            squared.append((left * right).mean())
        for values, expected in ((plain, x @ y), (squared, 0.0)):
            for part in (np.real(values) - expected, np.imag(values)):
                assert abs(part.mean()) < 5 * part.std() / np.sqrt(300)
