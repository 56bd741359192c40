"""The Gaussian projection: independent normal entries of variance 1 / size."""

import numpy as np
from scipy import stats

from powersketch.random_streams import RandomStreams
from powersketch.sketches import GaussianProjection


def test_entries_are_normal_with_variance_one_over_size() -> None:
    """A Kolmogorov–Smirnov test on 10⁵ entries. Failure probability 1e-6."""
    T = GaussianProjection.draw(RandomStreams(2), 1000, 100)
    entries = T.apply(np.eye(1000)) * 10
    assert stats.kstest(entries.ravel(), "norm").pvalue > 1e-6


def test_rows_and_columns_are_uncorrelated() -> None:
    """Entries of G Gᵀ / columns off the diagonal stay below 6 / √columns.

    They are normal with standard deviation 1 / √columns: failure probability 1e-5 for 4950 of them.
    """
    G = GaussianProjection.draw(RandomStreams(2), 1000, 100).matrix.T * 10
    correlations = G @ G.T / 1000 - np.diag(np.diag(G @ G.T / 1000))
    assert np.abs(correlations).max() < 6 / np.sqrt(1000)
