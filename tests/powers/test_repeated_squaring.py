"""Algorithm 1: against matrices written out, the fused chain against it, and its error.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.arrays import Rows
from powersketch.powers import PowerSketch, Slice, algorithm_1
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, PAIR_SKETCHES, SRHT, BaseSketch, TensorSRHT

DEGREES = [*range(1, 21), 31, 32, 33, 64, 100]
COLUMNS, INTERNAL = 50, 32

base_sketches = pytest.mark.parametrize("base_sketch", BASE_SKETCHES)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@dataclass(frozen=True)
class Padding:
    """The T that only appends zeros, for rows that fit the internal length as they are."""

    columns: int
    size: int

    @classmethod
    def draw(cls, streams: RandomStreams, columns: int, size: int) -> Padding:
        del streams
        return cls(columns, size)

    def apply(self, X: Any, *, threads: int = 1) -> Any:
        del threads
        return np.pad(X, ((0, 0), (0, self.size - X.shape[1])))


def points(rows: int, columns: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Unit vectors with a common direction, a third of their coordinates zero."""
    generator = np.random.default_rng([rows, columns])
    X = generator.normal(size=(rows, columns)) + 0.5
    X[generator.random(X.shape) < 1 / 3] = 0.0
    X[:, 0] = 1.0
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)


def draw(
    outputs: dict[int, Slice],
    *,
    columns: int = COLUMNS,
    internal: int = INTERNAL,
    base_sketch: str = "srht",
    preserve_norms: bool = False,
    seed: int = 1,
) -> PowerSketch:
    return PowerSketch.draw(
        RandomStreams(seed),
        columns,
        outputs,
        internal=internal,
        base_sketch=base_sketch,
        preserve_norms=preserve_norms,
    )


def base_of(sketch: PowerSketch) -> BaseSketch:
    return sketch.base or Padding(sketch.columns, sketch.pair.length)


def features(
    sketch: PowerSketch,
    X: Rows,
    *,
    block_scales: NDArray[np.float64] | None = None,
    row_scale: NDArray[np.float64] | None = None,
    direction: NDArray[np.float64] | None = None,
    row_shift: NDArray[np.float64] | None = None,
    threads: int = 1,
) -> NDArray[Any]:
    """All features of the rows, which have to fit their dtype."""
    sketch = dataclasses.replace(sketch, direction=direction)
    outputs, rows = sketch.program.outputs, X.shape[0]
    out = np.zeros((rows, int((outputs[:, 2] + outputs[:, 3]).max())), dtype=X.dtype)
    row_scale = np.ones(rows) if row_scale is None else row_scale
    block_scales = np.ones((rows, len(outputs))) if block_scales is None else block_scales
    assert sketch.write(X, row_scale, row_shift, block_scales, out, threads)
    return out


def assert_rows_close(
    actual: NDArray[Any], expected: NDArray[Any], tolerance: float = 1e-12
) -> None:
    """Compare rows relative to their norms."""
    errors = np.linalg.norm(actual.astype(np.float64) - expected, axis=1)
    assert np.all(errors <= tolerance * np.linalg.norm(expected, axis=1))


def kronecker_power(matrix: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    return reduce(np.kron, [matrix] * exponent)


class TestAlgorithm1:
    """Matrices of the paper for tiny sizes."""

    @staticmethod
    def matrices(T: BaseSketch, S: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        m = T.size
        left, right = np.repeat(np.eye(m), m, axis=0), np.tile(np.eye(m), (m, 1))
        return T.apply(np.eye(T.columns)).T, S.apply(left, right).T

    @staticmethod
    def pi(T: NDArray[np.float64], S: NDArray[np.float64], q: int) -> NDArray[np.float64]:
        """Π^q = S¹ S² S⁴ … S^(q/2) T^q, upper indices being Kronecker powers (Definition 4.1)."""
        product = kronecker_power(T, q)
        level = q // 2
        while level:
            product = kronecker_power(S, level) @ product
            level //= 2
        return product

    @classmethod
    def power_matrix(
        cls, T: NDArray[np.float64], S: NDArray[np.float64], degree: int
    ) -> NDArray[np.float64]:
        """Π over the set bits of the degree, joined by S from the lowest bit upwards (Case 2)."""
        bits = [1 << bit for bit in range(degree.bit_length()) if degree >> bit & 1]
        blocks = [cls.pi(T, S, q) for q in bits]
        return reduce(lambda lower, block: S @ np.kron(lower, block), blocks)

    @base_sketches
    @pytest.mark.parametrize("pair_sketch", PAIR_SKETCHES)
    @pytest.mark.parametrize("degree", range(1, 7))
    @pytest.mark.parametrize(("columns", "size"), [(2, 2), (3, 4), (3, 2)])
    def test_is_the_matrix_of_its_definition(
        self, base_sketch: str, pair_sketch: str, degree: int, columns: int, size: int
    ) -> None:
        for seed in range(3):
            streams = RandomStreams(seed)
            T = BASE_SKETCHES[base_sketch].draw(streams.child("T"), columns, size)
            S = PAIR_SKETCHES[pair_sketch].draw(streams.child("S"), size, size)
            X = points(4, columns)
            tensors = np.array([kronecker_power(x[None, :], degree)[0] for x in X])
            expected = tensors @ self.power_matrix(*self.matrices(T, S), degree).T
            np.testing.assert_allclose(algorithm_1(X, degree, T, S), expected, atol=1e-12)

    def test_eight_is_three_squarings(self) -> None:
        T, S = SRHT.draw(RandomStreams(1), 2, 2), TensorSRHT.draw(RandomStreams(2), 2, 2)
        X = points(4, 2)
        tensors = np.array([kronecker_power(x[None, :], 8)[0] for x in X])
        expected = tensors @ self.pi(*self.matrices(T, S), 8).T
        np.testing.assert_allclose(algorithm_1(X, 8, T, S), expected, atol=1e-12)


class TestLiteralChain:
    """Without norm preservation the chain is Algorithm 1."""

    @base_sketches
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("degree", DEGREES)
    def test_is_algorithm_1(self, base_sketch: str, sparse: bool, degree: int) -> None:
        sketch = draw({degree: Slice(0, INTERNAL, 0)}, base_sketch=base_sketch)
        assert isinstance(sketch.base, BASE_SKETCHES[base_sketch])
        X = points(9, COLUMNS)
        Z = features(sketch, sp.csr_array(X) if sparse else X)
        assert_rows_close(Z, algorithm_1(X, degree, sketch.base, sketch.pair))

    @pytest.mark.parametrize("degree", DEGREES)
    @pytest.mark.parametrize("columns", [1, 5, 17, 32])
    def test_short_rows_need_no_base_sketch(self, degree: int, columns: int) -> None:
        sketch = draw({degree: Slice(0, INTERNAL, 0)}, columns=columns)
        assert sketch.base is None
        X = points(9, columns)
        expected = algorithm_1(X, degree, base_of(sketch), sketch.pair)
        assert_rows_close(features(sketch, X), expected)
        assert_rows_close(features(sketch, sp.csr_array(X)), expected)

    def test_is_algorithm_1_at_degree_1024(self) -> None:
        sketch = draw({1024: Slice(0, 256, 0)}, columns=300, internal=256)
        assert sketch.base is not None
        X = points(9, 300)
        expected = algorithm_1(X, 1024, sketch.base, sketch.pair)
        assert_rows_close(features(sketch, X), expected, tolerance=1e-11)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    def test_several_degrees_share_t_and_s(self, columns: int) -> None:
        """Degree l is S applied to the degrees ⌊l/2⌋ and ⌈l/2⌉, cut to its slice."""
        wanted = {1: Slice(0, 4, 20), 2: Slice(4, 6, 0), 5: Slice(10, 8, 6), 7: Slice(18, 6, 14)}
        sketch = draw(wanted, columns=columns)
        X = points(9, columns)
        powers = {1: base_of(sketch).apply(X)}
        for degree in range(2, 8):
            left, right = powers[degree // 2], powers[degree - degree // 2]
            powers[degree] = sketch.pair.apply(left, right)
        Z = features(sketch, X)
        for degree, cut in wanted.items():
            block = Z[:, cut.offset : cut.offset + cut.size]
            assert_rows_close(block, powers[degree][:, cut.start : cut.stop])

    def test_is_homogeneous(self) -> None:
        sketch, X = draw({6: Slice(0, INTERNAL, 0)}), points(9, COLUMNS)
        scales = np.linspace(0.5, 2, 9)
        expected = scales[:, None] ** 6 * features(sketch, X)
        assert_rows_close(features(sketch, X * scales[:, None]), expected)
        assert_rows_close(features(sketch, X, row_scale=scales), expected)
        assert_rows_close(features(sketch, X, block_scales=scales[:, None] ** 6), expected)

    @pytest.mark.parametrize("columns", [5, COLUMNS])
    @pytest.mark.parametrize("base_sketch", BASE_SKETCHES)
    def test_a_shift_is_added_to_the_rows(self, columns: int, base_sketch: str) -> None:
        sketch = draw({3: Slice(0, INTERNAL, 0)}, columns=columns, base_sketch=base_sketch)
        X, direction, shift = points(9, columns), points(1, columns)[0], np.linspace(-1, 1, 9)
        expected = features(sketch, X + shift[:, None] * direction)
        for rows in (X, sp.csr_array(X)):
            Z = features(sketch, rows, direction=direction, row_shift=shift)
            assert_rows_close(Z, expected, tolerance=1e-11)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_further_columns_are_reached_by_the_shift(self, sparse: bool) -> None:
        """Rows one column shorter than the sketch, and a shift along the column they lack."""
        sketch, X = draw({3: Slice(0, INTERNAL, 0)}), points(9, COLUMNS)
        last = np.eye(COLUMNS)[-1]
        shorter = X[:, :-1].copy()
        rows = sp.csr_array(shorter) if sparse else shorter
        Z = features(sketch, rows, direction=last, row_shift=X[:, -1].copy())
        assert_rows_close(Z, features(sketch, X))

    @pytest.mark.parametrize(("dtype", "internal"), [(np.float64, 2), (np.float32, 8)])
    def test_degree_1024_is_finite_or_refused(self, dtype: Any, internal: int) -> None:
        """Small sketches of high degree explode; the chain then says so."""
        X, ones = points(9, COLUMNS, dtype), np.ones((9, 1))
        answers = []
        for seed in range(20):
            sketch = draw({1024: Slice(0, internal, 0)}, internal=internal, seed=seed)
            out = np.empty((9, internal), dtype=dtype)
            answers.append(sketch.write(X, ones[:, 0], None, ones, out, 1))
            assert np.isfinite(out).all() or not answers[-1]
        assert any(answers)
        assert not all(answers)


def unit(Z: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    return result


def normalised_powers(
    X: NDArray[np.float64], degree: int, T: BaseSketch, S: TensorSRHT
) -> NDArray[np.float64]:
    """Algorithm 1 with every vector rescaled to norm one as soon as it is there."""
    w = unit(T.apply(X))
    z = None
    for bit in range(degree.bit_length()):
        if bit:
            w = unit(S.apply(w, w))
        if degree >> bit & 1:
            z = w if z is None else unit(S.apply(z, w))
    assert z is not None
    return z


class TestNormPreservingChain:
    @base_sketches
    @pytest.mark.parametrize("degree", [*DEGREES, 1024])
    def test_is_algorithm_1_normalised_step_by_step(self, base_sketch: str, degree: int) -> None:
        sketch = draw({degree: Slice(0, INTERNAL, 0)}, base_sketch=base_sketch, preserve_norms=True)
        X = points(9, COLUMNS)
        norms = np.linspace(0.5, 3, 9)[:, None]
        expected = norms * normalised_powers(X, degree, base_of(sketch), sketch.pair)
        Z = features(sketch, X, block_scales=norms)
        assert_rows_close(Z, expected, tolerance=1e-12 * max(1, degree / 50))

    @dtypes
    @base_sketches
    @pytest.mark.parametrize("degree", [1, 2, 7, 1024])
    @pytest.mark.parametrize("size", [1, 5, 32])
    def test_rows_have_the_norms_asked_for(
        self, dtype: Any, base_sketch: str, degree: int, size: int
    ) -> None:
        sketch = draw({degree: Slice(0, size, 0)}, base_sketch=base_sketch, preserve_norms=True)
        norms = np.logspace(-10, 10, 9)
        Z = features(sketch, points(9, COLUMNS, dtype), block_scales=norms[:, None])
        actual = np.linalg.norm(Z.astype(np.float64), axis=1)
        np.testing.assert_allclose(actual, norms, rtol=8 * np.finfo(dtype).eps)

    def test_every_block_has_its_own_norm(self) -> None:
        wanted = {1: Slice(0, 5, 0), 3: Slice(5, 10, 5), 4: Slice(15, 17, 15)}
        sketch = draw(wanted, preserve_norms=True)
        norms = np.random.default_rng(0).uniform(1, 2, (9, 3))
        Z = features(sketch, points(9, COLUMNS), block_scales=norms)
        actual = np.stack([np.linalg.norm(part, axis=1) for part in np.split(Z, [5, 15], 1)], 1)
        np.testing.assert_allclose(actual, norms, rtol=1e-14)

    @pytest.mark.parametrize("preserve_norms", [True, False])
    @pytest.mark.parametrize("columns", [5, COLUMNS])
    def test_zero_rows_give_zeros(self, preserve_norms: bool, columns: int) -> None:
        sketch = draw({5: Slice(0, 20, 0)}, columns=columns, preserve_norms=preserve_norms)
        X = points(9, columns)
        X[[0, 4]] = 0.0
        Z = features(sketch, X)
        np.testing.assert_array_equal(Z[[0, 4]], 0.0)
        assert np.all(np.linalg.norm(np.delete(Z, [0, 4], axis=0), axis=1) > 0)

    @base_sketches
    @dtypes
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("exponent", [-120, -80, 80, 120])
    @pytest.mark.parametrize("preserve_norms", [True, False])
    def test_rows_far_from_norm_one_are_scaled_first(
        self, base_sketch: str, dtype: Any, sparse: bool, exponent: int, preserve_norms: bool
    ) -> None:
        """Powers of two change no bits, though float32 has no squares or products of such rows.

        Entries are multiples of 2⁻⁶, which times 2⁻¹²⁰ is the smallest normal float32.
        """
        sketch = draw({9: Slice(0, 20, 0)}, base_sketch=base_sketch, preserve_norms=preserve_norms)
        X = (np.round(64 * points(9, COLUMNS)) / 64).astype(dtype)
        far = np.ldexp(X, exponent).astype(dtype)
        row_scale = np.full(9, 2.0**-exponent)
        if sparse:
            X, far = sp.csr_array(X), sp.csr_array(far)
        np.testing.assert_array_equal(
            features(sketch, far, row_scale=row_scale), features(sketch, X)
        )

    @base_sketches
    def test_threads_do_not_matter(self, base_sketch: str) -> None:
        sketch = draw({9: Slice(0, 20, 0)}, base_sketch=base_sketch, preserve_norms=True)
        X = points(70, COLUMNS)
        np.testing.assert_array_equal(features(sketch, X, threads=3), features(sketch, X))


class TestLinear:
    """T alone as a chain without products."""

    @base_sketches
    @pytest.mark.parametrize("sparse", [False, True])
    @pytest.mark.parametrize("size", [8, 11])
    def test_is_the_base_sketch(self, base_sketch: str, sparse: bool, size: int) -> None:
        T = BASE_SKETCHES[base_sketch].draw(RandomStreams(3), COLUMNS, size)
        X = points(9, COLUMNS)
        sketch = PowerSketch.linear(T, Slice(0, size, 0), preserve_norms=False)
        Z = features(sketch, sp.csr_array(X) if sparse else X)
        assert_rows_close(Z, T.apply(X))
        preserving = PowerSketch.linear(T, Slice(0, size, 0), preserve_norms=True)
        assert_rows_close(features(preserving, X), unit(T.apply(X)))


class TestError:
    @staticmethod
    def error(internal: int, degree: int, seed: int, *, preserve_norms: bool) -> float:
        """Relative Frobenius error of Z Zᵀ on 12 unit vectors of 1500 coordinates."""
        X = points(12, 1500)
        sketch = draw(
            {degree: Slice(0, internal, 0)},
            columns=1500,
            internal=internal,
            preserve_norms=preserve_norms,
            seed=seed,
        )
        Z, K = features(sketch, X), (X @ X.T) ** degree
        return float(np.linalg.norm(Z @ Z.T - K) / np.linalg.norm(K))

    @pytest.mark.parametrize("preserve_norms", [True, False])
    def test_falls_with_the_root_of_the_size(self, preserve_norms: bool) -> None:
        """The slope of log error over log size lies in [−0.65, −0.4] at degree 3.

        Geometric means of 100 seeds: the standard error of the slope is 0.01 with norms preserved
        and 0.02 without, where higher powers of the norm's error make it −0.56. Failure
        probability 1e-5.
        """
        sizes = [64, 128, 256, 512, 1024]
        logarithms = [
            np.mean(
                [np.log(self.error(size, 3, s, preserve_norms=preserve_norms)) for s in range(100)]
            )
            for size in sizes
        ]
        assert -0.65 < np.polyfit(np.log(sizes), logarithms, 1)[0] < -0.4

    def test_norm_preservation_pays_at_high_degrees(self) -> None:
        """At degree 32 the error falls from more than one to less than one."""
        literal, preserving = (
            np.median([self.error(256, 32, seed, preserve_norms=norms) for seed in range(15)])
            for norms in (False, True)
        )
        assert literal > 10
        assert preserving < 0.3
