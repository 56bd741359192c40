"""Complex-to-real sketches: against matrices written out, their law, and their range.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.powers import POWER_METHODS, ComplexToReal, Slice
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES

COLUMNS, INTERNAL = 50, 32
base_sketches = pytest.mark.parametrize("base_sketch", BASE_SKETCHES)
Vector = NDArray[np.float64]


def points(rows: int, columns: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Unit vectors with a common direction, a third of their coordinates zero."""
    generator = np.random.default_rng([rows, columns])
    X = generator.normal(size=(rows, columns)) + 0.5
    X[generator.random(X.shape) < 1 / 3] = 0.0
    X[:, 0] = 1.0
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


def draw(
    outputs: Mapping[int, Slice],
    *,
    columns: int = COLUMNS,
    internal: int = INTERNAL,
    base_sketch: str = "srht",
    preserve_norms: bool = False,
    seed: int = 1,
) -> ComplexToReal:
    return ComplexToReal.draw(
        RandomStreams(seed),
        columns,
        outputs,
        internal=internal,
        base_sketch=base_sketch,
        preserve_norms=preserve_norms,
    )


def features(
    sketch: ComplexToReal,
    X: Rows,
    *,
    block_scales: NDArray[np.float64] | None = None,
    row_scale: Vector | None = None,
    direction: Vector | None = None,
    row_shift: Vector | None = None,
    threads: int = 1,
) -> NDArray[Any]:
    """All features of the rows, which have to fit their dtype."""
    sketch = dataclasses.replace(sketch, direction=direction)
    rows, blocks = X.shape[0], sketch.blocks
    width = max(block.output.offset + block.output.size for block in blocks)
    out = np.full((rows, width), np.nan, dtype=X.dtype)
    row_scale = np.ones(rows) if row_scale is None else row_scale
    block_scales = np.ones((rows, len(blocks))) if block_scales is None else block_scales
    assert sketch.write(X, row_scale, row_shift, block_scales, out, threads)
    return out


def written_out(sketch: ComplexToReal, X: NDArray[np.float64]) -> dict[int, NDArray[np.complex128]]:
    """Φ = W₁x ∘ … ∘ W_l x of every degree, with matrices in full."""
    products = {}
    for block in sketch.blocks:
        product = np.ones((len(X), block.features), dtype=np.complex128)
        for factor in sketch.factors[: block.degree]:
            real, imaginary = factor.apply(np.eye(sketch.columns))
            W = (real + 1j * imaginary)[:, block.first : block.stop]
            product *= X @ W
        products[block.degree] = product
    return products


def columns_of(product: NDArray[np.complex128], size: int) -> NDArray[np.float64]:
    """Real parts, then imaginary parts; the odd one turned by an eighth of a circle."""
    real, imaginary = product.real.copy(), product.imag[:, : size // 2]
    if size % 2:
        real[:, -1] = (np.exp(0.25j * np.pi) * product[:, -1]).real
    return np.concatenate([real, imaginary], axis=1)


def assert_rows_close(
    actual: NDArray[Any], expected: NDArray[Any], tolerance: float = 1e-12
) -> None:
    """Compare rows relative to their norms."""
    errors = np.linalg.norm(actual.astype(np.float64) - expected, axis=1)
    assert np.all(errors <= tolerance * np.linalg.norm(expected, axis=1))


class TestDefinition:
    @base_sketches
    @pytest.mark.parametrize("degree", [1, 2, 3, 5, 9])
    @pytest.mark.parametrize("size", [1, 2, 7, 32])
    def test_is_the_product_of_its_factors(self, base_sketch: str, degree: int, size: int) -> None:
        sketch = draw({degree: Slice(0, size, 0)}, base_sketch=base_sketch)
        X = points(9, COLUMNS)
        product = written_out(sketch, X)[degree]
        for rows in (X, sp.csr_array(X)):
            difference = np.abs(features(sketch, rows) - columns_of(product, size))
            assert difference.max() <= 1e-12 * np.abs(product).max()

    @pytest.mark.parametrize("columns", [1, 2, 3, 70, 200])
    def test_blocks_of_rows_longer_and_shorter_than_the_sketch(self, columns: int) -> None:
        sketch = draw({3: Slice(0, 301, 0)}, columns=columns, internal=512)
        X = points(9, columns)
        assert_rows_close(features(sketch, X), columns_of(written_out(sketch, X)[3], 301))

    def test_several_degrees_have_product_features_of_their_own(self) -> None:
        wanted = {1: Slice(0, 4, 20), 2: Slice(4, 6, 0), 5: Slice(10, 9, 6), 7: Slice(19, 5, 15)}
        sketch = draw(wanted)
        X = points(9, COLUMNS)
        Z, expected = features(sketch, X), written_out(sketch, X)
        assert sorted(sketch.degrees) == [1, 2, 5, 7]
        for degree, cut in wanted.items():
            block = Z[:, cut.offset : cut.offset + cut.size]
            assert_rows_close(block, columns_of(expected[degree], cut.size))
        taken = [set(range(block.first, block.stop)) for block in sketch.blocks]
        assert sum(map(len, taken)) == len(set.union(*taken))

    def test_factors_are_as_small_as_their_degrees_allow(self) -> None:
        sketch = draw({2: Slice(0, 10, 0), 4: Slice(10, 7, 10)})
        assert [factor.size for factor in sketch.factors] == [9, 9, 4, 4]

    def test_factors_are_independent(self) -> None:
        sketch = draw({6: Slice(0, 20, 0)})
        images = {factor.apply(np.eye(COLUMNS))[0].tobytes() for factor in sketch.factors}
        assert len(images) == 6

    @base_sketches
    def test_a_shift_is_added_to_the_rows(self, base_sketch: str) -> None:
        sketch = draw({3: Slice(0, 31, 0)}, base_sketch=base_sketch)
        X, direction, shift = points(9, COLUMNS), points(1, COLUMNS)[0], np.linspace(-1, 1, 9)
        expected = features(sketch, X + shift[:, None] * direction)
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows, direction=direction, row_shift=shift)
            assert_rows_close(Z, expected, tolerance=1e-11)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_further_columns_are_reached_by_the_shift(self, sparse: bool) -> None:
        sketch, X = draw({3: Slice(0, INTERNAL, 0)}), points(9, COLUMNS)
        last, shorter = np.eye(COLUMNS)[-1], X[:, :-1].copy()
        rows = sp.csr_array(shorter) if sparse else shorter
        Z = features(sketch, rows, direction=last, row_shift=X[:, -1].copy())
        assert_rows_close(Z, features(sketch, X))

    def test_is_homogeneous(self) -> None:
        sketch, X = draw({6: Slice(0, 31, 0)}), points(9, COLUMNS)
        scales = np.linspace(0.5, 2, 9)
        expected = scales[:, None] ** 6 * features(sketch, X)
        assert_rows_close(features(sketch, X * scales[:, None]), expected)
        assert_rows_close(features(sketch, X, row_scale=scales), expected)
        assert_rows_close(features(sketch, X, block_scales=scales[:, None] ** 6), expected)

    def test_is_registered(self) -> None:
        assert POWER_METHODS["ctr"] is ComplexToReal


class TestPreservedNorms:
    @base_sketches
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_blocks_get_the_norms_asked_for(self, base_sketch: str, dtype: Any) -> None:
        cuts = {1: Slice(0, 4, 0), 3: Slice(4, 11, 4), 40: Slice(15, 17, 15)}
        sketch = draw(cuts, base_sketch=base_sketch, preserve_norms=True)
        X = points(9, COLUMNS, dtype)
        scales = np.random.default_rng(0).uniform(0.5, 2.0, size=(9, 3))
        literal = features(draw(cuts, base_sketch=base_sketch), X).astype(np.float64)
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows, block_scales=scales).astype(np.float64)
            for column, block in enumerate(sketch.blocks):
                cut = slice(block.output.offset, block.output.offset + block.output.size)
                directions = literal[:, cut] / np.linalg.norm(literal[:, cut], axis=1)[:, None]
                tolerance = 200 * block.degree * float(np.finfo(dtype).eps)
                assert_rows_close(Z[:, cut], scales[:, [column]] * directions, tolerance)
                norms = np.linalg.norm(Z[:, cut], axis=1)
                np.testing.assert_allclose(norms, scales[:, column], rtol=4 * np.finfo(dtype).eps)

    @pytest.mark.parametrize("preserve_norms", [False, True])
    def test_zero_rows_stay_zero(self, preserve_norms: bool) -> None:
        sketch = draw({4: Slice(0, 13, 0)}, preserve_norms=preserve_norms)
        X = points(5, COLUMNS)
        X[2] = 0
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows)
            assert not Z[2].any()
            assert Z[[0, 1, 3, 4]].any(axis=1).all()

    @pytest.mark.parametrize("base_sketch", ["srht", "countsketch", "gaussian", "rademacher"])
    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_rows_of_one_coordinate_never_vanish(self, base_sketch: str, size: int) -> None:
        """The copies of OSNAP can cancel each other; all others keep the one coordinate."""
        for seed in range(5):
            cuts = {5: Slice(0, size, 0)}
            sketch = draw(cuts, base_sketch=base_sketch, preserve_norms=True, seed=seed)
            norms = np.linalg.norm(features(sketch, np.eye(COLUMNS)), axis=1)
            np.testing.assert_allclose(norms, 1.0, rtol=1e-14)


class TestRange:
    @base_sketches
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_degree_1000(self, base_sketch: str, dtype: Any) -> None:
        sketch = draw({1000: Slice(0, 33, 0)}, base_sketch=base_sketch, preserve_norms=True)
        X = points(5, COLUMNS, dtype)
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows)
            norms = np.linalg.norm(Z.astype(np.float64), axis=1)
            np.testing.assert_allclose(norms, 1.0, rtol=1e-6)

    def test_a_low_degree_beside_a_high_one_loses_nothing(self) -> None:
        cuts = {2: Slice(0, 10, 0), 300: Slice(10, 10, 10)}
        sketch, X = draw(cuts), points(9, COLUMNS)
        assert_rows_close(features(sketch, X)[:, :10], columns_of(written_out(sketch, X)[2], 10))

    @pytest.mark.parametrize("exponent", [-140, -60, 60])
    def test_rows_far_from_norm_one(self, exponent: int) -> None:
        """Exactly so, as a power of two is a power of two."""
        sketch = draw({3: Slice(0, 31, 0)}, preserve_norms=True)
        X = points(9, COLUMNS)
        far = X * 2.0**exponent
        np.testing.assert_array_equal(features(sketch, far), features(sketch, X))
        unscaled = features(sketch, far, row_scale=np.full(9, 2.0**-exponent))
        np.testing.assert_array_equal(unscaled, features(sketch, X))

    @pytest.mark.parametrize("exponent", [-100, 100])
    def test_shifts_far_from_norm_one(self, exponent: int) -> None:
        """Rows without entries, which the shift alone brings there."""
        sketch = draw({5: Slice(0, 31, 0)}, preserve_norms=True)
        empty, direction = sp.csr_array((3, COLUMNS), dtype=np.float32), points(1, COLUMNS)[0]
        expected = features(sketch, np.tile(direction, (3, 1)))
        shift = np.full(3, 2.0**exponent)
        for rows in (empty, empty.toarray()):
            Z = features(sketch, rows, direction=direction, row_shift=shift)
            assert_rows_close(Z, expected, tolerance=1e-5)

    def test_what_overflows_is_refused(self) -> None:
        sketch, X = draw({2: Slice(0, 8, 0)}), points(3, COLUMNS, np.float32)
        out = np.empty((3, 8), dtype=np.float32)
        for scale, fits in ((1e30, True), (1e39, False), (math.inf, False)):
            scales = np.array([[1.0], [scale], [1.0]])
            assert sketch.write(X, np.ones(3), None, scales, out, 1) is fits
            assert np.isfinite(out).all() or not fits

    def test_literal_features_of_high_degree_are_tracked(self) -> None:
        """One coordinate: Φ is a root of unity times x^degree, whatever the rescaling."""
        sketch = draw({100: Slice(0, 6, 0)}, columns=1)
        X = np.array([[1.5], [0.25], [-3.0]], dtype=np.float32)
        Z = features(sketch, X, block_scales=np.abs(X.astype(np.float64)) ** -100.0)
        np.testing.assert_allclose(np.abs(Z).max(axis=1), 1.0, rtol=1e-5)


class TestBits:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_threads_and_batches_do_not_matter(self, dtype: Any, sparse: bool) -> None:
        sketch = draw({5: Slice(0, 301, 0), 7: Slice(301, 80, 301)}, internal=512)
        X: Any = points(900, COLUMNS, dtype)
        rows = sp.csr_array(X) if sparse else X
        Z = features(sketch, rows)
        np.testing.assert_array_equal(features(sketch, rows, threads=3), Z)
        parts = [features(sketch, rows[a:b]) for a, b in ((0, 1), (1, 18), (18, 900))]
        np.testing.assert_array_equal(np.concatenate(parts), Z)

    def test_fixed_numbers(self) -> None:
        """A seed means the same sketch for ever."""
        sketch = draw({3: Slice(0, 5, 0)}, columns=3, seed=7)
        Z = features(sketch, np.array([[1.0, -2.0, 3.0]]))
        expected = [-24.0, -16.0, 25.455844122715714, -36.0, 8.0]
        np.testing.assert_allclose(Z[0], expected, rtol=1e-14)


# Features of a whole sketch are independent (SRHT: those of different blocks), so that one draw of
# very many features is as good as many draws of few. High degrees have heavier tails.
DRAWS = {
    "gaussian": {1: 20_000, 2: 40_000, 3: 80_000, 4: 150_000, 5: 500_000},
    "rademacher": dict.fromkeys(range(1, 6), 100_000),
    "srht": dict.fromkeys(range(1, 6), 120_000),
}
BLOCK = 4
PAIRS = {
    "gaussian": (np.array([1.0, 0.0]), np.array([0.3, 1.0])),
    "rademacher": (np.array([0.9, 0.5, -0.3, 0.2]), np.array([1.0, -0.2, 0.3, 0.4])),
    "srht": (np.array([0.9, 0.5, -0.3, 0.2]), np.array([1.0, -0.2, 0.3, 0.4])),
}
each_law = pytest.mark.parametrize("base_sketch", PAIRS)
each_degree = pytest.mark.parametrize("degree", range(1, 6))


@cache
def product_features(base_sketch: str) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
    """Φ(x) and Φ(y) of every degree, very many of them."""
    x, y = PAIRS[base_sketch]
    cuts, offset = {}, 0
    for degree, count in DRAWS[base_sketch].items():
        cuts[degree] = Slice(offset, 2 * count, offset)
        offset += 2 * count
    Z = features(draw(cuts, columns=len(x), base_sketch=base_sketch), np.stack([x, y]))
    products = {}
    for degree, count in DRAWS[base_sketch].items():
        block = Z[:, cuts[degree].offset :][:, : 2 * count]
        phi = block[:, :count] + 1j * block[:, count:]
        products[degree] = phi[0], phi[1]
    return products


def estimates(base_sketch: str, degree: int) -> Vector:
    """Re Φ(x) conj(Φ(y)) of every product feature."""
    left, right = product_features(base_sketch)[degree]
    return (left * right.conj()).real


def moments(base_sketch: str) -> tuple[float, float, float]:
    """a = ⟨x, y⟩², N = ‖x‖²‖y‖², f = Σ xᵢ²yᵢ²; without f for normal entries."""
    x, y = PAIRS[base_sketch]
    coincidence = 0.0 if base_sketch == "gaussian" else float((x * x) @ (y * y))
    return float(x @ y) ** 2, float((x @ x) * (y @ y)), coincidence


def variance(base_sketch: str, degree: int) -> float:
    """Return the variance of one product feature's estimate [WOF23]."""
    a, N, f = moments(base_sketch)
    return 0.5 * ((N + a - f) ** degree + (2 * a - f) ** degree) - a**degree


class TestLaw:
    @each_law
    @each_degree
    def test_unbiased(self, base_sketch: str, degree: int) -> None:
        """Within four standard errors. Failure probability 6e-5 for each of the 15."""
        x, y = PAIRS[base_sketch]
        values = estimates(base_sketch, degree)
        if base_sketch == "srht":
            values = values.reshape(-1, BLOCK).mean(axis=1)
        error = abs(values.mean() - (x @ y) ** degree)
        assert error <= 4 * values.std() / np.sqrt(len(values)) + 1e-12

    @each_law
    @each_degree
    def test_variance_of_a_product_feature(self, base_sketch: str, degree: int) -> None:
        """Within 10 %. The standard error is at most 5 % (normal, degree 5), 2 % elsewhere."""
        values = estimates(base_sketch, degree)
        assert values.var() == pytest.approx(variance(base_sketch, degree), rel=0.1)

    @each_degree
    @pytest.mark.parametrize("count", [3, 4, 6])
    def test_variance_of_blocks(self, degree: int, count: int) -> None:
        """The mean of a part of a block, of a whole one, and of one and a half, within 10 %.

        The standard error is at most 3 %. At degree 1 a whole block is exact.
        """
        a, N, f = moments("srht")
        whole, rest = divmod(count, BLOCK)
        groups = estimates("srht", degree).reshape(-1, (whole + (rest > 0)) * BLOCK)
        measured = float(groups[:, :count].mean(axis=1).var())
        pairs = whole * BLOCK * (BLOCK - 1) + rest * (rest - 1)
        first = (a - (a - f) / (BLOCK - 1)) ** degree
        second = (a - (N - f) / (BLOCK - 1)) ** degree
        together = pairs / (2 * count) * (first + second - 2 * a**degree)
        expected = (variance("srht", degree) + together) / count
        assert measured == pytest.approx(expected, rel=0.1, abs=1e-12)

    @each_law
    @each_degree
    def test_odd_columns(self, base_sketch: str, degree: int) -> None:
        """2 Re(tΦ(x)) Re(tΦ(y)), t⁴ = −1, has mean ⟨x, y⟩^degree and the variance derived here.

        With Re² = (|·|² + Re(·)²) / 2, its second moment is E|ΦΦ'|² + ½ E Re(Φ²Φ̄'²) plus
        ½ Re(t⁴ E Φ²Φ'²), and the latter is −½ f^degree. Within 15 %; the standard error is at
        most 6 %.
        """
        x, y = PAIRS[base_sketch]
        a, N, f = moments(base_sketch)
        left, right = (np.exp(0.25j * np.pi) * phi for phi in product_features(base_sketch)[degree])
        values = 2 * left.real * right.real
        assert abs(values.mean() - (x @ y) ** degree) < 5 * values.std() / np.sqrt(len(values))
        second = (N + a - f) ** degree + 0.5 * (2 * a - f) ** degree - 0.5 * f**degree
        assert values.var() == pytest.approx(second - a**degree, rel=0.15)

    @pytest.mark.parametrize("size", [1, 2, 7, 8])
    @pytest.mark.parametrize("base_sketch", ["srht", "countsketch", "rademacher"])
    def test_unit_vectors_keep_their_norms(self, size: int, base_sketch: str) -> None:
        """Their product features are roots of unity; an odd column is worth half of one."""
        sketch = draw({3: Slice(0, size, 0)}, base_sketch=base_sketch)
        scales = np.full((COLUMNS, 1), sketch.literal_factor(3))
        norms = np.linalg.norm(features(sketch, np.eye(COLUMNS), block_scales=scales), axis=1)
        np.testing.assert_allclose(norms, 1.0, rtol=1e-14)

    @pytest.mark.parametrize("size", [2, 7])
    @base_sketches
    def test_the_literal_factor_makes_it_unbiased(self, size: int, base_sketch: str) -> None:
        """E ⟨z(x), z(y)⟩ = ⟨x, y⟩³ for odd sizes, too, and with T before the factors.

        Within five standard errors of 300 draws. Failure probability 6e-7.
        """
        X = points(2, COLUMNS)
        products = []
        for seed in range(300):
            sketch = draw({3: Slice(0, size, 0)}, base_sketch=base_sketch, seed=seed)
            Z = features(sketch, X, block_scales=np.full((2, 1), sketch.literal_factor(3)))
            products.append(Z[0] @ Z[1])
        error = abs(np.mean(products) - (X[0] @ X[1]) ** 3)
        assert error < 5 * np.std(products) / np.sqrt(300)
