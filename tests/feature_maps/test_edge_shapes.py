"""The smallest shapes and the plainest data: one row, one column, zeros, constants, repeats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from powersketch import PolynomialSketch
from powersketch.sketches import BASE_SKETCHES
from tests.feature_maps.cases import (
    FLOATS,
    NORM_PRESERVING,
    Case,
    assert_same_bits,
    each_case,
    each_case_with,
    each_float,
    each_norm_preserving_case,
    squared_lengths,
    uncentred,
)

each_expansion = pytest.mark.parametrize("expansion", ["auto", "none", "mean"])
each_coef0 = pytest.mark.parametrize("coef0", [0, 0.5])
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


class TestFewRows:
    @each_case_with(NORM_PRESERVING, dtype=FLOATS, count=[1, 2, 3, 15, 16, 17, 33])
    def test_diagonal_is_exact(self, case: Case, dtype: Any, count: int) -> None:
        X, sketch = case.rows(count, dtype), case.sketch()
        Z = sketch.fit_transform(X)
        assert Z.shape == (count, case.parameters["n_components"])
        expected = case.expected_diagonal(sketch, X)
        np.testing.assert_allclose(squared_lengths(Z), expected, rtol=TOLERANCE[dtype])

    @each_case_with(dtype=FLOATS)
    def test_each_row_has_the_features_it_has_among_others(self, case: Case, dtype: Any) -> None:
        X, sketch = case.rows(20, dtype), case.fitted(20, dtype)
        alone = np.concatenate([sketch.transform(row[None]) for row in X])
        assert_same_bits(alone, case.features(20, dtype))


class TestFewColumns:
    @each_expansion
    @each_coef0
    @each_float
    @pytest.mark.parametrize("degree", [1, 2, 3, 8])
    def test_one_column_is_exact(
        self, expansion: str, coef0: float, dtype: Any, degree: int
    ) -> None:
        """One column has at most degree + 1 monomials."""
        X = np.linspace(-1.2, 1.2, 25, dtype=dtype)[:, None]
        sketch = PolynomialSketch(degree, coef0=coef0, n_components=9, expansion=expansion)
        Z = sketch.fit_transform(X).astype(np.float64)
        K = sketch.kernel_(X.astype(np.float64))
        assert sketch.expansion_ == "exact"
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=TOLERANCE[dtype] * np.abs(K).max())

    @each_coef0
    @pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 8, 9])
    def test_literal_sketch_is_finite(self, coef0: float, columns: int) -> None:
        sketch = PolynomialSketch(3, coef0=coef0, norm_preserving=False, random_state=0)
        Z = sketch.fit_transform(uncentred(20, columns))
        assert np.isfinite(Z).all()
        assert np.abs(Z).max() > 0


class TestFewComponents:
    @each_expansion
    @pytest.mark.parametrize("base_sketch", BASE_SKETCHES)
    @pytest.mark.parametrize(
        ("size", "coef0", "dtype"),
        [
            (1, 0, np.float64),
            (3, 0.5, np.float32),
            (4, 0, np.float64),
            (5, 0, np.float32),
            (7, 0.5, np.float64),
            (8, 0, np.float32),
            (31, 0.5, np.float64),
        ],
    )
    def test_diagonal_is_exact(
        self, expansion: str, base_sketch: str, size: int, coef0: float, dtype: Any
    ) -> None:
        X = np.random.default_rng(1).normal(loc=0.1, scale=0.2, size=(30, 23)).astype(dtype)
        for degree in (1, 2, 3, 6):
            sketch = PolynomialSketch(
                degree,
                coef0=coef0,
                n_components=size,
                expansion=expansion,
                base_sketch=base_sketch,
                random_state=3,
            )
            Z = sketch.fit_transform(X)
            assert Z.shape == (30, size)
            expected = sketch.kernel_.diagonal(X.astype(np.float64))
            np.testing.assert_allclose(squared_lengths(Z), expected, rtol=TOLERANCE[dtype])

    @pytest.mark.parametrize("size", [1, 2])
    def test_too_few_for_an_expansion(self, size: int) -> None:
        sketch = PolynomialSketch(n_components=size, expansion="mean").fit(uncentred(20, 8))
        assert sketch.expansion_ == "none"

    def test_unused_columns_are_zero(self) -> None:
        Z = PolynomialSketch(2, n_components=50).fit_transform(uncentred(20, 4))
        assert Z[:, :10].any(axis=0).all()  # C(5, 2) monomials
        assert not Z[:, 10:].any()


class TestPlainData:
    @each_case_with(dtype=FLOATS)
    def test_zero_rows_become_what_the_kernel_says(self, case: Case, dtype: Any) -> None:
        """Zero if the kernel is zero there, else of the norm that it has there."""
        X = case.rows(12, dtype)
        X[[0, 5, 11]] = 0
        sketch = case.sketch().fit(X)
        expected = case.expected_diagonal(sketch, X[[0, 5, 11]])
        for rows in (X, sp.csr_array(X)):
            Z = sketch.transform(rows)[[0, 5, 11]]
            assert np.isfinite(Z).all()
            assert_same_bits(Z, np.repeat(Z[:1], 3, axis=0))
            if not expected.any():
                assert not Z.any()
            elif case.diagonal != "neither":
                np.testing.assert_allclose(squared_lengths(Z), expected, rtol=TOLERANCE[dtype])

    @each_case_with(dtype=FLOATS)
    def test_nothing_but_zeros(self, case: Case, dtype: Any) -> None:
        X, sketch = np.zeros((9, case.columns), dtype), case.sketch()
        Z = sketch.fit_transform(X)
        assert np.isfinite(Z).all()
        expected = case.expected_diagonal(sketch, X)
        if not expected.any():
            assert not Z.any()
        elif case.diagonal != "neither":
            np.testing.assert_allclose(squared_lengths(Z), expected, rtol=TOLERANCE[dtype])

    @each_norm_preserving_case
    def test_negative_zeros_are_zeros(self, case: Case) -> None:
        X = case.rows()
        negative = np.where(X == 0, -0.0, X)
        np.testing.assert_array_equal(case.sketch().fit_transform(negative), case.features())

    @each_norm_preserving_case
    def test_constant_columns(self, case: Case) -> None:
        X, sketch = np.full((20, case.columns), 0.25), case.sketch()
        X *= min(1.0, case.largest_norm / np.sqrt(squared_lengths(X).max()))
        Z = sketch.fit_transform(X)
        expected = case.expected_diagonal(sketch, X)
        np.testing.assert_allclose(squared_lengths(Z), expected, rtol=1e-12)
        assert_same_bits(Z, np.repeat(Z[:1], 20, axis=0))

    @each_case
    def test_repeated_rows_have_repeated_features(self, case: Case) -> None:
        X = np.tile(case.rows(7), (6, 1))
        Z = case.sketch().fit_transform(X)
        assert_same_bits(Z, np.tile(Z[:7], (6, 1)))

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    @each_norm_preserving_case
    def test_rows_beyond_those_of_fit(self, case: Case) -> None:
        """Rows of another size and opposite direction than fit has seen."""
        sketch = case.fitted(30)
        X = np.concatenate([-case.reach * case.rows(10, seed=1), 1e-3 * case.rows(10, seed=2)])
        expected = case.expected_diagonal(sketch, X)
        np.testing.assert_allclose(squared_lengths(sketch.transform(X)), expected, rtol=1e-12)
