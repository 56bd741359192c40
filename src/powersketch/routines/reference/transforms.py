"""The specification of sums, transforms, chains and exponentials, in plain NumPy.

Sums are taken in the same order as in the compiled routines, so results agree to the bit, except
for rows longer than 2**16, which the compiled SRHT transforms in stretches, and for sparse rows
short enough to be summed directly.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Rows, Vector, divide_or_zero, is_sparse
from powersketch.routines.fourier_tables import sine
from powersketch.routines.specs import (
    ChainSpec,
    PairSpec,
    RowStructure,
    ScatterSpec,
    SorfSpec,
    SrhtSpec,
)

_LEAST = -746.0  # of the arguments whose exponential may not be zero: 2^-1075 is exp(-745.13…)
_INVERSE_OF_LOG_2 = 1.4426950408889634
# Log 2 in two parts: an integer below 2^11 times the first one, a multiple of 2^-42, is exact.
_LOG_2_HIGH = 0.6931471805598903
_LOG_2_LOW = 5.497923018708371e-14
# Added to a number, 1.5 · 2^52 leaves no bits for a fraction; 2046 is twice the exponents' bias.
_INTEGERS = 1.5 * 2.0**52 + 2046.0
# Σ c_k r^k ≈ (e^r - 1 - r) / r² for |r| ≤ ½ log 2, by interpolation in the Chebyshev nodes: e^r
# from it is off by 1.6e-17 of itself, before rounding.
_COEFFICIENTS = (
    0.5000000000000001,
    0.16666666666666669,
    0.041666666666624164,
    0.008333333333330065,
    0.0013888888917196719,
    0.00019841269863040545,
    2.4801521322368448e-05,
    2.7557268480309837e-06,
    2.7620075880100385e-07,
    2.510037583265122e-08,
)


def dense_rows(X: Rows) -> Real:
    """Return the rows as one dense array."""
    dense: Real = X.toarray() if is_sparse(X) else X
    return dense


def scatter(X: Rows, spec: ScatterSpec, *, threads: int = 1) -> Real:
    """Return scale · (signed sums of the coordinates of every row)."""
    del threads
    dense = dense_rows(X)
    out = np.zeros((dense.shape[0], spec.size), dtype=dense.dtype)
    for column, targets in zip(dense.T, spec.table, strict=False):
        for target in targets:
            out[:, target // 2] += -column if target % 2 else column
    scaled: Real = out * dense.dtype.type(spec.scale)
    return scaled


def sum_by_eights(values: Real) -> Real:
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
    signs = spec.signs_as(dense.dtype)[: dense.shape[1]]
    sampled: Real = fwht(dense * signs, spec.padded)[:, spec.indices]
    sampled *= dense.dtype.type(spec.scale)
    return sampled


def tensor_srht(A: Real, B: Real, spec: PairSpec, *, threads: int = 1) -> Real:
    """Return S(a ⊗ b) for every pair of rows, S the TensorSRHT of `spec`."""
    del threads
    first_signs, second_signs = spec.signs_as(A.dtype)
    first = fwht(A * first_signs[: A.shape[1]], spec.length)
    second = fwht(B * second_signs[: B.shape[1]], spec.length)
    scale = A.dtype.type(1.0 / np.sqrt(len(spec.first)))
    products: Real = first[:, spec.first] * second[:, spec.second] * scale
    return products


def sorf(X: Rows, spec: SorfSpec, *, threads: int = 1) -> Real:
    """Return scales · (F D₃ F D₂ F D₁ x)[indices] for every row; see SorfSpec."""
    del threads
    dense = dense_rows(X)
    blocks = []
    all_diagonals, scales = spec.arrays_as(dense.dtype)
    for diagonals in all_diagonals:
        block = _padded(dense, spec.padded)
        for diagonal in diagonals:
            block = fwht(block * diagonal, spec.padded)
        blocks.append(block)
    kept: Real = np.concatenate(blocks, axis=1)[:, spec.indices]
    kept *= scales
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


def squared_norms(X: Rows, *, threads: int = 1) -> Vector:
    """Return ‖x‖² of every row, summed in double precision."""
    del threads
    dense = dense_rows(X).astype(np.float64)
    return sum_by_eights(dense * dense)


def row_moments(X: Rows, direction: Vector, *, threads: int = 1) -> tuple[Vector, Vector]:
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

    def __init__(self, values: Real, size: int, track: Vector) -> None:
        self.values = values
        self.track = track
        squares = sum_by_eights(values[:, :size] * values[:, :size])
        self.norms = np.sqrt(squares.astype(np.float64))


class Chain:
    """Algorithm 1 as a straight-line program, one step after the other on all rows."""

    def __init__(self, spec: ChainSpec, dtype: np.dtype[Any]) -> None:
        self._spec = spec
        self._dtype = dtype

    def apply(
        self,
        X: Real,
        row_scale: Real,
        row_shift: Real,
        block_scales: Vector,
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
        for register, signs in zip((left, right), pair.signs_as(self._dtype), strict=True):
            length = register.values.shape[1]
            # A register shorter than S is one padded with zeros: H repeats itself there.
            transforms.append(fwht(register.values * signs[:length], length))
        first = transforms[0][:, pair.first[:size] % transforms[0].shape[1]]
        second = transforms[1][:, pair.second[:size] % transforms[1].shape[1]]
        norms = left.norms * right.norms
        scale = divide_or_zero(1.0, np.sqrt(float(pair.length)) * norms).astype(self._dtype)
        values = np.zeros((len(first), pair.length), dtype=self._dtype)
        values[:, :size] = first * second * scale[:, None]
        return _Register(values, size, left.track * right.track * norms)

    def _factor(self, values: Real, register: _Register, scales: Vector) -> tuple[Real, bool]:
        norms = np.sqrt(sum_by_eights(values * values).astype(np.float64))
        if self._spec.preserve_norms:
            factor = divide_or_zero(scales, norms)
        else:
            factor = np.where(norms > 0, scales * register.track, 0.0)
        return representable_factor(factor, norms, self._dtype)


def representable_factor(factor: Vector, norms: Vector, dtype: np.dtype[Any]) -> tuple[Real, bool]:
    """Return the factors of rows in a dtype, and whether the features will fit it."""
    sizes = np.abs(factor) * np.maximum(norms, 1.0)
    fits = bool(np.all(sizes <= np.finfo(dtype).max))
    with np.errstate(over="ignore"):
        return factor.astype(dtype), fits


def make_chain(spec: ChainSpec, dtype: np.dtype[Any]) -> Chain:
    """Return the chain of rows of one dtype."""
    return Chain(spec, dtype)


def gaussian_values(
    products: Float64,
    left: Vector,
    right: Vector,
    gamma: float,
    dtype: np.dtype[Any],
    *,
    threads: int = 1,
) -> Real:
    """Return exp(-gamma · max(left_i + right_j - 2 products_ij, 0)), rounded to `dtype` once."""
    del threads
    with np.errstate(over="ignore", invalid="ignore"):
        distances = (-2.0 * products + left[:, np.newaxis]) + right
        # Rounding may leave a distance just below zero; what is not a number stays that.
        values: Real = _exponential(np.maximum(distances, 0.0) * -gamma).astype(dtype, copy=False)
    return values


def gaussian_in_place(
    products: Real, left: Vector, right: Vector, gamma: float, *, threads: int = 1
) -> None:
    """Write the values of :func:`gaussian_values` where their products are, in the same dtype."""
    exact = products.astype(np.float64, copy=False)
    products[...] = gaussian_values(exact, left, right, gamma, products.dtype, threads=threads)


def _exponential(x: Float64) -> Float64:
    """Return exp(x) for x ≤ 0, within a unit of the last place; NaN stays NaN."""
    zero = x < _LEAST
    x = np.where(zero, 0.0, x)
    # x = n log 2 + remainder, and the last bits of `shifted` are n + 2046.
    shifted = x * _INVERSE_OF_LOG_2 + _INTEGERS
    n = shifted - _INTEGERS
    remainder = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    first, second = _factors(shifted)
    return np.where(zero, 0.0, _exponential_near_zero(remainder) * first * second)


def _exponential_near_zero(r: Float64) -> Float64:
    """Return exp(r) for |r| ≤ ½ log 2, in the order of Estrin's scheme."""
    c = _COEFFICIENTS
    square = r * r
    fourth = square * square
    low = (r * c[1] + c[0]) + square * (r * c[3] + c[2])
    middle = (r * c[5] + c[4]) + square * (r * c[7] + c[6])
    high = r * c[9] + c[8]
    terms = (low + fourth * middle) + (fourth * fourth) * high
    return (r + square * terms) + 1.0


def _factors(shifted: Float64) -> tuple[Float64, Float64]:
    """Return two powers of two whose product is 2^n.

    Their exponents with bias add up to n + 2046. Two are needed below the smallest normal number,
    where only the second one rounds.
    """
    bits = shifted.view(np.uint64)
    half = bits >> np.uint64(1)
    place = np.uint64(52)
    return (half << place).view(np.float64), ((bits - half) << place).view(np.float64)
