"""Ritz values, bounds of the eigenvalues beyond them, and bounds of resolvents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powersketch.linalg.lanczos import (
    ExtremeEigenvalues,
    ResolventBounds,
    extreme_eigenvalues,
    missing_share,
    ritz_values,
)
from tests.linalg.systems import positive_matrix


def test_all_steps_give_all_eigenvalues() -> None:
    values = np.sort(np.random.default_rng(0).normal(size=30))
    start = np.random.default_rng(1).normal(size=30)
    assert ritz_values(lambda v: values * v, start, 30) == pytest.approx(values, abs=1e-9)
    assert ritz_values(lambda v: values * v, start, 99) == pytest.approx(values, abs=1e-9)


def test_stays_orthogonal_where_eigenvalues_cluster() -> None:
    """Without reorthogonalisation, the eigenvalue 1000 would be found several times."""
    values = np.concatenate(([1000.0], np.linspace(0.0, 1.0, 199)))
    found = ritz_values(lambda v: values * v, np.random.default_rng(1).normal(size=200), 80)
    assert np.count_nonzero(found > 2.0) == 1


def test_exhausted_space_gives_eigenvalues() -> None:
    values = np.repeat([1.0, 3.0, 7.0], 10)
    start = np.random.default_rng(1).normal(size=30)
    found = ritz_values(lambda v: values * v, start, 20)
    assert found == pytest.approx([1.0, 3.0, 7.0])
    bounds = extreme_eigenvalues(lambda v: values * v, start, 20, confidence=0.99, floor=0.0)
    assert bounds.low == bounds.smallest == pytest.approx(1.0)
    assert bounds.high == bounds.largest == pytest.approx(7.0)


@pytest.mark.parametrize("size", [1, 2, 7, 300])
def test_thirty_steps_give_the_largest_eigenvalue_to_a_percent(size: int) -> None:
    A = positive_matrix(size, 20.0)
    exact = np.linalg.eigvalsh(A)
    values = ritz_values(lambda v: A @ v, np.random.default_rng(2).normal(size=size), 30)
    assert exact[0] * (1 - 1e-12) <= values[0] <= 1.2 * exact[0]
    assert 0.99 * exact[-1] <= values[-1] <= exact[-1] * (1 + 1e-12)


def test_multiple_of_the_identity() -> None:
    bounds = extreme_eigenvalues(lambda v: 2.0 * v, np.ones(9), 5, confidence=0.99, floor=0.0)
    assert bounds.low == bounds.high == pytest.approx(2.0)


@pytest.mark.parametrize("steps", [2, 4, 8, 16])
def test_bounds_hold(steps: int) -> None:
    """They are far from tight: 50 of 50 hold."""
    for seed in range(50):
        generator = np.random.default_rng(seed)
        values = generator.pareto(1.0 + seed % 4, size=100)
        found = extreme_eigenvalues(
            lambda v, values=values: values * v,
            generator.normal(size=100),
            steps,
            confidence=0.99,
            floor=0.0,
        )
        assert found.low <= values.min() <= found.smallest * (1 + 1e-12) + 1e-12
        assert found.largest * (1 - 1e-12) <= values.max() <= found.high * (1 + 1e-12)


def test_bounds_get_tighter_with_steps() -> None:
    values, start = np.linspace(1.0, 2.0, 100), np.random.default_rng(0).normal(size=100)
    few, many = (
        extreme_eigenvalues(lambda v: values * v, start, steps, confidence=0.99, floor=0.5)
        for steps in (12, 60)
    )
    assert few.low < many.low <= 1.0
    assert 1.0 - 1e-12 <= many.smallest <= few.smallest
    assert few.largest <= many.largest <= 2.0 + 1e-12
    assert 2.0 <= many.high < few.high
    assert many.high - 2.0 < 0.02


def test_without_enough_steps_there_is_no_upper_bound() -> None:
    found = extreme_eigenvalues(
        lambda v: np.arange(1.0, 101.0) * v, np.ones(100), 2, confidence=0.99, floor=0.5
    )
    assert found.low == 0.5
    assert found.high == math.inf


def test_missing_share_solves_the_bound() -> None:
    share = missing_share(1000, 20, 0.005)
    assert 1.648 * math.sqrt(1000) * math.exp(-math.sqrt(share) * 39) == pytest.approx(0.005)


def test_inverse() -> None:
    found = ExtremeEigenvalues(0.5, 1.0, 4.0, 5.0).inverse()
    assert found == ExtremeEigenvalues(0.2, 0.25, 1.0, 2.0)


class TestResolventBounds:
    def test_bounds_of_every_vector(self) -> None:
        """The two rules enclose the form after every step, and meet in the end."""
        generator = np.random.default_rng(0)
        values, V = generator.pareto(1.0, 60), generator.normal(size=(60, 5))
        exact = np.sum(V * V * (values / (values + 0.3))[:, None], axis=0)
        bounds = ResolventBounds(lambda W: values[:, None] * W, V, 0.3)
        for _ in range(40):
            bounds.step()
            low, high = bounds.bounds()
            assert np.all(low <= exact * (1 + 1e-9))
            assert np.all(exact <= high * (1 + 1e-9))
        assert low == pytest.approx(exact, rel=1e-6)
        assert high == pytest.approx(exact, rel=1e-6)

    def test_spaces_that_are_exhausted(self) -> None:
        values = np.repeat([0.0, 2.0], 10)
        bounds = ResolventBounds(lambda W: values[:, None] * W, np.ones((20, 1)), 1.0)
        for _ in range(6):
            bounds.step()
        low, high = bounds.bounds()
        assert low == pytest.approx([20 / 3])
        assert high == pytest.approx([20 / 3])
