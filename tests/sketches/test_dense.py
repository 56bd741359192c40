"""The dense projections: entries that are independent and normal, or independent signs."""

import numpy as np
import pytest
from scipy import stats

from powersketch.random_streams import RandomStreams
from powersketch.sketches.base_sketches import GaussianProjection, Rademacher


def test_entries_are_normal_with_variance_one_over_size() -> None:
    """A Kolmogorov–Smirnov test on 10⁵ entries. Failure probability 1e-6."""
    T = GaussianProjection.draw(RandomStreams(2), 1000, 100)
    entries = T.apply(np.eye(1000)) * 10
    assert stats.kstest(entries.ravel(), "norm").pvalue > 1e-6


def test_entries_are_signs_over_the_root_of_the_size() -> None:
    T = Rademacher.draw(RandomStreams(2), 100, 16)
    assert set(np.unique(T.apply(np.eye(100)))) == {-0.25, 0.25}


def test_signs_take_a_byte_each() -> None:
    T = Rademacher.draw(RandomStreams(2), 100, 16)
    assert T.signs.dtype == np.int8
    assert T.signs.nbytes == 1600


def test_signs_are_fair() -> None:
    """Their mean over 10⁵ entries has standard deviation 1 / √10⁵. Failure probability 6e-7."""
    signs = Rademacher.draw(RandomStreams(2), 1000, 100).signs
    assert abs(signs.mean(dtype=np.float64)) < 5 / np.sqrt(signs.size)


@pytest.mark.parametrize("projection", [GaussianProjection, Rademacher])
def test_rows_and_columns_are_uncorrelated(
    projection: type[GaussianProjection] | type[Rademacher],
) -> None:
    """Entries of T Tᵀ / columns off the diagonal stay below 6 / √columns.

    They have standard deviation 1 / √columns: failure probability 1e-5 for 4950 of them.
    """
    T = projection.draw(RandomStreams(2), 1000, 100).apply(np.eye(1000)).T * 10
    correlations = T @ T.T / 1000
    assert np.abs(correlations - np.diag(np.diag(correlations))).max() < 6 / np.sqrt(1000)


def test_signs_keep_the_norms_of_unit_vectors() -> None:
    T = Rademacher.draw(RandomStreams(3), 30, 50)
    norms = np.linalg.norm(T.apply(np.eye(30)), axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-14)
