"""Random features of neural kernels: the activations of random neurons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from powersketch.arrays import Real, Rows, is_sparse
from powersketch.feature_maps.augmented_rows import AugmentedRows
from powersketch.feature_maps.batches import dense_parts
from powersketch.feature_maps.row_checks import check_norms, check_values
from powersketch.powers import Scaled
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, BaseSketch, StructuredNormal, TensorSRHT


@dataclass(frozen=True, eq=False)
class RandomActivations:
    """√(2/size) · max(⟨w, x̃⟩, 0)^order for random normal w [CS09]; order 0 is the step function."""

    rows: AugmentedRows
    order: int
    neurons: StructuredNormal

    name: ClassVar[str] = "random"

    @classmethod
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
        inputs = augmented(X, self.rows)
        sums = self.neurons.apply(inputs, threads=threads)
        active = sums > 0
        features = active.astype(out.dtype)
        for _ in range(self.order):
            features *= sums
        out[:] = features * out.dtype.type(math.sqrt(2.0 / self.neurons.size))


def augmented(X: Rows, rows: AugmentedRows) -> Rows:
    """Return x̃ of every row, sparse if the rows are."""
    scaled = X * X.dtype.type(rows.root_gamma)
    if not rows.extra_columns:
        return scaled
    constant = np.full((X.shape[0], 1), rows.root_coef0, dtype=X.dtype)
    if is_sparse(X):
        return sp.hstack([scaled, sp.csr_array(constant)], format="csr")
    return np.hstack([scaled, constant])


@dataclass(frozen=True, eq=False)
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
        own = (size - constants) // 2 if train_output else 0
        shared = size - constants - own
        steps = RandomActivations.draw(streams.child("steps"), rows, 0, columns, size)
        values = None
        if own:
            values = RandomActivations.draw(streams.child("values"), rows, 1, columns, own)
        length = columns + rows.extra_columns
        leaf = None
        if length > size:
            leaf = BASE_SKETCHES[base_sketch].draw(streams.child("leaf"), length, size)
        pair = TensorSRHT.draw(streams.child("pair"), size, shared)
        constant = rows.root_coef0 if constants else 0.0
        return cls(steps, values, leaf, pair, weight, constant)

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        steps = np.empty((X.shape[0], self.steps.neurons.size), dtype=out.dtype)
        self.steps.write(X, steps, threads)
        inputs = self._leaves(X, threads)
        root, shared = math.sqrt(self.weight), self.pair.size
        out[:, :shared] = root * self.pair.apply(inputs, steps, threads=threads)
        if self.values is not None:
            block = out[:, shared : shared + self.values.neurons.size]
            values = np.empty(block.shape, dtype=out.dtype)
            self.values.write(X, values, threads)
            block[:] = root * values
        if self.constant:
            out[:, -1] = self.constant

    def _leaves(self, X: Rows, threads: int) -> Real:
        """Return x̃ of every row, dense and no longer than the features."""
        inputs = augmented(X, self.steps.rows)
        if self.leaf is None:
            dense: Real = inputs.toarray() if is_sparse(inputs) else inputs
            return dense
        if inputs.shape[1] == X.shape[1]:
            return self.leaf.apply(inputs, threads=threads)
        # With a constant, sparse rows give the very bits of dense ones.
        parts = [self.leaf.apply(dense, threads=threads) for _, dense in dense_parts(inputs)]
        return np.concatenate(parts)
