"""Rows solved against a triangular factor, and Cholesky factors with jitter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from powersketch.kernels import Gaussian
from powersketch.linalg import TriangularRows, jittered_cholesky


class TestTriangularRows:
    """The solver behind the features."""

    @pytest.mark.parametrize("size", [1, 7, 256, 257, 600])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_solves(self, size: int, dtype: type) -> None:
        generator = np.random.default_rng(size)
        factor = np.tril(generator.normal(size=(size, size))) / np.sqrt(size) + np.eye(size) * 2
        rows = generator.normal(size=(5, size)).astype(dtype)
        expected = linalg.solve_triangular(factor, rows.T.astype(np.float64), lower=True).T
        solver = TriangularRows.of(factor).astype(dtype)
        solver.solve(rows)
        assert rows.dtype == dtype
        np.testing.assert_allclose(
            rows, expected, rtol=0, atol=1e-11 if dtype == np.float64 else 1e-4
        )

    @pytest.mark.parametrize("size", [1, 7, 256, 257, 600])
    def test_solves_on_both_sides(self, size: int) -> None:
        generator = np.random.default_rng(size)
        factor = np.tril(generator.normal(size=(size, size))) / np.sqrt(size) + np.eye(size) * 2
        wanted = generator.normal(size=(size, size))
        wanted += wanted.T
        matrix = factor @ wanted @ factor.T
        TriangularRows.of(factor).solve_both_sides(matrix)
        np.testing.assert_allclose(np.triu(matrix), np.triu(wanted), rtol=0, atol=1e-10)

    def test_jitter_is_relative(self) -> None:
        matrix = 1e6 * Gaussian(gamma=0.4)(np.random.default_rng(0).random((90, 6)))
        factor, jitter = jittered_cholesky(matrix.copy(), 0.5)
        assert jitter == 0.5
        np.testing.assert_allclose(factor @ factor.T, matrix + 5e5 * np.eye(90), rtol=1e-10)

    def test_indefinite_matrix(self) -> None:
        with pytest.raises(ValueError, match="not positive semi-definite: it has a negative"):
            jittered_cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.0)
