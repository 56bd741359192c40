"""TensorSketch: against the composed hash written out, its law, and what a power method promises.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.kernel_approximation import PolynomialCountSketch

from powersketch.powers import Slice
from powersketch.powers.tensor_sketch import TensorSketchPowers
from powersketch.routines import TensorSketchSpec, hashed_table, make_tensor_sketch, smooth_parts
from tests.powers.sketching import COLUMNS, draw, dtypes, features, points, unscaled

SIZE = 24

both_laws = pytest.mark.parametrize("preserve_norms", [True, False])


def single(degree: int, size: int = SIZE, **options: Any) -> TensorSketchPowers:
    return draw("tensorsketch", {degree: Slice(0, size, 0)}, **options)


def composed(sketch: TensorSketchPowers, degree: int) -> NDArray[np.float64]:
    """The parts of a slice one below the other, each weighted by the root of its share."""
    size = sketch.outputs[degree].size
    sizes = [size] if degree == 1 else smooth_parts(size)
    keys = np.split(sketch.keys[degree], len(sizes))
    parts = [
        np.sqrt(part / size) * composed_part(part_keys.tolist(), sketch.columns, part)
        for part_keys, part in zip(keys, sizes, strict=True)
    ]
    return np.concatenate(parts)


def composed_part(keys: list[int], columns: int, size: int) -> NDArray[np.float64]:
    """The CountSketch of x^⊗degree with the sum of the hashes and the product of the signs."""
    tables = [hashed_table(key, columns, size, 1)[:, 0] for key in keys]
    matrix = np.zeros((size, columns ** len(keys)))
    for column, index in enumerate(product(range(columns), repeat=len(keys))):
        targets = [int(table[i]) for table, i in zip(tables, index, strict=True)]
        bucket = sum(target // 2 for target in targets) % size
        matrix[bucket, column] = (-1) ** (sum(targets) % 2)
    return matrix


def tensors(X: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    result = np.ones((len(X), 1))
    for _ in range(degree):
        result = np.einsum("ri,rj->rij", result, X).reshape(len(X), -1)
    return result


class TestLinearSketch:
    """Without norm preservation it is a linear map of the power."""

    @given(
        degree=st.integers(1, 4),
        columns=st.integers(1, 4),
        size=st.integers(1, 45),
        seed=st.integers(0, 2**63 - 1),
    )
    def test_is_the_countsketch_of_the_composed_hash(
        self, degree: int, columns: int, size: int, seed: int
    ) -> None:
        sketch, X = single(degree, size, columns=columns, seed=seed), points(5, columns)
        expected = tensors(X, degree) @ composed(sketch, degree).T
        np.testing.assert_allclose(features(sketch, X), expected, atol=1e-14)

    @pytest.mark.parametrize("size", [74, 96, 97, 210])
    def test_has_its_matrix_in_float32_too(self, size: int) -> None:
        sketch, X = single(3, size, columns=6), points(9, 6)
        expected = tensors(X, 3) @ composed(sketch, 3).T
        np.testing.assert_allclose(features(sketch, X.astype(np.float32)), expected, atol=1e-6)

    @dtypes
    @pytest.mark.parametrize(("degree", "size"), [(1, 16), (2, 1), (2, 31), (7, 37), (100, 2)])
    def test_coordinate_vectors_keep_their_norm(self, dtype: Any, degree: int, size: int) -> None:
        """They go to one bucket of each part of the slice, with a sign."""
        Z = features(single(degree, size), np.eye(COLUMNS, dtype=dtype))
        tolerance = 4 * degree * np.finfo(dtype).eps
        parts = 1 if degree == 1 else len(smooth_parts(size))
        np.testing.assert_array_equal((np.abs(Z) > 0.01).sum(axis=1), parts)
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, atol=tolerance)

    @pytest.mark.parametrize("degree", [1, 2, 3, 6, 20])
    def test_is_homogeneous(self, degree: int) -> None:
        sketch, X, scales = single(degree), points(9, COLUMNS), np.linspace(-2, 2, 9)
        expected = scales[:, None] ** degree * features(sketch, X)
        for Z in (
            features(sketch, X * scales[:, None]),
            features(sketch, X, scale=scales),
            features(sketch, X, block_scales=scales[:, None] ** degree),
        ):
            np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-12 * np.abs(expected).max())

    def test_powers_of_two_are_exact(self) -> None:
        sketch, X = single(5), points(9, COLUMNS)
        np.testing.assert_array_equal(features(sketch, 4 * X), 4.0**5 * features(sketch, X))

    def test_degree_one_is_a_countsketch(self) -> None:
        sketch, X = single(1), points(9, COLUMNS)
        table = hashed_table(int(sketch.keys[1][0]), COLUMNS, SIZE, 1)[:, 0]
        expected = np.zeros((9, SIZE))
        for column, target in enumerate(table):
            expected[:, target // 2] += (-1) ** int(target) * X[:, column]
        np.testing.assert_array_equal(features(sketch, X), expected)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_a_shift_is_added_to_the_rows(self, sparse: bool) -> None:
        sketch, X = single(3), points(9, COLUMNS)
        direction, shift = points(1, COLUMNS)[0], np.linspace(-1, 1, 9)
        expected = features(sketch, X + shift[:, None] * direction)
        rows = sp.csr_array(X) if sparse else X
        Z = features(sketch, rows, direction=direction, shift=shift)
        np.testing.assert_allclose(Z, expected, atol=1e-13)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_further_columns_are_reached_by_the_shift(self, sparse: bool) -> None:
        """Rows one column shorter than the sketch, and a shift along the column they lack."""
        sketch, X = single(3), points(9, COLUMNS)
        shorter = X[:, :-1].copy()
        rows = sp.csr_array(shorter) if sparse else shorter
        Z = features(sketch, rows, direction=np.eye(COLUMNS)[-1], shift=X[:, -1].copy())
        np.testing.assert_allclose(Z, features(sketch, X), atol=1e-14)

    def test_is_unbiased_as_it_is(self) -> None:
        sketch = draw("tensorsketch", {2: Slice(0, 5, 0), 3: Slice(5, 7, 5)})
        assert [sketch.literal_factor(degree) for degree in sketch.degrees] == [1.0, 1.0]

    def test_overflow_is_told(self) -> None:
        sketch, X = single(4), points(9, COLUMNS, np.float32)
        out = np.empty((9, SIZE), dtype=np.float32)
        assert sketch.write(unscaled(X), np.full((9, 1), 1e36), out, 1)
        assert np.isfinite(out).all()
        assert not sketch.write(unscaled(X), np.full((9, 1), 1e39), out, 1)


PAIR = points(2, 8) + 0.1
SEEDS = 6000
SMALL = 12


@cache
def estimates(degree: int) -> NDArray[np.float64]:
    """⟨z(x), z(y)⟩ of one pair of rows for many seeds, 12 features; all seeds in one call."""
    keys = [single(degree, SMALL, columns=8, seed=seed).keys[degree] for seed in range(SEEDS)]
    spec = TensorSketchSpec(
        columns=8,
        blocks=np.array([(degree, SMALL, SMALL * seed) for seed in range(SEEDS)], dtype=np.int32),
        keys=np.concatenate(keys),
        direction=np.empty(0),
        preserve_norms=False,
        sparse=False,
    )
    Z, ones = np.empty((2, SMALL * SEEDS)), np.ones((2, SEEDS))
    sketch = make_tensor_sketch(spec, Z.dtype)
    assert sketch.apply(PAIR, ones[:, 0].copy(), np.empty(0), ones, Z, 1)
    by_seed: NDArray[np.float64] = np.prod(Z, axis=0).reshape(SEEDS, SMALL).sum(axis=1)
    return by_seed


def peer_estimates(degree: int) -> NDArray[np.float64]:
    """The same of scikit-learn; pairs on different columns have hashes of their own."""
    copies = 250
    X = np.kron(np.eye(copies), PAIR)
    values = []
    for seed in range(SEEDS // copies // 2):
        peer = PolynomialCountSketch(degree=degree, n_components=SMALL, random_state=seed)
        Z = peer.fit_transform(X).reshape(copies, 2, SMALL)
        values.append(np.prod(Z, axis=1).sum(axis=1))
    return np.concatenate(values)


def moments() -> tuple[float, float, float]:
    """a = ⟨x, y⟩², N = ‖x‖² ‖y‖², f = Σ xᵢ² yᵢ²."""
    x, y = PAIR
    return float((x @ y) ** 2), float((x @ x) * (y @ y)), float(((x * y) ** 2).sum())


class TestLaw:
    @pytest.mark.parametrize("degree", [1, 2, 3, 5])
    def test_is_unbiased(self, degree: int) -> None:
        """Within four standard errors: fails for 1 of 16000 choices of the seeds."""
        values, exact = estimates(degree), float(PAIR[0] @ PAIR[1]) ** degree
        assert abs(values.mean() - exact) < 4 * values.std() / np.sqrt(SEEDS)

    def test_variance_of_degree_one(self) -> None:
        """(N + a − 2f) / m; 10 % are more than four standard errors of a variance."""
        a, N, f = moments()
        np.testing.assert_allclose(estimates(1).var(), (N + a - 2 * f) / SMALL, rtol=0.1)

    def test_variance_of_degree_two(self) -> None:
        """Every way to pair up the four signs of a factor, times the probability of collisions.

        Two coordinates i ≠ k of a factor meet twice in the same order (N − f) or in the opposite
        one (a − f); if the factors differ in that, 2 (h(i) − h(k)) = 0 modulo m, which is even.
        """
        a, N, f = moments()
        same, opposite = N - f, a - f
        once = 2 * a * (same + opposite) + same**2 + opposite**2
        expected = once / SMALL + 4 * same * opposite / SMALL**2
        np.testing.assert_allclose(estimates(2).var(), expected, rtol=0.1)

    @pytest.mark.parametrize("degree", [2, 3])
    def test_variance_is_below_the_bound_of_independent_signs(self, degree: int) -> None:
        """[ANW14]; the sketch reaches about 0.7 of it, so it fails for hardly any choice."""
        a, N, f = moments()
        bound = ((N + 2 * a - 2 * f) ** degree - a**degree) / SMALL
        assert 0.3 * bound < estimates(degree).var() < bound

    @pytest.mark.parametrize("degree", [2, 3])
    def test_variance_is_that_of_scikit_learn(self, degree: int) -> None:
        """Both are off by 3 % or so of heavy tails; 20 % apart is beyond four standard errors."""
        peer = peer_estimates(degree).var()
        np.testing.assert_allclose(estimates(degree).var(), peer, rtol=0.2)

    def test_errors_of_two_degrees_are_uncorrelated(self) -> None:
        """Their correlation is within four standard errors of zero."""
        outputs = {2: Slice(0, SMALL, 0), 4: Slice(SMALL, SMALL, SMALL)}
        values = np.empty((1000, 2))
        for seed in range(len(values)):
            Z = features(draw("tensorsketch", outputs, columns=8, seed=seed), PAIR)
            values[seed] = [Z[0, :SMALL] @ Z[1, :SMALL], Z[0, SMALL:] @ Z[1, SMALL:]]
        assert abs(np.corrcoef(values.T)[0, 1]) < 4 / np.sqrt(len(values))


OUTPUTS = {5: Slice(0, 9, 7), 1: Slice(9, 7, 0), 2: Slice(16, 10, 16)}


class TestBlocks:
    @both_laws
    @dtypes
    def test_every_degree_is_the_sketch_that_it_is_alone(
        self, dtype: Any, preserve_norms: bool
    ) -> None:
        sketch = draw("tensorsketch", OUTPUTS, preserve_norms=preserve_norms)
        assert sketch.degrees == (5, 1, 2)
        X, scales = points(9, COLUMNS, dtype), np.random.default_rng(0).uniform(1, 2, (9, 3))
        Z = features(sketch, X, block_scales=scales)
        for b, (degree, cut) in enumerate(OUTPUTS.items()):
            alone = single(degree, cut.size, preserve_norms=preserve_norms)
            expected = features(alone, X, block_scales=scales[:, [b]])
            np.testing.assert_array_equal(Z[:, cut.offset : cut.offset + cut.size], expected)

    def test_other_columns_are_left_alone(self) -> None:
        X, out = points(3, COLUMNS), np.full((3, 20), 7.0)
        sketch = draw("tensorsketch", {3: Slice(4, 8, 6)})
        assert sketch.write(unscaled(X), np.ones((3, 1)), out, 1)
        assert (out[:, :6] == 7.0).all()
        assert (out[:, 14:] == 7.0).all()
        assert not (out[:, 6:14] == 7.0).any()


class TestNorms:
    @dtypes
    @pytest.mark.parametrize("degree", [1, 2, 7, 1000])
    @pytest.mark.parametrize("size", [16, 37, 48])
    def test_rows_have_the_norms_asked_for(self, dtype: Any, degree: int, size: int) -> None:
        norms = np.logspace(-10, 10, 9)
        sketch = single(degree, size, preserve_norms=True)
        Z = features(sketch, points(9, COLUMNS, dtype), block_scales=norms[:, None])
        actual = np.linalg.norm(Z.astype(np.float64), axis=1)
        np.testing.assert_allclose(actual, norms, rtol=8 * np.finfo(dtype).eps)

    @pytest.mark.parametrize("degree", [1, 2, 3, 8])
    def test_are_all_that_preservation_changes(self, degree: int) -> None:
        X = points(9, COLUMNS)
        literal = features(single(degree), X)
        expected = literal / np.linalg.norm(literal, axis=1, keepdims=True)
        Z = features(single(degree, preserve_norms=True), X)
        np.testing.assert_allclose(Z, expected, atol=1e-14)

    @dtypes
    def test_degree_1000_of_tiny_and_huge_rows(self, dtype: Any) -> None:
        """Products of spectra neither vanish nor overflow, be rows a millionth or a million."""
        X = points(9, COLUMNS, dtype)
        expected = features(single(1000, preserve_norms=True), X)
        for exponent in (-20, 20):
            scale = np.full(9, 2.0**exponent)
            Z = features(single(1000, preserve_norms=True), X, scale=scale)
            np.testing.assert_array_equal(Z, expected)

    def test_degree_1000_literally(self) -> None:
        """log‖z‖ from products of spectra in extended range; float32 has but 1e±38."""
        sketch, X = single(1000, 16), points(9, COLUMNS)
        logarithm = np.zeros(9)
        product: Any = 1.0
        for key in sketch.keys[1000].tolist():
            table, leaf = hashed_table(key, COLUMNS, 16, 1)[:, 0], np.zeros((16, 9))
            np.add.at(leaf, table // 2, ((-1.0) ** table)[:, None] * X.T)
            product = product * np.fft.rfft(leaf, axis=0)
            largest = np.abs(product).max(axis=0)
            product, logarithm = product / largest, logarithm + np.log(largest)
        expected = np.log(np.linalg.norm(np.fft.irfft(product, n=16, axis=0), axis=0)) + logarithm
        scale = np.exp(-expected)
        assert np.isfinite(scale).all()
        Z = features(sketch, X, block_scales=scale[:, None])
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0, rtol=1e-9)

    @both_laws
    def test_zero_rows_give_zeros(self, preserve_norms: bool) -> None:
        X = points(9, COLUMNS)
        X[[0, 4]] = 0.0
        Z = features(single(5, preserve_norms=preserve_norms), X)
        np.testing.assert_array_equal(Z[[0, 4]], 0.0)
        assert np.all(np.linalg.norm(np.delete(Z, [0, 4], axis=0), axis=1) > 0)


class TestRows:
    """However rows are given, the same bits."""

    @dtypes
    @both_laws
    @pytest.mark.parametrize("degree", [1, 4])
    @pytest.mark.parametrize("index", [np.int32, np.int64])
    def test_sparse_rows_have_the_bits_of_dense_ones(
        self, dtype: Any, preserve_norms: bool, degree: int, index: Any
    ) -> None:
        sketch, X = single(degree, preserve_norms=preserve_norms), points(21, COLUMNS, dtype)
        csr = sp.csr_array(X)
        csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
        direction, shift = points(1, COLUMNS)[0], np.linspace(-1, 1, 21)
        for moved in ({}, {"direction": direction, "shift": shift}):
            np.testing.assert_array_equal(
                features(sketch, csr, **moved), features(sketch, X, **moved)
            )

    @dtypes
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("exponent", [-120, -80, 80, 120])
    def test_rows_far_from_norm_one_are_scaled_first(
        self, dtype: Any, sparse: bool, exponent: int
    ) -> None:
        """Entries are multiples of 2⁻⁶, which times 2⁻¹²⁰ is the smallest normal float32."""
        sketch, X = single(9), (np.round(64 * points(9, COLUMNS)) / 64).astype(dtype)
        far, scale = np.ldexp(X, exponent).astype(dtype), np.full(9, 2.0**-exponent)
        if sparse:
            X, far = sp.csr_array(X), sp.csr_array(far)
        np.testing.assert_array_equal(features(sketch, far, scale=scale), features(sketch, X))

    @pytest.mark.parametrize("sparse", [False, True])
    def test_threads_and_splits_do_not_matter(self, sparse: bool) -> None:
        sketch, X = single(3), points(70, COLUMNS)
        rows = sp.csr_array(X) if sparse else X
        expected = features(sketch, rows)
        np.testing.assert_array_equal(features(sketch, rows, threads=3), expected)
        for row in (0, 33, 69):
            part = rows[row : row + 1]
            np.testing.assert_array_equal(features(sketch, part)[0], expected[row])

    @pytest.mark.parametrize("sparse", [False, True])
    def test_no_rows_give_no_features(self, sparse: bool) -> None:
        X = np.empty((0, COLUMNS))
        assert features(single(3), sp.csr_array(X) if sparse else X).shape == (0, SIZE)

    def test_input_is_read_only(self) -> None:
        X = points(9, COLUMNS)
        X.flags.writeable = False
        before = X.copy()
        features(single(3), X, scale=np.full(9, 2.0**80))
        np.testing.assert_array_equal(X, before)

    def test_one_column(self) -> None:
        X = np.array([[2.0], [-0.5], [0.0]])
        Z = features(single(3, 10, columns=1), X)
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), [8.0, 0.125, 0.0], atol=1e-14)
        np.testing.assert_allclose(Z[0] @ Z[1], -1.0, atol=1e-14)


class TestDraw:
    def test_the_seed_decides(self) -> None:
        X = points(9, COLUMNS)
        np.testing.assert_array_equal(
            features(single(3, seed=4), X), features(single(3, seed=4), X)
        )
        assert not np.array_equal(features(single(3, seed=5), X), features(single(3, seed=4), X))

    def test_every_factor_has_a_key_of_its_own(self) -> None:
        sketch = draw("tensorsketch", {2: Slice(0, 4, 0), 3: Slice(4, 4, 4)})
        keys = np.concatenate(list(sketch.keys.values())).tolist()
        assert len(set(keys)) == 5

    def test_fixed_values(self) -> None:
        """Of seed 7: they may never change, or saved sketches would."""
        sketch = single(2, 4, columns=3, seed=7)
        Z = features(sketch, np.array([[1.0, -2.0, 3.0]]))
        np.testing.assert_allclose(Z[0], [-10.0, 0.0, 2.0, 0.0], atol=1e-14)
