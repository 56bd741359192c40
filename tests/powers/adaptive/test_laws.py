"""The laws that tuples are drawn by: what they are, that they add up to one, what is drawn."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.powers.adaptive import tuple_law
from powersketch.powers.adaptive.laws import located, stratified_uniforms
from powersketch.random_streams import RandomStreams

each_draw = pytest.mark.parametrize("draw", ["exact", "sketched", "rows"])
ROW_SHARE = 0.05
FLOOR = 1e-3


def rows(count: int = 7, columns: int = 3, seed: int = 0) -> NDArray[np.float64]:
    """Rows of different lengths that are not centred, some entries zero."""
    generator = np.random.default_rng(seed)
    X = generator.normal(loc=0.5, size=(count, columns))
    X[generator.random(X.shape) < 0.2] = 0.0
    return X


def all_tuples(columns: int, degree: int) -> NDArray[np.int32]:
    return np.array(list(product(range(columns), repeat=degree)), dtype=np.int32)


def monomials(X: NDArray[np.float64], tuples: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return φ_I(x) of every row and tuple, by brute force."""
    return np.prod(X[:, tuples], axis=2)


def scores(X: NDArray[np.float64], tuples: NDArray[np.int32], ridge: float) -> NDArray[Any]:
    """Return τ_I / s_λ of every tuple, by brute force."""
    K = (X @ X.T) ** tuples.shape[1]
    inverse = np.linalg.inv(K + ridge * np.eye(len(X)))
    phi = monomials(X, tuples)
    return np.einsum("ai,ab,bi->i", phi, inverse, phi) / np.trace(K @ inverse)


def ridge_for(X: NDArray[np.float64], degree: int, size: int) -> float:
    """Return the λ that a size asks for: the first halving of the trace with the dimension."""
    K, count = (X @ X.T) ** degree, len(X)
    eigenvalues = np.linalg.eigvalsh(K)
    goal = min(size / (4 * max(np.log(count), 1.0)), 0.5 * count)
    ridges: list[float] = [float(np.trace(K)) / 2**halving for halving in range(41)]
    dimensions = (np.sum(eigenvalues / (eigenvalues + ridge)) for ridge in ridges)
    return next(ridge for ridge, s in zip(ridges, dimensions, strict=False) if s >= goal)


def norms_law(X: NDArray[np.float64], tuples: NDArray[np.int32]) -> NDArray[Any]:
    """Return the law of RowLaw, by its formula."""
    X = X[X.any(axis=1)]
    squares = X * X / (X * X).sum(axis=1, keepdims=True)
    floor = 0.5 * (squares.mean(axis=0) + 1.0 / X.shape[1])
    laws = (1 - FLOOR) * squares + FLOOR * floor
    shares = (X * X).sum(axis=1) ** tuples.shape[1]
    return shares / shares.sum() @ np.prod(laws[:, tuples], axis=2)


class TestProbabilities:
    @each_draw
    @pytest.mark.parametrize(("columns", "degree"), [(1, 1), (1, 5), (3, 1), (3, 4), (6, 2)])
    def test_add_up_to_one(self, draw: str, columns: int, degree: int) -> None:
        X = rows(columns=columns)
        law = tuple_law(X, degree, 10, RandomStreams(1), draw)
        tuples = all_tuples(columns, degree)
        for probability in (law.probability(tuples), law.first.probability(tuples)):
            assert probability.to_float().sum() == pytest.approx(1.0, abs=1e-13)
            assert probability.to_float().min() >= 0.0
        assert law.probability(tuples).to_float().min() > 0.0

    @pytest.mark.parametrize(("columns", "degree"), [(3, 1), (2, 5), (4, 3)])
    @pytest.mark.parametrize("size", [2, 10, 20])
    def test_exact_draw_is_by_ridge_leverage_scores(
        self, columns: int, degree: int, size: int
    ) -> None:
        """With degree 1, these are those of the columns of X."""
        X, tuples = rows(columns=columns), all_tuples(columns, degree)
        X = X[X.any(axis=1)]
        law = tuple_law(X, degree, size, RandomStreams(1), "exact")
        expected = scores(X, tuples, ridge_for(X, degree, size))
        probability = law.first.probability(tuples).to_float()
        np.testing.assert_allclose(probability, expected, rtol=0, atol=1e-12)
        mixed = (1 - ROW_SHARE) * expected + ROW_SHARE * norms_law(X, tuples)
        np.testing.assert_allclose(law.probability(tuples).to_float(), mixed, rtol=0, atol=1e-12)

    def test_rows_law_is_near_the_norms(self) -> None:
        X, tuples = rows(9, 4), all_tuples(4, 3)
        norms = np.square(monomials(X, tuples)).sum(axis=0)
        probability = tuple_law(X, 3, 10, RandomStreams(1), "rows").probability(tuples)
        np.testing.assert_allclose(probability.to_float(), norms / norms.sum(), atol=4 * FLOOR)

    def test_rows_law_is_its_formula(self) -> None:
        X, tuples = rows(9, 4), all_tuples(4, 3)
        X[4] = 0.0
        probability = tuple_law(X, 3, 10, RandomStreams(1), "rows").probability(tuples)
        np.testing.assert_allclose(probability.to_float(), norms_law(X, tuples), rtol=1e-13)

    def test_sketched_draw_is_near_the_scores(self) -> None:
        """Each conditional probability is estimated from 48 probes: half of it is far away."""
        X = rows(12, 5)
        tuples = all_tuples(5, 3)
        law = tuple_law(X, 3, 20, RandomStreams(1), "sketched")
        expected = scores(X, tuples, ridge_for(X, 3, 20))
        distance = np.abs(law.first.probability(tuples).to_float() - expected).sum()
        assert distance < 0.5
        assert distance < 0.5 * np.abs(expected - 1 / len(tuples)).sum()

    @each_draw
    def test_unseen_coordinates_are_possible(self, draw: str) -> None:
        X = rows(columns=4)
        X[:, 2] = 0.0
        law = tuple_law(X, 2, 10, RandomStreams(1), draw)
        unseen = law.probability(np.array([[2, 2]], dtype=np.int32)).to_float()
        assert 0 < unseen[0] < 1e-6

    @each_draw
    def test_ridge_follows_the_size(self, draw: str) -> None:
        """The more is drawn, the nearer to the norms' opposite: all directions count alike."""
        X, tuples = rows(20, 6), all_tuples(6, 2)
        laws = [tuple_law(X, 2, size, RandomStreams(1), draw) for size in (1, 2000)]
        few, many = (law.first.probability(tuples).to_float() for law in laws)
        flatter = np.square(many).sum() < 0.9 * np.square(few).sum()
        assert flatter == (draw != "rows")

    @each_draw
    def test_scale_of_the_rows_does_not_matter(self, draw: str) -> None:
        X, tuples = rows(), all_tuples(3, 3)
        laws = [tuple_law(c * X, 3, 10, RandomStreams(1), draw) for c in (1.0, 2.0**40, 2.0**-40)]
        expected, *others = (law.probability(tuples).to_float() for law in laws)
        for other in others:
            np.testing.assert_array_equal(other, expected)


class TestDraws:
    @each_draw
    def test_every_draw_follows_the_law(self, draw: str) -> None:
        """Each of four draws by itself, over 600 seeds: a χ² of 8 degrees stays below 40.

        Correct code fails with probability 4 · 3e-6.
        """
        X, tuples, seeds = rows(), all_tuples(3, 2), 600
        law = tuple_law(X, 2, 10, RandomStreams(1), draw)
        codes = np.array(
            [law.draw(RandomStreams(seed), 4) @ np.array([3, 1]) for seed in range(seeds)]
        )
        share = 1.0 if draw == "rows" else 1 / 4
        expected = seeds * law.probability(tuples, share).to_float()
        for place in range(4):
            counts = np.bincount(codes[:, place], minlength=9)
            assert np.sum((counts - expected) ** 2 / expected) < 40

    @each_draw
    def test_probabilities_are_those_of_the_law(self, draw: str) -> None:
        law = tuple_law(rows(), 3, 10, RandomStreams(1), draw)
        drawn, probability = law.draw_with_probabilities(RandomStreams(2), 40)
        of_second = 1.0 if draw == "rows" else 2 / 40
        again = law.probability(drawn, of_second)
        np.testing.assert_array_equal(probability.to_float(), again.to_float())
        assert drawn.dtype == np.int32

    @each_draw
    def test_formats_give_the_same_bits(self, draw: str) -> None:
        X = rows(30, 8)
        X[np.random.default_rng(3).random(X.shape) < 0.5] = 0.0
        expected = None
        for other in (
            X,
            np.asfortranarray(X),
            np.repeat(X, 2, axis=1)[:, ::2],
            sp.csr_array(X),
            sp.csc_array(X),
            sp.csr_matrix(X),
        ):
            law = tuple_law(other, 3, 50, RandomStreams(1), draw)
            tuples, probability = law.draw_with_probabilities(RandomStreams(2), 100)
            values = np.column_stack([tuples, probability.mantissa, probability.exponent])
            expected = values if expected is None else expected
            np.testing.assert_array_equal(values, expected)


class TestStratifiedUniforms:
    def test_one_in_every_stratum(self) -> None:
        labels = np.array([0] * 5 + [2] * 7 + [1])
        uniforms = stratified_uniforms(RandomStreams(0), "demo", labels)
        for label, count in ((0, 5), (2, 7), (1, 1)):
            strata = np.sort(np.floor(count * uniforms[labels == label]).astype(int))
            np.testing.assert_array_equal(strata, np.arange(count))

    def test_each_is_uniform(self) -> None:
        """Mean and variance of the first of three over 1000 seeds, within four standard errors."""
        labels = np.zeros(3, dtype=np.int64)
        first = np.array(
            [stratified_uniforms(RandomStreams(seed), "demo", labels)[0] for seed in range(1000)]
        )
        assert abs(first.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 1000)
        assert abs(first.var() - 1 / 12) < 4 * np.sqrt(1 / 180 / 1000)

    def test_located_takes_no_coordinate_of_weight_zero(self) -> None:
        cumulative = np.cumsum([0.0, 2.0, 0.0, 1.0, 0.0])
        uniforms = np.array([0.0, 0.5, 2 / 3, 0.9, 1.0])
        np.testing.assert_array_equal(located(cumulative, uniforms), [1, 1, 3, 3, 3])
        columns = np.repeat(cumulative[:, None], 5, axis=1)
        np.testing.assert_array_equal(located(columns, uniforms), [1, 1, 3, 3, 3])
