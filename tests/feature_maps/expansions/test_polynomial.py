"""The geometry of the expansion around the mean, and the block structure of its features."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch import PolynomialSketch
from powersketch.feature_maps.expansions.centred import MeanDirection
from powersketch.feature_maps.pilot import column_sums
from powersketch.feature_maps.rows import AugmentedRows
from tests.feature_maps.cases import each_float, error_of, squared_lengths, uncentred

Array = NDArray[Any]

each_coef0 = pytest.mark.parametrize("coef0", [0.0, 0.25, 3.0])
each_gamma = pytest.mark.parametrize("gamma", [1.0, 0.3])


def direction_of(X: Array, gamma: float, coef0: float) -> MeanDirection:
    centre = MeanDirection.of_mean(AugmentedRows(gamma, coef0), X.mean(axis=0))
    assert centre is not None
    return centre


def augmented(X: Array, gamma: float, coef0: float) -> Array:
    """Return x̃ = (√gamma · x, √coef0) of every row."""
    constant = np.full((len(X), 1), np.sqrt(coef0))
    return np.concatenate([np.sqrt(gamma) * X, constant], axis=1)


class TestMeanDirection:
    @each_coef0
    @each_gamma
    def test_is_the_unit_vector_of_the_mean(self, gamma: float, coef0: float) -> None:
        X = uncentred(40, 7)
        centre = direction_of(X, gamma, coef0)
        mean = augmented(X, gamma, coef0).mean(axis=0)
        u = np.append(centre.direction, centre.constant)
        np.testing.assert_allclose(u, mean / np.linalg.norm(mean), rtol=1e-14)

    @each_coef0
    @each_gamma
    @each_float
    def test_parts_along_and_across(self, gamma: float, coef0: float, dtype: Any) -> None:
        """‖x̃‖² = a² + ‖x⊥‖² with a = ⟨x̃, u⟩."""
        X = uncentred(40, 7, dtype)
        centre = direction_of(X.astype(np.float64), gamma, coef0)
        geometry = centre.geometry(X, threads=1)
        long = augmented(X.astype(np.float64), gamma, coef0)
        u = np.append(centre.direction, centre.constant)
        np.testing.assert_allclose(geometry.squared_norms, squared_lengths(long), rtol=1e-13)
        np.testing.assert_allclose(geometry.along, long @ u, rtol=1e-12)
        np.testing.assert_allclose(
            geometry.along**2 + geometry.squared_across, geometry.squared_norms, rtol=1e-13
        )

    @each_coef0
    @each_gamma
    def test_reflected_coordinates_have_the_right_products(
        self, gamma: float, coef0: float
    ) -> None:
        """The Gram matrix of √gamma · x − shift · u is ⟨x̃, ỹ⟩ − a b, with no extra coordinate."""
        X = uncentred(40, 7)
        centre = direction_of(X, gamma, coef0)
        geometry = centre.geometry(X, threads=1)
        across = np.sqrt(gamma) * X - geometry.shift[:, None] * centre.direction
        products = gamma * X @ X.T + coef0 - np.outer(geometry.along, geometry.along)
        np.testing.assert_allclose(across @ across.T, products, rtol=0, atol=1e-10)
        np.testing.assert_allclose(squared_lengths(across), geometry.squared_across, atol=1e-10)

    @each_coef0
    def test_a_row_along_the_mean_has_nothing_across(self, coef0: float) -> None:
        X = uncentred(40, 7)
        geometry = direction_of(X, 1.0, coef0).geometry(X.mean(axis=0)[None], threads=1)
        assert geometry.squared_across[0] >= 0
        np.testing.assert_allclose(geometry.squared_across, 0, atol=1e-15)

    def test_sparse_rows_have_the_same_geometry(self) -> None:
        X = uncentred(40, 7)
        centre = direction_of(X, 0.5, 0.25)
        dense, from_sparse = centre.geometry(X, 1), centre.geometry(sp.csr_array(X), 1)
        for name in ("squared_norms", "along", "squared_across", "shift"):
            np.testing.assert_array_equal(getattr(from_sparse, name), getattr(dense, name))

    def test_no_direction_without_a_mean(self) -> None:
        assert MeanDirection.of_mean(AugmentedRows(1.0, 0.0), np.zeros(5)) is None

    def test_the_constant_alone_is_a_direction(self) -> None:
        centre = MeanDirection.of_mean(AugmentedRows(1.0, 4.0), np.zeros(5))
        assert centre is not None
        assert centre.constant == 1.0
        assert not centre.direction.any()


class TestColumnSums:
    @given(
        rows=st.integers(1, 200),
        columns=st.integers(1, 20),
        density=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
        dtype=st.sampled_from([np.float32, np.float64]),
        squared=st.booleans(),
        seed=st.integers(0, 2**16),
    )
    def test_dense_and_sparse_give_the_same_bits(
        self, rows: int, columns: int, density: float, dtype: Any, squared: bool, seed: int
    ) -> None:
        generator = np.random.default_rng(seed)
        X = generator.normal(size=(rows, columns)) * (generator.random((rows, columns)) < density)
        X, weights = X.astype(dtype), generator.random(rows)
        dense = column_sums(X, weights, squared=squared)
        np.testing.assert_array_equal(column_sums(sp.csr_array(X), weights, squared=squared), dense)
        double = X.astype(np.float64) ** (2 if squared else 1)
        np.testing.assert_allclose(dense, weights @ double, rtol=1e-12, atol=1e-13)

    def test_memory_order_does_not_matter(self) -> None:
        X, weights = uncentred(200, 9), np.full(200, 1 / 200)
        expected = column_sums(X, weights)
        np.testing.assert_array_equal(column_sums(np.asfortranarray(X), weights), expected)
        strided = np.repeat(X, 2, axis=1)[:, ::2]
        np.testing.assert_array_equal(column_sums(strided, weights), expected)


def blocks_of(sketch: PolynomialSketch, Z: Array) -> dict[int, Array]:
    """Cut the features into the blocks of each degree."""
    sizes = sketch._row_map.sizes
    degrees = [0, *sizes.degrees]
    starts = [sizes.offsets[degree] for degree in degrees]
    pieces = np.split(Z, [*starts[1:], sizes.stop], axis=1)
    return dict(zip(degrees, pieces[:-1], strict=True))


class TestBlocks:
    @each_coef0
    def test_exact_degrees_have_the_terms_of_the_binomial(self, coef0: float) -> None:
        """Z_l Z_lᵀ = C(p, l) (a b)^(p−l) ⟨x⊥, y⊥⟩^l for the degrees that are not sketched."""
        X, degree = uncentred(25, 3), 7
        sketch = PolynomialSketch(
            degree, coef0=coef0, n_components=35, expansion="mean", norm_preserving=False
        ).fit(X)
        geometry = sketch._row_map.expansion.centre.geometry(X, threads=1)
        along = np.outer(geometry.along, geometry.along)
        across = X @ X.T + coef0 - along
        sizes = sketch._row_map.sizes
        blocks = blocks_of(sketch, sketch.transform(X))
        assert sizes.exact
        for level in (0, 1, *sizes.exact):
            term = comb(degree, level) * along ** (degree - level) * across**level
            products = blocks[level] @ blocks[level].T
            np.testing.assert_allclose(products, term, rtol=0, atol=1e-12 * np.abs(term).max())

    @each_coef0
    def test_own_coordinates_of_degree_one_are_exact(self, coef0: float) -> None:
        """Degrees 0 and 1 need 1 + d features; the rest of the kernel is sketched."""
        X = 0.3 + 0.02 * np.random.default_rng(0).normal(size=(200, 10))
        sketch = PolynomialSketch(
            3, coef0=coef0, n_components=40, expansion="mean", norm_preserving=False
        ).fit(X)
        sizes = sketch._row_map.sizes
        assert len(sizes.coordinates) == 10
        geometry = sketch._row_map.expansion.centre.geometry(X, threads=1)
        along = np.outer(geometry.along, geometry.along)
        term = 3 * along**2 * (X @ X.T + coef0 - along)
        linear = blocks_of(sketch, sketch.transform(X))[1]
        np.testing.assert_allclose(linear @ linear.T, term, rtol=0, atol=1e-12)

    @each_coef0
    @each_float
    def test_kept_blocks_share_the_norm_in_proportion(self, coef0: float, dtype: Any) -> None:
        """With exact norms degree 0 has its binomial share, and the others divide what it leaves.

        They do so in proportion to their own shares: what the degrees without features would have
        had is theirs.
        """
        X, degree = uncentred(30, 20, dtype), 5
        sketch = PolynomialSketch(
            degree, coef0=coef0, n_components=50, expansion="mean", random_state=0
        ).fit(X)
        geometry = sketch._row_map.expansion.centre.geometry(X, threads=1)
        cosine = geometry.along**2 / geometry.squared_norms
        shares = {
            level: comb(degree, level) * cosine ** (degree - level) * (1 - cosine) ** level
            for level in sketch._row_map.sizes.degrees
        }
        constant = cosine**degree
        factor = (1 - constant) / sum(shares.values())
        parts = {0: constant, **{level: factor * share for level, share in shares.items()}}
        blocks = blocks_of(sketch, sketch.transform(X))
        assert list(blocks) == list(parts)
        for level, block in blocks.items():
            expected = geometry.squared_norms**degree * parts[level]
            np.testing.assert_allclose(squared_lengths(block), expected, rtol=1e-4)

    @pytest.mark.filterwarnings("ignore::powersketch.exceptions.RangeWarning")
    @pytest.mark.parametrize("degree", [2, 3, 40])
    def test_rows_of_another_kind_than_fit_has_seen(self, degree: int) -> None:
        """Fit sees one direction only and gives all features to it; norms stay exact.

        Among the rows are some with nothing along that direction.
        """
        sketch = PolynomialSketch(degree, n_components=16, expansion="mean", random_state=0)
        sketch.fit(np.tile(np.eye(1, 20), (50, 1)))
        X = uncentred(30, 20, seed=4)
        X[::2, 0] = 0.0
        lengths = squared_lengths(sketch.transform(X))
        np.testing.assert_allclose(lengths, sketch.kernel_.diagonal(X), rtol=1e-12)


class TestHighDegrees:
    @pytest.mark.parametrize("degree", [129, 1000, 10**5, 10**6])
    def test_few_levels_are_looked_at(self, degree: int) -> None:
        X = np.ones((50, 10)) + 1e-3 * np.random.default_rng(0).standard_normal((50, 10))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        sketch = PolynomialSketch(degree, n_components=256, random_state=0).fit(X)
        assert sketch.expansion_ == "mean"
        assert len(sketch._row_map.expansion.levels) <= 128
        assert error_of(sketch, X) < 0.02

    def test_what_is_spread_too_thin_is_not_expanded(self) -> None:
        X = np.random.default_rng(0).standard_normal((50, 10))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        assert PolynomialSketch(10**6, random_state=0).fit(X).expansion_ == "none"
        with pytest.raises(ValueError, match="'auto' or 'none'"):
            PolynomialSketch(10**6, expansion="mean").fit(X)

    def test_degrees_without_meaning(self) -> None:
        with pytest.raises(ValueError, match="rounding errors of inner products"):
            PolynomialSketch(10**30).fit(np.eye(3))
