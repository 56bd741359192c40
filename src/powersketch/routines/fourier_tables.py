"""The tables of Fourier transforms, for both implementations, and the lengths that have them.

Lengths have no prime factor above 5. A transform of even length m is one of m/2 complex numbers.
Nothing but +, −, ×, / and square roots goes into the tables, so that they are the same on every
machine.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from powersketch.arrays import Float64, Real
from powersketch.exceptions import InputError

_PRIMES = (2, 3, 5)

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


def sine(quarters: Real) -> Real:
    """Return sin(2πb) for |b| ≤ ¼, by Horner's rule."""
    coefficients = _SINE_SINGLE if quarters.dtype == np.float32 else _SINE_DOUBLE
    squares = quarters * quarters
    result: Real = np.full_like(squares, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result * squares + squares.dtype.type(coefficient)
    return result * quarters


@dataclass(frozen=True, eq=False, repr=False)
class FourierTables:
    """What a transform of `length` real numbers needs; complex numbers are pairs in a last axis.

    Attributes
    ----------
    radices : array of int32
        The factors of the complex transform's length.
    twiddles : array of float64, shape (count, 2)
        For every radix r: the r-th roots of unity if r is odd, then the factors between this step
        and the next, r − 1 for each place but the first.
    positions : array of int32
        Where the complex transform leaves every frequency.
    roots : array of float64, shape (length // 4 + 1, 2)
        The roots of unity of order `length`, which make two transforms of real numbers out of a
        complex one; empty if the length is odd.
    """

    length: int
    radices: NDArray[np.int32]
    twiddles: Float64
    positions: NDArray[np.int32]
    roots: Float64


def _is_smooth(length: int) -> bool:
    for prime in _PRIMES:
        while length % prime == 0:
            length //= prime
    return length == 1


def smooth_parts(size: int) -> list[int]:
    """Return lengths that have transforms and add up to `size`, few of them, the largest first.

    >>> smooth_parts(96), smooth_parts(97), smooth_parts(71)
    ([96], [96, 1], [64, 6, 1])
    """
    if _is_smooth(size):
        return [size]
    shorter = [length for length in _smooth_lengths(size) if length < size]
    for length in shorter:
        if _is_smooth(size - length):
            return [length, size - length]
    return [shorter[0], *smooth_parts(size - shorter[0])]


def _smooth_lengths(most: int) -> list[int]:
    """Return the products of 2, 3 and 5 up to `most`, the largest first."""
    lengths = [1]
    for prime in _PRIMES:
        powers = [prime**k for k in range(most.bit_length())]
        lengths = [a * b for b in powers for a in lengths if a * b <= most]
    return sorted(lengths, reverse=True)


def complex_length(length: int) -> int:
    """Return the length of the complex transform behind a real one."""
    return length if length % 2 else length // 2


def roots_of_unity(exponents: NDArray[np.int64], order: int) -> Float64:
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
    if not _is_smooth(length):
        raise InputError(
            f"length={length} of a Fourier transform has a prime factor above 5; allowed are "
            "products of 2, 3 and 5: split it by smooth_parts."
        )
    count = complex_length(length)
    radices = _radices(count)
    quarter = np.arange(0 if length % 2 else count // 2 + 1)
    return FourierTables(
        length=length,
        radices=np.array(radices, dtype=np.int32),
        twiddles=_twiddles(radices),
        positions=_positions(radices).astype(np.int32),
        roots=roots_of_unity(quarter, length),
    )


def _radices(length: int) -> list[int]:
    """Return the factors of the length: odd primes, 2 if need be, then as many 4 as there are.

    The last step has no twiddle factors; it pays that it is a large one.
    """
    radices = list[int]()
    for radix in (4, 2, 5, 3):
        while length % radix == 0:
            length //= radix
            radices.insert(0, radix)
    return radices


def _positions(radices: list[int]) -> NDArray[np.int64]:
    """Return where each frequency is: number p of the first step's r blocks has those ≡ p mod r."""
    positions = np.zeros(1, dtype=np.int64)
    for radix in reversed(radices):
        span = len(positions)
        positions = (positions[:, None] + span * np.arange(radix)).ravel()
    return positions


def _twiddles(radices: list[int]) -> Float64:
    parts = [np.empty((0, 2))]
    order = int(np.prod(radices, dtype=np.int64))
    for radix in radices:
        if radix % 2:
            parts.append(roots_of_unity(np.arange(radix), radix))
        places = np.arange(1, order // radix)[:, None] * np.arange(1, radix)
        parts.append(roots_of_unity(places, order).reshape(-1, 2))
        order //= radix
    return np.concatenate(parts)
