"""Triangular factors against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from powersketch.linalg import TriangularFactor, TriangularRows
from tests.linalg.systems import dense, tall_matrix


def test_triangular_factor_solves() -> None:
    upper = np.triu(np.random.default_rng(3).standard_normal((9, 9))) + 5.0 * np.eye(9)
    R = TriangularFactor(upper + np.tril(np.ones((9, 9)), -1))
    v = np.arange(9.0)
    np.testing.assert_allclose(upper @ (R @ v), v, atol=1e-12)
    np.testing.assert_allclose(upper.T @ R.rmatvec(v), v, atol=1e-12)
    np.testing.assert_allclose(upper @ R.matmat(np.eye(9)), np.eye(9), atol=1e-12)
    np.testing.assert_allclose(upper.T @ R.rmatmat(np.eye(9)), np.eye(9), atol=1e-12)


# The first is factored from its Gram matrix; the second is too ill-conditioned for that.
@pytest.mark.parametrize("smallest", [1e-2, 1e-9])
@pytest.mark.parametrize("alpha", [0.0, 1e-26])
def test_rows_get_orthonormal_columns(smallest: float, alpha: float) -> None:
    U, _, V = np.linalg.svd(tall_matrix(60, 15), full_matrices=False)
    A = (U * np.geomspace(smallest, 1.0, 15)) @ V
    given = A.copy()
    product = A @ dense(TriangularFactor.of_rows(A, alpha))
    np.testing.assert_allclose(product.T @ product, np.eye(15), atol=1e-6)
    np.testing.assert_array_equal(A, given)


# More columns than rows; an alpha that the Gram matrix resolves, and one that it does not.
@pytest.mark.parametrize("alpha", [0.5, 1e-12])
def test_alpha_stands_for_further_rows(alpha: float) -> None:
    A = tall_matrix().T
    R = dense(TriangularFactor.of_rows(A, alpha))
    inner = np.linalg.solve(A @ A.T + alpha * np.eye(12), A)
    inverse = (np.eye(80) - A.T @ inner) / alpha
    np.testing.assert_allclose(R @ R.T, inverse, rtol=0, atol=1e-4 * np.abs(inverse).max())


def test_singular_triangles_are_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
        TriangularFactor(np.diag([1.0, 0.0]))
    with pytest.raises(np.linalg.LinAlgError, match="larger alpha"):
        TriangularFactor.of_rows(np.ones((5, 2)))
    with pytest.raises(ValueError, match="2 rows and 3 columns"):
        TriangularFactor.of_rows(np.ones((2, 3)))
    with pytest.raises(ValueError, match="alpha=-1"):
        TriangularFactor.of_rows(np.ones((2, 3)), -1.0)


class TestTriangularRows:
    """Many rows solved at a time, as Nyström features are."""

    @pytest.mark.parametrize("size", [1, 7, 256, 257, 600])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_solves(self, size: int, dtype: type) -> None:
        generator = np.random.default_rng(size)
        factor = np.tril(generator.normal(size=(size, size))) / np.sqrt(size) + np.eye(size) * 2
        rows = generator.normal(size=(5, size)).astype(dtype)
        expected = linalg.solve_triangular(factor, rows.T.astype(np.float64), lower=True).T
        solver = TriangularRows.of(factor)
        solver = solver.in_float32 if dtype == np.float32 else solver
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
