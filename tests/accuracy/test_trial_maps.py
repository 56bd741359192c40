"""Maps that are fitted to be measured: their sizes, and the rows that they see."""

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
from powersketch.accuracy import certify, required_components
from powersketch.accuracy.data_rows import DataRows
from powersketch.accuracy.trial_maps import TrialMaps, divided
from powersketch.kernels import Gaussian, Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import random_rows

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
        maps = TrialMaps(sketch, DataRows.of(X), 0)
        assert maps.sizes == sizes
        assert maps.first_size == min(256, sizes[1])

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


class TestLandmarks:
    @pytest.mark.parametrize("count", [2, 100])
    @pytest.mark.parametrize("alpha", [None, 1.0])
    def test_no_more_than_rows(self, count: int, alpha: float | None) -> None:
        # More landmarks than rows would be warned of, and warnings are errors here.
        sketch = LeverageNystroem(Gaussian(1.0))
        required = required_components(sketch, X[:count], 0.1, alpha=alpha, random_state=0)
        assert required.measured is not None
        assert required.measured <= count
        fitted = LeverageNystroem(Gaussian(1.0), n_components=required.measured, random_state=0)
        certificate = certify(fitted.fit(X[:count]), X[:count], alpha=1.0)
        assert certificate.spectral is not None
        error = certificate.frobenius if alpha is None else certificate.spectral.eps
        assert error.value <= 0.1

    def test_error_is_that_of_new_rows(self) -> None:
        rows, new = random_rows("equal", 600, 6, 0), random_rows("equal", 1000, 6, 1)
        required = required_components(LeverageNystroem(), rows, 0.2, random_state=0)
        assert required.measured is not None
        assert "on rows that maps were not fitted to" in required.message
        sketch = LeverageNystroem(n_components=required.measured, random_state=0)
        assert certify(sketch.fit(rows), new).frobenius.value <= 0.2


class TestDivision:
    @pytest.mark.parametrize(
        ("count", "measured"), [(400, 200), (401, 200), (5000, 2500), (9000, 3000)]
    )
    def test_every_row_has_one_use(self, count: int, measured: int) -> None:
        rows = DataRows.of(np.arange(count, dtype=float).reshape(-1, 1))
        parts = divided(rows, RandomStreams(0, "test"))
        assert [part.count for part in parts] == [measured, count - measured]
        together = np.concatenate([part.matrix[:, 0] for part in parts])
        np.testing.assert_array_equal(np.sort(together), np.arange(count))

    def test_few_rows_have_both(self) -> None:
        rows = DataRows.of(np.ones((399, 1)))
        assert divided(rows, RandomStreams(0, "test")) == (rows, rows)

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
