"""The specification: every kernel in plain NumPy, same arguments and draws as the compiled one.

Sums are taken in the same order as in the compiled kernels, so float64 results agree to the bit,
except for rows longer than 2**16, which the compiled SRHT transforms in stretches, and for sparse
rows short enough to be summed directly.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real, Rows, divide_or_zero
from powersketch.routines.fixed_order import dense_rows, scatter, sine, sum_by_eights
from powersketch.routines.reference_convolution import convolve
from powersketch.routines.reference_exponential import gaussian_values
from powersketch.routines.reference_tensor_sketch import make_tensor_sketch
from powersketch.routines.specs import (
    ChainSpec,
    PairSpec,
    RowStructure,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
)

__all__ = [
    "ReferenceChain",
    "convolve",
    "fourier",
    "fwht",
    "gaussian_values",
    "make_chain",
    "make_tensor_sketch",
    "product",
    "row_moments",
    "row_structure",
    "scatter",
    "sorf",
    "srht",
    "tensor_srht",
]


def row_structure(indptr: NDArray[np.int64], indices: NDArray[Any], bound: int) -> RowStructure:
    """Return whether all indices are from 0 to bound − 1, and in which order those of a row are."""
    outside = np.flatnonzero((indices < 0) | (indices >= bound))
    if outside.size:
        return RowStructure(int(outside[0]), False, False)
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    same_row = rows[1:] == rows[:-1]
    steps = np.diff(indices.astype(np.int64))[same_row]
    ascending = bool((steps >= 0).all())
    return RowStructure(-1, ascending, ascending and bool((steps > 0).all()))


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
    dense = dense_rows(X)
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
    dense = dense_rows(X)
    blocks = []
    for diagonals in spec.diagonals(dense.dtype):
        block = _padded(dense, spec.padded)
        for diagonal in diagonals:
            block = fwht(block * diagonal, spec.padded)
        blocks.append(block)
    kept: Real = np.concatenate(blocks, axis=1)[:, spec.indices]
    kept *= spec.scales.astype(dense.dtype)
    return kept


def fourier(X: Rows, spec: SorfSpec, scale: float, *, threads: int = 1) -> Real:
    """Return scale · cos(2πp), then scale · sin(2πp), for every row, p = sorf(x) in turns."""
    del threads
    turns = sorf(X, spec)
    # Adding 1.5 · 2^52 (or 2^23) leaves no bits for a fraction: the sum is rounded to an integer.
    integers = turns.dtype.type(1.5 / np.finfo(turns.dtype).eps)
    remainder = turns - ((turns + integers) - integers)
    # Where turns are too many to have a fraction, the sum is off by more than half a turn.
    distance = np.minimum(np.abs(remainder), 0.5)
    cosines = sine(0.25 - distance)
    sines = np.copysign(sine(np.minimum(distance, 0.5 - distance)), remainder)
    features: Real = np.concatenate([cosines, sines], axis=1)
    features *= turns.dtype.type(scale)
    return features


def row_moments(
    X: Rows, direction: NDArray[np.float64], *, threads: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ‖x‖² and ⟨x, direction⟩ of every row, summed in double precision."""
    del threads
    dense = dense_rows(X).astype(np.float64)
    return sum_by_eights(dense * dense), sum_by_eights(dense * direction)


def product(X: Rows, matrix: Real, *, threads: int = 1) -> Real:
    """Return X @ matrix, each sum taken in the order of the columns of X."""
    del threads
    dense = dense_rows(X)
    out = np.zeros((dense.shape[0], matrix.shape[1]), dtype=dense.dtype)
    for column, matrix_row in zip(dense.T, matrix, strict=True):
        out += column[:, None] * matrix_row
    return out


class _Register:
    """Rows whose true values are `values` · `track`; the norms of `values` stay near one."""

    def __init__(self, values: Real, size: int, track: NDArray[np.float64]) -> None:
        self.values = values
        self.track = track
        squares = sum_by_eights(values[:, :size] * values[:, :size])
        self.norms = np.sqrt(squares.astype(np.float64))


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
        scale = divide_or_zero(1.0, np.sqrt(float(pair.length)) * norms).astype(self._dtype)
        values = np.zeros((len(first), pair.length), dtype=self._dtype)
        values[:, :size] = first * second * scale[:, None]
        return _Register(values, size, left.track * right.track * norms)

    def _factor(
        self, values: Real, register: _Register, scales: NDArray[np.float64]
    ) -> tuple[Real, bool]:
        norms = np.sqrt(sum_by_eights(values * values).astype(np.float64))
        if self._spec.preserve_norms:
            factor = divide_or_zero(scales, norms)
        else:
            factor = np.where(norms > 0, scales * register.track, 0.0)
        sizes = np.abs(factor) * np.maximum(norms, 1.0)
        fits = bool(np.all(sizes <= np.finfo(self._dtype).max))
        with np.errstate(over="ignore"):
            return factor.astype(self._dtype), fits


def make_chain(spec: ChainSpec, dtype: np.dtype[Any]) -> ReferenceChain:
    """Return the reference chain for `dtype`."""
    return ReferenceChain(spec, dtype)
