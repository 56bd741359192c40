"""Numbers of components: measured, predicted and from the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from powersketch import (
    ArcCosineSketch,
    DotProductSketch,
    GaussianSketch,
    NeuralTangentSketch,
    PolynomialSketch,
)
from powersketch.accuracy import certify, required_components, statistical_dimension
from powersketch.accuracy.data_rows import DataRows
from powersketch.accuracy.paper_sizes import paper_size
from tests.accuracy.small_maps import random_rows

X = random_rows("equal", 300, 6, 0) / 3.0


class TestFrobenius:
    def test_measured_size_keeps_the_error(self) -> None:
        sketch = GaussianSketch(0.5)
        required = required_components(sketch, X, 0.1, random_state=0)
        assert required.measured is not None
        fitted = GaussianSketch(0.5, n_components=required.measured, random_state=0).fit(X)
        assert certify(fitted, X).frobenius.value <= 0.1
        error = certify(GaussianSketch(0.5, n_components=256, random_state=0).fit(X), X).frobenius
        assert required.predicted == math.ceil(256 * (error.value / 0.1) ** 2)
        assert "relative error" in required.message

    def test_sketch_is_left_alone(self) -> None:
        sketch = GaussianSketch(0.5, n_components="auto", eps=0.3)
        before = sketch.get_params()
        required_components(sketch, X, 0.2, random_state=0)
        assert sketch.get_params() == before
        assert not hasattr(sketch, "kernel_")

    def test_same_seed_same_numbers(self) -> None:
        one, two = (required_components(GaussianSketch(), X, 0.2, random_state=1) for _ in range(2))
        assert one == two

    def test_out_of_reach(self) -> None:
        required = required_components(GaussianSketch(20.0, internal_components=512), X, 0.01)
        assert required.measured is None
        assert "with n_components=512" in required.message


class TestSpectral:
    def test_measured_size_keeps_the_error(self) -> None:
        required = required_components(GaussianSketch(0.5), X, 0.8, alpha=10.0, random_state=0)
        assert required.measured is not None
        fitted = GaussianSketch(0.5, n_components=required.measured, random_state=0).fit(X)
        spectral = certify(fitted, X, alpha=10.0).spectral
        assert spectral is not None
        assert spectral.eps.value <= 0.8
        dimension = float(statistical_dimension(fitted.kernel_, X, 10.0))
        ratio = dimension / required.predicted
        assert 2 * math.sqrt(ratio) + ratio == pytest.approx(0.8, rel=0.05)
        assert "statistical dimension" in required.message

    def test_far_too_many(self) -> None:
        required = required_components(GaussianSketch(0.5), X, 0.01, alpha=1e-3, random_state=0)
        assert required.measured is None
        assert "far too many" in required.message
        assert required.predicted > 2**16


class TestPaper:
    rows = DataRows.of(X)

    def size(self, sketch: Any) -> tuple[int, str]:
        return paper_size(sketch.fit(X), self.rows, 0.1)

    def test_polynomial(self) -> None:
        size, formula = self.size(PolynomialSketch(4))
        assert size == 300 * 16 * 100
        assert "n p² / eps²" in formula

    def test_gaussian(self) -> None:
        degrees = 2 * 0.5 * np.max(np.sum(X * X, axis=1)) + math.log(3000)
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
    @pytest.mark.parametrize(
        ("eps", "parameters", "error", "text"),
        [
            (0.0, {}, ValueError, "eps=0.0"),
            (1.0, {}, ValueError, "eps=1.0"),
            ("0.1", {}, TypeError, "eps"),
            (0.1, {"alpha": 0.0}, ValueError, "alpha=0.0"),
            (0.1, {"alpha": 1e-16}, ValueError, "rounding errors"),
            (0.1, {"confidence": 0.0}, ValueError, "confidence"),
            (0.1, {"confidence": 0.9}, ValueError, "confidence=0.9 has no effect without alpha"),
            (0.1, {"random_state": -1}, ValueError, "random_state"),
        ],
    )
    def test_parameters(self, eps: Any, parameters: Any, error: type[Exception], text: str) -> None:
        with pytest.raises(error, match=text):
            required_components(GaussianSketch(), X, eps, **parameters)

    def test_not_a_map(self) -> None:
        with pytest.raises(TypeError, match="sketch is a str"):
            required_components("gaussian", X, 0.1)

    def test_one_row(self) -> None:
        with pytest.raises(ValueError, match="at least 2"):
            required_components(GaussianSketch(), X[:1], 0.1)
