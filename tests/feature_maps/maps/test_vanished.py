"""Rows whose sketch cancels keep their norms, and equal rows their features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from powersketch import ArcCosineSketch, GaussianSketch, NeuralTangentSketch, PolynomialSketch
from powersketch.feature_maps.maps import random_direction, restore_vanished
from tests.feature_maps.cases import assert_same_bits, squared_lengths

SKETCHES = {
    "complex to real": PolynomialSketch(33, method="ctr", n_components=50, random_state=0),
    "tensor sketch": PolynomialSketch(5, method="tensorsketch", n_components=50, random_state=0),
    "adaptive": PolynomialSketch(3, method="adaptive", n_components=50, random_state=0),
    "arc-cosine": ArcCosineSketch(2, 2, n_components=100, random_state=0),
    "arc-cosine, few": ArcCosineSketch(2, 2, n_components=8, random_state=0),
    "tangent": NeuralTangentSketch(2, power_method="ctr", n_components=64, random_state=0),
    "tangent by hashes": NeuralTangentSketch(
        2, power_method="tensorsketch", n_components=64, random_state=0
    ),
    "gaussian": GaussianSketch(
        0.5, method="power", power_method="ctr", n_components=64, random_state=0
    ),
}


def one_hot() -> Any:
    columns = np.random.default_rng(0).integers(0, 3000, 200)
    return sparse.csr_array((np.ones(200), (np.arange(200), columns)), shape=(200, 3000))


def counts() -> NDArray[np.float64]:
    return np.random.default_rng(0).poisson(2.0, (40, 20)) / 4


@pytest.mark.parametrize("sketch", SKETCHES.values(), ids=SKETCHES.keys())
@pytest.mark.parametrize(
    "rows", [one_hot, lambda: one_hot().toarray(), counts, lambda: np.ones((9, 12))]
)
def test_the_diagonal_is_exact(sketch: Any, rows: Any) -> None:
    X = rows()
    Z = sketch.fit_transform(X)
    np.testing.assert_allclose(squared_lengths(Z), sketch.kernel_.diagonal(X), rtol=1e-10)


def test_equal_rows_have_equal_features_in_any_container() -> None:
    X = one_hot()
    sketch = SKETCHES["adaptive"].fit(X)
    Z = sketch.transform(X)
    _, first, group = np.unique(X.indices, return_index=True, return_inverse=True)
    assert_same_bits(Z, Z[first][group])
    assert_same_bits(sketch.transform(X.toarray()), Z)


def test_only_zero_blocks_change() -> None:
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 3.0]])
    block = np.array([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    restore_vanished(X, block, np.array([1.0, 0.0, 5.0, 5.0]), 0)
    np.testing.assert_array_equal(block[:2], [[0.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(squared_lengths(block)[2:], 25.0)
    np.testing.assert_array_equal(block[2], block[3])


def test_directions_depend_on_what_a_row_holds() -> None:
    dense = np.array([[0.0, 1.0, -0.0], [0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
    stored = sparse.csr_array(([0.0, 1.0], ([0, 0], [2, 1])), shape=(1, 3))
    directions = [random_direction(dense, row, 0, 64) for row in range(4)]
    np.testing.assert_array_equal(directions[0], directions[1])
    np.testing.assert_array_equal(directions[0], random_direction(stored, 0, 0, 64))
    products = np.array(directions[1:]) @ np.array(directions[1:]).T
    np.testing.assert_allclose(products.diagonal(), 1.0)
    assert np.abs(products - np.eye(3)).max() < 0.6
