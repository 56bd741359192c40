"""Monomials: all of a degree are the exact power; some of them with weights."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powersketch.powers import (
    Monomials,
    SampledMonomials,
    Scaled,
    monomial_count,
    monomials_fit,
)

PRIMES = np.array([2.0, 3.0, 5.0, 7.0, 11.0])


@given(columns=st.integers(1, 6), degree=st.integers(1, 5))
def test_inner_products_are_powers(columns: int, degree: int) -> None:
    X = np.random.default_rng([columns, degree]).normal(size=(7, columns))
    Z = Monomials.of(columns, degree).apply(X)
    norms = np.linalg.norm(X, axis=1)
    scale = np.outer(norms, norms) ** degree
    np.testing.assert_allclose(Z @ Z.T / scale, (X @ X.T) ** degree / scale, atol=1e-12)


@given(columns=st.integers(1, 5), degree=st.integers(1, 5))
def test_lists_every_monomial_once_with_its_multinomial(columns: int, degree: int) -> None:
    """Products of primes tell the monomials apart."""
    monomials = Monomials.of(columns, degree)
    coefficients = monomials.apply(np.ones((1, columns)))[0]
    values = monomials.apply(PRIMES[None, :columns])[0] / coefficients
    expected = {}
    for variables in combinations_with_replacement(range(columns), degree):
        repeats = np.bincount(variables)
        multinomial = math.factorial(degree) // math.prod(map(math.factorial, repeats.tolist()))
        expected[round(math.prod(PRIMES[list(variables)]))] = multinomial
    actual = dict(zip(values.round().astype(int).tolist(), coefficients**2, strict=True))
    assert actual == pytest.approx(expected, rel=1e-14)
    assert monomials.size == len(values) == len(expected) == monomial_count(columns, degree)


@given(columns=st.integers(1, 50), degree=st.integers(1, 50))
def test_count_follows_pascals_rule(columns: int, degree: int) -> None:
    """A monomial has the last variable or it has not."""
    with_last = monomial_count(columns, degree - 1)
    without = monomial_count(columns - 1, degree) if columns > 1 else 0
    assert monomial_count(columns, degree) == with_last + without


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_keeps_the_dtype(dtype: Any) -> None:
    Z = Monomials.of(4, 3).apply(np.ones((2, 4), dtype=dtype))
    assert Z.dtype == dtype
    assert Z.shape == (2, 20)


@pytest.mark.parametrize("degree", [300, 1100, 2000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_high_degrees_are_as_exact_as_low_ones(degree: int, dtype: Any) -> None:
    """Roots of multinomials alone would exceed float32 from degree 260 on, float64 from 1030."""
    angles = np.linspace(0.0, 1.6, 9)
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(dtype)
    Z = Monomials.of(2, degree).apply(X).astype(np.float64)
    exact = (X.astype(np.float64) @ X.T.astype(np.float64)) ** degree
    np.testing.assert_allclose(Z @ Z.T, exact, rtol=0, atol=degree * np.finfo(dtype).eps)


def test_what_cannot_be_computed_does_not_fit() -> None:
    assert monomials_fit(2, 2000, 2001)
    assert not monomials_fit(2, 2000, 2000)
    assert not monomials_fit(2, 2001, 10**6)


def test_fixed_order() -> None:
    Z = Monomials.of(3, 2).apply(np.array([[1.0, 10.0, 100.0]]))
    root = math.sqrt(2)
    expected = [1, 10 * root, 100 * root, 100, 1000 * root, 10000]
    np.testing.assert_allclose(Z[0], expected, rtol=1e-15)


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
