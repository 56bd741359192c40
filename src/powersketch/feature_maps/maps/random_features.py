"""Random features: waves of random frequencies, and activations of random neurons."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from powersketch.arrays import Real, Rows, is_sparse
from powersketch.feature_maps.expansions.gaussian import CentredRows
from powersketch.feature_maps.maps import dense_parts, features_of, random_direction
from powersketch.feature_maps.rows import AugmentedRows, check_norms, check_values
from powersketch.powers import Scaled
from powersketch.random_streams import RandomStreams
from powersketch.sketches import BASE_SKETCHES, BaseSketch, StructuredNormal, TensorSRHT

_LARGEST_FACTOR = 1e30
_LONGEST = {np.dtype(np.float32): 2.0**22, np.dtype(np.float64): 2.0**51}


@dataclass(frozen=True, eq=False, repr=False)
class FourierMap:
    """z(x) = (cos⟨w, x − c⟩, sin⟨w, x − c⟩) over the root of the number of frequencies w.

    A last column without a partner is zero.
    """

    rows: CentredRows
    frequencies: StructuredNormal

    name: ClassVar[str] = "fourier"

    @classmethod
    def draw(cls, streams: RandomStreams, rows: CentredRows, size: int) -> FourierMap:
        """Sample normal frequencies of variance 2 gamma, counted in turns."""
        factor = rows.factor / (2.0 * math.pi)
        columns = len(rows.centre)
        return cls(rows, StructuredNormal.draw(streams, columns, size // 2, factor))

    def write(self, X: Rows, out: Real, threads: int) -> None:
        """Write the features of the rows X into `out`."""
        lengths = np.sqrt(self.rows.squared_norms(X, threads))
        frequencies = self.frequencies
        # Frequencies for tiny rows may exceed float32.
        kind = X.dtype if self.rows.factor < _LARGEST_FACTOR else np.dtype(np.float64)
        centre = self.rows.centre.astype(kind)
        scale, used = 1.0 / math.sqrt(frequencies.size), 2 * frequencies.size
        for part, dense in dense_parts(X):
            # The kernel does not change with the origin, and short rows have small phases.
            centred = dense.astype(kind, copy=False) - centre
            out[part, :used] = frequencies.fourier(centred, scale, threads=threads)
        # Phases of rows so far away have no correct digit, and all cosines may be one. Unless they
        # are equal, the kernel of such rows with any others is zero.
        for row in np.flatnonzero(lengths > _LONGEST[X.dtype]).tolist():
            out[row, :used] = random_direction(X, row, 0, used)
        out[:, used:] = 0


@dataclass(frozen=True, eq=False, repr=False)
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
        inputs = self.rows.of(X)
        sums = self.neurons.apply(inputs, threads=threads)
        features = (sums > 0).astype(out.dtype)
        for _ in range(self.order):
            features *= sums
        out[:] = features * out.dtype.type(math.sqrt(2.0 / self.neurons.size))


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
