"""The Rademacher projection: independent entries ±1 / √size."""

import numpy as np

from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, Rademacher


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


def test_rows_and_columns_are_uncorrelated() -> None:
    """Entries of T Tᵀ / columns off the diagonal stay below 6 / √columns.

    They have standard deviation 1 / √columns: failure probability 1e-5 for 4950 of them.
    """
    T = Rademacher.draw(RandomStreams(2), 1000, 100).signs.T.astype(np.float64)
    correlations = T @ T.T / 1000 - np.eye(100)
    assert np.abs(correlations).max() < 6 / np.sqrt(1000)


def test_unit_vectors_keep_their_norms() -> None:
    T = Rademacher.draw(RandomStreams(3), 30, 50)
    norms = np.linalg.norm(T.apply(np.eye(30)), axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-14)


def test_is_registered() -> None:
    assert BASE_SKETCHES["rademacher"] is Rademacher
