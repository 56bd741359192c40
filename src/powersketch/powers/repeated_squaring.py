"""Algorithm 1 of the paper: x^⊗p sketched with one T and one S, by repeated squaring."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Rows, Vector, is_sparse, padded_length
from powersketch.powers.methods import FormatCache
from powersketch.powers.programs import PowerProgram, Slice, all_powers, single_power
from powersketch.random_streams import RandomStreams
from powersketch.routines import Chain, ChainSpec, PairSpec, ScatterSpec, SrhtSpec, make_chain
from powersketch.sketches import BASE_SKETCHES, OSNAP, SRHT, BaseSketch, PairSketch, TensorSRHT


def algorithm_1(X: Real, degree: int, T: BaseSketch, S: PairSketch) -> Real:
    """Return Z(S, T, X) of Definition 4.2 of [SWYZ21], line by line, for any T and S.

    This is the specification; :class:`PowerSketch` computes the same in a fused chain.
    """
    w = T.apply(X)  # line 3
    z = None
    for bit in range(degree.bit_length()):
        if bit:
            w = S.apply(w, w)  # line 5
        if degree >> bit & 1:
            z = w if z is None else S.apply(z, w)  # lines 8 and 10
    assert z is not None, "a degree of at least 1 has a set bit"
    return z


_ORDINARY_EXPONENT = 60


@dataclass(frozen=True, eq=False)
class PowerSketch:
    """Sketches of some powers of the rows of a matrix, sharing T, S and intermediate powers.

    Attributes
    ----------
    base : BaseSketch or None
        T; None if the rows fit the internal length as they are (T then loses nothing).
    pair : TensorSRHT
        S, with as many rows as columns: the internal length, a power of two.
    program : PowerProgram
        The products, and the slices of S that become features.
    preserve_norms : bool
        Whether every power is rescaled to its exact norm.
    direction : ndarray or None
        What rows can be shifted along.
    """

    columns: int
    base: BaseSketch | None
    pair: TensorSRHT
    program: PowerProgram
    preserve_norms: bool
    direction: Vector | None = None
    # A T that is not part of the chain, and the chain.
    _chains: FormatCache[tuple[BaseSketch | None, Chain]] = field(
        default_factory=FormatCache, init=False, repr=False
    )

    @classmethod
    def draw(
        cls,
        streams: RandomStreams,
        columns: int,
        outputs: Mapping[int, Slice],
        *,
        internal: int,
        base_sketch: str,
        preserve_norms: bool,
        direction: Vector | None = None,
    ) -> PowerSketch:
        """Sample T and S for the degrees and slices in `outputs`."""
        base: BaseSketch | None = None
        if padded_length(columns) > internal:
            base = BASE_SKETCHES[base_sketch].draw(streams.child("T"), columns, internal)
        pair = TensorSRHT.draw(streams.child("S"), internal, internal)
        if len(outputs) == 1:
            ((degree, output),) = outputs.items()
            program = single_power(degree, output, internal)
        else:
            program = all_powers(outputs, internal)
        return cls(columns, base, pair, program, preserve_norms, direction)

    @classmethod
    def linear(
        cls,
        base: BaseSketch,
        output: Slice,
        *,
        preserve_norms: bool,
        direction: Vector | None = None,
    ) -> PowerSketch:
        """Return T alone, as a chain without products."""
        length = padded_length(base.size)
        # No product is taken: S only tells how long the register is.
        ones, positions = np.ones(length, dtype=np.int8), np.arange(length, dtype=np.int32)
        unused = TensorSRHT(length, length, PairSpec(ones, ones, positions, positions))
        program = all_powers({1: output}, length)
        return cls(base.columns, base, unused, program, preserve_norms, direction)

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees in the order of the program's blocks."""
        return self.program.degrees

    @property
    def leaf_length(self) -> int:
        """The length of T x, or of the padded x, and no less than what features of it take."""
        of_leaf = self.program.outputs[self.program.outputs[:, 4] == 0]
        taken = int((of_leaf[:, 1] + of_leaf[:, 2]).max(initial=0))
        return padded_length(max(self.columns if self.base is None else self.base.size, taken))

    def literal_factor(self, degree: int) -> float:
        """Return √(rows of S / rows used) of a degree: S itself is scaled for all of its rows."""
        used = self.program.outputs[self.program.degrees.index(degree), 2]
        return math.sqrt(self.pair.length / int(used)) if degree > 1 else 1.0

    def _leaf_shift(self) -> Vector:
        """Return T applied to the direction."""
        if self.direction is None:
            return np.empty(0)
        row = np.ascontiguousarray(self.direction[None, :], dtype=np.float64)
        leaf = row if self.base is None else self.base.apply(row)
        return np.pad(leaf[0], (0, self.leaf_length - leaf.shape[1]))

    def _fused_leaf(self) -> SrhtSpec | ScatterSpec | None:
        """Return what the chain can do of T itself; the rest is done before rows enter it."""
        if isinstance(self.base, OSNAP):
            return self.base.spec
        if isinstance(self.base, SRHT) and self.base.size == self.leaf_length:
            return self.base.spec
        return None

    def _chain_for(self, X: Rows) -> tuple[BaseSketch | None, Chain]:
        fused = None if is_sparse(X) else self._fused_leaf()
        outside = self.base if fused is None else None
        spec = ChainSpec(
            columns=X.shape[1] if outside is None else outside.size,
            leaf=fused,
            leaf_length=self.leaf_length,
            leaf_shift=self._leaf_shift(),
            pair=self.pair.spec,
            steps=self.program.steps,
            outputs=self.program.outputs,
            registers=self.program.registers,
            preserve_norms=self.preserve_norms,
        )
        return outside, make_chain(spec, X.dtype)

    def write(
        self,
        X: Rows,
        row_scale: Vector,
        row_shift: Vector | None,
        block_scales: Float64,
        out: Real,
        threads: int,
    ) -> bool:
        """Write the features of every row into `out`; False if one overflows its dtype."""
        outside, chain = self._chains.get(X, self._chain_for)
        X, row_scale = within_range(X, row_scale)
        if outside is not None:
            X = outside.apply(X, threads=threads)
        elif is_sparse(X):
            X = X.toarray()
        shift = np.empty(0) if row_shift is None else row_shift
        return chain.apply(
            X,
            row_scale.astype(out.dtype),
            shift.astype(out.dtype),
            np.ascontiguousarray(block_scales),
            out,
            threads,
        )


def within_range(X: Rows, row_scale: Vector) -> tuple[Rows, Vector]:
    """Return rows and scales with the same products, extreme scales moved into the rows."""
    power = extreme_power(row_scale, X.dtype)
    if np.any(power != 1.0):
        return times_rows(X, power), row_scale / power
    return X, row_scale


def extreme_power(row_scale: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Return powers of two near scales that, or unscaled sums before them, might leave the dtype.

    Other rows get one.

    Multiplying by them is exact: the bits of a row do not depend on whether it was done.
    """
    _, exponent = np.frexp(row_scale)
    largest = 120 if dtype == np.float32 else 1000
    extreme = np.abs(exponent) > _ORDINARY_EXPONENT
    return np.ldexp(1.0, np.where(extreme, np.clip(exponent, -largest, largest), 0))


def times_rows(X: Rows, factors: NDArray[np.float64]) -> Rows:
    """Multiply every row by its factor."""
    factors = factors.astype(X.dtype)
    if is_sparse(X):
        scaled = X.copy()
        scaled.data *= np.repeat(factors, np.diff(X.indptr))
        return scaled
    return X * factors[:, None]
