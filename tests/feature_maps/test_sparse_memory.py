"""Sparse rows with many columns are never made dense all at once, whatever is done with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from powersketch import NeuralTangentSketch, PolynomialSketch
from powersketch.feature_maps.maps import dense_parts
from powersketch.kernels import ArcCosine
from tests.feature_maps.cases import CASES, KINDS, Case, assert_same_bits

ROWS, COLUMNS, STORED = 400, 50_000, 6
DENSE = ROWS * COLUMNS * 8
# A batch, its transform in blocks, what is drawn for every column; a third of the rows made dense.
MOST = DENSE // 3

# Matrices of independent entries have one for every column and component.
_BOUNDED = KINDS | {name: CASES[name] for name in ("tree", "complex-to-real")}


def long_rows(columns: int = COLUMNS) -> Any:
    generator = np.random.default_rng(0)
    places = np.repeat(np.arange(ROWS), STORED), generator.integers(0, columns, ROWS * STORED)
    rows = sparse.csr_array(
        (generator.normal(size=ROWS * STORED) / 3.0, places), shape=(ROWS, columns)
    )
    rows.sum_duplicates()
    return rows


def peak(call: Callable[[], Any]) -> int:
    """Return how many bytes Python and NumPy held at most during the call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", _BOUNDED.values(), ids=_BOUNDED)
def test_fit_and_transform_need_far_less_than_the_dense_rows(case: Case) -> None:
    X = long_rows()
    changes = {"n_components": 64}
    if "internal_components" in case.parameters:
        changes["internal_components"] = 64
    sketch = case.sketch(**changes)
    assert peak(lambda: sketch.fit(X)) < MOST
    assert peak(lambda: sketch.transform(X)) < MOST


@pytest.mark.parametrize("base_sketch", ["auto", "srht", "osnap"])
def test_random_features_with_a_bias_have_the_bits_of_dense_rows(base_sketch: str) -> None:
    X = long_rows(columns=900)
    sketch = NeuralTangentSketch(
        method="random", bias_variance=0.3, n_components=64, random_state=0, base_sketch=base_sketch
    ).fit(X)
    assert_same_bits(sketch.transform(X), sketch.transform(X.toarray()))


def test_parts_cover_the_rows_a_few_at_a_time() -> None:
    X = long_rows()
    stop = 0
    for part, dense in dense_parts(X):
        assert part.start == stop
        assert dense.nbytes <= 4 << 20
        np.testing.assert_array_equal(dense, X[part].toarray())
        stop = part.stop
    assert stop == ROWS


def test_a_kernel_between_sparse_and_dense_rows() -> None:
    """Pairs of equal rows are looked at again, as differences of dense rows."""
    X = long_rows()[np.zeros(300, dtype=int)]
    Y = X[:2].toarray()
    assert peak(lambda: ArcCosine(1)(X, Y)) < MOST


def test_adaptive_scores_of_sparse_rows_do_not_depend_on_the_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = long_rows(columns=200)
    sketch = PolynomialSketch(3, method="adaptive", n_components=40, random_state=0)
    expected = sketch.fit_transform(X)
    monkeypatch.setattr("powersketch.powers.adaptive.factors._DENSE_ENTRIES", 1700)
    assert_same_bits(sketch.fit_transform(X), expected)
