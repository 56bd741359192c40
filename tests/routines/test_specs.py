"""Hashes of coordinates: the generator they come from, and where they send coordinates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from powersketch.random_streams import RandomStreams
from powersketch.routines import hashed_table
from powersketch.routines.specs import counter_hash

WORD = 2**64
keys = st.integers(0, WORD - 1)


def splitmix64(key: int, counter: int) -> int:
    mixed = (key + (counter + 1) * 0x9E3779B97F4A7C15) % WORD
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % WORD
    return mixed ^ (mixed >> 31)


def test_fixed_numbers() -> None:
    counters = np.array([0, 1, WORD - 1], dtype=np.uint64)
    hashes = counter_hash(5960567190666553636, counters)
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [14274400979141073, 15137716664022088530, 10505117818632132974]


@given(key=keys, counters=st.lists(keys))
def test_is_splitmix64(key: int, counters: list[int]) -> None:
    hashes = counter_hash(key, np.array(counters, dtype=np.uint64))
    assert hashes.tolist() == [splitmix64(key, counter) for counter in counters]


def test_keeps_shape_and_input() -> None:
    counters = np.arange(6, dtype=np.uint64).reshape(2, 3)
    assert counter_hash(1, counters).shape == (2, 3)
    np.testing.assert_array_equal(counters.reshape(-1), np.arange(6))


def test_hashed_counters_are_uniform_and_fair_in_every_bit() -> None:
    # 64 means of 10**6 bits beyond 5.6 standard deviations: probability 2e-6.
    hashes = counter_hash(RandomStreams(7).key("hash"), np.arange(10**6, dtype=np.uint64))
    for bit in range(64):
        ones = ((hashes >> np.uint64(bit)) & np.uint64(1)).mean()
        assert abs(ones - 0.5) < 5.6 * 0.5e-3
    upper_byte = (hashes >> np.uint64(56)).astype(np.int64)
    assert stats.chisquare(np.bincount(upper_byte, minlength=256)).pvalue > 1e-6


@given(
    key=keys,
    columns=st.integers(1, 60),
    size=st.integers(1, 10**6),
    copies=st.integers(1, 9),
)
def test_table_follows_its_rule(key: int, columns: int, size: int, copies: int) -> None:
    copies = min(copies, size)
    table = hashed_table(key, columns, size, copies)
    assert table.shape == (columns, copies)
    assert table.dtype == np.int32
    for column in range(columns):
        for band in range(copies):
            low, high = band * size // copies, (band + 1) * size // copies
            word = splitmix64(key, column * copies + band)
            bucket = low + (((word >> 32) * (high - low)) >> 32)
            assert table[column, band] == 2 * bucket + word % 2


def test_buckets_and_signs_are_even() -> None:
    """40000 coordinates in 16 buckets by 2 signs: a χ² with 31 degrees of freedom stays below 90.

    Failure probability 1e-7.
    """
    table = hashed_table(RandomStreams(5).key("hash"), 40000, 16, 1)
    counts = np.bincount(table[:, 0], minlength=32)
    assert ((counts - 1250) ** 2 / 1250).sum() < 90
