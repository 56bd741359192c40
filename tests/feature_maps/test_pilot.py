"""The sample of rows that a choice is made on, and the choice itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.feature_maps.pilot import PILOT_ROWS, Pilot
from powersketch.kernels import Polynomial
from powersketch.random_streams import RandomStreams
from tests.feature_maps.cases import assert_same_bits, each_float, uncentred

STREAMS = RandomStreams(3, "test")
KERNEL = Polynomial(degree=1)


@dataclass(frozen=True)
class Stretched:
    """The exact map of ⟨x, y⟩ times a factor: its relative error is |factor² − 1|."""

    factor: float
    name: ClassVar[str] = "stretched"

    def write(self, X: NDArray[Any], out: NDArray[Any], threads: int) -> None:
        out[:] = self.factor * X


class TestPilotRows:
    @pytest.mark.parametrize("count", [1, 5, PILOT_ROWS])
    @each_float
    def test_few_rows_are_all_taken(self, count: int, dtype: Any) -> None:
        X = uncentred(count, 4, dtype)
        assert_same_bits(Pilot.of(X, STREAMS).rows, X)

    @pytest.mark.parametrize("count", [PILOT_ROWS + 1, 5000])
    def test_many_rows_are_sampled_in_order_without_repeats(self, count: int) -> None:
        X = np.arange(float(count))[:, None]
        sample = Pilot.of(X, STREAMS).rows[:, 0]
        assert len(sample) == PILOT_ROWS
        assert np.all(np.diff(sample) > 0)
        assert set(sample) <= set(X[:, 0])

    def test_every_part_of_the_rows_is_reached(self) -> None:
        """Each tenth of 5000 rows has 51 ± 6.5 of 512 in the sample: 25 to 80 is ± 4 sigma."""
        sample = Pilot.of(np.arange(5000.0)[:, None], STREAMS).rows[:, 0]
        counts = np.bincount((sample // 500).astype(int), minlength=10)
        assert counts.min() >= 25
        assert counts.max() <= 80

    def test_the_seed_decides(self) -> None:
        X = np.arange(5000.0)[:, None]
        assert_same_bits(Pilot.of(X, STREAMS).rows, Pilot.of(X, STREAMS).rows)
        other = Pilot.of(X, RandomStreams(4, "test")).rows
        assert not np.array_equal(Pilot.of(X, STREAMS).rows, other)

    def test_layout_of_the_rows_does_not_matter(self) -> None:
        X = uncentred(1000, 6)
        sample = Pilot.of(X, STREAMS).rows
        assert sample.flags.c_contiguous
        assert_same_bits(Pilot.of(np.asfortranarray(X), STREAMS).rows, sample)
        from_sparse = Pilot.of(sp.csr_array(X), STREAMS).rows
        assert sp.issparse(from_sparse)
        np.testing.assert_array_equal(from_sparse.toarray(), sample)

    @pytest.mark.parametrize(("count", "expected"), [(400, 400), (2000, 800)])
    def test_more_rows_can_be_asked_for(self, count: int, expected: int) -> None:
        X = uncentred(count, 30)
        rows = Pilot.of(sp.csr_array(X), STREAMS, 800).rows.toarray()
        assert len({row.tobytes() for row in rows} & {row.tobytes() for row in X}) == expected


class TestRelativeError:
    @pytest.mark.parametrize("factor", [0.5, 1.0, 1.2])
    @pytest.mark.parametrize("scale", [1e-80, 1.0, 1e80])
    def test_of_a_known_error(self, factor: float, scale: float) -> None:
        X = scale * uncentred(20, 4)
        error = Pilot(X).relative_errors([Stretched(factor)], 4, KERNEL(X))[0]
        np.testing.assert_allclose(error, abs(factor**2 - 1), atol=1e-14)

    def test_of_a_zero_kernel(self) -> None:
        X = np.zeros((5, 4))
        assert Pilot(X).relative_errors([Stretched(1.0)], 4, KERNEL(X)) == [0.0]


class TestBestMap:
    @pytest.mark.parametrize(
        ("factors", "winner"),
        [
            ([1.3, 1.0], 1),
            ([1.0, 1.3], 0),
            ([1.3, 1.2, 1.1], 2),
            ([1.200, 1.199], 0),  # a near draw goes to the first
            ([1.2, 1.2], 0),
            ([1.5], 0),
        ],
    )
    def test_takes_the_least_error(self, factors: list[float], winner: int) -> None:
        maps = [Stretched(factor) for factor in factors]
        assert Pilot(uncentred(600, 4)).best_map(maps, 4, KERNEL) is maps[winner]
