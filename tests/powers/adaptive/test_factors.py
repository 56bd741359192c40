"""The small linear algebra behind the choice of monomials, in a fixed order of operations."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from powersketch.powers.adaptive.factors import cholesky, gram, inverse_of_triangular


class TestFixedOrderAlgebra:
    @given(size=st.integers(1, 12), seed=st.integers(0, 99))
    def test_agrees_with_lapack(self, size: int, seed: int) -> None:
        A = np.random.default_rng(seed).normal(size=(size, size + 3))
        np.testing.assert_allclose(gram(A), A @ A.T, atol=1e-12)
        square = gram(A) + 0.1 * np.eye(size)
        factor = cholesky(square)
        np.testing.assert_allclose(factor, np.linalg.cholesky(square), atol=1e-11)
        inverse = inverse_of_triangular(factor)
        np.testing.assert_allclose(inverse @ factor, np.eye(size), atol=1e-11)
        np.testing.assert_array_equal(inverse, np.tril(inverse))

    def test_singular_matrices(self) -> None:
        A = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0], [1.0, -1.0]])
        factor = cholesky(gram(A))
        np.testing.assert_allclose(factor @ factor.T, A @ A.T, atol=1e-14)
        assert not factor[:, 1:3].any()
