"""Layers of features of features: explicit formulas, and the recursion of the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from powersketch.feature_maps.maps.composed import LayeredMap, Network, SizedMap, TangentLayer
from powersketch.kernels import NeuralTangent
from powersketch.kernels.arc_cosine import kappa_0, kappa_1
from powersketch.random_streams import RandomStreams
from powersketch.sketches import TensorSRHT
from tests.feature_maps.cases import each_float, squared_lengths, uncentred, unit_rows

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """A linear row map, whose features are easy to write down."""

    matrix: Array

    name: ClassVar[str] = "matrix"

    def write(self, X: Any, out: Any, threads: int) -> None:
        del threads
        out[:] = X @ self.matrix


def linear(inputs: int, size: int, seed: int) -> SizedMap:
    matrix = np.random.default_rng(seed).normal(size=(inputs, size)) / math.sqrt(size)
    return SizedMap(MatrixMap(matrix), size)


def layer(values: int, tangents: int, size: int, *, seed: int, last: bool = False) -> TangentLayer:
    pair = TensorSRHT.draw(RandomStreams(seed), max(tangents, size), size)
    value = None if last else linear(values, size, seed + 2)
    return TangentLayer(linear(values, size, seed + 1), value, pair)


def matrix(sized: SizedMap | None) -> Array:
    assert sized is not None
    assert isinstance(sized.map, MatrixMap)
    return sized.map.matrix


def with_constant(rows: Array, bias: float) -> Array:
    if not bias:
        return rows
    return np.concatenate([rows, np.full((len(rows), 1), math.sqrt(bias))], axis=1)


def written(row_map: LayeredMap, X: Array, size: int) -> Array:
    Z = np.full((len(X), size), np.nan, dtype=X.dtype)
    row_map.write(X, Z, 1)
    return Z


class TestSizedMap:
    @each_float
    def test_features_have_the_dtype_and_size(self, dtype: Any) -> None:
        X, sized = uncentred(9, 5, dtype), linear(5, 7, 0)
        Z = sized.apply(X, 1)
        assert (Z.shape, Z.dtype) == ((9, 7), dtype)
        np.testing.assert_allclose(Z, X @ matrix(sized), rtol=1e-5, atol=1e-6)


class TestNetwork:
    @pytest.mark.parametrize("bias", [0.0, 0.3])
    def test_values_after_a_layer(self, bias: float) -> None:
        """(√(w/2) value(x), √b)."""
        X, value = uncentred(9, 5), linear(5, 7, 0)
        expected = with_constant(math.sqrt(0.8) * X @ matrix(value), bias)
        found = Network(0.8, bias).next_value(value, X, 1)
        np.testing.assert_allclose(found, expected, atol=1e-14)

    @each_float
    def test_dtype_is_kept(self, dtype: Any) -> None:
        X = uncentred(9, 5, dtype)
        assert Network(0.8, 0.3).next_value(linear(5, 7, 0), X, 1).dtype == dtype


class TestLayeredMap:
    @pytest.mark.parametrize("bias", [0.0, 0.3])
    @pytest.mark.parametrize("preserve_norms", [True, False])
    @pytest.mark.parametrize("last", [True, False])
    def test_one_layer(self, bias: float, preserve_norms: bool, last: bool) -> None:
        """u' = (√(w/2) value(u), √b), ψ' = (u', √(w/2) S(ψ ⊗ slope(u))); last: √½ S(…) alone."""
        half, extra = 0.8, int(bias > 0)
        X, network = uncentred(9, 5), Network(half, bias)
        first, tangent = linear(5, 8, 0), linear(5, 6, 1)
        above = layer(8 + extra, 6, 8, seed=2, last=last)
        Z = written(LayeredMap(network, first, tangent, (above,), preserve_norms), X, 20)

        u = with_constant(math.sqrt(half) * X @ matrix(first), bias)
        psi, slopes = X @ matrix(tangent), u @ matrix(above.slope)
        products = above.pair.apply(psi, slopes)
        if preserve_norms:
            wanted = np.linalg.norm(psi, axis=1) * np.linalg.norm(slopes, axis=1)
            products *= (wanted / np.linalg.norm(products, axis=1))[:, None]
        expected = math.sqrt(0.5) * products
        if not last:
            values = with_constant(math.sqrt(half) * u @ matrix(above.value), bias)
            expected = np.concatenate([values, math.sqrt(half) * products], axis=1)
        width = expected.shape[1]
        np.testing.assert_allclose(Z[:, :width], expected, atol=1e-13)
        assert not Z[:, width:].any()

    def test_two_layers_are_one_after_the_other(self) -> None:
        X, network = uncentred(9, 5), Network(0.8, 0.3)
        first, tangent = linear(5, 8, 0), linear(5, 6, 1)
        one, two = layer(9, 6, 8, seed=2), layer(9, 17, 8, seed=5)
        both = LayeredMap(network, first, tangent, (one, two), True)
        values, tangents = network.next_value(first, X, 1), tangent.apply(X, 1)
        for above in (one, two):
            values, tangents = both.next_layer(above, values, tangents, 1)
        np.testing.assert_array_equal(written(both, X, tangents.shape[1]), tangents)

    def test_no_layers(self) -> None:
        X, tangent = uncentred(9, 5), linear(5, 6, 1)
        Z = written(LayeredMap(Network(1.0, 0.0), linear(5, 8, 0), tangent, (), True), X, 8)
        np.testing.assert_allclose(Z[:, :6], X @ matrix(tangent), atol=1e-14)
        assert not Z[:, 6:].any()

    def test_norms_of_products_are_products_of_norms(self) -> None:
        """Also of a row that is zero."""
        X = uncentred(9, 5)
        X[4] = 0
        first, tangent = linear(5, 8, 0), linear(5, 6, 1)
        above = layer(8, 6, 8, seed=2, last=True)
        Z = written(LayeredMap(Network(1.0, 0.0), first, tangent, (above,), True), X, 8)
        u, psi = X @ matrix(first), X @ matrix(tangent)
        expected = 0.5 * squared_lengths(psi) * squared_lengths(u @ matrix(above.slope))
        np.testing.assert_allclose(squared_lengths(Z), expected, rtol=1e-12)
        assert not Z[4].any()


@dataclass(frozen=True, eq=False)
class ExactMap:
    """Features of a function of cosines on given rows, from a Cholesky factor."""

    rows: Array
    features: Array

    name: ClassVar[str] = "exact"

    @classmethod
    def of(cls, rows: Array, K: Array) -> SizedMap:
        eigenvalues, vectors = np.linalg.eigh(K)
        features = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        return SizedMap(cls(rows, features), len(K))

    def write(self, X: Any, out: Any, threads: int) -> None:
        del threads
        np.testing.assert_allclose(X, self.rows)
        out[:] = self.features


@pytest.mark.parametrize("bias", [0.0, 0.3])
@pytest.mark.parametrize("train_output", [True, False])
def test_exact_features_give_the_kernel_but_for_the_pair_sketch(
    bias: float, train_output: bool
) -> None:
    """With exact features of both kernels in a layer, Z Zᵀ is the kernel of depth 2 on average.

    200 pair sketches of 32 features; five standard errors for 21 entries.
    """
    half = 0.8
    X = unit_rows(uncentred(6, 5)) * np.linspace(0.5, 1.5, 6)[:, None]
    S = half * X @ X.T + bias
    norms = np.sqrt(np.diag(S))
    cosines = np.clip(S / np.outer(norms, norms), -1, 1)
    value = ExactMap.of(X, np.outer(norms, norms) * kappa_1(cosines))
    first = NeuralTangent(1, True, 2 * half, bias)(X)
    network = Network(half, bias)
    u = network.next_value(value, X, 1)
    lengths = np.linalg.norm(u, axis=1)
    angles = np.clip(u @ u.T / np.outer(lengths, lengths), -1, 1)
    slope = ExactMap.of(u, kappa_0(angles))
    next_value = ExactMap.of(u, np.outer(lengths, lengths) * kappa_1(angles))
    K = NeuralTangent(2, train_output, 2 * half, bias)(X)
    kernels = []
    for seed in range(200):
        pair = TensorSRHT.draw(RandomStreams(seed), 8, 32)
        above = TangentLayer(slope, next_value if train_output else None, pair)
        layered = LayeredMap(network, value, ExactMap.of(X, first), (above,), False)
        Z = written(layered, X, 40)
        kernels.append(Z @ Z.T)
    errors = np.std(kernels, axis=0) / math.sqrt(200)
    assert np.all(np.abs(np.mean(kernels, axis=0) - K) <= 5 * errors + 1e-9)
