"""The statistical dimension: exact, by quadrature and from subsets; sizes of the theorems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.accuracy import statistical_dimension
from powersketch.accuracy.dimension import theorem_size
from powersketch.accuracy.rows import DataRows
from powersketch.kernels import Gaussian, Polynomial
from tests.accuracy.small_maps import Stretched, random_rows

MODULE = "powersketch.accuracy.dimension"


def brute_force(K: NDArray[Any], alpha: float) -> float:
    return float(np.trace(np.linalg.solve(K + alpha * np.eye(len(K)), K)))


class TestExact:
    @pytest.mark.parametrize("alpha", [1e-6, 0.1, 30.0])
    def test_kernel(self, alpha: float) -> None:
        X = random_rows("equal", 70, 4, 0)
        found = statistical_dimension(Gaussian(0.5), X, alpha)
        assert found.value == pytest.approx(brute_force(Gaussian(0.5)(X), alpha))
        assert found.low == found.high == found.value == float(found)
        assert found.method == "eigenvalues"
        assert "kernel matrix of 70 rows" in found.message

    def test_kernel_by_its_name(self) -> None:
        X = random_rows("equal", 70, 4, 0)
        kernel = Gaussian("scale").resolve(X)
        assert statistical_dimension("rbf", X, 0.1) == statistical_dimension(kernel, X, 0.1)
        with pytest.raises(ValueError, match="kernel='matern' is unknown"):
            statistical_dimension("matern", X)

    @pytest.mark.parametrize("shape", [(9, 40), (40, 9), (1, 3), (3, 1)])
    def test_features(self, shape: tuple[int, int]) -> None:
        Z = np.random.default_rng(0).normal(size=shape)
        assert statistical_dimension(Z, alpha=2.0).value == pytest.approx(brute_force(Z @ Z.T, 2.0))

    def test_map(self) -> None:
        X = random_rows("equal", 70, 4, 0)
        sketch = GaussianSketch(0.5, n_components=30, random_state=0).fit(X)
        Z = sketch.transform(X)
        found = statistical_dimension(sketch, X, 0.1)
        assert found.value == pytest.approx(statistical_dimension(Z, alpha=0.1).value)
        assert "of Z Zᵀ with 30 components" in found.message

    def test_says_when_the_features_are_too_few(self) -> None:
        X = random_rows("equal", 300, 20, 0)
        sketch = GaussianSketch(0.5, n_components=60, random_state=0).fit(X)
        few = statistical_dimension(sketch, X, 0.01)
        assert 15 < few.value < 60 < statistical_dimension(Gaussian(0.5), X, 0.01).value
        assert "above a quarter of the 60 components" in few.message
        assert "pass the kernel" in few.message
        assert "quarter" not in statistical_dimension(sketch, X, 100.0).message

    def test_sparse_and_float32_rows(self) -> None:
        X = random_rows("equal", 40, 4, 0)
        expected = statistical_dimension(Polynomial(2), X, 1.0).value
        for given in (sp.csr_array(X), X.astype(np.float32), np.asfortranarray(X)):
            found = statistical_dimension(Polynomial(2), given, 1.0).value
            assert found == pytest.approx(expected, rel=1e-5)

    def test_duplicates_and_zero_rows(self) -> None:
        assert statistical_dimension(Polynomial(1), np.zeros((4, 2)), 1.0).value == 0.0
        ones = statistical_dimension(Polynomial(1), np.ones((9, 1)), 1.0).value
        assert ones == pytest.approx(0.9)


class TestQuadrature:
    def test_contains_the_exact_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of 40 intervals of 99 %, correct ones hold at least 37 but for a risk of 0.07 %."""
        monkeypatch.setattr(f"{MODULE}._EXACT_ROWS", 100)
        held, widths = 0, []
        for trial in range(40):
            X = random_rows(("equal", "clustered", "low-rank")[trial % 3], 200, 5, trial)
            kernel, alpha = Gaussian(10.0 ** (trial % 4 - 2)), 10.0 ** (trial % 5 - 3)
            found = statistical_dimension(kernel, X, alpha, random_state=trial)
            truth = brute_force(kernel(X), alpha)
            assert found.method == "quadrature"
            held += found.low * (1 - 1e-9) <= truth <= found.high * (1 + 1e-9)
            widths.append((found.high - found.low) / truth)
        assert held >= 37
        assert np.median(widths) < 0.1

    def test_features_with_many_rows_and_columns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"{MODULE}._EXACT_COLUMNS", 50)
        Z = np.random.default_rng(0).normal(size=(150, 120))
        found = statistical_dimension(Z, alpha=100.0, random_state=0)
        assert found.method == "quadrature"
        assert found.low <= brute_force(Z @ Z.T, 100.0) <= found.high

    def test_same_seed_same_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"{MODULE}._EXACT_ROWS", 100)
        X = random_rows("equal", 200, 5, 0)
        one, two = (statistical_dimension(Gaussian(1.0), X, random_state=4) for _ in range(2))
        assert one == two


class TestSubsets:
    def test_bounds_hold(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"{MODULE}._EXACT_ROWS", 40)
        monkeypatch.setattr(f"{MODULE}.MOST_WORK", 0.0)
        for seed in range(20):
            X = random_rows("equal", 400, 3, seed)
            found = statistical_dimension(Gaussian(1.0), X, 0.1, random_state=seed)
            assert found.method == "subsets"
            assert found.low <= found.value <= found.high <= 400
            assert found.low <= brute_force(Gaussian(1.0)(X), 0.1) <= found.high
            assert "pass a fitted feature map" in found.message


class TestTheorems:
    X = random_rows("equal", 300, 6, 0) / 3.0
    rows = DataRows.of(X)

    def size(self, sketch: Any) -> tuple[int, str]:
        return theorem_size(sketch.fit(self.X), self.rows, 0.1)

    def test_polynomial(self) -> None:
        size, formula = self.size(PolynomialSketch(4))
        assert size == 300 * 16 * 100
        assert "n p² / eps²" in formula

    def test_gaussian(self) -> None:
        degrees = 2 * 0.5 * np.max(np.sum(self.X * self.X, axis=1)) + math.log(3000)
        assert self.size(GaussianSketch(0.5))[0] == pytest.approx(3e4 * degrees**3, rel=1e-4)

    @pytest.mark.parametrize(
        ("sketch", "power"),
        [(NeuralTangentSketch(), 1.5), (ArcCosineSketch(0), 1.5), (ArcCosineSketch(2), 3.5)],
    )
    def test_slow_series(self, sketch: Any, power: float) -> None:
        expected = 3e4 * (1 + 3000 ** (1 / power)) ** 3
        assert self.size(sketch)[0] == pytest.approx(expected, rel=1e-4)

    def test_other_series(self) -> None:
        sketch = DotProductSketch([1.0, 0.5, 0.0, 0.1])
        assert self.size(sketch)[0] == 300 * 27 * 100


class TestBadInput:
    X = random_rows("equal", 20, 3, 0)

    @pytest.mark.parametrize(
        ("parameters", "error", "text"),
        [
            ({"alpha": 0.0}, ValueError, "alpha=0.0"),
            ({"alpha": -1.0}, ValueError, "alpha=-1.0"),
            ({"alpha": None}, TypeError, "alpha"),
            ({"alpha": 1e-16}, ValueError, "rounding errors"),
            ({"confidence": 2.0}, ValueError, "confidence"),
            ({"n_jobs": 0}, ValueError, "n_jobs"),
            ({"random_state": "x"}, TypeError, "random_state"),
        ],
    )
    def test_parameters(self, parameters: Any, error: type[Exception], text: str) -> None:
        with pytest.raises(error, match=text):
            statistical_dimension(Gaussian(1.0), self.X, **parameters)

    def test_rows_are_needed(self) -> None:
        for source in (Gaussian(1.0), Stretched()):
            with pytest.raises(ValueError, match="pass X"):
                statistical_dimension(source)

    def test_rows_beside_an_array(self) -> None:
        with pytest.raises(ValueError, match="leave X out"):
            statistical_dimension(self.X, self.X)

    def test_unfitted_map(self) -> None:
        with pytest.raises(ValueError, match="call fit"):
            statistical_dimension(GaussianSketch(), self.X)

    def test_not_finite(self) -> None:
        with pytest.raises(ValueError, match="NaN"):
            statistical_dimension(np.array([[np.nan]]))
        with pytest.raises(ValueError, match="infinity"):
            statistical_dimension(Gaussian(1.0), [[np.inf]])


def test_features_whose_squares_overflow() -> None:
    with pytest.raises(ValueError, match="the trace of the kernel matrix overflows float64"):
        statistical_dimension(np.full((5, 2), 1e200))
