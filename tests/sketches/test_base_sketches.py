"""What every base sketch T promises; a new one is covered by its entry in the tables below.

The seeds are fixed, so a test passes always or never. The failure probabilities are those over the
choice of the seeds: how often a correct sketch would fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, BaseSketch, padded_length

# T x for seed 7, x = (1, −2, 3, −4, 5) and eight outputs: a seed means the same sketch for ever.
FIXED: dict[str, list[float]] = {
    "srht": [
        -2.474873734152916,
        4.596194077712559,
        0.35355339059327373,
        -3.889087296526011,
        -0.35355339059327373,
        1.0606601717798212,
        1.0606601717798212,
        -3.181980515339464,
    ],
    "countsketch": [0.0, 0.0, 3.0, 0.0, -3.0, 0.0, -4.0, -5.0],
    "osnap": [-2.0, -2.5, -2.5, -2.0, 1.5, 3.0, -0.5, 5.0],
    "gaussian": [
        -3.9609561786648118,
        -1.50241288135907,
        -4.462816523143088,
        1.3333059121727815,
        -3.2616159407969683,
        -5.224646011479686,
        1.4527938582648878,
        -4.670602141294111,
    ],
    "rademacher": [
        -5.303300858899106,
        -4.596194077712559,
        1.7677669529663687,
        2.474873734152916,
        5.303300858899106,
        -1.7677669529663687,
        -1.0606601717798212,
        1.0606601717798212,
    ],
}
# Sums in the order of the columns, with no transform: CSR rows give the bits of dense rows.
SAME_BITS_OF_CSR = {"countsketch", "osnap", "gaussian", "rademacher"}

# The variance of ⟨Tx, Ty⟩ from a = ⟨x,y⟩², N = ‖x‖²‖y‖², f = Σ xᵢ²yᵢ², the padded columns and size.
Law = Callable[[float, float, float, int, int], float]
VARIANCE: dict[str, Law] = {
    "srht": lambda a, N, f, d, m: (N + a - 2 * f) / m * (1 - (m - 1) / (d - 1)),
    "countsketch": lambda a, N, f, _, m: (N + a - 2 * f) / m,
    "osnap": lambda a, N, f, _, m: (N + a - 2 * f) / m,
    "gaussian": lambda a, N, _f, _d, m: (N + a) / m,
    "rademacher": lambda a, N, f, _, m: (N + a - 2 * f) / m,
}

sketches = pytest.mark.parametrize("name", BASE_SKETCHES)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
seeds = st.integers(0, 2**63 - 1)
sizes = st.integers(1, 60)


def draw(name: str, columns: int, size: int, seed: int = 1) -> BaseSketch:
    return BASE_SKETCHES[name].draw(RandomStreams(seed), columns, size)


def points(rows: int, columns: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Points of about unit length, a third of their coordinates zero."""
    generator = np.random.default_rng([rows, columns])
    X = generator.normal(size=(rows, columns)) / np.sqrt(columns)
    X[generator.random(X.shape) < 1 / 3] = 0.0
    return X.astype(dtype)


@cache
def gram_matrices(name: str, columns: int, size: int, draws: int) -> NDArray[np.float64]:
    """⟨Tx, Ty⟩ of two fixed vectors, for many seeds."""
    X = points(2, columns)
    grams = []
    for seed in range(draws):
        Z = draw(name, columns, size, seed).apply(X)
        grams.append(Z @ Z.T)
    return np.array(grams)


class TestLinearMap:
    @sketches
    @given(columns=sizes, size=sizes, seed=seeds, factor=st.floats(-4, 4))
    def test_is_linear(self, name: str, columns: int, size: int, seed: int, factor: float) -> None:
        T, X = draw(name, columns, size, seed), points(6, columns)
        combined = T.apply(X[:3] + factor * X[3:])
        np.testing.assert_allclose(combined, T.apply(X[:3]) + factor * T.apply(X[3:]), atol=1e-13)

    @sketches
    @given(columns=sizes, size=sizes, seed=seeds)
    def test_zero_rows_give_zeros(self, name: str, columns: int, size: int, seed: int) -> None:
        Z = draw(name, columns, size, seed).apply(np.zeros((3, columns)))
        np.testing.assert_array_equal(Z, np.zeros((3, size)))

    @sketches
    @given(columns=sizes, size=sizes, seed=seeds, given=sizes)
    def test_missing_columns_are_zeros(
        self, name: str, columns: int, size: int, seed: int, given: int
    ) -> None:
        T, X = draw(name, columns, size, seed), points(5, min(given, columns))
        whole = np.pad(X, ((0, 0), (0, columns - X.shape[1])))
        np.testing.assert_array_equal(T.apply(X), T.apply(whole))

    @sketches
    @given(columns=sizes, size=sizes, seed=seeds)
    def test_csr_rows_are_dense_rows(self, name: str, columns: int, size: int, seed: int) -> None:
        T, X = draw(name, columns, size, seed), points(5, columns)
        for matrix in (sp.csr_array(X), sp.csr_matrix(X)):
            if name in SAME_BITS_OF_CSR:
                np.testing.assert_array_equal(T.apply(matrix), T.apply(X))
            else:
                np.testing.assert_allclose(T.apply(matrix), T.apply(X), atol=1e-14)

    @sketches
    @dtypes
    @pytest.mark.parametrize("sparse", [False, True])
    def test_keeps_the_dtype(self, name: str, dtype: Any, sparse: bool) -> None:
        T, X = draw(name, 40, 16), points(9, 40, dtype)
        Z = T.apply(sp.csr_array(X) if sparse else X)
        assert Z.dtype == dtype
        assert Z.shape == (9, T.size) == (9, 16)
        np.testing.assert_allclose(Z, T.apply(X.astype(np.float64)), atol=4 * np.finfo(dtype).eps)

    @sketches
    @pytest.mark.parametrize("sparse", [False, True])
    def test_threads_do_not_matter(self, name: str, sparse: bool) -> None:
        T, X = draw(name, 300, 50), points(70, 300)
        X = sp.csr_array(X) if sparse else X
        np.testing.assert_array_equal(T.apply(X, threads=3), T.apply(X))

    @sketches
    def test_no_rows(self, name: str) -> None:
        assert draw(name, 10, 4).apply(np.empty((0, 10))).shape == (0, 4)


class TestSeed:
    @sketches
    def test_fixed_numbers(self, name: str) -> None:
        Z = draw(name, 5, 8, seed=7).apply(np.array([[1.0, -2.0, 3.0, -4.0, 5.0]]))
        assert Z[0].tolist() == FIXED[name]

    @sketches
    @given(columns=sizes, size=sizes, seed=seeds)
    def test_same_seed_same_sketch(self, name: str, columns: int, size: int, seed: int) -> None:
        first, second = (draw(name, columns, size, seed).apply(np.eye(columns)) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    @sketches
    def test_different_seeds_differ(self, name: str) -> None:
        results = {draw(name, 64, 64, seed).apply(np.eye(64)).tobytes() for seed in range(50)}
        assert len(results) == 50

    @sketches
    def test_different_paths_differ(self, name: str) -> None:
        streams = RandomStreams(7)
        operators = [
            BASE_SKETCHES[name].draw(branch, 64, 64)
            for branch in (streams, streams.child("a"), streams.child("b"))
        ]
        assert len({T.apply(np.eye(64)).tobytes() for T in operators}) == 3


class TestLaw:
    """20 columns, of which SRHT makes 32; 8 outputs; 4000 seeds."""

    COLUMNS, SIZE, DRAWS = 20, 8, 4000

    @sketches
    def test_unbiased(self, name: str) -> None:
        """E ⟨Tx, Ty⟩ = ⟨x, y⟩ and E ‖Tx‖² = ‖x‖²: within five standard errors.

        Failure probability 6e-7 for each of the three means.
        """
        grams = gram_matrices(name, self.COLUMNS, self.SIZE, self.DRAWS)
        X = points(2, self.COLUMNS)
        errors = np.abs(grams.mean(axis=0) - X @ X.T)
        assert (errors < 5 * grams.std(axis=0) / np.sqrt(self.DRAWS)).all()

    @pytest.mark.parametrize("name", VARIANCE)
    def test_variance_is_the_one_of_the_formula(self, name: str) -> None:
        """Var ⟨Tx, Ty⟩ within 15 %.

        Its relative standard error is √((kurtosis − 1) / draws), at most 3 % for a kurtosis of 5:
        failure probability 1e-6.
        """
        products = gram_matrices(name, self.COLUMNS, self.SIZE, self.DRAWS)[:, 0, 1]
        x, y = points(2, self.COLUMNS)
        law = VARIANCE[name]
        expected = law(
            (x @ y) ** 2,
            (x @ x) * (y @ y),
            (x * x) @ (y * y),
            padded_length(self.COLUMNS),
            self.SIZE,
        )
        assert products.var() == pytest.approx(expected, rel=0.15)

    @sketches
    def test_error_falls_with_the_root_of_the_size(self, name: str) -> None:
        """The slope of log error over log size lies in [−0.6, −0.4].

        The error at each size is the root mean square over 60 seeds and 66 pairs, which makes the
        standard error of the slope 0.01. Sampling without replacement is steeper by 0.02, as every
        coordinate is kept in the end. Failure probability 1e-9.
        """
        X = points(12, 512)
        exact, pairs = X @ X.T, np.triu_indices(12, 1)
        outputs = np.array([8, 16, 32, 64])
        errors = []
        for size in outputs:
            squares = []
            for seed in range(60):
                Z = draw(name, 512, int(size), seed).apply(X)
                squares.append(((Z @ Z.T - exact)[pairs] ** 2).mean())
            errors.append(np.sqrt(np.mean(squares)))
        slope = np.polyfit(np.log(outputs), np.log(errors), 1)[0]
        assert -0.6 < slope < -0.4


class TestRefusals:
    @sketches
    @pytest.mark.parametrize(("columns", "size"), [(0, 4), (4, 0), (-1, 4), (4, -3)])
    def test_no_inputs_or_outputs(self, name: str, columns: int, size: int) -> None:
        with pytest.raises(ValueError, match=f"{columns} coordinates to {size}: both must be at"):
            draw(name, columns, size)

    @sketches
    @pytest.mark.parametrize("sparse", [False, True])
    def test_longer_rows(self, name: str, sparse: bool) -> None:
        X: Any = np.ones((2, 11))
        T = draw(name, 10, 4)
        with pytest.raises(ValueError, match="up to 10 coordinates, got 11: draw it with more"):
            T.apply(sp.csr_array(X) if sparse else X)


def test_every_sketch_has_its_fixed_numbers() -> None:
    assert set(FIXED) == set(BASE_SKETCHES)
