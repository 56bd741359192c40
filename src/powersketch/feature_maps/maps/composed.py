"""Maps made of other maps, one after the other or layer by layer, and maps of random neurons.

The neural tangent kernel of deep networks is built from features of features. With features u of
S and ψ of T (see :class:`powersketch.kernels.NeuralTangent`), a layer gives

    u' = (√(w/2) · value(u), √b),   ψ' = (u', √(w/2) · S(ψ ⊗ slope(u))),

where value and slope are features of the arc-cosine kernels of order 1 and 0, and S is a pair
sketch. Biases make the kernel of a deep network depend on the norms of rows in a way that no
power series of their cosine has; this way has no such limit.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from powersketch import routines
from powersketch.arrays import Float64, Real, Rows, divide_or_zero, is_sparse, slices
from powersketch.execution import interruptible
from powersketch.feature_maps.maps import (
    ORDINARY,
    RowMap,
    Strangeness,
    batch_rows,
    dense_parts,
    features_of,
    write_batches,
)
from powersketch.feature_maps.pilot import Pilot
from powersketch.feature_maps.rows import (
    AugmentedRows,
    check_norms,
    check_values,
    rows_near_one,
)
from powersketch.powers import FormatCache, Scaled
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, BaseSketch, StructuredNormal, TensorSRHT
from powersketch.storable import remembered, storable

# As many directions as features can only be found in more rows than that.
ROWS_PER_DIRECTION = 2
# Directions with less than this part of the strongest one's energy are rounding errors.
_NOTHING = 1e-12
_PANEL_COLUMNS = 256  # sums over panels of this width stay in the first level of the cache


@storable
@dataclass(frozen=True, eq=False, repr=False)
class CompressedMap:
    """z(x) = Vᵀ w(x), w a larger map, V the main directions of its features on a pilot.

    Of all projections onto so many directions, this one keeps most of w on the pilot; where the
    kernel's eigenvalues fall fast that is nearly all. The rows keep the norms of their projections:
    to set them to the exact ones would give the part that is lost the directions of the part that
    is kept, and was measured to be several times worse.

    Attributes
    ----------
    inner : RowMap
        w, with as many features as V has rows.
    directions : ndarray of shape (inner size, number of directions)
        V, columns in the order of falling energy.
    """

    inner: RowMap
    directions: Float64
    _panels: FormatCache[list[Real]] = field(default_factory=FormatCache, init=False)

    @classmethod
    def principal(
        cls, inner: RowMap, inner_size: int, pilot: Pilot, size: int, threads: int
    ) -> CompressedMap:
        """Find the main directions, at most `size`, of the inner features of the pilot rows.

        A few long rows do not take all the energy.
        """
        rows = pilot.rows
        features = np.empty((rows.shape[0], inner_size), dtype=rows.dtype)
        write_batches(inner, rows, features, threads)
        norms = np.sqrt(routines.squared_norms(features))
        _, factors = pilot.fair_shares(norms)
        return cls(inner, principal_directions(features * factors[:, None], size))

    @property
    def name(self) -> str:
        """How the inner map came about."""
        return self.inner.name

    def _panels_for(self, X: Rows) -> list[Real]:
        """Return the directions in the dtype of the rows, a few contiguous columns at a time."""
        directions = self.directions.astype(X.dtype)
        panels = slices(directions.shape[1], _PANEL_COLUMNS)
        return [np.ascontiguousarray(directions[:, panel]) for panel in panels]

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`."""
        inner_size, panels = len(self.directions), self._panels.of(X, self._panels_for)
        strangeness = np.full(X.shape[0], ORDINARY, dtype=np.int8)
        for part in slices(X.shape[0], batch_rows(X, inner_size, threads)):
            features = np.empty((part.stop - part.start, inner_size), dtype=out.dtype)
            strange = self.inner.write(X[part], features, threads)
            if strange is not None:
                strangeness[part] = strange
            _project(features, panels, out[part], threads)
        return strangeness


def _project(features: Real, panels: list[Real], out: Real, threads: int) -> None:
    """Write the products with the directions, not by BLAS: its bits depend on the batch."""
    column = 0
    for panel in panels:
        stop = column + panel.shape[1]
        out[:, column:stop] = routines.product(features, panel, threads=threads)
        column = stop
    out[:, column:] = 0


def principal_directions(features: Real, size: int) -> Float64:
    """Return up to `size` orthonormal directions that hold most of the rows' energy.

    They are eigenvectors of FᵀF, or come from those of F Fᵀ where that is smaller.
    """
    F = features.astype(np.float64)
    largest = float(np.abs(F).max())
    if largest == 0:
        return np.empty((F.shape[1], 0))
    F /= largest
    tall = F.shape[0] > F.shape[1]
    energies, vectors = interruptible(lambda: np.linalg.eigh(F.T @ F if tall else F @ F.T))
    energies, vectors = energies[::-1][:size], vectors[:, ::-1][:, :size]
    present = energies > _NOTHING * energies[0]
    energies, vectors = energies[present], vectors[:, present]
    if not tall:
        vectors = F.T @ vectors / np.sqrt(energies)
    return np.ascontiguousarray(vectors)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ScaleFreeMap:
    """A map of directions: where norms leave the range of numbers, they are changed first."""

    inner: RowMap

    @property
    def name(self) -> str:
        """How the inner map came about."""
        return self.inner.name

    @property
    def safe(self) -> RowMap | None:
        """The inner map's, for rows of any size as well."""
        safe = getattr(self.inner, "safe", None)
        return None if safe is None else ScaleFreeMap(safe)

    def write(self, X: Rows, out: Real, threads: int) -> Strangeness:
        """Write the features of the rows X into `out`."""
        return self.inner.write(rows_near_one(X, threads), out, threads)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class SizedMap:
    """A row map and the number of its features."""

    map: RowMap
    size: int

    def apply(self, X: Rows, threads: int) -> Real:
        """Return the features of the rows X."""
        return features_of(self.map, X, self.size, threads)


@storable
@dataclass(frozen=True, eq=False, repr=False)
class ComposedMap:
    """Maps applied one after the other."""

    maps: tuple[SizedMap, ...]

    name: ClassVar[str] = "random"

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        for sized in self.maps:
            X = sized.apply(X, threads)
        out[:] = X


@storable
@dataclass(frozen=True, eq=False, repr=False)
class TangentLayer:
    """A layer after the first; without `value` it is a last one whose output is not trained."""

    slope: SizedMap
    value: SizedMap | None
    pair: TensorSRHT


@storable
@dataclass(frozen=True, eq=False, repr=False)
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


@storable
@dataclass(frozen=True, eq=False, repr=False)
class LayeredMap:
    """Features of T after all layers; `value` and `tangent` are those of the first layer."""

    network: Network
    value: SizedMap
    tangent: SizedMap
    layers: tuple[TangentLayer, ...]
    preserve_norms: bool

    name: ClassVar[str] = "layers"

    def with_layer(self, layer: TangentLayer) -> LayeredMap:
        """Return the map with one more layer."""
        return dataclasses.replace(self, layers=(*self.layers, layer))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        values, tangents = self.first_layer(X, threads)
        for layer in self.layers:
            values, tangents = self.next_layer(layer, values, tangents, threads)
        out[:, : tangents.shape[1]] = tangents
        out[:, tangents.shape[1] :] = 0

    def first_layer(self, X: Rows, threads: int) -> tuple[Real, Real]:
        """Return the features of S and of T after the first layer."""
        return self.network.next_value(self.value, X, threads), self.tangent.apply(X, threads)

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
    squares = [routines.squared_norms(rows, threads=threads) for rows in (left, right, products)]
    left_norms, right_norms, present = np.sqrt(squares)
    factor = divide_or_zero(left_norms * right_norms, present)
    products *= factor.astype(products.dtype)[:, None]


@storable
@dataclass(frozen=True, eq=False, repr=False)
class RandomActivations:
    """√(2/size) · max(⟨w, x̃⟩, 0)^order for random normal w [CS09]; order 0 is the step function."""

    rows: AugmentedRows
    order: int
    neurons: StructuredNormal

    name: ClassVar[str] = "random"

    @classmethod
    @remembered
    def draw(
        cls, streams: RandomStreams, rows: AugmentedRows, order: int, columns: int, size: int
    ) -> RandomActivations:
        """Sample the neurons."""
        columns += rows.extra_columns
        return cls(rows, order, StructuredNormal.draw(streams, columns, size))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        squared_norms = self.rows.squared_norms(X, threads)
        check_norms(X, squared_norms)
        check_values(X, Scaled.of(squared_norms).power(self.order).to_float())
        inputs = self.rows.of(X)
        sums = self.neurons.apply(inputs, threads=threads)
        features = (sums > 0).astype(out.dtype)
        for _ in range(self.order):
            features *= sums
        out[:] = features * out.dtype.type(math.sqrt(2.0 / self.neurons.size))


@storable
@dataclass(frozen=True, eq=False, repr=False)
class RandomTangent:
    """The tangent features of one hidden layer: x̃ ⊗ step(W x̃), sketched, and the layer itself.

    The kernel is weight · κ₀(ρ) ⟨x̃, ỹ⟩, plus weight · κ₁(ρ) ‖x̃‖ ‖ỹ‖ + coef0 if the output layer is
    trained.
    """

    steps: RandomActivations
    values: RandomActivations | None
    leaf: BaseSketch | None
    pair: TensorSRHT
    weight: float
    constant: float

    name: ClassVar[str] = "random"

    @classmethod
    @remembered
    def draw(
        cls,
        streams: RandomStreams,
        rows: AugmentedRows,
        columns: int,
        size: int,
        *,
        base_sketch: str,
        weight: float,
        train_output: bool,
    ) -> RandomTangent:
        """Sample the neurons; a trained output layer takes half of the features."""
        constants = int(train_output and rows.extra_columns > 0)
        trained = (size - constants) // 2 if train_output else 0
        shared = size - constants - trained
        steps = RandomActivations.draw(streams.child("steps"), rows, 0, columns, size)
        values = None
        if trained:
            values = RandomActivations.draw(streams.child("values"), rows, 1, columns, trained)
        length = columns + rows.extra_columns
        leaf = None
        if length > size:
            leaf = BASE_SKETCHES[base_sketch].draw(streams.child("leaf"), length, size)
        pair = TensorSRHT.draw(streams.child("pair"), size, shared)
        constant = rows.root_coef0 if constants else 0.0
        return cls(steps, values, leaf, pair, weight, constant)

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        steps = features_of(self.steps, X, self.steps.neurons.size, threads)
        inputs = self._leaves(X, threads)
        root, shared = math.sqrt(self.weight), self.pair.size
        out[:, :shared] = root * self.pair.apply(inputs, steps, threads=threads)
        if self.values is not None:
            size = self.values.neurons.size
            values = features_of(self.values, X, size, threads)
            out[:, shared : shared + size] = root * values
        if self.constant:
            out[:, -1] = self.constant

    def _leaves(self, X: Rows, threads: int) -> Real:
        """Return x̃ of every row, dense and no longer than the features."""
        inputs = self.steps.rows.of(X)
        if self.leaf is None:
            dense: Real = inputs.toarray() if is_sparse(inputs) else inputs
            return dense
        if inputs.shape[1] == X.shape[1]:
            return self.leaf.apply(inputs, threads=threads)
        # With a constant, sparse rows give the very bits of dense ones.
        parts = [self.leaf.apply(dense, threads=threads) for _, dense in dense_parts(inputs)]
        return np.concatenate(parts)
