"""Random features of neural kernels: explicit formulas, and kernels in the mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from powersketch.feature_maps.maps.composed import (
    RandomActivations,
    RandomTangent,
)
from powersketch.feature_maps.rows import AugmentedRows
from powersketch.kernels import ArcCosine, NeuralTangent
from powersketch.random_streams import RandomStreams
from tests.feature_maps.cases import each_float, uncentred

Array = NDArray[Any]

PLAIN = AugmentedRows(1.0, 0.0)
WITH_BIAS = AugmentedRows(0.8, 0.3)
each_order = pytest.mark.parametrize("order", [0, 1, 2])
each_rows = pytest.mark.parametrize("rows", [PLAIN, WITH_BIAS], ids=["plain", "bias"])
each_output = pytest.mark.parametrize("train_output", [True, False])


def written(row_map: Any, X: Any, size: int) -> Array:
    Z = np.full((X.shape[0], size), np.nan, dtype=X.dtype)
    row_map.write(X, Z, 1)
    return Z


def long_rows(X: Array, rows: AugmentedRows) -> Array:
    """Return x̃ = (√gamma · x, √coef0), without a constant of zero."""
    longer = np.sqrt(rows.gamma) * X
    if rows.coef0:
        constant = np.full((len(X), 1), np.sqrt(rows.coef0))
        longer = np.concatenate([longer, constant], axis=1)
    return longer


def tangent(
    rows: AugmentedRows, columns: int, size: int, *, train_output: bool, seed: int = 0
) -> RandomTangent:
    return RandomTangent.draw(
        RandomStreams(seed),
        rows,
        columns,
        size,
        base_sketch="srht",
        weight=rows.gamma if train_output else 0.5,
        train_output=train_output,
    )


class TestAugmentedRows:
    @each_rows
    @each_float
    def test_dense_and_sparse(self, rows: AugmentedRows, dtype: Any) -> None:
        X = uncentred(10, 6, dtype)
        dense, from_sparse = rows.of(X), rows.of(sp.csr_array(X))
        assert dense.dtype == from_sparse.dtype == dtype
        np.testing.assert_allclose(dense, long_rows(X, rows), rtol=1e-6)
        if sp.issparse(from_sparse):
            from_sparse = from_sparse.toarray()
        np.testing.assert_array_equal(from_sparse, dense)


class TestActivations:
    @each_order
    @each_rows
    def test_are_powers_of_positive_parts(self, order: int, rows: AugmentedRows) -> None:
        """√(2/m) max(⟨w, x̃⟩, 0)^order, with max(s, 0)^0 the step function."""
        X = uncentred(15, 6)
        activations = RandomActivations.draw(RandomStreams(1), rows, order, 6, 40)
        W = activations.neurons.apply(np.eye(6 + rows.extra_columns)).T
        sums = long_rows(X, rows) @ W.T
        expected = math.sqrt(2 / 40) * np.where(sums > 0, sums**order, 0.0)
        np.testing.assert_allclose(written(activations, X, 40), expected, atol=1e-12)

    @each_order
    @each_rows
    def test_unbiased(self, order: int, rows: AugmentedRows) -> None:
        """The mean over 600 seeds is the arc-cosine kernel, within 4.5 standard errors and 0.5 %.

        Ten pairs, six cases: failure probability 4e-4, if the neurons were normal altogether.
        """
        X = np.random.default_rng(3).normal(loc=0.3, size=(4, 20)) / math.sqrt(20)
        products = []
        for seed in range(600):
            Z = written(RandomActivations.draw(RandomStreams(seed), rows, order, 20, 64), X, 64)
            products.append(Z @ Z.T)
        K = ArcCosine(order)(long_rows(X, rows))
        errors = np.std(products, axis=0) / math.sqrt(600)
        assert np.all(np.abs(np.mean(products, axis=0) - K) <= 4.5 * errors + 5e-3 * K.max())

    @each_order
    def test_zero_rows_activate_nothing(self, order: int) -> None:
        activations = RandomActivations.draw(RandomStreams(1), PLAIN, order, 6, 40)
        assert not written(activations, np.zeros((3, 6)), 40).any()

    @pytest.mark.parametrize("order", [1, 2])
    def test_homogeneous(self, order: int) -> None:
        X = uncentred(15, 6)
        activations = RandomActivations.draw(RandomStreams(1), PLAIN, order, 6, 40)
        expected = 4.0**order * written(activations, X, 40)
        np.testing.assert_array_equal(written(activations, 4 * X, 40), expected)

    def test_rows_that_are_not_finite_are_refused(self) -> None:
        activations = RandomActivations.draw(RandomStreams(1), PLAIN, 1, 6, 40)
        X = uncentred(5, 6)
        X[2, 3] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            written(activations, X, 40)


class TestTangents:
    @each_rows
    @each_output
    @pytest.mark.parametrize("columns", [6, 90])
    def test_blocks(self, rows: AugmentedRows, train_output: bool, columns: int) -> None:
        """√w S(T x̃ ⊗ step(W x̃)), then √w relu(W' x̃), then √b."""
        X, size = uncentred(15, columns), 48
        drawn = tangent(rows, columns, size, train_output=train_output)
        Z = written(drawn, X, size)
        inputs = long_rows(X, rows)
        steps = written(drawn.steps, X, drawn.steps.neurons.size)
        if columns > size:
            assert drawn.leaf is not None
            inputs = drawn.leaf.apply(inputs)
        else:
            assert drawn.leaf is None
        root, shared = math.sqrt(drawn.weight), drawn.pair.size
        products = root * drawn.pair.apply(inputs, steps)
        np.testing.assert_allclose(Z[:, :shared], products, atol=1e-13)
        if not train_output:
            assert shared == size
            return
        assert drawn.values is not None
        own = drawn.values.neurons.size
        values = root * written(drawn.values, X, own)
        np.testing.assert_allclose(Z[:, shared : shared + own], values, atol=1e-13)
        assert shared + own + rows.extra_columns == size
        if rows.coef0:
            np.testing.assert_allclose(Z[:, -1], math.sqrt(rows.coef0), rtol=1e-15)

    @each_rows
    @each_output
    def test_unbiased(self, rows: AugmentedRows, train_output: bool) -> None:
        """The mean over 1500 seeds is the neural tangent kernel, within 4.5 errors and 0.5 %.

        Six pairs, four cases: failure probability 2e-4.
        """
        X = np.random.default_rng(3).normal(loc=0.3, size=(3, 20)) / math.sqrt(20)
        products = []
        for seed in range(1500):
            drawn = tangent(rows, 20, 64, train_output=train_output, seed=seed)
            Z = written(drawn, X, 64)
            products.append(Z @ Z.T)
        K = NeuralTangent(1, train_output, 2 * rows.gamma, rows.coef0)(X)
        errors = np.std(products, axis=0) / math.sqrt(1500)
        assert np.all(np.abs(np.mean(products, axis=0) - K) <= 4.5 * errors + 5e-3 * K.max())

    def test_sparse_rows(self) -> None:
        for rows in (PLAIN, WITH_BIAS):
            for columns in (6, 90):
                X = uncentred(15, columns)
                drawn = tangent(rows, columns, 48, train_output=True)
                np.testing.assert_allclose(
                    written(drawn, sp.csr_array(X), 48), written(drawn, X, 48), atol=1e-12
                )
