"""The tree of sketches: against matrices written out, its law, and what several degrees share.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch import _native, routines
from powersketch.arrays import Rows
from powersketch.powers import POWER_METHODS, Slice, tree
from powersketch.powers.tree import Span, Step, TreeSketch, halves, level, tree_steps
from powersketch.random_streams import RandomStreams
from powersketch.routines import reference
from powersketch.sketches import BASE_SKETCHES, TensorSRHT
from tests.powers.sketching import (
    COLUMNS,
    INTERNAL,
    assert_rows_close,
    base_sketches,
    draw,
    dtypes,
    features,
    points,
    unscaled,
)

# Degrees 3 and 6, four features each, of seed 7 and the rows in TestBits: a seed means the same
# sketch for ever.
FIXED = [
    [
        4.21875,
        -9.84375,
        -1.359375,
        -8.875,
        11.579589843750002,
        -31.497070312499996,
        -73.55126953125,
        -6.0405273437499964,
    ],
    [
        1.3125,
        0.546875,
        -0.15625,
        -0.234375,
        0.11425781250000004,
        0.69384765625,
        0.71435546875,
        -2.77734375,
    ],
]


# Leaves that keep the rows, whatever the base sketch, and those of every T.
each_leaf = pytest.mark.parametrize(
    ("columns", "base_sketch"), [(6, "srht"), *((COLUMNS, name) for name in BASE_SKETCHES)]
)


def draw_one(degree: int, size: int = INTERNAL, **options: Any) -> TreeSketch:
    return draw("tree", {degree: Slice(0, size, 0)}, **options)


class TestMatrices:
    """The whole tree with leaves of e₁, every operator a matrix."""

    @staticmethod
    def pair_matrix(S: TensorSRHT) -> NDArray[np.float64]:
        identity = np.eye(S.length)
        left, right = np.repeat(identity, S.length, axis=0), np.tile(identity, (S.length, 1))
        return S.apply(left, right).T

    @classmethod
    def matrix(
        cls, sketch: TreeSketch, height: int, index: int, degree: int, root: int
    ) -> NDArray[Any]:
        """The matrix of a node on the tensor power of its leaves, those of e₁ included.

        A subtree of padding is the row e₁ᵀ ⊗ … ⊗ e₁ᵀ, and a node with one passes the rest through.
        """
        first = index << height
        if height == 0:
            if first >= degree:
                return np.eye(1, sketch.columns)
            identity = np.eye(sketch.columns)
            name = "root/1" if height == root else f"leaf/{first}"
            return sketch.bases[name].apply(identity).T if name in sketch.bases else identity
        left = cls.matrix(sketch, height - 1, 2 * index, degree, root)
        right = cls.matrix(sketch, height - 1, 2 * index + 1, degree, root)
        if first + (1 << height) // 2 >= degree:
            return np.kron(left, right)
        name = f"root/{degree}" if height == root else f"node/{height}/{index}"
        S = sketch.pairs[name]
        left, right = (np.pad(m, ((0, S.length - len(m)), (0, 0))) for m in (left, right))
        product: NDArray[Any] = cls.pair_matrix(S) @ np.kron(left, right)
        return product

    @base_sketches
    @pytest.mark.parametrize("degree", [1, 2, 3, 4])
    @pytest.mark.parametrize(("columns", "internal"), [(2, 2), (3, 4), (4, 4), (3, 2), (4, 2)])
    def test_degrees_up_to_four(
        self, base_sketch: str, degree: int, columns: int, internal: int
    ) -> None:
        for seed in range(3):
            sketch = draw_one(
                degree,
                internal,
                columns=columns,
                internal=internal,
                base_sketch=base_sketch,
                seed=seed,
            )
            self.check(sketch, degree)

    @pytest.mark.parametrize("degree", [5, 6, 7, 8])
    @pytest.mark.parametrize(("internal", "size"), [(2, 2), (4, 3), (1, 1)])
    def test_degrees_up_to_eight(self, degree: int, internal: int, size: int) -> None:
        for seed in range(3):
            sketch = draw_one(
                degree, size, columns=2, internal=internal, base_sketch="gaussian", seed=seed
            )
            self.check(sketch, degree)

    def check(self, sketch: TreeSketch, degree: int) -> None:
        """x^⊗degree ⊗ e₁ ⊗ … ⊗ e₁ times the matrix of the tree."""
        height = (degree - 1).bit_length()
        X = points(4, sketch.columns)
        e_1 = np.eye(1, sketch.columns)[0]
        tensors = []
        for x in X:
            tensor = np.ones(1)
            for leaf in range(1 << height):
                tensor = np.kron(tensor, x if leaf < degree else e_1)
            tensors.append(tensor)
        expected = np.array(tensors) @ self.matrix(sketch, height, 0, degree, height).T
        actual = features(sketch, X)
        width = expected.shape[1]
        np.testing.assert_allclose(actual[:, :width], expected, atol=1e-12)
        np.testing.assert_array_equal(actual[:, width:], 0.0)


class QuickStreams:
    """Named streams from NumPy's generator: thousands of draws in little time.

    The same name gives the same numbers, so that sketches of one name would not be independent.
    """

    def __init__(self, generator: np.random.Generator, path: str, known: dict[str, Any]) -> None:
        self.generator, self.path, self.known = generator, path, known

    def child(self, name: str) -> QuickStreams:
        return QuickStreams(self.generator, f"{self.path}/{name}", self.known)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        full = f"{self.path}/{name}"
        if full not in self.known:
            self.known[full] = make()
        return self.known[full]

    def signs(self, name: str, count: int) -> Any:
        return self.once(name, lambda: 1 - 2 * self.generator.integers(0, 2, count, dtype=np.int8))

    def permutation(self, name: str, size: int) -> Any:
        return self.once(name, lambda: self.generator.permutation(size))

    coordinates = RandomStreams.coordinates

    def key(self, name: str) -> Any:
        return self.once(name, lambda: int(self.generator.integers(0, 2**63)))


def quick_streams(count: int) -> Iterator[QuickStreams]:
    generator = np.random.default_rng(0)
    return (QuickStreams(generator, "", {}) for _ in range(count))


class TestLaw:
    """Every degree is unbiased: T and S are independent wherever they meet."""

    DRAWS = 2000

    @classmethod
    @cache
    def errors(cls, columns: int, base_sketch: str, degrees: tuple[int, ...]) -> Any:
        """⟨z(x), z(y)⟩ − ⟨x, y⟩^degree in the order of the degrees, a row for every draw."""
        X, size = points(2, columns), 16
        outputs = {p: Slice(0, size, size * block) for block, p in enumerate(degrees)}
        options: dict[str, Any] = {
            "columns": columns,
            "internal": size,
            "base_sketch": base_sketch,
        }
        estimates = []
        for streams in quick_streams(cls.DRAWS):
            Z = features(draw("tree", outputs, streams=streams, **options), X)
            first, second = Z.reshape(2, len(degrees), size)
            estimates.append((first * second).sum(axis=1))
        return np.array(estimates) - (X[0] @ X[1]) ** np.array(degrees)

    @pytest.mark.parametrize(
        ("columns", "base_sketch", "degrees"),
        [(24, "srht", (1, 2, 3, 5)), (8, "srht", (2, 3, 8))],
        ids=["with T", "rows kept"],
    )
    def test_is_unbiased(self, columns: int, base_sketch: str, degrees: tuple[int, ...]) -> None:
        """Four standard errors: failure probability 5e-4."""
        errors = self.errors(columns, base_sketch, degrees)
        assert np.all(np.abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / self.DRAWS**0.5)

    def test_degrees_without_a_common_node_have_uncorrelated_errors(self) -> None:
        """Where rows are kept, degrees 2 and 3 have no sketch in common, unlike 3 and 8.

        With rows of one S for both, the correlation would be above 0.5. Failure probability 6e-5.
        """
        errors = self.errors(8, "srht", (2, 3, 8))
        assert abs(np.corrcoef(errors[:, 0], errors[:, 1])[0, 1]) < 4 / self.DRAWS**0.5

    @staticmethod
    @cache
    def squares() -> NDArray[np.float64]:
        """Sketches of x^⊗2 and y^⊗2 for two rows of 8 coordinates, 20 features, of many draws."""
        X = points(2, 8)
        sketches = (
            draw_one(2, 20, columns=8, internal=32, streams=streams)
            for streams in quick_streams(6000)
        )
        return np.array([features(sketch, X) for sketch in sketches])

    @pytest.mark.parametrize(("size", "same"), [(3, False), (8, True), (20, True)])
    def test_variance_of_squares(self, size: int, same: bool) -> None:
        """Degree 2 without T, against the law below, within 10 %: three standard errors.

        The first features of a sketch, scaled for their number, are a smaller sketch.
        """
        X, second = points(2, 8), 0 if same else 1
        Z = self.squares()[:, :, :size] * math.sqrt(20 / size)
        estimates = (Z[:, 0] * Z[:, second]).sum(axis=1)
        expected = self.variance_of_squares(X[[0, second]], size)
        assert np.var(estimates) == pytest.approx(expected, rel=0.1)

    @staticmethod
    def variance_of_squares(X: NDArray[np.float64], size: int) -> float:
        """Rounds of k ≤ n pairs, both coordinates sampled without replacement from n.

        The products (HDx)ᵢ(HDy)ᵢ have mean α = ⟨x, y⟩ over i for any signs, and expected variance
        V = ‖x‖²‖y‖² + α² − 2 Σ xᵢ²yᵢ² over i. A sum of k products of two such numbers has variance
        k (2 α² V (1 − (k−1)/(n−1)) + V² (1 + (k−1)/(n−1)²)).
        """
        x, y = X
        n, alpha = len(x), x @ y
        V = (x @ x) * (y @ y) + alpha**2 - 2 * (x * x) @ (y * y)
        rounds = [n] * (size // n) + ([size % n] if size % n else [])
        total = 0.0
        for k in rounds:
            one_factor = 2 * alpha**2 * V * (1 - (k - 1) / (n - 1))
            total += k * (one_factor + V**2 * (1 + (k - 1) / (n - 1) ** 2))
        return float(total / size**2)


class TestLiteral:
    @base_sketches
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("size", [1, 20, 31])
    def test_degree_one_is_the_leaf(self, base_sketch: str, sparse: bool, size: int) -> None:
        sketch, X = draw_one(1, size, base_sketch=base_sketch), points(9, COLUMNS)
        T = BASE_SKETCHES[base_sketch].draw(RandomStreams(1).child("root/1"), COLUMNS, size)
        rows = sp.csr_array(X) if sparse else X
        np.testing.assert_array_equal(features(sketch, rows), T.apply(rows))

    @pytest.mark.parametrize("columns", [1, 5, 20])
    def test_degree_one_of_short_rows_is_the_row(self, columns: int) -> None:
        X = points(9, columns)
        expected = np.pad(X, ((0, 0), (0, 20 - columns)))
        np.testing.assert_array_equal(features(draw_one(1, 20, columns=columns), X), expected)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    @pytest.mark.parametrize("degree", [1, 2, 7, 16, 100])
    def test_is_homogeneous(self, degree: int, columns: int) -> None:
        sketch, X = draw_one(degree, columns=columns), points(9, columns)
        scales = np.linspace(0.8, 1.25, 9)
        expected = scales[:, None] ** degree * features(sketch, X)
        assert_rows_close(features(sketch, X * scales[:, None]), expected)
        assert_rows_close(features(sketch, X, scale=scales), expected)
        assert_rows_close(features(sketch, X, block_scales=scales[:, None] ** degree), expected)

    @each_leaf
    @pytest.mark.parametrize("degree", [1, 3, 6])
    def test_a_shift_is_added_to_the_rows(
        self, columns: int, degree: int, base_sketch: str
    ) -> None:
        sketch = draw_one(degree, 3, columns=columns, base_sketch=base_sketch)
        X, direction, shift = points(9, columns), points(1, columns)[0], np.linspace(-1, 1, 9)
        expected = features(sketch, X + shift[:, None] * direction)
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows, direction=direction, shift=shift)
            assert_rows_close(Z, expected, tolerance=1e-11)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_further_columns_are_reached_by_the_shift(self, sparse: bool, columns: int) -> None:
        """Rows one column shorter than the sketch, and a shift along the column they lack."""
        sketch, X = draw_one(3, columns=columns), points(9, columns)
        shorter = X[:, :-1].copy()
        rows = sp.csr_array(shorter) if sparse else shorter
        last = np.eye(columns)[-1]
        Z = features(sketch, rows, direction=last, shift=X[:, -1].copy())
        assert_rows_close(Z, features(sketch, X))

    def test_needs_no_factor(self) -> None:
        sketch = draw("tree", {2: Slice(0, 5, 0), 3: Slice(5, 7, 5)})
        assert [sketch.literal_factor(degree) for degree in sketch.degrees] == [1.0, 1.0]

    @pytest.mark.parametrize(("dtype", "internal"), [(np.float64, 2), (np.float32, 8)])
    def test_degree_1000_is_finite_or_refused(self, dtype: Any, internal: int) -> None:
        """Small sketches of high degree explode; the tree then says so."""
        X, ones = points(3, COLUMNS, dtype), np.ones((3, 1))
        sketch = draw_one(1000, internal, internal=internal)
        out = np.empty((3, internal), dtype=dtype)
        answer = sketch.write(unscaled(X), ones, out, 1)
        assert np.isfinite(out).all() or not answer

    @dtypes
    @pytest.mark.parametrize("preserve_norms", [True, False])
    @pytest.mark.parametrize("degree", [1, 3])
    def test_overflow_is_told(self, dtype: Any, preserve_norms: bool, degree: int) -> None:
        sketch = draw_one(degree, preserve_norms=preserve_norms)
        X, out = points(3, COLUMNS, dtype), np.empty((3, INTERNAL), dtype=dtype)
        scales = np.ones((3, 1))
        for factor, fits in ((0.001, True), (1000.0, False)):
            with np.errstate(over="ignore"):
                scales[1] = float(np.finfo(dtype).max) * factor
            assert sketch.write(unscaled(X), scales, out, 1) == fits
            assert np.isfinite(out).all() == fits


def several() -> dict[int, Slice]:
    """Slices as feature maps ask for them, out of order."""
    sizes = {7: 3, 1: 4, 2: 5, 3: 6, 4: 2, 8: 7, 12: 5}
    outputs, column = {}, 0
    for degree, size in sizes.items():
        outputs[degree] = Slice(column, size, column)
        column += size
    return outputs


class TestSeveralDegrees:
    @each_leaf
    @pytest.mark.parametrize("preserve_norms", [True, False])
    def test_are_the_bits_of_single_trees(
        self, base_sketch: str, columns: int, preserve_norms: bool
    ) -> None:
        options: dict[str, Any] = {
            "columns": columns,
            "base_sketch": base_sketch,
            "preserve_norms": preserve_norms,
        }
        outputs, X = several(), points(9, columns)
        sketch = draw("tree", outputs, **options)
        assert sketch.degrees == (1, 2, 3, 4, 7, 8, 12)
        norms = np.linspace(1, 2, 9 * len(outputs)).reshape(9, -1)
        Z = features(sketch, X, block_scales=norms)
        for block, degree in enumerate(sketch.degrees):
            cut = outputs[degree]
            alone = draw_one(degree, cut.size, **options)
            expected = features(alone, X, block_scales=norms[:, block : block + 1])
            np.testing.assert_array_equal(Z[:, cut.offset : cut.offset + cut.size], expected)


class TestNormPreservation:
    @dtypes
    @pytest.mark.parametrize(
        ("columns", "degree", "size"), [(5, 1, 4), (5, 2, 32), (COLUMNS, 7, 4), (COLUMNS, 1000, 32)]
    )
    def test_rows_have_the_norms_asked_for(
        self, dtype: Any, columns: int, degree: int, size: int
    ) -> None:
        sketch = draw_one(degree, size, columns=columns, preserve_norms=True)
        norms = np.logspace(-10, 10, 9)
        Z = features(sketch, points(9, columns, dtype), block_scales=norms[:, None])
        actual = np.linalg.norm(Z.astype(np.float64), axis=1)
        np.testing.assert_allclose(actual, norms, rtol=8 * np.finfo(dtype).eps)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    def test_powers_beyond_the_range_of_the_dtype(self, columns: int) -> None:
        """Lengths .7 and 1.4 to the power of 1000, which is far from what float32 can hold."""
        sketch, X = draw_one(1000, columns=columns, preserve_norms=True), points(8, columns)
        lengths = np.repeat([0.7, 1.4], 4)
        single, double = (
            features(sketch, X.astype(dtype), scale=lengths) for dtype in (np.float32, np.float64)
        )
        assert_rows_close(single, double, tolerance=1e-3)

    @base_sketches
    @pytest.mark.parametrize("degree", [1, 2, 7, 100])
    def test_only_changes_lengths(self, base_sketch: str, degree: int) -> None:
        """Every step is linear in each operand: directions are those of the literal sketch."""
        X = points(9, COLUMNS)
        literal, preserving = (
            features(draw_one(degree, base_sketch=base_sketch, preserve_norms=norms), X)
            for norms in (False, True)
        )
        lengths = np.linalg.norm(literal, axis=1, keepdims=True)
        assert_rows_close(preserving, literal / lengths)

    @pytest.mark.parametrize("preserve_norms", [True, False])
    @pytest.mark.parametrize("columns", [1, 5, COLUMNS])
    @pytest.mark.parametrize("degree", [1, 5, 8])
    def test_zero_rows_give_zeros(self, preserve_norms: bool, columns: int, degree: int) -> None:
        sketch = draw_one(degree, 20, columns=columns, preserve_norms=preserve_norms)
        X = points(9, columns)
        X[[0, 4]] = 0.0
        Z = features(sketch, X)
        np.testing.assert_array_equal(Z[[0, 4]], 0.0)
        assert np.all(np.linalg.norm(np.delete(Z, [0, 4], axis=0), axis=1) > 0)

    @base_sketches
    @dtypes
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize(
        ("exponent", "preserve_norms"), [(-131, True), (-80, False), (126, False)]
    )
    def test_rows_far_from_norm_one_are_scaled_first(
        self, base_sketch: str, dtype: Any, sparse: bool, exponent: int, preserve_norms: bool
    ) -> None:
        """Powers of two change no bits, though float32 has no such products, nor such scales.

        Entries are multiples of 2⁻⁶, which times 2⁻¹³¹ are float32 numbers still.
        """
        sketch = draw_one(9, 20, base_sketch=base_sketch, preserve_norms=preserve_norms)
        X = (np.round(64 * points(9, COLUMNS)) / 64).astype(dtype)
        far = np.ldexp(X, exponent).astype(dtype)
        if sparse:
            X, far = sp.csr_array(X), sp.csr_array(far)
        expected = features(sketch, X, scale=np.full(9, 0.75))
        actual = features(sketch, far, scale=np.full(9, 0.75 * 2.0**-exponent))
        np.testing.assert_array_equal(actual, expected)

    def test_pays_at_high_degrees(self) -> None:
        """At degree 32 and size 128 the median error over 9 seeds falls to less than half."""
        X = points(12, 300)
        K = (X @ X.T) ** 32

        def error(seed: int, preserve_norms: bool) -> float:
            sketch = draw_one(
                32, 128, columns=300, internal=128, preserve_norms=preserve_norms, seed=seed
            )
            Z = features(sketch, X)
            return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))

        literal, preserving = (
            np.median([error(seed, norms) for seed in range(9)]) for norms in (False, True)
        )
        assert preserving < literal / 2


class TestBits:
    """The same seed gives the same bits, however the rows are given and split."""

    def fixed(self) -> NDArray[np.float64]:
        X = np.array([[1.0, 0.5, -0.25, 0.0, 2.0], [0.5, 0.75, 1.0, 1.25, 0.0]])
        sketch = draw("tree", {3: Slice(0, 4, 0), 6: Slice(4, 4, 4)}, columns=5, internal=4, seed=7)
        return features(sketch, X)

    def test_a_seed_means_the_same_for_ever(self) -> None:
        assert self.fixed().tolist() == FIXED

    def test_the_specification_gives_the_same_bits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("tensor_srht", "squared_norms"):
            monkeypatch.setattr(routines, name, getattr(reference, name))
        assert self.fixed().tolist() == FIXED

    @each_leaf
    @dtypes
    def test_csr_rows_are_dense_rows(self, base_sketch: str, dtype: Any, columns: int) -> None:
        sketch = draw_one(6, 20, columns=columns, base_sketch=base_sketch, preserve_norms=True)
        X, shift = points(70, columns, dtype), np.linspace(-1, 1, 70)
        options: dict[str, Any] = {"direction": points(1, columns)[0], "shift": shift}
        Z = features(sketch, X, **options)
        for rows in (sp.csr_array(X), sp.csr_matrix(X)):
            if base_sketch == "srht" and columns > INTERNAL:  # sums few entries in another order
                actual = features(sketch, rows, **options)
                np.testing.assert_allclose(actual, Z, atol=100 * np.finfo(dtype).eps)
            else:
                np.testing.assert_array_equal(features(sketch, rows, **options), Z)

    @each_leaf
    @pytest.mark.parametrize("sparse", [False, True])
    def test_threads_blocks_and_instruction_sets_do_not_matter(
        self, base_sketch: str, sparse: bool, columns: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sketch = draw(
            "tree", several(), columns=columns, base_sketch=base_sketch, preserve_norms=True
        )
        X: Rows = points(150, columns, np.float32)
        X = sp.csr_array(X) if sparse else X
        Z, chosen = features(sketch, X), _native.instruction_set()
        np.testing.assert_array_equal(features(sketch, X, threads=3), Z)
        parts = [features(sketch, X[part]) for part in (slice(0, 1), slice(1, 69), slice(69, 150))]
        np.testing.assert_array_equal(np.concatenate(parts), Z)
        monkeypatch.setattr(tree, "_BLOCK_BYTES", 1)
        monkeypatch.setattr(tree, "_FEWEST_ROWS", 7)
        np.testing.assert_array_equal(features(sketch, X), Z)
        try:
            for name in _native.instruction_sets():
                _native.select_instruction_set(name)
                np.testing.assert_array_equal(features(sketch, X), Z)
        finally:
            _native.select_instruction_set(chosen)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    def test_inputs_are_left_alone(self, columns: int) -> None:
        X = points(9, columns)
        for part in (X, direction := points(1, columns)[0], shift := np.ones(9)):
            part.flags.writeable = False
        features(draw_one(3, columns=columns), X, direction=direction, shift=shift)

    def test_no_rows(self) -> None:
        sketch = draw_one(3)
        assert features(sketch, np.empty((0, COLUMNS))).shape == (0, INTERNAL)
        assert features(sketch, sp.csr_array((0, COLUMNS))).shape == (0, INTERNAL)


class TestParameters:
    def test_is_registered(self) -> None:
        assert POWER_METHODS["tree"] is TreeSketch

    @pytest.mark.parametrize("degree", [0, -1, 2049])
    def test_degrees_out_of_range(self, degree: int) -> None:
        message = f'degree={degree} is out of range; .* 1 to 2048.*method="power"'
        with pytest.raises(ValueError, match=message):
            draw_one(degree)

    @pytest.mark.parametrize("degree", [2.0, True])
    def test_degrees_of_other_types(self, degree: Any) -> None:
        with pytest.raises(TypeError, match="degree="):
            draw_one(degree)


any_degree = st.integers(1, 1024)
degree_sets = st.sets(any_degree, min_size=1, max_size=24)


def run(steps: tuple[Step, ...]) -> tuple[list[int], int]:
    """Take the steps; return the degrees given, and how many vectors wait at most."""
    waiting: set[Span] = set()
    degrees, most = [], 0
    for step in steps:
        operands = halves(step.span) if level(step.span) else ()
        assert waiting.issuperset(operands)
        waiting -= set(step.finished)
        if step.degree is None:
            assert step.span not in waiting
            waiting.add(step.span)
        else:
            assert step.span == (0, step.degree)
            degrees.append(step.degree)
        most = max(most, len(waiting))
    assert not waiting
    return degrees, most


def padded_value(height: int, index: int, degree: int) -> Span | None:
    """The span of a node of the whole tree, in which leaves from `degree` on hold e₁."""
    first = index << height
    if first >= degree:
        return None
    if height == 0:
        return first, first + 1
    left = padded_value(height - 1, 2 * index, degree)
    right = padded_value(height - 1, 2 * index + 1, degree)
    if left is None or right is None:
        return left
    assert left[1] == right[0]
    assert halves((left[0], right[1])) == (left, right)
    return left[0], right[1]


class TestSpans:
    @given(degree=any_degree)
    def test_are_what_a_padded_tree_computes(self, degree: int) -> None:
        height = math.ceil(math.log2(degree))
        assert padded_value(height, 0, degree) == (0, degree)
        assert padded_value(height + 2, 0, degree) == (0, degree)
        assert level((0, degree)) == height


class TestSteps:
    @given(degree=any_degree)
    def test_one_degree_takes_its_leaves_and_one_product_less(self, degree: int) -> None:
        steps = tree_steps([degree])
        assert run(steps)[0] == [degree]
        leaves = [step.operator for step in steps if level(step.span) == 0]
        assert len(leaves) == degree
        assert len(steps) == 2 * degree - 1
        assert len({step.operator for step in steps}) == len(steps)

    @given(degree=any_degree)
    def test_few_vectors_wait(self, degree: int) -> None:
        assert run(tree_steps([degree]))[1] <= level((0, degree)) + 1

    @given(wanted=degree_sets)
    def test_every_degree_is_given_once_and_in_order(self, wanted: set[int]) -> None:
        steps = tree_steps(wanted)
        assert run(steps)[0] == sorted(wanted)
        shared = [step.span for step in steps if step.degree is None]
        assert len(set(shared)) == len(shared)

    @given(wanted=degree_sets)
    def test_degrees_share_leaves_and_inner_nodes_but_no_root(self, wanted: set[int]) -> None:
        steps = tree_steps(wanted)
        names = {step.operator for step in steps if step.degree is None}
        for degree in wanted:
            *inner, last = tree_steps([degree])
            assert {step.operator for step in inner} <= names
            assert last.operator == f"root/{degree}"
        assert not any(name.startswith("root") for name in names)

    @pytest.mark.parametrize("highest", [2, 3, 8, 21, 64, 100, 512])
    def test_all_degrees_take_as_many_steps_as_root_paths_have(self, highest: int) -> None:
        steps = tree_steps(range(1, highest + 1))
        degrees, most = run(steps)
        assert degrees == list(range(1, highest + 1))
        height = level((0, highest))
        products = [step for step in steps if level(step.span)]
        assert len(products) <= highest * (height + 1)
        assert most <= 2 * height + 2

    def test_spans_of_one_node_share_its_operator(self) -> None:
        """Degrees 7 and 8 fill the same node to the right of the root, once in part."""
        names = {step.span: step.operator for step in tree_steps([7, 8]) if step.degree is None}
        assert names[4, 7] == names[4, 8] == "node/2/1"
        assert names[4, 6] == "node/1/2"
