"""The tables of Fourier transforms of any length, for both implementations.

A transform of even length m is one of m/2 complex numbers. A length with a large prime factor is
turned into a convolution of a convenient length [Blu70]. Nothing but +, −, ×, / and square roots
goes into the tables, so that they are the same on every machine.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from powersketch.routines.fixed_order import sine
from powersketch.routines.fourier_steps import Complex, forward_steps

LARGEST_RADIX = 31  # kLargestRadix in native/plans.hpp; a step of radix r costs r² per r numbers
_CONVENIENT = (2, 3, 5)


@dataclass(frozen=True, eq=False)
class FourierTables:
    """What a transform of `length` real numbers needs; complex numbers are pairs in a last axis.

    Attributes
    ----------
    radices : array of int32
        The factors of the complex transform's length, or of the convolution's.
    twiddles : array of float64, shape (count, 2)
        For every radix r: the r-th roots of unity if r is odd, then the factors between this step
        and the next, r − 1 for each place but the first.
    positions : array of int32
        Where the complex transform leaves every frequency.
    roots : array of float64, shape (length // 4 + 1, 2)
        The roots of unity of order `length`, which make two transforms of real numbers out of a
        complex one; empty if the length is odd.
    chirp, chirp_spectrum : arrays of float64
        exp(−πi j²/n), and the transform of its conjugate over the convolution's length; empty
        unless the length has a large prime factor.
    """

    length: int
    radices: NDArray[np.int32]
    twiddles: NDArray[np.float64]
    positions: NDArray[np.int32]
    roots: NDArray[np.float64]
    chirp: NDArray[np.float64]
    chirp_spectrum: NDArray[np.float64]


def complex_length(length: int) -> int:
    """Return the length of the complex transform behind a real one."""
    return length if length % 2 else length // 2


def roots_of_unity(exponents: NDArray[np.int64], order: int) -> NDArray[np.float64]:
    """Return exp(−2πi k / order) for every exponent k, as pairs: the same bits on every machine.

    Angles are brought to the first eighth of a turn as integers, so that symmetries are exact.
    """
    turns = exponents % order
    half = np.minimum(turns, order - turns)  # of an order: the distance from a whole turn
    quarter = np.minimum(2 * half, order - 2 * half)  # of 2 orders: from a half or a whole one
    eighth = np.minimum(2 * quarter, order - 2 * quarter)  # of 4 orders: from any quarter
    small = sine(eighth / (4.0 * order))
    large = np.sqrt((1.0 - small) * (1.0 + small))
    swapped = 4 * quarter > order
    cosine, minus_sine = np.where(swapped, small, large), np.where(swapped, large, small)
    cosine = np.where(4 * half > order, -cosine, cosine)
    minus_sine = np.where(2 * turns < order, 0.0 - minus_sine, minus_sine)
    return np.stack([cosine, minus_sine], axis=-1)


@lru_cache(maxsize=64)
def fourier_tables(length: int) -> FourierTables:
    """Return the tables of a length; asking again costs nothing."""
    count = complex_length(length)
    radices = _radices(count)
    chirp = chirp_spectrum = np.empty((0, 2))
    if max(radices, default=1) > LARGEST_RADIX:
        positions = np.arange(count)
        radices = _radices(_convenient_length(2 * count - 1))
        chirp = roots_of_unity(np.arange(count) ** 2 % (2 * count), 2 * count)
        chirp_spectrum = _chirp_spectrum(chirp, radices)
    else:
        positions = _positions(radices)
    quarter = np.arange(0 if length % 2 else count // 2 + 1)
    return FourierTables(
        length=length,
        radices=np.array(radices, dtype=np.int32),
        twiddles=_twiddles(radices),
        positions=positions.astype(np.int32),
        roots=roots_of_unity(quarter, length),
        chirp=chirp,
        chirp_spectrum=chirp_spectrum,
    )


def _radices(length: int) -> list[int]:
    """Return the factors of the length: odd primes, 2 if need be, then as many 4 as there are.

    The last step has no twiddle factors; it pays that it is a large one.
    """
    odd, twos = list[int](), 0
    while length % 2 == 0:
        length, twos = length // 2, twos + 1
    factor = 3
    while length > 1:
        if factor * factor > length:
            factor = length
        if length % factor == 0:
            odd.append(factor)
            length //= factor
        else:
            factor += 2
    return odd + [2] * (twos % 2) + [4] * (twos // 2)


def _convenient_length(least: int) -> int:
    """Return the smallest product of 2, 3 and 5 that is not below `least`."""
    length = least
    while True:
        rest = length
        for factor in _CONVENIENT:
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return length
        length += 1


def _positions(radices: list[int]) -> NDArray[np.int64]:
    """Return where each frequency is: number p of the first step's r blocks has those ≡ p mod r."""
    positions = np.zeros(1, dtype=np.int64)
    for radix in reversed(radices):
        span = len(positions)
        positions = (positions[:, None] + span * np.arange(radix)).ravel()
    return positions


def _twiddles(radices: list[int]) -> NDArray[np.float64]:
    parts = [np.empty((0, 2))]
    order = int(np.prod(radices, dtype=np.int64))
    for radix in radices:
        if radix % 2:
            parts.append(roots_of_unity(np.arange(radix), radix))
        places = np.arange(1, order // radix)[:, None] * np.arange(1, radix)
        parts.append(roots_of_unity(places, order).reshape(-1, 2))
        order //= radix
    return np.concatenate(parts)


def _chirp_spectrum(chirp: NDArray[np.float64], radices: list[int]) -> NDArray[np.float64]:
    """Return the transform of the conjugate chirp, wrapped around, over the convolution's length.

    It is divided by that length, which the convolution then need not be.
    """
    count, length = len(chirp), int(np.prod(radices, dtype=np.int64))
    wrapped = np.zeros((2, 1, length))
    wrapped[:, 0, :count] = chirp.T
    wrapped[:, 0, length - count + 1 :] = chirp[:0:-1].T
    spectrum = forward_steps(Complex(wrapped[0], -wrapped[1]), radices, _twiddles(radices))
    pairs: NDArray[np.float64] = np.stack(spectrum, axis=-1)[0] / length
    return pairs
