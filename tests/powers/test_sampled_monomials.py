"""Weighted monomials, and the small linear algebra behind their choice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersketch.powers import SampledMonomials, Scaled
from powersketch.powers.fixed_order_algebra import (
    cholesky,
    gram,
    inverse_of_triangular,
    shifted,
)


class TestSampledMonomials:
    @given(columns=st.integers(1, 6), degree=st.integers(1, 20), seed=st.integers(0, 99))
    def test_products(self, columns: int, degree: int, seed: int) -> None:
        """Degrees up to 16 are computed plainly, others with exponents of their own."""
        generator = np.random.default_rng(seed)
        tuples = np.sort(generator.integers(0, columns, (9, degree)), axis=1).astype(np.int32)
        X = generator.normal(size=(5, columns))
        squared = generator.random(9) + 0.1
        monomials = SampledMonomials.of(tuples, Scaled.of(squared))
        values, exponents = monomials.values(X[:, monomials.coordinates])
        expected = np.prod(X[:, tuples], axis=2) * np.sqrt(squared)
        np.testing.assert_allclose(np.ldexp(values, exponents[:, None]), expected, rtol=1e-13)
        assert monomials.size == 9
        assert values.flags.c_contiguous

    @pytest.mark.parametrize("entry", [1e-3, 30.0])
    def test_no_degree_overflows(self, entry: float) -> None:
        tuples = np.zeros((1, 1000), dtype=np.int32)
        tuples[0, 400:] = 1
        weight = Scaled.of(np.array([entry])).power(1000).inverse()
        monomials = SampledMonomials.of(tuples, (weight * weight).normalised())
        values, exponents = monomials.values(np.array([[entry, 2 * entry], [0.0, 1.0]]))
        assert np.log2(np.abs(values[0, 0])) + exponents[0] == pytest.approx(600, abs=1e-9)
        assert values[1, 0] == 0.0

    def test_more_factors_than_mantissas_hold(self) -> None:
        tuples = np.arange(1500, dtype=np.int32)[None]
        monomials = SampledMonomials.of(tuples, Scaled.of(np.ones(1)))
        values, exponents = monomials.values(np.full((1, 1500), 0.5))
        assert np.log2(values[0, 0]) + exponents[0] == -1500

    def test_only_the_coordinates_needed(self) -> None:
        tuples = np.array([[3, 3, 7], [7, 9, 9]], dtype=np.int32)
        monomials = SampledMonomials.of(tuples, Scaled.of(np.ones(2)))
        np.testing.assert_array_equal(monomials.coordinates, [3, 7, 9])
        np.testing.assert_array_equal(monomials.factors.shape, [2, 2])


class TestFixedOrderAlgebra:
    @given(size=st.integers(1, 12), seed=st.integers(0, 99))
    def test_agrees_with_lapack(self, size: int, seed: int) -> None:
        A = np.random.default_rng(seed).normal(size=(size, size + 3))
        square = shifted(gram(A), 0.1)
        np.testing.assert_allclose(square, A @ A.T + 0.1 * np.eye(size), rtol=1e-12)
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
