"""The steps of a complex Fourier transform in NumPy, one for each factor of its length.

They run from long strides to short ones, in place: frequencies end up where `fourier_tables` says,
and the inverse transform starts from there. Nothing but +, − and × is used, in a fixed order.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Real


class Complex(NamedTuple):
    """Complex numbers as two real arrays: NumPy's own products are fused on some machines."""

    re: Real
    im: Real

    @classmethod
    def of_pairs(cls, pairs: NDArray[np.float64], dtype: np.dtype[Any]) -> "Complex":
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


def _steps(radices: list[int], twiddles: NDArray[np.float64], like: Complex) -> list[_Step]:
    steps, start = [], 0
    span, dtype = like.re.shape[1], like.re.dtype
    for radix in radices:
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


def forward_steps(values: Complex, radices: list[int], twiddles: NDArray[np.float64]) -> Complex:
    """Return the transform of every row, its frequencies at their positions."""
    for step in _steps(radices, twiddles, values):
        blocks = _small_transform(_blocks(values, step), step.roots)
        for p, block in enumerate(blocks[1:]):
            turned = block.at(np.s_[:, :, 1:]).times(step.twiddles.at(np.s_[:, p]))
            block.re[:, :, 1:], block.im[:, :, 1:] = turned
        values = _joined(blocks, values)
    return values


def inverse_steps(values: Complex, radices: list[int], twiddles: NDArray[np.float64]) -> Complex:
    """Undo `forward_steps`, up to a factor of the length."""
    for step in reversed(_steps(radices, twiddles, values)):
        blocks = [Complex(*(part.copy() for part in block)) for block in _blocks(values, step)]
        for p, block in enumerate(blocks[1:]):
            turned = block.at(np.s_[:, :, 1:]).times_conjugate(step.twiddles.at(np.s_[:, p]))
            block.re[:, :, 1:], block.im[:, :, 1:] = turned
        results = _small_transform(blocks, step.roots)
        # With conjugate roots a transform gives the same numbers in the opposite order.
        values = _joined([results[0], *results[:0:-1]], values)
    return values
