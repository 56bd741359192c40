"""Random pairs of rows and the share of pairs that may be worse than all of them."""

from __future__ import annotations

import numpy as np
import pytest

from powersketch.accuracy.data_rows import DataRows
from powersketch.accuracy.independent_pairs import IndependentPairs
from powersketch.accuracy.sampled_pairs import PairErrors, RowSample
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Stretched, random_rows

ROWS = DataRows.of(random_rows("equal", 50, 3, 0))


def known_pairs(rows: DataRows, seed: int, factor: float = 1.1) -> IndependentPairs:
    """Return pairs that share no row, as further rows need them."""
    sample = RowSample(rows, np.ones(rows.count), for_new_rows=True)
    errors = PairErrors.measure(Stretched(factor), sample)
    return IndependentPairs.among(errors, RandomStreams(seed))


@pytest.mark.parametrize("known", [False, True])
def test_values_of_pairs_of_different_rows(known: bool) -> None:
    if known:
        pairs = known_pairs(ROWS, 1)
    else:
        pairs = IndependentPairs.measure(Stretched(1.1), ROWS, RandomStreams(1))
    K = ROWS.matrix @ ROWS.matrix.T
    apart = K[~np.eye(50, dtype=bool)]
    for value in pairs.exact[:100]:
        assert np.min(np.abs(apart - value)) < 1e-12
    assert pairs.approximate == pytest.approx(1.21 * pairs.exact)
    assert pairs.largest_error() == pytest.approx(0.21 * np.abs(pairs.exact).max())


def test_known_pairs_are_those_that_would_be_computed() -> None:
    errors = PairErrors.measure(Stretched(1.1), RowSample(ROWS, np.ones(50)))
    known = IndependentPairs.among(errors, RandomStreams(4))
    computed = IndependentPairs.measure(Stretched(1.1), ROWS, RandomStreams(4))
    assert known.exact == pytest.approx(computed.exact, rel=1e-13)
    assert known.approximate == pytest.approx(computed.approximate, rel=1e-13)


def test_pairs_are_uniform() -> None:
    """With rows 0, 1, 2 the three products 0·1, 0·2, 1·2 are equally frequent."""
    rows = DataRows.of(np.array([[1.0], [2.0], [4.0]]))
    pairs = IndependentPairs.measure(Stretched(1.0), rows, RandomStreams(1))
    values, counts = np.unique(pairs.exact, return_counts=True)
    assert list(values) == [2.0, 4.0, 8.0]
    # Each has a standard deviation of 30 around a third of 4096.
    assert counts == pytest.approx(np.full(3, 4096 / 3), abs=150)


def test_disjoint_pairs_take_every_row_once() -> None:
    assert len(known_pairs(ROWS, 1).exact) == 25


def test_exceeding_share() -> None:
    pairs = IndependentPairs(np.zeros(100), np.zeros(100))
    share = pairs.exceeding_share(0.99)
    assert (1.0 - share) ** 100 == pytest.approx(0.01)


def test_exceeding_share_holds() -> None:
    """In 200 trials, at most 8 of the shares of 99 % may fail, but for a risk of 0.02 %."""
    X = random_rows("heavy", 200, 3, 5)
    K = X @ X.T
    errors, failures = 0.21 * np.abs(K[~np.eye(200, dtype=bool)]), 0
    for seed in range(200):
        pairs = known_pairs(DataRows.of(X), seed)
        worse = np.mean(errors > pairs.largest_error() * (1 + 1e-12))
        failures += worse > pairs.exceeding_share(0.99)
    assert failures <= 8
