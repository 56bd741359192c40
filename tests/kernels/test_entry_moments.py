"""The variance of all entries: exact, and the same bits however rows are divided."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from powersketch.arrays import slices
from powersketch.kernels import EntryMoments, Gaussian, WithLinear, asks_for_scale, at_scale

each_layout = pytest.mark.parametrize("to_layout", [np.asarray, sparse.csr_array])


def rows(count: int, columns: int = 5) -> Any:
    X = np.random.default_rng(0).standard_normal((count, columns))
    X[X < -0.5] = 0.0
    return X


def exact_variance(X: Any, weights: Any = None) -> float:
    ones = np.ones(len(X)) if weights is None else weights
    entries = [(Fraction(w), Fraction(x)) for w, row in zip(ones, X, strict=True) for x in row]
    total = sum(w for w, _ in entries)
    mean = sum(w * x for w, x in entries) / total
    return float(sum(w * (x - mean) ** 2 for w, x in entries) / total)


@each_layout
@pytest.mark.parametrize("size", [1, 7, 100, 299])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_have_the_bits_of_all_rows(
    to_layout: Callable[[Any], Any], size: int, weighted: bool
) -> None:
    X = to_layout(rows(300) * 10.0 ** np.arange(5))
    weights = np.random.default_rng(1).random(300) if weighted else None
    whole = EntryMoments.of(X, weights)
    parts = [
        EntryMoments.of(X[part], None if weights is None else weights[part])
        for part in slices(300, size)
    ]
    assert EntryMoments.merged(parts) == whole
    assert EntryMoments.merged(parts[::-1]).variance == whole.variance


@each_layout
@pytest.mark.parametrize("offset", [0.0, 3.0, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
def test_variance(to_layout: Callable[[Any], Any], offset: float, weighted: bool) -> None:
    X = np.rint(1e3 * rows(60)) + offset
    weights = np.random.default_rng(1).random(60) if weighted else None
    variance = EntryMoments.of(to_layout(X), weights).variance
    assert variance == pytest.approx(exact_variance(X, weights), rel=1e-14)


def test_whole_weights_repeat_rows() -> None:
    X, weights = rows(40), np.random.default_rng(0).integers(1, 4, 40)
    repeated = EntryMoments.of(np.repeat(X, weights, axis=0))
    assert EntryMoments.of(X, weights.astype(float)).variance == pytest.approx(
        repeated.variance, rel=1e-15
    )


@pytest.mark.parametrize(
    ("factor", "variance"), [(1e-300, math.nan), (1e200, math.inf), (0.0, 0.0), (1e-150, None)]
)
def test_the_ends_of_float64(factor: float, variance: float | None) -> None:
    X = factor * rows(50)
    expected = exact_variance(X) if variance is None else variance
    assert EntryMoments.of(X).variance == pytest.approx(expected, rel=1e-12, nan_ok=True)
    halves = [EntryMoments.of(X[:20]), EntryMoments.of(X[20:])]
    assert EntryMoments.merged(halves).variance == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_equal_entries_have_no_variance() -> None:
    # The sum of a row is rounded, and a third of it is not 0.1.
    assert EntryMoments.of(np.full((4, 3), 0.1)).variance == 0.0


def test_kernels_at_scale() -> None:
    X = rows(30)
    moments = EntryMoments.of(X)
    both = WithLinear(Gaussian("scale"), 0.5)
    assert asks_for_scale(both)
    assert repr(at_scale(both, moments)) == repr(both.resolve(X))
    for kernel in (Gaussian("median"), Gaussian(2.0)):
        assert not asks_for_scale(kernel)
        assert at_scale(kernel, moments) is kernel
    assert at_scale(both, None) is both
