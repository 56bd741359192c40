"""The spectral error: all eigenvalues, Lanczos steps on both pencils, and subsets of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh

from powersketch.accuracy import SpectralError, spectral
from powersketch.accuracy.rows import DataRows
from powersketch.accuracy.spectral import (
    ExactPencil,
    InversePencil,
    check_alpha_above_rounding,
    pencil_work,
    spectral_error,
)
from powersketch.kernels import Polynomial
from powersketch.random_streams import RandomStreams
from tests.accuracy.small_maps import Projected, Stretched, random_rows

STREAMS = RandomStreams(0, "test")


def brute_force(sketch: Any, X: NDArray[Any], alpha: float) -> NDArray[np.float64]:
    Z, K = sketch.transform(X), sketch.kernel_(X)
    ridge = alpha * np.eye(len(X))
    values: NDArray[np.float64] = eigh(Z @ Z.T + ridge, K + ridge, eigvals_only=True)
    return values


def measured(
    sketch: Any, X: NDArray[Any], alpha: float, products: int = 32, streams: Any = STREAMS
) -> SpectralError:
    rows = DataRows.of(X)
    return spectral_error(
        sketch, rows, alpha, streams, confidence=0.99, products=products, n_jobs=None
    )


@pytest.fixture
def few_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be treated like many."""
    monkeypatch.setattr(spectral, "_DENSE_ROWS", 40)


class TestDense:
    def test_equals_brute_force(self) -> None:
        X, sketch = random_rows("equal", 50, 20, 0), Projected(20, 15)
        found, values = measured(sketch, X, 3.0), brute_force(sketch, X, 3.0)
        assert found.method == "dense"
        assert found.smallest.value == pytest.approx(values[0])
        assert found.largest.value == pytest.approx(values[-1])
        assert found.eps.exact
        assert found.eps.value == pytest.approx(max(values[-1] - 1, 1 - values[0]))

    @pytest.mark.parametrize("factor", [0.5, 1.2])
    def test_known_error(self, factor: float) -> None:
        """Eigenvalues λ of K become (factor² λ + α) / (λ + α)."""
        found = measured(Stretched(factor), np.diag([1.0, 2.0, 3.0]), 0.5)
        expected = (factor**2 * 9.0 + 0.5) / 9.5
        assert found.eps.value == pytest.approx(abs(expected - 1.0))

    def test_means_what_it_says(self) -> None:
        X, sketch = random_rows("equal", 50, 20, 0), Projected(20, 40)
        eps, Z, K = measured(sketch, X, 9.0).eps.value, sketch.transform(X), X @ X.T
        ridge = 9.0 * np.eye(50)
        lowest = np.linalg.eigvalsh(Z @ Z.T + ridge - (1 - eps) * (K + ridge))[0]
        highest = np.linalg.eigvalsh((1 + eps) * (K + ridge) - Z @ Z.T - ridge)[0]
        assert min(lowest, highest) == pytest.approx(0.0, abs=1e-9)


class TestLanczos:
    @pytest.mark.parametrize("size", [10, 500])
    @pytest.mark.parametrize("pencil", [ExactPencil, InversePencil])
    def test_pencils_have_the_right_eigenvalues(self, pencil: Any, size: int) -> None:
        X, sketch = random_rows("equal", 30, 20, 0), Projected(20, size)
        matrix = pencil(sketch, DataRows.of(X), 2.0, None)
        columns = np.column_stack([matrix.product(unit) for unit in np.eye(30)])
        assert columns == pytest.approx(columns.T, abs=1e-10)
        found, values = np.linalg.eigvalsh(columns), brute_force(sketch, X, 2.0)
        if pencil is InversePencil:
            found = 1.0 / found[::-1]
        assert found == pytest.approx(values)
        assert matrix.floor <= np.linalg.eigvalsh(columns)[0]

    @pytest.mark.usefixtures("few_dense")
    @pytest.mark.parametrize("stored", [True, False])
    def test_intervals_hold(self, stored: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """Correct bounds fail far more rarely than they may: all of 10 hold."""
        if not stored:
            monkeypatch.setattr("powersketch.accuracy.spectral._STORED_BYTES", 0)
        for seed in range(10):
            alpha = (1.0, 50.0)[seed % 2]
            X, sketch = random_rows("equal", 80, 30, seed), Projected(30, 15 * (seed % 5 + 1))
            found = measured(sketch, X, alpha, 16, RandomStreams(seed))
            values = brute_force(sketch, X, alpha)
            eps = max(values[-1] - 1, 1 - values[0])
            assert found.method == "lanczos"
            assert found.eps.low * (1 - 1e-9) <= eps <= found.eps.high * (1 + 1e-9)
            assert found.smallest.low <= values[0] <= found.smallest.high + 1e-9
            assert found.largest.low - 1e-9 <= values[-1] <= found.largest.high

    @pytest.mark.usefixtures("few_dense")
    def test_is_tight_with_the_matrix_at_hand(self) -> None:
        X, sketch = random_rows("equal", 200, 60, 0), Projected(60, 50)
        found = measured(sketch, X, 0.01)
        assert found.eps.high < 1.2 * found.eps.low
        assert "loose" not in found.message

    @pytest.mark.usefixtures("few_dense")
    def test_says_where_the_bound_is_loose(self) -> None:
        found = measured(Projected(60, 50), random_rows("equal", 200, 60, 0), 0.01, products=2)
        assert found.eps.high > 2.0 * found.eps.low
        assert "more products" in found.message

    @pytest.mark.usefixtures("few_dense")
    def test_exact_map_has_no_error(self) -> None:
        found = measured(Stretched(1.0), random_rows("equal", 100, 5, 0), 1.0)
        assert found.eps.high < 1e-9


class TestSubset:
    @pytest.mark.usefixtures("few_dense")
    def test_is_a_lower_bound_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spectral, "MOST_WORK", 0.0)
        X, sketch = random_rows("equal", 150, 30, 0), Projected(30, 20)
        found, values = measured(sketch, X, 5.0), brute_force(sketch, X, 5.0)
        assert found.method == "subset"
        assert 0.0 < found.eps.low <= max(values[-1] - 1, 1 - values[0])
        assert found.eps.high == math.inf
        assert values[0] in found.smallest
        assert values[-1] in found.largest
        assert "lower bound only, from 40 of the rows" in found.message

    def test_work_grows_with_the_rows(self) -> None:
        few, many = (DataRows.of(np.ones((count, 2))) for count in (10_000, 100_000))
        assert pencil_work(few, 1000, 32) < spectral.MOST_WORK < pencil_work(many, 1000, 32)


class TestAlpha:
    def test_below_rounding_errors_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"alpha=1e-14 is below .* choose alpha above"):
            check_alpha_above_rounding(1e-14, np.ones(100))
        check_alpha_above_rounding(1e-12, np.ones(100))

    @pytest.mark.parametrize("dense", [True, False])
    def test_just_above_them_works(self, dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where K is as singular as can be."""
        if not dense:
            monkeypatch.setattr(spectral, "_DENSE_ROWS", 40)
        X = np.repeat(random_rows("equal", 10, 3, 0), 20, axis=0)
        alpha = 10.0 * float(np.finfo(float).eps * np.sum(X * X))
        sketch = Stretched(1.1, Polynomial(1))
        check_alpha_above_rounding(alpha, np.sum(X * X, axis=1))
        assert measured(sketch, X, alpha).eps.value > 0.2
