"""The specification: every kernel in plain NumPy, same arguments and draws as the compiled one.

Sums are taken in the same order as in the compiled kernels, so float64 results agree to the bit,
except for rows longer than 2**16, which the compiled SRHT transforms in stretches, and for sparse
rows short enough to be summed directly.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.native.specs import (
    ChainSpec,
    PairSpec,
    Real,
    Rows,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
    is_sparse,
)

# P(b) = b · Σ c_k b^(2k) ≈ sin(2πb) for |b| ≤ ¼, by interpolation of sin(2π√u)/√u in the Chebyshev
# nodes of [0, 1/16]: off by 2e-7 in float32 and by 4e-16 in float64, rounding included.
_SINE_SINGLE = (6.28318548, -41.3416824, 81.602478, -76.5811691, 39.7598267)
_SINE_DOUBLE = (
    6.283185307179586,
    -41.341702240399755,
    81.60524927607362,
    -76.70585975282492,
    42.058693925428685,
    -15.0946416761179,
    3.8199280942271643,
    -0.7177337921413454,
    0.10089695501646812,
)


def _dense(X: Rows) -> Real:
    dense: Real = X.toarray() if is_sparse(X) else X
    return dense


def _padded(X: Real, length: int) -> Real:
    return np.pad(X, ((0, 0), (0, length - X.shape[1])))


def fwht(X: Real, padded: int, *, threads: int = 1) -> Real:
    """Return H x for every row x of X padded with zeros, H the unnormalised Hadamard matrix."""
    del threads
    result: Real = _padded(X, padded)
    stride = 1
    while stride < padded:
        halves = result.reshape(len(X), padded // (2 * stride), 2, stride)
        a, b = halves[:, :, 0], halves[:, :, 1]
        result = np.stack([a + b, a - b], axis=2).reshape(len(X), padded)
        stride *= 2
    return result


def srht(X: Rows, spec: SrhtSpec, *, threads: int = 1) -> Real:
    """Return scale · (H D x)[indices] for every row; X may have fewer columns than D."""
    del threads
    dense = _dense(X)
    signs = spec.signs[: dense.shape[1]].astype(dense.dtype)
    sampled: Real = fwht(dense * signs, spec.padded)[:, spec.indices]
    sampled *= dense.dtype.type(spec.scale)
    return sampled


def tensor_srht(A: Real, B: Real, spec: PairSpec, *, threads: int = 1) -> Real:
    """Return S(a ⊗ b) for every pair of rows, S the TensorSRHT of `spec`."""
    del threads
    first = fwht(A * spec.signs_first[: A.shape[1]].astype(A.dtype), spec.length)
    second = fwht(B * spec.signs_second[: B.shape[1]].astype(B.dtype), spec.length)
    scale = A.dtype.type(1.0 / np.sqrt(len(spec.first)))
    products: Real = first[:, spec.first] * second[:, spec.second] * scale
    return products


def sorf(X: Rows, spec: SorfSpec, *, threads: int = 1) -> Real:
    """Return scales · (F D₃ F D₂ F D₁ x)[indices] for every row; see SorfSpec."""
    del threads
    dense = _dense(X)
    blocks = []
    for diagonals in spec.diagonals(dense.dtype):
        block = _padded(dense, spec.padded)
        for diagonal in diagonals:
            block = fwht(block * diagonal, spec.padded)
        blocks.append(block)
    kept: Real = np.concatenate(blocks, axis=1)[:, spec.indices]
    kept *= spec.scales.astype(dense.dtype)
    return kept


def _sine(quarters: Real) -> Real:
    """Return sin(2πb) for |b| ≤ ¼, by Horner's rule."""
    coefficients = _SINE_SINGLE if quarters.dtype == np.float32 else _SINE_DOUBLE
    squares = quarters * quarters
    result: Real = np.full_like(squares, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * squares + squares.dtype.type(coefficient)
    return result * quarters


def fourier(X: Rows, spec: SorfSpec, scale: float, *, threads: int = 1) -> Real:
    """Return scale · cos(2πp), then scale · sin(2πp), for every row, p = sorf(x) in turns."""
    del threads
    turns = sorf(X, spec)
    # Adding 1.5 · 2^52 (or 2^23) leaves no bits for a fraction: the sum is rounded to an integer.
    integers = turns.dtype.type(1.5 / np.finfo(turns.dtype).eps)
    remainder = turns - ((turns + integers) - integers)
    # Where turns are too many to have a fraction, the sum is off by more than half a turn.
    distance = np.minimum(np.abs(remainder), 0.5)
    cosines = _sine(0.25 - distance)
    sines = np.copysign(_sine(np.minimum(distance, 0.5 - distance)), remainder)
    features: Real = np.concatenate([cosines, sines], axis=1)
    features *= turns.dtype.type(scale)
    return features


def scatter(X: Rows, spec: ScatterSpec, *, threads: int = 1) -> Real:
    """Return scale · (signed sums of the coordinates of every row)."""
    del threads
    dense = _dense(X)
    out = np.zeros((dense.shape[0], spec.size), dtype=dense.dtype)
    for column, targets in zip(dense.T, spec.table, strict=False):
        for target in targets:
            out[:, target // 2] += -column if target % 2 else column
    scaled: Real = out * dense.dtype.type(spec.scale)
    return scaled


def _sum_by_eights(values: Real) -> Real:
    """Sum rows by eight partial sums, position modulo eight, then a tree of additions."""
    length = -(-values.shape[1] // 8) * 8
    parts = np.zeros((len(values), 8), dtype=values.dtype)
    for start in range(0, length, 8):
        chunk = values[:, start : start + 8]
        parts[:, : chunk.shape[1]] += chunk
    even = (parts[:, 0] + parts[:, 4]) + (parts[:, 2] + parts[:, 6])
    odd = (parts[:, 1] + parts[:, 5]) + (parts[:, 3] + parts[:, 7])
    total: Real = even + odd
    return total


def row_moments(
    X: Rows, direction: NDArray[np.float64], *, threads: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ‖x‖² and ⟨x, direction⟩ of every row, summed in double precision."""
    del threads
    dense = _dense(X).astype(np.float64)
    return _sum_by_eights(dense * dense), _sum_by_eights(dense * direction)


def product(X: Rows, matrix: Real, *, threads: int = 1) -> Real:
    """Return X @ matrix, each sum taken in the order of the columns of X."""
    del threads
    dense = _dense(X)
    out = np.zeros((dense.shape[0], matrix.shape[1]), dtype=dense.dtype)
    for column, matrix_row in zip(dense.T, matrix, strict=True):
        out += column[:, None] * matrix_row
    return out


class _Register:
    """Rows whose true values are `values` · `track`; the norms of `values` stay near one."""

    def __init__(self, values: Real, size: int, track: NDArray[np.float64]) -> None:
        self.values = values
        self.track = track
        squares = _sum_by_eights(values[:, :size] * values[:, :size])
        self.norms = np.sqrt(squares.astype(np.float64))


def _inverse_or_zero(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


class ReferenceChain:
    """Algorithm 1 as a straight-line program, one step after the other on all rows."""

    def __init__(self, spec: ChainSpec, dtype: np.dtype[Any]) -> None:
        self._spec = spec
        self._dtype = dtype

    def apply(
        self,
        X: Real,
        row_scale: Real,
        row_shift: Real,
        block_scales: NDArray[np.float64],
        out: Real,
        threads: int,
    ) -> bool:
        """Write the blocks of every row into `out`; False if a value overflows its dtype."""
        del threads
        spec = self._spec
        registers = {0: self._leaf(X, row_scale, row_shift)}
        representable = True
        for done in range(len(spec.steps) + 1):
            if done:
                left, right, target, size = spec.steps[done - 1]
                registers[target] = self._pair(registers[left], registers[right], size)
            for b in np.flatnonzero(spec.outputs[:, 4] == done):
                source, start, size, offset, _ = spec.outputs[b]
                values = registers[source].values[:, start : start + size]
                factor, fits = self._factor(values, registers[source], block_scales[:, b])
                out[:, offset : offset + size] = values * factor[:, None]
                representable = representable and fits
        return representable

    def _leaf(self, X: Real, row_scale: Real, row_shift: Real) -> _Register:
        spec = self._spec
        if isinstance(spec.leaf, ScatterSpec):
            leaf = _padded(scatter(X, spec.leaf) * row_scale[:, None], spec.leaf_length)
        elif spec.leaf is not None:
            leaf = srht(X * row_scale[:, None], spec.leaf)
        else:
            leaf = _padded(X * row_scale[:, None], spec.leaf_length)
        if len(spec.leaf_shift):
            leaf = leaf + row_shift[:, None] * spec.leaf_shift.astype(self._dtype)
        return _Register(leaf, spec.leaf_length, np.ones(len(X)))

    def _pair(self, left: _Register, right: _Register, size: int) -> _Register:
        pair = self._spec.pair
        transforms = []
        for register, signs in ((left, pair.signs_first), (right, pair.signs_second)):
            length = register.values.shape[1]
            # A register shorter than S is one padded with zeros: H repeats itself there.
            transforms.append(fwht(register.values * signs[:length].astype(self._dtype), length))
        first = transforms[0][:, pair.first[:size] % transforms[0].shape[1]]
        second = transforms[1][:, pair.second[:size] % transforms[1].shape[1]]
        norms = left.norms * right.norms
        scale = _inverse_or_zero(np.sqrt(float(pair.length)) * norms).astype(self._dtype)
        values = np.zeros((len(first), pair.length), dtype=self._dtype)
        values[:, :size] = first * second * scale[:, None]
        return _Register(values, size, left.track * right.track * norms)

    def _factor(
        self, values: Real, register: _Register, scales: NDArray[np.float64]
    ) -> tuple[Real, bool]:
        norms = np.sqrt(_sum_by_eights(values * values).astype(np.float64))
        if self._spec.preserve_norms:
            factor = np.divide(scales, norms, out=np.zeros_like(scales), where=norms > 0)
        else:
            factor = np.where(norms > 0, scales * register.track, 0.0)
        sizes = np.abs(factor) * np.maximum(norms, 1.0)
        fits = bool(np.all(sizes <= np.finfo(self._dtype).max))
        with np.errstate(over="ignore"):
            return factor.astype(self._dtype), fits


def make_chain(spec: ChainSpec, dtype: np.dtype[Any]) -> ReferenceChain:
    """Return the reference chain for `dtype`."""
    return ReferenceChain(spec, dtype)
