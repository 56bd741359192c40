"""The specification of TensorSketch and of its Fourier transforms, in plain NumPy.

The steps of a transform, one for each factor of its length, run from long strides to short ones, in
place: frequencies end up where `fourier_tables` says, and the inverse transform starts from there.
Sums and products are taken in the same order as in the compiled routines, so results agree to the
bit.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real, Rows, Vector, divide_or_zero
from powersketch.routines.fourier_tables import FourierTables, complex_length, fourier_tables
from powersketch.routines.reference.transforms import (
    dense_rows,
    representable_factor,
    scatter,
    sum_by_eights,
)
from powersketch.routines.specs import ScatterSpec, TensorSketchSpec, hashed_table

_LARGEST_SHIFT = 60  # of the exponent in one step
_EXPONENT_LIMIT = 10_000  # beyond it every double is zero or infinite


class Complex(NamedTuple):
    """Complex numbers as two real arrays: NumPy's own products are fused on some machines."""

    re: Real
    im: Real

    @classmethod
    def of_pairs(cls, pairs: Float64, dtype: np.dtype[Any]) -> "Complex":
        """Return the numbers of a table, whose last axis holds both parts."""
        table: Real = pairs.astype(dtype)
        return cls(table[..., 0], table[..., 1])

    def times(self, other: "Complex") -> "Complex":
        """Return the products."""
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def times_conjugate(self, other: "Complex") -> "Complex":
        """Return the products with the conjugates."""
        return Complex(
            self.re * other.re + self.im * other.im, self.im * other.re - self.re * other.im
        )

    def at(self, index: Any) -> "Complex":
        """Return some of the numbers."""
        return Complex(self.re[index], self.im[index])


def _small_transform(values: list[Complex], roots: Complex) -> list[Complex]:
    """Return the transform of as many arrays as the radix says."""
    radix = len(values)
    if radix == 2:
        a, b = values
        return [Complex(a.re + b.re, a.im + b.im), Complex(a.re - b.re, a.im - b.im)]
    if radix == 4:
        (even, even_rest), (odd, odd_rest) = (_small_transform(values[i::2], roots) for i in (0, 1))
        first, third = _small_transform([even, odd], roots)
        # Minus i times the difference of the odd ones.
        turned = Complex(odd_rest.im, -odd_rest.re)
        second, fourth = _small_transform([even_rest, turned], roots)
        return [first, second, third, fourth]
    return _odd_transform(values, roots)


def _odd_transform(values: list[Complex], roots: Complex) -> list[Complex]:
    """Pair up frequencies p and r − p, for which the roots are conjugate to each other."""
    radix, half = len(values), len(values) // 2
    mirrored = [_small_transform([values[q], values[-q]], roots) for q in range(1, half + 1)]
    total = values[0]
    for sums, _ in mirrored:
        total = Complex(total.re + sums.re, total.im + sums.im)
    results = [total] * radix
    for p in range(1, half + 1):
        even, odd = values[0], Complex(np.zeros(1), np.zeros(1))
        for q, (sums, differences) in enumerate(mirrored, start=1):
            root = roots.at(p * q % radix)
            even = Complex(even.re + sums.re * root.re, even.im + sums.im * root.re)
            turned = Complex(differences.re * root.im, differences.im * root.im)
            odd = turned if q == 1 else Complex(odd.re + turned.re, odd.im + turned.im)
        results[p] = Complex(even.re - odd.im, even.im + odd.re)
        results[-p] = Complex(even.re + odd.im, even.im - odd.re)
    return results


class _Step(NamedTuple):
    radix: int
    span: int
    roots: Complex
    twiddles: Complex  # of shape (span − 1, radix − 1)


def _steps(tables: FourierTables, like: Complex) -> list[_Step]:
    steps, start, twiddles = [], 0, tables.twiddles
    span, dtype = like.re.shape[1], like.re.dtype
    for radix in tables.radices.tolist():
        span //= radix
        roots = twiddles[start : start + radix * (radix % 2)]
        start += len(roots)
        factors = twiddles[start : start + (span - 1) * (radix - 1)]
        start += len(factors)
        factors = factors.reshape(span - 1, radix - 1, 2)
        steps.append(
            _Step(radix, span, Complex.of_pairs(roots, dtype), Complex.of_pairs(factors, dtype))
        )
    return steps


def _blocks(values: Complex, step: _Step) -> list[Complex]:
    """Return what a step transforms: arrays of shape (rows, blocks, span), `radix` of them."""
    rows, length = values.re.shape
    shape = (rows, length // (step.radix * step.span), step.radix, step.span)
    blocks = Complex(values.re.reshape(shape), values.im.reshape(shape))
    return [blocks.at(np.s_[:, :, p]) for p in range(step.radix)]


def _joined(blocks: list[Complex], like: Complex) -> Complex:
    parts = (np.stack([block[part] for block in blocks], axis=2) for part in (0, 1))
    return Complex(*(part.reshape(like.re.shape) for part in parts))


def forward_steps(values: Complex, tables: FourierTables) -> Complex:
    """Return the transform of every row, its frequencies at their positions."""
    for step in _steps(tables, values):
        blocks = _small_transform(_blocks(values, step), step.roots)
        for p, block in enumerate(blocks[1:]):
            turned = block.at(np.s_[:, :, 1:]).times(step.twiddles.at(np.s_[:, p]))
            block.re[:, :, 1:], block.im[:, :, 1:] = turned
        values = _joined(blocks, values)
    return values


def inverse_steps(values: Complex, tables: FourierTables) -> Complex:
    """Undo `forward_steps`, up to a factor of the length."""
    for step in reversed(_steps(tables, values)):
        blocks = [Complex(*(part.copy() for part in block)) for block in _blocks(values, step)]
        for p, block in enumerate(blocks[1:]):
            turned = block.at(np.s_[:, :, 1:]).times_conjugate(step.twiddles.at(np.s_[:, p]))
            block.re[:, :, 1:], block.im[:, :, 1:] = turned
        results = _small_transform(blocks, step.roots)
        # With conjugate roots a transform gives the same numbers in the opposite order.
        values = _joined([results[0], *results[:0:-1]], values)
    return values


def real_spectrum(values: Real, tables: FourierTables) -> Complex:
    """Return the frequencies 0 … ⌊length/2⌋ of real rows; of twice the rows if the length is even.

    With an even length the first and the last one, both real, share a place.
    """
    dtype, count = values.dtype, complex_length(tables.length)
    if tables.length % 2:
        whole = forward_steps(Complex(values, np.zeros_like(values)), tables)
        return whole.at(np.s_[:, tables.positions[: count // 2 + 1]])
    # Even and odd places are the real and imaginary parts of one complex transform.
    packed = Complex(values[:, ::2], values[:, 1::2])
    packed = forward_steps(packed, tables).at(np.s_[:, tables.positions])
    first = Complex(packed.re[:, :1], packed.im[:, :1])
    result = Complex(np.empty_like(packed.re), np.empty_like(packed.im))
    two = dtype.type(2)
    result.re[:, :1], result.im[:, :1] = (first.re + first.im) * two, (first.re - first.im) * two
    k = np.arange(1, count // 2 + 1)
    a, b = packed.at(np.s_[:, k]), packed.at(np.s_[:, count - k])
    sums, differences = Complex(a.re + b.re, a.im - b.im), Complex(a.re - b.re, a.im + b.im)
    turned = Complex.of_pairs(tables.roots[1:], dtype).times(differences)
    # The frequency n − k is written first: where both are the same place, k wins.
    result.re[:, count - k], result.im[:, count - k] = sums.re - turned.im, -(sums.im + turned.re)
    result.re[:, k], result.im[:, k] = sums.re + turned.im, sums.im - turned.re
    return result


def from_real_spectrum(spectrum: Complex, tables: FourierTables) -> Real:
    """Return the real rows with this spectrum, times the length."""
    dtype, count = spectrum.re.dtype, complex_length(tables.length)
    packed = Complex(*(np.empty((len(spectrum.re), count), dtype=dtype) for _ in range(2)))
    if tables.length % 2:
        k = np.arange(count // 2 + 1)
        mirrored = tables.positions[(count - k) % count]
        packed.re[:, mirrored], packed.im[:, mirrored] = spectrum.re, -spectrum.im
        packed.re[:, tables.positions[k]], packed.im[:, tables.positions[k]] = spectrum
        return inverse_steps(packed, tables).re
    first, last = spectrum.re[:, 0], spectrum.im[:, 0]
    packed.re[:, tables.positions[0]] = first + last
    packed.im[:, tables.positions[0]] = first - last
    k = np.arange(1, count // 2 + 1)
    a, b = spectrum.at(np.s_[:, k]), spectrum.at(np.s_[:, count - k])
    sums, differences = Complex(a.re + b.re, a.im - b.im), Complex(a.re - b.re, a.im + b.im)
    turned = differences.times_conjugate(Complex.of_pairs(tables.roots[1:], dtype))
    here, mirrored = tables.positions[k], tables.positions[count - k]
    packed.re[:, mirrored], packed.im[:, mirrored] = sums.re + turned.im, turned.re - sums.im
    packed.re[:, here], packed.im[:, here] = sums.re - turned.im, sums.im + turned.re
    result = inverse_steps(packed, tables)
    return np.stack(result, axis=2).reshape(len(result.re), tables.length)


def halved(values: Real, length: int) -> Real:
    """Return half the values if the length is even, where spectra come out twice as large."""
    return values if length % 2 else values * values.dtype.type(0.5)


def spectrum_product(a: Complex, b: Complex, length: int) -> Complex:
    """Return the products of frequencies; two real ones share the first place if m is even."""
    result = a.times(b)
    if length % 2 == 0:
        result.re[:, 0], result.im[:, 0] = a.re[:, 0] * b.re[:, 0], a.im[:, 0] * b.im[:, 0]
    return result


def _largest(spectrum: Complex) -> Real:
    """Return the largest absolute value among the real and imaginary parts of every row."""
    both = np.maximum(np.abs(spectrum.re).max(axis=1), np.abs(spectrum.im).max(axis=1))
    largest: Real = both
    return largest


def _exponents(largest: Real) -> NDArray[np.int64]:
    """Return the e with which largest · 2^−e is in [½, 1), if that is not too far off."""
    _, exponents = np.frexp(np.where(np.isfinite(largest), largest, 0))
    return np.clip(exponents, -_LARGEST_SHIFT, _LARGEST_SHIFT).astype(np.int64)


class TensorSketch:
    """z = IFFT(Π_t FFT(C_t u)) for every block, one factor after the other on all rows."""

    def __init__(self, spec: TensorSketchSpec, dtype: np.dtype[Any]) -> None:
        self._spec = spec
        self._dtype = dtype

    def apply(
        self,
        X: Rows,
        row_scale: Real,
        row_shift: Real,
        block_scales: Vector,
        out: Real,
        threads: int,
    ) -> bool:
        """Write the blocks of every row into `out`; False if a value overflows its dtype."""
        del threads
        dense = dense_rows(X)
        ends = np.cumsum(self._spec.blocks[:, 0])
        representable = True
        for b, (degree, size, offset) in enumerate(self._spec.blocks.tolist()):
            keys = self._spec.keys[ends[b] - degree : ends[b]].tolist()
            values, exponents = self._block(dense, keys, size, row_scale, row_shift)
            length = size if degree > 1 else 1
            factor, fits = self._factor(values, exponents, block_scales[:, b], length)
            out[:, offset : offset + size] = values * factor[:, None]
            representable = representable and fits
        return representable

    def _block(
        self, X: Real, keys: list[int], size: int, row_scale: Real, row_shift: Real
    ) -> tuple[Real, NDArray[np.int64]]:
        """Return one block of all rows, up to its size and 2 to the powers also returned."""
        dtype, exponents = self._dtype, np.zeros(len(X), dtype=np.int64)
        if len(keys) == 1:
            return self._leaf(X, keys[0], size, row_scale, row_shift), exponents
        tables = fourier_tables(size)
        product, scale = None, np.ones(len(X), dtype=dtype)
        for key in keys:
            leaf = self._leaf(X, key, size, row_scale, row_shift) * halved(scale, size)[:, None]
            factor = real_spectrum(leaf, tables)
            product = factor if product is None else spectrum_product(product, factor, size)
            # The next factor takes the product's scale along, or degrees of 1000 would overflow.
            shift = _exponents(_largest(product))
            exponents += shift
            scale = np.ldexp(dtype.type(1), -shift.astype(np.int32)).astype(dtype)
        assert product is not None
        scaled = Complex(product.re * scale[:, None], product.im * scale[:, None])
        return from_real_spectrum(scaled, tables), exponents

    def _leaf(self, X: Real, key: int, size: int, row_scale: Real, row_shift: Real) -> Real:
        """Return C(row_scale · x + row_shift · direction)."""
        leaf = scatter(X, _count_sketch(key, X.shape[1], size)) * row_scale[:, None]
        direction = self._spec.direction
        if len(direction):
            moved = scatter(direction[None, :], _count_sketch(key, len(direction), size))
            leaf = leaf + row_shift[:, None] * moved.astype(self._dtype)
        return leaf

    def _factor(
        self,
        values: Real,
        exponents: NDArray[np.int64],
        scales: Vector,
        length: int,
    ) -> tuple[Real, bool]:
        norms = np.sqrt(sum_by_eights(values * values).astype(np.float64))
        if self._spec.preserve_norms:
            factor = divide_or_zero(scales, norms)
        else:
            exponents = np.clip(exponents, -_EXPONENT_LIMIT, _EXPONENT_LIMIT)
            with np.errstate(over="ignore", under="ignore"):
                factor = np.ldexp(scales / length, exponents.astype(np.int32))
            factor = np.where(norms > 0, factor, 0.0)
        return representable_factor(factor, norms, self._dtype)


def _count_sketch(key: int, columns: int, size: int) -> ScatterSpec:
    return ScatterSpec(hashed_table(key, columns, size, 1), size, 1.0)


def make_tensor_sketch(spec: TensorSketchSpec, dtype: np.dtype[Any]) -> TensorSketch:
    """Return the TensorSketch of rows of one dtype."""
    return TensorSketch(spec, dtype)
