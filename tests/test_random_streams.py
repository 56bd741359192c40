"""Random streams: fixed numbers, their laws, and what is refused.

The seeds are fixed, so a test passes always or never unless it says otherwise. The failure
probabilities are those over the choice of the seed: how often a correct generator would fail.
"""

from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from powersketch.random_streams import RandomStreams, seed_from

GOLDEN = RandomStreams(seed=7)
GOLDEN_WORDS = [
    5960567190666553636,
    6076582059581643478,
    17406477083771244755,
    335622758562291577,
    7120383574236694326,
    16818549528635582138,
]
WORD_MASK = 2**64 - 1

seeds = st.integers(min_value=0, max_value=2**63 - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
counts = st.integers(min_value=0, max_value=300)


def philox_words(seed: int, name: str, blocks: int) -> list[int]:
    """Philox4x64-10 of [SMDS11], written out as a specification of the words."""
    name_hash = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    words: list[int] = []
    # The counter is incremented before each block, so that the first block has counter 1.
    for counter in range(1, blocks + 1):
        words += philox_block([counter, 0, 0, 0], [seed, name_hash])
    return words


def philox_block(block: list[int], key: list[int]) -> list[int]:
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * block[0], 0xCA5A826395121157 * block[2]
        block = [
            (right >> 64) ^ block[1] ^ key[0],
            right & WORD_MASK,
            (left >> 64) ^ block[3] ^ key[1],
            left & WORD_MASK,
        ]
        key = [
            (key[0] + 0x9E3779B97F4A7C15) & WORD_MASK,
            (key[1] + 0xBB67AE8584CAA73B) & WORD_MASK,
        ]
    return block


class StubbedWords(RandomStreams):
    """Streams whose words are chosen, to reach the ends of the range."""

    def words(self, name: str, count: int) -> NDArray[np.uint64]:
        return np.array([0, WORD_MASK, 2**63, 2**63 - 1], dtype=np.uint64)[:count]


class TestFixedNumbers:
    def test_words(self) -> None:
        words = GOLDEN.words("golden", 6)
        assert words.dtype == np.uint64
        assert words.tolist() == GOLDEN_WORDS

    def test_words_of_a_child(self) -> None:
        words = GOLDEN.child("leaf").words("signs", 2)
        assert words.tolist() == [9498195637663361525, 15819456378855975582]

    def test_words_of_the_largest_seed(self) -> None:
        assert RandomStreams(2**63 - 1).words("golden", 1).tolist() == [7148374005639788842]

    def test_signs(self) -> None:
        signs = GOLDEN.signs("golden", 70)
        assert signs.dtype == np.int8
        assert "".join("+" if sign > 0 else "-" for sign in signs) == (
            "++-++-++-++-+-++---++++---+-+++----+++-+++++--+++++---+-+-++-+-++--+-+"
        )

    def test_permutation(self) -> None:
        permutation = GOLDEN.permutation("golden", 10)
        assert permutation.dtype == np.int64
        assert permutation.tolist() == [3, 9, 8, 0, 1, 4, 6, 7, 5, 2]

    def test_sample(self) -> None:
        sample = GOLDEN.sample("golden", population=1000, count=5)
        assert sample.dtype == np.int64
        assert sample.tolist() == [264, 587, 111, 683, 637]

    def test_integers(self) -> None:
        integers = GOLDEN.integers("golden", count=8, high=10)
        assert integers.dtype == np.int64
        assert integers.tolist() == [3, 3, 9, 0, 3, 9, 4, 5]

    def test_integers_on_32_bits(self) -> None:
        assert GOLDEN.integers("golden", 2, 2**32).tolist() == [1387802695, 1414814512]

    def test_normal_to_the_last_bit(self) -> None:
        normal = GOLDEN.normal("golden", 6)
        assert normal.dtype == np.float64
        assert [number.hex() for number in normal.tolist()] == [
            "-0x1.d5ffc7a2b4345p-2",
            "-0x1.c4224067a3ed1p-2",
            "0x1.95f69df403428p+0",
            "-0x1.0bd9106487adbp+1",
            "-0x1.28b9028614f07p-2",
            "0x1.59fd27d6fa5e3p+0",
        ]

    def test_many_normals_to_the_last_bit(self) -> None:
        normal = GOLDEN.normal("golden", 10**5).astype("<f8")
        assert hashlib.sha256(normal.tobytes()).hexdigest() == (
            "7f652deaa7e57fffd94f4f22faf0b854cb18c4e075f01c2c46ba51a13a59aac1"
        )

    def test_key(self) -> None:
        assert GOLDEN.key("golden") == GOLDEN_WORDS[0]

    def test_seed_from_random_state(self) -> None:
        assert seed_from(np.random.RandomState(0)) == 2357136044


class TestRules:
    @given(seed=seeds, name=names)
    def test_words_are_philox_keyed_by_seed_and_name(self, seed: int, name: str) -> None:
        assert RandomStreams(seed).words(name, 8).tolist() == philox_words(seed, name, blocks=2)

    @given(seed=seeds, short=counts, long=counts)
    def test_a_longer_draw_begins_with_the_shorter(self, seed: int, short: int, long: int) -> None:
        streams, short, long = RandomStreams(seed), min(short, long), max(short, long)
        for draw in (streams.words, streams.signs, streams.normal):
            np.testing.assert_array_equal(draw("name", long)[:short], draw("name", short))

    @given(seed=seeds, outer=names, inner=names)
    def test_names_nest(self, seed: int, outer: str, inner: str) -> None:
        streams = RandomStreams(seed)
        assert streams.child(outer).key(inner) == streams.key(f"{outer}/{inner}")
        assert streams.child(outer).child(inner) == streams.child(f"{outer}/{inner}")

    @given(seed=seeds, count=counts)
    def test_signs_are_the_bits_of_the_words(self, seed: int, count: int) -> None:
        streams = RandomStreams(seed)
        words = streams.words("name", 5).tolist()
        bits = [(words[i // 64] >> (i % 64)) & 1 for i in range(count)]
        assert streams.signs("name", count).tolist() == [1 - 2 * bit for bit in bits]

    @given(seed=seeds, count=counts)
    def test_uniforms_are_the_upper_bits_of_the_words(self, seed: int, count: int) -> None:
        streams = RandomStreams(seed)
        expected = [(word >> 11) / 2**53 for word in streams.words("name", count).tolist()]
        assert streams.uniforms("name", count).tolist() == expected

    @given(seed=seeds, population=counts, count=counts)
    def test_sample_is_the_start_of_the_permutation(
        self, seed: int, population: int, count: int
    ) -> None:
        streams, count = RandomStreams(seed), min(population, count)
        permutation = streams.permutation("name", population)
        assert sorted(permutation.tolist()) == list(range(population))
        sample = streams.sample("name", population, count)
        np.testing.assert_array_equal(sample, permutation[:count])

    @pytest.mark.parametrize("count", [3, 5, 13])
    def test_coordinates_are_whole_permutations_and_a_part_of_one(self, count: int) -> None:
        parts = [GOLDEN.permutation(f"name/{i}", 5) for i in range(3)]
        coordinates = GOLDEN.coordinates("name", 5, count)
        assert coordinates.dtype == np.int32
        np.testing.assert_array_equal(coordinates, np.concatenate(parts)[:count])

    @given(seed=seeds, high=st.integers(min_value=1, max_value=2**32))
    def test_integers_multiply_and_shift(self, seed: int, high: int) -> None:
        streams = RandomStreams(seed)
        expected = [((word >> 32) * high) >> 32 for word in streams.words("name", 10).tolist()]
        assert streams.integers("name", 10, high).tolist() == expected

    @pytest.mark.parametrize("draw", ["words", "signs", "normal", "permutation"])
    def test_an_empty_draw_is_an_empty_array(self, draw: str) -> None:
        assert getattr(GOLDEN, draw)("name", 0).shape == (0,)

    def test_streams_cannot_be_changed(self) -> None:
        with pytest.raises(FrozenInstanceError):
            GOLDEN.seed = 8  # type: ignore[misc]

    def test_streams_show_seed_and_path(self) -> None:
        assert repr(GOLDEN.child("leaf")) == "RandomStreams(seed=7, path='leaf')"

    def test_streams_survive_copy_and_pickle(self) -> None:
        leaf = GOLDEN.child("leaf")
        assert copy.deepcopy(leaf) == leaf
        assert pickle.loads(pickle.dumps(leaf)) == leaf

    def test_numpy_integers_are_integers(self) -> None:
        streams = RandomStreams(np.int64(7))  # type: ignore[arg-type]
        assert streams == GOLDEN
        assert type(streams.seed) is int


class TestLaws:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (GOLDEN, RandomStreams(8)),
            (GOLDEN.child("left"), GOLDEN.child("right")),
            (GOLDEN, GOLDEN.child("x")),
        ],
    )
    def test_differently_named_streams_are_uncorrelated(
        self, first: RandomStreams, second: RandomStreams
    ) -> None:
        # A correlation beyond 4.9 standard deviations: probability 1e-6.
        x, y = first.normal("x", 10**5), second.normal("x", 10**5)
        assert abs(np.corrcoef(x, y)[0, 1]) < 4.9 / np.sqrt(10**5)

    def test_signs_are_fair_at_every_lag(self) -> None:
        # Nine means of 10**6 signs beyond 5.3 standard deviations: probability 1e-6.
        signs = GOLDEN.signs("signs", 10**6).astype(np.float64)
        assert abs(signs.mean()) < 5.3e-3
        for lag in (1, 2, 3, 7, 8, 63, 64, 256):
            assert abs((signs[lag:] * signs[:-lag]).mean()) < 5.3e-3

    @pytest.mark.parametrize("high", [2, 10, 64, 1000])
    def test_integers_are_uniform(self, high: int) -> None:
        counts = np.bincount(GOLDEN.integers("integers", 10**5, high), minlength=high)
        assert counts.size == high
        assert stats.chisquare(counts).pvalue > 1e-6

    def test_first_element_of_a_permutation_is_uniform(self) -> None:
        firsts = [GOLDEN.permutation(f"permutation{i}", 8)[0] for i in range(4000)]
        assert stats.chisquare(np.bincount(firsts, minlength=8)).pvalue > 1e-6

    def test_samples_are_uniform_over_subsets(self) -> None:
        subsets = [frozenset(GOLDEN.sample(f"s{i}", 5, 2).tolist()) for i in range(4000)]
        counts = [subsets.count(subset) for subset in set(subsets)]
        assert len(counts) == 10
        assert stats.chisquare(counts).pvalue > 1e-6

    @pytest.mark.parametrize(("power", "moment", "variance"), [(1, 0, 1), (2, 1, 2), (4, 3, 96)])
    def test_normal_moments(self, power: int, moment: float, variance: float) -> None:
        # A mean beyond 4.9 standard deviations: probability 1e-6.
        normal = GOLDEN.normal("normal", 10**6)
        assert abs((normal**power).mean() - moment) < 4.9 * np.sqrt(variance / 10**6)

    def test_normal_distribution(self) -> None:
        assert stats.kstest(GOLDEN.normal("normal", 10**5), stats.norm.cdf).pvalue > 1e-6

    def test_normal_is_the_quantile_of_the_midpoint_uniform(self) -> None:
        steps = (GOLDEN.words("normal", 10**5) >> np.uint64(11)).astype(np.int64)
        # The tail and the distance from the centre are exact where the uniform is rounded.
        centred = ((steps - 2**52) + 0.5) * 2.0**-53
        by_tail = -np.sign(centred) * special.ndtri(0.5 - np.abs(centred))
        by_centre = np.sqrt(2.0) * special.erfinv(2.0 * centred)
        expected = np.where(np.abs(centred) > 0.25, by_tail, by_centre)
        np.testing.assert_allclose(GOLDEN.normal("normal", 10**5), expected, rtol=1e-14)

    def test_normal_at_the_ends_of_the_range(self) -> None:
        lowest, highest, above_centre, below_centre = StubbedWords(0).normal("any", 4)
        assert highest == -lowest
        assert above_centre == -below_centre
        np.testing.assert_allclose(lowest, special.ndtri(2.0**-54), rtol=1e-14)
        np.testing.assert_allclose(above_centre, np.sqrt(2 * np.pi) * 2.0**-54, rtol=1e-14)


class TestSeedFrom:
    @pytest.mark.parametrize("seed", [0, 42, 2**32 - 1, np.int32(5), np.uint64(5)])
    def test_an_integer_is_its_own_seed(self, seed: int) -> None:
        assert seed_from(seed) == seed
        assert type(seed_from(seed)) is int

    def test_a_random_state_is_advanced(self) -> None:
        state, twin = np.random.RandomState(3), np.random.RandomState(3)
        first, second = seed_from(state), seed_from(state)
        assert first != second
        assert [first, second] == [seed_from(twin), seed_from(twin)]

    def test_none_is_fresh_entropy(self) -> None:
        # Two equal seeds: probability 2**-32, the one test here without a fixed seed.
        assert seed_from(None) != seed_from(None)

    @given(seed=st.integers(min_value=0, max_value=2**32 - 1))
    def test_a_seed_can_be_given_back(self, seed: int) -> None:
        drawn = seed_from(np.random.RandomState(seed))
        assert seed_from(drawn) == drawn
        assert RandomStreams(drawn).seed == drawn


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: RandomStreams(-1), ValueError, r"seed=-1 .* 0 to 9223372036854775807"),
    (lambda: RandomStreams(2**63), ValueError, "seed=9223372036854775808 is out of range"),
    (lambda: RandomStreams(1.0), TypeError, "seed=1.0 is a float"),  # type: ignore[arg-type]
    (lambda: RandomStreams(True), TypeError, "seed=True is a bool"),
    (lambda: GOLDEN.words("name", -1), ValueError, "count=-1 .* from 0 to"),
    (lambda: GOLDEN.words("", 1), ValueError, "empty stream name"),
    (lambda: GOLDEN.child(""), ValueError, "empty stream name"),
    (lambda: GOLDEN.signs("name", -1), ValueError, "count=-1 .* from 0 to"),
    (lambda: GOLDEN.normal("name", -3), ValueError, "count=-3 .* from 0 to"),
    (lambda: GOLDEN.permutation("name", -1), ValueError, "size=-1 .* from 0 to"),
    (lambda: GOLDEN.sample("name", -1, 0), ValueError, "population=-1 .* from 0 to"),
    (lambda: GOLDEN.sample("name", 3, -1), ValueError, "count=-1 .* from 0 to"),
    (lambda: GOLDEN.sample("name", 3, 4), ValueError, r"count=4 .* population of 3; .*\[0, 3\]"),
    (lambda: GOLDEN.integers("name", -1, 2), ValueError, "count=-1 .* from 0 to"),
    (lambda: GOLDEN.integers("name", 1, 0), ValueError, r"high=0 .*1 to 4294967296"),
    (lambda: GOLDEN.integers("name", 1, 2**32 + 1), ValueError, "high=4294967297 is out"),
    (lambda: seed_from(-1), ValueError, r"random_state=-1 .*0 to 4294967295"),
    (lambda: seed_from(2**32), ValueError, "random_state=4294967296 is out of range"),
    (lambda: seed_from(True), TypeError, "random_state=True is a bool"),
    (lambda: seed_from("7"), TypeError, "'7' is a str.*pass an integer"),  # type: ignore[arg-type]
    (lambda: seed_from(np.random.default_rng(0)), TypeError, "is a Generator"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
