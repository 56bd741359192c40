"""The search for a number of components, and its confirmation on other rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.accuracy.growth import OutOfReachError, grown_size, smallest_size
from powersketch.kernels import Kernel, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Projected, random_rows, relative_error


class TestSmallestSize:
    @pytest.mark.parametrize("needed", [1, 2, 3, 10, 63, 64, 65, 300, 5000])
    def test_finds_where_the_error_falls_like_a_root(self, needed: int) -> None:
        found = smallest_size(lambda size: math.sqrt(needed / size), 1.0, (1, 2**16))
        assert needed <= found <= max(math.ceil(1.12 * needed), needed + 1)

    def test_finds_a_jump(self) -> None:
        found = smallest_size(lambda size: 0.0 if size >= 1000 else 0.06, 0.05, (1, 2**16))
        assert 1000 <= found <= 1120

    def test_few_sizes_are_tried(self) -> None:
        tried = []

        def measure(size: int) -> float:
            tried.append(size)
            return math.sqrt(3000 / size)

        smallest_size(measure, 1.0, (1, 2**16))
        assert len(tried) <= 9
        assert max(tried) < 2 * 3000

    def test_keeps_to_the_allowed_sizes(self) -> None:
        assert smallest_size(lambda size: 0.0, 0.1, (8, 100)) == 8
        assert smallest_size(lambda size: 0.0, 0.1, (100, 100)) == 100
        assert smallest_size(lambda size: 1.0 if size < 100 else 0.0, 0.1, (1, 100)) == 100

    def test_says_what_was_reached(self) -> None:
        with pytest.raises(OutOfReachError, match=r"n_components=100, .* error is 0\.5"):
            smallest_size(lambda size: 5.0 / math.sqrt(size), 0.1, (1, 100))

    def test_gives_up_early_where_there_is_no_hope(self) -> None:
        with pytest.raises(OutOfReachError) as failure:
            smallest_size(lambda size: 0.9, 0.01, (1, 2**16))
        assert failure.value.size == 4096
        assert failure.value.error == 0.9


@dataclass(frozen=True, eq=False)
class Seen:
    """A map that keeps the rows it was measured on."""

    size: int
    rows: list[NDArray[Any]]
    kernel_: Kernel = field(default_factory=lambda: Polynomial(degree=1))

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        self.rows.append(X)
        return Projected(8, self.size).transform(X)


class TestGrownSize:
    def test_certificate_holds_for_new_rows(self) -> None:
        X = random_rows("equal", 3000, 8, 0)
        size, certificate = grown_size(
            lambda size: Projected(8, size), X, 0.1, RandomStreams(0, "test")
        )
        assert certificate.for_new_rows
        assert certificate.frobenius.high <= 0.1
        assert certificate.rows == certificate.measured_rows == 2000
        assert relative_error(Projected(8, size), random_rows("equal", 1000, 8, 1)) <= 0.1
        assert relative_error(Projected(8, size // 2), X) > 0.1

    def test_confirmed_on_rows_that_were_not_searched(self) -> None:
        X, drawn = random_rows("equal", 800, 8, 0), []

        def draw(size: int) -> Seen:
            drawn.append(Seen(size, []))
            return drawn[-1]

        grown_size(draw, X, 0.2, RandomStreams(0, "test"))
        searched = {tuple(row) for row in drawn[1].rows[0]}
        confirmed = {tuple(row) for rows in drawn[-1].rows for row in rows}
        assert len(searched) == len(confirmed) == 400
        assert not searched & confirmed

    def test_few_rows_are_certified_as_they_are(self) -> None:
        X = random_rows("equal", 100, 8, 0)
        size, certificate = grown_size(
            lambda size: Projected(8, size), X, 0.2, RandomStreams(0, "test")
        )
        assert not certificate.for_new_rows
        assert certificate.frobenius.exact
        assert certificate.frobenius.value <= 0.2
        assert certificate.rows == 100
        assert certificate.frobenius.value == pytest.approx(
            relative_error(Projected(8, size), X), rel=1e-12
        )

    @pytest.mark.parametrize("X", [np.zeros((50, 8)), np.ones((2, 8)), np.zeros((500, 8))])
    def test_degenerate_rows(self, X: NDArray[Any]) -> None:
        size, certificate = grown_size(
            lambda size: Projected(8, size), X, 0.2, RandomStreams(0, "test")
        )
        assert size >= 1
        assert certificate.frobenius.high <= 0.2

    def test_out_of_reach(self) -> None:
        X = random_rows("equal", 500, 8, 0)
        with pytest.raises(OutOfReachError, match=r"eps=0\.001 is out of reach"):
            grown_size(lambda size: Projected(8, size), X, 1e-3, RandomStreams(0), sizes=(1, 200))

    def test_one_row_is_too_few(self) -> None:
        with pytest.raises(ValueError, match="at least 2"):
            grown_size(lambda size: Projected(8, size), np.ones((1, 8)), 0.1, RandomStreams(0))
