"""Kernels that say nothing about the rows are named, with a remedy."""

from __future__ import annotations

import numpy as np
import pytest

from powersketch import compare
from powersketch.kernels import ArcCosine, Gaussian, Kernel, Polynomial
from tests.comparison.measured_rows import FEW

X = np.random.default_rng(0).normal(size=(200, 6))


def remarks(kernel: Kernel, rows: np.ndarray = X) -> str:
    return " ".join(compare(rows, kernel, **(FEW | {"methods": ["nystroem"]})).remarks)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (Gaussian(1e-6), ["nearly constant", "gamma is too small", "try gamma='median'"]),
        (Gaussian(50.0), ["nearly the identity", "gamma is too large", "try gamma='median'"]),
        (Polynomial(51, gamma=1.0), ["nearly the identity", "lower degree"]),
        (Polynomial(2, gamma=1e-6, coef0=1.0), ["nearly constant", "mean of every column"]),
    ],
)
def test_odd_kernels_are_named(kernel: Kernel, words: list[str]) -> None:
    text = remarks(kernel)
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.1), Gaussian("median"), Polynomial(3, 0.2, 1.0), ArcCosine(1)]
)
def test_usual_kernels_are_not(kernel: Kernel) -> None:
    assert remarks(kernel) == ""


def test_columns_of_different_spread() -> None:
    assert "differ by a factor of" in remarks(ArcCosine(1), X * [1.0, 1.0, 1.0, 1.0, 1.0, 1000.0])
    assert "StandardScaler" in remarks(ArcCosine(1), X * [1.0, 1.0, 1.0, 1.0, 1.0, 1000.0])


def test_remarks_are_on_the_table_and_on_the_page(tmp_path) -> None:
    found = compare(X, Gaussian(50.0), **FEW)
    assert "nearly the identity" in found.table()
    found.save_html(tmp_path / "page.html")
    assert "nearly the identity" in (tmp_path / "page.html").read_text()
