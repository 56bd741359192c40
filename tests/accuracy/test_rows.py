"""Rows and samples of them, and maps of any size that are fitted to some of the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.kernel_approximation import RBFSampler

from powersketch import GaussianSketch, LeverageNystroem, NeuralTangentSketch
from powersketch.accuracy import required_components
from powersketch.accuracy.rows import (
    SAMPLE_ROWS,
    DataRows,
    MapFamily,
    checked_confidence,
    row_probabilities,
    sample_rows,
)
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Stretched, drawn_sample, random_rows

X = random_rows("equal", 300, 6, 0) / 3.0
BY_LAYERS = NeuralTangentSketch(2, bias_variance=100.0)


class Memorising(BaseEstimator):  # type: ignore[misc]
    """Exact features of the rows given to fit, zeros for all others."""

    def __init__(self, n_components: int = 1, random_state: int | None = None) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: NDArray[Any]) -> Self:
        self.kernel_, self.known_ = Polynomial(degree=1), {tuple(row) for row in X}
        return self

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        known = np.array([tuple(row) in self.known_ for row in X])
        features: NDArray[Any] = X * known[:, None]
        return features


class TestRowProbabilities:
    def test_add_up_to_the_size_wanted(self) -> None:
        sizes = np.random.default_rng(0).pareto(0.7, 1000)
        for count in (1, 10, 100, 999):
            probabilities = row_probabilities([np.ones(1000), sizes], count)
            assert probabilities.sum() == pytest.approx(count)
            assert probabilities.min() > 0.0
            assert probabilities.max() <= 1.0

    def test_outstanding_rows_are_certain(self) -> None:
        sizes = np.ones(1000)
        sizes[[3, 77]] = 1e6
        probabilities = row_probabilities([np.ones(1000), sizes], 50)
        assert list(np.flatnonzero(probabilities == 1.0)) == [3, 77]
        assert len(np.unique(np.delete(probabilities, [3, 77]))) == 1

    def test_equal_sizes_give_equal_probabilities(self) -> None:
        assert row_probabilities([np.ones(8), np.full(8, 1e300)], 2) == pytest.approx(
            np.full(8, 0.25)
        )

    def test_sizes_of_zero_are_left_to_the_others(self) -> None:
        probabilities = row_probabilities([np.ones(8), np.zeros(8)], 2)
        assert probabilities == pytest.approx(np.full(8, 0.25))


class TestRowSample:
    def test_few_rows_are_all_taken(self) -> None:
        rows = DataRows.of(random_rows("equal", 30, 4, 0))
        sample = drawn_sample(Stretched(), rows, RandomStreams(0), 30)
        assert sample.complete
        assert sample.rows is rows

    def test_expected_number_of_rows(self) -> None:
        rows = DataRows.of(random_rows("heavy", 800, 4, 0))
        counts = [
            drawn_sample(Stretched(), rows, RandomStreams(s), 100).rows.count for s in range(20)
        ]
        # Each has a standard deviation of at most 10, their mean one of 2.3.
        assert 88 < np.mean(counts) < 112

    def test_same_seed_same_rows(self) -> None:
        rows = DataRows.of(random_rows("equal", 300, 4, 0))
        one, two = (drawn_sample(Stretched(), rows, RandomStreams(5), 100) for _ in range(2))
        assert np.array_equal(one.rows.matrix, two.rows.matrix)
        assert not one.complete

    def test_row_with_a_large_error_is_certain_to_be_taken(self) -> None:
        """Its error shows in a first look at all rows; its k(x, x) is like the others'."""

        class WrongForOne(Stretched):
            def transform(self, X: Any) -> Any:
                return super().transform(X) * np.where(X[:, :1] == X[:, :1].round(), 50.0, 1.0)

        X = random_rows("equal", 600, 4, 0)
        X[17, 0] = 1.0
        rows, sketch = DataRows.of(X), WrongForOne(1.0, Gaussian(0.01))
        for seed in range(10):
            assert 1.0 in drawn_sample(sketch, rows, RandomStreams(seed), 60).rows.matrix[:, 0]

    def test_many_components_leave_room_for_fewer_rows(self) -> None:
        assert sample_rows(100) == SAMPLE_ROWS
        assert sample_rows(2**16) == 1024
        assert sample_rows(2**30) == 256


class TestSizes:
    @pytest.mark.parametrize(
        ("sketch", "sizes"),
        [
            (GaussianSketch(), (1, 2**16)),
            (GaussianSketch(method="fourier"), (2, 2**16)),
            (GaussianSketch(internal_components=32), (1, 32)),
            (BY_LAYERS, (8, 2**16)),
            (LeverageNystroem(), (1, 300)),
            (RBFSampler(), (1, 2**16)),
        ],
    )
    def test_allowed_ones(self, sketch: Any, sizes: tuple[int, int]) -> None:
        family = MapFamily.of(sketch, DataRows.of(X), 0)
        assert family.sizes == sizes
        assert family.first_size == min(256, sizes[1])

    @pytest.mark.parametrize("alpha", [None, 10.0])
    @pytest.mark.parametrize(
        ("sketch", "smallest"), [(GaussianSketch(1e-6, method="fourier"), 2), (BY_LAYERS, 8)]
    )
    def test_smallest_one_suffices(self, sketch: Any, smallest: int, alpha: float | None) -> None:
        rows = X if alpha is None else np.ones((20, 6))
        required = required_components(sketch, rows, 0.9, alpha=alpha, random_state=0)
        assert required.measured == smallest
        assert required.predicted >= smallest

    @pytest.mark.parametrize("internal", [1, "many"])
    def test_map_says_why_no_size_is_allowed(self, internal: Any) -> None:
        sketch = GaussianSketch(method="fourier", internal_components=internal)
        with pytest.raises((TypeError, ValueError), match=f"internal_components={internal!r}"):
            required_components(sketch, X, 0.5)


class TestDivision:
    @pytest.mark.parametrize(
        ("count", "measured"), [(400, 200), (401, 200), (5000, 2500), (9000, 3000)]
    )
    def test_every_row_has_one_use(self, count: int, measured: int) -> None:
        rows = DataRows.of(np.arange(count, dtype=float).reshape(-1, 1))
        parts = rows.divided(RandomStreams(0, "test"))
        assert [part.count for part in parts] == [measured, count - measured]
        together = np.concatenate([part.matrix[:, 0] for part in parts])
        np.testing.assert_array_equal(np.sort(together), np.arange(count))

    def test_few_rows_have_both(self) -> None:
        rows = DataRows.of(np.ones((399, 1)))
        assert rows.divided(RandomStreams(0, "test")) == (rows, rows)

    def test_what_was_memorised_is_not_measured(self) -> None:
        rows = random_rows("equal", 400, 6, 0)
        required = required_components(Memorising(), rows, 0.5, random_state=0)
        assert required.measured is None
        assert "the error is 1" in required.message

    def test_few_rows_are_measured_exactly_and_said_to_be_known(self) -> None:
        rows = random_rows("equal", 399, 6, 0)
        required = required_components(Memorising(), rows, 0.5, random_state=0)
        assert required.measured == 1
        assert "[exact] on the rows that maps were fitted to" in required.message

    def test_spectral_error_is_about_all_rows(self) -> None:
        rows = random_rows("equal", 400, 6, 0)
        required = required_components(Memorising(), rows, 0.5, alpha=1.0, random_state=0)
        assert required.measured == 1

    @pytest.mark.parametrize(
        "kind", [lambda rows: pd.DataFrame(rows).add_prefix("column"), sp.csr_array]
    )
    def test_kinds_of_rows(self, kind: Any) -> None:
        rows = random_rows("equal", 400, 6, 0)
        sketch = GaussianSketch(0.1, base_sketch="srht")
        found, expected = (
            required_components(sketch, given, 0.2, random_state=0) for given in (kind(rows), rows)
        )
        assert found == expected


class TestOtherMaps:
    def test_one_without_a_kernel(self) -> None:
        with pytest.raises(TypeError, match="RBFSampler without the attribute kernel_"):
            required_components(RBFSampler(), X, 0.1)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.0, ValueError, "above 0"),
        (1.0, ValueError, "below 1"),
        (7, ValueError, "below 1"),
        (-0.5, ValueError, "above 0"),
        (float("nan"), ValueError, "finite"),
        (True, TypeError, "bool"),
        ("0.9", TypeError, "str"),
        (None, TypeError, "NoneType"),
    ],
)
def test_bad_probabilities_are_refused(value: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        checked_confidence(value)


def test_good_probabilities_become_floats() -> None:
    assert checked_confidence(0.9) == 0.9
