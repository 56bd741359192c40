"""The specification of real Fourier transforms and circular convolutions, in plain NumPy.

Sums and products are taken in the same order as in the compiled kernels, so results agree to the
bit.
"""

import numpy as np

from powersketch.arrays import Real
from powersketch.routines.fourier_steps import Complex, forward_steps, inverse_steps
from powersketch.routines.fourier_tables import FourierTables, complex_length, fourier_tables


def _transform(values: Complex, tables: FourierTables, *, inverse: bool) -> Complex:
    """Transform every row, frequencies at their positions, the inverse up to the length."""
    steps = tables.radices.tolist(), tables.twiddles
    if not len(tables.chirp):
        return (inverse_steps if inverse else forward_steps)(values, *steps)
    # exp(−2πi jk/n) = c_j c_k conj(c_(k−j)) with the chirp c [Blu70].
    chirp, spectrum = (
        Complex.of_pairs(table, values.re.dtype) for table in (tables.chirp, tables.chirp_spectrum)
    )
    times = Complex.times_conjugate if inverse else Complex.times
    padding = ((0, 0), (0, len(spectrum.re) - len(chirp.re)))
    padded = Complex(*(np.pad(part, padding) for part in times(values, chirp)))
    product = times(forward_steps(padded, *steps), spectrum)
    kept = inverse_steps(product, *steps).at(np.s_[:, : len(chirp.re)])
    return times(kept, chirp)


def real_spectrum(values: Real, tables: FourierTables) -> Complex:
    """Return the frequencies 0 … ⌊length/2⌋ of real rows; of twice the rows if the length is even.

    With an even length the first and the last one, both real, share a place.
    """
    dtype, count = values.dtype, complex_length(tables.length)
    if tables.length % 2:
        whole = _transform(Complex(values, np.zeros_like(values)), tables, inverse=False)
        return whole.at(np.s_[:, tables.positions[: count // 2 + 1]])
    # Even and odd places are the real and imaginary parts of one complex transform.
    packed = Complex(values[:, ::2], values[:, 1::2])
    packed = _transform(packed, tables, inverse=False).at(np.s_[:, tables.positions])
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
        return _transform(packed, tables, inverse=True).re
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
    result = _transform(packed, tables, inverse=True)
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


def convolve(A: Real, B: Real, *, threads: int = 1) -> Real:
    """Return the circular convolution of every pair of rows, which have the same length."""
    del threads
    length = A.shape[1]
    tables = fourier_tables(length)
    first, second = (real_spectrum(halved(rows, length), tables) for rows in (A, B))
    convolved = from_real_spectrum(spectrum_product(first, second, length), tables)
    convolved *= A.dtype.type(1.0 / length)
    return convolved
