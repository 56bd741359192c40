"""The neural tangent kernel of deep networks layer by layer: features of features.

With features u of S and ψ of T (see :class:`powersketch.kernels.NeuralTangent`), a layer gives

    u' = (√(w/2) · value(u), √b),   ψ' = (u', √(w/2) · S(ψ ⊗ slope(u))),

where value and slope are features of the arc-cosine kernels of order 1 and 0, and S is a pair
sketch. Biases make the kernel of a deep network depend on the norms of rows in a way that no
power series of their cosine has; this way has no such limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powersketch import routines
from powersketch.arrays import Real, Rows, divide_or_zero
from powersketch.feature_maps.row_maps import RowMap
from powersketch.sketches import TensorSRHT


@dataclass(frozen=True, eq=False)
class SizedMap:
    """A row map and the number of its features."""

    map: RowMap
    size: int

    def apply(self, X: Rows, threads: int) -> Real:
        """Return the features of the rows X."""
        out = np.empty((X.shape[0], self.size), dtype=X.dtype)
        self.map.write(X, out, threads)
        return out


@dataclass(frozen=True, eq=False)
class TangentLayer:
    """A layer after the first; without `value` it is a last one whose output is not trained."""

    slope: SizedMap
    value: SizedMap | None
    pair: TensorSRHT


@dataclass(frozen=True, eq=False)
class Network:
    """Half the variance of the weights, and that of the biases."""

    half_weight: float
    bias: float

    def next_value(self, value: SizedMap, rows: Rows, threads: int) -> Real:
        """Return the features of S after a layer."""
        features = math.sqrt(self.half_weight) * value.apply(rows, threads)
        if not self.bias:
            return features
        constant = np.full((len(features), 1), math.sqrt(self.bias), dtype=features.dtype)
        return np.concatenate([features, constant], axis=1)


@dataclass(frozen=True, eq=False)
class LayeredMap:
    """Features of T after all layers; `value` and `tangent` are those of the first layer."""

    network: Network
    value: SizedMap
    tangent: SizedMap
    layers: tuple[TangentLayer, ...]
    preserve_norms: bool

    name: ClassVar[str] = "layers"

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        values = self.network.next_value(self.value, X, threads)
        tangents = self.tangent.apply(X, threads)
        for layer in self.layers:
            values, tangents = self.next_layer(layer, values, tangents, threads)
        out[:, : tangents.shape[1]] = tangents
        out[:, tangents.shape[1] :] = 0

    def next_layer(
        self, layer: TangentLayer, values: Real, tangents: Real, threads: int
    ) -> tuple[Real, Real]:
        """Return the features of S and of T after a layer."""
        slopes = layer.slope.apply(values, threads)
        products = layer.pair.apply(tangents, slopes, threads=threads)
        if self.preserve_norms:
            _rescale(products, tangents, slopes, threads)
        if layer.value is None:
            return values, math.sqrt(0.5) * products
        values = self.network.next_value(layer.value, values, threads)
        products *= products.dtype.type(math.sqrt(self.network.half_weight))
        return values, np.concatenate([values, products], axis=1)


def _rescale(products: Real, left: Real, right: Real, threads: int) -> None:
    """Set the norm of every product to the product of the norms."""
    norms = [np.sqrt(_squares(rows, threads)) for rows in (left, right, products)]
    wanted, present = norms[0] * norms[1], norms[2]
    factor = divide_or_zero(wanted, present)
    products *= factor.astype(products.dtype)[:, None]


def _squares(rows: Real, threads: int) -> Real:
    squares = routines.squared_norms(rows, threads=threads)
    return squares
